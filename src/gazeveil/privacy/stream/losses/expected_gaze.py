"""Where gaze may be that was not seen: drawn from a public model of gaze, given what was released
before.

The model. Gaze stays, with a slow drift, or jumps, three times a second. Where it lands is a
normal step from where it was, drawn towards the middle of a screen or the horizon of a sphere, so
that over time gaze keeps near them. Its few numbers are those of public recordings of films
(GazeCom on a screen, EyeNavGS on a sphere), of all people together. What is released of gaze is a
noisy observation whose variance is public.

The filter. A few *particles* each hold one story of jumps; given the story, where gaze is has a
normal law, kept exactly (a Rao-Blackwellised particle filter; Doucet et al. 2000). A draw for a
lost sample takes a particle by its weight, lets it stay or jump, and takes a point of its law.
Released with the mechanism's own noise, it is a draw of the model's law of the next released value
given all released before. So were the model true, nothing would tell a lost sample from another.

The filter begins anew from the prior at every :attr:`Memory.length` ticks and first looks back at
as many. Its random numbers are a function of a key and of the number of the tick. Together: the
draw for a tick is a function of the key and of what was released at the last ticks, whatever was
lost; it is the same in blocks of any size; and it costs time only where something is lost.

:class:`FillRecorded` stands before a mechanism without a promise of its own. It draws from the
public model of gaze, given the recorded samples before; what it draws has noise about as large as
theirs. It looks at raw gaze, so what it fills tells about samples before it (proofs/losses.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled, fused_inlined, inlined
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
BACK_S = 1.0

PARTICLES = 16

# The model, by place: on a sphere; probability of a jump in a tick; variance of the drift of a
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

# Where the particles' means and variances along each axis, weights and distances begin: numbers of
# one kind lie together, so that several particles are computed at a time.
_X, _Y, _VX, _VY, _WEIGHT, _FAR = range(0, 6 * PARTICLES, PARTICLES)

# Marks of a stream, by place: ticks so far, the place in the past up to which the cloud has looked
# (-1: not begun), and whether all particles have the story of the first one.
TICK, LOOKED, ALIKE = range(3)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NUMBERS = 4 * (PARTICLES + 1)  # random numbers that belong to a tick


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
    """What was released at the last ticks of each stream, and the cloud of particles.

    Parameters
    ----------
    model : array of float64
        Of :func:`gaze_model`.
    past : array of float64, shape (streams, 2 length, 3)
        Place and variance of the noise, in degrees and degrees squared; infinite where nothing was
        told. The second half is filled, then it becomes the first.
    cloud : array of float64, shape (streams, 6 PARTICLES)
        Particles.
    marks : array of int64, shape (streams, 3)
        See :data:`TICK`, :data:`LOOKED` and :data:`ALIKE`.
    keys : array of uint64, shape (streams,)
        Of the random numbers.
    """

    model: Floats
    past: Floats
    cloud: Floats
    marks: Ints
    keys: NDArray[np.uint64]

    @classmethod
    def of(cls, space: Space, tick_s: float, keys: NDArray[np.uint64]) -> Memory:
        """Streams that have not begun."""
        length = min(max(round(BACK_S / tick_s), 16), 4096)
        marks = np.zeros((len(keys), 3), dtype=np.int64)
        marks[:, LOOKED] = -1
        past = np.zeros((len(keys), 2 * length, 3))
        past[..., 2] = np.inf
        cloud = np.zeros((len(keys), 6 * PARTICLES))
        return cls(gaze_model(space, tick_s), past, cloud, marks, keys)

    @property
    def length(self) -> int:
        """Ticks after which the filter begins anew."""
        return int(self.past.shape[1]) // 2

    def rows(self, which: slice) -> Memory:
        """Some of the streams, in place."""
        parts = (self.past[which], self.cloud[which], self.marks[which], self.keys[which])
        return Memory(self.model, *parts)

    def forget(self) -> None:
        """Nothing was released yet; random numbers go on and never repeat."""
        self.past[..., 2] = np.inf
        self.marks[:, LOOKED] = -1


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


@fused_inlined
def _jump(
    x: float, y: float, vx: float, vy: float, model: Floats
) -> tuple[float, float, float, float]:
    """Mean and variance of a particle after a jump."""
    a, b = model[KEPT_X], model[KEPT_Y]
    return (
        model[MIDDLE_X] + a * (x - model[MIDDLE_X]),
        model[MIDDLE_Y] + b * (y - model[MIDDLE_Y]),
        a * a * vx + model[JUMP_X],
        b * b * vy + model[JUMP_Y],
    )


@fused_inlined
def _learned(
    x: float, y: float, vx: float, vy: float, dx: float, dy: float, noise: float, inverse: float
) -> tuple[float, float, float, float]:
    """Mean and variance after an observation that lies so far away; `inverse` is one over the
    product of both axes' variances, noise included.
    """
    gain_x, gain_y = vx * (vy + noise) * inverse, vy * (vx + noise) * inverse
    return x + gain_x * dx, y + gain_y * dy, vx * (1.0 - gain_x), vy * (1.0 - gain_y)


@fused_inlined
def _decayed(x: float) -> float:
    """exp(x) of x up to 0, as far as likelihoods need it (to 1e-12, and not below exp(-40)): of
    plain products, of which a processor makes several at a time.
    """
    t = max(x, -40.0) * 2.0**-8
    e = 1 + t * (1 + t * (1 / 2 + t * (1 / 6 + t * (1 / 24 + t * (1 / 120)))))
    for _ in range(8):
        e *= e
    return e


@fused_inlined
def _observed(
    x: float,
    y: float,
    vx: float,
    vy: float,
    told_x: float,
    told_y: float,
    noise: float,
    model: Floats,
) -> tuple[
    float, float, float, tuple[float, float, float, float], tuple[float, float, float, float]
]:
    """What a particle with that mean and variance learns from a released place, a tick later.

    Returns
    -------
    stays, jumped : float
        Likelihoods of both stories, times exp(`far`).
    far : float
        Half the squared distance of the nearer one, in standard deviations.
    stay, jump : tuple of float
        Mean and variance along both axes afterwards.
    """
    # Of infinite noise nothing would be known in the end; of so much nothing is learnt.
    sphere, noise = model[SPHERE] == 1.0, min(noise, 1e30)
    vx, vy = vx + model[DRIFT], vy + model[DRIFT]
    jump_x, jump_y, jump_vx, jump_vy = _jump(x, y, vx, vy, model)
    dx, dy = _short_way(told_x - x, sphere), told_y - y
    jump_dx, jump_dy = _short_way(told_x - jump_x, sphere), told_y - jump_y
    sx, sy, jump_sx, jump_sy = vx + noise, vy + noise, jump_vx + noise, jump_vy + noise
    inverse, jump_inverse = 1.0 / (sx * sy), 1.0 / (jump_sx * jump_sy)
    far = 0.5 * inverse * (dx * dx * sy + dy * dy * sx)
    jump_far = 0.5 * jump_inverse * (jump_dx * jump_dx * jump_sy + jump_dy * jump_dy * jump_sx)
    other = _decayed(-abs(far - jump_far))
    stays = (1.0 - model[JUMPS]) * math.sqrt(inverse) * (1.0 if far <= jump_far else other)
    jumped = model[JUMPS] * math.sqrt(jump_inverse) * (other if far <= jump_far else 1.0)
    return (
        stays,
        jumped,
        min(far, jump_far),
        _learned(x, y, vx, vy, dx, dy, noise, inverse),
        _learned(jump_x, jump_y, jump_vx, jump_vy, jump_dx, jump_dy, noise, jump_inverse),
    )


@compiled
def _look(
    cloud: Floats, x: float, y: float, noise: float, model: Floats, key: np.uint64, number: int
) -> None:
    """Let all particles stay or jump, as is likelier given what was released at one tick, and learn
    from it.

    Random numbers begin at `number`. These loops are most of what a lost sample costs: without
    branches, so that several particles are computed at a time.
    """
    n = len(cloud) // 6  # a number that is known when this is compiled would undo the loops
    for k in range(n):
        stays, jumped, far, stay, jump = _observed(
            cloud[_X + k], cloud[_Y + k], cloud[_VX + k], cloud[_VY + k], x, y, noise, model
        )
        made = jump if _uniform(key, number + k) * (stays + jumped) < jumped else stay
        cloud[_X + k], cloud[_Y + k], cloud[_VX + k], cloud[_VY + k] = made
        cloud[_WEIGHT + k] *= stays + jumped
        cloud[_FAR + k] = far
    least = cloud[_FAR]
    for k in range(1, n):
        least = min(least, cloud[_FAR + k])
    for k in range(n):
        cloud[_WEIGHT + k] *= _decayed(least - cloud[_FAR + k])


@compiled
def _resample(cloud: Floats, chance: float) -> bool:
    """Weights relative to the largest; where few particles hold them all, draw the cloud anew
    (systematic resampling). Whether all have one story then.
    """
    # Numba's own maximum and sum would bring scipy into every process that protects: 0.2 s.
    weights, most, total, squares = cloud[_WEIGHT:_FAR], 0.0, 0.0, 0.0
    for k in range(PARTICLES):
        most = max(most, weights[k])
    for k in range(len(weights)):
        # Squares of smaller ones would be denormal numbers, which processors are slow with.
        weights[k] = max(weights[k] / most, 1e-100)
    for k in range(PARTICLES):
        total += weights[k]
        squares += weights[k] * weights[k]
    if total * total < 0.5 * PARTICLES * squares:
        old = cloud.copy()
        source, reached = 0, weights[0]
        for k in range(PARTICLES):
            while reached < (k + chance) * total / PARTICLES and source < PARTICLES - 1:
                source += 1
                reached += old[_WEIGHT + source]
            for place in range(0, _WEIGHT, PARTICLES):
                cloud[place + k] = old[place + source]
            weights[k] = 1.0
    same = 1
    while same < _WEIGHT and cloud[same] == cloud[same // PARTICLES * PARTICLES]:
        same += 1
    return same == _WEIGHT


@inlined
def turn(memory: Memory, s: int) -> int:
    """The place in the past of the tick at hand of stream s."""
    length = memory.past.shape[1] // 2
    return int(length + memory.marks[s, TICK] % length)


@inlined
def _ticked(memory: Memory, s: int, ticks: int) -> None:
    """So many ticks are over; where they fill a block, it becomes the past, whatever was lost."""
    length = memory.past.shape[1] // 2
    memory.marks[s, TICK] += ticks
    if memory.marks[s, TICK] % length == 0:
        memory.past[s, :length] = memory.past[s, length:]
        memory.past[s, length:, 2] = np.inf
        memory.marks[s, LOOKED] = -1


@compiled
def expected_gaze(memory: Memory, s: int, at: int) -> tuple[float, float]:
    """Where gaze of stream s may be at the tick at hand, whose place is `at` (:func:`turn`), in
    degrees.
    """
    past, cloud, marks, key = memory.past[s], memory.cloud[s], memory.marks[s], memory.keys[s]
    model, length = memory.model, len(past) // 2
    first = marks[TICK] - at  # number of the tick at place 0; below 0 before the stream began
    if marks[LOOKED] < 0:
        cloud[_X], cloud[_Y] = model[MIDDLE_X], model[MIDDLE_Y]
        cloud[_VX], cloud[_VY], cloud[_WEIGHT:_FAR] = model[SPREAD_X], model[SPREAD_Y], 1.0
        marks[LOOKED], marks[ALIKE] = (0 if first >= 0 else length), 1
    for place in range(marks[LOOKED], at):
        x, y, noise = past[place, 0], past[place, 1], past[place, 2]
        number = (first + place) * _NUMBERS
        if marks[ALIKE]:
            # Much of the time all have one story, and none of them jumps.
            stays, jumped, _, stay, _ = _observed(
                cloud[_X], cloud[_Y], cloud[_VX], cloud[_VY], x, y, noise, model
            )
            lowest = _bits(key, number)
            for k in range(1, PARTICLES):
                lowest = min(lowest, _bits(key, number + k))
            if not (np.float64(lowest) + 0.5) * 2.0**-52 * (stays + jumped) < jumped:
                cloud[_X], cloud[_Y], cloud[_VX], cloud[_VY] = stay
                continue
            for k in range(_WEIGHT):
                cloud[k] = cloud[k // PARTICLES * PARTICLES]
        _look(cloud, x, y, noise, model, key, number)
        marks[ALIKE] = _resample(cloud, _uniform(key, number + PARTICLES))
    marks[LOOKED] = at
    number = marks[TICK] * _NUMBERS + 2 * PARTICLES
    total = 0.0
    for k in range(_WEIGHT, _FAR):
        total += cloud[k]
    left, chosen = _uniform(key, number) * total, 0
    while not marks[ALIKE] and chosen < PARTICLES - 1 and left >= cloud[_WEIGHT + chosen]:
        left -= cloud[_WEIGHT + chosen]
        chosen += 1
    x, y, vx, vy = cloud[chosen], cloud[_Y + chosen], cloud[_VX + chosen], cloud[_VY + chosen]
    if _uniform(key, number + 1) < model[JUMPS]:
        x, y, vx, vy = _jump(x, y, vx, vy, model)
    u, v = two_normals(key, number + 2)
    x += math.sqrt(vx + model[DRIFT]) * u
    y += math.sqrt(vy + model[DRIFT]) * v
    return inside(x, y, model)


@inlined
def note(memory: Memory, s: int, at: int, x: float, y: float, noise: float) -> None:
    """What stream s released at the tick at hand, with noise of that variance; the tick is over."""
    memory.past[s, at, 0], memory.past[s, at, 1], memory.past[s, at, 2] = x, y, noise
    _ticked(memory, s, 1)


@inlined
def note_run(
    memory: Memory, s: int, at: int, x: Floats, y: Floats, begin: int, end: int, noise: float
) -> None:
    """What stream s released at the ticks from the one at hand on: `x[s, begin:end]`, which must
    not go beyond the end of the past.
    """
    past = memory.past[s, at : at + end - begin]
    for i in range(end - begin):
        past[i, 0], past[i, 1], past[i, 2] = x[s, begin + i], y[s, begin + i], noise
    _ticked(memory, s, end - begin)


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
    places = memory.past.shape[1]
    for s in range(x.shape[0]):
        i = 0
        while i < x.shape[1]:
            at, end = turn(memory, s), i + 1
            if 2 * at == places and memory.marks[s, TICK] > 0:
                noise[s] = _noise_of(memory.past[s, :at])
            if valid[s, i]:
                last = min(x.shape[1], i + places - at)
                while end < last and valid[s, end]:
                    end += 1
            else:
                a, b = expected_gaze(memory, s, at)
                u, v = two_normals(~memory.keys[s], 2 * memory.marks[s, TICK])
                far = np.sqrt(noise[s])
                x[s, i], y[s, i] = inside(a + far * u, b + far * v, memory.model)
                valid[s, i] = True
            note_run(memory, s, at, x, y, i, end, noise[s])
            i = end
