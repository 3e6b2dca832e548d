"""Place statistics: power of a path in frequency bands, a coarse map, and its position relative to
the other people's paths.

How long places are held and come back to, where a release gives every place of gaze one released
place of its own: noise on places leaves that timing as it is.

Of other releases the numbers are NaN: where samples have noise of their own nothing is held, and on
a grid, whose places share rows and columns, steps tell as much.

What is missing: lost samples, pauses of the clock and lengths, which noise on places leaves as
they are.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.attacks.statistics import (
    behind,
    moments,
    pair_correlation,
    quantiles,
    sorted_log_quantiles,
    sorted_quantiles,
)
from gazeveil.attacks.vectors.paths import Path, mean_direction
from gazeveil.compiled import compiled
from gazeveil.features.measure import median_in_place
from gazeveil.gaze.recording import Recording

#: Edges of the bands in Hz.
_BANDS_HZ = np.geomspace(0.1, 12.5, 11)

#: Nodes of the coarse map in standard deviations of everybody's places, and the width of a node.
_NODES_X = np.linspace(-2.0, 2.0, 5)
_NODES_Y = np.linspace(-1.6, 1.6, 4)
_WIDTH = 0.6

_OFFSETS = (0.1, 0.25, 0.5, 0.75, 0.9)
_LAGS = (1, 2, 5, 10)
_AT_OFFSETS, _AT_LAGS = np.array(_OFFSETS), np.array(_LAGS)
_MOST_BEHIND = 3
_LEAST_PAIRS = 3

# Fewer slots show no spectrum.
_LEAST_SLOTS = 8

#: Names of the numbers of each kind, in order.
SPECTRUM_NAMES = tuple(f"power_{axis}{i}" for axis in "xy" for i in range(len(_BANDS_HZ) - 1))
MAP_NAMES = tuple(f"map_{i}_{j}" for i in range(len(_NODES_X)) for j in range(len(_NODES_Y)))
CROWD_NAMES = (
    *(
        f"crowd_{axis}_{what}"
        for axis in "xy"
        for what in (
            "mean",
            *(f"q{100 * q:.0f}" for q in _OFFSETS),
            *(f"lag{lag}" for lag in _LAGS),
            "follow",
            "sd",
            "own_sd",
        )
    ),
    *(f"crowd_distance_q{100 * q:.0f}" for q in _OFFSETS),
    *(f"crowd_behind_{b}" for b in range(-_MOST_BEHIND, _MOST_BEHIND + 1)),
)


def spectrum(offsets_deg: Floats, slot_s: float) -> Floats:
    """Logarithms of the power in each band, along both axes.

    Parameters
    ----------
    offsets_deg : array of float64, shape (slots, 2)
        A path as offsets from a fixed place; lost slots (NaN) are bridged by straight lines.
    slot_s : float
        Length of a slot in seconds.
    """
    bands = len(_BANDS_HZ) - 1
    out = np.full((2, bands), np.nan)
    known = np.isfinite(offsets_deg).all(axis=1)
    there = np.flatnonzero(known)
    if len(there) < _LEAST_SLOTS:
        return out.ravel()
    n = len(offsets_deg)
    bridged = offsets_deg.T
    if len(there) < n:
        bridged = np.stack([np.interp(np.arange(n), there, axis[there]) for axis in bridged])
    window, first, count = _bands(n, slot_s)
    shifted = bridged - bridged.mean(axis=1, keepdims=True)
    spectra = np.fft.rfft(shifted * window, axis=1)
    power = spectra.real**2 + spectra.imag**2
    # Sums up to each frequency: bands are differences of them.
    total = np.cumsum(np.concatenate((np.zeros((2, 1)), power), axis=1), axis=1)
    sums = total[:, first + count] - total[:, first]
    shown = count > 0
    out[:, shown] = np.log(sums[:, shown] / count[shown] + 1e-6)
    return out.ravel()


@lru_cache(maxsize=256)
def _bands(n: int, slot_s: float) -> tuple[Floats, Ints, Ints]:
    """The window of a path of n slots, and of each band its first frequency and how many it has."""
    frequency = np.fft.rfftfreq(n, slot_s)
    edges = np.searchsorted(frequency, _BANDS_HZ)
    return np.hanning(n), edges[:-1], np.diff(edges)


def coarse_map(offsets_deg: Floats, centre_deg: Floats, spread_deg: Floats) -> Floats:
    """Roots of the share of time near each node of a grid around everybody's centre.

    Parameters
    ----------
    offsets_deg : array of float64, shape (slots, 2)
        A path as offsets from a fixed place.
    centre_deg, spread_deg : array of float64, shape (2,)
        Mean and standard deviation of everybody's places.
    """
    places = offsets_deg[np.isfinite(offsets_deg).all(axis=1)]
    if len(places) == 0:
        return np.full(len(MAP_NAMES), np.nan)
    z = (places - centre_deg) / np.maximum(spread_deg, 1e-6)
    near_x = np.exp(-0.5 * ((z[:, :1] - _NODES_X) / _WIDTH) ** 2)
    near_y = np.exp(-0.5 * ((z[:, 1:] - _NODES_Y) / _WIDTH) ** 2)
    near_x /= near_x.sum(axis=1, keepdims=True) + 1e-12
    near_y /= near_y.sum(axis=1, keepdims=True) + 1e-12
    return np.sqrt(near_x.T @ near_y / len(z)).ravel()


def beside_crowd(own: Path, crowd: Floats) -> Floats:
    """How a path lies to the mean path of the other people: how far off on each side, for how
    long, how closely it follows and how late.

    Parameters
    ----------
    own : Path
        Of one recording.
    crowd : array of float64, shape (slots, 3)
        Directions of the others.
    """
    others = Path(own.space, crowd)
    middle = Path(own.space, mean_direction(crowd))
    off, here, there = (
        a.offsets_from(b).T for a, b in ((own, others), (own, middle), (others, middle))
    )
    out = np.full(len(CROWD_NAMES), np.nan)
    far = np.sqrt(off[0] * off[0] + off[1] * off[1])
    # NumPy sorts faster than compiled code does, and puts NaN last.
    ordered = np.sort(off, axis=1)
    far.sort()
    _crowd_statistics(
        off,
        ordered,
        here,
        there,
        far,
        own.steps_deg().T,
        others.steps_deg().T,
        _AT_OFFSETS,
        _AT_LAGS,
        out,
    )
    return out


@compiled
def _crowd_statistics(
    off: Floats,
    ordered: Floats,
    here: Floats,
    there: Floats,
    far: Floats,
    own_steps: Floats,
    their_steps: Floats,
    at: Floats,
    lags: Ints,
    out: Floats,
) -> None:
    """The numbers of :data:`CROWD_NAMES` in their order; offsets have shape (2, slots), steps
    (2, slots - 1); `ordered` and `far` are the offsets along each axis and their lengths, sorted.
    """
    k = 0
    for axis in range(2):
        values = off[axis]
        sorted_quantiles(ordered[axis], at, out[k + 1 : k + 1 + len(at)])
        _, out[k], sd, _, _ = moments(values)
        k += 1 + len(at)
        for lag in lags:
            if len(values) > lag:
                out[k] = pair_correlation(values[:-lag], values[lag:], _LEAST_PAIRS)
            k += 1
        out[k] = pair_correlation(here[axis], there[axis], _LEAST_PAIRS)
        out[k + 1] = sd
        out[k + 2] = moments(here[axis])[2]
        k += 3
    sorted_log_quantiles(far, at, out[k : k + len(at)])
    k += len(at)
    for late in range(-_MOST_BEHIND, _MOST_BEHIND + 1):
        out[k] = (
            behind(own_steps, their_steps, late, _LEAST_PAIRS)
            if late >= 0
            else behind(their_steps, own_steps, -late, _LEAST_PAIRS)
        )
        k += 1


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
HELD_NAMES = (
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
    """Numbers about runs of one released place, in the order of :data:`HELD_NAMES`; NaN where a
    release holds no places of its own.
    """
    nothing = np.full(len(HELD_NAMES), np.nan)
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


_RUNS = (0.25, 0.5, 0.75, 0.9, 1.0)
_STRETCHES = (0.25, 0.5, 0.75)
_PARTS = 4

#: A run of lost samples between these, in ms, is taken for a blink; a longer one for looking away.
_BLINK_MS = (60.0, 400.0)

#: Names of the numbers, in order.
MISSING_NAMES = (
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
    """Numbers about what a recording lacks, in the order of :data:`MISSING_NAMES`; for fewer
    than two samples all NaN.
    """
    n = len(recording)
    if n < 2:
        return np.full(len(MISSING_NAMES), np.nan)
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
