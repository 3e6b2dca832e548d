"""`gazeveil train`: the network of the attacker `ekyt`, trained on recordings or on simulated
people, and judged on people it was not trained on.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gazeveil import __version__
from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    ScreenOption,
    SetOption,
    counted,
    read_cohort,
    say,
    write_json,
)
from gazeveil.cli.progress import bar, track
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.cohort import Cohort

if TYPE_CHECKING:
    from gazeveil.attacks.identify.deep.card import ModelCard
    from gazeveil.attacks.identify.deep.verification import Verification
    from gazeveil.models.ekyt.weights import EkytModel
    from gazeveil.models.ekyt.windows import WindowSet
    from gazeveil.models.resumable import StepPlan

NAME = "train"
HELP = """Train the network of the attacker `ekyt` on some people and judge it on others.

Writes weights.npz, card.md and card.json. After a kill or Ctrl-C the same command goes on from the
last checkpoint. Needs the extra `deep`.

Example: `gazeveil train recordings/ --out network/ --hold-out 0.25`

Example: `gazeveil train --simulate 200 --out network/`, then
`gazeveil evaluate ... -a ekyt:weights=network/weights.npz`"""

#: Seconds of gaze that held-out people are judged with.
DURATIONS_S = (5.0, 10.0, 20.0, 60.0)

#: Sizes of galleries.
GALLERIES = (5, 10, 20, 50, 100, 200, 500, 1000)


# Long: one option of the command line a line.
def command(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")],
    path: Annotated[
        Path | None, typer.Argument(help="A file or a folder of recordings, or --simulate.")
    ] = None,
    people: Annotated[
        int | None, typer.Option("--simulate", min=4, help="Train on this many simulated people.")
    ] = None,
    stimuli: Annotated[int, typer.Option(help="Stimuli of each simulated person.")] = 4,
    seconds: Annotated[float, typer.Option(help="Length of each simulated recording.")] = 20.0,
    sessions: Annotated[int, typer.Option(help="Sessions of each simulated person.")] = 2,
    hold_out: Annotated[
        float, typer.Option("--hold-out", help="Share of the people to judge it on, 0 for nobody.")
    ] = 0.25,
    channels: Annotated[str, typer.Option(help="gaze, head or gaze+head.")] = "gaze",
    rate: Annotated[
        float, typer.Option("--rate", help="Highest rate of velocities in Hz; the lowest counts.")
    ] = 125.0,
    window: Annotated[float, typer.Option("--window", help="Seconds of one window.")] = 5.0,
    steps: Annotated[int, typer.Option(help="Batches to train for.")] = 400,
    windows: Annotated[int, typer.Option(help="Windows of each of 16 people in a batch.")] = 8,
    every: Annotated[int, typer.Option(help="Steps between two checkpoints.")] = 20,
    seed: Annotated[int, typer.Option(help="Makes training repeatable.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda.")] = "auto",
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    json_file: JsonOption = None,
) -> None:
    """Train a network."""
    from gazeveil.models.ekyt.training import BatchPlan
    from gazeveil.models.ekyt.velocity import VelocityInput, common_rate_hz
    from gazeveil.models.ekyt.windows import WindowSet
    from gazeveil.models.resumable import StepPlan
    from gazeveil.models.train import best_device

    _refuse(path, people, hold_out, out)
    where = best_device(device)
    if people is not None:
        cohort, data = _simulated(people, stimuli, seconds, sessions, rate, seed)
    else:
        assert path is not None
        cohort, data = read_cohort(path, format_name, settings, screen), path.name
    recordings = list(track(cohort, len(cohort), "Reading"))
    setting = VelocityInput(common_rate_hz(recordings, rate), window, channels)
    made = WindowSet.of(recordings, setting)
    trained, held_out = _by_people(made, hold_out, seed)
    batch = BatchPlan(windows=windows)
    out.mkdir(parents=True, exist_ok=True)
    plan = StepPlan(
        steps, seed=seed, checkpoint=out / "checkpoint.pt", every=every, of=_digest(trained, batch)
    )
    model, losses = _train(trained, plan, batch, where)
    verified = () if held_out is None else _verified(model, held_out)
    names = {
        name: len(set(w.persons)) for name, w in (("trained", trained), ("held", held_out)) if w
    }
    from gazeveil.attacks.identify.deep.card import ModelCard

    tail = losses[-max(1, steps // 10) :]
    card = ModelCard(
        data, len(made.keys), names["trained"], names.get("held", 0), channels, setting.rate_hz,
        window, steps, seed, sum(tail) / len(tail), __version__, verified,
    )  # fmt: skip
    _write(out, model, card)
    _say(out, card)
    write_json(json_file, card.to_dict())


def _refuse(path: Path | None, people: int | None, hold_out: float, out: Path) -> None:
    if (path is None) == (people is None):
        raise ParameterError(
            "`gazeveil train` needs either recordings or --simulate with a number of people, not"
            " both.",
            name="path",
            got=path,
        )
    if not 0 <= hold_out < 1:
        raise ParameterError(
            f"The '--hold-out' option must be a share from 0 to below 1. Got {hold_out} instead.",
            name="--hold-out",
            got=hold_out,
        )
    if (out / "weights.npz").exists():
        raise ParameterError(
            f"{out} holds weights already. Give another folder with --out, or delete it.",
            name="--out",
            got=str(out),
        )


def _simulated(
    people: int, stimuli: int, seconds: float, sessions: int, rate_hz: float, seed: int
) -> tuple[Cohort, str]:
    from gazeveil.gaze.simulate import simulate

    cohort = simulate(people, stimuli, seconds, rate_hz, seed=seed, sessions=sessions)
    words = f"{stimuli:,} {'stimulus' if stimuli == 1 else 'stimuli'}"
    return cohort, (
        f"simulated people (seed {seed}): {words} of {seconds:g} s each, "
        f"{counted(sessions, 'session')}"
    )


def _by_people(made: WindowSet, hold_out: float, seed: int) -> tuple[WindowSet, WindowSet | None]:
    """Windows to train on and, of other people, to judge with."""
    from gazeveil.attacks.identify.deep.verification import enrolled_and_asked
    from gazeveil.models.train import split_by_person

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


def _digest(windows: WindowSet, batch: object) -> str:
    """What is trained on what: another digest is another training."""
    digest = hashlib.sha256(repr((windows.setting, batch, windows.keys)).encode())
    digest.update(windows.values.tobytes())
    digest.update(windows.starts.tobytes())
    return digest.hexdigest()


def _train(
    windows: WindowSet, plan: StepPlan, batch: object, device: str
) -> tuple[EkytModel, tuple[float, ...]]:
    from gazeveil.models.ekyt.training import BatchPlan, train_ekyt

    assert isinstance(batch, BatchPlan)
    assert plan.checkpoint is not None
    if plan.checkpoint.exists():
        say(f"Going on from {plan.checkpoint}.")
    try:
        with bar("Training") as progress:
            return train_ekyt(windows, plan, batch, device, progress)
    except KeyboardInterrupt:
        kept = (
            f"{plan.checkpoint} holds the state of the last checkpoint: the same command goes on"
            " from there."
            if plan.checkpoint.exists()
            else f"There is no checkpoint yet: the first is written after {plan.every} steps."
        )
        say(f"Stopped. {kept}")
        raise typer.Exit(130) from None


def _verified(model: EkytModel, held_out: WindowSet) -> tuple[Verification, ...]:
    from gazeveil.attacks.identify.deep.verification import (
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
    from dataclasses import replace

    replace(model, about=card.to_dict()).save(out / "weights.npz")
    (out / "card.md").write_text(card.markdown(), encoding="utf-8")
    text = json.dumps(card.to_dict(), indent=2, ensure_ascii=False)
    (out / "card.json").write_text(text + "\n", encoding="utf-8")
    (out / "checkpoint.pt").unlink(missing_ok=True)


def _say(out: Path, card: ModelCard) -> None:
    say(f"{out / 'weights.npz'}: trained on {counted(card.people_trained, 'person')}.")
    if card.verified:
        first = [v for v in card.verified if v.condition == "duration_s"]
        rates = ", ".join(f"{100 * v.eer:.1f} % with {v.value:g} s" for v in first)
        say(f"Equal error rate of {counted(card.people_held_out, 'person')} held out: {rates}.")
    say(
        "The weights remember the people they were trained on: handle the file as raw recordings."
        f" {out / 'card.md'} says more."
    )
