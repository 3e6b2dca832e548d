"""The device of `dpgazesynth` as the paper prints it: reports for what there is, so that their
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
from gazeveil.privacy.noise.frequency_oracle import FrequencyOracle, Tally
from gazeveil.privacy.noise.local import OUE
from gazeveil.privacy.randomness.uniform import generator
from gazeveil.privacy.synthesis.dpgazesynth.curation.lengths import rescaled
from gazeveil.privacy.synthesis.dpgazesynth.curation.model import from_steps
from gazeveil.privacy.synthesis.dpgazesynth.curation.synthesis import walks
from gazeveil.privacy.synthesis.dpgazesynth.plan import WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.reports.messages import Reader, Report, ReportHeader
from gazeveil.privacy.synthesis.dpgazesynth.reports.scheme import Model, Scheme, Streams
from gazeveil.privacy.synthesis.dpgazesynth.windows import Windows


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
