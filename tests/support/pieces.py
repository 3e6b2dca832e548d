"""Pieces of recordings without any protection but names that do not last: the strongest leak that a
mechanism of pieces can have, and what goes wrong in such a mechanism, each as a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.guarantee import no_promise
from gazeveil.privacy.mechanism import Claim, PieceMechanism, PieceRelease
from gazeveil.privacy.release import Release

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


@dataclass(frozen=True)
class RawPieces(PieceMechanism):
    """Cuts recordings at public times and deals names.

    Parameters
    ----------
    piece_s, gap_s : float
        Length of pieces, and of what is left out between them.
    noise_deg : float
        Of Gaussian noise on each sample.
    keep_names : bool
        A planted bug: names sort as the people do.
    keep_loss : bool
        Whether lost samples stay lost; else they repeat the last valid one.
    shared_seed : bool
        A planted bug: the noise of a person is the same in every piece.
    """

    name: ClassVar[str] = "raw-pieces"
    kind: ClassVar[str] = "cohort"
    paper: ClassVar[str] = "none"
    claims: ClassVar[Mapping[str, Claim]] = {"corrected": Claim("none", "recording", "empirical")}

    piece_s: float = 5.0
    gap_s: float = 1.0
    noise_deg: float = 0.0
    keep_names: bool = False
    keep_loss: bool = False
    shared_seed: bool = False

    def release_with_origins(self, data: Cohort, seed: int | None = None) -> PieceRelease:
        rng = np.random.default_rng(seed)
        by_stimulus: dict[str, list[Recording]] = {}
        for recording in data:
            by_stimulus.setdefault(recording.stimulus, []).append(recording)
        pieces: list[Recording] = []
        origins: dict[str, RecordingKey] = {}
        for stimulus, viewers in by_stimulus.items():
            length_s = min(float(r.t_ns[-1] - r.t_ns[0]) for r in viewers) / 1e9
            windows = int((length_s + self.gap_s + 1e-6) // (self.piece_s + self.gap_s))
            for k in range(windows):
                dealt = (
                    np.arange(len(viewers)) if self.keep_names else rng.permutation(len(viewers))
                )
                for place, viewer in zip(dealt.tolist(), viewers, strict=True):
                    name = f"{stimulus}-{k}-{place:03}"
                    origins[name] = viewer.key
                    pieces.append(self._piece(viewer, k, name, rng))
        order = rng.permutation(len(pieces))
        released = Cohort([pieces[i] for i in order])
        promise = no_promise(self.name, "a test")
        return PieceRelease(Release(released, promise, self.provenance(seed)), origins)

    def _piece(self, r: Recording, k: int, name: str, rng: np.random.Generator) -> Recording:
        begin_ns = round(1e9 * k * (self.piece_s + self.gap_s))
        n = int(self.piece_s * r.rate_hz)
        t_ns = begin_ns + np.round(np.arange(n) * 1e9 / r.rate_hz).astype(np.int64)
        own = r.t_ns - r.t_ns[0]
        at = np.clip(np.searchsorted(own, t_ns, side="right") - 1, 0, len(r) - 1)
        if not self.keep_loss:
            last = np.maximum.accumulate(np.where(r.valid, np.arange(len(r)), 0))
            at = last[at]
        if self.shared_seed:
            rng = np.random.default_rng(sum(r.person.encode()))
        noise = self.noise_deg * rng.normal(size=(2, n))
        return Recording(
            name,
            r.stimulus,
            t_ns,
            r.x_deg[at] + noise[0],
            r.y_deg[at] + noise[1],
            r.valid[at],
            space=r.space,
            rate_hz=r.rate_hz,
            session="",
        )


def jumper(
    person: int, stimulus: int, seed: int = 0, seconds: float = 20.0, **more: Any
) -> Recording:
    """Somebody who jumps about, each in their own measure, and stays for seconds where they are.

    Parameters
    ----------
    person, stimulus, seed : int
        Who looks at what.
    seconds : float
        How long.
    alike : bool
        Whether everybody moves the same way.
    stay_s : float
        Mean time in one place.
    lose : bool
        Whether samples are lost, more of them the higher the person's number.
    shake : float
        By how much more each person shakes than the one before.
    """
    defaults = {"alike": False, "stay_s": 1.0, "lose": False, "shake": 0.0}
    alike, stay_s, lose, shake = (more.get(k, d) for k, d in defaults.items())
    rng = np.random.default_rng([seed, person, stimulus])
    rate_hz, n = 60.0, int(seconds * 60.0)
    kind = 0 if alike else person
    look = np.cumsum(rng.random(n) < (1 + 0.3 * kind) / (stay_s * rate_hz))
    wide = 3.0 + 0.7 * (kind % 5), 2.0 + 0.7 * (kind % 3)
    place = (rng.normal(size=(n, 2)) * wide)[look] + 0.1 * (1 + shake * person) * rng.normal(
        size=(n, 2)
    )
    valid = rng.random(n) > (0.06 * person if lose else 0.0)
    return Recording(
        f"p{person:02}",
        f"s{stimulus}",
        np.round(np.arange(n) * 1e9 / rate_hz).astype(np.int64),
        place[:, 0],
        place[:, 1],
        valid,
        space=SCREEN,
        rate_hz=rate_hz,
    )


def jumpers(people: int = 8, stimuli: int = 4, seed: int = 0, **more: Any) -> Cohort:
    """A cohort of them."""
    return Cohort([jumper(p, s, seed, **more) for p in range(people) for s in range(stimuli)])
