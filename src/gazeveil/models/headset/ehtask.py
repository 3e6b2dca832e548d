"""Activity recognition in the manner of EHTask (Hu et al. 2022), from windows of the eyes in the
head, the head, and gaze in the world.

    each of the three (2 x steps): three times a convolution with 16 filters of width 3, batch norm,
    ReLU, maximum of two; then a GRU of 64 units in both directions, its last output;
    all together: twice 64 linear outputs, batch norm, ReLU, half dropped; then one per class.

`published` is what its authors train: values as they are, the output at the last step, a rate of
0.01 that falls by a quarter after each of 30 epochs, weight decay 1e-4, batches of 256. `corrected`
brings each channel to mean 0 and variance 1 and sets its movement beside it; takes the mean of the
outputs over time, so that the backward half has seen more than one step; and mirrors half of the
windows left to right.

Movement is how far eye and gaze went since the step before, and how fast the head turns, through
arcsinh(movement / 0.2 degrees) (the head: 5 degrees a second). With it the network names more
windows of simulated people rightly (docs/results/networks.md); why was not taken apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Ints, Singles
from gazeveil.errors import DataError
from gazeveil.models import torch
from gazeveil.models.training import (
    StepPlan,
    check_reading,
    dense,
    dropped,
    torch_or_refuse,
    train_steps,
)

#: The three signals, each (right, down).
BRANCHES = ("eye", "head", "world")

#: Filters, their width, convolutions, units of the GRU, outputs of the joined layers.
FILTERS, WIDTH, CONVOLUTIONS, UNITS, JOINED = 16, 3, 3, 64, 64

#: Movements of eye and gaze (degrees a step) and of the head (degrees a second) up to which
#: arcsinh is nearly straight, and what its values are divided by to be near 1.
STRAIGHT_DEG, STRAIGHT_DEG_S, HIGHEST = 0.2, 5.0, 2.0

#: Share of outputs that is dropped in training.
DROPPED = 0.5

#: Fewest steps of a window that the three convolutions leave something of.
FEWEST_STEPS = 22

#: Rows of a batch, and highest learning rate by reading.
BATCH = {"published": 256, "corrected": 64}
RATE = {"published": 1e-2, "corrected": 5e-3}

_AT_ONCE = 2048


@dataclass(frozen=True, eq=False)
class ActivityNetwork:
    """A network that names activities, trained or with random weights.

    Parameters
    ----------
    parts : torch.nn.ModuleDict
        `eye`, `head`, `world` (convolutions), the same with `_gru`, `joined_1`, `joined_2`, `out`.
    mean, scale : array of float32, shape (6,)
        What is taken off each channel, and what it is divided by.
    reading : {"published", "corrected"}
        How it was trained.
    """

    parts: torch.nn.ModuleDict = field(repr=False)
    mean: Singles
    scale: Singles
    reading: str

    def standardised(self, windows: NDArray[np.floating]) -> Singles:
        """Windows as the network wants them; what is not known counts as the mean."""
        given = windows.astype(np.float32)
        z = (given - self.mean[:, None]) / self.scale[:, None]
        if self.reading == "corrected":
            z = _beside(z, movements(given))
        return np.nan_to_num(z, nan=0.0, posinf=0.0, neginf=0.0).astype(np.float32)

    def forward(self, windows: torch.Tensor, draws: torch.Generator | None = None) -> torch.Tensor:
        """Scores of the classes before a softmax, shape (rows, classes), of standardised windows,
        shape (rows, channels, steps).
        """
        ends = []
        for branch, given in zip(BRANCHES, windows.chunk(len(BRANCHES), dim=1), strict=True):
            course = self.parts[f"{branch}_gru"](self.parts[branch](given).transpose(1, 2))[0]
            ends.append(course[:, -1] if self.reading == "published" else course.mean(dim=1))
        joined = torch.cat(ends, dim=1)
        for name in ("joined_1", "joined_2"):
            joined = dropped(self.parts[name](joined), DROPPED, draws)
        scores: torch.Tensor = self.parts["out"](joined)
        return scores

    def name_them(self, windows: NDArray[np.floating]) -> Ints:
        """The class of each window, shape (rows,), of windows as given in training."""
        device = next(self.parts.parameters()).device
        self.parts.eval()
        made = [torch.empty(0, dtype=torch.int64)]
        with torch.no_grad():
            for first in range(0, len(windows), _AT_ONCE):
                given = self.standardised(windows[first : first + _AT_ONCE])
                scores = self.forward(torch.as_tensor(given, device=device))
                made.append(scores.argmax(dim=1).cpu())
        return np.asarray(torch.cat(made).numpy(), dtype=np.int64)


def movements(windows: Singles) -> Singles:
    """Movement of each channel (top of the page), of windows in degrees and degrees a second, shape
    (rows, 6, steps); 0 at the first step of eye and gaze, NaN where one of two steps is not known.
    """
    head = slice(2, 4)
    moved = np.zeros_like(windows)
    moved[:, :, 1:] = np.diff(windows, axis=2) / STRAIGHT_DEG
    moved[:, head] = windows[:, head] / STRAIGHT_DEG_S
    return (np.arcsinh(moved) / HIGHEST).astype(np.float32)


def _beside(places: Singles, moved: Singles) -> Singles:
    """Both signals of each branch together: (rows, 12, steps) from twice (rows, 6, steps)."""
    rows, channels, steps = places.shape
    pairs = (rows, channels // 2, 2, steps)
    both = np.concatenate((places.reshape(pairs), moved.reshape(pairs)), axis=2)
    return both.reshape(rows, 2 * channels, steps)


def activity_network(
    mean: Singles, scale: Singles, classes: int, reading: str, seed: int, device: str = "cpu"
) -> ActivityNetwork:
    """A network with random weights; parameters as in :class:`ActivityNetwork`, `classes` is how
    many it tells apart.

    Raises
    ------
    MissingExtraError
        Without torch.
    """
    checks.count("activity_network", "classes", classes, least=2)
    torch_or_refuse()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        parts = torch.nn.ModuleDict()
        signals = 4 if reading == "corrected" else 2
        for branch in BRANCHES:
            layers: list[torch.nn.Module] = []
            for number in range(CONVOLUTIONS):
                layers += [
                    torch.nn.Conv1d(FILTERS if number else signals, FILTERS, WIDTH),
                    torch.nn.BatchNorm1d(FILTERS),
                    torch.nn.ReLU(),
                    torch.nn.MaxPool1d(2),
                ]
            parts[branch] = torch.nn.Sequential(*layers)
            parts[f"{branch}_gru"] = torch.nn.GRU(
                FILTERS, UNITS, batch_first=True, bidirectional=True
            )
        parts["joined_1"] = dense(2 * UNITS * len(BRANCHES), JOINED)
        parts["joined_2"], parts["out"] = dense(JOINED, JOINED), torch.nn.Linear(JOINED, classes)
    return ActivityNetwork(parts.to(device), mean, scale, reading)


def ehtask_plan(reading: str, steps: int, seed: int) -> StepPlan:
    """How long and how fast a reading trains."""
    falls = (29, 0.75) if check_reading("ehtask_plan", reading) == "published" else None
    return StepPlan(steps, RATE[reading], seed, weight_decay=1e-4, falls=falls)


def train_ehtask(
    windows: NDArray[np.floating],
    classes: Ints,
    plan: StepPlan,
    reading: str = "corrected",
    batch: int | None = None,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> tuple[ActivityNetwork, tuple[float, ...]]:
    """Learn activities.

    Parameters
    ----------
    windows : array, shape (rows, 6, steps)
        Eye in head, head velocity and gaze in the world, each right and down; NaN where not known.
    classes : array of int64, shape (rows,)
        The class of each window, counted from 0.
    plan : StepPlan
        How long, from which seed, with which checkpoint.
    reading : {"published", "corrected"}
        See the top of the page.
    batch : int, optional
        Windows of a batch; 256 as published, 64 for ours.
    device, progress
        As torch names it; told (done, total).

    Raises
    ------
    DataError
        For windows of fewer than 22 steps, or fewer than two classes.
    """
    torch_or_refuse()
    check_reading("train_ehtask", reading)
    size = checks.count("train_ehtask", "batch", BATCH[reading] if batch is None else batch, 2)
    number = int(classes.max()) + 1 if len(classes) else 0
    if number < 2 or windows.shape[2] < FEWEST_STEPS:
        raise DataError(
            "The network of activities needs windows of at least two classes, each of at least"
            f" {FEWEST_STEPS} steps. Got {number} classes and {windows.shape[2]} steps. Use longer"
            " windows, or the forest."
        )
    mean, scale = _moments(windows, reading)
    network = activity_network(mean, scale, number, reading, plan.seed, device)
    rows = torch.as_tensor(network.standardised(windows), device=device)
    wanted = torch.as_tensor(classes, device=device)
    mirror = torch.tensor([-1.0, 1.0], device=device).repeat(rows.shape[1] // 2)[None, :, None]

    def loss(draws: torch.Generator) -> torch.Tensor:
        picked = torch.randint(len(rows), (size,), generator=draws, device=rows.device)
        given = rows[picked]
        if reading == "corrected":
            chance = torch.rand((size, 1, 1), generator=draws, device=rows.device)
            given = torch.where(chance < 0.5, given * mirror, given)
        return torch.nn.functional.cross_entropy(network.forward(given, draws), wanted[picked])

    return network, train_steps(network.parts, loss, plan, progress)


def _moments(windows: NDArray[np.floating], reading: str) -> tuple[Singles, Singles]:
    """Mean and deviation of each channel; 0 and 1 as published."""
    channels = windows.shape[1]
    mean, scale = np.zeros(channels, np.float32), np.ones(channels, np.float32)
    if reading == "published":
        return mean, scale
    for i in range(channels):
        known = windows[:, i][np.isfinite(windows[:, i])].astype(np.float64)
        if len(known) and known.std() > 1e-9:
            # Mirroring must not move the mean, so right and left share theirs: zero.
            mean[i] = 0.0 if i % 2 == 0 else known.mean()
            scale[i] = max(float(np.sqrt(((known - mean[i]) ** 2).mean())), 1e-9)
    return mean, scale
