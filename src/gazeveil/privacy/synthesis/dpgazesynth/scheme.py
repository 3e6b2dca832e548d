"""What the readings of DPGazeSynth have in common: a device asks its windows some questions and
reports noisy answers, a curator adds them up and learns.

A :class:`Scheme` is one way to do that. It says which questions there are, what a device reports,
how that is written down, what is learned from the sums, and how runs of gaze are drawn from it.
Everything private is in :meth:`Scheme.ask`; all that follows looks at noisy answers alone.

Noisy beginnings of windows: planar Laplace noise on a public lattice, so that places r apart
cannot be told from each other by more than epsilon1.

On a screen the noise is that of :mod:`gazeveil.privacy.noise.planar` in the plane of the two
angles; places beside the screen are first brought to its edge, which carries no two places farther
apart. On a sphere it is an arc with density proportional to exp(-arc / scale) by area
(:mod:`gazeveil.privacy.noise.spherical`, proofs/kaleido.md), so that r is an arc everywhere, at the
poles too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.noise.lattice import LatticeLaw
from gazeveil.privacy.noise.local import FrequencyOracle, Tally
from gazeveil.privacy.noise.planar import planar_laplace
from gazeveil.privacy.randomness.rng import Source, SystemSource, TestStream, Words
from gazeveil.privacy.synthesis.dpgazesynth.grid import (
    RELATIONS,
    BudgetSplit,
    CellGrid,
    WindowLayout,
    radius_deg,
)
from gazeveil.privacy.synthesis.dpgazesynth.messages import (
    Reader,
    Report,
    ReportHeader,
    pack,
    seal,
    width,
)
from gazeveil.privacy.synthesis.dpgazesynth.model import Transitions
from gazeveil.privacy.synthesis.dpgazesynth.windows import Windows, window_samples, windows_of

#: Noisy places beyond this many steps are brought back to it: they fit in 32 bits.
MOST_STEPS = (1 << 31) - 1


def noisy_starts(plan: WindowLayout, x_deg: Floats, y_deg: Floats, source: Source) -> Ints:
    """Noisy places in steps of the lattice, shape (windows, 2)."""
    if len(x_deg) == 0:
        return np.empty((0, 2), dtype=np.int64)
    steps = 2.0**plan.step_bits
    if plan.sphere:
        x, y, valid = x_deg[None].copy(), y_deg[None].copy(), np.ones((1, len(x_deg)), dtype=bool)
        LatticeLaw(plan.grid.space, plan.r_deg, plan.starts).sampler([source]).add(x, y, valid)
        return np.column_stack([np.rint(v[0] * steps).astype(np.int64) for v in (x, y)])
    space = plan.grid.space
    assert isinstance(space, Screen)
    # Bringing a place to the nearest one of a rectangle never increases a distance.
    inside = [
        np.clip(v, -side / 2, side / 2)
        for v, side in ((x_deg, space.width_deg), (y_deg, space.height_deg))
    ]
    there = np.column_stack([np.rint(v * steps).astype(np.int64) for v in inside])
    return np.clip(
        there + planar_laplace(plan.start_scale, len(there), Words(source)), -MOST_STEPS, MOST_STEPS
    )


def degrees(plan: WindowLayout, steps: Ints) -> tuple[Floats, Floats]:
    """Noisy places in degrees."""
    places = steps.astype(np.float64) * 2.0**-plan.step_bits
    return places[:, 0], places[:, 1]


class Streams:
    """Random bits of one release: the operating system's for everything, or with a seed test
    streams by name.
    """

    def __init__(self, seed: int | None, *names: str) -> None:
        self.seed, self.names = seed, names
        self._system = SystemSource() if seed is None else None

    def of(self, *names: str) -> Streams:
        """The streams of a part of the work."""
        made = Streams.__new__(Streams)
        made.seed, made.names, made._system = self.seed, (*self.names, *names), self._system
        return made

    def source(self, *names: str) -> Source:
        """The bits for one purpose."""
        if self._system is not None:
            return self._system
        assert self.seed is not None
        return TestStream(self.seed, *self.names, *names)


@dataclass(frozen=True, eq=False)
class Model:
    """What the curator learned; nothing in it is more private than the reports are.

    Parameters
    ----------
    transitions : Transitions
        The chain of cells.
    counts : array of float64, shape (c,)
        Shares of windows with 1, ..., c runs; empty where windows say that themselves.
    lengths : array of float64
        Shares of run lengths in equal parts of a window; empty where windows say that themselves.
    densities : mapping of (space, stimulus) to array of float64, shape (G, G)
        Where windows begin; the stimulus "" stands for all. Empty where noisy starts are taken as
        they are.
    learned : mapping of str to float
        How much of each part comes from reports, 0 to 1.
    """

    transitions: Transitions
    counts: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    lengths: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    densities: Mapping[tuple[Space, str], Floats] = field(default_factory=dict, repr=False)
    learned: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Scheme(ABC):
    """One way to report and to learn; all its parameters are public.

    Parameters
    ----------
    epsilon : Fraction
        Budget of a window.
    G : int
        Cells along each side of the grid.
    r_deg : Fraction or str
        A radius, or the name of a relation between r and G.
    window_s : Fraction
        Length of a window.
    split : BudgetSplit
        Shares of epsilon1, epsilon2, epsilon3.
    cap : int
        c.
    """

    epsilon: Fraction
    G: int
    r_deg: Fraction | str
    window_s: Fraction
    split: BudgetSplit
    cap: int

    def wraps(self, space: Space) -> bool:
        """Whether the first and the last column are neighbours."""
        return isinstance(space, Sphere)

    def plan(self, space: Space, rate_hz: float) -> WindowLayout:
        """The public numbers for recordings of that rate in that space."""
        radius = (
            radius_deg(space, self.G, self.r_deg)
            if isinstance(self.r_deg, str) and self.r_deg in RELATIONS
            else Fraction(self.r_deg)
        )
        samples = window_samples(rate_hz, float(self.window_s))
        budgets = [share * self.epsilon for share in self.split]
        return WindowLayout(
            CellGrid(space, self.G, self.wraps(space)),
            samples,
            rate_hz,
            self.cap,
            radius,
            budgets[0],
            budgets[1],
            budgets[2],
        )

    @abstractmethod
    def questions(self, plan: WindowLayout) -> dict[str, FrequencyOracle]:
        """The questions that are answered through a frequency oracle, by name; sums of the same
        name add up.
        """

    @abstractmethod
    def ask(
        self, plan: WindowLayout, head: ReportHeader, windows: Windows, streams: Streams
    ) -> tuple[Report, dict[str, Ints]]:
        """Noisy starts and times, and for each question the true categories, which only an oracle
        may see.
        """

    @abstractmethod
    def due(self, plan: WindowLayout, report: Report) -> dict[str, int]:
        """How many answers there are to each question."""

    @abstractmethod
    def learn(
        self,
        plans: Mapping[Space, WindowLayout],
        sums: Mapping[str, Tally],
        reports: Sequence[Report],
    ) -> Model:
        """A model from the sums and the noisy starts."""

    @abstractmethod
    def walk(
        self, plan: WindowLayout, model: Model, report: Report, rng: np.random.Generator
    ) -> tuple[Ints, Ints]:
        """Cells and lengths of the runs of each window, both of shape (windows, most runs)."""

    # --- bytes
    # ----------------------------------------------------------------------------------------------

    @property
    def times(self) -> int:
        """Noisy fixation times of a window."""
        return self.cap

    def to_body(self, plan: WindowLayout, report: Report) -> bytes:
        """A report as bytes: starts, fixation times, answers by the name of the question."""
        steps = np.rint(np.column_stack((report.x_deg, report.y_deg)) * 2.0**plan.step_bits)
        parts = [
            steps.astype("<i4"),
            report.lengths.astype("<i4"),
            *(report.answers[n] for n in sorted(report.answers)),
        ]
        return b"".join(np.ascontiguousarray(p).tobytes() for p in parts)

    def from_body(self, plan: WindowLayout, head: ReportHeader, body: bytes | memoryview) -> Report:
        """A report from bytes that a stranger sent.

        Raises
        ------
        DataError
            If the bytes are no such report.
        """
        reader, windows = Reader(body), -(-head.samples // plan.samples)
        if windows * 8 > len(body):
            raise DataError("its body is too short")
        steps = reader.take("<i4", windows, 2).astype(np.float64)
        lengths = reader.take("<i4", windows, self.times).astype(np.float64)
        if (np.abs(steps) > MOST_STEPS).any() or (np.abs(lengths) > MOST_STEPS).any():
            raise DataError("a number is out of range")
        places = steps * 2.0**-plan.step_bits
        report = Report(
            head, places[:, 0], places[:, 1], np.full(windows, self.times, dtype=np.int64), lengths
        )
        return self._with_answers(plan, report, reader)

    def _with_answers(self, plan: WindowLayout, report: Report, reader: Reader) -> Report:
        oracles, due = self.questions(plan), self.due(plan, report)
        answers = {
            name: np.asarray(reader.take("u1", due[name], width(oracles[name])), dtype=np.uint8)
            for name in sorted(oracles)
        }
        reader.finish()
        return Report(
            report.head, report.x_deg, report.y_deg, report.counts, report.lengths, answers
        )


#: Answers that are drawn at a time: a million bits each.
_TOGETHER_BITS = 1 << 23


def looked_at(scheme: Scheme, recording: Recording) -> tuple[WindowLayout, ReportHeader, Windows]:
    """What a device knows of a recording: two public parts, and its windows.

    Raises
    ------
    DataError
        For an unknown rate.
    """
    if not recording.rate_hz > 0:
        raise DataError(
            f"The rate of {recording.title} is not known. Say it: recording.with_(rate_hz=...)."
        )
    begin = int(recording.t_ns[0]) if len(recording) else 0
    plan = scheme.plan(recording.space, recording.rate_hz)
    head = ReportHeader(*recording.key, recording.rate_hz, len(recording), begin, recording.space)
    return plan, head, windows_of(recording, plan.grid, plan.samples)


def report(scheme: Scheme, recording: Recording, streams: Streams) -> tuple[WindowLayout, Report]:
    """What a device tells of a recording: everything private is behind noise when this returns."""
    plan, head, windows = looked_at(scheme, recording)
    draft, truth = scheme.ask(plan, head, windows, streams)
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
