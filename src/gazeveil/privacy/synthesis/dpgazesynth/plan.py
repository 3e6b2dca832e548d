"""The public numbers of DPGazeSynth: everything a device and the curator must agree on before
anybody looks at anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from gazeveil import checks
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.noise.lattice import ROUNDING_STEPS, lattice_bits
from gazeveil.privacy.noise.planar import MOST_SCALE
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.synthesis.dpgazesynth.grid import CellGrid


class BudgetSplit(tuple[Fraction, ...]):
    """Shares of the budget for starts, fixation times and transitions; they add up to 1, and print
    as a ratio: 3:1:1.

    Examples
    --------
    >>> str(BudgetSplit.of("3:1:1")), BudgetSplit.of((0.6, 0.2, 0.2)) == BudgetSplit.of("3:1:1")
    ('3:1:1', True)
    """

    __slots__ = ()

    @classmethod
    def of(cls, value: object, owner: str = "dpgazesynth") -> BudgetSplit:
        """From three shares that add up to 1, or from a ratio in words."""
        wanted = "three shares above 0 that add up to 1, or a ratio such as '3:1:1'"
        ratio = isinstance(value, str)
        parts: list[Number] = (
            list(value.split(":"))
            if isinstance(value, str)
            else list(value)
            if isinstance(value, Iterable)
            else []
        )
        if len(parts) != 3:
            checks.refuse(owner, "split", wanted, value)
        shares = [exact(owner, "split", p, above=0) for p in parts]
        if ratio:
            shares = [s / sum(shares) for s in shares]
        if sum(shares) != 1:
            checks.refuse(owner, "split", wanted, value)
        return cls(shares)

    def __str__(self) -> str:
        common = math.lcm(*(s.denominator for s in self))
        return ":".join(str(s * common) for s in self)


@dataclass(frozen=True)
class WindowLayout:
    """Public numbers for recordings of one rate in one space.

    Parameters
    ----------
    grid : CellGrid
        The cells.
    samples : int
        W, samples of a window.
    rate_hz : float
        Samples per second.
    cap : int
        c, most runs of a window that are told apart.
    r_deg : Fraction
        How far the beginning of a window may lie from that of a neighbour.
    starts, times, moves : Fraction
        Budgets of a window: epsilon1, epsilon2, epsilon3.
    """

    grid: CellGrid
    samples: int
    rate_hz: float
    cap: int
    r_deg: Fraction
    starts: Fraction
    times: Fraction
    moves: Fraction

    @property
    def sphere(self) -> bool:
        """Whether distances are arcs."""
        return isinstance(self.grid.space, Sphere)

    @property
    def step_bits(self) -> int:
        """The lattice of noisy starts has 2**step_bits steps to a degree."""
        bits = lattice_bits(self.r_deg)
        while not self.sphere and self._scale(bits) > MOST_SCALE:
            bits -= 1
        return bits

    def _scale(self, bits: int) -> Fraction:
        return (self.r_deg * Fraction(2) ** bits + ROUNDING_STEPS) / self.starts

    @property
    def start_scale(self) -> Fraction:
        """Scale of a start's noise in steps: both places are rounded to the lattice, which may
        carry them sqrt(2) steps farther apart.
        """
        return self._scale(self.step_bits)

    @property
    def start_scale_deg(self) -> float:
        """Scale of a start's noise in degrees."""
        return float(self.start_scale / Fraction(2) ** self.step_bits)

    @property
    def time_scale(self) -> Fraction:
        """Scale of the noise of a run's length in samples: two vectors of lengths that add up to W
        differ by at most 2 W - 2 in all.
        """
        return Fraction(2 * self.samples - 2) / self.times
