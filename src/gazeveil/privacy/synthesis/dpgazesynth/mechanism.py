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
  (:mod:`gazeveil.privacy.synthesis.dpgazesynth.reports.device`).
* `dpgazesynth-one-report` sends one transition with the whole epsilon3
  (:mod:`gazeveil.privacy.synthesis.dpgazesynth.reports.one_report`).

A release in one process gives what devices and a curator in processes of their own would give
(`gazeveil randomize`, `gazeveil curate`): the sums of unary reports are drawn with their own law
instead of bit by bit (:mod:`gazeveil.privacy.synthesis.dpgazesynth.reports.sums`). Proofs:
proofs/dpgazesynth.md, proofs/dpgazesynth-one-report.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.composition import RecordingsMap
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, Mechanism
from gazeveil.privacy.noise.arithmetic import ASSUMPTION as ARC_ASSUMPTION
from gazeveil.privacy.noise.exact import tail_delta
from gazeveil.privacy.noise.planar import planar_delta
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.randomness.rng import ASSUMPTION as BITS_ASSUMPTION
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.synthesis.dpgazesynth.curation.synthesis import MOTIONS
from gazeveil.privacy.synthesis.dpgazesynth.grid import RELATIONS
from gazeveil.privacy.synthesis.dpgazesynth.one_process import collect, private_windows, synthetic
from gazeveil.privacy.synthesis.dpgazesynth.plan import BudgetSplit, WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.reports.device import Corrected
from gazeveil.privacy.synthesis.dpgazesynth.reports.one_report import OneReport, public_zones
from gazeveil.privacy.synthesis.dpgazesynth.reports.published import PublishedScheme
from gazeveil.privacy.synthesis.dpgazesynth.reports.scheme import Scheme, Streams
from gazeveil.privacy.synthesis.dpgazesynth.shuffle import shuffled
from gazeveil.privacy.synthesis.dpgazesynth.windows_map import WindowsMap

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
    motion : str, optional
        `still` repeats one place per run, as Ren et al. 2024 does; `public` adds saccades and drift
        of a public eye. None is `still` for the reading `published`, else `public`: event detectors
        take jumps from sample to sample for tracker noise.
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
    motion: str | None = None

    def check(self) -> None:
        """Store exact numbers."""
        check_windows(self)

    @property
    def moves(self) -> str:
        """How samples of a run move: one of :data:`MOTIONS`."""
        return self.motion or ("still" if self.reading == "published" else "public")

    @abstractmethod
    def scheme(self) -> Scheme:
        """How devices report and what is learned from it."""

    def settled(self, windows: int | None) -> Synthesis:
        """The mechanism with everything fixed that a public rule chooses by
        the number of windows.
        """
        return self

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
        private = list(private_windows(self.scheme(), data))
        used = self.settled(sum(len(windows) for _, _, windows in private))
        curator = collect(used.scheme(), str(used), private, streams)
        model = curator.learn() if curator.windows else None
        key = streams.source("synthesis").take(2).tobytes()
        items: list[Recording | Handle] = []
        for item, (_, head, _) in zip(data.items, private, strict=True):
            draw = partial(
                synthetic, used.scheme(), model, curator.reports[head.key], used.moves, key
            )
            items.append(
                draw()
                if isinstance(item, Recording)
                else Handle(item.person, item.stimulus, draw, item.session, item.task)
            )
        guarantee = used.promise([(head.person, plan, head.samples) for plan, head, _ in private])
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
                start = Fraction(1, 1 << 370) if sphere else planar_delta(plan.start_scale)
                maps[plan] = WindowsMap.of(
                    plan, window_s, start + tail_delta(Fraction(str(self.epsilon)), 1 << 40)
                )
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
        from gazeveil.privacy.synthesis.dpgazesynth.audit import windows_game

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

    def scheme(self) -> Scheme:
        """The reading's."""
        return (PublishedScheme if self.reading == "published" else Corrected)(*_given(self))

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

    Parameters
    ----------
    zones : int, optional
        Zones along each side in which directions are told apart, 1 to 16. None chooses by the
        number of windows where that is known, else 1.
    order : int
        2 for a chain that knows the step before.

    Examples
    --------
    >>> DPGazeSynthOneReport(1).settled(10_000_000).zones
    2
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

    zones: int | None = None
    order: int = 1

    def check(self) -> None:
        """Store exact numbers."""
        super().check()
        if self.zones is not None and checks.count(self.name, "zones", self.zones) > min(
            16, self.G
        ):
            checks.refuse(
                self.name, "zones", "at most 16, and no more than there are cells", self.zones
            )
        if checks.count(self.name, "order", self.order) > 2:
            checks.refuse(self.name, "order", "1 or 2", self.order)

    def scheme(self) -> Scheme:
        """One report per window."""
        return OneReport(*_given(self), self.zones or 1, self.order)

    def settled(self, windows: int | None) -> DPGazeSynthOneReport:
        """With the number of zones fixed by the public number of windows."""
        if self.zones is not None:
            return self
        scheme = self.scheme()
        return replace(
            self,
            zones=(
                1
                if windows is None
                else min(public_zones(windows, scheme.epsilon * scheme.split[2]), self.G)
            ),
        )

    def promise(self, recordings: Iterable[tuple[str, WindowLayout, int]]) -> Guarantee:
        """(epsilon, w, r, t)-DP of every window, what follows for a person, and what shuffling
        would add.
        """
        listed = list(recordings)
        scheme = self.scheme()
        windows = [-(-samples // plan.samples) for _, plan, samples in listed]
        mixed = shuffled(scheme.epsilon * (scheme.split[1] + scheme.split[2]), windows)
        return replace(self._promised(listed, "proofs/dpgazesynth-one-report.md"), also=mixed)


def _given(
    mechanism: Synthesis,
) -> tuple[Fraction, int, Fraction | str, Fraction, BudgetSplit, int]:
    """Parameters in the order of a scheme's."""
    default = "eq8" if mechanism.reading == "published" else "table"
    radius = default if mechanism.r_deg is None else mechanism.r_deg
    exactly: Fraction | str = radius if isinstance(radius, str) else Fraction(radius)
    return (
        Fraction(mechanism.epsilon),
        mechanism.G,
        exactly,
        Fraction(mechanism.window_s),
        BudgetSplit.of(mechanism.split),
        mechanism.cap,
    )


def check_windows(mechanism: Mechanism[Any]) -> None:
    """Check and store the parameters of windows; see :class:`Synthesis`."""
    # Fields of two classes that have no base in common but their names.
    made: Any = mechanism
    epsilon = exact(made.name, "epsilon", made.epsilon, least=Fraction(1, 1000))
    made.store("epsilon", epsilon)
    window_s = exact(made.name, "window_s", made.window_s, above=0)
    made.store("window_s", window_s)
    made.store("split", BudgetSplit.of(made.split, made.name))
    for name, least, most in (("G", 2, MOST_G), ("cap", 2, MOST_CAP)):
        if checks.count(made.name, name, getattr(made, name), least=least) > most:
            checks.refuse(made.name, name, f"at most {most}", getattr(made, name))
    if not (isinstance(made.r_deg, str) and made.r_deg in RELATIONS) and made.r_deg is not None:
        radius = exact(made.name, "r_deg", made.r_deg, least=Fraction(1, 1024))
        if radius > 360:
            checks.refuse(made.name, "r_deg", "at most 360, or one of eq8, table", made.r_deg)
        made.store("r_deg", radius)
    if made.motion is not None:
        checks.one_of(made.name, "motion", made.motion, MOTIONS)
    if epsilon > 100:
        checks.refuse(made.name, "epsilon", "at most 100", made.epsilon)
    if window_s > 60:
        checks.refuse(made.name, "window_s", "at most 60 seconds", made.window_s)
