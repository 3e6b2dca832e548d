"""The card of a trained predictor of gaze or recogniser of activities: what it learnt from, how
well it does for people it never saw beside what it must beat, and how its file must be handled.

A gaze predictor to keep: trained on some people, judged on others beside `hold`, the straight
line and the Kalman filter.

A recogniser of activities to keep: trained on windows of some people, judged on those of others
beside a forest on features of the same windows and the most frequent activity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.models.headset.ehtask import train_ehtask
from gazeveil.models.headset.weights import (
    PredictorInput,
    RateRange,
    RecogniserInput,
    TrainedPredictor,
    TrainedRecogniser,
)
from gazeveil.models.marks import RecordingMarks
from gazeveil.models.resumable import TrainingRun
from gazeveil.models.weights_file import HANDLING, MARKS
from gazeveil.utility.base import UtilityResult
from gazeveil.utility.classification.activity import Activity
from gazeveil.utility.classification.eye_head_windows import RATE_HZ, window_array, window_rows
from gazeveil.utility.classification.rows import Rows, class_by, rows_of
from gazeveil.utility.classification.splits import Classifier, score
from gazeveil.utility.prediction.learnt import Learnt
from gazeveil.utility.prediction.moments import LAGS
from gazeveil.utility.prediction.task import Prediction

#: Fewest people whose figures have an interval.
FEWEST_PEOPLE = 3

#: Titles and names of the networks.
NETWORKS = {
    "dgaze": ("Card of a network that predicts gaze", "in the manner of DGaze (Hu et al. 2020)"),
    "ehtask": (
        "Card of a network that recognises activities",
        "in the manner of EHTask (Hu et al. 2022)",
    ),
}

#: Metrics in words, with how a figure is written.
_METRICS = {
    "error_deg": ("mean angle to gaze, in degrees; lower is better", "{:.2f}"),
    "accuracy": ("share of windows named rightly; higher is better", "{:.3f}"),
}


@dataclass(frozen=True)
class HeldOutFigure:
    """How well something does for people who were held out.

    Parameters
    ----------
    model : str
        The network's name, or that of a floor: `hold`, `linear`, `kalman`, `forest`, `chance`; or
        :func:`trained_on`.
    value, low, high : float or None
        Mean over people and Student's 95 % interval, cut at what is possible; None where there is
        none (:func:`student`).
    network_better_by, gain_low, gain_high : float or None
        By how much the network is better, person by person, with its interval; None for the
        network itself and for a floor that has no figure for each person.
    people : int
        Who are counted.
    """

    model: str
    value: float | None
    low: float | None
    high: float | None
    network_better_by: float | None
    gain_low: float | None
    gain_high: float | None
    people: int


def held_out_figure(
    model: str, parts: ArrayLike, network: ArrayLike | None = None, higher: bool = False
) -> HeldOutFigure:
    """The figure of a model from its parts, one per person.

    Parameters
    ----------
    model : str
        As in :class:`HeldOutFigure`.
    parts : array, shape (people,)
        NaN for a person without a figure.
    network : array, shape (people,), optional
        The network's parts, for a floor.
    higher : bool
        Whether higher is better.

    Examples
    --------
    >>> figure = held_out_figure("hold", [3.0, 5.0], [2.0, 4.0])
    >>> figure.value, figure.network_better_by, figure.people
    (4.0, 1.0, 2)
    """
    own = np.asarray(parts, dtype=np.float64)
    value, low, high = student(own)
    if low is not None and high is not None:
        low, high = max(low, 0.0), min(high, 1.0) if higher else high
    gain: tuple[float | None, float | None, float | None] = (None, None, None)
    if network is not None:
        apart = own - np.asarray(network, dtype=np.float64)
        gain = student(-apart if higher else apart)
    return HeldOutFigure(model, value, low, high, *gain, int(np.isfinite(own).sum()))


def trained_on(network: str) -> str:
    """The name of a figure of the people that a network was trained on."""
    return f"{network}, people trained on"


def student(values: ArrayLike) -> tuple[float | None, float | None, float | None]:
    """Mean of the finite values and Student's 95 % interval; None for what is not known: values of
    fewer than three people, or all alike, do not say how others would differ.
    """
    from scipy import stats

    given = np.asarray(values, dtype=np.float64)
    own = given[np.isfinite(given)]
    if len(own) == 0:
        return None, None, None
    mean = float(own.mean())
    if len(own) < FEWEST_PEOPLE or np.ptp(own) == 0:
        return mean, None, None
    half = float(stats.t.ppf(0.975, len(own) - 1) * own.std(ddof=1) / math.sqrt(len(own)))
    return mean, mean - half, mean + half


@dataclass(frozen=True)
class NetworkCard:
    """What is to be said of a network.

    Parameters
    ----------
    network : {"dgaze", "ehtask"}
        Which.
    data : str
        What it was trained on, in words.
    recordings : int
        How many, those of held-out people included.
    people_trained, people_held_out : int
        No person is in both.
    stimuli_shared, stimuli_held_out : int
        How many of the stimuli that held-out people saw were trained on too, and how many they saw.
    given : str
        Its input, in words.
    steps, seed : int
        Of its training.
    last_loss : float
        Mean over the last tenth of the steps.
    version : str
        Of Gazeveil.
    metric : str
        What `figures` are: `error_deg` or `accuracy`.
    figures : tuple of HeldOutFigure
        The network first, then its floors, last the network for people it was trained on; empty
        without held-out people.
    """

    network: str
    data: str
    recordings: int
    people_trained: int
    people_held_out: int
    stimuli_shared: int
    stimuli_held_out: int
    given: str
    steps: int
    seed: int
    last_loss: float
    version: str
    metric: str
    figures: tuple[HeldOutFigure, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            **asdict(self),
            "figures": [asdict(f) for f in self.figures],
            "handling": f"{HANDLING} {MARKS}",
        }

    def markdown(self) -> str:
        """The card as a page."""
        title, name = NETWORKS[self.network]
        shared = f"{self.stimuli_shared:,} of {self.stimuli_held_out:,} were trained on too"
        facts: Mapping[str, str] = {
            "network": f"`{self.network}`, {name}",
            "trained on": self.data.replace("|", "/"),
            "recordings": f"{self.recordings:,}",
            "people trained on": f"{self.people_trained:,}",
            "people held out": f"{self.people_held_out:,}, none of them trained on",
            "stimuli of people held out": shared if self.people_held_out else "none",
            "input": self.given,
            "training": (f"{self.steps:,} steps, seed {self.seed}, last loss {self.last_loss:.3f}"),
            "made with": f"Gazeveil {self.version}",
        }
        lines = [f"# {title}", "", "| | |", "|---|---|"]
        lines += [f"| {name} | {value} |" for name, value in facts.items()]
        lines += ["", "## Handling", "", HANDLING, "", MARKS, "", "## People it never saw", ""]
        if not self.figures:
            lines.append("Nobody was held out, so nothing is known of other people.")
        else:
            lines += _table(self.metric, self.figures)
        return "\n".join(lines) + "\n"

    def sentence(self) -> str:
        """Return the figures in one sentence; empty without held-out people."""
        if not self.figures:
            return ""
        form = _METRICS[self.metric][1]
        told = {f.model: _figure(form, f.value, f.low, f.high) for f in self.figures}
        known = told.pop(trained_on(self.network), "not known")
        others = ", ".join(f"{model} {figure}" for model, figure in told.items())
        return f"{self.metric} of people held out: {others}; of people trained on: {known}."


def _table(metric: str, figures: Sequence[HeldOutFigure]) -> list[str]:
    words, form = _METRICS[metric]
    lines = [
        f"`{metric}`: {words}. Mean over people; in brackets Student's 95 % interval over"
        f" them, from {FEWEST_PEOPLE} people on who are not all alike. The last line is of people"
        " it was trained on: what is better there it remembers of them, as far as so few tell.",
        "",
        "| model | figure | the network is better by | people |",
        "|---|---|---|---|",
    ]
    for f in figures:
        gain = (
            ""
            if f.network_better_by is None
            else _figure(form, f.network_better_by, f.gain_low, f.gain_high)
        )
        lines.append(
            f"| {f.model} | {_figure(form, f.value, f.low, f.high)} | {gain} | {f.people} |"
        )
    return lines


def _figure(form: str, value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "not known"
    if low is None or high is None:
        return form.format(value)
    return f"{form.format(value)} ({form.format(low)} to {form.format(high)})"


#: What stands beside the network.
FLOORS = ("hold", "linear", "kalman")


def need_moments(
    raw: RecordingSet, task: Prediction, people: tuple[str, ...], purpose: str
) -> None:
    """Refuse people without a single moment; asked before training, because hours later would be
    too late.

    Raises
    ------
    DataError
        Where there is none.
    """
    if not any(len(moments) for _, moments in task.moments(raw, raw, people)):
        raise DataError(
            f"There is nothing to {purpose}: no recording of these {len(people)} people has gaze"
            f" for {task.past_s:g} s and {task.horizon_s:g} s after that. Give longer recordings"
            " with fewer lost samples."
        )


def train_predictor(
    raw: RecordingSet, task: Prediction, people: tuple[str, ...], run: TrainingRun
) -> tuple[TrainedPredictor, Learnt]:
    """Train a network on some people.

    Parameters
    ----------
    raw : RecordingSet
        The recordings.
    task : Prediction
        With `model="dgaze"`: horizon, past, reading and head.
    people : tuple of str
        Who is trained on.
    run : TrainingRun
        How, with a checkpoint.

    Returns
    -------
    TrainedPredictor, Learnt
        What is kept, and what people are judged with.

    Raises
    ------
    DataError
        Without gaze to learn from, or for a checkpoint of another training.
    MissingExtraError
        Without torch.
    """
    learnt = task.learnt(raw, raw, people, run.plan.seed, run)
    network = learnt.network
    if network is None:
        raise DataError(
            f"There is nothing to train on: the recordings of {len(people)} people have fewer than"
            " two moments to learn from. Give longer recordings with fewer lost samples."
        )
    cohort = raw.select(people=people).cohort
    assert cohort is not None
    given = PredictorInput(
        horizon_s=task.horizon_s,
        past_s=task.past_s,
        lags=LAGS,
        head=task.head,
        reading=task.reading,
        channels=tuple(network.channels.tolist()),
        map_size=network.map_size,
        rates=RateRange.of(cohort),
    )
    marks = RecordingMarks.of(cohort, network.digest[:16])
    return TrainedPredictor(network.network, given, marks), learnt


def judge_predictor(
    raw: RecordingSet,
    task: Prediction,
    trained: tuple[str, ...],
    held_out: tuple[str, ...],
    learnt: Learnt,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[HeldOutFigure, ...]:
    """Compute mean angular errors in degrees on held-out people: the network's, then the floors'.
    The last is the network's on its training people, which shows memorisation.

    Parameters
    ----------
    raw, task
        As for :func:`train_predictor`.
    trained, held_out : tuple of str
        Who was trained on, and who is judged.
    learnt : Learnt
        What was learnt.
    progress : callable, optional
        Told (recordings done, all recordings).
    """
    found = {r.metric: r.parts for r in task.judged(raw, raw, held_out, learnt, (), progress)}
    own = found["error_deg"]
    floors = (held_out_figure(f, found[f"{f}_error_deg"], own) for f in FLOORS)
    known = task.judged(raw, raw, trained, learnt, (), progress)[0].parts
    return (held_out_figure("dgaze", own), *floors, held_out_figure(trained_on("dgaze"), known))


@dataclass(frozen=True, eq=False)
class ActivityRows:
    """Windows of people who are trained on, and of those who are held out; the latter may be
    empty.
    """

    trained: Rows
    held_out: Rows

    @classmethod
    def of(
        cls,
        raw: RecordingSet,
        task: Activity,
        people: tuple[str, ...],
        progress: Callable[[int, int], None] | None = None,
    ) -> ActivityRows:
        """The windows of all recordings; `people` are trained on, `progress` is told (recordings
        done, all recordings).

        Raises
        ------
        DataError
            For fewer than two activities to learn, or windows of held-out people of none of them.
        """
        label = class_by(task.label)
        how = (label, task.every, task.reading, task.head)
        rows = window_rows(raw, raw, *how, progress=progress)
        mine = np.isin(rows.persons, people)
        made = cls(rows.where(mine), rows.where(~mine))
        classes = set(made.trained.labels.tolist())
        if len(classes) < 2:
            only = f"only '{classes.pop()}'" if classes else "no window at all"
            raise DataError(
                "The network of activities needs windows of at least two, and the people to train"
                f" on have {only}. Name the task of each recording, choose another label, or"
                " shorter windows."
            )
        if set(raw.persons) - set(people) and not classes & set(made.held_out.labels.tolist()):
            raise DataError(
                "The people held out have no window of an activity that is trained on. Hold others"
                " out with another seed, or give longer recordings."
            )
        return made


def train_recogniser(
    raw: RecordingSet, task: Activity, rows: ActivityRows, run: TrainingRun
) -> tuple[TrainedRecogniser, tuple[float, ...]]:
    """Train a network on the windows of some people.

    Parameters
    ----------
    raw : RecordingSet
        The recordings; their pipeline says how long windows are.
    task : Activity
        With `classifier="ehtask"`: label, reading and head.
    rows : ActivityRows
        Of the same recordings.
    run : TrainingRun
        How, with a checkpoint.

    Returns
    -------
    TrainedRecogniser, tuple of float
        What is kept, and the loss of every step.

    Raises
    ------
    DataError
        For windows of fewer than 22 steps, or a checkpoint of another training.
    MissingExtraError
        Without torch.
    """
    classes, codes = np.unique(rows.trained.labels, return_inverse=True)
    windows = window_array(rows.trained)
    words = f"ehtask {task.reading} {task.head} {classes.tolist()}"
    whole = run.of(words, windows, codes)
    network, losses = train_ehtask(
        windows,
        codes.astype(np.int64),
        whole.plan,
        task.reading,
        device=run.device,
        progress=run.progress,
    )
    cohort = raw.select(people=tuple(np.unique(rows.trained.persons).tolist())).cohort
    assert cohort is not None
    given = RecogniserInput(
        window_s=raw.pipeline.window_s,
        rate_hz=RATE_HZ,
        head=task.head,
        reading=task.reading,
        classes=tuple(classes.tolist()),
        rates=RateRange.of(cohort),
    )
    marks = RecordingMarks.of(cohort, whole.plan.of[:16])
    return TrainedRecogniser(network, given, marks), losses


def judge_recogniser(
    raw: RecordingSet, task: Activity, model: TrainedRecogniser, rows: ActivityRows, seed: int
) -> tuple[HeldOutFigure, ...]:
    """Compute accuracies on held-out people: the network, a forest trained on the same people, and
    the majority class. The last is the network's on its training people, which shows memorisation.
    """
    network, known = (_named(model, side) for side in (rows.held_out, rows.trained))
    forest = _forest(raw, task, rows, seed)
    trees = dict(zip(forest.names, forest.parts.tolist(), strict=True)) if forest else {}
    beside = [trees.get(person, np.nan) for person in network.names]
    return (
        held_out_figure("ehtask", network.parts, higher=True),
        held_out_figure("forest", beside, network.parts, higher=True),
        HeldOutFigure("chance", network.chance, *(None,) * 5, len(network.names)),
        held_out_figure(trained_on("ehtask"), known.parts, higher=True),
    )


def _named(model: TrainedRecogniser, rows: Rows) -> UtilityResult:
    """Accuracy of the network."""
    classes = np.array(model.given.classes, dtype=np.str_)
    codes = model.network.name_them(window_array(rows))
    return score(rows.labels, classes[codes], rows.persons, "")[0]


def _forest(
    raw: RecordingSet, task: Activity, rows: ActivityRows, seed: int
) -> UtilityResult | None:
    """Accuracy of a forest on features of the windows; None where no window has any."""
    known = rows_of(raw.windows, class_by(task.label), task.every)
    mine = np.isin(known.persons, rows.trained.persons)
    held_out = np.isin(known.persons, rows.held_out.persons)
    asked = known.where(held_out)
    if not mine.any() or len(asked) == 0:
        return None
    how = Classifier("forest", task.gamma, False, seed, task.trees)
    return score(asked.labels, how.name_them(known.where(mine), asked), asked.persons, "")[0]
