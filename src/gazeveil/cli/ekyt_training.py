"""`gazeveil train` without `--network`: the network of the attacker `ekyt`, judged on people it was
not trained on; and the folder of a network, which all networks share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from gazeveil import __version__
from gazeveil.cli.arguments import counted, say
from gazeveil.cli.progress import bar
from gazeveil.errors import DataError

if TYPE_CHECKING:
    from gazeveil.attacks.identify.verification import ModelCard, Verification
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.models.ekyt.weights import EkytModel
    from gazeveil.models.ekyt.windows import WindowSet
    from gazeveil.models.headset.weights import TrainedPredictor, TrainedRecogniser
    from gazeveil.models.marks import RecordingMarks
    from gazeveil.models.resumable import StepPlan

#: Seconds of gaze that held-out people are judged with.
DURATIONS_S = (5.0, 10.0, 20.0, 60.0)

#: Sizes of galleries.
GALLERIES = (5, 10, 20, 50, 100, 200, 500, 1000)


def train_person_network(
    cohort: Cohort,
    data: str,
    out: Path,
    hold_out: float,
    chosen: tuple[str, float, float, int],
    training: tuple[int, int, int],
    device: str,
) -> Mapping[str, object]:
    """Train, judge and write the attacker's network: `chosen` has channels, highest rate in Hz,
    seconds of a window and windows of a person in a batch, `training` steps, steps between two
    checkpoints and the seed.
    """
    from gazeveil.attacks.identify.verification import ModelCard
    from gazeveil.models.ekyt.training import BatchPlan
    from gazeveil.models.ekyt.velocity import VelocityInput, common_rate_hz
    from gazeveil.models.ekyt.windows import WindowSet
    from gazeveil.models.resumable import StepPlan

    (channels, rate_hz, window_s, windows), (steps, every, seed) = chosen, training
    setting = VelocityInput(common_rate_hz(cohort, rate_hz), window_s, channels)
    made = WindowSet.of(cohort, setting)
    trained, held_out = _by_people(made, hold_out, seed)
    batch = BatchPlan(windows=windows)
    out.mkdir(parents=True, exist_ok=True)
    plan = StepPlan(
        steps, seed=seed, checkpoint=out / CHECKPOINT, every=every, of=_digest(trained, batch)
    )
    model, losses = _train(trained, plan, batch, device)
    model = replace(model, marks=_marks(cohort, trained, plan))
    verified = () if held_out is None else _verified(model, held_out)
    names = {
        name: len(set(w.persons)) for name, w in (("trained", trained), ("held", held_out)) if w
    }
    tail = losses[-max(1, steps // 10) :]
    card = ModelCard(
        data, len(made.keys), names["trained"], names.get("held", 0), channels, setting.rate_hz,
        window_s, steps, seed, sum(tail) / len(tail), __version__, verified,
    )  # fmt: skip
    write_network(out, model, card)
    _say(out, card)
    return card.to_dict()


def _by_people(made: WindowSet, hold_out: float, seed: int) -> tuple[WindowSet, WindowSet | None]:
    """Windows to train on and, of other people, to judge with."""
    from gazeveil.attacks.identify.verification import enrolled_and_asked
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


def _marks(cohort: Cohort, trained: WindowSet, plan: StepPlan) -> RecordingMarks:
    """Marks of all recordings of the people trained on."""
    from gazeveil.models.marks import RecordingMarks

    people = set(trained.persons)
    return RecordingMarks.of((r for r in cohort if r.person in people), plan.of[:16])


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
    with stoppable(plan), bar("Training") as progress:
        return train_ekyt(windows, plan, batch, device, progress)


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


def _say(out: Path, card: ModelCard) -> None:
    say(f"{out / WEIGHTS}: trained on {counted(card.people_trained, 'person')}.")
    if card.verified:
        first = [v for v in card.verified if v.condition == "duration_s"]
        rates = ", ".join(f"{100 * v.eer:.1f} % with {v.value:g} s" for v in first)
        say(f"Equal error rate of {counted(card.people_held_out, 'person')} held out: {rates}.")
    say_handling(out)


#: The files.
WEIGHTS, PAGE, FIGURES, CHECKPOINT = "weights.npz", "card.md", "card.json", "checkpoint.pt"


class Card(Protocol):
    """What is to be said of a network."""

    def to_dict(self) -> Mapping[str, object]:
        """Plain values, for JSON."""

    def markdown(self) -> str:
        """A page."""


@contextmanager
def stoppable(plan: StepPlan) -> Iterator[None]:
    """Report the checkpoint that training resumes from, and the one left on Ctrl-C."""
    assert plan.checkpoint is not None
    if plan.checkpoint.exists():
        say(f"Going on from {plan.checkpoint}.")
    try:
        yield
    except KeyboardInterrupt:
        kept = (
            f"{plan.checkpoint} holds the state of the last checkpoint: the same command goes on"
            " from there."
            if plan.checkpoint.exists()
            else f"There is no checkpoint yet: the first is written after {plan.every} steps."
        )
        say(f"Stopped. {kept}")
        raise typer.Exit(130) from None


def write_network(
    out: Path, model: EkytModel | TrainedPredictor | TrainedRecogniser, card: Card
) -> None:
    """Write weights and card; the checkpoint goes."""
    about = card.to_dict()
    replace(model, about=about).save(out / WEIGHTS)
    (out / PAGE).write_text(card.markdown(), encoding="utf-8")
    text = json.dumps(about, indent=2, ensure_ascii=False)
    (out / FIGURES).write_text(text + "\n", encoding="utf-8")
    (out / CHECKPOINT).unlink(missing_ok=True)


def say_handling(out: Path) -> None:
    """The last sentence of every training."""
    say(
        "The weights remember the people they were trained on: handle the file as raw recordings."
        f" {out / PAGE} says more."
    )
