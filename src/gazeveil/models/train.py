"""Training a network: minibatches in random order, Adam, and the loss on held-out data after every
epoch.

Nothing here knows what is trained: it takes tensors and a function that gives the mean loss of a
batch. Everything random comes from one seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Texts
from gazeveil.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import torch


def torch_or_refuse() -> None:
    """Refuse with the next step where torch is not installed.

    Raises
    ------
    MissingExtraError
        Where it is not.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("torch", "deep") from error


def best_device(wanted: str = "auto") -> str:
    """The device of that name; `auto` is a GPU where there is one, else the CPU.

    Raises
    ------
    ParameterError
        For a device that is not there.
    MissingExtraError
        Without torch.
    """
    torch_or_refuse()
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=wanted)
    except (RuntimeError, AssertionError):
        checks.refuse(
            "training", "device", "auto or a device that torch finds", wanted, "Use device=cpu."
        )
    return wanted


@dataclass(frozen=True)
class Schedule:
    """How to train: Adam's rate, rows of a minibatch, how often all rows are seen, and a seed for
    the first weights, the order of rows and what the loss draws.
    """

    learning_rate: float = 0.01
    batch: int = 100
    epochs: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        checks.positive("Schedule", "learning_rate", self.learning_rate)
        checks.count("Schedule", "batch", self.batch)
        checks.count("Schedule", "epochs", self.epochs, least=0)


@dataclass(frozen=True)
class History:
    """Mean losses after each epoch, training (while it went on) and validation (afterwards, without
    drawing).
    """

    training: tuple[float, ...]
    validation: tuple[float, ...]


def train(
    parameters: Iterable[torch.nn.Parameter],
    loss: Callable[[Sequence[torch.Tensor], torch.Generator | None], torch.Tensor],
    rows: Sequence[torch.Tensor],
    held_out: Sequence[torch.Tensor],
    schedule: Schedule,
) -> History:
    """Train parameters in place.

    Parameters
    ----------
    parameters : iterable
        What is trained.
    loss : callable
        `loss(batch, generator)` gives the mean loss of a batch, one tensor per input; the generator
        is None for validation.
    rows : sequence of tensors
        Training inputs, all of one length, on the device to train on.
    held_out : sequence of tensors
        Validation inputs; may be empty.
    schedule : Schedule
        How.
    """
    import torch

    count = len(rows[0])
    if count == 0:
        raise DataError("There is nothing to train on. Give at least one row.")
    device = rows[0].device
    optimiser = torch.optim.Adam(parameters, lr=schedule.learning_rate)
    draws = torch.Generator(device=device).manual_seed(schedule.seed)
    training, validation = [], []
    for _ in range(schedule.epochs):
        order = torch.randperm(count, generator=draws, device=device)
        total = torch.zeros((), device=device)
        for first in range(0, count, schedule.batch):
            picked = order[first : first + schedule.batch]
            optimiser.zero_grad()
            value = loss([r[picked] for r in rows], draws)
            value.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += value.detach() * len(picked)
        training.append(float(total) / count)
        if len(held_out) and len(held_out[0]):
            with torch.no_grad():
                validation.append(float(loss(held_out, None)))
    return History(tuple(training), tuple(validation))


def split_by_person(person: Sequence[str] | Texts, share: float, seed: int) -> Bools:
    """Which rows are for training: those of a random `share` of the people, at least one of them
    and not all.

    Raises
    ------
    DataError
        For fewer than two people.
    """
    names = sorted(set(np.asarray(person).tolist()))
    if len(names) < 2:
        raise DataError("A split by participant needs rows of at least two people.")
    order = np.random.default_rng(seed).permutation(len(names))
    kept = {names[i] for i in order[: min(max(round(share * len(names)), 1), len(names) - 1)]}
    return np.array([p in kept for p in np.asarray(person).tolist()])
