"""The multi-similarity loss with its miner (Wang et al., CVPR 2019), for all anchors at once.

With S the cosines of embeddings, P_i the other windows of anchor i's person and N_i those of other
people, the miner keeps

    negatives with S_ij > min over P_i of S_ik - margin, positives with S_ik < max over N_i of S_ij
    + margin,

and the loss is the mean over anchors of

    log(1 + sum over kept positives of exp(-alpha (S - base))) / alpha
    + log(1 + sum over kept negatives of exp(beta (S - base))) / beta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

#: Sharpness for positives and negatives, the cosine between both, and the miner's margin.
ALPHA, BETA, BASE, MARGIN = 2.0, 50.0, 0.5, 0.1


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
