"""Paths: the means of gaze over slots of equal length, and the mean path of the other people.

A mean over n samples has 1/sqrt(n) of their independent noise, so that a path of long slots shows
where gaze was even where single samples do not. Where the scale of the noise of each sample is
public, samples weigh as much as their precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording

#: Noise scales of the samples of a released recording, in degrees; None where they are not public.
NoiseScale = Callable[[Recording], Floats | None]

#: How far gaze itself moves about within a slot, in degrees: no sample is worth more than this.
_OWN_MOVEMENT_DEG = 1.0

_TINY = 1e-9

# The largest double below 180: the south pole stays inside [0, 180).
_Y_LAST_DEG = float(np.nextafter(180.0, 0.0))


@dataclass(frozen=True, eq=False)
class Path:
    """Means of gaze over slots.

    Parameters
    ----------
    space : Sphere or Screen
        What degrees mean.
    vectors : array of float64, shape (slots, 3)
        Unit vectors; NaN where a slot has no sample.
    """

    space: Space
    vectors: Floats

    @cached_property
    def degrees(self) -> tuple[Floats, Floats]:
        """Right and down in the degrees of the space, worked out once."""
        x, y = np.empty(len(self.vectors)), np.empty(len(self.vectors))
        if isinstance(self.space, Sphere):
            _sphere_degrees(self.vectors, x, y)
        else:
            _screen_degrees(self.vectors, x, y)
        return x, y

    def offsets_deg(self, other: Floats) -> Floats:
        """Degrees right and down from other directions to these, shape (slots, 2).

        On a sphere along its arcs.
        """
        return self.offsets_from(Path(self.space, other))

    def offsets_from(self, other: Path) -> Floats:
        """Degrees right and down from another path, or one place, to this one."""
        return _offsets(self.space, *self.degrees, *other.degrees)

    def steps_deg(self) -> Floats:
        """Degrees right and down from each slot to the next, shape (slots - 1, 2)."""
        x, y = self.degrees
        return _offsets(self.space, x[1:], y[1:], x[:-1], y[:-1])


def paths(
    recording: Recording, slots_s: Sequence[float], weights: Floats | None = None
) -> dict[float, Path]:
    """Paths of one recording by the length of their slots, which count from its first sample.

    Parameters
    ----------
    recording : Recording
        With at least one sample.
    slots_s : sequence of float
        Lengths in seconds, whole multiples of the first.
    weights : array of float64, shape (samples,), optional
        Of each sample; equal by default.
    """
    finest = slots_s[0]
    sums = slot_sums(recording, finest, weights)
    return {s: path_of_sums(recording.space, sums, round(s / finest)) for s in slots_s}


def weighed_directions(recording: Recording, weights: Floats | None = None) -> Floats:
    """Directions of samples times their weights, shape (samples, 3); anything where a sample is
    lost. They are most of the work of :func:`slot_sums`, and serve slots of any length.

    Parameters
    ----------
    recording, weights
        As in :func:`paths`.
    """
    out = np.empty((len(recording), 3))
    each = np.empty(0) if weights is None else weights
    fill = _fill_sphere if isinstance(recording.space, Sphere) else _fill_screen
    fill(recording.x_deg, recording.y_deg, recording.valid, each, out)
    return out


def slot_sums(
    recording: Recording,
    slot_s: float,
    weights: Floats | None = None,
    directions: Floats | None = None,
) -> Floats:
    """Sums of the directions of valid samples over slots, shape (slots, 3).

    Parameters
    ----------
    recording, weights
        As in :func:`paths`.
    slot_s : float
        Length of a slot in seconds.
    directions : array of float64, shape (samples, 3), optional
        Those of :func:`weighed_directions`, where they are known.
    """
    slot = (recording.t_ns - recording.t_ns.min()) // round(1e9 * slot_s)
    sums = np.zeros((int(slot.max()) + 1, 3))
    own = weighed_directions(recording, weights) if directions is None else directions
    _add(slot, recording.valid, own, sums)
    return sums


def path_of_sums(space: Space, sums: Floats, many: int) -> Path:
    """The path of slots that are so many of those of :func:`slot_sums`."""
    directions = np.empty((-(-len(sums) // many), 3))
    _slot_directions(sums, many, directions)
    return Path(space, directions)


def steps_of_sums(space: Space, sums: Floats, many: Ints) -> tuple[Floats, Ints]:
    """Steps of several paths, each as :meth:`Path.steps_deg` has them, in one go.

    Parameters
    ----------
    space : Sphere or Screen
        What degrees mean.
    sums : array of float64, shape (slots, 3)
        Those of :func:`slot_sums`.
    many : array of int64, shape (paths,)
        How many of these slots each path takes together; at least one path.

    Returns
    -------
    steps_deg : array of float64, shape (2, steps)
        Right and down, one path after the other.
    ends : array of int64, shape (paths + 1,)
        Where the steps of each path begin, and where the last ones end.
    """
    ends = np.zeros(len(many) + 1, dtype=np.int64)
    # Each path has a slot more than steps.
    np.cumsum(-(-len(sums) // many) - 1, out=ends[1:])
    steps = np.empty((2, int(ends[-1])))
    _all_steps(sums, many, isinstance(space, Sphere), ends, steps)
    return steps, ends


def mean_direction(directions: Floats) -> Floats:
    """The mean of unit vectors, shape (1, 3); straight ahead where they cancel or none is known."""
    out = np.empty((1, 3))
    _mean_direction(directions, out[0])
    return out


def slot_means(recording: Recording, slot_s: float) -> Path:
    """The path of one recording, also of one without samples."""
    if len(recording) == 0:
        return Path(recording.space, np.empty((0, 3)))
    return paths(recording, (slot_s,))[slot_s]


def unit(total: Floats) -> Floats:
    """Vectors of length one; NaN where directions cancel or there are none."""
    length = np.linalg.norm(total, axis=-1, keepdims=True)
    return np.where(length > _TINY, total / np.maximum(length, _TINY), np.nan)


def sample_weights(recording: Recording, noise_scale: NoiseScale | None) -> Floats | None:
    """One over the variance of each sample, where its noise scale is public."""
    scale = None if noise_scale is None else noise_scale(recording)
    return None if scale is None else 1.0 / (scale**2 + _OWN_MOVEMENT_DEG**2)


def crowds(paths: Sequence[Path], people: Sequence[str]) -> list[Floats]:
    """For each path of one stimulus the mean path of the other people, as long as it.

    The only viewer of a stimulus is compared with their own mean over time.
    """
    longest = max(len(p.vectors) for p in paths)
    stack = np.zeros((len(paths), longest, 3))
    for row, p in zip(stack, paths, strict=True):
        row[: len(p.vectors)] = np.where(np.isnan(p.vectors), 0.0, p.vectors)
    names, owner = np.unique(np.array(people, dtype=np.str_), return_inverse=True)
    if len(names) == 1:
        others = np.broadcast_to(stack.sum(axis=(0, 1)), stack.shape)
    elif len(names) == len(paths):
        others = stack.sum(axis=0) - stack
    else:
        own = np.zeros((len(names), longest, 3))
        np.add.at(own, owner, stack)
        others = (stack.sum(axis=0) - own)[owner]
    return [directions[: len(p.vectors)] for directions, p in zip(unit(others), paths, strict=True)]


def _offsets(space: Space, x: Floats, y: Floats, from_x: Floats, from_y: Floats) -> Floats:
    """Offsets, shape (slots, 2); each axis is contiguous."""
    out = np.empty((2, max(len(x), len(from_x)) if len(x) and len(from_x) else 0))
    if isinstance(space, Sphere):
        _sphere_offsets(x, y, from_x, from_y, out)
    else:
        np.subtract(x, from_x, out=out[0])
        np.subtract(y, from_y, out=out[1])
    return out.T


@compiled
def _fill_sphere(x: Floats, y: Floats, good: Bools, weights: Floats, out: Floats) -> None:
    """Weighed directions of good samples of a sphere."""
    for i in range(len(x)):
        if good[i]:
            weight = weights[i] if len(weights) else 1.0
            lon, lat = math.radians(x[i] - 180.0), math.radians(90.0 - y[i])
            flat = weight * math.cos(lat)
            out[i, 0] = flat * math.sin(lon)
            out[i, 1] = weight * math.sin(lat)
            out[i, 2] = flat * math.cos(lon)


@compiled
def _fill_screen(x: Floats, y: Floats, good: Bools, weights: Floats, out: Floats) -> None:
    """Weighed directions of good samples of a screen."""
    for i in range(len(x)):
        if good[i]:
            weight = weights[i] if len(weights) else 1.0
            right, down = math.tan(math.radians(x[i])), math.tan(math.radians(y[i]))
            scale = weight / math.sqrt(right * right + down * down + 1.0)
            out[i, 0], out[i, 1], out[i, 2] = scale * right, -(scale * down), scale


@compiled
def _add(slot: Ints, good: Bools, directions: Floats, sums: Floats) -> None:
    """Add the directions of good samples to the sums of their slots."""
    for i in range(len(slot)):
        if good[i]:
            for axis in range(3):
                sums[slot[i], axis] += directions[i, axis]


@compiled
def _slot_directions(sums: Floats, many: int, out: Floats) -> None:
    """Directions of so many slots taken together; NaN where they cancel or there are none."""
    for k in range(len(out)):
        a, b, c = 0.0, 0.0, 0.0
        for i in range(k * many, min((k + 1) * many, len(sums))):
            a += sums[i, 0]
            b += sums[i, 1]
            c += sums[i, 2]
        length = math.sqrt(a * a + b * b + c * c)
        if length > _TINY:
            out[k, 0], out[k, 1], out[k, 2] = a / length, b / length, c / length
        else:
            out[k] = math.nan


@compiled
def _mean_direction(directions: Floats, out: Floats) -> None:
    total = np.zeros(3)
    for i in range(len(directions)):
        for k in range(3):
            if not math.isnan(directions[i, k]):
                total[k] += directions[i, k]
    length = math.sqrt(total[0] * total[0] + total[1] * total[1] + total[2] * total[2])
    if length > _TINY:
        out[:] = total / length
    else:
        out[0], out[1], out[2] = 0.0, 0.0, 1.0


@compiled
def _sphere_degrees(vectors: Floats, x: Floats, y: Floats) -> None:
    """As :meth:`gazeveil.gaze.geometry.Sphere.degrees`."""
    for i in range(len(vectors)):
        right, up, ahead = vectors[i]
        flat = math.sqrt(right * right + ahead * ahead)
        if flat == 0.0 and up == 0.0:
            x[i], y[i] = math.nan, math.nan
            continue
        turned = math.degrees(math.atan2(right, ahead)) + 180.0
        x[i] = 0.0 if turned >= 360.0 else turned
        y[i] = min(90.0 - math.degrees(math.atan2(up, flat)), _Y_LAST_DEG)
        if math.isnan(up):
            y[i] = math.nan


@compiled
def _screen_degrees(vectors: Floats, x: Floats, y: Floats) -> None:
    """As :meth:`gazeveil.gaze.geometry.Screen.degrees`."""
    for i in range(len(vectors)):
        right, up, ahead = vectors[i]
        if ahead > 0:
            x[i] = math.degrees(math.atan(right / ahead))
            y[i] = math.degrees(math.atan(-up / ahead))
        else:
            x[i], y[i] = math.nan, math.nan


@compiled
def _sphere_offsets(x: Floats, y: Floats, from_x: Floats, from_y: Floats, out: Floats) -> None:
    """Degrees right and down along the arcs of a sphere; one place stands for as many as asked."""
    for i in range(out.shape[1]):
        a, b = (i if len(x) > 1 else 0), (i if len(from_x) > 1 else 0)
        turned = x[a] - from_x[b] + 180.0
        if turned >= 360.0:
            turned -= 360.0
        elif turned < 0.0:
            turned += 360.0
        middle = math.radians((y[a] + from_y[b]) / 2)
        out[0, i] = (turned - 180.0) * math.sin(middle)
        out[1, i] = y[a] - from_y[b]


@compiled
def _all_steps(sums: Floats, many: Ints, sphere: bool, ends: Ints, out: Floats) -> None:
    """Steps of each path, one after the other."""
    longest = 1 + (ends[1:] - ends[:-1]).max()
    vectors, x, y = np.empty((longest, 3)), np.empty(longest), np.empty(longest)
    for k in range(len(many)):
        first, steps = ends[k], ends[k + 1] - ends[k]
        own = vectors[: steps + 1]
        _slot_directions(sums, many[k], own)
        if sphere:
            _sphere_degrees(own, x, y)
            here = out[:, first : first + steps]
            _sphere_offsets(x[1 : steps + 1], y[1 : steps + 1], x[:steps], y[:steps], here)
        else:
            _screen_degrees(own, x, y)
            for i in range(steps):
                out[0, first + i] = x[i + 1] - x[i]
                out[1, first + i] = y[i + 1] - y[i]
