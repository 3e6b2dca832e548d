"""The device of `dpgazesynth` in its reading `corrected`: Ren et al. 2024 with messages of one
shape.

Of each window a device reports, whatever happened in it,

* its start with planar Laplace noise of scale r / epsilon1;
* exactly c fixation times with Laplace noise of scale (2 W - 2) / epsilon2: runs beyond c are added
  to the last, missing ones are 0;
* exactly c - 1 transitions, each by optimised unary encoding with epsilon3 / (c - 1) over the |S|
  steps of the grid and "none".

How many fixations a window has is not reported; it is told from the noisy times.

The device of `dpgazesynth` as the paper prints it: reports for what there is, so that their
number tells what there was.

Fixation times have Laplace noise of scale (2 W - 2) / epsilon2, but as many of them are sent as the
window has fixations; each transition is reported with epsilon3 / (W - 1), but as many as there are.
The noise on starts and times is floating point. On a sphere places are laid flat, 360 x 180.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Ints
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.noise.exact import discrete_laplace
from gazeveil.privacy.noise.local import OUE, FrequencyOracle, Tally
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.randomness.uniform import generator
from gazeveil.privacy.synthesis.dpgazesynth.grid import WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.messages import Reader, Report, ReportHeader
from gazeveil.privacy.synthesis.dpgazesynth.model import from_steps, rescaled, stretched, walks
from gazeveil.privacy.synthesis.dpgazesynth.scheme import (
    MOST_STEPS,
    Model,
    Scheme,
    Streams,
    degrees,
    noisy_starts,
)
from gazeveil.privacy.synthesis.dpgazesynth.windows import Windows


@dataclass(frozen=True)
class Corrected(Scheme):
    """The smallest change to Ren et al. 2024 that makes its claim true."""

    def questions(self, plan: WindowLayout) -> dict[str, FrequencyOracle]:
        """One: which step of the grid, or none."""
        return {"steps": OUE(plan.moves / (self.cap - 1), plan.grid.transitions + 1)}

    def due(self, plan: WindowLayout, report: Report) -> dict[str, int]:
        """Every slot of every window is answered."""
        return {"steps": len(report) * (self.cap - 1)}

    def ask(
        self, plan: WindowLayout, head: ReportHeader, windows: Windows, streams: Streams
    ) -> tuple[Report, dict[str, Ints]]:
        """Noise on starts and times; steps of every slot."""
        x, y = degrees(
            plan, noisy_starts(plan, windows.x_deg, windows.y_deg, streams.source("starts"))
        )
        times = windows.capped(self.cap)
        noise = discrete_laplace(
            plan.time_scale, times.size, Words(streams.source("times"))
        ).reshape(times.shape)
        noisy = np.clip(times + noise, -MOST_STEPS, MOST_STEPS).astype(np.float64)
        cells, directions = windows.slots(plan.grid, self.cap)
        step = np.where(cells >= 0, plan.grid.number[cells, directions], plan.grid.transitions)
        return Report(head, x, y, np.full(len(windows), self.cap, dtype=np.int64), noisy), {
            "steps": step.ravel()
        }

    def learn(
        self,
        plans: Mapping[Space, WindowLayout],
        sums: Mapping[str, Tally],
        reports: Sequence[Report],
    ) -> Model:
        """Counts of steps without their bias, one row per cell."""
        plan = next(iter(plans.values()))
        oracle, tally = self.questions(plan)["steps"], sums["steps"]
        transitions, learned = from_steps(
            plan.grid, oracle.estimate(tally)[:-1], float(oracle.variance(tally.reports))
        )
        return Model(transitions, learned={"steps": learned})

    def walk(
        self, plan: WindowLayout, model: Model, report: Report, rng: np.random.Generator
    ) -> tuple[Ints, Ints]:
        """From the noisy cell, as long as the noisy times say."""
        lengths = stretched(report.lengths, plan.samples)
        starts = plan.grid.cells(report.x_deg, report.y_deg)
        return (
            walks(plan.grid, model.transitions, starts, (lengths > 0).sum(axis=1), self.cap, rng),
            lengths,
        )


@dataclass(frozen=True)
class PublishedScheme(Scheme):
    """Ren et al. 2024 with what it gives away."""

    def wraps(self, space: Space) -> bool:
        """Ren et al. 2024 knows flat screens alone."""
        return False

    def questions(self, plan: WindowLayout) -> dict[str, FrequencyOracle]:
        """Which step of the grid; budgets differ with W, so sums of different W are kept apart."""
        return {
            f"steps of {plan.samples}": OUE(plan.moves / (plan.samples - 1), plan.grid.transitions)
        }

    def due(self, plan: WindowLayout, report: Report) -> dict[str, int]:
        """One answer for each transition."""
        return dict.fromkeys(self.questions(plan), int(report.counts.sum()) - len(report))

    def ask(
        self, plan: WindowLayout, head: ReportHeader, windows: Windows, streams: Streams
    ) -> tuple[Report, dict[str, Ints]]:
        """Noise on starts and times; every transition."""
        rng = generator(streams.source("floats"))
        turn = rng.uniform(0.0, 2.0 * np.pi, len(windows))
        away = rng.gamma(2.0, float(plan.r_deg / plan.starts), len(windows))
        counts, most = windows.counts, int(windows.counts.max()) if len(windows) else 0
        lengths = np.zeros((len(windows), most))
        lengths[windows.window, windows.place] = windows.length + rng.laplace(
            0.0, float(plan.time_scale), len(windows.length)
        )
        _, _, cells, directions = windows.moves(plan.grid)
        report = Report(
            head,
            windows.x_deg + away * np.cos(turn),
            windows.y_deg + away * np.sin(turn),
            counts,
            lengths,
        )
        return report, dict.fromkeys(self.questions(plan), plan.grid.number[cells, directions])

    def learn(
        self,
        plans: Mapping[Space, WindowLayout],
        sums: Mapping[str, Tally],
        reports: Sequence[Report],
    ) -> Model:
        """Counts of steps without their bias, added over all W, one row per cell."""
        plan = next(iter(plans.values()))
        counts, variance = np.zeros(plan.grid.transitions), 0.0
        for name, tally in sums.items():
            samples = int(name.rpartition(" ")[2])
            oracle = OUE(plan.moves / (samples - 1), plan.grid.transitions)
            counts += oracle.estimate(tally)
            variance += float(oracle.variance(tally.reports))
        transitions, learned = from_steps(plan.grid, counts, variance)
        return Model(transitions, learned={"steps": learned})

    def walk(
        self, plan: WindowLayout, model: Model, report: Report, rng: np.random.Generator
    ) -> tuple[Ints, Ints]:
        """From the noisy cell, with as many runs as there were."""
        lengths = rescaled(report.lengths, report.counts, plan.samples)
        starts = plan.grid.cells(report.x_deg, report.y_deg)
        return (
            walks(plan.grid, model.transitions, starts, report.counts, lengths.shape[1], rng),
            lengths,
        )

    def to_body(self, plan: WindowLayout, report: Report) -> bytes:
        """Counts, starts, times of different number, answers of different number."""
        there = np.arange(report.lengths.shape[1]) < report.counts[:, None]
        parts = [
            report.counts.astype("<u2"),
            np.column_stack((report.x_deg, report.y_deg)).astype("<f8"),
            report.lengths[there].astype("<f8"),
        ]
        return b"".join(
            np.ascontiguousarray(p).tobytes() for p in (*parts, *report.answers.values())
        )

    def from_body(self, plan: WindowLayout, head: ReportHeader, body: bytes | memoryview) -> Report:
        """A report from bytes that a stranger sent."""
        reader, windows = Reader(body), -(-head.samples // plan.samples)
        counts = reader.take("<u2", windows).astype(np.int64)
        if ((counts < 1) | (counts > plan.samples)).any():
            raise DataError("a window has no fixation, or more than it has samples")
        places = reader.take("<f8", windows, 2).astype(np.float64)
        flat = reader.take("<f8", int(counts.sum())).astype(np.float64)
        if not (np.isfinite(places).all() and np.isfinite(flat).all()):
            raise DataError("a number is out of range")
        lengths = np.zeros((windows, int(counts.max()) if windows else 0))
        lengths[np.arange(lengths.shape[1]) < counts[:, None]] = flat
        return self._with_answers(
            plan, Report(head, places[:, 0], places[:, 1], counts, lengths), reader
        )
