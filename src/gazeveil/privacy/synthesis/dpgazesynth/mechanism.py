"""`dpgazesynth` and `dpgazesynth-one-report`: gaze drawn from what devices report of their windows
(Ren et al. 2024), devices and curator in one process.

Ren et al., "DPGazeSynth: Enhancing eye-tracking virtual reality privacy with differentially
private data synthesis", 2024. A window of W samples spends epsilon1 on where it begins (planar
Laplace noise, r / epsilon1), epsilon2 on its fixation times and epsilon3 on its transitions between
cells of a public G x G grid; gaze is drawn from noisy starts, noisy times and the transition model
of the population.

* `published` is the paper as printed; it sends as many times and transitions as there were, and
  so tells their number.
* `corrected` sends exactly c times and c - 1 transitions of every window
  (:mod:`gazeveil.privacy.synthesis.dpgazesynth.scheme`).
* `dpgazesynth-one-report` sends one transition with the whole epsilon3
  (:mod:`gazeveil.privacy.synthesis.dpgazesynth.scheme`).

A release in one process gives what devices and a curator in processes of their own would give
(`gazeveil randomize`, `gazeveil curate`): the sums of unary reports are drawn with their own law
instead of bit by bit (:mod:`gazeveil.privacy.synthesis.dpgazesynth.curator`). Proofs:
proofs/dpgazesynth.md, proofs/dpgazesynth-one-report.md.

The promise is about windows on a public grid, each with noise of its own for where it begins and
for all else.

A window that is replaced by any other loses epsilon2 + epsilon3, and epsilon1 for every r by which
its beginning moves. Replacing a person moves beginnings anywhere, so a person with T windows loses
T (epsilon2 + epsilon3 + epsilon1 ceil(diameter / r)), not T epsilon. Samples in a row that are not
a window of the grid touch more windows than they fill.

What shuffling adds is said besides: the loss of reports if a shuffler between devices and curator
removes names and order.

Feldman, McMillan and Talwar, "Hiding Among the Clones: A Simple and Nearly Optimal Analysis of
Privacy Amplification by Shuffling" (2021), Theorem 3.1: n reports of which each is epsilon0-locally
private are, once shuffled, (epsilon, delta)-private with

    epsilon = ln(1 + (e^epsilon0 - 1) / (e^epsilon0 + 1) (8 sqrt(e^epsilon0 ln(4 / delta)) / sqrt(n)
    + 8 e^epsilon0 / n)),

for epsilon0 <= ln(n / (16 ln(2 / delta))). It assumes that the shuffler is honest, that who looks
sees the shuffled reports alone, and that all n devices report as they should.

Games for reports about windows: DPGazeSynth's devices on two windows that differ as much as
neighbours may.

The first window stays where it begins; the second begins r away and has as many runs as are told
apart, each one cell to the right of the last. They differ in the start, in every fixation time that
can differ, and in every slot of transitions, so all parts of the budget are spent at once. What is
judged is the whole message: the logarithm of its likelihood ratio. For `published` the number of
fixation times alone tells the two apart.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import GAME_SCREEN, Game, asked_unit
from gazeveil.privacy.composition import RecordingsMap
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.noise.arithmetic import ASSUMPTION as ARC_ASSUMPTION
from gazeveil.privacy.noise.exact import laplace_scale, tail_delta
from gazeveil.privacy.noise.local import GRR, OUE, FrequencyOracle
from gazeveil.privacy.noise.planar import PLANAR_DELTA, raised_scale
from gazeveil.privacy.promise.loss import Change, Loss, PromiseError, raised
from gazeveil.privacy.promise.privacy_map import HALF_TURN_DEG, StreamMap
from gazeveil.privacy.randomness.rng import ASSUMPTION as BITS_ASSUMPTION
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.rational import Number, exact, format_exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.synthesis.dpgazesynth.curator import collect, private_windows, synthetic
from gazeveil.privacy.synthesis.dpgazesynth.grid import (
    RELATIONS,
    BudgetSplit,
    WindowLayout,
    Windows,
)
from gazeveil.privacy.synthesis.dpgazesynth.messages import ReportHeader
from gazeveil.privacy.synthesis.dpgazesynth.scheme import (
    Corrected,
    OneReport,
    PublishedScheme,
    Scheme,
    Streams,
)

REN2024 = (
    'Ren et al., "DPGazeSynth: Enhancing eye-tracking virtual reality privacy with'
    ' differentially private data synthesis", 2024'
)

MOST_G = 256
MOST_CAP = 64

_NOT_COVERED = ("how long each recording is, when it begins and at what rate", "who saw what")
_REFUTED = (
    "the number of fixations of a window, and with it the number of its transition reports, is sent"
    " as it is, so that windows with different numbers are told apart with certainty (the proof"
    " compares windows with the same number alone), and the noise on starts and times is floating"
    " point"
)


@dataclass(frozen=True)
class Synthesis(Mechanism[Cohort]):
    """What both mechanisms share.

    Parameters
    ----------
    epsilon : number
        Budget of one window, 1/1000 to 100.
    G : int
        Cells along each side of the grid, 2 to 256.
    r_deg : number or str, optional
        How far apart two windows may begin, in degrees. `eq8` is min(width, height) / (6 G), Ren
        et al.'s (2024) equation (8), and the default of `published`; `table` is 3 min(width,
        height) / G, what the labels of its tables mean, and the default of `corrected`.
    window_s : number
        Seconds of a window.
    split : three shares, or text such as "3:1:1"
        Of epsilon for starts, fixation times and transitions.
    cap : int
        Most runs of a window that are told apart, 2 to 64.
    """

    kind: ClassVar[str] = "cohort"
    noise_unit: ClassVar[str] = "fit"
    paper: ClassVar[str] = REN2024

    epsilon: Number
    G: int = 60
    r_deg: Number | None = None
    window_s: Number = Fraction(1, 2)
    split: Iterable[Number] | str = BudgetSplit((Fraction(3, 5), Fraction(1, 5), Fraction(1, 5)))
    cap: int = 6

    def check(self) -> None:
        """Store exact numbers."""
        for name, least, above, most in (
            ("epsilon", Fraction(1, 1000), None, 100),
            ("window_s", None, 0, 60),
        ):
            value = exact(self.name, name, getattr(self, name), least, above)
            if value > most:
                checks.refuse(self.name, name, f"at most {most}", value)
            self.store(name, value)
        self.store("split", BudgetSplit.of(self.split, self.name))
        for name, most in (("G", MOST_G), ("cap", MOST_CAP)):
            if checks.count(self.name, name, getattr(self, name), least=2) > most:
                checks.refuse(self.name, name, f"at most {most}", getattr(self, name))
        if self.r_deg is None or self.r_deg in RELATIONS:
            return
        radius = exact(self.name, "r_deg", self.r_deg, least=Fraction(1, 1024))
        if radius > 360:
            checks.refuse(self.name, "r_deg", "at most 360, or one of eq8, table", self.r_deg)
        self.store("r_deg", radius)

    @property
    def still(self) -> bool:
        """Whether samples of a run repeat one place, as Ren et al. 2024 has it, instead of moving
        as a public eye does: event detectors take jumps for tracker noise.
        """
        return self.reading == "published"

    @property
    @abstractmethod
    def kind_of_scheme(self) -> type[Scheme]:
        """The scheme of the reading."""

    def scheme(self) -> Scheme:
        """How devices report and what is learned from it."""
        radius = self.r_deg or ("eq8" if self.reading == "published" else "table")
        return self.kind_of_scheme(
            Fraction(self.epsilon),
            self.G,
            radius if isinstance(radius, str) else Fraction(radius),
            Fraction(self.window_s),
            BudgetSplit.of(self.split),
            self.cap,
        )

    @abstractmethod
    def promise(self, recordings: Iterable[tuple[str, WindowLayout, int]]) -> Guarantee:
        """What a release promises, from what is public about each recording: person, plan and
        samples.
        """

    def release(
        self, data: Cohort, seed: int | None = None, keep: Iterable[str] = ()
    ) -> Release[Cohort]:
        """Replace every recording by a synthetic one of the same length. Attributes of people are
        not passed on.

        Parameters
        ----------
        data : Cohort
            Recordings; those that are still files are read once, and their synthetic ones are drawn
            when they are loaded.
        seed : int, optional
            A test stream.
        keep : names
            Nothing can be kept: labels of raw samples do not belong to synthetic ones.

        Raises
        ------
        DataError
            For a cohort without recordings, of screens and spheres, or with a recording whose rate
            is not known.
        """
        if not isinstance(data, Cohort):
            checks.refuse(self.name, "data", "a Cohort", data)
        if tuple(keep):
            raise DataError(
                f"{self.name} draws new samples, so labels and other channels of the raw ones"
                " cannot be kept. Detect events in the release again."
            )
        if len(data) == 0:
            raise DataError("This cohort has no recordings. Nothing was released.")
        streams = Streams(seed, self.name, self.reading)
        scheme = self.scheme()
        private = list(private_windows(scheme, data))
        curator = collect(scheme, str(self), private, streams)
        model = curator.learn() if curator.windows else None
        key = streams.source("synthesis").take(2).tobytes()
        items: list[Recording | Handle] = []
        for item, (_, head, _) in zip(data.items, private, strict=True):
            draw = partial(synthetic, scheme, model, curator.reports[head.key], self.still, key)
            items.append(
                draw()
                if isinstance(item, Recording)
                else Handle(item.person, item.stimulus, draw, item.session, item.task)
            )
        guarantee = self.promise([(head.person, plan, head.samples) for plan, head, _ in private])
        return self.released(Cohort(items, name=data.name, read_as=data.read_as), guarantee, seed)

    def _promised(
        self, recordings: Iterable[tuple[str, WindowLayout, int]], reason: str
    ) -> Guarantee:
        listed = list(recordings)
        sphere = listed[0][1].sphere
        window_s = Fraction(self.window_s)
        maps: dict[WindowLayout, WindowsMap] = {}
        for _, plan, _ in listed:
            if plan not in maps:
                # The start of one window, its times, and at most so many draws behind the sums.
                start = Fraction(1, 1 << 370) if sphere else PLANAR_DELTA
                delta_num = start + tail_delta(Fraction(self.epsilon), 1 << 40)
                maps[plan] = WindowsMap(plan.rate_hz, plan.grid.space, plan, window_s, delta_num)
        return Guarantee(
            "epsilon-w-r-t-dp",
            RecordingsMap.of((person, maps[plan], samples) for person, plan, samples in listed),
            Change.window(seconds=window_s, start_deg=min(p.r_deg for p in maps)),
            mechanism=self.title,
            assumptions=(
                BITS_ASSUMPTION,
                *((ARC_ASSUMPTION,) if sphere else ()),
                "the grid, the windows, the cap, lengths and rates are public",
            ),
            not_covered=_NOT_COVERED,
            reason=reason,
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.synthesis.dpgazesynth.mechanism import windows_game

        return windows_game(self, unit)


@dataclass(frozen=True)
class DPGazeSynth(Synthesis):
    """Ren et al. 2024, with every slot of a window reported.

    Examples
    --------
    >>> print(DPGazeSynth(1))
    dpgazesynth:epsilon=1,G=60,window_s=1/2,split=3:1:1,cap=6,reading=corrected
    """

    name: ClassVar[str] = "dpgazesynth"
    label: ClassVar[str] = "DPGazeSynth"
    summary: ClassVar[str] = (
        "Learns a model of scanpaths from randomised reports and draws gaze from it."
    )
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "population", (":epsilon=3", ":epsilon=3,reading=published")
    )
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-w-r-t-dp", "window", "proved", "messages of one shape, exact noise"
        ),
        "published": Claim(
            "epsilon-w-r-t-dp",
            "window",
            "refuted",
            "the paper to the letter, with the numbers of fixations it gives away",
        ),
    }

    @property
    def kind_of_scheme(self) -> type[Scheme]:
        """Of Ren et al. 2024, or the smallest change of it."""
        return PublishedScheme if self.reading == "published" else Corrected

    def promise(self, recordings: Iterable[tuple[str, WindowLayout, int]]) -> Guarantee:
        """(epsilon, w, r, t)-DP of every window, and what follows for a person."""
        promised = self._promised(recordings, "proofs/dpgazesynth.md")
        return (
            promised.with_status("refuted", _REFUTED) if self.reading == "published" else promised
        )


@dataclass(frozen=True)
class DPGazeSynthOneReport(Synthesis):
    """DPGazeSynth with one transition report per window, and everything but starts from the
    population.
    """

    name: ClassVar[str] = "dpgazesynth-one-report"
    label: ClassVar[str] = "DPGazeSynth, one report"
    summary: ClassVar[str] = (
        "Learns a model of scanpaths from one randomised report of each window."
    )
    plot: ClassVar[PlotRecipe] = PlotRecipe("population", (":epsilon=3", "dpgazesynth:epsilon=3"))
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-w-r-t-dp", "window", "proved", "one report per window, population model"
        )
    }

    @property
    def kind_of_scheme(self) -> type[Scheme]:
        """One report per window."""
        return OneReport

    def promise(self, recordings: Iterable[tuple[str, WindowLayout, int]]) -> Guarantee:
        """(epsilon, w, r, t)-DP of every window, what follows for a person, and what shuffling
        would add.
        """
        listed = list(recordings)
        scheme = self.scheme()
        windows = [-(-samples // plan.samples) for _, plan, samples in listed]
        mixed = shuffled(scheme.epsilon * (scheme.split[1] + scheme.split[2]), windows)
        return replace(self._promised(listed, "proofs/dpgazesynth-one-report.md"), also=mixed)


@dataclass(frozen=True)
class WindowsMap(StreamMap):
    """The loss of windows on a public grid.

    Parameters
    ----------
    plan : WindowLayout
        The public numbers of recordings of one rate in one space.
    window_s : Fraction
        Seconds of a window.
    delta_num : Fraction
        Numerical error of a window.
    """

    plan: WindowLayout
    window_s: Fraction
    delta_num: Fraction

    def samples_of(self, change: Change) -> int | None:
        """Samples of a window; one of the grid's length has as many as those."""
        return self.plan.samples if change.seconds == self.window_s else super().samples_of(change)

    def replaced(self, windows: int, start_deg: Fraction | None) -> Loss:
        """The loss if so many windows of the grid are replaced and their beginnings move by at most
        so much; None is anywhere.
        """
        plan = self.plan
        farthest = HALF_TURN_DEG if plan.sphere else raised(plan.grid.diagonal_deg)
        steps = math.ceil(
            (farthest if start_deg is None else min(start_deg, farthest)) / plan.r_deg
        )
        each = plan.times + plan.moves + plan.starts * steps
        return Loss.pure(each, self.delta_num).repeated(windows)

    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """Samples in a row touch windows that they do not fill."""
        # Places are never farther apart than their coordinates, so one number serves both metrics.
        return self.replaced(
            1 if samples == 1 else (samples - 2) // self.plan.samples + 2, move_deg
        )

    def within(self, change: Change) -> Loss:
        """Of a window of the grid where its beginning is named, else of samples in a row."""
        if change.start_deg is None:
            return super().within(change)
        samples = self.samples_of(change)
        if samples is None or samples % self.plan.samples:
            raise PromiseError(
                f"Windows have {self.plan.samples} samples here, and one of {samples} is none of"
                " the grid's. Ask about samples that move instead."
            )
        # Of a longer window only the first place is bound: the other windows of the grid in it
        # begin anywhere.
        return (
            self.replaced(1, change.start_deg)
            + self.replaced(samples // self.plan.samples - 1, None)
        ).grouped(change.count)

    def whole(self, change: Change, samples: int) -> Loss:
        """All windows of a recording."""
        return self.replaced(-(-samples // self.plan.samples), change.move_deg)


#: Delta of the number that guarantees print.
DELTA = Fraction(1, 10**6)


def shuffled_epsilon(epsilon: Fraction, reports: int, delta: Fraction = DELTA) -> Fraction | None:
    """Epsilon of shuffled reports at that delta, rounded up; None where the theorem does not apply
    or does not help.

    Examples
    --------
    >>> round(float(shuffled_epsilon(Fraction(2, 5), 100_000)), 4)
    0.0235
    >>> shuffled_epsilon(Fraction(2, 5), 100) is None
    True
    """
    e0, d = float(epsilon), float(delta)
    if reports < 2 or not 0 < d < 1 or e0 > math.log(reports / (16 * math.log(2 / d))):
        return None
    grown = math.exp(e0)
    loss = math.log1p(
        (grown - 1)
        / (grown + 1)
        * (8 * math.sqrt(grown * math.log(4 / d) / reports) + 8 * grown / reports)
    )
    amplified = raised(loss)
    return amplified if amplified < epsilon else None


def shuffled(epsilon: Fraction, windows: Sequence[int]) -> tuple[tuple[str, Loss], ...]:
    """What is left of the answers of a window if those of all windows are shuffled, with the
    condition in words; empty where the theorem does not apply.

    Windows with an even and with an odd number answer different questions, so a window hides only
    among those of its own kind.

    Parameters
    ----------
    epsilon : Fraction
        Of the answers of one window.
    windows : sequence of int
        Windows of each recording.
    """
    alike = min(sum((n + 1) // 2 for n in windows), sum(n // 2 for n in windows))
    mixed = shuffled_epsilon(epsilon, alike)
    if mixed is None:
        return ()
    condition = (
        f"the answers of one window, which are {format_exact(epsilon)} of its epsilon, if an honest"
        f" shuffler mixes those of all {sum(windows)} windows, at least {alike} of which answer the"
        " same questions, before anybody sees them"
    )
    return ((condition, Loss.approximate(mixed, DELTA)),)


RATE_HZ = 100.0
_ROWS = 5000  # windows at a time
_PAIR = (
    "One window at 100 Hz: gaze that stays, and gaze that begins r away and moves on as often as is"
    " told apart."
)


def _pair(plan: WindowLayout) -> tuple[Windows, Windows]:
    """One window each."""
    grid, runs = plan.grid, min(plan.cap, plan.samples)
    row = grid.G // 2 * grid.G
    cells = row + np.arange(runs) % grid.G
    lengths = np.array([1] * (runs - 1) + [plan.samples - runs + 1], dtype=np.int64)
    away = float(min(plan.r_deg, Fraction(repr(GAME_SCREEN.width_deg / 4))))
    still = Windows(
        plan.samples,
        np.zeros(1),
        np.zeros(1),
        np.array([0, 1]),
        cells[:1],
        np.array([plan.samples]),
    )
    return still, Windows(
        plan.samples, np.full(1, away), np.zeros(1), np.array([0, runs]), cells, lengths
    )


def _many(windows: Windows, times: int) -> Windows:
    """The same window many times; the first of each two is even and the second odd."""
    runs = len(windows.cell)
    return Windows(
        windows.samples,
        np.tile(windows.x_deg, times),
        np.tile(windows.y_deg, times),
        np.arange(times + 1) * runs,
        np.tile(windows.cell, times),
        np.tile(windows.length, times),
    )


def _supports(oracle: FrequencyOracle, rows: NDArray[Any], category: Ints) -> Bools:
    """Whether each report supports a category."""
    if isinstance(oracle, GRR):
        return np.asarray(rows[:, 0] == category)
    if isinstance(oracle, OUE):
        return np.asarray(rows[np.arange(len(rows)), category] == 1)
    return np.asarray((rows == category[:, None]).any(axis=1))


def _exact(scheme: Scheme, plan: WindowLayout, pair: tuple[Windows, Windows]) -> float:
    """The largest log ratio of the probabilities of a message."""
    steps = math.floor(abs(float(pair[1].x_deg[0])) * 2.0**plan.step_bits)
    start = steps / float(raised_scale(plan.start_scale))
    oracles = scheme.questions(plan)
    if scheme.times:
        t, s = laplace_scale(plan.time_scale)
        times = np.abs(pair[0].capped(plan.cap) - pair[1].capped(plan.cap)).sum() * s / t
        return start + float(times) + (plan.cap - 1) * math.log(oracles["steps"].odds)
    # even windows answer one question, odd ones the other
    return (
        start
        + max(math.log(oracles[n].odds) for n in ("counts", "lengths"))
        + math.log(oracles["steps"].odds)
    )


def _ratios(
    scheme: Scheme,
    plan: WindowLayout,
    pair: tuple[Windows, Windows],
    side: int,
    rows: int,
    streams: Streams,
) -> Floats:
    """Log likelihood ratios of the messages of one side."""
    head = ReportHeader("p", "s", "1", "", RATE_HZ, rows * plan.samples, 0, plan.grid.space)
    report, truth = scheme.ask(plan, head, _many(pair[side], rows), streams)
    places = [np.hypot(report.x_deg - w.x_deg[0], report.y_deg - w.y_deg[0]) for w in pair]
    ratio = (places[1] - places[0]) / float(
        raised_scale(plan.start_scale) / Fraction(2) ** plan.step_bits
    )
    if scheme.times:
        t, s = laplace_scale(plan.time_scale)
        away = [np.abs(report.lengths - w.capped(plan.cap)).sum(axis=1) for w in pair]
        ratio += (away[1] - away[0]) * s / t
    # what each side would answer, question by question
    other = [scheme.ask(plan, head, _many(w, rows), Streams(0))[1] for w in pair]
    for name, oracle in scheme.questions(plan).items():
        answers = oracle.report(truth[name], Words(streams.source("answers", name)))
        supported = [_supports(oracle, answers, o[name]).astype(np.float64) for o in other]
        gain = (supported[0] - supported[1]) * math.log(oracle.odds)
        where = {"counts": np.arange(0, rows, 2), "lengths": np.arange(1, rows, 2)}.get(
            name, np.arange(len(gain)) * rows // max(len(gain), 1)
        )
        np.add.at(ratio, where, gain)
    return ratio


def windows_game(mechanism: Synthesis, unit: str | None) -> Game:
    """The game of both mechanisms."""
    game_unit = asked_unit(unit, "window", ("window",))
    claimed = float(Fraction(str(mechanism.epsilon)))
    layout = mechanism.scheme().plan(GAME_SCREEN, RATE_HZ)
    if mechanism.reading == "published":
        pair = _pair(layout)
        description = (
            f"{_PAIR} One sends {len(pair[0].cell)} fixation time, the other {len(pair[1].cell)}."
        )
        return Game(
            game_unit,
            claimed,
            description,
            lambda side, trials, _: np.full((trials, 1), float(len(pair[side].cell))),
            math.inf,
        )
    # The promise does not depend on the size of the grid, and a small one is quickly drawn.
    scheme = replace(mechanism, G=min(mechanism.G, 6), r_deg=layout.r_deg).scheme()
    plan = scheme.plan(GAME_SCREEN, RATE_HZ)
    pair = _pair(plan)

    def play(side: int, trials: int, seed: int | None) -> Floats:
        streams = Streams(seed, "audit", str(side))
        parts = [
            _ratios(scheme, plan, pair, side, min(_ROWS, trials - begin), streams.of(str(begin)))
            for begin in range(0, trials, _ROWS)
        ]
        return np.concatenate(parts)[:, None]

    return Game(game_unit, claimed, _PAIR, play, _exact(scheme, plan, pair))
