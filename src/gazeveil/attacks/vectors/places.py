"""Where somebody looks: the power of a path in bands of frequency, a coarse map, and how the path
lies to that of the other people.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.statistics import LEAST, pair_correlation
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
_MOST_BEHIND = 3
_LEAST_PAIRS = 3

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
    out = np.full((2, len(_BANDS_HZ) - 1), np.nan)
    n = len(offsets_deg)
    frequency = np.fft.rfftfreq(n, slot_s) if n else np.empty(0)
    band = np.searchsorted(_BANDS_HZ, frequency, side="right") - 1
    inside = (band >= 0) & (band < out.shape[1])
    for axis in range(2):
        values = offsets_deg[:, axis]
        there = np.flatnonzero(np.isfinite(values))
        if len(there) < 8:
            continue
        bridged = np.interp(np.arange(n), there, values[there])
        power = np.abs(np.fft.rfft((bridged - bridged.mean()) * np.hanning(n))) ** 2
        total = np.bincount(band[inside], weights=power[inside], minlength=out.shape[1])
        count = np.bincount(band[inside], minlength=out.shape[1])
        out[axis] = np.where(count > 0, np.log(total / np.maximum(count, 1) + 1e-6), np.nan)
    return out.ravel()


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
    off = own.offsets_from(others)
    middle = Path(own.space, mean_direction(crowd))
    here, there = own.offsets_from(middle), others.offsets_from(middle)
    out = np.full(len(CROWD_NAMES), np.nan)
    _crowd_statistics(
        np.ascontiguousarray(off.T),
        np.ascontiguousarray(here.T),
        np.ascontiguousarray(there.T),
        own.steps_deg(),
        others.steps_deg(),
        np.array(_OFFSETS),
        np.array(_LAGS),
        out,
    )
    return out


@compiled
def _known_quantiles(values: Floats, at: Floats, out: Floats) -> Floats:
    """Quantiles of the known values, between neighbours by a straight line; the known values."""
    some = np.sort(values[np.isfinite(values)])
    n = len(some)
    for i in range(len(at)):
        if n > 0:
            place = at[i] * (n - 1)
            low = int(place)
            high = min(low + 1, n - 1)
            out[i] = some[low] + (place - low) * (some[high] - some[low])
    return some


@compiled
def _crowd_statistics(
    off: Floats,
    here: Floats,
    there: Floats,
    own_steps: Floats,
    their_steps: Floats,
    at: Floats,
    lags: Ints,
    out: Floats,
) -> None:
    """The numbers of :data:`CROWD_NAMES` in their order; offsets have shape (2, slots), steps
    (slots - 1, 2).
    """
    k = 0
    for axis in range(2):
        values = off[axis]
        some = _known_quantiles(values, at, out[k + 1 : k + 1 + len(at)])
        if len(some) > 0:
            out[k] = some.mean()
        k += 1 + len(at)
        for lag in lags:
            if len(values) > lag:
                out[k] = pair_correlation(values[:-lag], values[lag:], _LEAST_PAIRS)
            k += 1
        out[k] = pair_correlation(here[axis], there[axis], _LEAST_PAIRS)
        if len(some) > 1:
            out[k + 1] = some.std()
        own = here[axis][np.isfinite(here[axis])]
        if len(own) > 1:
            out[k + 2] = own.std()
        k += 3
    far = out[k : k + len(at)]
    _known_quantiles(np.hypot(off[0], off[1]), at, far)
    for i in range(len(at)):
        far[i] = np.log(max(far[i], LEAST)) if np.isfinite(far[i]) else np.nan
    k += len(at)
    for behind in range(-_MOST_BEHIND, _MOST_BEHIND + 1):
        late, early = (own_steps, their_steps) if behind >= 0 else (their_steps, own_steps)
        by = abs(behind)
        if len(late) > by:
            out[k] = pair_correlation(
                late[by:].copy().ravel(), early[: len(early) - by].copy().ravel(), _LEAST_PAIRS
            )
        k += 1
