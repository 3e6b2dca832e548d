"""Graded release: one protected stream, many views, and a coalition of apps learns no more than its
finest view.

Independent noise for every app adds up: m colluding apps average it away (their error falls as
1/sqrt(m)). Here every coarser view is the finer one plus an increment that is independent of the
gaze and of the finer noise: N_2 - N_1 is discrete Gaussian with variance sigma_2**2 - sigma_1**2.
So all views together are a function of the finest one and of coins: what a coalition learns is what
its finest view tells, exactly. A level that comes late is drawn from its conditional law given its
neighbours, so the joint law of all levels never depends on the order in which they were asked for
(after Koufogiannis, Han and Pappas, "Gradual Release of Sensitive Data under Differential Privacy",
2015).

The noise of a sample is a function of the session's key, the level and the sample's number (AES-256
in counter mode under keys derived by BLAKE2b), in blocks of :data:`BLOCK` samples. A number stands
for one sample: numbers never begin anew, and a copy or a forked child takes a key of its own, so
that no noise is ever on two samples.

    session = Graded((1, 2, 5)).open(120.0)
    views = session.push(t_ns, x_deg, y_deg, valid)  # an app with sigma 2 gets views[Fraction(2)]
    session.declare("1/2")                           # a view finer than any so far

Proof: proofs/graded.md.
"""

from __future__ import annotations

import copy
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import ClassVar, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.guarantee import Guarantee, no_promise
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.noise.exact import discrete_gaussian, draw_laplace
from gazeveil.privacy.promise.loss import Change, Loss
from gazeveil.privacy.randomness.rng import ASSUMPTION, ProcessIdentity, Source, WordArray, Words
from gazeveil.privacy.randomness.supply import Bits, MasterKey
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.stream.gaussian import GaussianLattice, GaussianMap, noisy_place
from gazeveil.privacy.stream.losses.public_clock import NEVER_COVERED
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Samples, Session, Stage

#: Samples whose noise is drawn together.
BLOCK = 256

#: Fewest steps of the lattice in a sigma, and in the increment between two levels.
LEAST_STEPS = 16

#: Blocks in memory, 4 KB each.
KEPT = 256

#: `draw(*keys)` gives the source of those keys, the same each time.
Draw = Callable[..., Source]

#: A view for each level, by its exact sigma in degrees.
Views: TypeAlias = Mapping[Fraction, Samples]

_STEPS = 1024  # in the finest declared sigma
_MOST_DEG = 1024
_LEAST_BITS, _MOST_BITS = 5, 20


class _Level(NamedTuple):
    """How a level is drawn: from the sigma below it, the one above it, both, or by itself; and its
    exact variance in steps.
    """

    below: int | None
    above: int | None
    variance: Fraction


@dataclass
class GaussianLevels:
    """Discrete Gaussian noise at many levels, each tied to its neighbours at the time it was
    declared; `draw` is a :data:`Draw`.
    """

    draw: Draw = field(repr=False)
    levels: dict[int, _Level] = field(default_factory=dict)
    _kept: OrderedDict[tuple[int, int], Ints] = field(default_factory=OrderedDict, repr=False)

    def declare(self, sigma: int) -> None:
        """Make a level known, in steps.

        Its variance may be a little more than asked for: the increment to a coarser one is whole
        steps.
        """
        if sigma in self.levels:
            return
        below = max((s for s in self.levels if s < sigma), default=None)
        above = min((s for s in self.levels if s > sigma), default=None)
        low = Fraction(0) if below is None else self.levels[below].variance
        wanted = sigma * sigma - low
        if wanted < LEAST_STEPS**2:
            _refuse_near(sigma)
        if above is None:
            self.levels[sigma] = _Level(below, None, low + _root_up(wanted) ** 2)
            return
        if self.levels[above].variance - sigma * sigma < LEAST_STEPS**2:
            _refuse_near(sigma)
        self.levels[sigma] = _Level(below, above, Fraction(sigma * sigma))

    def block(self, sigma: int, number: int) -> Ints:
        """Noise in steps, shape (BLOCK, 2)."""
        noise = self._kept.get((sigma, number))
        if noise is None:
            level = self.levels[sigma]
            words = Words(self.draw(str(sigma), str(level.below), str(level.above), number))
            noise = self._values(level, number, words).reshape(BLOCK, 2)
            self._kept[sigma, number] = noise
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return noise

    def _values(self, level: _Level, number: int, words: Words) -> Ints:
        """Noise of a level given its neighbours; between or below others by the conditional law, a
        discrete Gaussian around another centre.
        """
        start: Ints = np.zeros(2 * BLOCK, dtype=np.int64)
        low = Fraction(0)
        if level.below is not None:
            start = self.block(level.below, number).reshape(-1)
            low = self.levels[level.below].variance
        middle = level.variance - low
        if level.above is None:
            return start + discrete_gaussian(_root_up(middle), 2 * BLOCK, words)
        high = self.levels[level.above].variance - low
        above = self.block(level.above, number).reshape(-1)
        centre = np.asarray((above - start) * float(middle / high), dtype=np.float64)
        return start + around(centre, math.sqrt(float(middle * (high - middle) / high)), words)

    def forget(self, draw: Draw) -> None:
        """Go on under another key: what was drawn belongs to the old one."""
        self.draw, self._kept = draw, OrderedDict()

    def __getstate__(self) -> dict[str, object]:
        # A copy has no key until it is given one of its own.
        return {"levels": dict(self.levels), "_kept": OrderedDict()}


def _refuse_near(sigma: int) -> NoReturn:
    allowed, instead = "farther from the levels there are", "Use the level that is there."
    checks.refuse("graded", "sigma_deg", allowed, sigma, instead)


def _root_up(square: Fraction) -> int:
    return math.isqrt(math.ceil(square) - 1) + 1


def around(centre: Floats, sigma: float, words: Words) -> Ints:
    """Integers with P(k) proportional to exp(-(k - centre)**2 / (2 sigma**2)), by rejection from
    discrete Laplace around the centre.
    """

    def kernel(out: Ints, done: int, fresh_words: WordArray, position: int) -> tuple[int, int]:
        return _around(centre, sigma, out, done, fresh_words, position)

    return words.run(kernel, len(centre), 6)


@compiled
def _around(
    centre: Floats, sigma: float, out: Ints, done: int, words: WordArray, position: int
) -> tuple[int, int]:
    t = np.floor(sigma) + 1.0
    most = (
        sigma * sigma / (2.0 * t * t) + 0.5 / t
    )  # of the exponent below: the centre is at most half a step from a whole number
    while done < len(out):
        after = position
        middle = np.rint(centre[done])
        while True:
            step, after = draw_laplace(np.uint64(t), np.uint64(1), words, after)
            if after < 0 or after >= len(words):
                return done, position
            gap = float(step) - (centre[done] - middle)
            chance = math.exp(abs(float(step)) / t - gap * gap / (2.0 * sigma * sigma) - most)
            word = words[after]
            after += 1
            if np.float64(word) * 2.0**-64 < chance:
                break
        out[done] = np.int64(middle) + step
        done += 1
        position = after
    return done, position


@dataclass(frozen=True)
class GradedGaussianMap(GaussianMap):
    """As Gaussian noise, with the numerical error of levels that were declared late."""

    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """By samples."""
        return replace(
            super().run(samples, move_deg, metric), delta_num=samples * Fraction(1, 1 << 40)
        )


class _Unchanged(Stage):
    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        return t_ns, x_deg, y_deg, valid


@dataclass(frozen=True)
class RawGaze(StreamMechanism):
    """No protection: what is not plain gaze is lost, times lie on the grid."""

    name: ClassVar[str] = "graded"
    paper: ClassVar[str] = ""
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType(
        {"corrected": Claim("none", "sample", "empirical")}
    )

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """None."""
        return no_promise(self.title, "it is raw gaze")

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """Nothing."""
        return _Unchanged()


@dataclass(frozen=True)
class Graded:
    """Views of one stream at several levels of Gaussian noise.

    Parameters
    ----------
    levels_deg : iterable of numbers
        Sigmas declared at the start, in degrees.
    r_deg : number
        How far a sample moves in the promise.
    bits : int, optional
        2**bits steps of the grid to a degree, 5 to 20; by default as fine as the finest of
        `levels_deg` asks for. Where it is given, levels may all be declared later, and those a
        session can carry do not depend on the order of receivers.

    Examples
    --------
    >>> session = Graded((1, 2)).open(100.0, seed=1)
    >>> views = session.push(0, 180.0, 90.0)
    >>> sorted(views)
    [Fraction(1, 1), Fraction(2, 1)]
    """

    levels_deg: tuple[Number, ...] = ()
    r_deg: Number = 1
    bits: int | None = None

    def __post_init__(self) -> None:
        if (
            self.bits is not None
            and checks.count("graded", "bits", self.bits, least=_LEAST_BITS) > _MOST_BITS
        ):
            checks.refuse("graded", "bits", f"from {_LEAST_BITS} to {_MOST_BITS}", self.bits)
        if isinstance(self.levels_deg, str) or not isinstance(self.levels_deg, Iterable):
            checks.refuse("graded", "levels_deg", "several sigmas in degrees", self.levels_deg)
        levels = sorted({_sigma(s) for s in self.levels_deg})
        if not levels and self.bits is None:
            checks.refuse("graded", "levels_deg", "at least one sigma in degrees", self.levels_deg)
        object.__setattr__(self, "levels_deg", tuple(levels))
        object.__setattr__(self, "r_deg", exact("graded", "r_deg", self.r_deg, above=0))

    def open(
        self, rate_hz: float, space: Space | None = None, seed: int | None = None
    ) -> GradedSession:
        """A session with a key of its own.

        Parameters
        ----------
        rate_hz : float
            Nominal samples per second.
        space : Sphere or Screen
            What the degrees mean; a Sphere by default.
        seed : int, optional
            A test stream instead of the operating system's key: repeatable, and only `claimed`.
        """
        return GradedSession(self, rate_hz, Sphere() if space is None else space, seed)


def _steps(sigma_deg: Fraction, bits: int) -> int:
    """A sigma in steps of the lattice, rounded up to whole ones; asked for with each sample, and
    quicker than a hash of it.
    """
    return -(-(sigma_deg.numerator << bits) // sigma_deg.denominator)


def _sigma(value: object) -> Fraction:
    sigma = exact("graded", "sigma_deg", value, above=0)
    if sigma > _MOST_DEG or sigma < Fraction(1, 1 << 10):
        checks.refuse("graded", "sigma_deg", f"from 2**-10 to {_MOST_DEG} degrees", value)
    return sigma


class GradedSession:
    """A stream with views; made by :meth:`Graded.open`.

    A session can be pickled, copied and forked. The copy has the same levels, and a key of its own:
    what comes from then on has noise of its own. A pickle does not hold the key.
    """

    def __init__(self, graded: Graded, rate_hz: float, space: Space, seed: int | None) -> None:
        self.graded = graded
        self.space = space
        self.seeded = seed is not None
        self._seed = seed
        self._validated = Session(RawGaze(), rate_hz, space)
        self.bits = _LEAST_BITS if graded.bits is None else graded.bits
        if graded.bits is None:
            # Levels are sorted by the constructor.
            while Fraction(graded.levels_deg[0]) * (1 << self.bits) < _STEPS:
                self.bits += 1
        self._noise = GaussianLevels(self._draw())
        self.levels: tuple[Fraction, ...] = ()
        self.count = 0
        self._begin()
        for level in graded.levels_deg:
            self.declare(level)

    def _draw(self) -> Draw:
        """Words under a new key, or of the test stream."""
        return partial(MasterKey(self._seed).source, "graded", "gaussian", self.bits)

    def _begin(self) -> None:
        """Make this process the owner of the stream from here on."""
        self._lock = threading.Lock()
        self._identity = ProcessIdentity()

    def _leave(self) -> None:
        self._noise.forget(self._draw())
        self._begin()

    def _own(self) -> None:
        if not self._identity.original:
            self._identity.renew(self._leave)

    def __getstate__(self) -> dict[str, object]:
        with self._lock:
            return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_identity")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._leave()

    def __copy__(self) -> GradedSession:
        return copy.deepcopy(self)  # a shallow one would share levels and noise, and not the lock

    def declare(self, sigma_deg: Number) -> Fraction:
        """Make a level known, at any time.

        Returns
        -------
        Fraction
            Its exact sigma, the key of its view.

        Raises
        ------
        ParameterError
            For a sigma finer than the lattice can carry, or too near to another level.
        """
        sigma = _sigma(sigma_deg)
        if sigma in self.levels:
            return sigma
        if _steps(sigma, self.bits) < LEAST_STEPS:
            finest = Fraction(LEAST_STEPS, 1 << self.bits)
            checks.refuse(
                "graded",
                "sigma_deg",
                f"at least {float(finest):g} degrees in this session",
                sigma_deg,
                "Open a session with a finer level.",
            )
        self._noise.declare(_steps(sigma, self.bits))
        self.levels = tuple(sorted((*self.levels, sigma)))
        return sigma

    def keep_only(self, *sigmas_deg: Number) -> None:
        """Forget all other levels, from the next sample on.

        Noise of different samples is independent, so samples from here on may come from a new key
        without changing any law: every sample is told from one key alone.

        Raises
        ------
        ParameterError
            For a level that was not declared, or levels that lie too near to each other without
            those between; nothing is forgotten then.
        """
        kept = sorted({_sigma(s) for s in sigmas_deg})
        for level in kept:
            self._known(level)
        self._own()
        with self._lock:
            noise = GaussianLevels(self._draw())
            for level in kept:
                noise.declare(_steps(level, self.bits))
            self._noise, self.levels = noise, tuple(kept)

    def _known(self, level: Fraction) -> None:
        if level not in self.levels:
            checks.refuse(
                "graded",
                "sigma_deg",
                "a declared level: " + ", ".join(str(s) for s in self.levels),
                float(level),
                "Declare it first.",
            )

    def push(
        self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike = True
    ) -> Views:
        """The views of new samples at all levels; parameters as for a stream's session."""
        return dict(self.views(t_ns, x_deg, y_deg, valid))

    def views(
        self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike = True
    ) -> list[tuple[Fraction, Samples]]:
        """What :meth:`push` gives, level by level: a hash of a level costs more than its view."""
        self._own()
        with self._lock:
            t, x, y, ok = made = self._validated.push(t_ns, x_deg, y_deg, valid)
            first, self.count = self.count, self.count + len(x)
            views = []
            for level in self.levels:
                # The session has made lost ones NaN, and these arrays are nobody else's.
                own = (
                    made if level is self.levels[-1] else (t.copy(), x.copy(), y.copy(), ok.copy())
                )
                noise = self._noise_steps(level, first, len(x))
                _add(*own[1:], noise, self.bits, isinstance(self.space, Sphere))
                views.append((level, own))
            return views

    def noise_steps(self, sigma_deg: Number, first: int, count: int) -> Ints:
        """Noise of samples in steps of 2**-bits degrees, shape (count, 2), of a session with a seed
        alone: it undoes the protection.
        """
        if not self.seeded:
            checks.refuse(
                "graded",
                "seed",
                "a whole number, for the noise itself",
                None,
                "Open the session with a seed, which protects nobody.",
            )
        return self._noise_steps(_sigma(sigma_deg), first, count).copy()

    def _noise_steps(self, sigma: Fraction, first: int, count: int) -> Ints:
        steps, (number, at) = _steps(sigma, self.bits), divmod(first, BLOCK)
        if at + count <= BLOCK:  # most samples come one by one: a block is not copied for each
            return self._noise.block(steps, number)[at : at + count]
        numbers = range(number, (first + count - 1) // BLOCK + 1)
        return np.concatenate([self._noise.block(steps, n) for n in numbers])[at : at + count]

    def reset(self) -> None:
        """Begin a new stream: the clock is forgotten; numbers, and with them the noise, go on."""
        with self._lock:
            self._validated.reset()

    def guarantee(self, *sigmas_deg: Number) -> Guarantee:
        """What everybody who sees these views together is promised about one sample: the promise of
        the finest of them.
        """
        finest = min((_sigma(s) for s in sigmas_deg or self.levels), default=None)
        if finest is None:
            checks.refuse("graded", "sigmas_deg", "given where no level is declared", sigmas_deg)
        lattice = GaussianLattice(self.bits, _steps(finest, self.bits))
        promise = Guarantee(
            "rho-zcdp",
            GradedGaussianMap(self._validated.rate_hz, self.space, lattice),
            Change.sample(Fraction(self.graded.r_deg), "coordinates"),
            mechanism=f"graded (gaussian, finest view {float(finest):g} degrees)",
            assumptions=(
                ASSUMPTION,
                "the session's key stays secret",
                "the noise is whole numbers; a level declared late rests on probabilities in"
                " floating point",
            ),
            not_covered=(*NEVER_COVERED, "views finer than the one named"),
            reason="proofs/graded.md",
        )
        return promise.tested() if self.seeded else promise


@compiled
def _add(x: Floats, y: Floats, ok: Bools, noise: Ints, bits: int, sphere: bool) -> None:
    for i in range(len(x)):
        if ok[i]:
            x[i], y[i] = noisy_place(x[i], y[i], noise[i, 0], noise[i, 1], bits, sphere)
