"""`kaleido`: (epsilon, w, r)-differential privacy for a stream of gaze.

David-John et al. 2023, section 2.3, after Li et al., "Kaleido: Real-Time Privacy Control for
Eye-Tracking Systems", USENIX Security 2021. Every t_skip the sample is compared with what was
published last:

    n_test = ceil(w / t_skip),  epsilon_test = epsilon / (h n_test),  E = epsilon - epsilon / h
    repeat      if |g - g'_last| <= l_thresh + Lap(r / epsilon_test)
    publish     else, g' = g + PL(r / epsilon_i), density of PL(b) proportional to exp(-|z| / b)

* `kaleido` takes epsilon_i = (E - what the last w - 1 samples spent) / 2. `published` is the
  pseudocode to the letter (:mod:`gazeveil.privacy.stream.kaleido.published`); `corrected` scales
  the test's noise by r, sums over the window and counts by sample.
* `kaleido-uniform` has n slots of a window, n by a public rule, without tests; a publication at
  each with epsilon / n (proofs/kaleido-uniform.md).
* r is a number, or that of the public regions of a stimulus.

Places are points of a public lattice; on a screen the distance is that of the two angles in the
plane, on a sphere it is the arc length, and noise goes by arc length and bearing with density
proportional to exp(-arc / b) by area. Proof: proofs/kaleido.md; of filled losses:
proofs/losses.md.

r from the regions of interest of a stimulus: public boxes, never gaze.

What a wearer may want to hide is where inside a region they look. That is covered where r is at
least as large as the region is wide: the largest distance between two of its places, along a
straight line of a screen's two angles or along a great circle.

One r for each stimulus is a public number. The r of the region that gaze lies in (Li et al. 2021
speak of the current region's radius) is not, and is not offered: noise would then have a scale that
depends on where gaze is, and two places on either side of a border would be told apart by it, by at
least 2 ln(r_2 / r_1) however small epsilon is (proofs/kaleido.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.areas import EVERY, Boxes, boxes_on, read_areas
from gazeveil.privacy.audit.games import GAME_SCREEN, Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, PlotRecipe
from gazeveil.privacy.noise.arithmetic import ASSUMPTION
from gazeveil.privacy.promise.loss import Change, Loss
from gazeveil.privacy.promise.privacy_map import WindowBudget
from gazeveil.privacy.randomness.rng import ASSUMPTION as BITS_ASSUMPTION
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.rational import Number, exact, format_exact
from gazeveil.privacy.stream.kaleido.published import PublishedKaleido
from gazeveil.privacy.stream.kaleido.stage import KaleidoPlan, LatticeStage, noise_scales_deg, plan
from gazeveil.privacy.stream.kaleido.step import HALVING, UNIFORM
from gazeveil.privacy.stream.losses.expected_gaze import Memory, stream_keys
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Stage

#: One r for each stimulus: that of its widest region, or of the one in the middle by width (of
#: an even number, the narrower of the two).
RULES = ("largest", "median")

_RADIUS = "a stimulus whose r is "

#: Widths are rounded up to a multiple of one over this, in degrees.
_PARTS = 1024


@dataclass(frozen=True, eq=False)
class StimulusRegions:
    """The regions of one stimulus.

    Parameters
    ----------
    boxes : Boxes
        Where they lie.
    widths_deg : tuple of Fraction
        The largest distance between two places of each, rounded up to a 1024th.
    """

    boxes: Boxes = field(repr=False)
    widths_deg: tuple[Fraction, ...]

    def r_deg(self, rule: str) -> Fraction:
        """The r of the stimulus by a rule."""
        ranked = sorted(self.widths_deg)
        return ranked[-1] if rule == "largest" else ranked[(len(ranked) - 1) // 2]

    def wider_than(self, r_deg: Fraction) -> tuple[str, ...]:
        """Names of regions that r does not span."""
        pairs = zip(self.boxes.names, self.widths_deg, strict=True)
        return tuple(name for name, width in pairs if width > r_deg)


def regions_on(owner: str, path: str, stimulus: str, space: Space) -> StimulusRegions:
    """The regions of a stimulus.

    Raises
    ------
    DataError
        Where the file has none on it.
    """
    boxes = boxes_on(path, stimulus, space)
    if boxes is None:
        raise DataError(
            f"No region of '{path}' lies on the stimulus '{stimulus}', so {owner} has no r there."
            f" Add one, or one with the stimulus '{EVERY}', or give r_deg in degrees."
        )
    return StimulusRegions(boxes, tuple(_widths_deg(boxes)))


def by_radius(w: int, radii_deg: Iterable[Fraction], budget: Loss) -> tuple[tuple[str, Loss], ...]:
    """What is promised on stimuli of each r, in words: by r and not by name, because a release may
    have withheld names of stimuli and regions.

    Parameters
    ----------
    w : int
        Samples of a window.
    radii_deg : iterable of Fraction
        The r of each stimulus, in degrees.
    budget : Loss
        Of a window that moves by at most r.
    """
    ranked = [format_exact(r, down=True) for r in sorted(set(radii_deg))]
    return tuple(
        (f"{w} samples in a row on {_RADIUS}{r} degrees, moved by at most that", budget)
        for r in ranked
    )


def radius_in(words: str) -> Fraction | None:
    """The r of a line of :func:`by_radius`, in degrees; None for any other line."""
    number = "[0-9]{1,20}(?:[.][0-9]{1,20}|/[1-9][0-9]{0,20})?"
    found = re.search(f"{_RADIUS}({number}) ", words)
    return None if found is None else Fraction(found[1])


def named_stimuli(path: str) -> tuple[str, ...]:
    """The stimuli that a file names; :data:`EVERY` stands for those that it does not."""
    return tuple(dict.fromkeys(area.stimulus for area in read_areas(path)))


def _widths_deg(boxes: Boxes) -> list[Fraction]:
    """On a sphere the way that is straight in longitude and polar angle, at the box's widest
    parallel: no great circle between two of its places is longer.
    """
    widths = []
    sphere = isinstance(boxes.space, Sphere)
    edges = zip(boxes.left_deg, boxes.top_deg, boxes.right_deg, boxes.bottom_deg, strict=True)
    for left, top, right, bottom in (map(float, box) for box in edges):
        across, down = (Fraction(b) - Fraction(a) for a, b in ((left, right), (top, bottom)))
        if sphere:
            widest = math.sin(math.radians(min(max(90.0, top), bottom)))
            across *= min(Fraction(1), Fraction(widest) * (1 + Fraction(1, 1 << 40)))
        width = _root(across**2 + down**2)
        widths.append(min(width, Fraction(180)) if sphere else width)
    return widths


def _root(square: Fraction) -> Fraction:
    """The square root, rounded up to a multiple of 1 / _PARTS."""
    whole = math.isqrt(math.ceil(square * _PARTS**2))
    return Fraction(whole if Fraction(whole, _PARTS) ** 2 >= square else whole + 1, _PARTS)


DAVIDJOHN2023 = (
    'David-John, Butler and Jain, "Privacy-preserving datasets of eye-tracking samples with'
    ' applications in XR", supplement, 2023, after Li et al., "Kaleido", USENIX Security 2021'
)

#: Longest window and smallest r that whole numbers of 64 bits are planned for.
MOST_W = 1 << 20
LEAST_R_DEG = Fraction(1, 1 << 10)

#: Numerical error of one window: each of its draws is off by less than 2**-400.
_DELTA = Fraction(1, 1 << 370)

CORRECTED_CLAIM = Claim(
    "epsilon-w-r-dp", "window", "proved", "lattice noise, budgets of a window counted by sample"
)
_REFUTED = (
    "the test's noise Lap(1/epsilon_test) leaves out r, so that a window's tests lose r epsilon / h"
    " (r in degrees) instead of epsilon / h, tests are counted by time stamps, and the noise is"
    " floating point"
)
_PUBLIC_REGIONS = (
    "the regions of interest of every stimulus are public and were drawn without looking at this"
    " gaze"
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
    r_deg : number or str
        How far each sample of the window may move, in degrees. `largest` or `median`: that of the
        regions of interest of each stimulus, see
        :mod:`gazeveil.privacy.stream.kaleido.mechanism`.
    h : number
        1/h of the budget goes to the tests; above 1.
    t_skip_ms : number
        Time between tests; whole samples, at least one.
    l_thresh_deg : number
        Gaze closer than this to the last publication should repeat it.
    regions : str, optional
        A file of public regions (:mod:`gazeveil.io.areas`), for an r that follows them.
    stimulus : str, optional
        What a live stream shows, where the file names several stimuli; recordings say it
        themselves.

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
    paper: ClassVar[str] = DAVIDJOHN2023
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType(
        {
            "corrected": CORRECTED_CLAIM,
            "published": Claim(
                "epsilon-w-r-dp", "window", "refuted", "the pseudocode to the letter"
            ),
        }
    )
    rule: ClassVar[int] = HALVING
    fills: ClassVar[str] = "released"
    files: ClassVar[tuple[str, ...]] = ("regions",)

    epsilon: Number
    w: int
    r_deg: Number
    h: Number = 2
    t_skip_ms: Number = 50
    l_thresh_deg: Number = 1
    regions: str | None = None
    stimulus: str | None = None

    def check(self) -> None:
        """Store exact numbers."""
        self.store("epsilon", exact(self.name, "epsilon", self.epsilon, above=0))
        self.store("w", checks.count(self.name, "w", self.w))
        self._check_r()
        self.store("h", exact(self.name, "h", self.h, above=1))
        self.store("t_skip_ms", exact(self.name, "t_skip_ms", self.t_skip_ms, least=0))
        self.store("l_thresh_deg", exact(self.name, "l_thresh_deg", self.l_thresh_deg, least=0))
        for name, most in (
            ("w", MOST_W),
            ("epsilon", 1 << 10),
            ("l_thresh_deg", 360),
            ("h", 1 << 20),
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

    def _check_r(self) -> None:
        """A number, or a rule for regions with their file; the file is not opened yet."""
        if self.regions is None:
            if self.r_deg in RULES:
                checks.refuse(
                    self.name,
                    "regions",
                    f"a file of regions where r_deg is {self.r_deg}",
                    self.regions,
                    "Give one, or give r_deg in degrees.",
                )
            if self.stimulus is not None:
                checks.refuse(self.name, "stimulus", "left out without regions", self.stimulus)
            radius = exact(self.name, "r_deg", self.r_deg, least=LEAST_R_DEG)
            if radius > 360:
                checks.refuse(self.name, "r_deg", "at most 360", self.r_deg)
            self.store("r_deg", radius)
            return
        checks.one_of(self.name, "r_deg", str(self.r_deg), RULES)
        self.store("regions", str(self.regions))

    def regions_of(self, space: Space) -> StimulusRegions | None:
        """The regions of the stimulus of a stream; None where r is a number.

        Raises
        ------
        ParameterError
            Where it is not known which of several stimuli is shown.
        DataError
            Where no region lies on it.
        """
        if self.regions is None:
            return None
        known = named_stimuli(self.regions)
        if self.stimulus is None and len(known) > 1:
            checks.refuse(
                self.name,
                "stimulus",
                f"given where '{self.regions}' names several: {', '.join(known[:5])}",
                self.stimulus,
            )
        return regions_on(self.name, self.regions, self.stimulus or known[0], space)

    def radius_deg(self, space: Space) -> Fraction:
        """The r of a stream."""
        mine = self.regions_of(space)
        if mine is None:
            return Fraction(self.r_deg)
        radius = mine.r_deg(str(self.r_deg))
        if not LEAST_R_DEG <= radius <= 360:
            checks.refuse(self.name, "regions", "regions at least 1/1024 degree wide", self.regions)
        return radius

    def radii_deg(self, space: Space) -> dict[str, Fraction]:
        """The r of each stimulus that the promise is about; public."""
        if self.regions is None:
            return {}
        names = named_stimuli(self.regions) if self.stimulus is None else (self.stimulus,)
        return {name: replace(self, stimulus=name).radius_deg(space) for name in names}

    def _least_r(self, space: Space) -> Fraction:
        """A move by at most this costs epsilon on every stimulus."""
        each = self.radii_deg(space)
        return min(each.values()) if each else Fraction(self.r_deg)

    def on_stimulus(self, stimulus: str) -> Kaleido:
        """With the r of its regions."""
        return self if self.regions is None else replace(self, stimulus=stimulus)

    def without_files(self, r_deg: Fraction = Fraction(1)) -> Kaleido:
        """With an r that is a number."""
        if self.regions is None:
            return self
        return replace(self, r_deg=r_deg, regions=None, stimulus=None)

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
            self.radius_deg(space),
            h,
            skip,
            math.ceil(Fraction(self.w, skip)),
            Fraction(self.l_thresh_deg),
        )

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """(epsilon, w, r)-DP of every window of w samples, and what follows from it for other
        changes.
        """
        least = self._least_r(space)
        change = Change.window(self.w, move_deg=least)
        if self.reading == "published":
            claimed = WindowBudget(rate_hz, space, Fraction(self.epsilon), self.w, least)
            return Guarantee(
                "epsilon-w-r-dp",
                claimed,
                change,
                mechanism=self.title,
                status="refuted",
                reason=_REFUTED,
            )
        each = self.radii_deg(space)
        budget = Loss.pure(Fraction(self.epsilon), _DELTA)
        return Guarantee(
            "epsilon-w-r-dp",
            self.window_budget(rate_hz, space),
            change,
            mechanism=self.title,
            also=by_radius(self.w, each.values(), budget),
            assumptions=(
                BITS_ASSUMPTION,
                ASSUMPTION,
                "the rate is public",
                *((_PUBLIC_REGIONS,) if each else ()),
            ),
            not_covered=self._wider(space, each),
            reason=f"proofs/{self.name}.md",
        )

    def _wider(self, space: Space, each: Mapping[str, Fraction]) -> tuple[str, ...]:
        """Regions that are wider than the r of their stimulus."""
        wide = sum(
            len(regions_on(self.name, str(self.regions), name, space).wider_than(r))
            for name, r in each.items()
        )
        if not wide:
            return ()
        which = "the region that is" if wide == 1 else f"the {wide} regions that are"
        return (f"moves by more than r inside {which} wider than the r of the stimulus",)

    def window_budget(self, rate_hz: float, space: Space) -> WindowBudget:
        """The base map: the budget of a window."""
        rate = checks.positive(self.name, "rate_hz", rate_hz)
        return WindowBudget(
            rate, space, Fraction(self.epsilon), self.w, self._least_r(space), _DELTA
        )

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """The paper's loop, or the one on the lattice."""
        sources = bits.sources(streams, self.name, self.reading)
        if self.reading == "published":
            return PublishedKaleido(
                space,
                float(self.epsilon),
                self.w,
                float(self.radius_deg(space)),
                float(self.h),
                int(Fraction(self.t_skip_ms) * 10**6),
                self.skip(rate_hz),
                float(self.l_thresh_deg),
                streams,
                sources,
            )
        # A file of regions may change; numbers do not.
        plan = self.plan(rate_hz, space) if self.regions else _planned(self, rate_hz, space)
        if self.losses != "fill":
            return LatticeStage(plan, streams, sources)
        keys = stream_keys(streams, bits.sources(streams, self.name, self.reading, "losses"))
        return LatticeStage(plan, streams, sources, Memory.of(space, plan.skip / rate_hz, keys))

    def noise_scale_deg(self, recording: Recording) -> Floats | None:
        """Scales of the noise of a released recording; see
        :mod:`gazeveil.privacy.stream.kaleido.stage`.
        """
        if self.reading == "published" or not recording.rate_hz > 0:
            return None
        settings = (
            self.on_stimulus(recording.stimulus).plan(recording.rate_hz, recording.space).settings
        )
        return noise_scales_deg(settings, recording.x_deg, recording.y_deg, recording.valid)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.stream.audit import kaleido

        if self.regions is None:
            return kaleido(self, unit)
        fixed = replace(self, r_deg=self.radius_deg(GAME_SCREEN), regions=None, stimulus=None)
        return kaleido(fixed, unit)


@lru_cache(maxsize=64)
def _planned(mechanism: Kaleido, rate_hz: float, space: Space) -> KaleidoPlan:
    """A plan that is computed once: its exact numbers take longer than a second of gaze does."""
    return mechanism.plan(rate_hz, space)


#: Public model of gaze behind the choice of slots: mean squared displacement after t seconds,
#: MOVE_DEG2 (1 - exp(-t / MOVE_S)). Three saccades a second of about seven degrees, in a field of
#: about eight degrees around a centre.
MOVE_DEG2, MOVE_S = 128.0, 0.8


@dataclass(frozen=True)
class KaleidoUniform(Kaleido):
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
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType({"corrected": CORRECTED_CLAIM})
    rule: ClassVar[int] = UNIFORM

    slots: int | None = None

    def check(self) -> None:
        """Store exact numbers."""
        super().check()
        if self.slots is not None:
            self.store("slots", checks.count(self.name, "slots", self.slots))

    def _skip_of_slots(self, rate_hz: float, space: Space, publish: Fraction) -> int:
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
            noise = 6.0 * (float(self.radius_deg(space) / publish) * n) ** 2
            chosen = 1 + int(np.argmin(noise + MOVE_DEG2 * (1.0 + np.expm1(-age) / age)))
        return max(least, math.ceil(Fraction(self.w, chosen)))

    def plan(self, rate_hz: float, space: Space) -> KaleidoPlan:
        """Equal shares and no test on the chosen slots."""
        skip = self._skip_of_slots(rate_hz, space, Fraction(self.epsilon))
        return self._plan(space, None, skip)

    def window_budget(self, rate_hz: float, space: Space) -> WindowBudget:
        """The budget of a window, in equal shares for its slots."""
        rate, budget = checks.positive(self.name, "rate_hz", rate_hz), Fraction(self.epsilon)
        if len(self.radii_deg(space)) > 1 and self.slots is None:
            # The number of slots follows r, and so differs from stimulus to stimulus.
            return super().window_budget(rate_hz, space)
        skip = self._skip_of_slots(rate, space, budget)
        return replace(
            super().window_budget(rate_hz, space), readings=math.ceil(Fraction(self.w, skip))
        )
