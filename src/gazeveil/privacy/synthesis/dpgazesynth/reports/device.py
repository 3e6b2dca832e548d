"""The device of `dpgazesynth` in its reading `corrected`: Ren et al. 2024 with messages of one
shape.

Of each window a device reports, whatever happened in it,

* its start with planar Laplace noise of scale r / epsilon1;
* exactly c fixation times with Laplace noise of scale (2 W - 2) / epsilon2: runs beyond c are added
  to the last, missing ones are 0;
* exactly c - 1 transitions, each by optimised unary encoding with epsilon3 / (c - 1) over the |S|
  steps of the grid and "none".

How many fixations a window has is not reported; it is told from the noisy times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Ints
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.noise.exact import discrete_laplace
from gazeveil.privacy.noise.frequency_oracle import FrequencyOracle, Tally
from gazeveil.privacy.noise.local import OUE
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.synthesis.dpgazesynth.curation.lengths import stretched
from gazeveil.privacy.synthesis.dpgazesynth.curation.model import from_steps
from gazeveil.privacy.synthesis.dpgazesynth.curation.synthesis import walks
from gazeveil.privacy.synthesis.dpgazesynth.places import MOST_STEPS, degrees, noisy_starts
from gazeveil.privacy.synthesis.dpgazesynth.plan import WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.reports.messages import Report, ReportHeader, seal
from gazeveil.privacy.synthesis.dpgazesynth.reports.packing import pack
from gazeveil.privacy.synthesis.dpgazesynth.reports.scheme import Model, Scheme, Streams
from gazeveil.privacy.synthesis.dpgazesynth.windows import Windows, samples_of_window, windows_of

#: Answers that are drawn at a time: a million bits each.
_TOGETHER_BITS = 1 << 23


def head_of(recording: Recording) -> ReportHeader:
    """What is public about a recording."""
    begin = int(recording.t_ns[0]) if len(recording) else 0
    return ReportHeader(*recording.key, recording.rate_hz, len(recording), begin, recording.space)


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


def report(scheme: Scheme, recording: Recording, streams: Streams) -> tuple[WindowLayout, Report]:
    """What a device tells of a recording: everything private is behind noise when this returns."""
    samples = samples_of_window(recording, float(scheme.window_s), "dpgazesynth")
    plan, head = scheme.plan(recording.space, recording.rate_hz), head_of(recording)
    draft, truth = scheme.ask(plan, head, windows_of(recording, plan.grid, samples), streams)
    answers = {}
    for name, oracle in scheme.questions(plan).items():
        words = Words(streams.source("answers", name))
        some = max(1, _TOGETHER_BITS // oracle.categories)
        packed = [
            pack(oracle, oracle.report(truth[name][i : i + some], words))
            for i in range(0, len(truth[name]), some)
        ]
        answers[name] = (
            np.concatenate(packed) if packed else pack(oracle, oracle.report(truth[name], words))
        )
    return plan, Report(head, draft.x_deg, draft.y_deg, draft.counts, draft.lengths, answers)


def message(scheme: Scheme, parameters: str, recording: Recording, streams: Streams) -> bytes:
    """A device's message about a recording, which stays on the device. The curator takes messages
    made under the same public parameters, in words, alone.
    """
    plan, noisy = report(scheme, recording, streams)
    return seal(parameters, noisy.head, scheme.to_body(plan, noisy))
