"""`clock-render`: gaze is read at public times, each reading gets noise, and one public eye looks
where the readings say.

Most of what tells people apart lies in how their eyes move: the noise of the tracker on them,
drift, speed profiles, when they move. Most of what is useful lies in where they look. So nothing is
released but a place per slot of a public clock, and every sample is drawn from one model of the eye
that is the same for all.

* The clock (:mod:`gazeveil.privacy.synthesis.clock.stage`): slots of at least `slot_s`, one sample
  read in each, never more than n = ceil(w / L) in a window of w samples.
* A reading is rounded to a public lattice and gets planar Laplace noise of scale b = n r / epsilon
  (on a sphere by area, density proportional to exp(-arc / b)), as in `kaleido`.
* Everything after that is post-processing with public randomness: readings are fused to fixations
  (:mod:`gazeveil.privacy.synthesis.clock.places`) and rendered
  (:mod:`gazeveil.privacy.synthesis.clock.eye`).

`form="stream"` reads the last sample of a slot and shows it from the next one on, so gaze is at
most one slot late besides the way there. `form="offline"` reads the middle of a slot and shows it
in that slot; it needs the whole recording. Proof: proofs/clock-render.md.

Games for the family of `clock-render`. Of `clock-render` itself: two streams that lie r apart
during one window, and all noisy readings of it.

The window is placed so that as many samples are read in it as can be. What the public eye draws
from the readings cannot tell more than the readings, so these are judged: the logarithm of their
likelihood ratio, and their mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, PlotRecipe
from gazeveil.privacy.noise.arithmetic import ASSUMPTION
from gazeveil.privacy.noise.lattice import LatticeLaw
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.privacy_map import WindowBudget
from gazeveil.privacy.randomness.rng import ASSUMPTION as BITS_ASSUMPTION
from gazeveil.privacy.randomness.rng import source
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.stream.audit import at_a_time
from gazeveil.privacy.stream.kaleido.mechanism import LEAST_R_DEG, MOST_W
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Session, Stage
from gazeveil.privacy.synthesis.clock import eye as clock_eye
from gazeveil.privacy.synthesis.clock import places as clock_places
from gazeveil.privacy.synthesis.clock.stage import Clock, ClockStage, NoisySlots, WholeStage

if TYPE_CHECKING:
    pass

FORMS = ("stream", "offline")

#: Numerical error of one window: each of its draws is off by less than 2**-400.
_DELTA = Fraction(1, 1 << 370)


@dataclass(frozen=True)
class ClockRender(StreamMechanism):
    """Noisy places at public times, rendered by one public eye.

    Parameters
    ----------
    epsilon : number
        Budget of any window.
    r_deg : number
        How far each sample of a window may move, in degrees.
    slot_s : number
        Seconds of a slot; whole samples, rounded up.
    window_s : number
        Seconds of a window; whole samples, rounded up.
    form : {"stream", "offline"}
        With a delay of a slot as samples come, or aligned in time from whole recordings.
    pursuit : bool
        Whether places of one fixation may drift from slot to slot.
    fill_s : number
        A loss of this many seconds, in whole slots, is filled with the last place; a longer one
        comes out as lost.

    Examples
    --------
    >>> str(ClockRender(10, 2).promise(250.0, Sphere())).split(" (neighbours")[0]
    'clock-render (corrected) promises (epsilon, w, r)-differential privacy with epsilon = 10, w =
    125 samples and r = 2 degrees'
    """

    name: ClassVar[str] = "clock-render"
    label: ClassVar[str] = "clock-render"
    summary: ClassVar[str] = "Renders gaze from noisy places at public times."
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "streams", (":epsilon=10,r_deg=2,form=offline", ":epsilon=10,r_deg=2")
    )
    kind: ClassVar[str] = "stream"
    paper: ClassVar[str] = "ours"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-w-r-dp",
            "window",
            "proved",
            "places at public times with lattice noise, everything else drawn from one public eye",
        )
    }

    epsilon: Number
    r_deg: Number
    slot_s: Number = Fraction(1, 4)
    window_s: Number = Fraction(1, 2)
    form: str = "stream"
    pursuit: bool = True
    fill_s: Number = 1

    def check(self) -> None:
        """Store exact numbers."""
        self.store("epsilon", exact(self.name, "epsilon", self.epsilon, least=Fraction(1, 1 << 20)))
        self.store("r_deg", exact(self.name, "r_deg", self.r_deg, least=LEAST_R_DEG))
        for name in ("slot_s", "window_s"):
            self.store(name, exact(self.name, name, getattr(self, name), above=0))
        self.store("fill_s", exact(self.name, "fill_s", self.fill_s, least=0))
        for name, most in (
            ("epsilon", 1 << 10),
            ("r_deg", 360),
            ("slot_s", 3600),
            ("window_s", 3600),
            ("fill_s", 3600),
        ):
            if getattr(self, name) > most:
                checks.refuse(self.name, name, f"at most {most}", getattr(self, name))
        checks.one_of(self.name, "form", self.form, FORMS)
        if not isinstance(self.pursuit, bool):
            checks.refuse(self.name, "pursuit", "True or False", self.pursuit)

    def clock(self, rate_hz: float) -> Clock:
        """When gaze is read at a rate."""
        clock = Clock.of(
            Fraction(self.slot_s),
            Fraction(self.window_s),
            checks.positive(self.name, "rate_hz", rate_hz),
            self.form == "stream",
        )
        if max(clock.window, clock.length) > MOST_W:
            checks.refuse(
                self.name,
                "window_s",
                f"and slot_s at most {MOST_W} samples long",
                self.window_s,
                "Choose shorter ones, or a lower rate.",
            )
        return clock

    def noise(self, rate_hz: float, space: Space) -> LatticeLaw:
        """The noise of a reading: equal shares for the readings of a window."""
        each = Fraction(self.epsilon) / self.clock(rate_hz).count
        return LatticeLaw(space, Fraction(self.r_deg), each, inside=True)

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """(epsilon, w, r)-DP of every window, which is as many samples as its seconds hold at this
        rate, and what follows for other changes.
        """
        clock = self.clock(rate_hz)
        return Guarantee(
            "epsilon-w-r-dp",
            WindowBudget(
                float(rate_hz),
                space,
                Fraction(self.epsilon),
                clock.window,
                Fraction(self.r_deg),
                _DELTA,
                clock.count,
            ),
            Change.window(seconds=Fraction(self.window_s), move_deg=Fraction(self.r_deg)),
            mechanism=self.title,
            assumptions=(BITS_ASSUMPTION, ASSUMPTION, "the rate is public"),
            not_covered=("in which slots nothing was seen",),
            reason="proofs/clock-render.md",
        )

    @property
    def causal(self) -> bool:
        """The offline form looks ahead."""
        return self.form == "stream"

    def open(self, rate_hz: float, space: Space | None = None, seed: int | None = None) -> Session:
        """A session for one stream; see :class:`StreamMechanism`. The offline form has none."""
        self._needs_stream("open")
        return super().open(rate_hz, space, seed)

    def open_many(
        self, count: int, rate_hz: float, space: Space | None = None, seed: int | None = None
    ) -> Session:
        """A session for many streams that go in step."""
        self._needs_stream("open_many")
        return super().open_many(count, rate_hz, space, seed)

    def _needs_stream(self, verb: str) -> None:
        if not self.causal:
            checks.refuse(
                f"{self.name}.{verb}",
                "form",
                "stream: the offline form looks at whole recordings",
                self.form,
                "Use release, or form='stream'.",
            )

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """The private part, and the public eye."""
        private = self.slots(rate_hz, space, streams, bits)
        keys = bits.sources(streams, self.name, self.reading, "eye")
        made = ClockStage if self.form == "stream" else WholeStage
        return made(
            private, self.model(rate_hz, space), self.settings(rate_hz, space), streams, keys
        )

    def slots(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> NoisySlots:
        """The private part alone."""
        return NoisySlots(
            self.clock(rate_hz),
            self.noise(rate_hz, space),
            streams,
            bits.sources(streams, self.name, self.reading),
        )

    def scale_deg(self, rate_hz: float, space: Space) -> float:
        """Scale b of the noise of a reading, in degrees."""
        return self.noise(rate_hz, space).scale_deg

    def model(self, rate_hz: float, space: Space) -> Floats:
        """What the public model knows about readings."""
        clock = self.clock(rate_hz)
        slot_s = clock.length / rate_hz
        # no noise is farther than about half the space
        noise_deg = min(math.sqrt(3.0) * self.scale_deg(rate_hz, space), 90.0)
        return clock_places.model(
            isinstance(space, Sphere),
            noise_deg,
            slot_s,
            self.pursuit,
            math.ceil(Fraction(self.fill_s) / Fraction(repr(slot_s))),
        )

    def settings(self, rate_hz: float, space: Space) -> Floats:
        """What the public eye knows."""
        edges = (
            (math.inf, math.inf)
            if isinstance(space, Sphere)
            else (space.width_deg / 2, space.height_deg / 2)
        )
        length = self.clock(rate_hz).length
        # what comes late already is shown without further delay
        latest, longest = (0, -(-length // 4)) if self.form == "stream" else (length // 4, length)
        return clock_eye.settings(isinstance(space, Sphere), rate_hz, edges, latest, longest)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        return clock_render(self, unit)


RATE_HZ = 100.0

# So large that nothing is clamped: what is clamped tells less.
_SCREEN = Screen(1000, 1000, 1e6, 1e6, 1000.0)


def clock_render(mechanism: ClockRender, unit: str | None) -> Game:
    """The joint outcome of one window; the exact loss is that of readings that lie beyond both
    streams on the line through them.
    """
    audited = asked_unit(unit, "window", ("window",))
    clock, noise = mechanism.clock(RATE_HZ), mechanism.noise(RATE_HZ, _SCREEN)
    step_deg = float(noise.step_deg)
    scale = noise.scale
    # beyond the screen there is no place to differ
    r_steps = Fraction(mechanism.r_deg) / noise.step_deg
    apart = min(math.floor(r_steps), math.floor(80.0 / step_deg))
    samples = clock.count * clock.length
    differ = (np.arange(samples) >= clock.aim) & (np.arange(samples) < clock.aim + clock.window)

    def play(side: int, trials: int, seed: int | None) -> Floats:
        scores, several = [], at_a_time(samples)
        for begin in range(0, trials, several):
            rows = min(several, trials - begin)
            slots = NoisySlots(clock, noise, rows, [source(seed, "audit", side, begin)])
            x = np.tile(np.where(differ & (side == 0), apart * step_deg, 0.0), (rows, 1))
            z, v, ok = slots.take(x, np.zeros_like(x), np.ones_like(x, dtype=np.bool_))
            assert ok.all()
            ratio = (np.hypot(z, v) - np.hypot(z - apart * step_deg, v)).sum(axis=1) / (
                scale * step_deg
            )
            scores.append(np.stack((ratio, z.mean(axis=1)), axis=1))
        return np.concatenate(scores)

    description = (
        f"One window of {clock.window} samples at 100 Hz in which {clock.count} are read: two"
        " streams that lie r apart in all of it."
    )
    return Game(audited, float(mechanism.epsilon), description, play, clock.count * apart / scale)
