"""`gazeveil train`: the network of the attacker `ekyt`, judged on people it was not trained on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gazeveil import __version__
from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    ScreenOption,
    SetOption,
    bar,
    counted,
    read_cohort,
    say,
    track,
    write_json,
)
from gazeveil.errors import DataError, ParameterError

if TYPE_CHECKING:
    from gazeveil.attacks.identify.verification import ModelCard, Verification
    from gazeveil.models.ekyt.weights import EkytModel
    from gazeveil.models.ekyt.windows import WindowSet
    from gazeveil.models.training import StepPlan

HELP = """\
Writes weights.npz, card.md and card.json. After a kill or Ctrl-C the same command goes on from the
last checkpoint. Needs the extra `deep`.

Example: `gazeveil train recordings/ --out network/ --hold-out 0.25`, then
`gazeveil evaluate ... -a ekyt:weights=network/weights.npz`"""

#: Seconds of gaze that held-out people are judged with, and sizes of galleries.
DURATIONS_S = (5.0, 10.0, 20.0, 60.0)
GALLERIES = (5, 10, 20, 50, 100, 200, 500, 1000)

#: Windows of each of the 16 people of a batch, and batches between two checkpoints.
WINDOWS, EVERY = 8, 20

#: The files of a network.
WEIGHTS, PAGE, FIGURES, CHECKPOINT = "weights.npz", "card.md", "card.json", "checkpoint.pt"


def command(
    path: Annotated[Path, typer.Argument(help="A file or a folder of recordings.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")],
    hold_out: Annotated[
        float, typer.Option("--hold-out", help="Share of the people to judge it on, 0 for nobody.")
    ] = 0.25,
    channels: Annotated[str, typer.Option(help="gaze, head or gaze+head.")] = "gaze",
    rate: Annotated[
        float,
        typer.Option("--rate", help="Highest rate of velocities in Hz; the lowest of all counts."),
    ] = 125.0,
    window: Annotated[float, typer.Option("--window", help="Seconds of one window.")] = 5.0,
    steps: Annotated[int, typer.Option(help="Batches to train for.")] = 400,
    seed: Annotated[int, typer.Option(help="Makes training repeatable.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda.")] = "auto",
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    json_file: JsonOption = None,
) -> None:
    """Train a network."""
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.models.ekyt.weights import BatchPlan, RecordingMarks, train_ekyt
    from gazeveil.models.ekyt.windows import VelocityInput, WindowSet, common_rate_hz
    from gazeveil.models.training import StepPlan, best_device

    if not 0 <= hold_out < 1:
        raise ParameterError(
            f"The '--hold-out' option must be a share from 0 to below 1. Got {hold_out} instead.",
            name="--hold-out",
            got=hold_out,
        )
    if (out / WEIGHTS).exists():
        raise ParameterError(
            f"{out} holds weights already. Give another folder with --out, or delete it.",
            name="--out",
            got=str(out),
        )
    where = best_device(device)
    read = read_cohort(path, format_name, settings, screen)
    cohort = Cohort(list(track(read, len(read), "Reading")), read.people)
    made = WindowSet.of(cohort, VelocityInput(common_rate_hz(cohort, rate), window, channels))
    trained, held_out = by_people(made, hold_out, seed)
    batch = BatchPlan(windows=WINDOWS)
    digest = hashlib.sha256(repr((trained.setting, batch, trained.keys)).encode())
    digest.update(trained.values.tobytes())
    digest.update(trained.starts.tobytes())
    out.mkdir(parents=True, exist_ok=True)
    plan = StepPlan(
        steps, seed=seed, checkpoint=out / CHECKPOINT, every=EVERY, of=digest.hexdigest()
    )
    with _stoppable(plan, out / CHECKPOINT), bar("Training") as progress:
        model, losses = train_ekyt(trained, plan, batch, where, progress)
    learnt = set(trained.persons)
    marks = RecordingMarks.of((r for r in cohort if r.person in learnt), plan.of[:16])
    model = replace(model, marks=marks)
    card = _card(model, path.name, made, trained, held_out, losses, plan)
    _write(out, model, card)
    say(f"{out / WEIGHTS}: trained on {counted(card.people_trained, 'person')}.")
    rates = [v for v in card.verified if v.condition == "duration_s"]
    if rates:
        words = ", ".join(f"{100 * v.eer:.1f} % with {v.value:g} s" for v in rates)
        say(f"Equal error rate of {counted(card.people_held_out, 'person')} held out: {words}.")
    say(
        "The weights remember the people they were trained on: handle the file as raw recordings."
        f" {out / PAGE} says more."
    )
    write_json(json_file, card.to_dict())


def by_people(made: WindowSet, hold_out: float, seed: int) -> tuple[WindowSet, WindowSet | None]:
    """Windows to train on and, of other people, to judge with."""
    from gazeveil.attacks.identify.verification import enrolled_and_asked
    from gazeveil.models.training import split_by_person

    if hold_out == 0:
        return made, None
    persons = [key[0] for key in made.keys]
    kept = split_by_person(persons, 1 - hold_out, seed)
    training = {p for p, keep in zip(persons, kept, strict=True) if keep}
    held_out = made.where(lambda key: key[0] not in training)
    try:
        # Asked before training, because hours later would be too late.
        enrolled_and_asked(held_out)
    except DataError as error:
        raise DataError(f"{error} Use --hold-out 0 to train without judging.") from error
    return made.where(lambda key: key[0] in training), held_out


@contextmanager
def _stoppable(plan: StepPlan, checkpoint: Path) -> Iterator[None]:
    """Report the checkpoint that training resumes from, and the one left on Ctrl-C."""
    if checkpoint.exists():
        say(f"Going on from {checkpoint}.")
    try:
        yield
    except KeyboardInterrupt:
        left = f"There is no checkpoint yet: the first is written after {plan.every} steps."
        if checkpoint.exists():
            left = (
                f"{checkpoint} holds the state of the last checkpoint: the same command goes on"
                " from there."
            )
        say(f"Stopped. {left}")
        raise typer.Exit(130) from None


def _card(
    model: EkytModel,
    data: str,
    made: WindowSet,
    trained: WindowSet,
    held_out: WindowSet | None,
    losses: tuple[float, ...],
    plan: StepPlan,
) -> ModelCard:
    from gazeveil.attacks.identify.verification import ModelCard

    tail = losses[-max(1, plan.steps // 10) :]
    return ModelCard(
        data=data,
        recordings=len(made.keys),
        people_trained=len(set(trained.persons)),
        people_held_out=0 if held_out is None else len(set(held_out.persons)),
        channels=made.setting.channels,
        rate_hz=made.setting.rate_hz,
        window_s=made.setting.window_s,
        steps=plan.steps,
        seed=plan.seed,
        last_loss=sum(tail) / len(tail),
        version=__version__,
        verified=() if held_out is None else _verified(model, held_out),
    )


def _verified(model: EkytModel, held_out: WindowSet) -> tuple[Verification, ...]:
    from gazeveil.attacks.identify.verification import (
        by_age,
        by_duration,
        by_gallery,
        enrolled_and_asked,
        verification_scores,
    )

    durations = [d for d in DURATIONS_S if d >= model.setting.window_s]
    found = by_duration(model, held_out, durations or [model.setting.window_s])
    if not found:
        return ()
    longest = found[-1].value
    scores = verification_scores(model, *enrolled_and_asked(held_out), longest)
    return (*found, *by_gallery(scores, GALLERIES, 0), *by_age(model, held_out, longest))


def _write(out: Path, model: EkytModel, card: ModelCard) -> None:
    """Write weights and card; the checkpoint goes."""
    about = card.to_dict()
    replace(model, about=about).save(out / WEIGHTS)
    (out / PAGE).write_text(card.markdown(), encoding="utf-8")
    text = json.dumps(about, indent=2, ensure_ascii=False)
    (out / FIGURES).write_text(text + "\n", encoding="utf-8")
    (out / CHECKPOINT).unlink(missing_ok=True)
