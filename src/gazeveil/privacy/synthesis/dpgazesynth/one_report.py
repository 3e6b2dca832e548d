"""The device and the curator of `dpgazesynth-one-report`: the promise of `dpgazesynth`, with the
budget where it tells most.

Of each window a device reports its start as before, and one answer to each of two questions,
whatever happened in it:

* with the whole epsilon3: the direction of one transition, of a slot drawn evenly from the c - 1
  there are, or "none". Reports of the same slot in c - 1 parts would have (c - 1) times the
  variance and more;
* with the whole epsilon2: even windows how many runs they have (generalised randomised response on
  1 ... c), odd windows how long one of their runs is, in eight equal parts of a window.

The oracle of each question is the one with the least variance. The curator learns directions,
numbers and lengths of runs of the whole population and draws all windows from these; of a single
window it keeps the noisy start alone, drawn from what that and the density of all starts say
together (:mod:`gazeveil.privacy.synthesis.dpgazesynth.prior`), or as it is where windows
are few and its noise narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.noise.local import GRR, FrequencyOracle, Tally, best_oracle
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.randomness.uniform import uniform_below
from gazeveil.privacy.synthesis.dpgazesynth.grid import WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.messages import Report, ReportHeader
from gazeveil.privacy.synthesis.dpgazesynth.model import (
    PUBLIC_DIRECTIONS,
    from_directions,
    histogram,
    rounded,
    walks,
)
from gazeveil.privacy.synthesis.dpgazesynth.prior import LEAST_WINDOWS, blur, even, worth_undoing
from gazeveil.privacy.synthesis.dpgazesynth.scheme import (
    Model,
    Scheme,
    Streams,
    degrees,
    noisy_starts,
)
from gazeveil.privacy.synthesis.dpgazesynth.windows import Windows

#: Equal parts of a window that run lengths are told apart by.
PARTS = 8


@dataclass(frozen=True)
class OneReport(Scheme):
    """One report per question and window."""

    @property
    def times(self) -> int:
        """No fixation times are sent."""
        return 0

    def questions(self, plan: WindowLayout) -> dict[str, FrequencyOracle]:
        """Which way in which zone; how many runs; how long one of them is."""
        return {
            "steps": best_oracle(plan.moves, 9),
            "counts": GRR(plan.times, self.cap),
            "lengths": best_oracle(plan.times, PARTS),
        }

    def due(self, plan: WindowLayout, report: Report) -> dict[str, int]:
        """One step from every window, and one of the others in turn."""
        return {"steps": len(report), "counts": (len(report) + 1) // 2, "lengths": len(report) // 2}

    def ask(
        self, plan: WindowLayout, head: ReportHeader, windows: Windows, streams: Streams
    ) -> tuple[Report, dict[str, Ints]]:
        """Noise on starts; one slot of each window, and its number of runs or the length of one."""
        x, y = degrees(
            plan, noisy_starts(plan, windows.x_deg, windows.y_deg, streams.source("starts"))
        )
        n, words = len(windows), Words(streams.source("slots"))
        every = np.arange(n)
        cells, directions = windows.slots(plan.grid, self.cap)
        slot = uniform_below(np.full(n, self.cap - 1), words)
        cell, direction = cells[every, slot], directions[every, slot]
        step = np.where(cell >= 0, direction, 8)
        runs, times = np.minimum(windows.counts, self.cap), windows.capped(self.cap)
        run = times[every, uniform_below(runs, words)] if n else np.empty(0, dtype=np.int64)
        length = np.minimum((run - 1) * PARTS // plan.samples, PARTS - 1)
        report = Report(head, x, y, np.zeros(n, dtype=np.int64), np.zeros((n, 0)))
        return report, {"steps": step, "counts": runs[::2] - 1, "lengths": length[1::2]}

    def learn(
        self,
        plans: Mapping[Space, WindowLayout],
        sums: Mapping[str, Tally],
        reports: Sequence[Report],
    ) -> Model:
        """Each part as far as the reports tell it from what is public."""
        plan = next(iter(plans.values()))
        oracles = self.questions(plan)
        densities = _densities(plans, reports)
        shares, learned = {}, {}
        for name, size in (("counts", self.cap), ("lengths", PARTS)):
            variance = float(oracles[name].variance(max(sums[name].reports, 1), Fraction(1, size)))
            shares[name], learned[name] = histogram(
                oracles[name].estimate(sums[name]),
                sums[name].reports,
                variance,
                np.full(size, 1.0 / size),
            )
        shares["directions"], learned["directions"] = histogram(
            oracles["steps"].estimate(sums["steps"])[:-1],
            sums["steps"].reports,
            float(oracles["steps"].variance(max(sums["steps"].reports, 1))),
            PUBLIC_DIRECTIONS,
        )
        transitions = from_directions(plan.grid, shares["directions"], learned["directions"] > 0)
        return Model(transitions, shares["counts"], shares["lengths"], densities, learned)

    def walk(
        self, plan: WindowLayout, model: Model, report: Report, rng: np.random.Generator
    ) -> tuple[Ints, Ints]:
        """From a cell that the noisy start and the density of starts agree on, with runs of the
        population.
        """
        n = len(report)
        density = model.densities.get(
            (report.head.space, report.head.stimulus), model.densities.get((report.head.space, ""))
        )
        if density is None:
            starts = plan.grid.cells(report.x_deg, report.y_deg)
        else:
            noise = blur(plan.grid, plan.start_scale_deg)
            starts = noise.drawn(*noise.bins(report.x_deg, report.y_deg), density, rng)
        counts = np.minimum(1 + rng.choice(self.cap, size=n, p=model.counts), plan.samples)
        lengths = _lengths(counts, model.lengths, self.cap, plan.samples, rng)
        return walks(plan.grid, model.transitions, starts, counts, self.cap, rng), lengths


def _densities(
    plans: Mapping[Space, WindowLayout], reports: Sequence[Report]
) -> dict[tuple[Space, str], Floats]:
    """The density of true starts of each space where it tells more than the noisy starts do: of all
    stimuli, and of each with enough windows.
    """
    densities: dict[tuple[Space, str], Floats] = {}
    for space, plan in plans.items():
        if not worth_undoing(
            plan.grid, plan.start_scale_deg, sum(len(r) for r in reports if r.head.space == space)
        ):
            continue
        noise = blur(plan.grid, plan.start_scale_deg)
        starts: dict[str, Floats] = {}
        for report in reports:
            if report.head.space == space and len(report):
                counted = noise.counted(*noise.bins(report.x_deg, report.y_deg))
                starts[report.head.stimulus] = (
                    starts[report.head.stimulus] + counted
                    if report.head.stimulus in starts
                    else counted
                )
        if not starts:
            continue
        everything = noise.density(np.sum(list(starts.values()), axis=0), even(plan.grid))
        densities[space, ""] = everything
        for stimulus in sorted(starts):
            if len(starts) > 1 and starts[stimulus].sum() >= LEAST_WINDOWS:
                densities[space, stimulus] = noise.density(starts[stimulus], everything)
    return densities


def _lengths(
    counts: Ints, shares: Floats, most: int, samples: int, rng: np.random.Generator
) -> Ints:
    """Run lengths of windows with so many runs: parts of a window drawn from the population's,
    stretched to W; at least 1 each.
    """
    drawn = (
        rng.choice(len(shares), size=(len(counts), most), p=shares)
        + rng.random((len(counts), most))
    ) / len(shares)
    there = np.arange(most) < counts[:, None]
    kept = np.where(there, np.maximum(drawn, 1e-9), 0.0)
    rest = samples - counts
    return rounded(kept * (rest / kept.sum(axis=1))[:, None], rest) + there
