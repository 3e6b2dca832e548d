"""How long places are held and come back to, where a release gives every place of gaze one released
place of its own: noise on places leaves that timing as it is.

Of other releases the numbers are NaN: where samples have noise of their own nothing is held, and on
a grid, whose places share rows and columns, steps tell as much.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.gaze.recording import Recording

#: Neighbouring samples must be equal this often, places be told by x alone this often, and a run
#: come back to an earlier place this often.
_LEAST_EQUAL, _LEAST_APART, _LEAST_BACK = 0.5, 0.9, 0.05

# Edges of durations in seconds, and the coarser ones of runs between two others.
_EDGES_S = np.geomspace(0.004, 4.0, 25)
_COARSE_S = _EDGES_S[::3]
_FEWEST_RUNS = 6
_MOST_RUNS_AGO = 12
_SHARES = 8
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.97)

#: Names of the numbers, in order.
NAMES = (
    *(f"held_runs_{i}" for i in range(len(_EDGES_S) + 1)),
    *(f"held_time_{i}" for i in range(len(_EDGES_S) + 1)),
    *(f"held_return_{i}" for i in range(len(_COARSE_S) + 1)),
    *(f"held_passage_{i}" for i in range(len(_COARSE_S) + 1)),
    *(f"held_runs_ago_{i}" for i in range(_MOST_RUNS_AGO + 1)),
    *(f"held_share_{i}" for i in range(_SHARES)),
    "held_run_rate",
    "held_places",
    "held_correlation",
    *(f"held_q{100 * q:.0f}" for q in _QUANTILES),
)


def held_statistics(recording: Recording) -> Floats:
    """Numbers about runs of one released place, in the order of :data:`NAMES`; NaN where a release
    holds no places of its own.
    """
    nothing = np.full(len(NAMES), np.nan)
    x = recording.x_deg[recording.valid]
    if len(x) < 2 or not np.mean(x[1:] == x[:-1]) >= _LEAST_EQUAL:
        return nothing
    y = recording.y_deg[recording.valid]
    starts = np.concatenate(([0], np.flatnonzero((x[1:] != x[:-1]) | (y[1:] != y[:-1])) + 1))
    place = np.unique(np.stack((x, y), axis=1)[starts], axis=0, return_inverse=True)[1].ravel()
    places, runs = int(place.max()) + 1, len(starts)
    apart = len(np.unique(x)) >= _LEAST_APART * places
    if runs < _FEWEST_RUNS or not apart or runs - places < _LEAST_BACK * runs:
        return nothing
    step_s = float(np.median(np.diff(recording.t_ns))) / 1e9
    durations_s = np.diff(np.concatenate((starts, [len(x)]))) * step_s
    return _numbers(place, durations_s, float(recording.t_ns[-1] - recording.t_ns[0]) / 1e9)


def _numbers(place: Ints, durations_s: Floats, whole_s: float) -> Floats:
    """Of runs, in order, with the place of each."""

    def rates(own_s: Floats, edges_s: Floats, weights: Floats | None = None) -> Floats:
        bins = np.searchsorted(edges_s, own_s)
        counts = np.bincount(bins, weights=weights, minlength=len(edges_s) + 1)
        rooted: Floats = np.sqrt(counts / whole_s)
        return rooted

    back = place[2:] == place[:-2]
    between_s = durations_s[1:-1]
    ago = np.bincount(_runs_ago(place), minlength=_MOST_RUNS_AGO + 1)
    shares = np.sort(np.bincount(place, weights=durations_s) / durations_s.sum())[::-1]
    logs = np.log(durations_s)
    spread = logs[1:].std() * logs[:-1].std()
    together = float(np.cov(logs[1:], logs[:-1], ddof=0)[0, 1]) / spread if spread > 0 else 0.0
    return np.concatenate(
        (
            rates(durations_s, _EDGES_S),
            rates(durations_s, _EDGES_S, durations_s),
            rates(between_s[back], _COARSE_S),
            rates(between_s[~back], _COARSE_S),
            np.sqrt(ago / len(place)),
            np.pad(shares, (0, _SHARES))[:_SHARES],
            [np.log(len(place) / whole_s), np.log(len(shares)), together],
            np.log(np.quantile(durations_s, _QUANTILES)),
        )
    )


def _runs_ago(place: Ints) -> Ints:
    """How many runs ago each place was left, at most :data:`_MOST_RUNS_AGO`; 0 for a new one."""
    last: dict[int, int] = {}
    ago = np.zeros(len(place), dtype=np.int64)
    for i, own in enumerate(place.tolist()):
        ago[i] = min(i - last[own], _MOST_RUNS_AGO) if own in last else 0
        last[own] = i
    return ago
