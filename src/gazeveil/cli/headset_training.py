"""`gazeveil train --network dgaze` and `--network ehtask`: networks of headsets, judged on people
they were not trained on beside what they must beat.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gazeveil import __version__
from gazeveil.cli.arguments import counted, say
from gazeveil.cli.ekyt_training import CHECKPOINT, WEIGHTS, say_handling, stoppable, write_network
from gazeveil.cli.progress import bar
from gazeveil.errors import DataError

if TYPE_CHECKING:
    from gazeveil.features.recording_set import RecordingSet
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.models.headset.weights import TrainedPredictor, TrainedRecogniser
    from gazeveil.utility.trained_networks import HeldOutFigure, NetworkCard

#: Activities of simulated people: those on a sphere, where heads move.
SIMULATED_TASKS = ("free-viewing", "search", "video", "tracking")


@dataclass(frozen=True)
class HeadsetOptions:
    """What the command line says of a network of a headset; times in seconds."""

    network: str
    out: Path
    hold_out: float
    steps: int
    every: int
    seed: int
    device: str
    head: str
    reading: str
    horizon_s: float
    past_s: float
    window_s: float
    label: str


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """What came of a training: the network, the loss of every step, its input in words, and figures
    of people held out.
    """

    model: TrainedPredictor | TrainedRecogniser
    losses: tuple[float, ...]
    given: str
    figures: tuple[HeldOutFigure, ...]


def train_headset(options: HeadsetOptions, cohort: Cohort, data: str) -> NetworkCard:
    """Train, judge and write a network.

    Parameters
    ----------
    options : HeadsetOptions
        How.
    cohort : Cohort
        Recordings in memory.
    data : str
        What they are, in words.
    """
    from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
    from gazeveil.models.train import split_by_person
    from gazeveil.utility.trained_networks import NetworkCard

    window_s = options.window_s
    raw = RecordingSet(cohort, None, FeaturePipeline(window_s=window_s, step_s=window_s / 2))
    trained, held_out = raw.persons, tuple[str, ...]()
    if options.hold_out:
        kept = split_by_person(raw.persons, 1 - options.hold_out, options.seed)
        trained = tuple(p for p, keep in zip(raw.persons, kept, strict=True) if keep)
        held_out = tuple(p for p, keep in zip(raw.persons, kept, strict=True) if not keep)
        _refuse_twins(cohort, set(trained))
    made = (_predictor if options.network == "dgaze" else _recogniser)(
        options, raw, trained, held_out
    )
    seen, asked = ({k[1] for k in raw.keys if k[0] in side} for side in (trained, held_out))
    tail = made.losses[-max(1, options.steps // 10) :]
    card = NetworkCard(
        network=options.network,
        data=data,
        recordings=len(raw.keys),
        people_trained=len(trained),
        people_held_out=len(held_out),
        stimuli_shared=len(seen & asked),
        stimuli_held_out=len(asked),
        given=made.given,
        steps=options.steps,
        seed=options.seed,
        last_loss=sum(tail) / len(tail),
        version=__version__,
        metric="error_deg" if options.network == "dgaze" else "accuracy",
        figures=made.figures,
    )
    write_network(options.out, made.model, card)
    say(f"{options.out / WEIGHTS}: trained on {counted(len(trained), 'person')}.")
    if card.figures:
        say(card.sentence())
    say_handling(options.out)
    return card


def _refuse_twins(cohort: Cohort, trained: set[str]) -> None:
    """Refuse a held-out participant whose gaze is in the training set under another name."""
    from gazeveil.models.marks import RecordingMarks

    marks = RecordingMarks.of((r for r in cohort if r.person in trained), "held out")
    twin = next((r for r in cohort if r.person not in trained and marks.knows(r)), None)
    if twin is not None:
        raise DataError(
            f"{twin.title} begins with exactly the gaze of a recording under another name, and one"
            " of the two people would be trained on and the other judged. Leave one of them out."
        )


def simulated_activities(
    people: int, stimuli: int, seconds: float, sessions: int, rate_hz: float, seed: int
) -> Cohort:
    """The same simulated people at each of :data:`SIMULATED_TASKS`."""
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.gaze.simulate import simulate

    return Cohort(
        [
            recording
            for task in SIMULATED_TASKS
            for recording in simulate(
                people, stimuli, seconds, rate_hz, task=task, seed=seed, sessions=sessions
            )
        ]
    )


def _predictor(
    options: HeadsetOptions, raw: RecordingSet, trained: tuple[str, ...], held_out: tuple[str, ...]
) -> TrainedNetwork:
    from dataclasses import replace

    from gazeveil.models.headset.dgaze import dgaze_plan
    from gazeveil.models.resumable import TrainingRun
    from gazeveil.utility.prediction.task import Prediction
    from gazeveil.utility.trained_networks import judge_predictor, need_moments, train_predictor

    task = Prediction(
        model="dgaze",
        horizon_s=options.horizon_s,
        past_s=options.past_s,
        reading=options.reading,
        head=options.head,
        steps=options.steps,
    )
    need_moments(raw, task, trained, "train on")
    if held_out:
        need_moments(raw, task, held_out, "judge with")
    options.out.mkdir(parents=True, exist_ok=True)
    plan = dgaze_plan(options.reading, options.steps, options.seed, options.out / CHECKPOINT)
    plan = replace(plan, every=options.every)
    # One bar for both, because a second one inside of it would not be shown.
    with stoppable(plan), bar("Preparing and training") as progress:
        run = TrainingRun(plan, options.device, progress, preparing=progress)
        model, learnt = train_predictor(raw, task, trained, run)
    figures: tuple[HeldOutFigure, ...] = ()
    if held_out:
        with bar("Judging") as judging:
            figures = judge_predictor(raw, task, trained, held_out, learnt, judging)
    assert learnt.network is not None
    given = (
        f"{options.past_s:g} s of gaze{'' if options.head == 'none' else ' and head'},"
        f" {options.horizon_s:g} s ahead, {options.reading} reading, recordings of"
        f" {model.given.rates}"
    )
    return TrainedNetwork(model, learnt.network.losses, given, figures)


def _recogniser(
    options: HeadsetOptions, raw: RecordingSet, trained: tuple[str, ...], held_out: tuple[str, ...]
) -> TrainedNetwork:
    from dataclasses import replace

    from gazeveil.models.headset.ehtask import ehtask_plan
    from gazeveil.models.resumable import TrainingRun
    from gazeveil.utility.classification.activity import Activity
    from gazeveil.utility.trained_networks import ActivityRows, judge_recogniser, train_recogniser

    task = Activity(
        classifier="ehtask",
        label=options.label,
        reading=options.reading,
        head=options.head,
        steps=options.steps,
    )
    with bar("Preparing") as preparing:
        rows = ActivityRows.of(raw, task, trained, preparing)
    options.out.mkdir(parents=True, exist_ok=True)
    plan = ehtask_plan(options.reading, options.steps, options.seed, options.out / CHECKPOINT)
    plan = replace(plan, every=options.every)
    with stoppable(plan), bar("Training") as progress:
        run = TrainingRun(plan, options.device, progress)
        model, losses = train_recogniser(raw, task, rows, run)
    figures: tuple[HeldOutFigure, ...] = ()
    if held_out:
        with bar("Judging, beside a forest") as judging:
            judging(0, 1)
            figures = judge_recogniser(raw, task, model, rows, options.seed)
    seen = "gaze" if options.head == "none" else "eye, head and gaze"
    given = (
        f"windows of {options.window_s:g} s of {seen}, {options.reading} reading,"
        f" {len(model.given.classes)} activities, recordings of {model.given.rates}"
    )
    return TrainedNetwork(model, losses, given, figures)
