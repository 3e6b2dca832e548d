"""The conformance kit of utilities: raw against raw is perfect, and noise makes it worse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from gazeveil.conformance import CheckResult, run_kit
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.simulate import simulate
from gazeveil.utility.base import Utility, UtilityResult

_NOISE_DEG = (0.0, 1.0, 8.0)


def check_utility(utility: Utility) -> list[CheckResult]:
    """Run the kit on a utility."""
    return run_kit(_KIT, utility)


def _measures(utility: Utility, noise_deg: float, seed: int = 1) -> tuple[UtilityResult, ...]:
    raw, test = _recordings(0.0), _recordings(noise_deg)
    return utility.measure(raw, raw, test, seed)


def _gives_figures_with_parts(utility: Utility) -> Iterator[str]:
    results = _measures(utility, 0.0)
    if not results:
        yield "it gives no figure"
    for result in results:
        if len(result.parts) != len(result.names):
            yield f"{result.metric}: it has {len(result.parts)} parts and {len(result.names)} names"
        if result.better not in ("higher", "lower"):
            yield f"{result.metric}: 'better' must be higher or lower"


def _is_perfect_for_raw_against_raw(utility: Utility) -> Iterator[str]:
    if utility.trains:
        return
    for clean, noisy in zip(_measures(utility, 0.0), _measures(utility, 8.0), strict=True):
        sign = 1 if clean.better == "lower" else -1
        if np.isfinite(clean.value) and sign * (clean.value - noisy.value) > 1e-9:
            yield f"{clean.metric}: raw data scores {clean.value:g}, noise scores {noisy.value:g}"
        if clean.better == "lower" and np.isfinite(clean.value) and abs(clean.value) > 1e-6:
            yield f"{clean.metric}: raw against raw has the error {clean.value:g}"


def _gets_worse_with_noise(utility: Utility) -> Iterator[str]:
    if utility.trains:
        return
    worse = False
    for series in zip(*(_measures(utility, noise) for noise in _NOISE_DEG), strict=True):
        sign = 1 if series[0].better == "lower" else -1
        values = [sign * r.value for r in series]
        if np.isfinite(values).all() and values[0] < values[-1]:
            worse = True
    if not worse:
        yield f"no figure is worse with noise of {_NOISE_DEG[-1]:g} degrees than without"


def _repeats_under_a_seed(utility: Utility) -> Iterator[str]:
    for first, second in zip(_measures(utility, 1.0), _measures(utility, 1.0), strict=True):
        if not np.array_equal(first.parts, second.parts, equal_nan=True):
            yield f"{first.metric}: the same seed gives another figure"


_KIT: tuple[Callable[[Utility], Iterator[str]], ...] = (
    _gives_figures_with_parts,
    _is_perfect_for_raw_against_raw,
    _gets_worse_with_noise,
    _repeats_under_a_seed,
)


@cache
def _recordings(noise_deg: float) -> RecordingSet:
    rng = np.random.default_rng(5)
    recordings = []
    for recording in simulate(4, 3, 10.0, 120.0, seed=1):
        x_deg = recording.x_deg + rng.normal(0.0, noise_deg, len(recording))
        y_deg = recording.y_deg + rng.normal(0.0, noise_deg, len(recording))
        recordings.append(
            recording
            if noise_deg == 0
            else recording.with_(x_deg=np.mod(x_deg, 360), y_deg=np.clip(y_deg, 0.0, 179.9))
        )
    return RecordingSet(Cohort(recordings))
