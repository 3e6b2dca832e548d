"""The dense network of Lohr and Komogortsev 2022.

    8 layers, each: batch norm, ReLU (not in the first), convolution of width 3 with 32 outputs,
    dilated by 1, 2, 4, 8, 16, 32, 64, 1; the input of a layer is joined to its output, so channels
    grow from 2 to 258. Then batch norm, ReLU, mean over time, and 128 linear outputs: the
    embedding. In training a batch norm, ReLU and linear layer names the person.

Tensors have shape (channels, windows, samples): a convolution is then one matrix product of its
3 x 32 rows with all windows at once, and joining channels copies rows. On a CPU this takes 0.6 of
the time of torch's own dilated convolution, and a GPU gets one large product per layer.

The multi-similarity loss with its miner (Wang et al., CVPR 2019), for all anchors at once.

With S the cosines of embeddings, P_i the other windows of anchor i's person and N_i those of other
people, the miner keeps

    negatives with S_ij > min over P_i of S_ik - margin, positives with S_ik < max over N_i of S_ij
    + margin,

and the loss is the mean over anchors of

    log(1 + sum over kept positives of exp(-alpha (S - base))) / alpha
    + log(1 + sum over kept negatives of exp(beta (S - base))) / beta.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from gazeveil import checks
from gazeveil.models.training import torch_or_refuse

if TYPE_CHECKING:
    import torch

#: Dilation of each layer.
DILATIONS = (1, 2, 4, 8, 16, 32, 64, 1)

#: Outputs of each layer, width of its convolution, and numbers of an embedding.
GROWTH, WIDTH, NUMBERS = 32, 3, 128

#: Sharpness for positives and negatives, the cosine between both, and the miner's margin.
ALPHA, BETA, BASE, MARGIN = 2.0, 50.0, 0.5, 0.1


@dataclass(frozen=True, eq=False)
class DenseNetwork:
    """A network, trained or with random weights. Its parts are `norms` (one per layer, the last
    after all of them), `convolutions`, `embedding` and `classifier`.
    """

    inputs: int
    parts: torch.nn.ModuleDict = field(repr=False)

    @property
    def channels(self) -> int:
        """Channels after the last layer."""
        return self.inputs + GROWTH * len(DILATIONS)

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return next(self.parts.parameters()).device

    def _layers(self, name: str) -> list[torch.nn.Module]:
        return list(self.parts[name].children())

    def embed(self, windows: torch.Tensor) -> torch.Tensor:
        """Embeddings, shape (windows, 128), of standardised velocities of shape (channels, windows,
        samples).
        """
        import torch

        norms, convolutions = self._layers("norms"), self._layers("convolutions")
        joined = windows
        for layer, (convolution, dilation) in enumerate(zip(convolutions, DILATIONS, strict=True)):
            ready = joined if layer == 0 else _normed(norms[layer - 1], joined)
            joined = torch.cat(
                (joined, _convolved(ready, cast("torch.Tensor", convolution.weight), dilation))
            )
        pooled = _normed(norms[-1], joined).mean(dim=-1)
        embedded: torch.Tensor = self.parts["embedding"](pooled.T)
        return embedded

    def names(self, embeddings: torch.Tensor) -> torch.Tensor:
        """The classifier's scores of the training people, before a softmax."""
        scores: torch.Tensor = self.parts["classifier"](embeddings)
        return scores


def _normed(norm: torch.nn.Module, values: torch.Tensor) -> torch.Tensor:
    """Batch norm over windows and time, then ReLU."""
    import torch

    flat = norm(values.reshape(1, len(values), -1))
    return torch.relu(flat).reshape(values.shape)


def _convolved(values: torch.Tensor, weight: torch.Tensor, dilation: int) -> torch.Tensor:
    """A dilated convolution of width 3 that keeps the length, zeros beyond the ends."""
    from torch.nn.functional import pad

    channels, windows, samples = values.shape
    # (outputs, inputs, 3) -> one product for the three taps.
    taps = weight.permute(2, 0, 1).reshape(-1, channels) @ values.reshape(channels, -1)
    before, here, after = taps.reshape(WIDTH, -1, windows, samples)
    if dilation >= samples:
        return here
    return (
        here
        + pad(before[..., :-dilation], (dilation, 0))
        + pad(after[..., dilation:], (0, dilation))
    )


def cut(values: torch.Tensor, starts: torch.Tensor, samples: int) -> torch.Tensor:
    """Windows of `samples` samples, shape (channels, windows, samples)."""
    import torch

    return values[:, starts[:, None] + torch.arange(samples, device=values.device)]


def dense_network(inputs: int, people: int, seed: int, device: str = "cpu") -> DenseNetwork:
    """A network with random weights, whose classifier tells `people` apart in training; refused
    without torch. `device` is as torch names it.
    """
    checks.count("dense_network", "inputs", inputs)
    checks.count("dense_network", "people", people)
    torch_or_refuse()
    import torch
    from torch import nn

    # Drawn on the CPU, so that every device begins with the same weights.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = [inputs + GROWTH * layer for layer in range(len(DILATIONS) + 1)]
        parts = nn.ModuleDict(
            {
                "norms": nn.ModuleList(nn.BatchNorm1d(size) for size in sizes[1:]),
                "convolutions": nn.ModuleList(
                    nn.Conv1d(size, GROWTH, WIDTH, bias=False) for size in sizes[:-1]
                ),
                "embedding": nn.Linear(sizes[-1], NUMBERS),
                "classifier": nn.Sequential(
                    nn.BatchNorm1d(NUMBERS), nn.ReLU(), nn.Linear(NUMBERS, people)
                ),
            }
        )
    return DenseNetwork(inputs, parts.to(device))


def multi_similarity(embeddings: torch.Tensor, people: torch.Tensor) -> torch.Tensor:
    """The mean loss of a batch.

    Parameters
    ----------
    embeddings : tensor, shape (windows, numbers)
        Any length; cosines are taken.
    people : tensor of int64, shape (windows,)
        Whose each window is.
    """
    import torch

    unit = torch.nn.functional.normalize(embeddings.float(), dim=1)
    cosines = unit @ unit.T
    same = people[:, None] == people[None, :]
    itself = torch.eye(len(people), dtype=torch.bool, device=people.device)
    positive, negative = same & ~itself, ~same
    infinity = torch.tensor(torch.inf, device=people.device)
    with torch.no_grad():
        hardest_positive = torch.where(positive, cosines, infinity).amin(dim=1, keepdim=True)
        hardest_negative = torch.where(negative, cosines, -infinity).amax(dim=1, keepdim=True)
        # An anchor without a positive (or a negative) keeps no pair of the other kind either.
        kept_negative = negative & (cosines + MARGIN > hardest_positive) & positive.any(1, True)
        kept_positive = positive & (cosines - MARGIN < hardest_negative) & negative.any(1, True)
    pull = _soft_sum(-ALPHA * (cosines - BASE), kept_positive) / ALPHA
    push = _soft_sum(BETA * (cosines - BASE), kept_negative) / BETA
    return (pull + push).mean()


def _soft_sum(exponents: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """log(1 + sum of exp) over the kept entries of each row."""
    import torch

    # A finite number far below all exponents, because gradients of -inf are NaN.
    masked = torch.where(kept, exponents, torch.full_like(exponents, -1e9))
    one = torch.zeros_like(masked[:, :1])
    return torch.logsumexp(torch.cat((one, masked), dim=1), dim=1)
