"""A gaze predictor to keep: trained on some people, judged on others beside `hold`, the straight
line and the Kalman filter.
"""

from __future__ import annotations

from collections.abc import Callable

from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.models.headset.weights import PredictorInput, RateRange, TrainedPredictor
from gazeveil.models.marks import RecordingMarks
from gazeveil.models.resumable import TrainingRun
from gazeveil.utility.prediction.learnt import Learnt
from gazeveil.utility.prediction.moments import LAGS
from gazeveil.utility.prediction.task import Prediction
from gazeveil.utility.training.card import HeldOutFigure, held_out_figure, trained_on

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
    """Mean angles in degrees of people nobody trained on: the network's, then the floors', last the
    network's for the people it was trained on, which shows how much it remembers.

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
