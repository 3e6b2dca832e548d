"""A small one-dimensional U-Net that turns released gaze back into raw gaze.

Four scales, each a quarter as long as the one before: two convolutions of width 5 at every scale on
the way down and on the way up, joined at equal lengths. Input are the unit vectors of a guess (the
release behind a filter) and of the release, less the guess's mean over the window, and whether the
sample was seen; output is what to add to the guess, nothing before training. The loss is the mean
squared error over samples seen on both sides, in units of the guess's own: 1 is as good as the
filter.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.models.resumable import StepPlan, train_steps
from gazeveil.models.train import torch_or_refuse

if TYPE_CHECKING:
    import torch

#: Channels of each scale, factor between scales, width of convolutions, samples of a window.
SCALES, FACTOR, WIDTH, SAMPLES = (16, 24, 32, 32), 4, 5, 512


@dataclass(frozen=True, eq=False)
class UNet:
    """A network, trained or with random weights: `down` and `up`, one block per scale, and `out`.
    One in the network is `unit`, the root mean square error of the guess's coordinates in training.
    """

    parts: torch.nn.ModuleDict = field(repr=False)
    unit: float

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        """Coordinates, shape (windows, 3, samples), of input of shape (windows, 7, samples)."""
        import torch
        from torch.nn.functional import avg_pool1d, interpolate

        kept, values = [], windows
        for scale, block in enumerate(self.parts["down"].children()):
            values = block(avg_pool1d(values, FACTOR) if scale else values)
            kept.append(values)
        for block, joined in zip(self.parts["up"].children(), reversed(kept[:-1]), strict=True):
            wide = interpolate(values, scale_factor=float(FACTOR), mode="nearest")
            values = block(torch.cat((wide, joined), dim=1))
        made: torch.Tensor = self.parts["out"](values)
        return windows[:, :3] + made

    def denoise(self, vectors: Floats, guess: Floats) -> Floats:
        """A better guess of raw gaze than `guess`, for one recording; vectors of any length above
        zero. Both inputs are unit vectors, shape (samples, 3), NaN where lost.

        Windows overlap by half and are weighed by how near to their middle a sample is.
        """
        import torch

        device = next(self.parts.parameters()).device
        filled, seen, length = _filled(np.concatenate((guess, vectors), axis=1))
        starts = np.arange(0, len(filled) - SAMPLES + 1, SAMPLES // 2)
        total, weight = np.zeros((len(filled), 3)), np.zeros(len(filled))
        near = np.minimum(np.arange(SAMPLES) + 1, SAMPLES - np.arange(SAMPLES)) / SAMPLES
        self.parts.eval()
        with torch.no_grad():
            for start in starts:
                rows = slice(start, start + SAMPLES)
                values, mask = (torch.as_tensor(a[rows], device=device) for a in (filled, seen))
                given, middle = _centred(values[None].float(), mask[None].float(), self.unit)
                made = self.forward(given) * self.unit + middle
                total[rows] += near[:, None] * made[0].T.double().cpu().numpy()
                weight[rows] += near
        return (total / np.maximum(weight, 1e-9)[:, None])[:length]


def _filled(vectors: Floats) -> tuple[Floats, Floats, int]:
    """Vectors with gaps bridged and the end repeated to a whole number of half windows, whether
    each was seen, and the length before.
    """
    seen = np.isfinite(vectors).all(axis=1)
    length = len(vectors)
    if not seen.any():
        raise DataError("A recording without a single sample cannot be denoised. Leave it out.")
    at = np.arange(length)
    bridged = np.stack([np.interp(at, at[seen], axis[seen]) for axis in vectors.T], axis=1)
    half = SAMPLES // 2
    more = max(2, -(-length // half)) * half - length
    padded = np.pad(bridged, ((0, more), (0, 0)), mode="edge")
    return padded, np.pad(seen.astype(np.float64), (0, more)), length


def _centred(
    values: torch.Tensor, seen: torch.Tensor, unit: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Input of the network and the mean it lacks; `values` of shape (windows, samples, 6)."""
    import torch

    count = seen.sum(dim=1).clamp(min=1.0)
    middle = (values[..., :3] * seen[..., None]).sum(dim=1) / count[:, None]
    apart = (values - middle.repeat(1, 2)[:, None]) / unit
    given = torch.cat((apart.transpose(1, 2), seen[:, None]), dim=1)
    return given, middle[..., None]


def unet(seed: int, unit: float, device: str = "cpu") -> UNet:
    """A network with random weights.

    Raises
    ------
    MissingExtraError
        Without torch.
    """
    checks.positive("unet", "unit", unit)
    torch_or_refuse()
    import torch
    from torch import nn

    def block(inputs: int, outputs: int) -> nn.Module:
        first = nn.Conv1d(inputs, outputs, WIDTH, padding=WIDTH // 2)
        second = nn.Conv1d(outputs, outputs, WIDTH, padding=WIDTH // 2)
        return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        before = (7, *SCALES[:-1])
        down = nn.ModuleList(block(i, o) for i, o in zip(before, SCALES, strict=True))
        pairs = list(itertools.pairwise(SCALES))[::-1]
        up = nn.ModuleList(block(low + high, low) for low, high in pairs)
        out = nn.Conv1d(SCALES[0], 3, 1)
        nn.init.zeros_(out.weight)
        nn.init.zeros_(out.bias)  # type: ignore[arg-type]
        parts = nn.ModuleDict({"down": down, "up": up, "out": out})
    return UNet(parts.to(device), unit)


def train_unet(
    released: Sequence[Floats],
    guesses: Sequence[Floats],
    raw: Sequence[Floats],
    steps: StepPlan,
    batch: int = 32,
    device: str = "cpu",
) -> tuple[UNet, tuple[float, ...]]:
    """Learn to turn released gaze into raw gaze.

    Parameters
    ----------
    released, guesses, raw : sequences of arrays, shape (samples, 3)
        Unit vectors of the same recordings at the same times: as released, behind a filter, and as
        recorded; NaN where lost.
    steps : StepPlan
        How long, and from which seed.
    batch : int
        Windows of a batch.
    device : str
        As torch names it.

    Raises
    ------
    DataError
        Where no sample is seen on both sides.
    """
    torch_or_refuse()
    import torch

    checks.count("train_unet", "batch", batch)
    given, wanted, seen, starts = _pairs(released, guesses, raw)
    on = [torch.as_tensor(a, device=device) for a in (given, wanted, seen, starts)]
    both = seen[:, 1] > 0
    change = float(np.sqrt(((given[both, :3] - wanted[both]) ** 2).mean()))
    network = unet(steps.seed, max(change, 1e-6), device)

    def loss(draws: torch.Generator) -> torch.Tensor:
        values, target, masks, begins = on
        picked = torch.randint(len(begins), (batch,), generator=draws, device=begins.device)
        rows = begins[picked][:, None] + torch.arange(SAMPLES, device=begins.device)
        entry, middle = _centred(values[rows], masks[rows][..., 0], network.unit)
        apart = (target[rows].transpose(1, 2) - middle) / network.unit
        both = masks[rows][..., 1][:, None]
        squares = (network.forward(entry) - apart) ** 2 * both
        return squares.sum() / (3 * both.sum()).clamp(min=1.0)

    return network, train_steps(network.parts, loss, steps)


def _pairs(
    released: Sequence[Floats], guesses: Sequence[Floats], raw: Sequence[Floats]
) -> tuple[Floats, Floats, Floats, Floats]:
    """All recordings end to end: input, target, (seen, seen on both sides), and where windows
    begin.
    """
    given, wanted, seen, starts, offset = [], [], [], [], 0
    for noisy, guess, clean in zip(released, guesses, raw, strict=True):
        both = np.isfinite(noisy).all(axis=1) & np.isfinite(clean).all(axis=1)
        if not both.any():
            continue
        filled, mask, length = _filled(np.concatenate((guess, noisy), axis=1))
        more = len(filled) - length
        given.append(filled)
        wanted.append(np.pad(np.nan_to_num(clean), ((0, more), (0, 0))))
        seen.append(np.stack((mask, np.pad(both.astype(np.float64), (0, more))), axis=1))
        starts.append(offset + np.arange(0, len(filled) - SAMPLES + 1, 16))
        offset += len(filled)
    if not given:
        raise DataError(
            "There is nothing to learn a denoiser from: no recording has a sample that is known"
            " both raw and released. Use another denoiser."
        )
    singles = [np.concatenate(a).astype(np.float32) for a in (given, wanted, seen)]
    return singles[0], singles[1], singles[2], np.concatenate(starts)  # type: ignore[return-value]
