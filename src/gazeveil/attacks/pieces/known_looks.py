"""Re-identify pieces from a few looks known from another source.

The attacker stood beside a viewer or saw a screen recording, and so knows a few places and times.
The released piece of that time that fits these looks best is chosen. The places are those of the
raw recording, an upper bound on such knowledge. On releases with lasting names, whole recordings
take the place of pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.result import AttackResult, people_interval
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.recording import Recording, RecordingKey

#: Numbers of looks that the attacker knows.
LOOKS = (1, 3, 10)

# Distance at which a look begins to speak against a piece, and that of a lost sample, in degrees.
_NEAR_DEG, _LOST_DEG = 2.0, 10.0


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Released pieces of one time of a stimulus, with the raw recordings they were made for."""

    released: list[Recording]
    owners: list[RecordingKey]
    begin_ns: int
    end_ns: int


def found_by_looks(
    raw: RecordingSet, release: RecordingSet, seed: int, draws: int = 4
) -> tuple[AttackResult, ...]:
    """How often known looks single out the piece that was made for the person.

    Parameters
    ----------
    raw : RecordingSet
        Raw recordings: the looks are drawn from their valid samples.
    release : RecordingSet
        Of pieces with `origins`, or with lasting names that are those of the raw recordings.
    seed : int
        Of the draws and the intervals.
    draws : int
        Draws of looks for each piece.

    Returns
    -------
    tuple of AttackResult
        `found_by_1_look`, `found_by_3_looks`, `found_by_10_looks`: the share of pieces that fit
        better than all others of the same window, ties shared; a bootstrap interval over people;
        chance is one over the pieces of the window.

    Raises
    ------
    DataError
        If nothing is released of a stimulus that two people saw.
    """
    if raw.cohort is None or release.cohort is None:
        raise DataError("Known looks need samples on both sides, and one side holds tables only.")
    rng = np.random.default_rng(seed)
    seen = {r.key: r for r in raw.cohort}
    right: dict[str, list[Floats]] = {}
    chances: list[float] = []
    for group in _groups(release):
        credit = _credit(group, seen, draws, rng)
        for person, own in credit:
            right.setdefault(person, []).append(own)
            chances.append(1.0 / len(group.released))
    if not right:
        raise DataError(
            "Known looks need a stimulus that two people saw, raw and released, under the same"
            " names. There is none."
        )
    people = sorted(right)
    shares = np.array([np.mean(right[p], axis=0) for p in people], dtype=np.float64)
    protocol = "raw places at known times against all pieces of that time; interval over people"
    return tuple(
        AttackResult(
            f"found_by_{count}_look{'s' if count > 1 else ''}",
            float(shares[:, k].mean()),
            *people_interval(shares[:, k]),
            len(people),
            float(np.mean(chances)),
            protocol=protocol,
        )
        for k, count in enumerate(LOOKS)
    )


def _groups(release: RecordingSet) -> list[_Candidates]:
    """What was released of each window, or of each stimulus where names last."""
    groups: dict[tuple[str, int], list[Recording]] = {}
    windows, origins = release.piece_windows, release.origins
    for r in release.cohort or ():
        if len(r):
            place = windows[r.key][:2] if windows is not None else (r.stimulus, 0)
            groups.setdefault(place, []).append(r)
    found = []
    for members in groups.values():
        if len(members) < 2:
            continue
        owners = [r.key if origins is None else origins[r.person] for r in members]
        first = members[0].t_ns
        begin, end = (int(first[0]), int(first[-1])) if windows is not None else (0, 2**62)
        found.append(_Candidates(members, owners, begin, end))
    return found


def _credit(
    group: _Candidates, seen: dict[RecordingKey, Recording], draws: int, rng: np.random.Generator
) -> list[tuple[str, Floats]]:
    """For each person of the group the share of draws in which their piece fits best, by number of
    looks.
    """
    result = []
    pieces = group.end_ns < 2**62
    clocks = [r.t_ns - (0 if pieces else r.t_ns[0]) for r in group.released]
    vectors = [r.vectors for r in group.released]
    for place, owner in enumerate(group.owners):
        own = seen.get(owner)
        if own is None:
            continue
        t_ns = own.t_ns - own.t_ns[0]
        usable = np.flatnonzero(own.valid & (t_ns >= group.begin_ns) & (t_ns <= group.end_ns))
        if not len(usable):
            continue
        looks = rng.choice(usable, (draws, max(LOOKS)))
        known = own.vectors[looks]
        fits = np.stack(
            [_fit(v, c, t_ns[looks], known) for v, c in zip(vectors, clocks, strict=True)]
        )
        result.append((owner[0], np.array([_won(fits[..., :n], place) for n in LOOKS])))
    return result


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
