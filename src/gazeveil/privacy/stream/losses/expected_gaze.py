"""Where gaze may be that was not seen: drawn from a public model of gaze, given what was released
before.

The model. Gaze stays, with a slow drift, or jumps, three times a second. Where it lands is a
normal step from where it was, drawn towards the middle of a screen or the horizon of a sphere, so
that over time gaze keeps near them. Its few numbers are those of public recordings of films
(GazeCom on a screen, EyeNavGS on a sphere), of all people together. What is released of gaze is a
noisy observation whose variance is public.

The filter. It keeps the few likeliest *stories* of when gaze jumped last. Given a story, where gaze
is has a normal law, kept exactly (a Gaussian sum filter; Alspach and Sorenson 1972). After each
released value a new story, that gaze jumped just now, takes the place of the least likely one. A
draw for a lost sample takes a story by its weight, lets gaze stay or jump, and takes a point of the
law. Released with the mechanism's own noise, it is close to a draw of the model's law of the next
released value given all released before. So were the model true, little would tell a lost sample
from another.

The filter begins anew from the prior at every :attr:`Memory.length` ticks and first looks back at
as many. Its random numbers are a function of a key and of the number of the tick. Together: the
draw for a tick is a function of the key and of what was released at the last ticks, whatever was
lost; it is the same in blocks of any size; and it costs time only where something is lost.

:class:`FillRecorded` stands before a mechanism without a promise of its own. It lets gaze stay or
jump from where it was recorded last, with noise about as large as that of the samples before. It
looks at raw gaze, so what it fills tells about samples before it (proofs/losses.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled, inlined
from gazeveil.gaze.geometry import LAST_Y_DEG, Space, Sphere
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.stream.session import Samples, Stage

#: Jumps per second, and drift between them in degrees squared per second along an axis.
JUMPS_HZ, DRIFT_DEG2_S = 3.0, 1.5

#: On a screen: standard deviation of gaze in widths and heights of the screen, and the share of its
#: distance from the middle that a jump keeps.
SCREEN_SPREAD, SCREEN_KEPT = 0.2, 0.55

#: On a sphere: standard deviation of jumps along x in degrees; around the horizon, that of gaze and
#: the share that a jump keeps.
TURN_DEG, HORIZON_DEG, HORIZON_KEPT = 20.0, 22.0, 0.84

#: Seconds that the filter looks back, at least.
BACK_S = 0.5

# The model, by place: on a sphere; probability of a jump in a tick
# and its odds; variance of the drift of a
# tick; middle, variance, share of the old place and variance of a jump along x and along y; edges.
(
    SPHERE,
    JUMPS,
    DRIFT,
    MIDDLE_X,
    MIDDLE_Y,
    SPREAD_X,
    SPREAD_Y,
    KEPT_X,
    KEPT_Y,
    JUMP_X,
    JUMP_Y,
    LOW_X,
    HIGH_X,
    LOW_Y,
    HIGH_Y,
) = range(15)

# Marks of a stream, by place: ticks so far, the tick that it began with, and the tick up to which
# the filter has looked.
TICK, BEGUN, LOOKED = range(3)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NUMBERS = 4  # random numbers that belong to a tick

#: Stories that the filter keeps.
STORIES = 4

# Where the stories' weights, means and variances along each axis, and distances begin.
_WEIGHT, _X, _Y, _VX, _VY, _FAR = range(0, 6 * STORIES, STORIES)


@lru_cache(maxsize=64)
def gaze_model(space: Space, tick_s: float) -> Floats:
    """The public model of a space, for ticks of so many seconds."""
    kept: tuple[float, float]
    if isinstance(space, Sphere):
        # Along x gaze goes anywhere: it begins as good as uniform, and every jump adds to it.
        middle, spread, kept = (180.0, 90.0), (104.0**2, HORIZON_DEG**2), (1.0, HORIZON_KEPT)
        edges = (0.0, math.nextafter(360.0, 0.0), 0.0, LAST_Y_DEG)
        jump = TURN_DEG**2, (1.0 - HORIZON_KEPT**2) * spread[1]
    else:
        wide, high = space.width_deg, space.height_deg
        middle, kept = (0.0, 0.0), (SCREEN_KEPT, SCREEN_KEPT)
        spread = (SCREEN_SPREAD * wide) ** 2, (SCREEN_SPREAD * high) ** 2
        edges = (-wide / 2, wide / 2, -high / 2, high / 2)
        # The law stays the same over jumps: spread = kept**2 spread + jump.
        jump = (1.0 - SCREEN_KEPT**2) * spread[0], (1.0 - SCREEN_KEPT**2) * spread[1]
    return np.array(
        [
            isinstance(space, Sphere),
            -math.expm1(-JUMPS_HZ * tick_s),
            DRIFT_DEG2_S * tick_s,
            *middle,
            *spread,
            *kept,
            *jump,
            *edges,
        ]
    )


class Memory(NamedTuple):
    """What was released at the last ticks of each stream, and the stories of its gaze.

    Parameters
    ----------
    model : array of float64
        Of :func:`gaze_model`.
    past : array of float64, shape (streams, 3, 2 length)
        Place and variance of the noise, in degrees and degrees squared, of the block of ticks at
        hand and of the one before; tick k is at k modulo 2 length.
    stories : array of float64, shape (streams, 6 STORIES)
        Of each stream.
    marks : array of int64, shape (streams, 3)
        See :data:`TICK`, :data:`BEGUN` and :data:`LOOKED`.
    keys : array of uint64, shape (streams,)
        Of the random numbers.
    """

    model: Floats
    past: Floats
    stories: Floats
    marks: Ints
    keys: NDArray[np.uint64]

    @classmethod
    def of(cls, space: Space, tick_s: float, keys: NDArray[np.uint64]) -> Memory:
        """Streams that have not begun."""
        length = min(max(round(BACK_S / tick_s), 16), 4096)
        marks = np.zeros((len(keys), 3), dtype=np.int64)
        marks[:, LOOKED] = -1
        past, stories = np.zeros((len(keys), 3, 2 * length)), np.zeros((len(keys), 6 * STORIES))
        return cls(gaze_model(space, tick_s), past, stories, marks, keys)

    @property
    def length(self) -> int:
        """Ticks after which the filter begins anew."""
        return int(self.past.shape[2]) // 2

    def rows(self, which: slice) -> Memory:
        """Some of the streams, in place."""
        parts = (self.past[which], self.stories[which], self.marks[which], self.keys[which])
        return Memory(self.model, *parts)

    def forget(self) -> None:
        """Nothing was released yet; random numbers go on and never repeat."""
        self.marks[:, BEGUN], self.marks[:, LOOKED] = self.marks[:, TICK], -1


#: Of no stream, where losses stay.
NO_MEMORY = Memory.of(Sphere(), 1.0, np.empty(0, dtype=np.uint64))


@inlined
def _bits(key: np.uint64, number: int) -> np.uint64:
    """52 random bits: SplitMix64 of a counter."""
    z = key + np.uint64(number) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) >> np.uint64(12)


@inlined
def _uniform(key: np.uint64, number: int) -> float:
    """A number above 0 and below 1."""
    return (np.float64(_bits(key, number)) + 0.5) * 2.0**-52


@compiled
def two_normals(key: np.uint64, number: int) -> tuple[float, float]:
    """Box and Muller."""
    r = math.sqrt(-2.0 * math.log(_uniform(key, number)))
    angle = 2.0 * math.pi * _uniform(key, number + 1)
    return r * math.cos(angle), r * math.sin(angle)


@inlined
def _short_way(d: float, sphere: bool) -> float:
    return d - 360.0 * np.rint(d * (1.0 / 360.0)) if sphere else d


@compiled
def _reflected(v: float, low: float, high: float) -> float:
    v = 2.0 * low - v if v < low else v
    return min(max(2.0 * high - v if v > high else v, low), high)


@compiled
def inside(x: float, y: float, model: Floats) -> tuple[float, float]:
    """A place brought back into the space: reflected at the edges of a screen and at the poles, so
    that no edge collects places.
    """
    if model[SPHERE] == 1.0:
        x -= 360.0 * np.floor(x / 360.0)
    return _reflected(x, model[LOW_X], model[HIGH_X]), _reflected(y, model[LOW_Y], model[HIGH_Y])


@inlined
def _jumped(
    x: float, y: float, vx: float, vy: float, model: Floats
) -> tuple[float, float, float, float]:
    """Mean and variance of gaze after a jump."""
    a, b = model[KEPT_X], model[KEPT_Y]
    return (
        model[MIDDLE_X] + a * (x - model[MIDDLE_X]),
        model[MIDDLE_Y] + b * (y - model[MIDDLE_Y]),
        a * a * vx + model[JUMP_X],
        b * b * vy + model[JUMP_Y],
    )


@inlined
def _observe(stories: Floats, x: float, y: float, noise: float, model: Floats) -> None:
    """Learn from a place released a tick later, with noise of that variance: all stories go on, and
    that gaze jumped just now takes the place of the least likely one.
    """
    # Of infinite noise nothing would be known in the end; of so much nothing is learnt.
    sphere, noise, stays = model[SPHERE] == 1.0, min(noise, 1e30), 1.0 - model[JUMPS]
    least, most, nearest, total = 0, 0, np.inf, 0.0
    for k in range(1, STORIES):
        least = k if stories[k] < stories[least] else least
        most = k if stories[k] >= stories[most] else most
    jump = _jumped(
        stories[_X + most], stories[_Y + most], stories[_VX + most], stories[_VY + most], model
    )
    for k in range(STORIES):
        new = k == least
        weight = model[JUMPS] if new else stays * stories[k]
        mean_x = jump[0] if new else stories[_X + k]
        mean_y = jump[1] if new else stories[_Y + k]
        vx = model[DRIFT] + (jump[2] if new else stories[_VX + k])
        vy = model[DRIFT] + (jump[3] if new else stories[_VY + k])
        dx, dy, sx, sy = _short_way(x - mean_x, sphere), y - mean_y, vx + noise, vy + noise
        inverse = 1.0 / (sx * sy)
        gain_x, gain_y = vx * sy * inverse, vy * sx * inverse
        stories[k] = weight * math.sqrt(inverse)
        stories[_X + k], stories[_Y + k] = mean_x + gain_x * dx, mean_y + gain_y * dy
        stories[_VX + k], stories[_VY + k] = noise * gain_x, noise * gain_y
        stories[_FAR + k] = 0.5 * inverse * (dx * dx * sy + dy * dy * sx)
    for k in range(STORIES):
        nearest = min(nearest, stories[_FAR + k])
    for k in range(STORIES):
        stories[k] *= math.exp(nearest - stories[_FAR + k])
        total += stories[k]
    for k in range(STORIES):
        stories[k] /= total


@inlined
def ticks_left(memory: Memory, s: int) -> int:
    """Ticks from the one at hand of stream s to the end of its block."""
    length = memory.past.shape[2] // 2
    return int(length - memory.marks[s, TICK] % length)


@inlined
def _drawn(
    x: float, y: float, vx: float, vy: float, model: Floats, key: np.uint64, number: int
) -> tuple[float, float]:
    """Where gaze with that mean and variance may be a tick later; random numbers begin at
    `number`.
    """
    if _uniform(key, number) < model[JUMPS]:
        x, y, vx, vy = _jumped(x, y, vx, vy, model)
    u, v = two_normals(key, number + 1)
    x += math.sqrt(vx + model[DRIFT]) * u
    y += math.sqrt(vy + model[DRIFT]) * v
    return inside(x, y, model)


@compiled
def expected_gaze(memory: Memory, s: int) -> tuple[float, float]:
    """Where gaze of stream s may be at the tick at hand, in degrees."""
    past, stories, marks, key = memory.past[s], memory.stories[s], memory.marks[s], memory.keys[s]
    model, places, tick = memory.model, past.shape[1], marks[TICK]
    block = tick - tick % (places // 2)
    if marks[LOOKED] < block:
        stories[:_X], stories[_X:_Y], stories[_Y:_VX] = 0.0, model[MIDDLE_X], model[MIDDLE_Y]
        stories[_VX:_VY], stories[_VY:_FAR] = model[SPREAD_X], model[SPREAD_Y]
        stories[0] = 1.0
        marks[LOOKED] = max(marks[BEGUN], block - places // 2)
    place = marks[LOOKED] % places
    for _ in range(tick - marks[LOOKED]):
        _observe(stories, past[0, place], past[1, place], past[2, place], model)
        place = place + 1 if place + 1 < places else 0
    marks[LOOKED] = tick
    number = tick * _NUMBERS
    left, chosen = _uniform(key, number), 0
    while chosen < STORIES - 1 and left >= stories[chosen]:
        left -= stories[chosen]
        chosen += 1
    x, y, vx, vy = (
        stories[_X + chosen],
        stories[_Y + chosen],
        stories[_VX + chosen],
        stories[_VY + chosen],
    )
    return _drawn(x, y, vx, vy, model, key, number + 1)


@inlined
def note(memory: Memory, s: int, x: float, y: float, noise: float) -> None:
    """What stream s released at the tick at hand, with noise of that variance; the tick is over."""
    place = memory.marks[s, TICK] % memory.past.shape[2]
    memory.past[s, 0, place], memory.past[s, 1, place] = x, y
    memory.past[s, 2, place] = noise
    memory.marks[s, TICK] += 1


@inlined
def note_run(
    memory: Memory, s: int, x: Floats, y: Floats, begin: int, end: int, noise: float
) -> None:
    """What stream s released at the ticks from the one at hand on: `x[s, begin:end]`, which must
    not go beyond the end of the block.
    """
    place = memory.marks[s, TICK] % memory.past.shape[2]
    past = memory.past[s, :, place : place + end - begin]
    for i in range(end - begin):
        past[0, i], past[1, i], past[2, i] = x[s, begin + i], y[s, begin + i], noise
    memory.marks[s, TICK] += end - begin


# Noise of a tracker before it is known, and the least, in degrees squared along an axis; seconds of
# gaze that it is known from.
_USUAL_DEG2, _LEAST_DEG2, _NOISE_S = 0.01, 1e-8, 0.25

# The median of half the squared length of a step of two independent normals, over their variance.
_MEDIAN_OF_STEP = 0.6931471805599453


def stream_keys(streams: int, sources: Sequence[Source]) -> NDArray[np.uint64]:
    """One key for each stream."""
    return np.concatenate([s.take(streams // len(sources)) for s in sources])


class FillRecorded(Stage):
    """Fills losses from the model of gaze, then hands all samples on. Recorded gaze has so little
    noise that the last sample alone says where it is.

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
        self.inner, self.model = inner, gaze_model(space, 1.0 / rate_hz)
        self.keys, self.ticks = stream_keys(streams, sources), np.zeros(streams, dtype=np.int64)
        self.past = np.full((streams, 2, min(max(round(_NOISE_S * rate_hz), 16), 4096)), np.nan)
        self.states = np.full((streams, 4), np.nan)

    def reset(self) -> None:
        """Forget the samples before; random numbers go on and never repeat."""
        self.past[...], self.states[...] = np.nan, np.nan
        self.inner.reset()

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """All samples, none of them lost, through the mechanism."""
        _fill_recorded(
            x_deg, y_deg, valid, self.model, self.keys, self.ticks, self.past, self.states
        )
        return self.inner.run(t_ns, x_deg, y_deg, valid)


@compiled
def _last_samples(past: Floats, x: Floats, y: Floats, end: int) -> Floats:
    """The samples before number `end` of a block, as many as there are in `past`, which holds those
    before the block.
    """
    out = np.empty_like(past)
    n = past.shape[1]
    for k in range(n):
        i = end - n + k
        out[0, k], out[1, k] = (x[i], y[i]) if i >= 0 else (past[0, n + i], past[1, n + i])
    return out


@compiled
def _noise_of(past: Floats) -> float:
    """Variance of the tracker's noise along an axis, from the steps between samples: the median, so
    that saccades do not count.
    """
    if np.isnan(past[0, 0]):
        return _USUAL_DEG2
    steps = np.empty(past.shape[1] - 1)
    for i in range(len(steps)):
        dx, dy = past[0, i + 1] - past[0, i], past[1, i + 1] - past[1, i]
        steps[i] = 0.5 * (dx * dx + dy * dy)
    return max(0.5 * np.median(steps) / _MEDIAN_OF_STEP, _LEAST_DEG2)


@compiled
def _fill_recorded(
    x: Floats,
    y: Floats,
    valid: Bools,
    model: Floats,
    keys: NDArray[np.uint64],
    ticks: Ints,
    past: Floats,
    states: Floats,
) -> None:
    """Fill in place; a stream's state is where gaze is, the noise, and whether the last sample was
    lost (1).
    """
    for s in range(x.shape[0]):
        here_x, here_y, noise, lost = states[s]
        for i in range(x.shape[1]):
            if valid[s, i]:
                here_x, here_y, lost = x[s, i], y[s, i], 0.0
                continue
            if lost != 1.0:
                noise, lost = _noise_of(_last_samples(past[s], x[s], y[s], i)), 1.0
            number, vx, vy = 5 * (ticks[s] + i), 0.0, 0.0
            if np.isnan(here_x):
                here_x, here_y = model[MIDDLE_X], model[MIDDLE_Y]
                vx, vy = model[SPREAD_X], model[SPREAD_Y]
            here_x, here_y = _drawn(here_x, here_y, vx, vy, model, keys[s], number)
            u, v = two_normals(keys[s], number + 3)
            far = math.sqrt(noise)
            x[s, i], y[s, i] = inside(here_x + far * u, here_y + far * v, model)
            valid[s, i] = True
        past[s] = _last_samples(past[s], x[s], y[s], x.shape[1])
        states[s, 0], states[s, 1], states[s, 2], states[s, 3] = here_x, here_y, noise, lost
        ticks[s] += x.shape[1]
