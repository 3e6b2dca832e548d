"""The noise of places: one noisy place for each public cell, for as long as a key is in use.

The noisy place of a cell is its centre plus whole-number Gaussian noise that is a function of (key,
grid, cell, sigma) and of nothing else. So whoever asks, how often and in which order, the answer is
the same, and averaging gains nothing.

All sigmas come from one public list. The noise of each is that of the next finer one plus an
increment of its own (discrete Gaussian, with the difference of the two variances), so views at
several sigmas are made from the finest of them and coins: together they tell what the finest tells.
Proof: proofs/gaussian-place.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from typing import NoReturn

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.errors import DataError
from gazeveil.gaze.grid import Grid
from gazeveil.privacy.noise.exact import MOST_SIGMA, discrete_gaussian
from gazeveil.privacy.randomness.keys import KeyedSource, MasterKey, derived_key
from gazeveil.privacy.randomness.rng import Source, Words
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.stream.gaussian import GRID_BITS, GaussianLattice, fold, stop

#: Sigmas of one key, in degrees, unless others are given.
PLACE_SIGMAS_DEG: tuple[Fraction, ...] = tuple(Fraction(s) for s in (1, 2, 3, 5, 8, 12))

#: Fewest steps of the lattice in a sigma and in the increment to the next: sums of such noise are
#: Gaussian but for less than 2**-50000.
LEAST_STEPS = 64

#: Most sigmas of a list.
MOST_SIGMAS = 32

_KEY_BYTES = (32, 64)


def place_sigma(owner: str, value: object) -> Fraction:
    """A sigma that places can have, exactly."""
    sigma = exact(owner, "sigma_deg", value, above=0)
    least, most = Fraction(LEAST_STEPS, 1 << GRID_BITS), MOST_SIGMA >> GRID_BITS
    if not least <= sigma <= most:
        checks.refuse(owner, "sigma_deg", f"from {least} to {most} degrees", value)
    return sigma


class PlaceNoise:
    """Noisy places of cells under one key.

    Keep one list of sigmas and one size of cells for one key: another list is a second noise for
    the same cells, and cells of another size are a second noise for the same places. A copy within
    the process is the same noise, and so is that of a forked child: a place is told once, by
    whichever process. It cannot be pickled.

    Parameters
    ----------
    key : bytes or MasterKey
        32 to 64 secret bytes, kept for as long as a place shall have one noise; whoever has them
        can undo the noise. A MasterKey with a seed is for tests and protects nobody.
    sigmas_deg : iterable of numbers
        The public list of sigmas, from 1/16 to 1024 degrees, each far enough from the next that
        their variances differ by (1/16 degree)**2.

    Examples
    --------
    >>> from gazeveil import Sphere
    >>> noise, grid = PlaceNoise(bytes(32)), Grid(Sphere(), 5.0)
    >>> first, second = grid.index(182.3, 91.0), grid.index(184.9, 93.9)
    >>> noise.place(grid, first, 5) == noise.place(grid, second, 5)
    True
    """

    __slots__ = ("_draw", "_increments", "_known", "_steps", "seeded", "sigmas_deg")

    def __init__(
        self, key: bytes | MasterKey, sigmas_deg: Iterable[Number] = PLACE_SIGMAS_DEG
    ) -> None:
        if isinstance(key, MasterKey):
            self._draw, self.seeded = key.source, key.seed is not None
        elif isinstance(key, bytes) and _KEY_BYTES[0] <= len(key) <= _KEY_BYTES[1]:
            self._draw, self.seeded = partial(_keyed, key), False
        else:
            # never the bytes themselves: they are secret
            came = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
            checks.refuse(
                "PlaceNoise",
                "key",
                f"{_KEY_BYTES[0]} to {_KEY_BYTES[1]} bytes, or a MasterKey",
                came,
            )
        if isinstance(sigmas_deg, str) or not isinstance(sigmas_deg, Iterable):
            checks.refuse("PlaceNoise", "sigmas_deg", "several sigmas in degrees", sigmas_deg)
        self.sigmas_deg: tuple[Fraction, ...] = tuple(
            sorted({place_sigma("PlaceNoise", s) for s in sigmas_deg})
        )
        if not 1 <= len(self.sigmas_deg) <= MOST_SIGMAS:
            checks.refuse(
                "PlaceNoise", "sigmas_deg", f"1 to {MOST_SIGMAS} sigmas in degrees", self.sigmas_deg
            )
        self._steps = {s: math.ceil(s * (1 << GRID_BITS)) for s in self.sigmas_deg}
        self._increments = self._between()
        self._known: dict[tuple[str, int, Fraction], tuple[int, int]] = {}

    def _between(self) -> dict[Fraction, tuple[Fraction | None, int]]:
        """For each sigma the next finer one, and the sigma of the increment in whole steps, rounded
        up.
        """
        increments: dict[Fraction, tuple[Fraction | None, int]] = {}
        variance, finer = 0, None
        for sigma in self.sigmas_deg:
            wanted = self._steps[sigma] ** 2 - variance
            if wanted < LEAST_STEPS**2:
                checks.refuse(
                    "PlaceNoise",
                    "sigmas_deg",
                    "farther apart",
                    f"{float(finer or 0):g} and {float(sigma):g}",
                    "Leave one of the two out.",
                )
            increment = math.isqrt(wanted - 1) + 1
            increments[sigma] = finer, increment
            variance, finer = variance + increment**2, sigma
        return increments

    def sigma(self, sigma_deg: Number) -> Fraction:
        """One sigma of the list, exactly.

        Raises
        ------
        ParameterError
            For one that is not in the list: it would be a noise of its own.
        """
        sigma = exact("PlaceNoise", "sigma_deg", sigma_deg, above=0)
        if sigma not in self._steps:
            listed = ", ".join(f"{float(s):g}" for s in self.sigmas_deg)
            checks.refuse(
                "PlaceNoise", "sigma_deg", f"one of the public list: {listed} degrees", sigma_deg
            )
        return sigma

    def lattice(self, *sigmas_deg: Number) -> GaussianLattice:
        """The grid and the noise that bound what views at these sigmas tell together: those of the
        finest.
        """
        finest = min((self.sigma(s) for s in sigmas_deg), default=self.sigmas_deg[0])
        return GaussianLattice(GRID_BITS, self._steps[finest])

    def noise_steps(self, grid: Grid, cell: int, sigma_deg: Number) -> tuple[int, int]:
        """Noise of a cell along x and y in steps of 2**-10 degrees. It undoes the protection and is
        for tests and :meth:`place`.
        """
        return self._noise(grid.label, cell, self.sigma(sigma_deg))

    def _noise(self, label: str, cell: int, sigma: Fraction) -> tuple[int, int]:
        noise = self._known.get((label, cell, sigma))
        if noise is None:
            finer, increment = self._increments[sigma]
            below = (0, 0) if finer is None else self._noise(label, cell, finer)
            source = self._draw("place", label, cell, str(finer), str(sigma))
            more: Ints = discrete_gaussian(increment, 2, Words(source))
            # A dictionary takes one entry at a time, and two threads find the same: no lock is
            # needed.
            noise = self._known[label, cell, sigma] = (
                below[0] + int(more[0]),
                below[1] + int(more[1]),
            )
        return noise

    def place_steps(self, grid: Grid, cell: int, sigma_deg: Number) -> tuple[int, int]:
        """The noisy place of a cell in steps of 2**-10 degrees, brought back into the space as
        `gaussian` does.
        """
        x_deg, y_deg = grid.centre_of(cell)
        noise = self.noise_steps(grid, cell, sigma_deg)
        x = round(x_deg * (1 << GRID_BITS)) + noise[0]
        y = round(y_deg * (1 << GRID_BITS)) + noise[1]
        quarter = 90 << GRID_BITS
        if grid.sphere:
            return x % (4 * quarter), int(fold(np.int64(y), np.int64(2 * quarter)))
        return int(stop(np.int64(x), np.int64(quarter))), int(stop(np.int64(y), np.int64(quarter)))

    def place(self, grid: Grid, cell: int, sigma_deg: Number) -> tuple[float, float]:
        """The noisy place of a cell in degrees."""
        x, y = self.place_steps(grid, cell, sigma_deg)
        return x / (1 << GRID_BITS), y / (1 << GRID_BITS)

    def __copy__(self) -> PlaceNoise:
        return self

    def __deepcopy__(self, memo: object) -> PlaceNoise:
        return self

    def __reduce__(self) -> NoReturn:
        raise DataError(
            "The noise of places holds a secret key and cannot be sent elsewhere. Open a session"
            " where the key is."
        )

    def __repr__(self) -> str:
        return f"PlaceNoise(hidden, ({', '.join(str(s) for s in self.sigmas_deg)}))"


def _keyed(key: bytes, *labels: str | int) -> Source:
    """Words for what the labels say, from the first one on each time."""
    return KeyedSource(derived_key(key, *labels))
