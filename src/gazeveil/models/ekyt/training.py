"""Training the dense network: batches of several windows of several people, drawn on the device.

All velocities lie on the device once; a batch is a matter of indices there. On a GPU the network
runs in bfloat16 (the loss in float32) and compiled; on a CPU in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints, Singles
from gazeveil.errors import DataError
from gazeveil.models.ekyt.network import DenseNetwork, cut, dense_network, multi_similarity
from gazeveil.models.ekyt.weights import EkytModel
from gazeveil.models.ekyt.windows import VelocityScale, WindowSet
from gazeveil.models.training import StepPlan, torch_or_refuse, train_steps

if TYPE_CHECKING:
    import torch

#: Weight of cross-entropy beside the multi-similarity loss.
NAMING = 0.1


@dataclass(frozen=True)
class BatchPlan:
    """What a batch is made of: at most so many people, and windows of each. `compiled` compiles the
    network on a GPU: half a minute once, then faster steps.
    """

    people: int = 16
    windows: int = 16
    compiled: bool = False

    def __post_init__(self) -> None:
        checks.count("BatchPlan", "people", self.people, least=2)
        checks.count("BatchPlan", "windows", self.windows, least=2)


@dataclass(frozen=True, eq=False)
class DeviceWindows:
    """Training windows on a device, sorted by person.

    Parameters
    ----------
    values : tensor of float32, shape (channels, samples)
        Standardised velocities.
    starts : tensor of int64, shape (windows,)
        Where windows begin, person by person.
    first, count : tensors of int64, shape (people,)
        Where each person's windows begin in `starts`, and how many there are.
    samples : int
        Of a window.
    """

    values: torch.Tensor
    starts: torch.Tensor
    first: torch.Tensor
    count: torch.Tensor
    samples: int

    @classmethod
    def on(cls, device: str, values: Singles, windows: WindowSet, code: Ints) -> DeviceWindows:
        """Put windows on a device; `code` is the person of each, counted from 0."""
        import torch

        order = np.argsort(code, kind="stable")
        count = np.bincount(code)
        first = np.concatenate(([0], np.cumsum(count)[:-1]))
        return cls(
            torch.as_tensor(values, device=device),
            torch.as_tensor(windows.starts[order], device=device),
            torch.as_tensor(first, device=device),
            torch.as_tensor(count, device=device),
            windows.setting.samples,
        )

    def batch(self, plan: BatchPlan, draws: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Random windows of random people: (channels, windows, samples), and whose they are."""
        import torch

        device = self.values.device
        people = torch.randperm(len(self.count), generator=draws, device=device)[: plan.people]
        people = people.repeat_interleave(plan.windows)
        share = torch.rand(len(people), generator=draws, device=device, dtype=torch.float64)
        place = self.first[people] + (share * self.count[people]).long()
        return cut(self.values, self.starts[place], self.samples), people


def batch_loss(
    network: DenseNetwork, windows: DeviceWindows, plan: BatchPlan
) -> Callable[[torch.Generator], torch.Tensor]:
    """The loss of a random batch: multi-similarity + 0.1 cross-entropy."""
    import torch
    from torch.nn.functional import cross_entropy

    gpu = network.device.type == "cuda"
    embed = torch.compile(network.embed) if gpu and plan.compiled else network.embed

    def loss(draws: torch.Generator) -> torch.Tensor:
        batch, people = windows.batch(plan, draws)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=gpu):
            embeddings = embed(batch)
        embeddings = embeddings.float()
        return multi_similarity(embeddings, people) + NAMING * cross_entropy(
            network.names(embeddings), people
        )

    return loss


def train_ekyt(
    windows: WindowSet,
    steps: StepPlan,
    batches: BatchPlan | None = None,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> tuple[EkytModel, tuple[float, ...]]:
    """Train the network on windows of people, of the training side alone; batches of 16 people x 16
    windows by default, as Lohr and Komogortsev have it. `progress` is told (done, total).

    Returns
    -------
    EkytModel, tuple of float
        The network and the loss of every step.

    Raises
    ------
    DataError
        For fewer than two people with windows.
    MissingExtraError
        Without torch.
    """
    torch_or_refuse()
    people, code = windows.people()
    if len(people) < 2:
        raise DataError(
            "ekyt learns to tell people apart and needs windows of at least two, each with more"
            f" than half of its {windows.setting.window_s:g} s known. Got {len(people)}. Give"
            " longer recordings with fewer lost samples, or a smaller window_s."
        )
    scale = VelocityScale.fit(windows.used())
    network = dense_network(windows.setting.count, len(people), steps.seed, device)
    on_device = DeviceWindows.on(device, scale.apply(windows.values), windows, code)
    loss = batch_loss(network, on_device, batches if batches is not None else BatchPlan())
    losses = train_steps(network.parts, loss, steps, progress)
    return EkytModel(network, windows.setting, scale), losses
