"""A gaze predictor in the manner of DGaze (Hu et al. 2020): where gaze will be, from the history of
the eyes and the head, objects nearby and a saliency map.

    history (channels x lags): convolution, 128 filters of width 2, batch norm, ReLU, maximum of 2;
    saliency map, where there is one: 64 linear outputs, batch norm, ReLU;
    both together: twice 128 linear outputs, batch norm, ReLU; then two, the place in degrees.

`published` is what its authors train: values as they are, their first weights, half of all outputs
dropped, the mean absolute error of the two coordinates, batches of 64, a rate of 0.01 that falls to
a tenth five times. `corrected` brings each channel to variance 1, begins at "gaze stays where it
is" (the last layer is zero), drops a tenth and minimises the mean distance, which is what is
measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Floats, Singles
from gazeveil.errors import DataError
from gazeveil.models import torch
from gazeveil.models.training import (
    StepPlan,
    begin_as_published,
    check_reading,
    dense,
    dropped,
    torch_or_refuse,
    train_steps,
)

#: Filters of the convolution, their width, outputs of the map's layer and of the joined ones.
FILTERS, WIDTH, FROM_MAP, JOINED = 128, 2, 64, 128

#: Share of outputs that is dropped in training, by reading.
DROPPED = {"published": 0.5, "corrected": 0.1}

#: Rows of a batch, by reading, and highest learning rate.
BATCH = {"published": 64, "corrected": 128}
RATE = {"published": 1e-2, "corrected": 3e-3}

#: Rows that go through the network at once.
_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class GazePredictor:
    """A network that says where gaze will be, trained or with random weights.

    Parameters
    ----------
    parts : torch.nn.ModuleDict
        `history`, `map` (where there are maps), `joined_1`, `joined_2` and `out`.
    scale : array of float32, shape (channels,)
        What each channel is divided by.
    reading : {"published", "corrected"}
        How it was trained.
    """

    parts: torch.nn.ModuleDict = field(repr=False)
    scale: Singles
    reading: str

    def forward(
        self,
        history: torch.Tensor,
        saliency: torch.Tensor | None = None,
        draws: torch.Generator | None = None,
    ) -> torch.Tensor:
        """Places in degrees, shape (rows, 2), of scaled histories, shape (rows, channels, lags)."""
        share = DROPPED[self.reading]
        seen = dropped(
            torch.nn.functional.max_pool1d(self.parts["history"](history), 2), share, draws
        ).flatten(1)
        if saliency is not None and "map" in self.parts:
            seen = torch.cat((seen, dropped(self.parts["map"](saliency), share, draws)), dim=1)
        for name in ("joined_1", "joined_2"):
            seen = dropped(self.parts[name](seen), share, draws)
        made: torch.Tensor = self.parts["out"](seen)
        return made

    def predict(self, history: NDArray[np.floating], saliency: Floats | None = None) -> Floats:
        """Places in degrees, shape (rows, 2), of histories as given in training."""
        device = next(self.parts.parameters()).device
        self.parts.eval()
        made = [torch.empty((0, 2))]
        with torch.no_grad():
            for first in range(0, len(history), _AT_ONCE):
                rows = slice(first, first + _AT_ONCE)
                given = history[rows].astype(np.float32) / self.scale[:, None]
                maps = None if saliency is None else _tensor(saliency[rows], device)
                made.append(self.forward(_tensor(given, device), maps).cpu())
        return torch.cat(made).double().numpy()


def _tensor(values: NDArray[np.floating], device: torch.device | str) -> torch.Tensor:
    return torch.as_tensor(np.ascontiguousarray(values, dtype=np.float32), device=device)


def gaze_predictor(
    scale: Singles, lags: int, map_size: int, reading: str, seed: int, device: str = "cpu"
) -> GazePredictor:
    """A network with random weights.

    Parameters
    ----------
    scale : array of float32, shape (channels,)
        What each channel is divided by.
    lags : int
        Moments of the history.
    map_size : int
        Numbers of a saliency map; 0 for none.
    reading, seed, device
        How it is trained, the seed of the weights, and where it lies.

    Raises
    ------
    MissingExtraError
        Without torch.
    """
    checks.count("gaze_predictor", "lags", lags, least=3)
    torch_or_refuse()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        convolution = torch.nn.Conv1d(len(scale), FILTERS, WIDTH)
        parts = torch.nn.ModuleDict(
            {
                "history": torch.nn.Sequential(
                    convolution, torch.nn.BatchNorm1d(FILTERS), torch.nn.ReLU()
                )
            }
        )
        size = FILTERS * ((lags - WIDTH + 1) // 2)
        if map_size:
            parts["map"] = dense(map_size, FROM_MAP)
            size += FROM_MAP
        parts["joined_1"], parts["joined_2"] = dense(size, JOINED), dense(JOINED, JOINED)
        out = torch.nn.Linear(JOINED, 2)
        parts["out"] = out
        if reading == "published":
            begin_as_published(parts)
        else:
            torch.nn.init.zeros_(out.weight)
            torch.nn.init.zeros_(out.bias)
    return GazePredictor(parts.to(device), scale, reading)


def dgaze_plan(reading: str, steps: int, seed: int) -> StepPlan:
    """How long and how fast a reading trains."""
    falls = (5, 0.1) if check_reading("dgaze_plan", reading) == "published" else None
    return StepPlan(steps, RATE[reading], seed, falls=falls)


def train_dgaze(
    history: NDArray[np.floating],
    target_deg: Floats,
    plan: StepPlan,
    saliency: Floats | None = None,
    reading: str = "corrected",
    batch: int | None = None,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> tuple[GazePredictor, tuple[float, ...]]:
    """Learn where gaze goes.

    Parameters
    ----------
    history : array, shape (rows, channels, lags)
        What is known, newest first or last but always the same; finite.
    target_deg : array of float64, shape (rows, 2)
        Where gaze went: relative to where it is now for `corrected`, whose first guess is zero.
    plan : StepPlan
        How long, from which seed, with which checkpoint.
    saliency : array, shape (rows, numbers), optional
        Saliency maps.
    reading : {"published", "corrected"}
        See the top of the page.
    batch : int, optional
        Rows of a batch; 64 as published, 128 for ours.
    device, progress
        As torch names it; told (done, total).

    Raises
    ------
    DataError
        For fewer than two rows, or values that are not finite.
    """
    torch_or_refuse()
    check_reading("train_dgaze", reading)
    size = checks.count("train_dgaze", "batch", BATCH[reading] if batch is None else batch, 2)
    if len(history) < 2 or not (np.isfinite(history).all() and np.isfinite(target_deg).all()):
        raise DataError(
            "A gaze predictor learns from at least two moments, and all their numbers must be"
            f" finite. Got {len(history)} moments. Give longer recordings."
        )
    scale = np.ones(history.shape[1], dtype=np.float32)
    if reading == "corrected":
        spread = np.sqrt((history.astype(np.float64) ** 2).mean(axis=(0, 2)))
        scale = np.where(spread > 1e-9, spread, 1.0).astype(np.float32)
    maps = 0 if saliency is None else saliency.shape[1]
    network = gaze_predictor(scale, history.shape[2], maps, reading, plan.seed, device)
    rows = _tensor(history / scale[:, None], device)
    wanted, shown = _tensor(target_deg, device), saliency is not None
    seen = _tensor(saliency, device) if saliency is not None else wanted

    def loss(draws: torch.Generator) -> torch.Tensor:
        picked = torch.randint(len(rows), (size,), generator=draws, device=rows.device)
        made = network.forward(rows[picked], seen[picked] if shown else None, draws)
        apart = made - wanted[picked]
        if reading == "published":
            return apart.abs().mean()
        return torch.linalg.vector_norm(apart, dim=1).mean()

    return network, train_steps(network.parts, loss, plan, progress)
