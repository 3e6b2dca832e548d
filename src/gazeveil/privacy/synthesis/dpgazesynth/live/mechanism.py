"""`dpgazesynth-live`: DPGazeSynth while samples come, on the device itself.

Ren et al. 2024 sends what a device reports of its windows to a curator, who draws gaze when all
have reported. Here the device is its own curator: of each public window of W samples it draws one
report as `dpgazesynth-one-report` does (a noisy start, one noisy step, how many runs there are or
how long one is), adds its own noisy answers up, and shows gaze drawn from them during the next
window. What leaves it is drawn from reports and public randomness alone, so the promise is that of
the report: nothing is promised less because the gaze is shown live, and nothing more.

`budget` is what the stream may spend in all: once the next window would exceed it, gaze is not
looked at any more, and samples come out as lost. Proof: proofs/dpgazesynth-live.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from gazeveil import checks
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.noise.arithmetic import ASSUMPTION as ARC_ASSUMPTION
from gazeveil.privacy.noise.exact import tail_delta
from gazeveil.privacy.noise.planar import planar_delta
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.randomness.rng import ASSUMPTION as BITS_ASSUMPTION
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.stage import Stage
from gazeveil.privacy.synthesis.dpgazesynth.live.device import LiveDevice, StreamBits
from gazeveil.privacy.synthesis.dpgazesynth.live.stage import LiveStage
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import (
    REN2024,
    DPGazeSynthOneReport,
    check_windows,
)
from gazeveil.privacy.synthesis.dpgazesynth.plan import BudgetSplit, WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.reports.one_report import OneReport
from gazeveil.privacy.synthesis.dpgazesynth.windows_map import WindowsMap


@dataclass(frozen=True)
class DPGazeSynthLive(StreamMechanism):
    """Synthetic gaze instead of gaze, one public window late.

    Parameters
    ----------
    epsilon, G, r_deg, window_s, split, cap, motion
        As of :class:`~gazeveil.privacy.synthesis.dpgazesynth.mechanism.DPGazeSynthOneReport`.
    budget : number, optional
        Epsilon that the whole stream may spend, at least one window's; None for as long as it
        lasts.

    Examples
    --------
    >>> DPGazeSynthLive(1, budget=60).windows
    60
    """

    name: ClassVar[str] = "dpgazesynth-live"
    label: ClassVar[str] = "DPGazeSynth, live"
    summary: ClassVar[str] = (
        "Shows synthetic gaze drawn from randomised reports of the windows before, live."
    )
    plot: ClassVar[PlotRecipe] = PlotRecipe("streams", (":epsilon=30", ":epsilon=3"))
    kind: ClassVar[str] = "stream"
    paper: ClassVar[str] = REN2024
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-w-r-t-dp", "window", "proved", "one report per window, its own curator"
        )
    }

    epsilon: Number
    G: int = 60
    r_deg: Number | None = None
    window_s: Number = Fraction(1, 2)
    split: Iterable[Number] | str = BudgetSplit((Fraction(3, 5), Fraction(1, 5), Fraction(1, 5)))
    cap: int = 6
    motion: str | None = None
    budget: Number | None = None

    def check(self) -> None:
        """Store exact numbers."""
        check_windows(self)
        if self.budget is None:
            return
        budget = exact(self.name, "budget", self.budget, above=0)
        if budget < Fraction(self.epsilon):
            checks.refuse(
                self.name,
                "budget",
                f"at least epsilon of one window, {self.epsilon}",
                self.budget,
                "Leave it out for a stream without an end.",
            )
        self.store("budget", budget)

    @property
    def windows(self) -> int | None:
        """Windows that the budget pays for; None for any number."""
        return None if self.budget is None else int(Fraction(self.budget) / Fraction(self.epsilon))

    @property
    def one_report(self) -> DPGazeSynthOneReport:
        """The same windows with a curator elsewhere."""
        return DPGazeSynthOneReport(
            self.epsilon,
            self.G,
            self.r_deg,
            self.window_s,
            self.split,
            self.cap,
            self.motion,
            zones=1,
        )

    @property
    def hides_losses(self) -> bool:
        """Always: a lost sample counts for the run before it."""
        return True

    def layout(self, rate_hz: float, space: Space) -> WindowLayout:
        """The public numbers of a stream."""
        rate = checks.positive(self.name, "rate_hz", rate_hz)
        return self.one_report.scheme().plan(space, rate)

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """(epsilon, w, r, t)-DP of every window of the public grid, and with a budget of the whole
        stream.
        """
        plan, window_s = self.layout(rate_hz, space), Fraction(self.window_s)
        sphere = isinstance(space, Sphere)
        start = Fraction(1, 1 << 370) if sphere else planar_delta(plan.start_scale)
        delta = start + tail_delta(Fraction(self.epsilon), 1 << 10)
        return Guarantee(
            "epsilon-w-r-t-dp",
            WindowsMap.of(plan, window_s, delta, self.windows),
            Change.window(seconds=window_s, start_deg=plan.r_deg),
            mechanism=self.title,
            assumptions=(
                BITS_ASSUMPTION,
                *((ARC_ASSUMPTION,) if sphere else ()),
                "the grid, the windows, the cap and the rate are public",
            ),
            reason="proofs/dpgazesynth-live.md",
        )

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """A device for each stream."""
        plan, scheme = self.layout(rate_hz, space), self.one_report.scheme()
        assert isinstance(scheme, OneReport)
        sources = bits.sources(streams, self.name, self.reading)
        # One source of the operating system serves all streams: it never gives a word twice.
        each = sources if len(sources) == streams else sources * streams
        made = [
            LiveDevice(scheme, plan, self.motion or "public", StreamBits(source), self.windows)
            for source in each
        ]
        return LiveStage(made, plan.samples)

    def audit_game(self, unit: str | None) -> Game:
        """The game of the reports: what is shown is drawn from them alone."""
        return self.one_report.audit_game(unit)
