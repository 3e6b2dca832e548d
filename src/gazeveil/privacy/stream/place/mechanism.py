"""`gaussian-place`: one noisy place for each cell that is looked at, however long, often and in how
many sessions.

Noise that is drawn afresh for every sample, slot or session is averaged away. Here the space is cut
into public cells, and each cell has *one* noisy place for a whole period: its centre plus integer
Gaussian noise, drawn from a key. A sample is released as the noisy place of its cell. So all that
leaves is which looks share a cell, and each cell's place once.

* The period is one session (until `reset()`), all recordings of a person in one release, or for as
  long as a key is kept: :meth:`GaussianPlace.open_with` opens sessions over one
  :class:`~gazeveil.privacy.stream.place.noise.PlaceNoise`.
* Gaze leaves a cell when it is more than `hysteresis_deg` outside it, so tremor and the tracker's
  noise at an edge do not show two cells.
* Outside a screen gaze belongs to the nearest cell at its border.

The promise is about a place: all gaze of the period in one cell goes to another one. rho = (r/g +
sqrt 2)**2 / (2 (sigma/g)**2) with the step g of the lattice, as for one sample of `gaussian`, for
the whole period. Proof: proofs/gaussian-place.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.grid import Grid
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.noise.exact import TAIL_DELTA
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.promise.change import CELL_DEG, Change
from gazeveil.privacy.promise.loss import Loss, PromiseError
from gazeveil.privacy.promise.stream_map import StreamMap, farthest_coordinates_deg
from gazeveil.privacy.randomness.identity import ProcessIdentity
from gazeveil.privacy.randomness.rng import ASSUMPTION, Source
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.stream.gaussian import GRID_BITS, GaussianLattice
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.place.cell_walk import NO_CELL, CellWalk
from gazeveil.privacy.stream.place.noise import MOST_SIGMAS, PlaceNoise, place_sigma
from gazeveil.privacy.stream.session import Session
from gazeveil.privacy.stream.stage import Samples, Stage

# Draws that one place is made of at most: x and y at every sigma of a list.
_MOST_DRAWS = 2 * MOST_SIGMAS

_SMALLEST_CELL_DEG, _LARGEST_CELL_DEG = 1, 90

# A cell of a sphere is at least seven tenths as wide as it should be: from its middle, half of that
# lies before its edge. With less than that as hysteresis every order of cells is possible, which
# the promise is about.
_MOST_HYSTERESIS = Fraction(3, 10)

_STEP_DEG = 1.0 / (1 << GRID_BITS)
_FROM_ONE = (90 << GRID_BITS) + 1  # steps of a screen begin above -90 degrees
_KEY_WORDS = 8

NOT_COVERED = (
    (
        "which looks are at the same cell, and when gaze goes from one cell to another, so order"
        " and duration of looks"
    ),
    "that two streams of one period are of the same person: their noisy places agree",
    (
        "a cell that somebody knows from what was shown: its noisy place gives it away for the rest"
        " of the period"
    ),
    "how cells lie to each other where that follows from the order of looks",
)


@dataclass(frozen=True)
class PlaceMap(StreamMap):
    """Gaussian noise once on every cell that is looked at: a place costs one draw, and nothing else
    of gaze is bounded.

    Parameters
    ----------
    lattice : GaussianLattice
        The grid of released places and the noise.
    cell_deg : Fraction
        Side of the cells.
    """

    lattice: GaussianLattice
    cell_deg: Fraction

    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """Not known: samples that move may come into another cell alone, and which samples share a
        cell is told exactly.
        """
        raise PromiseError(
            "This promise is about a place, which is all gaze in one cell. Some samples of it that"
            " move into another cell are told from the others with certainty. Ask about a place:"
            " Change.place(move_deg)."
        )

    def loss(self, change: Change) -> Loss:
        """Of a place, with all its samples, looks and recordings."""
        if change.unit != "place":
            return self.run(1, change.move_deg, change.metric)
        if change.cell_deg != self.cell_deg:
            raise PromiseError(
                f"This promise is about cells of {float(self.cell_deg):g} degrees; what a move of a"
                f" cell of {float(change.cell_deg or 0):g} degrees does to them is not known."
            )
        rho = self.lattice.rho(farthest_coordinates_deg(self.space, change.move_deg, change.metric))
        # A group: the same place so many times as far, or so many places, which is less.
        return Loss.concentrated(rho, 2 * _MOST_DRAWS * TAIL_DELTA).grouped(change.count)


@dataclass(frozen=True)
class GaussianPlace(StreamMechanism):
    """One noisy place per cell.

    Parameters
    ----------
    sigma_deg : number
        Standard deviation of the noise along each axis, from 1/16 to 1024 degrees.
    r_deg : number
        How far the centre of a cell moves in the promise, in degrees.
    cell_deg : number
        Least side of a cell, from 1 to 90 degrees.
    hysteresis_deg : number, optional
        How far gaze must be outside a cell to leave it
        (:mod:`gazeveil.privacy.stream.place.cell_walk`); three tenths of `cell_deg` by default and
        at most.

    Examples
    --------
    >>> print(round(float(GaussianPlace(5).promise(60.0, Sphere()).rho), 3))
    0.5
    """

    name: ClassVar[str] = "gaussian-place"
    label: ClassVar[str] = "Gaussian noise per place"
    summary: ClassVar[str] = (
        "Releases one noisy place for each cell that is looked at, however often."
    )
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    kind: ClassVar[str] = "stream"
    noise_unit: ClassVar[str] = "person"
    paper: ClassVar[str] = (
        "After David-John et al. 2021, with one draw per place, as permanent randomised responses"
        " have (Erlingsson,"
        " Pihur and Korolova, RAPPOR, CCS 2014)"
    )
    fills: ClassVar[str] = "held"
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType(
        {"corrected": Claim("rho-zcdp", "place", "proved", "one draw per cell that is looked at")}
    )

    sigma_deg: Number
    r_deg: Number = 5
    cell_deg: Number = CELL_DEG
    hysteresis_deg: Number | None = None

    def check(self) -> None:
        """Store exact numbers."""
        self.store("sigma_deg", place_sigma(self.name, self.sigma_deg))
        self.store("r_deg", exact(self.name, "r_deg", self.r_deg, above=0))
        cell = exact(self.name, "cell_deg", self.cell_deg, above=0)
        hysteresis = (
            _MOST_HYSTERESIS * cell
            if self.hysteresis_deg is None
            else exact(self.name, "hysteresis_deg", self.hysteresis_deg, least=0)
        )
        if not _SMALLEST_CELL_DEG <= cell <= _LARGEST_CELL_DEG:
            checks.refuse(
                self.name,
                "cell_deg",
                f"from {_SMALLEST_CELL_DEG} to {_LARGEST_CELL_DEG} degrees",
                self.cell_deg,
            )
        if hysteresis > _MOST_HYSTERESIS * cell:
            most = f"at most three tenths of cell_deg, {float(_MOST_HYSTERESIS * cell):g} degrees"
            checks.refuse(
                self.name,
                "hysteresis_deg",
                most,
                self.hysteresis_deg,
                "Choose a smaller one, or larger cells.",
            )
        self.store("cell_deg", cell)
        self.store("hysteresis_deg", hysteresis)

    def grid(self, space: Space) -> Grid:
        """The public cells of a space."""
        return Grid(space, float(self.cell_deg))

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """The zCDP of one place over the whole period."""
        rate, cell = checks.positive(self.name, "rate_hz", rate_hz), Fraction(self.cell_deg)
        return Guarantee(
            "rho-zcdp",
            PlaceMap(rate, space, GaussianLattice.of(Fraction(self.sigma_deg)), cell),
            Change.place(Fraction(self.r_deg), cell_deg=cell),
            mechanism=self.title,
            assumptions=(
                ASSUMPTION,
                "the noise of a place is drawn once in the period, and its key stays secret",
            ),
            not_covered=NOT_COVERED,
            reason="proofs/gaussian-place.md",
        )

    def open_with(self, noise: PlaceNoise, rate_hz: float, space: Space | None = None) -> Session:
        """A session whose places are those of a given noise: all sessions over one noise agree bit
        for bit, and together they are one period.

        Parameters
        ----------
        noise : PlaceNoise
            Its list must have this mechanism's sigma.
        rate_hz : float
            Nominal samples per second.
        space : Sphere or Screen
            What the degrees mean; a Sphere by default.

        Raises
        ------
        ParameterError
            For a sigma that is not in the list of the noise.
        """
        if not isinstance(noise, PlaceNoise):
            checks.refuse(f"{self.name}.open_with", "noise", "a PlaceNoise", noise)
        noise.sigma(self.sigma_deg)
        session = Session(
            self, rate_hz, Sphere() if space is None else space, bits=_KeptNoise(noise)
        )
        session.seeded = noise.seeded
        return session

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """The cell of each stream, and the places that were told."""
        # All recordings of one person in a release are one period.
        own_bits = bits.of_person()
        sigma = Fraction(self.sigma_deg)
        grid = self.grid(space)
        hysteresis = float(self.hysteresis_deg or 0)
        walk = CellWalk(grid, hysteresis, streams)
        if isinstance(own_bits, _KeptNoise):
            made = _Places(sigma, walk, [own_bits.noise] * streams)
        else:
            made = _OwnPlaces(sigma, walk, own_bits.sources(streams, self.name, self.reading))
        return self.filled(made, rate_hz, space, streams, bits)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.stream.place.audit import place

        return place(self, unit)


class _KeptNoise(Bits):
    """Hands a noise that is kept elsewhere to a stage."""

    def __init__(self, noise: PlaceNoise) -> None:
        super().__init__()
        self.noise = noise

    def sources(self, streams: int, *keys: str | int) -> list[Source]:
        raise NotImplementedError("A stage over a given noise draws nothing itself.")


class _Places(Stage):
    """Places under noise that is kept elsewhere; copies share it."""

    def __init__(self, sigma: Fraction, walk: CellWalk, noises: list[PlaceNoise]) -> None:
        self.sigma, self.walk, self.noises = sigma, walk, noises
        self._forget()

    def _forget(self) -> None:
        # Per stream and cell: x and y in steps, counted from 1 so that 0 is a place that was not
        # looked up yet. Untouched zeros take no memory.
        self._told = np.zeros((len(self.walk.now), self.walk.grid.size, 2), dtype=np.int64)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_told"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def reset(self) -> None:
        """Forget the cell; the places stay for as long as their noise does."""
        self.walk.reset()

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """Each sample as the place of its cell."""
        cells = self.walk.run(x_deg, y_deg, valid)
        begin = 0
        while (begin := _look_up(cells, self._told, x_deg, y_deg, begin)) < cells.size:
            stream, cell = begin // cells.shape[1], int(cells.flat[begin])
            x, y = self.noises[stream].place_steps(self.walk.grid, cell, self.sigma)
            self._told[stream, cell] = x + _FROM_ONE, y + _FROM_ONE
        return t_ns, x_deg, y_deg, valid


class _OwnPlaces(_Places):
    """Places under a key of the session's own, for each stream: a copy and a stream after a reset
    take another.
    """

    def __init__(self, sigma: Fraction, walk: CellWalk, sources: list[Source]) -> None:
        self._sources = sources
        self._secure = all(s.secure for s in sources)
        self._identity = ProcessIdentity()
        super().__init__(sigma, walk, [])
        self._take_keys()

    def _take_keys(self) -> None:
        several = self._sources if len(self._sources) > 1 else self._sources * len(self.walk.now)
        self._keys = [source.take(_KEY_WORDS).tobytes() for source in several]
        self._begin()

    def _begin(self) -> None:
        self.noises = [PlaceNoise(key, (self.sigma,)) for key in self._keys]
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        # Keys of the system are the original's alone; a test stream goes on alike.
        hidden = {"noises", "_identity", *(("_keys",) if self._secure else ())}
        return {k: v for k, v in super().__getstate__().items() if k not in hidden}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._identity = ProcessIdentity()
        if self._secure:
            self._take_keys()
        else:
            self._begin()

    def reset(self) -> None:
        """Begin another period."""
        super().reset()
        self._take_keys()

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """Each sample as the place of its cell; a forked child under keys of its own."""
        if self._secure and not self._identity.original:
            self._identity.renew(self._take_keys)
        return super().run(t_ns, x_deg, y_deg, valid)


@compiled
def _look_up(cells: Ints, released: Ints, x: Floats, y: Floats, begin: int) -> int:
    """Put places for samples, from number `begin` on in the order of streams, as far as they are
    known: the number of the first that is not.
    """
    n = cells.shape[1]
    for k in range(begin, cells.size):
        s, i = k // n, k % n
        cell = cells[s, i]
        if cell == NO_CELL:
            continue
        if released[s, cell, 0] == 0:
            return k
        x[s, i] = (released[s, cell, 0] - _FROM_ONE) * _STEP_DEG
        y[s, i] = (released[s, cell, 1] - _FROM_ONE) * _STEP_DEG
    return cells.size
