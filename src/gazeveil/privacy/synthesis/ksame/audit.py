"""Game for k-same mechanisms on recordings: people whose recordings are all drawn from the same
laws, with the same times and losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import Game, sharing_game

if TYPE_CHECKING:
    from gazeveil.privacy.synthesis.clock.k_same import ClockRenderKSame
    from gazeveil.privacy.synthesis.ksame.mechanism import KSameSynth


def k_same_synth(mechanism: KSameSynth, unit: str | None) -> Game:
    """Count the people who share all laws."""
    return law_game(
        mechanism, unit, lambda law: (law.fixations, law.saccades, law.is_fixation, law.onset)
    )


def law_game(
    mechanism: KSameSynth | ClockRenderKSame,
    unit: str | None,
    arrays: Callable[[Any], Sequence[NDArray[Any]]],
) -> Game:
    """As :func:`k_same_synth`, with the arrays that make up a law."""

    def records(trial: int, people: int, stimuli: int, rng: np.random.Generator) -> Iterable[bytes]:
        cohort = Cohort(
            [scanpath(f"p{p}", f"s{s}", rng) for p in range(people) for s in range(stimuli)]
        )
        laws = mechanism.laws(cohort, seed=trial)
        joined: dict[str, bytes] = {}
        for r in mechanism.release(cohort, seed=trial).data:
            parts = (*arrays(laws[r.key]), r.t_ns, r.valid)
            own = b"|".join([r.stimulus.encode(), *(a.tobytes() for a in parts)])
            joined[r.person] = joined.get(r.person, b"") + own
        return joined.values()

    return sharing_game(mechanism.k, unit, "law", 8, (3, "stimuli"), records)


def scanpath(person: str, stimulus: str, rng: np.random.Generator) -> Recording:
    """About three seconds of fixations with jumps between them, 100 Hz."""
    lengths = rng.integers(15, 50, int(rng.integers(6, 11)))
    places = np.cumsum(rng.normal(0, 6, (len(lengths), 2)), axis=0)
    gaze = np.repeat(places, lengths, axis=0) + rng.normal(0, 0.1, (int(lengths.sum()), 2))
    x, y = (180 + gaze[:, 0]) % 360, np.clip(90 + gaze[:, 1], 1, 179)
    t_ns = np.arange(len(x)) * 10**7
    return Recording(person, stimulus, t_ns, x, y, space=Sphere(), rate_hz=100.0)
