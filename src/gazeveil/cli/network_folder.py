"""The folder that `gazeveil train` writes: a checkpoint in training, then weights and a card."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from gazeveil.cli.arguments import say

if TYPE_CHECKING:
    from gazeveil.models.ekyt.weights import EkytModel
    from gazeveil.models.headset.weights import TrainedPredictor, TrainedRecogniser
    from gazeveil.models.resumable import StepPlan

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
    """Training that says where it goes on from, and what is kept when somebody stops it."""
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
