"""Heat maps of where people looked, with a promise about every viewer: `heatmap-laplace` and
`heatmap-gaussian`.

Each viewer of a stimulus gives a map whose cells add up to at most one (the cap), however long the
recording is: the share of valid samples per cell, rounded down to multiples of 2**-12. Replacing a
viewer therefore changes a stimulus's sum by at most 2 in L1 and sqrt(2) in L2. Integer noise is
added to every cell of every map, seen or not. Clipping at zero, smoothing in visual angle and
normalising come after and cost nothing.

The budget is for everything of one person: it is shared evenly over the stimuli, whose number and
names are public. Proof: proofs/heatmap.md.

One viewer's heat map in whole numbers, of which each viewer has the same.

Games for heat maps: one viewer who looks at one cell against one who looks at another.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Space, Sphere, smooth_map
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import DELTA, Game, asked_unit
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.noise.exact import (
    MOST_SIGMA,
    MOST_T,
    TAIL_DELTA,
    discrete_gaussian,
    discrete_laplace,
    laplace_scale,
    refuse_budget,
    tail_delta,
)
from gazeveil.privacy.promise.loss import Change, Loss, epsilon_of_rho
from gazeveil.privacy.promise.privacy_map import WholeMap
from gazeveil.privacy.randomness.rng import ASSUMPTION, Words, source
from gazeveil.privacy.rational import exact
from gazeveil.privacy.release import Release

#: Steps of a viewer's total weight.
WEIGHT = 1 << 12


def viewer_weights(recording: Recording, rows: int, columns: int) -> Ints:
    """One viewer's map in steps of 1/4096, adding up to at most 4096; nothing valid gives zeros.

    Shares are rounded down, so no viewer ever weighs more than one whatever the recording holds.
    """
    x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
    space = recording.space
    if isinstance(space, Screen):
        x, y = x + space.width_deg / 2, y + space.height_deg / 2
    # Gaze off the screen counts at its edge: dropping it would make the weight depend on it.
    column = np.clip(np.floor(x / space.width_deg * columns), 0, columns - 1).astype(np.int64)
    row = np.clip(np.floor(y / space.height_deg * rows), 0, rows - 1).astype(np.int64)
    counts = np.bincount(row * columns + column, minlength=rows * columns).astype(np.int64)
    total = int(counts.sum())
    if total:
        return (counts * WEIGHT // total).reshape(rows, columns)
    return np.zeros((rows, columns), dtype=np.int64)


_NOT_COVERED = (
    "which people saw which stimuli and how many they were",
    "what is common to the viewers: a map shows where people look, that is its purpose",
)


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Where people looked at one stimulus.

    Parameters
    ----------
    stimulus : str
        Its name.
    space : Sphere or Screen
        What the map covers.
    cells : array of float64, shape (rows, columns)
        Shares of looking, first row at the top, adding up to one; all equal where noise left
        nothing.
    noisy : array of float64, shape (rows, columns)
        The noisy viewers per cell before clipping and smoothing, in viewers: unbiased, for sums
        over regions.
    """

    stimulus: str
    space: Space
    cells: Floats = field(repr=False)
    noisy: Floats = field(repr=False)


@dataclass(frozen=True)
class HeatmapMechanism(Mechanism[Cohort]):
    """What heat maps have in common, whatever their noise."""

    kind: ClassVar[str] = "map"

    rows: int = field(default=45, kw_only=True)
    columns: int = field(default=90, kw_only=True)
    smooth_deg: float = field(default=3.0, kw_only=True)

    def check(self) -> None:
        """Check the size of the map and the smoothing."""
        self.store("rows", checks.count(self.name, "rows", self.rows))
        self.store("columns", checks.count(self.name, "columns", self.columns))
        self.store("smooth_deg", checks.not_negative(self.name, "smooth_deg", self.smooth_deg))

    @abstractmethod
    def noise(self, stimuli: int, count: int, words: Words) -> Ints:
        """Noise of `count` cells of that many maps, in steps of 1/4096 viewer."""

    @abstractmethod
    def budget(self) -> Loss:
        """What is lost if everything of one person is replaced."""

    @abstractmethod
    def delta_num(self, count: int) -> Fraction:
        """Numerical error of that many draws."""

    def release(  # type: ignore[override]
        self, data: Cohort, seed: int | None = None
    ) -> Release[dict[str, HeatMap]]:
        """Maps by stimulus; see :class:`HeatMap`."""
        sums = self._sums(data)
        count = len(sums) * self.rows * self.columns
        noise = self.noise(len(sums), count, Words(source(seed, self.name)))
        return self.released(self._maps(sums, noise), self.promise(len(sums)), seed)

    def _sums(self, cohort: Cohort) -> dict[str, tuple[Space, Ints]]:
        """Sums over viewers per stimulus."""
        if not isinstance(cohort, Cohort):
            checks.refuse(self.name, "data", "a Cohort", type(cohort).__name__)
        if len(cohort) == 0:
            raise DataError(
                f"{self.name} needs recordings and the cohort has none. Nothing was released."
            )
        maps: dict[str, tuple[Space, Ints]] = {}
        seen: set[tuple[str, str]] = set()
        for recording in cohort:
            who = (recording.person, recording.stimulus)
            if who in seen:
                # A second map of the same viewer would double the weight that the proof bounds by
                # one.
                raise DataError(
                    f"{self.name} takes one recording per person and stimulus. Person"
                    f" '{recording.person}' has several of '{recording.stimulus}'. Choose one"
                    " session with cohort.select or give the sessions other stimulus names."
                    " Nothing was released."
                )
            seen.add(who)
            weights = viewer_weights(recording, self.rows, self.columns)
            space, total = maps.get(recording.stimulus, (recording.space, np.zeros_like(weights)))
            if space != recording.space:
                raise DataError(
                    f"Stimulus '{recording.stimulus}' was seen on different screens. One map needs"
                    " one space. Nothing was released."
                )
            maps[recording.stimulus] = (space, total + weights)
        return maps

    def _maps(self, sums: Mapping[str, tuple[Space, Ints]], noise: Ints) -> dict[str, HeatMap]:
        result = {}
        for (stimulus, (space, total)), drawn in zip(
            sums.items(), noise.reshape(len(sums), self.rows, self.columns), strict=True
        ):
            noisy = (total + drawn) / WEIGHT
            cells = np.maximum(smooth_map(noisy, space, self.smooth_deg), 0.0)
            mass = cells.sum()
            cells = cells / mass if mass > 0 else np.full_like(cells, 1.0 / cells.size)
            result[stimulus] = HeatMap(stimulus, space, cells, noisy)
        return result

    def promise(self, stimuli: int) -> Guarantee:
        """What maps of so many stimuli promise: nothing else of the recordings is in it."""
        delta_num = self.delta_num(stimuli * self.rows * self.columns)
        # A recording is part of one map; the noise of every map is the same, so each has an equal
        # share of the person's budget.
        per_person = self.budget()
        per_recording = Loss(per_person.measure, per_person.amount / stimuli, delta_num=delta_num)
        return Guarantee(
            self.claims[self.reading].definition,
            WholeMap.of("recording", per_recording).lift("user", stimuli),
            Change.person(),
            mechanism=self.title,
            assumptions=(
                (
                    f"the names of the {stimuli} stimuli, their screens and the size of the maps"
                    " are public"
                ),
                "each person has one recording per stimulus",
                ASSUMPTION,
            ),
            not_covered=_NOT_COVERED,
            reason="proofs/heatmap.md",
        )


@dataclass(frozen=True)
class HeatmapLaplace(HeatmapMechanism):
    """Heat maps with discrete Laplace noise: pure differential privacy for everything of one
    person.

    Parameters
    ----------
    epsilon : number
        Budget of one person, over all stimuli.
    rows, columns : int
        Size of the maps.
    smooth_deg : float
        Width of the smoothing, in degrees of visual angle.
    """

    name: ClassVar[str] = "heatmap-laplace"
    label: ClassVar[str] = "Laplace heat map"
    summary: ClassVar[str] = "Releases heat maps of many viewers with Laplace noise."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    paper: ClassVar[str] = "after Liu et al. 2019"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-dp", "user", "proved", "epsilon for all maps of a person together"
        )
    }

    epsilon: Fraction

    def check(self) -> None:
        """Check the budget."""
        super().check()
        self.store("epsilon", exact(self.name, "epsilon", self.epsilon, above=0))

    def budget(self) -> Loss:
        """Epsilon of one person."""
        return Loss.pure(self.epsilon)

    def delta_num(self, count: int) -> Fraction:
        """Numerical error of that many draws."""
        return tail_delta(self.epsilon, count)

    def scale_steps(self, stimuli: int) -> Fraction:
        """Scale of the noise in steps of 1/4096 viewer for that many maps."""
        # Replacing a viewer moves at most WEIGHT steps away and WEIGHT steps in, in each of the
        # stimuli.
        return Fraction(2 * WEIGHT * stimuli) / self.epsilon

    def noise(self, stimuli: int, count: int, words: Words) -> Ints:
        """Noise of `count` cells of that many maps."""
        scale = self.scale_steps(stimuli)
        if scale > MOST_T:
            least = Fraction(2 * WEIGHT * stimuli, MOST_T)
            refuse_budget(self.name, "epsilon", self.epsilon, least, "map")
        return discrete_laplace(scale, count, words)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        return heatmap_laplace(self, unit)


@dataclass(frozen=True)
class HeatmapGaussian(HeatmapMechanism):
    """Heat maps with discrete Gaussian noise: zero-concentrated differential privacy for everything
    of one person.

    Parameters
    ----------
    rho : number
        Budget of one person, over all stimuli.
    rows, columns : int
        Size of the maps.
    smooth_deg : float
        Width of the smoothing, in degrees of visual angle.
    """

    name: ClassVar[str] = "heatmap-gaussian"
    label: ClassVar[str] = "Gaussian heat map"
    summary: ClassVar[str] = "Releases heat maps of many viewers with Gaussian noise."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    paper: ClassVar[str] = "after Liu et al. 2019"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim("rho-zcdp", "user", "proved", "rho for all maps of a person together")
    }

    rho: Fraction

    def check(self) -> None:
        """Check the budget."""
        super().check()
        self.store("rho", exact(self.name, "rho", self.rho, above=0))

    def budget(self) -> Loss:
        """Rho of one person."""
        return Loss.concentrated(self.rho)

    def delta_num(self, count: int) -> Fraction:
        """Numerical error of that many draws."""
        return count * TAIL_DELTA

    def sigma_steps(self, stimuli: int) -> int:
        """Standard deviation in steps of 1/4096 viewer for that many maps: the smallest whole
        number that keeps the promise.
        """
        # L2 sensitivity of all maps together: sqrt(2 * stimuli) * WEIGHT; rho = sensitivity**2 / (2
        # sigma**2).
        squared = Fraction(stimuli * WEIGHT * WEIGHT) / self.rho
        return math.isqrt(max(1, math.ceil(squared)) - 1) + 1

    def noise(self, stimuli: int, count: int, words: Words) -> Ints:
        """Noise of `count` cells of that many maps."""
        sigma = self.sigma_steps(stimuli)
        if sigma > MOST_SIGMA:
            least = Fraction(stimuli * WEIGHT**2, MOST_SIGMA**2)
            refuse_budget(self.name, "rho", self.rho, least, "map")
        return discrete_gaussian(sigma, count, words)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        return heatmap_gaussian(self, unit)


_PAIR = (
    "One stimulus, one viewer: all gaze in the left half of a map of two cells, against all in the"
    " right half."
)


def _play(
    mechanism: HeatmapLaplace | HeatmapGaussian, side: int, trials: int, seed: int | None
) -> Floats:
    x = np.full(4, 90.0 + 180.0 * side)
    weights = viewer_weights(
        Recording(
            "p", "s", np.arange(4) * 10**7, x, np.full(4, 90.0), space=Sphere(), rate_hz=100.0
        ),
        1,
        2,
    )
    cells = (
        weights + mechanism.noise(1, 2 * trials, Words(source(seed, "audit"))).reshape(trials, 2)
    ) / WEIGHT
    # Between 0 and 1 the likelihood ratio of Laplace noise is linear, outside it is constant.
    clipped = np.clip(cells, 0.0, 1.0)
    return np.stack((clipped[:, 0] - clipped[:, 1], cells[:, 0] - cells[:, 1]), axis=1)


def heatmap_laplace(mechanism: HeatmapLaplace, unit: str | None) -> Game:
    """Pure differential privacy of all maps of a person; the exact loss is the L1 distance over the
    scale of the noise.
    """
    t, s = laplace_scale(mechanism.scale_steps(1))
    exact = float(Fraction(2 * WEIGHT * s, t))
    audited = asked_unit(unit, "user", ("user",))
    return Game(
        audited,
        float(mechanism.epsilon),
        _PAIR,
        lambda side, n, seed: _play(mechanism, side, n, seed),
        exact,
    )


def heatmap_gaussian(mechanism: HeatmapGaussian, unit: str | None) -> Game:
    """Zero-concentrated differential privacy, judged as (epsilon, delta) at delta = 1e-6."""
    # What rho itself implies. The curve of continuous Gaussian noise is a little lower, and is not
    # promised.
    claimed = float(epsilon_of_rho(mechanism.rho, DELTA))
    description = f"{_PAIR} rho = {mechanism.rho} is judged as epsilon at delta = 1e-6."
    return Game(
        asked_unit(unit, "user", ("user",)),
        claimed,
        description,
        lambda s, n, seed: _play(mechanism, s, n, seed),
        delta=float(DELTA),
    )
