"""Training a network by steps: Adam with a one-cycle or a falling learning rate, batches drawn by
the loss itself, and a checkpoint from which training goes on as if it had never stopped.

Nothing here knows what is trained. Everything random comes from one seed. A checkpoint holds
weights, the optimiser's state, the generator's state, losses and the step. The learning rate
follows from the step alone, so it needs no state.

Networks of headsets: `dgaze` predicts gaze, `ehtask` recognises activities. Here are the layers
that both share.

Dropout draws from the generator it is given, which is part of a checkpoint: torch's own draws from
a generator of the process, and training would not go on as it was after a kill.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Texts
from gazeveil.errors import DataError, MissingExtraError
from gazeveil.models import torch

#: The one-cycle rate (Smith and Topin 2019, with torch's numbers): share of steps that it rises,
#: the first rate as a share of the highest, and the last as a share of the first.
RISE, FIRST, LAST = 0.3, 1 / 25, 1e-4


@dataclass(frozen=True)
class StepPlan:
    """How long and how fast to train.

    Parameters
    ----------
    steps : int
        Batches in all.
    learning_rate : float
        The highest of the cycle.
    seed : int
        Of everything drawn while training.
    checkpoint : Path, optional
        File that holds the state; read when it exists, written every `every` steps and at the end.
    every : int
        Steps between two checkpoints.
    of : str
        What is trained on what, in words or as a digest; a checkpoint of something else is refused.
    weight_decay : float
        Adam's: how strongly weights are pulled to zero.
    falls : tuple of (int, float), optional
        Multiply the rate by the second number at so many equally spaced steps, as papers with a
        schedule by epochs do, instead of the cycle.
    """

    steps: int
    learning_rate: float = 0.01
    seed: int = 0
    checkpoint: Path | None = None
    every: int = 25
    of: str = field(default="", repr=False)
    weight_decay: float = 0.0
    falls: tuple[int, float] | None = None

    def __post_init__(self) -> None:
        checks.count("StepPlan", "steps", self.steps)
        checks.positive("StepPlan", "learning_rate", self.learning_rate)
        checks.count("StepPlan", "every", self.every)
        checks.not_negative("StepPlan", "weight_decay", self.weight_decay)
        if self.falls is not None:
            checks.count("StepPlan", "falls", self.falls[0])
            checks.positive("StepPlan", "falls", self.falls[1])

    def rate(self, step: int) -> float:
        """The learning rate of a step.

        Examples
        --------
        >>> plan = StepPlan(60, 0.01, falls=(5, 0.1))
        >>> plan.rate(9), round(plan.rate(10), 6), round(plan.rate(59), 12)
        (0.01, 0.001, 1e-07)
        """
        if self.falls is None:
            return one_cycle(step, self.steps, self.learning_rate)
        times, factor = self.falls
        return self.learning_rate * factor ** ((times + 1) * step // self.steps)

    def settings(self) -> list[object]:
        """All that changes what is learnt, but for the material."""
        falls = None if self.falls is None else list(self.falls)
        return [self.steps, self.learning_rate, self.seed, self.weight_decay, falls]


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


def best_device(name: str = "auto") -> str:
    """The device of that name; `auto` is a GPU where there is one, else the CPU.

    Raises
    ------
    ParameterError
        For a device that is not there.
    MissingExtraError
        Without torch.
    """
    torch_or_refuse()
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError):
        checks.refuse(
            "training", "device", "auto or a device that torch finds", name, "Use device=cpu."
        )
    return name


def one_cycle(step: int, steps: int, highest: float) -> float:
    """The learning rate of a step: a rising and a falling half of a cosine.

    Examples
    --------
    >>> round(one_cycle(0, 100, 0.01), 6), round(one_cycle(29, 100, 0.01), 6)
    (0.0004, 0.01)
    """
    top = max(RISE * steps - 1, 1e-9)
    first = highest * FIRST
    if step <= top:
        return _cosine(first, highest, min(1.0, step / top))
    return _cosine(highest, first * LAST, min(1.0, (step - top) / max(steps - 1 - top, 1e-9)))


def _cosine(start: float, stop: float, share: float) -> float:
    return stop + (start - stop) / 2 * (1 + math.cos(math.pi * share))


def train_steps(
    module: torch.nn.Module,
    loss: Callable[[torch.Generator], torch.Tensor],
    plan: StepPlan,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[float, ...]:
    """Train a module in place, on its device. `loss` draws a batch with the generator it is given
    (one of that device) and gives its mean loss; `progress` is told (done, total) after every step.

    Returns
    -------
    tuple of float
        The loss of every step.

    Raises
    ------
    DataError
        For a checkpoint of another training.
    """
    device = next(module.parameters()).device
    optimiser = torch.optim.Adam(
        module.parameters(), lr=1.0, weight_decay=plan.weight_decay, fused=device.type == "cuda"
    )
    draws = torch.Generator(device=device).manual_seed(plan.seed)
    losses = torch.zeros(plan.steps, device=device)
    done = _resume(plan, module, optimiser, draws, losses)
    module.train()
    for step in range(done, plan.steps):
        for group in optimiser.param_groups:
            group["lr"] = plan.rate(step)
        optimiser.zero_grad(set_to_none=True)
        value = loss(draws)
        value.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses[step] = value.detach()
        if plan.checkpoint is not None and ((step + 1) % plan.every == 0 or step + 1 == plan.steps):
            _save(plan, step + 1, module, optimiser, draws, losses)
        if progress is not None:
            progress(step + 1, plan.steps)
    module.eval()
    return tuple(losses.tolist())


def _save(
    plan: StepPlan,
    done: int,
    module: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
    draws: torch.Generator,
    losses: torch.Tensor,
) -> None:
    """Write the state beside its place and move it there: a kill leaves the one before."""
    assert plan.checkpoint is not None
    state = {
        "of": plan.of,
        "plan": plan.settings(),
        "done": done,
        "module": module.state_dict(),
        "optimiser": optimiser.state_dict(),
        "draws": draws.get_state(),
        "losses": losses,
    }
    new = plan.checkpoint.with_name(plan.checkpoint.name + ".new")
    torch.save(state, new)
    os.replace(new, plan.checkpoint)


def _resume(
    plan: StepPlan,
    module: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
    draws: torch.Generator,
    losses: torch.Tensor,
) -> int:
    """Load the state if there is one; the number of steps that are done."""
    if plan.checkpoint is None or not plan.checkpoint.is_file():
        return 0
    try:
        # Tensors and plain values alone: a checkpoint cannot run code.
        state: dict[str, Any] = torch.load(plan.checkpoint, map_location="cpu", weights_only=True)
        same = (state["of"], state["plan"]) == (plan.of, plan.settings())
    except Exception as error:
        raise DataError(
            f"{plan.checkpoint} is no checkpoint of a training. Delete it to begin anew."
        ) from error
    if not same:
        raise DataError(
            f"{plan.checkpoint} belongs to a training with other recordings or settings. Delete it"
            " to begin anew, or give the settings it was made with."
        )
    module.load_state_dict(state["module"])
    optimiser.load_state_dict(state["optimiser"])
    draws.set_state(state["draws"])
    losses.copy_(state["losses"])
    return int(state["done"])


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


#: `published`: the network as its paper trains it. `corrected`: ours of the same shape.
READINGS = ("published", "corrected")

#: Whether a network looks at the head: as recorded, or not at all.
HEADS = ("recorded", "none")


def dropped(values: torch.Tensor, share: float, draws: torch.Generator | None) -> torch.Tensor:
    """Values with a share of them set to zero and the others scaled up; without a generator as they
    are.
    """
    if draws is None or share == 0:
        return values
    kept = torch.rand(values.shape, generator=draws, device=values.device) >= share
    return values * kept / (1.0 - share)


def dense(inputs: int, outputs: int) -> torch.nn.Sequential:
    """A linear layer, batch norm and ReLU."""
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, outputs), torch.nn.BatchNorm1d(outputs), torch.nn.ReLU()
    )


def begin_as_published(parts: torch.nn.Module) -> None:
    """First weights of DGaze's authors: convolutions from N(0, 1), linear layers from Xavier's
    normal with biases from N(0, 1), gains of batch norms from N(1, 0.02).
    """
    for layer in parts.modules():
        if isinstance(layer, torch.nn.Conv1d):
            torch.nn.init.normal_(layer.weight)
        elif isinstance(layer, torch.nn.Linear):
            torch.nn.init.xavier_normal_(layer.weight)
            torch.nn.init.normal_(layer.bias)
        elif isinstance(layer, torch.nn.BatchNorm1d):
            torch.nn.init.normal_(cast("torch.Tensor", layer.weight), 1.0, 0.02)


def check_reading(owner: str, reading: str) -> str:
    """The word, or a refusal."""
    return checks.one_of(owner, "reading", reading, READINGS)
