"""Re-identify pieces from a few looks known from another source.

The attacker stood beside a viewer or saw a screen recording, and so knows a few places and times.
The released piece of that time that fits these looks best is chosen. The places are those of the
raw recording, an upper bound on such knowledge. On releases with lasting names, whole recordings
take the place of pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import InferenceAttack
from gazeveil.attacks.result import AttackResult, InferenceResult, people_interval
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.recording import Recording, RecordingKey

#: Numbers of looks that the attacker knows.
LOOKS = (1, 3, 10)

# Distance at which a look begins to speak against a piece, and that of a lost sample, in degrees.
_NEAR_DEG, _LOST_DEG = 2.0, 10.0


@dataclass(frozen=True)
class KnownLooks(InferenceAttack):
    """Tell whose a piece is by looks that are known from elsewhere, drawn `draws` times for each
    piece.
    """

    name: ClassVar[str] = "known-looks"
    summary: ClassVar[str] = "tells whose a piece is by looks that are known from elsewhere"
    pieces: ClassVar[str] = "any"

    draws: int = 4

    def __post_init__(self) -> None:
        checks.count(self.name, "draws", self.draws)

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Draw looks from raw recordings and find the piece that fits them best.

        Returns
        -------
        InferenceResult
            `found_by_1_look`, `found_by_3_looks`, `found_by_10_looks`: the share of pieces that fit
            better than all others of the same window, ties shared; an interval over people; chance
            is one over the pieces of the window.

        Raises
        ------
        DataError
            If nothing is released of a stimulus that two people saw.
        """
        if raw.cohort is None or release.cohort is None:
            raise DataError(
                "Known looks need samples on both sides, and one side holds tables only."
            )
        rng = np.random.default_rng(seed)
        seen = {r.key: r for r in raw.cohort}
        right: dict[str, list[Floats]] = {}
        chances: list[float] = []
        for released, owners in _groups(release):
            lasting = release.piece_windows is None
            for person, own in self._credit(released, owners, lasting, seen, rng):
                right.setdefault(person, []).append(own)
                chances.append(1.0 / len(released))
        if not right:
            raise DataError(
                "Known looks need a stimulus that two people saw, raw and released, under the same"
                " names. There is none."
            )
        shares = np.array([np.mean(right[p], axis=0) for p in sorted(right)])
        protocol = "raw places at known times against all pieces of that time; interval over people"
        results = tuple(
            AttackResult(
                f"found_by_{count}_look{'s' if count > 1 else ''}",
                float(own.mean()),
                *people_interval(own),
                len(own),
                float(np.mean(chances)),
                protocol=protocol,
            )
            for count, own in zip(LOOKS, shares.T, strict=True)
        )
        return InferenceResult(self.name, results)

    def _credit(
        self,
        released: list[Recording],
        owners: list[RecordingKey],
        lasting: bool,
        seen: dict[RecordingKey, Recording],
        rng: np.random.Generator,
    ) -> Iterator[tuple[str, Floats]]:
        """Each person of a group with the share of draws in which their piece fits best, by number
        of looks.
        """
        clocks = [r.t_ns - (r.t_ns[0] if lasting else 0) for r in released]
        vectors = [r.vectors for r in released]
        for place, owner in enumerate(owners):
            own = seen.get(owner)
            if own is None:
                continue
            t_ns = own.t_ns - own.t_ns[0]
            shown = lasting | ((t_ns >= clocks[0][0]) & (t_ns <= clocks[0][-1]))
            usable = np.flatnonzero(own.valid & shown)
            if not len(usable):
                continue
            looks = rng.choice(usable, (self.draws, max(LOOKS)))
            known = own.vectors[looks]
            fits = np.stack(
                [_fit(v, c, t_ns[looks], known) for v, c in zip(vectors, clocks, strict=True)]
            )
            yield owner[0], np.array([_won(fits[..., :n], place) for n in LOOKS])


def _groups(release: RecordingSet) -> Iterator[tuple[list[Recording], list[RecordingKey]]]:
    """Released pieces of each window, or of each stimulus where names last, with the raw recordings
    that they were made for.
    """
    groups: dict[tuple[str, int], list[Recording]] = {}
    windows, origins = release.piece_windows, release.origins
    for r in release.cohort or ():
        if len(r):
            place = windows[r.key][:2] if windows is not None else (r.stimulus, 0)
            groups.setdefault(place, []).append(r)
    for members in groups.values():
        if len(members) > 1:
            yield members, [r.key if origins is None else origins[r.person] for r in members]


def _fit(vectors: Floats, clock_ns: Ints, at_ns: Ints, known: Floats) -> Floats:
    """How well one piece fits each look, shape (draws, looks): 0 at the place itself."""
    nearest = np.clip(np.searchsorted(clock_ns, at_ns, side="right") - 1, 0, len(clock_ns) - 1)
    cosine = np.clip((vectors[nearest] * known).sum(axis=-1), -1.0, 1.0)
    apart_deg = np.nan_to_num(np.degrees(np.arccos(cosine)), nan=_LOST_DEG)
    fit: Floats = -np.log1p((apart_deg / _NEAR_DEG) ** 2)
    return fit


def _won(fits: Floats, place: int) -> float:
    """Share of draws in which a piece fits best, ties shared."""
    total = fits.sum(axis=-1)
    best = total == total.max(axis=0)
    return float(np.mean(best[place] / best.sum(axis=0)))
