"""Training by steps that survives a kill: Adam with a one-cycle or a falling learning rate, batches
drawn by the loss itself, and a checkpoint from which training goes on as if it had never stopped.

A checkpoint holds weights, the optimiser's state, the generator's state, losses and the step. The
learning rate follows from the step alone, so it needs no state.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.errors import DataError

if TYPE_CHECKING:
    import torch

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


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """Training run that can be stopped and resumed.

    Parameters
    ----------
    plan : StepPlan
        How long, from which seed, with which checkpoint.
    device : str
        As torch names it.
    progress : callable, optional
        Told (steps done, all steps).
    preparing : callable, optional
        Told (recordings looked at, all recordings) before that.
    """

    plan: StepPlan
    device: str = "cpu"
    progress: Callable[[int, int], None] | None = None
    preparing: Callable[[int, int], None] | None = None

    def of(self, words: str, *arrays: NDArray[Any]) -> TrainingRun:
        """The same for this material: its checkpoint, where there is one, serves no other."""
        if self.plan.checkpoint is None:
            return self
        return replace(self, plan=replace(self.plan, of=digest_of(words, *arrays)))


def digest_of(words: str, *arrays: NDArray[Any]) -> str:
    """A digest of what is trained, in words, and of what it is trained on."""
    digest = hashlib.sha256(words.encode())
    for array in arrays:
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


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
    import torch

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
    import torch

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
    import torch

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
