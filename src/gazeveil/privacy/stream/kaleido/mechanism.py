"""`kaleido`, `kaleido-reserve`, `kaleido-uniform`: (epsilon, w, r)-differential privacy for a
stream of gaze.

David-John et al. 2023, section 2.3, after Li et al., "Kaleido: Real-Time Privacy Control for
Eye-Tracking Systems", USENIX Security 2021. Every t_skip the sample is compared with what was
published last:

    n_test = ceil(w / t_skip),  epsilon_test = epsilon / (h n_test),  E = epsilon - epsilon / h
    repeat      if |g - g'_last| <= l_thresh + Lap(r / epsilon_test)
    publish     else, g' = g + PL(r / epsilon_i), density of PL(b) proportional to exp(-|z| / b)

* `kaleido` takes epsilon_i = (E - what the last w - 1 samples spent) / 2. `published` is the
  pseudocode to the letter (:mod:`gazeveil.privacy.stream.kaleido.published`); `corrected` scales
  the test's noise by r, sums over the window and counts by sample.
* `kaleido-reserve`: n slots of a window by a public rule; half of E gives each of them E / (2 n),
  the other half is halved as above.
* `kaleido-uniform`: the same slots and no test; a publication at each with epsilon / n.

Places are points of a public lattice; on a screen the distance is that of the two angles in the
plane, on a sphere it is the arc length, and noise goes by arc length and bearing with density
proportional to exp(-arc / b) by area. Proofs: proofs/kaleido.md, proofs/kaleido-reserve.md,
proofs/kaleido-uniform.md; of filled losses: proofs/losses.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.noise.arithmetic import ASSUMPTION
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.stream_map import WindowBudget
from gazeveil.privacy.randomness.rng import ASSUMPTION as BITS_ASSUMPTION
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.stream.kaleido.filled import FilledKaleido
from gazeveil.privacy.stream.kaleido.public_history import noise_scales_deg
from gazeveil.privacy.stream.kaleido.published import PublishedKaleido
from gazeveil.privacy.stream.kaleido.stage import AFTER, KaleidoPlan, LatticeStage, plan
from gazeveil.privacy.stream.kaleido.step import HALVING, RESERVE, UNIFORM
from gazeveil.privacy.stream.losses.expected_gaze import Memory
from gazeveil.privacy.stream.losses.fill_stages import stream_keys
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.stage import Stage

DAVIDJOHN2023 = (
    'David-John, Butler and Jain, "Privacy-preserving datasets of eye-tracking samples with'
    ' applications in XR", supplement, 2023, after Li et al., "Kaleido", USENIX Security 2021'
)

#: Longest window and smallest r that whole numbers of 64 bits are planned for.
MOST_W = 1 << 20
LEAST_R_DEG = Fraction(1, 1 << 10)

#: Numerical error of one window: each of its draws is off by less than 2**-400.
_DELTA = Fraction(1, 1 << 370)

#: Public model of gaze behind the choice of slots: mean squared displacement after t seconds,
#: MOVE_DEG2 (1 - exp(-t / MOVE_S)). Three saccades a second of about seven degrees, in a field of
#: about eight degrees around a centre.
MOVE_DEG2, MOVE_S = 128.0, 0.8

_CORRECTED = Claim(
    "epsilon-w-r-dp", "window", "proved", "lattice noise, budgets of a window counted by sample"
)
_REFUTED = (
    "the test's noise Lap(1/epsilon_test) leaves out r, so that a window's tests lose r epsilon / h"
    " (r in degrees) instead of epsilon / h, tests are counted by time stamps, and the noise is"
    " floating point"
)


@dataclass(frozen=True)
class Kaleido(StreamMechanism):
    """Kaleido with the paper's rule: each publication takes half of what the window has left.

    Parameters
    ----------
    epsilon : number
        Budget of any w samples in a row.
    w : int
        Samples of a window.
    r_deg : number
        How far each sample of the window may move, in degrees.
    h : number
        1/h of the budget goes to the tests; above 1.
    t_skip_ms : number
        Time between tests; whole samples, at least one.
    l_thresh_deg : number
        Gaze closer than this to the last publication should repeat it.
    after : str
        What is done to a published point, at no cost: `clamp` to the screen's edges, `snap` to
        whole multiples of `snap_deg` besides, `posterior-mean` under a public normal prior around
        the middle (a quarter of the screen's width and height; on a sphere 20 degrees around the
        horizon), or `none`. The next test compares with the result.
    snap_deg : number
        Grid of `snap`.

    Examples
    --------
    >>> from gazeveil.gaze.geometry import Sphere
    >>> str(Kaleido(1, 50, 2).promise(100.0, Sphere())).split(" (neighbours")[0]
    'kaleido (corrected) promises (epsilon, w, r)-differential privacy with epsilon = 1, w = 50
    samples and r = 2 degrees'
    """

    name: ClassVar[str] = "kaleido"
    label: ClassVar[str] = "Kaleido"
    summary: ClassVar[str] = (
        "Adds noise to gaze within windows of time, with a budget for each window."
    )
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "streams", (":epsilon=50,w=60,r_deg=1", ":epsilon=5,w=60,r_deg=1")
    )
    kind: ClassVar[str] = "stream"
    paper: ClassVar[str] = DAVIDJOHN2023
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType(
        {
            "corrected": _CORRECTED,
            "published": Claim(
                "epsilon-w-r-dp", "window", "refuted", "the pseudocode to the letter"
            ),
        }
    )
    rule: ClassVar[int] = HALVING
    fills: ClassVar[str] = "released"

    epsilon: Number
    w: int
    r_deg: Number
    h: Number = 2
    t_skip_ms: Number = 50
    l_thresh_deg: Number = 1
    after: str = "clamp"
    snap_deg: Number = 1

    def check(self) -> None:
        """Store exact numbers."""
        self.store("epsilon", exact(self.name, "epsilon", self.epsilon, above=0))
        self.store("w", checks.count(self.name, "w", self.w))
        self.store("r_deg", exact(self.name, "r_deg", self.r_deg, least=LEAST_R_DEG))
        self.store("h", exact(self.name, "h", self.h, above=1))
        self.store("t_skip_ms", exact(self.name, "t_skip_ms", self.t_skip_ms, least=0))
        self.store("l_thresh_deg", exact(self.name, "l_thresh_deg", self.l_thresh_deg, least=0))
        self.store("snap_deg", exact(self.name, "snap_deg", self.snap_deg, above=0))
        checks.one_of(self.name, "after", self.after, AFTER)
        for name, most in (
            ("w", MOST_W),
            ("epsilon", 1 << 10),
            ("r_deg", 360),
            ("l_thresh_deg", 360),
            ("h", 1 << 20),
            ("snap_deg", 90),
            ("t_skip_ms", 10**9),
        ):
            if getattr(self, name) > most:
                checks.refuse(self.name, name, f"at most {most}", getattr(self, name))
        if Fraction(self.epsilon) < Fraction(1, 1 << 20):
            checks.refuse(
                self.name,
                "epsilon",
                "at least 2**-20",
                self.epsilon,
                "Less than that publishes nothing but noise.",
            )

    def skip(self, rate_hz: float) -> int:
        """Samples from one test to the next."""
        return max(1, math.floor(Fraction(self.t_skip_ms) * Fraction(repr(float(rate_hz))) / 1000))

    def plan(self, rate_hz: float, space: Space) -> KaleidoPlan:
        """Everything the steps need to know, from public numbers alone."""
        return self._plan(space, Fraction(self.h), self.skip(rate_hz))

    def _plan(self, space: Space, h: Fraction | None, skip: int) -> KaleidoPlan:
        return plan(
            self.rule,
            space,
            Fraction(self.epsilon),
            self.w,
            Fraction(self.r_deg),
            h,
            skip,
            math.ceil(Fraction(self.w, skip)),
            Fraction(self.l_thresh_deg),
            self.after,
            Fraction(self.snap_deg),
        )

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """(epsilon, w, r)-DP of every window of w samples, and what follows from it for other
        changes.
        """
        change = Change.window(self.w, move_deg=Fraction(self.r_deg))
        if self.reading == "published":
            claimed = WindowBudget(
                rate_hz, space, Fraction(self.epsilon), self.w, Fraction(self.r_deg)
            )
            return Guarantee(
                "epsilon-w-r-dp",
                claimed,
                change,
                mechanism=self.title,
                status="refuted",
                reason=_REFUTED,
            )
        return Guarantee(
            "epsilon-w-r-dp",
            self.window_budget(rate_hz, space),
            change,
            mechanism=self.title,
            assumptions=(BITS_ASSUMPTION, ASSUMPTION, "the rate is public"),
            reason=f"proofs/{self.name}.md",
        )

    def window_budget(self, rate_hz: float, space: Space) -> WindowBudget:
        """The base map: the budget of a window."""
        rate = checks.positive(self.name, "rate_hz", rate_hz)
        return WindowBudget(
            rate, space, Fraction(self.epsilon), self.w, Fraction(self.r_deg), _DELTA
        )

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """The paper's loop, or the one on the lattice."""
        sources = bits.sources(streams, self.name, self.reading)
        if self.reading == "published":
            return PublishedKaleido(
                space,
                float(self.epsilon),
                self.w,
                float(self.r_deg),
                float(self.h),
                int(Fraction(self.t_skip_ms) * 10**6),
                self.skip(rate_hz),
                float(self.l_thresh_deg),
                streams,
                sources,
            )
        plan = self.plan(rate_hz, space)
        if self.losses != "fill":
            return LatticeStage(plan, streams, sources)
        keys = stream_keys(streams, bits.sources(streams, self.name, self.reading, "losses"))
        return FilledKaleido(plan, streams, sources, Memory.of(space, plan.skip / rate_hz, keys))

    def noise_scale_deg(self, recording: Recording) -> Floats | None:
        """Scales of the noise of a released recording; see
        :mod:`gazeveil.privacy.stream.kaleido.public_history`.
        """
        if self.reading == "published" or not recording.rate_hz > 0:
            return None
        settings = self.plan(recording.rate_hz, recording.space).settings
        return noise_scales_deg(settings, recording.x_deg, recording.y_deg, recording.valid)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.stream.audit import kaleido

        return kaleido(self, unit)


@dataclass(frozen=True)
class _Slotted(Kaleido):
    """Kaleido in n slots of a window instead of ceil(w / t_skip): a public rule says how many."""

    slots: int | None = None

    def check(self) -> None:
        """Store exact numbers."""
        super().check()
        if self.slots is not None:
            self.store("slots", checks.count(self.name, "slots", self.slots))

    def _skip_of_slots(self, rate_hz: float, publish: Fraction) -> int:
        """Samples of a slot: as many slots as asked for, or the number with the least expected
        squared error.

        The noise of a publication with publish / n has mean square 6 (r n / publish)**2; what is
        shown is on average half a slot old.
        """
        least = self.skip(rate_hz)
        most = math.ceil(Fraction(self.w, least))
        if self.slots is not None and self.slots > most:
            checks.refuse(self.name, "slots", f"at most ceil(w / t_skip) = {most}", self.slots)
        chosen = self.slots
        if chosen is None:
            n = np.arange(1, most + 1, dtype=np.float64)
            age = np.ceil(self.w / n) / rate_hz / MOVE_S
            noise = 6.0 * (float(Fraction(self.r_deg) / publish) * n) ** 2
            chosen = 1 + int(np.argmin(noise + MOVE_DEG2 * (1.0 + np.expm1(-age) / age)))
        return max(least, math.ceil(Fraction(self.w, chosen)))


@dataclass(frozen=True)
class KaleidoReserve(_Slotted):
    """Kaleido whose budget never runs dry: half of E is reserved in equal parts for the n slots of
    a window, half is adaptive.

    Parameters
    ----------
    slots : int, optional
        Slots of a window, instead of the public rule (:data:`MOVE_DEG2`); at most ceil(w / t_skip).
        The tests of few slots have little noise.
    """

    name: ClassVar[str] = "kaleido-reserve"
    label: ClassVar[str] = "Kaleido with a reserve"
    summary: ClassVar[str] = (
        "Kaleido with half of its budget reserved in equal parts for the slots of a window."
    )
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType({"corrected": _CORRECTED})
    rule: ClassVar[int] = RESERVE

    def plan(self, rate_hz: float, space: Space) -> KaleidoPlan:
        """The rule of the reserve on the chosen slots."""
        epsilon, h = Fraction(self.epsilon), Fraction(self.h)
        skip = self._skip_of_slots(rate_hz, epsilon - epsilon / h)
        return self._plan(space, h, skip)


@dataclass(frozen=True)
class KaleidoUniform(_Slotted):
    """Kaleido without tests: a publication at each of n slots of a window, with epsilon / n.

    Tests cost budget and answer little where r n_test h / epsilon is larger than the threshold,
    which is so at every setting the papers use. Since there is no test, `h` and `l_thresh_deg` are
    without effect; they stay so that the family takes the same parameters.

    Parameters
    ----------
    slots : int, optional
        Slots of a window, instead of the public rule (:data:`MOVE_DEG2`); at most ceil(w / t_skip).
    """

    name: ClassVar[str] = "kaleido-uniform"
    label: ClassVar[str] = "Kaleido, uniform budget"
    summary: ClassVar[str] = "Kaleido with the same budget for every slot of a window."
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType({"corrected": _CORRECTED})
    rule: ClassVar[int] = UNIFORM

    def plan(self, rate_hz: float, space: Space) -> KaleidoPlan:
        """Equal shares and no test on the chosen slots."""
        return self._plan(space, None, self._skip_of_slots(rate_hz, Fraction(self.epsilon)))

    def window_budget(self, rate_hz: float, space: Space) -> WindowBudget:
        """The budget of a window, in equal shares for its slots."""
        skip = self._skip_of_slots(
            checks.positive(self.name, "rate_hz", rate_hz), Fraction(self.epsilon)
        )
        return replace(
            super().window_budget(rate_hz, space), readings=math.ceil(Fraction(self.w, skip))
        )
