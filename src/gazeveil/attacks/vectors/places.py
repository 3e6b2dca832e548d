"""Place statistics: power of a path in frequency bands, a coarse map, and its position relative to
the other people's paths.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.statistics import (
    behind,
    moments,
    pair_correlation,
    sorted_log_quantiles,
    sorted_quantiles,
)
from gazeveil.attacks.vectors.paths import Path, mean_direction
from gazeveil.compiled import compiled

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
