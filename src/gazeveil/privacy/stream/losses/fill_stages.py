"""Stages that fill losses before a mechanism without a promise of its own sees them.

:class:`FillRecorded` draws from the public model of gaze, given the recorded samples before; what
it draws has noise about as large as theirs. :class:`HoldGaze` repeats the last good sample. Both
look at raw gaze, so what they fill tells about samples before it: they stand in front of mechanisms
whose promise is about places or that promise nothing (proofs/losses.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.stream.losses.expected_gaze import (
    TICK,
    Memory,
    expected_gaze,
    inside,
    note,
    turn,
    two_normals,
)
from gazeveil.privacy.stream.session import Samples, Stage

# Noise of a tracker before it is known from a second of gaze, in degrees squared along an axis.
_USUAL_DEG2 = 0.01
_LEAST_DEG2 = 1e-8

# The median of half the squared length of a step of two independent normals, over their variance.
_MEDIAN_OF_STEP = 0.6931471805599453


def stream_keys(streams: int, sources: Sequence[Source]) -> NDArray[np.uint64]:
    """One key for each stream."""
    return np.concatenate([s.take(streams // len(sources)) for s in sources])


class FillRecorded(Stage):
    """Fills losses from the model of gaze, then hands all samples on.

    Parameters
    ----------
    inner : Stage
        The mechanism's own.
    rate_hz : float
        Samples per second.
    space : Sphere or Screen
        What degrees mean.
    streams : int
        How many streams.
    sources : sequence of Source
        Where keys come from.
    """

    def __init__(
        self, inner: Stage, rate_hz: float, space: Space, streams: int, sources: Sequence[Source]
    ) -> None:
        self.inner = inner
        self.memory = Memory.of(space, 1.0 / rate_hz, stream_keys(streams, sources))
        self.noise = np.full(streams, _USUAL_DEG2)

    def reset(self) -> None:
        """Forget the samples before."""
        self.memory.forget()
        self.inner.reset()

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """All samples, none of them lost, through the mechanism."""
        _fill_recorded(x_deg, y_deg, valid, self.memory, self.noise)
        return self.inner.run(t_ns, x_deg, y_deg, valid)


@compiled
def _noise_of(block: Floats) -> float:
    """Variance of the tracker's noise along an axis, from the steps between samples: the median, so
    that saccades do not count.
    """
    steps = np.empty(len(block) - 1)
    for i in range(len(steps)):
        dx, dy = block[i + 1, 0] - block[i, 0], block[i + 1, 1] - block[i, 1]
        steps[i] = 0.5 * (dx * dx + dy * dy)
    return max(0.5 * np.median(steps) / _MEDIAN_OF_STEP, _LEAST_DEG2)


@compiled
def _fill_recorded(x: Floats, y: Floats, valid: Bools, memory: Memory, noise: Floats) -> None:
    length = memory.past.shape[1] // 2
    for s in range(x.shape[0]):
        for i in range(x.shape[1]):
            at = turn(memory, s)
            if at == length and memory.marks[s, TICK] > 0:
                noise[s] = _noise_of(memory.past[s, :length])
            if not valid[s, i]:
                a, b = expected_gaze(memory, s, at)
                u, v = two_normals(~memory.keys[s], 2 * memory.marks[s, TICK])
                far = np.sqrt(noise[s])
                x[s, i], y[s, i] = inside(a + far * u, b + far * v, memory.model)
                valid[s, i] = True
            note(memory, s, at, x[s, i], y[s, i], noise[s])


class HoldGaze(Stage):
    """Repeats the last good sample where one is lost; before the first one, the middle.

    Parameters
    ----------
    inner : Stage
        The mechanism's own.
    middle_deg : (float, float)
        Of the space.
    streams : int
        How many streams.
    """

    def __init__(self, inner: Stage, middle_deg: tuple[float, float], streams: int) -> None:
        self.inner, self.middle_deg = inner, middle_deg
        self.held = np.tile(np.array(middle_deg), (streams, 1))

    def reset(self) -> None:
        """Begin in the middle again."""
        self.held[...] = self.middle_deg
        self.inner.reset()

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """All samples, none of them lost, through the mechanism."""
        _hold_gaze(x_deg, y_deg, valid, self.held)
        return self.inner.run(t_ns, x_deg, y_deg, valid)


@compiled
def _hold_gaze(x: Floats, y: Floats, valid: Bools, held: Floats) -> None:
    for s in range(x.shape[0]):
        for i in range(x.shape[1]):
            if valid[s, i]:
                held[s, 0], held[s, 1] = x[s, i], y[s, i]
            x[s, i], y[s, i], valid[s, i] = held[s, 0], held[s, 1], True
