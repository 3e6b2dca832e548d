"""What `dp-k-same` releases of a group, decided from public numbers: how many coefficients, and
which noise.

The error of an average that follows the public spectrum is known in closed form for every number D
of coefficients and either kind of noise, so the plan with the least of it is found by trying them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gazeveil import checks
from gazeveil.privacy.noise.knorm import MOST_DIMENSION
from gazeveil.privacy.tables.sequences.dct_knorm import noise_variance
from gazeveil.privacy.tables.sequences.spectrum import PublicSpectrum

#: How far beyond twice the best number of coefficients a better one is sought.
_PATIENCE = 16


@dataclass(frozen=True)
class Sizes:
    """Public numbers of a release.

    Parameters
    ----------
    length, features : int
        Rows and features of a recording.
    cells : int
        Stimuli, sessions and tasks that anybody has.
    recordings : int
        Most recordings of one person.
    """

    length: int
    features: int
    cells: int
    recordings: int


@dataclass(frozen=True)
class GroupNoise:
    """What is released of a group, decided without data.

    Parameters
    ----------
    places : tuple of int
        Coefficients of the DCT of each block.
    noise : str
        `joint` or `separate`.
    profile : str
        `exponential` or `staircase`, of separate noise.
    gamma : float
        Width of the staircase's first step.
    variance : float
        Of the noise on one coefficient of a sum of people, for range 1.
    """

    places: tuple[int, ...]
    noise: str
    profile: str
    gamma: float
    variance: float


def blocks(sizes: Sizes, per: str) -> tuple[int, int]:
    """How many blocks a unit moves at most, and how many share one vector of joint noise."""
    if per == "recording":
        return sizes.features, sizes.features
    return sizes.features * sizes.recordings, sizes.features * sizes.cells


def shares(sizes: Sizes, per: str) -> int:
    """By how many blocks a unit's budget is shared where noise is separate."""
    return {
        "recording-feature": 1,
        "recording": sizes.features,
        "user": sizes.features * sizes.cells,
    }[per]


@lru_cache(maxsize=256)
def plan(
    sizes: Sizes,
    epsilon: float,
    per: str,
    k: int,
    spectrum: PublicSpectrum,
    shrink: bool,
    size: int | None = None,
    noise: str | None = None,
) -> GroupNoise:
    """The coefficients and the noise with the least expected error of a group's average, for
    averages that follow the public spectrum.

    Parameters
    ----------
    sizes : Sizes
        Of the table.
    epsilon : float
        Budget of the unit.
    per : str
        The unit.
    k : int
        Group size.
    spectrum : PublicSpectrum
        Public model.
    shrink : bool
        Whether coefficients are shrunk.
    size : int, optional
        Number of coefficients where it is given.
    noise : str, optional
        Kind of noise where it is given.
    """
    n = sizes.length
    variances = spectrum.cosine(n)
    order = np.argsort(-variances, kind="stable")
    ranked = variances[order]
    after = np.append(np.cumsum(ranked[::-1])[::-1], 0.0)
    best: tuple[float, GroupNoise] | None = None
    for d in range(1, min(n, MOST_DIMENSION) + 1) if size is None else (size,):
        laws = []
        if noise != "joint":
            laws.append(("separate", *noise_variance(d, epsilon / shares(sizes, per), None)))
        if noise != "separate" and per != "recording-feature":
            moved, together = blocks(sizes, per)
            if together * d <= MOST_DIMENSION:
                laws.append(("joint", "exponential", 0.0, (together * d + 1) * moved / epsilon**2))
        if not laws:
            if best is None:
                checks.refuse(
                    "dp-k-same",
                    "noise",
                    f"separate for tables of this size: joint noise has at most {MOST_DIMENSION}"
                    " numbers",
                    noise,
                )
            break
        kind, profile, gamma, unit = min(laws, key=lambda law: law[3])
        each = n * unit / k**2
        kept = ranked[:d]
        error = after[d] + (float(np.sum(kept * each / (kept + each))) if shrink else d * each)
        if best is None or error < best[0]:
            best = error, GroupNoise(tuple(order[:d].tolist()), kind, profile, gamma, n * unit)
        elif d > 2 * len(best[1].places) + _PATIENCE:
            break
    assert best is not None
    return best[1]
