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

The device of `dpgazesynth` in its reading `corrected`: Ren et al. 2024 with messages of one
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

The device and the curator of `dpgazesynth-one-report`: the promise of `dpgazesynth`, with the
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
together (:mod:`gazeveil.privacy.synthesis.dpgazesynth.model`), or as it is where windows
are few and its noise narrow.
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
from gazeveil.privacy.noise.exact import discrete_laplace
from gazeveil.privacy.noise.lattice import LatticeLaw
from gazeveil.privacy.noise.local import GRR, OUE, FrequencyOracle, Tally, best_oracle
from gazeveil.privacy.noise.planar import planar_laplace
from gazeveil.privacy.randomness.rng import (
    Source,
    SystemSource,
    TestStream,
    Words,
    generator,
    uniform_below,
)
from gazeveil.privacy.synthesis.dpgazesynth.grid import (
    RELATIONS,
    BudgetSplit,
    CellGrid,
    WindowLayout,
    Windows,
    radius_deg,
    window_samples,
    windows_of,
)
from gazeveil.privacy.synthesis.dpgazesynth.messages import (
    Reader,
    Report,
    ReportHeader,
    pack,
    seal,
    width,
)
from gazeveil.privacy.synthesis.dpgazesynth.model import (
    LEAST_WINDOWS,
    PUBLIC_DIRECTIONS,
    Transitions,
    blur,
    even,
    from_directions,
    from_steps,
    histogram,
    rescaled,
    rounded,
    stretched,
    walks,
    worth_undoing,
)

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
