"""Paths: the means of gaze over slots of equal length, and the mean path of the other people.

A mean over n samples has 1/sqrt(n) of their independent noise, so that a path of long slots shows
where gaze was even where single samples do not. Where the scale of the noise of each sample is
public, samples weigh as much as their precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording

#: Noise scales of the samples of a released recording, in degrees; None where they are not public.
NoiseScale = Callable[[Recording], Floats | None]

#: How far gaze itself moves about within a slot, in degrees: no sample is worth more than this.
_OWN_MOVEMENT_DEG = 1.0

_TINY = 1e-9


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
        return self.space.degrees(self.vectors)

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
    slot = (recording.t_ns - recording.t_ns.min()) // round(1e9 * finest)
    count, good = int(slot.max()) + 1, recording.valid
    v = recording.space.vectors(recording.x_deg[good], recording.y_deg[good])
    if weights is not None:
        v = v * weights[good, None]
    at = slot[good]
    sums: Floats = np.stack(
        [np.bincount(at, weights=v[:, k], minlength=count) for k in range(3)], axis=1
    )
    result = {}
    for slot_s in slots_s:
        many = round(slot_s / finest)
        total: Floats = np.add.reduceat(sums, np.arange(0, count, many), axis=0)
        result[slot_s] = Path(recording.space, unit(total))
    return result


def mean_direction(directions: Floats) -> Floats:
    """The mean of unit vectors, shape (1, 3); straight ahead where they cancel or none is known."""
    total = np.nansum(directions, axis=0)
    length = float(np.linalg.norm(total))
    return np.reshape(total / length if length > _TINY else (0.0, 0.0, 1.0), (1, 3))


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

    Somebody who was alone with a stimulus is compared with their own mean over time.
    """
    longest = max(len(p.vectors) for p in paths)
    total = np.zeros((longest, 3))
    own: dict[str, Floats] = {}
    for p, person in zip(paths, people, strict=True):
        filled = np.nan_to_num(p.vectors)
        total[: len(filled)] += filled
        mine = own.setdefault(person, np.zeros((longest, 3)))
        mine[: len(filled)] += filled
    alone = len(own) == 1
    result = []
    for p, person in zip(paths, people, strict=True):
        mine = own[person]
        others = np.broadcast_to(mine.sum(axis=0), mine.shape) if alone else total - mine
        result.append(unit(others)[: len(p.vectors)])
    return result


def _offsets(space: Space, x: Floats, y: Floats, from_x: Floats, from_y: Floats) -> Floats:
    dx = x - from_x
    if isinstance(space, Sphere):
        dx = (np.mod(dx + 180.0, 360.0) - 180.0) * np.sin(np.radians((y + from_y) / 2))
    return np.stack((dx, y - from_y), axis=1)
