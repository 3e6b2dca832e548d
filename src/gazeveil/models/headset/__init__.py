"""Networks of headsets: `dgaze` predicts gaze, `ehtask` recognises activities. Here are the layers
that both share.

Dropout draws from the generator it is given, which is part of a checkpoint: torch's own draws from
a generator of the process, and training would not go on as it was after a kill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gazeveil import checks

if TYPE_CHECKING:
    import torch

#: `published`: the network as its paper trains it. `corrected`: ours of the same shape.
READINGS = ("published", "corrected")

#: Whether a network looks at the head: as recorded, or not at all.
HEADS = ("recorded", "none")


def dropped(values: torch.Tensor, share: float, draws: torch.Generator | None) -> torch.Tensor:
    """Values with a share of them set to zero and the others scaled up; without a generator as they
    are.
    """
    import torch

    if draws is None or share == 0:
        return values
    kept = torch.rand(values.shape, generator=draws, device=values.device) >= share
    return values * kept / (1.0 - share)


def dense(inputs: int, outputs: int) -> torch.nn.Sequential:
    """A linear layer, batch norm and ReLU."""
    from torch import nn

    return nn.Sequential(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU())


def begin_as_published(parts: torch.nn.Module) -> None:
    """First weights of DGaze's authors: convolutions from N(0, 1), linear layers from Xavier's
    normal with biases from N(0, 1), gains of batch norms from N(1, 0.02).
    """
    from torch import nn

    for layer in parts.modules():
        if isinstance(layer, nn.Conv1d):
            nn.init.normal_(layer.weight)
        elif isinstance(layer, nn.Linear):
            nn.init.xavier_normal_(layer.weight)
            nn.init.normal_(layer.bias)
        elif isinstance(layer, nn.BatchNorm1d):
            nn.init.normal_(cast("torch.Tensor", layer.weight), 1.0, 0.02)


def check_reading(owner: str, reading: str) -> str:
    """The word, or a refusal."""
    return checks.one_of(owner, "reading", reading, READINGS)
