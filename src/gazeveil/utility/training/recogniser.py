"""A recogniser of activities to keep: trained on windows of some people, judged on those of others
beside a forest on features of the same windows and the most frequent activity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.models.headset.ehtask import train_ehtask
from gazeveil.models.headset.weights import RateRange, RecogniserInput, TrainedRecogniser
from gazeveil.models.marks import RecordingMarks
from gazeveil.models.resumable import TrainingRun
from gazeveil.utility.base import UtilityResult
from gazeveil.utility.classification.activity import Activity
from gazeveil.utility.classification.eye_head_windows import RATE_HZ, window_array, window_rows
from gazeveil.utility.classification.rows import Rows, class_by, rows_of
from gazeveil.utility.classification.scoring import score
from gazeveil.utility.classification.splits import Classifier
from gazeveil.utility.training.card import HeldOutFigure, held_out_figure, trained_on


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
    """Accuracies of people nobody trained on: the network's, that of a forest which learnt from the
    same people, and that of always naming the most frequent activity; last the network's for the
    people it was trained on, which shows how much it remembers.
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
