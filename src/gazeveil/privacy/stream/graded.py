"""Graded release: one protected stream, many views, and a coalition of apps learns no more than its
finest view.

Independent noise for every app adds up: m colluding apps average it away (their error falls as
1/sqrt(m)). Here every coarser view is the finer one plus an increment that is independent of the
gaze and of the finer noise (:mod:`gazeveil.privacy.stream.graded_noise`). So all views together are
a function of the finest one and of coins: what a coalition learns is what its finest view tells,
exactly.

The noise of a sample is a function of the session's key, the family, the level and the sample's
number (AES-256 in counter mode under keys derived by BLAKE2b). The same question therefore always
has the same answer, however often and by whom it is asked. A number stands for one sample: numbers
never begin anew, and a copy or a forked child takes a key of its own, so that no noise is ever on
two samples.

    session = Graded("laplace", (1, 2, 5)).open(120.0)
    views = session.push(t_ns, x_deg, y_deg, valid)  # an app with scale 2 gets views[Fraction(2)]
    session.declare("1/2")                           # a view finer than any so far

Proof: proofs/graded.md.

Gaze as a session validates it and nothing more: for sessions that protect it at once.

What the views of a graded session promise: the loss of the finest one.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.guarantee import Guarantee, no_promise
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import Loss
from gazeveil.privacy.promise.privacy_map import StreamMap, farthest_coordinates_deg
from gazeveil.privacy.randomness.keys import MasterKey
from gazeveil.privacy.randomness.rng import ASSUMPTION, ProcessIdentity
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.stream.gaussian import GaussianLattice, GaussianMap, fold, stop
from gazeveil.privacy.stream.graded_noise import (
    BLOCK,
    LEAST_STEPS,
    Draw,
    GaussianChain,
    LaplaceChain,
    LevelNoise,
    PlanarCloud,
)
from gazeveil.privacy.stream.losses.public_clock import NEVER_COVERED
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Samples, Session, Stage

_SQRT_2 = Fraction(1414214, 10**6)


@dataclass(frozen=True)
class GradedLaplaceMap(StreamMap):
    """Laplace noise on every sample of the finest view, on both axes (`laplace`) or in the plane
    (`planar-laplace`).

    Parameters
    ----------
    law : str
        One of the two.
    bits : int
        2**bits steps to a degree.
    steps : Fraction
        Scale of the finest view in steps.
    views : int
        How many views there are: each may fall on the other side of a rounding boundary.
    """

    law: str
    bits: int
    steps: Fraction
    views: int

    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """Each sample by how far its coordinates move."""
        moved = farthest_coordinates_deg(self.space, move_deg, metric) * (1 << self.bits)
        # Laplace on both axes loses by the sum of the two moves; rounding adds at most a step to
        # each.
        far = _SQRT_2 * moved + 2 if self.law == "laplace" else moved + _SQRT_2
        # Planar noise in doubles falls on the other side of a rounding boundary with at most this
        # probability, in each view.
        error = (
            Fraction(1, 1 << 40)
            if self.law == "laplace"
            else self.views * (self.steps / (1 << 40) + Fraction(1, 1 << 30))
        )
        return Loss.pure(samples * far / self.steps, samples * error)


@dataclass(frozen=True)
class GradedGaussianMap(GaussianMap):
    """As Gaussian noise, with the numerical error of levels that were declared late."""

    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """By samples."""
        return replace(
            super().run(samples, move_deg, metric), delta_num=samples * Fraction(1, 1 << 40)
        )


def guarantee(law: str, losses: StreamMap, finest_deg: Fraction, r_deg: Fraction) -> Guarantee:
    """What everybody who sees views of a law, the finest of that scale, is promised."""
    numbers = (
        "whole numbers; a level declared late rests on probabilities in floating point"
        if law != "planar-laplace"
        else "floating point, rounded"
    )
    return Guarantee(
        "rho-zcdp" if law == "gaussian" else "geo-indistinguishability",
        losses,
        Change.sample(r_deg, "coordinates"),
        mechanism=f"graded ({law}, finest view {float(finest_deg):g} degrees)",
        assumptions=(ASSUMPTION, "the session's key stays secret", f"the noise is {numbers}"),
        not_covered=(*NEVER_COVERED, "views finer than the one named"),
        reason="proofs/graded.md",
    )


class _Unchanged(Stage):
    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        return t_ns, x_deg, y_deg, valid


@dataclass(frozen=True)
class RawGaze(StreamMechanism):
    """No protection: what is not plain gaze is lost, times lie on the grid."""

    name: ClassVar[str] = "graded"
    kind: ClassVar[str] = "stream"
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


#: Families of noise.
LAWS = ("gaussian", "laplace", "planar-laplace")

#: A view for each level, by its exact scale in degrees.
Views: TypeAlias = Mapping[Fraction, Samples]

_STEPS = 1024  # in the finest declared scale
_MOST_DEG = 1024
_LEAST_BITS, _MOST_BITS = 5, 20


@dataclass(frozen=True)
class Graded:
    """Views of one stream at several levels of noise.

    Parameters
    ----------
    law : str
        `gaussian` (scale = sigma), `laplace` (independent on both axes, scale = b),
        `planar-laplace` (scale = b of exp(-|z| / b)).
    levels_deg : iterable of numbers
        Scales declared at the start, in degrees. With planar Laplace the smallest is fixed for the
        session: it is drawn and kept even if no receiver has that level. Nothing finer can be
        released later.
    r_deg : number
        How far a sample moves in the promise.
    bits : int, optional
        2**bits steps of the grid to a degree, 5 to 20; by default as fine as the finest of
        `levels_deg` asks for. Where it is given, levels may all be declared later (not with planar
        Laplace). The levels a session can carry then do not depend on the order of receivers.

    Examples
    --------
    >>> session = Graded("planar-laplace", (1, 2)).open(100.0, seed=1)
    >>> views = session.push(0, 180.0, 90.0)
    >>> sorted(views)
    [Fraction(1, 1), Fraction(2, 1)]
    """

    law: str
    levels_deg: tuple[Number, ...]
    r_deg: Number = 1
    bits: int | None = None

    def __post_init__(self) -> None:
        checks.one_of("graded", "law", self.law, LAWS)
        if (
            self.bits is not None
            and checks.count("graded", "bits", self.bits, least=_LEAST_BITS) > _MOST_BITS
        ):
            checks.refuse("graded", "bits", f"from {_LEAST_BITS} to {_MOST_BITS}", self.bits)
        if isinstance(self.levels_deg, str) or not isinstance(self.levels_deg, Iterable):
            checks.refuse("graded", "levels_deg", "several scales in degrees", self.levels_deg)
        levels = sorted({_scale(s) for s in self.levels_deg})
        if not levels and (self.bits is None or self.law == "planar-laplace"):
            checks.refuse("graded", "levels_deg", "at least one scale in degrees", self.levels_deg)
        object.__setattr__(self, "levels_deg", tuple(levels))
        object.__setattr__(self, "r_deg", exact("graded", "r_deg", self.r_deg, above=0))

    def open(
        self, rate_hz: float, space: Space | None = None, seed: int | None = None, remember: int = 0
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
        remember : int
            How many samples back :meth:`GradedSession.view` can answer; their gaze stays in memory
            for that.
        """
        return GradedSession(self, rate_hz, Sphere() if space is None else space, seed, remember)


def _scale(value: object) -> Fraction:
    scale = exact("graded", "scale_deg", value, above=0)
    if scale > _MOST_DEG or scale < Fraction(1, 1 << 10):
        checks.refuse("graded", "scale_deg", f"from 2**-10 to {_MOST_DEG} degrees", value)
    return scale


class GradedSession:
    """A stream with views; made by :meth:`Graded.open`.

    A session can be pickled, copied and forked. The copy has the same past and levels, and a key of
    its own: what comes from then on has noise of its own, and questions about samples from before
    are for the original. A pickle holds neither the key nor remembered gaze.
    """

    def __init__(
        self, graded: Graded, rate_hz: float, space: Space, seed: int | None, remember: int = 0
    ) -> None:
        self.graded = graded
        self.space = space
        self.seeded = seed is not None
        self.remember = checks.count("graded", "remember", remember, least=0)
        self._seed = seed
        self._validated = Session(RawGaze(), rate_hz, space)
        self.bits = _LEAST_BITS if graded.bits is None else graded.bits
        if graded.bits is None:
            # Levels are sorted by the constructor.
            while Fraction(graded.levels_deg[0]) * (1 << self.bits) < _STEPS:
                self.bits += 1
        self._noise = self._fresh_noise()
        self.levels: tuple[Fraction, ...] = ()
        self.count = 0
        self._begin()
        for level in graded.levels_deg:
            self.declare(level)

    def _draw(self) -> Draw:
        """Words under a new key, or of the test stream."""
        return partial(MasterKey(self._seed).source, "graded", self.graded.law, self.bits)

    def _begin(self) -> None:
        """Make this process the owner of the stream from here on."""
        self._lock = threading.Lock()
        self._identity = ProcessIdentity()
        self._first = self.count
        # Sample i is in row i % remember, NaN where it is lost.
        self._past = np.empty((self.remember, 2))

    def _leave(self) -> None:
        self._noise.forget(self._draw())
        self._begin()

    def _own(self) -> None:
        if not self._identity.original:
            self._identity.renew(self._leave)

    def __getstate__(self) -> dict[str, object]:
        with self._lock:
            return {
                k: v
                for k, v in self.__dict__.items()
                if k not in ("_lock", "_identity", "_first", "_past")
            }

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._leave()

    def __copy__(self) -> GradedSession:
        return copy.deepcopy(self)  # a shallow one would share levels and noise, and not the lock

    def _fresh_noise(self) -> LevelNoise:
        """Noise without levels, under a new key."""
        if self.graded.law == "planar-laplace":
            return PlanarCloud(self._draw(), self._steps(Fraction(self.graded.levels_deg[0])))
        return (
            GaussianChain(self._draw())
            if self.graded.law == "gaussian"
            else LaplaceChain(self._draw())
        )

    def _steps(self, scale: Fraction) -> Fraction:
        """A scale in steps of the lattice; rounded up to whole steps, so that every family can take
        it.
        """
        return Fraction(-(-scale * (1 << self.bits) // 1))

    def declare(self, scale_deg: Number) -> Fraction:
        """Make a level known, at any time.

        Returns
        -------
        Fraction
            Its exact scale, the key of its view.

        Raises
        ------
        ParameterError
            For a scale finer than the lattice can carry or, with planar Laplace, finer than the
            finest of the session.
        """
        scale = _scale(scale_deg)
        if scale in self.levels:
            return scale
        if self._steps(scale) < LEAST_STEPS:
            finest = Fraction(LEAST_STEPS, 1 << self.bits)
            checks.refuse(
                "graded",
                "scale_deg",
                f"at least {float(finest):g} degrees in this session",
                scale_deg,
                "Open a session with a finer level.",
            )
        self._noise.declare(self._steps(scale))
        self.levels = tuple(sorted((*self.levels, scale)))
        return scale

    def keep_only(self, *scales_deg: Number) -> None:
        """Forget all other levels, from the next sample on.

        Noise of different samples is independent, so samples from here on may come from a new key
        without changing any law: every sample is told from one key alone. What was pushed before
        cannot be asked for again.

        Raises
        ------
        ParameterError
            For a level that was not declared, or levels that lie too near to each other without
            those between; nothing is forgotten then.
        """
        kept = sorted({_scale(s) for s in scales_deg})
        for level in kept:
            self._known(level)
        self._own()
        with self._lock:
            noise = self._fresh_noise()
            for level in kept:
                noise.declare(self._steps(level))
            self._noise, self._first, self.levels = noise, self.count, tuple(kept)

    def push(
        self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike = True
    ) -> Views:
        """The views of new samples at all levels; parameters as for a stream's session."""
        self._own()
        with self._lock:
            t, x, y, ok = self._validated.push(t_ns, x_deg, y_deg, valid)
            first, self.count = self.count, self.count + len(x)
            if self.remember:
                self._keep(first, x, y, ok)
            return {level: (t.copy(), *self._view(level, first, x, y, ok)) for level in self.levels}

    def view(self, scale_deg: Number, first: int, count: int) -> tuple[Floats, Floats, Bools]:
        """Samples `first`, ..., `first + count - 1` of this session again, at a level that may have
        been declared since: x_deg, y_deg, valid.

        The same question has the same answer. It is answered from what was pushed: another gaze
        under the same noise would tell the difference.

        Raises
        ------
        ParameterError
            For a level that was not declared, samples that are still to come, those that the
            session was not opened to remember, and in a copy or a forked child those from before it
            was made.
        """
        level = _scale(scale_deg)
        self._known(level)
        begin = checks.count("graded", "first", first, least=0)
        n = checks.count("graded", "count", count)
        self._own()
        with self._lock:
            oldest = max(self._first, self.count - self.remember)
            if begin < oldest or begin + n > self.count:
                stored = f"samples {oldest} to {self.count - 1}" if oldest < self.count else "none"
                checks.refuse(
                    "graded",
                    "first",
                    f"samples that were pushed into this session and are remembered: {stored}",
                    f"{begin} to {begin + n - 1}",
                    "Keep the views that push returns, or open the session with remember=; a copy"
                    " does not answer for the original.",
                )
            x, y = self._past[np.arange(begin, begin + n) % self.remember].T.copy()
            return self._view(level, begin, x, y, np.isfinite(x))

    def _keep(self, first: int, x: Floats, y: Floats, ok: Bools) -> None:
        skipped = max(0, len(x) - self.remember)
        rows = np.arange(first + skipped, first + len(x)) % self.remember
        self._past[rows, 0], self._past[rows, 1] = (
            np.where(ok, x, np.nan)[skipped:],
            np.where(ok, y, np.nan)[skipped:],
        )

    def _known(self, level: Fraction) -> None:
        if level not in self.levels:
            checks.refuse(
                "graded",
                "scale_deg",
                "a declared level: " + ", ".join(str(s) for s in self.levels),
                float(level),
                "Declare it first.",
            )

    def noise_steps(self, scale_deg: Number, first: int, count: int) -> Floats:
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
        return self._noise_steps(_scale(scale_deg), first, count)

    def _noise_steps(self, scale: Fraction, first: int, count: int) -> Floats:
        level = self._steps(scale)
        blocks = range(first // BLOCK, (first + count - 1) // BLOCK + 1)
        noise = (
            self._noise.block(level, blocks.start)
            if len(blocks) == 1
            else np.concatenate([self._noise.block(level, b) for b in blocks])
        )
        return noise[first - blocks.start * BLOCK :][:count].astype(np.float64)

    def _view(
        self, level: Fraction, first: int, x: Floats, y: Floats, ok: Bools
    ) -> tuple[Floats, Floats, Bools]:
        if not len(x):
            return x.copy(), y.copy(), ok.copy()
        out_x, out_y = x.copy(), y.copy()
        _add(
            out_x,
            out_y,
            ok,
            self._noise_steps(level, first, len(x)),
            self.bits,
            isinstance(self.space, Sphere),
        )
        return out_x, out_y, ok.copy()

    def reset(self) -> None:
        """Begin a new stream: the clock is forgotten; numbers, and with them the noise, go on."""
        with self._lock:
            self._validated.reset()

    def guarantee(self, *scales_deg: Number) -> Guarantee:
        """What everybody who sees these views together is promised about one sample: the promise of
        the finest of them.
        """
        finest = min((_scale(s) for s in scales_deg or self.levels), default=None)
        if finest is None:
            checks.refuse("graded", "scales_deg", "given where no level is declared", scales_deg)
        rate_hz, steps = self._validated.rate_hz, self._steps(finest)
        promise = guarantee(
            self.graded.law,
            GradedGaussianMap(rate_hz, self.space, GaussianLattice(self.bits, int(steps)))
            if self.graded.law == "gaussian"
            else GradedLaplaceMap(
                rate_hz, self.space, self.graded.law, self.bits, steps, len(self.levels)
            ),
            finest,
            Fraction(self.graded.r_deg),
        )
        return promise.tested() if self.seeded else promise


@compiled
def _add(x: Floats, y: Floats, ok: Bools, noise: Floats, bits: int, sphere: bool) -> None:
    """Round to the lattice, add noise, round again (planar noise is not whole), come back into the
    space.
    """
    scale = float(np.int64(1) << bits)
    quarter = np.int64(90) << bits
    for i in range(len(x)):
        if not ok[i]:
            x[i], y[i] = np.nan, np.nan
            continue
        a = np.int64(np.rint(x[i] * scale)) + np.int64(np.rint(noise[i, 0]))
        b = np.int64(np.rint(y[i] * scale)) + np.int64(np.rint(noise[i, 1]))
        if sphere:
            a, b = a % (4 * quarter), fold(b, 2 * quarter)
        else:
            a, b = stop(a, quarter), stop(b, quarter)
        x[i], y[i] = a / scale, b / scale
