"""What is missing: lost samples, pauses of the clock and lengths, which noise on places leaves as
they are.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.attacks.statistics import quantiles
from gazeveil.features.measure import median_in_place
from gazeveil.gaze.recording import Recording

_RUNS = (0.25, 0.5, 0.75, 0.9, 1.0)
_STRETCHES = (0.25, 0.5, 0.75)
_PARTS = 4

#: A run of lost samples between these, in ms, is taken for a blink; a longer one for looking away.
_BLINK_MS = (60.0, 400.0)

#: Names of the numbers, in order.
NAMES = (
    "lost_share",
    "samples",
    "duration",
    "lost_runs",
    *(f"lost_run_q{100 * q:.0f}" for q in _RUNS),
    "blinks",
    "looks_away",
    *(f"stretch_q{100 * q:.0f}" for q in _STRETCHES),
    "step_median",
    "step_max",
    "step_sd",
    *(f"lost_share_{i}" for i in range(_PARTS)),
)


def missing_statistics(recording: Recording) -> Floats:
    """Numbers about what a recording lacks, in the order of :data:`NAMES`; for fewer than two
    samples all NaN.
    """
    n = len(recording)
    if n < 2:
        return np.full(len(NAMES), np.nan)
    lost = ~recording.valid
    step_ms = np.diff(recording.t_ns) / 1e6
    usual_ms = float(median_in_place(step_ms.copy()))
    first, after = _runs(lost)
    runs_ms = np.asarray((after - first) * usual_ms, dtype=np.float64)
    ends = np.concatenate((after, [n])) if len(after) else np.array((0, n))
    stretches = np.diff(ends).astype(np.float64)
    duration_s = float(recording.t_ns[-1] - recording.t_ns[0]) / 1e9
    return np.array(
        (
            np.count_nonzero(lost) / n,
            math.log(n),
            math.log(max(duration_s, 1e-3)),
            len(runs_ms),
            *_log_quantiles(runs_ms, _RUNS),
            np.count_nonzero((runs_ms > _BLINK_MS[0]) & (runs_ms < _BLINK_MS[1])),
            np.count_nonzero(runs_ms >= _BLINK_MS[1]),
            *_log_quantiles(stretches, _STRETCHES),
            usual_ms,
            math.log(max(float(step_ms.max()), 1e-3)),
            step_ms.std(),
            *_shares(lost),
        ),
        dtype=np.float64,
    )


def _runs(lost: Bools) -> tuple[Ints, Ints]:
    """First places of runs of lost samples, and those after their ends."""
    turns = np.flatnonzero(lost[1:] != lost[:-1]) + 1
    edges = np.concatenate(([0] * int(lost[0]), turns, [len(lost)] * int(lost[-1])))
    edges = edges.astype(np.int64)
    return edges[::2], edges[1::2]


def _shares(lost: Bools) -> list[float]:
    """Share of lost samples in each part of a recording, as equal as they can be."""
    size, more = divmod(len(lost), _PARTS)
    ends = [i * size + min(i, more) for i in range(_PARTS + 1)]
    parts = [lost[a:b] for a, b in pairwise(ends)]
    return [np.count_nonzero(p) / len(p) if len(p) else np.nan for p in parts]


def _log_quantiles(values: Floats, at: tuple[float, ...]) -> Floats:
    """Logarithms of quantiles; zeros where nothing is lost, which is a statement too."""
    if len(values) == 0:
        return np.zeros(len(at))
    return np.log(np.maximum(quantiles(values, at), 1.0))
