"""The device and the curator of `dpgazesynth-one-report`: the promise of `dpgazesynth`, with the
budget where it tells most.

Of each window a device reports its start as before, and one answer to each of two questions,
whatever happened in it:

* with the whole epsilon3: the direction of one transition, of a slot drawn evenly from the c - 1
  there are, or "none"; the grid is told apart in `zones` x `zones` zones only, and with `order=2`
  by the step before. Reports of the same slot in c - 1 parts would have (c - 1) times the variance
  and more;
* with the whole epsilon2: even windows how many runs they have (generalised randomised response on
  1 ... c), odd windows how long one of their runs is, in eight equal parts of a window.

The oracle of each question is the one with the least variance. The curator learns directions,
numbers and lengths of runs of the whole population and draws all windows from these; of a single
window it keeps the noisy start alone, drawn from what that and the density of all starts say
together (:mod:`gazeveil.privacy.synthesis.dpgazesynth.curation.prior`), or as it is where windows
are few and its noise narrow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.noise.frequency_oracle import FrequencyOracle, Tally
from gazeveil.privacy.noise.local import GRR, best_oracle
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.randomness.uniform import uniform_below
from gazeveil.privacy.synthesis.dpgazesynth.curation.lengths import rounded
from gazeveil.privacy.synthesis.dpgazesynth.curation.model import Levels, histogram, zone_of
from gazeveil.privacy.synthesis.dpgazesynth.curation.prior import (
    LEAST_WINDOWS,
    blur,
    even,
    worth_undoing,
)
from gazeveil.privacy.synthesis.dpgazesynth.curation.synthesis import walks
from gazeveil.privacy.synthesis.dpgazesynth.places import degrees, noisy_starts
from gazeveil.privacy.synthesis.dpgazesynth.plan import WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.reports.messages import Report, ReportHeader
from gazeveil.privacy.synthesis.dpgazesynth.reports.scheme import Model, Scheme, Streams
from gazeveil.privacy.synthesis.dpgazesynth.windows import Windows

#: Equal parts of a window that run lengths are told apart by.
PARTS = 8

#: Directions are told from public ones by n windows once n times this exceeds the variance of a
#: report: f**2 D**2 / 17, f = 0.8 the share of slots with a transition, D**2 = 0.003 the squared
#: distance of true from public directions, and 17 what noise alone reaches once in a thousand
#: times.
_TELLS = 0.8**2 * 0.003 / 17
_MOST_ZONES = 16


# Weighing four oracles against each other takes longer than using one.
_best = lru_cache(maxsize=64)(best_oracle)


def public_zones(windows: int, moves: Fraction) -> int:
    """Zones along each side for that many windows with epsilon3 each: a rule on public numbers.

    In z x z zones the sums over zones have z**2 times the variance, and what a zone has of its own
    stands against the noise of z**2 times as many counts: telling zones apart takes about z**3
    times as many windows as telling directions.

    Examples
    --------
    >>> [public_zones(n, Fraction(1, 5)) for n in (10_000, 1_000_000, 100_000_000)]
    [1, 1, 4]
    """
    # variance of one report of a rare category, whichever oracle is used: close to that of OUE
    each = float(best_oracle(moves, 9, among=("oue",)).variance(1))
    return min(_MOST_ZONES, max(1, math.floor((windows * _TELLS / each) ** (1 / 3))))


@dataclass(frozen=True)
class OneReport(Scheme):
    """One report per question and window.

    Parameters
    ----------
    zones : int
        Zones along each side of the grid.
    order : int
        1, or 2 for a chain that knows the step before.
    """

    zones: int = 1
    order: int = 1

    @property
    def _before(self) -> int:
        return 9 if self.order == 2 else 1

    @property
    def times(self) -> int:
        """No fixation times are sent."""
        return 0

    def questions(self, plan: WindowLayout) -> dict[str, FrequencyOracle]:
        """Which way in which zone; how many runs; how long one of them is."""
        return {
            "steps": _best(plan.moves, 8 * self.zones**2 * self._before + 1),
            "counts": GRR(plan.times, self.cap),
            "lengths": _best(plan.times, PARTS),
        }

    def due(self, plan: WindowLayout, report: Report) -> dict[str, int]:
        """One step from every window, and one of the others in turn."""
        return {"steps": len(report), "counts": (len(report) + 1) // 2, "lengths": len(report) // 2}

    def ask(
        self, plan: WindowLayout, head: ReportHeader, windows: Windows, streams: Streams
    ) -> tuple[Report, dict[str, Ints]]:
        """Noise on starts; one slot of each window, and its number of runs or the length of one."""
        return self.ask_from(0, plan, head, windows, streams)

    def ask_from(
        self, first: int, plan: WindowLayout, head: ReportHeader, windows: Windows, streams: Streams
    ) -> tuple[Report, dict[str, Ints]]:
        """The same for windows of which `first` is the number of the first in its recording: even
        ones say how many runs they have, odd ones how long one of them is.
        """
        x, y = degrees(
            plan, noisy_starts(plan, windows.x_deg, windows.y_deg, streams.source("starts"))
        )
        n, words = len(windows), Words(streams.source("slots"))
        every = np.arange(n)
        cells, directions = windows.slots(plan.grid, self.cap)
        slot = uniform_below(np.full(n, self.cap - 1), words)
        cell, direction = cells[every, slot], directions[every, slot]
        step = zone_of(plan.grid, self.zones)[np.maximum(cell, 0)]
        if self.order == 2:
            before = np.where(slot > 0, directions[every, np.maximum(slot - 1, 0)], 8)
            step = step * 9 + before
        step = np.where(cell >= 0, step * 8 + direction, 8 * self.zones**2 * self._before)
        runs, times = np.minimum(windows.counts, self.cap), windows.capped(self.cap)
        run = times[every, uniform_below(runs, words)] if n else np.empty(0, dtype=np.int64)
        length = np.minimum((run - 1) * PARTS // plan.samples, PARTS - 1)
        report = Report(head, x, y, np.zeros(n, dtype=np.int64), np.zeros((n, 0)))
        return report, {
            "steps": step,
            "counts": runs[first % 2 :: 2] - 1,
            "lengths": length[(first + 1) % 2 :: 2],
        }

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
        steps = (
            oracles["steps"].estimate(sums["steps"])[:-1].reshape(self.zones**2, self._before, 8)
        )
        occupied = next(
            (d for (_, stimulus), d in densities.items() if stimulus == ""), even(plan.grid)
        ).ravel()
        levels = Levels(
            plan.grid,
            steps,
            sums["steps"].reports,
            float(oracles["steps"].variance(max(sums["steps"].reports, 1))),
            occupied,
        )
        transitions, kept = levels.transitions()
        learned |= {"directions": kept.directions, "zones": kept.zones, "turns": kept.turns}
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
