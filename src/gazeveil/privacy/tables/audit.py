"""Games for the Laplace, Fourier and cosine mechanisms: one feature between 0 and 1, 100 rows, or
20 chunks where there are chunks.

The two neighbours lie in opposite corners of the box: where one is 0 the other is 1. Which corners
are worst depends on the transform: for a mechanism that adds Laplace noise to coefficients A x, the
loss is |A (x - x')|_1 over the scale, and its largest value over the box is that of the sign
pattern s with the largest |A^T s|_1, which is searched.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.noise.exact import MOST_T, laplace_scale
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.tables.published import plain_generator, plan
from gazeveil.privacy.tables.recordings import (
    PER,
    ROWS,
    STEPS,
    WHOLE,
    Reals,
    batches,
    per_feature_epsilon,
    sequences,
    table_of,
)
from gazeveil.privacy.tables.spectrum import (
    coarsening,
    coefficients,
    coordinates,
    cosine_rows,
    fourier_rows,
    grid_l1,
    laplace_steps,
    public_difference_k,
    public_k,
)

if TYPE_CHECKING:
    from gazeveil.privacy.tables.dct_knorm import DCTKNorm
    from gazeveil.privacy.tables.fourier import CFPA, DCFPA, FPA
    from gazeveil.privacy.tables.noisy import LPA, NoisyTable


#: Chunks of a recording where there are chunks.
CHUNKS = 20


# --- worst corners
# --------------------------------------------------------------------------------------------------


@cache
def _worst(n: int, k: int, difference: bool) -> tuple[Ints, Reals]:
    """The corner (0 or 1 per row) that moves the coefficients most against its opposite, and the
    rows of the transform.
    """
    rows = fourier_rows(n, k)
    if difference:
        rows = rows.copy()
        # Differences inside the chunk: d_t = x_t - x_{t-1}, so a row r acts on x as r_t - r_{t+1}.
        rows[:, :-1] -= rows[:, 1:].copy()
    return worst_corner(rows), rows


def worst_corner(rows: Reals) -> Ints:
    """The corner of the box whose opposite is farthest in L1 after a transform: exact for up to 12
    coefficients, else by ascent.
    """
    dimension, n = rows.shape
    if dimension <= 12:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=dimension - 1)))
        signs = np.concatenate((np.ones((len(signs), 1)), signs), axis=1)
        best = signs[np.argmax(np.abs(signs @ rows).sum(axis=1))] @ rows
        return (best >= 0).astype(np.int64)
    rng = np.random.default_rng(0)
    worst, value = np.ones(n), -1.0
    for start in [np.ones(n), *(np.sign(rng.normal(size=n)) for _ in range(50))]:
        corner = start
        for _ in range(100):
            # |A d|_1 is convex in d: the best corner for the signs of A d is never worse.
            new = np.where(np.sign(rows @ corner) @ rows >= 0, 1.0, -1.0)
            if np.array_equal(new, corner):
                break
            corner = new
        if np.abs(rows @ corner).sum() > value:
            worst, value = corner, float(np.abs(rows @ corner).sum())
    return (worst > 0).astype(np.int64)


# --- the Laplace and Fourier family
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shape:
    """Rows of a block, blocks, how many of them differ, and the budget of one."""

    size: int
    chunks: int
    changed: int
    epsilon: Fraction
    unit: str

    @classmethod
    def of(cls, mechanism: NoisyTable, unit: str | None) -> _Shape:
        values = mechanism.parameters()
        size, chunks = (int(str(values["chunk"])), CHUNKS) if "chunk" in values else (ROWS, 1)
        per = str(values["per"])
        game_unit = asked_unit(unit, per, PER if "chunk" in values else WHOLE)
        return cls(
            size,
            chunks,
            1 if game_unit == "chunk" else chunks,
            per_feature_epsilon(mechanism.budget, per, 1, 1, chunks),
            game_unit,
        )

    @property
    def description(self) -> str:
        """The pair in a sentence."""
        if self.chunks == 1:
            return f"One feature of {self.size} rows: 0 where the neighbour is 1."
        return (
            f"One feature of {self.chunks} chunks of {self.size} rows: {self.changed} of the chunks"
            " are 0 where the neighbour is 1."
        )


def _corners(shape: _Shape, corner: Ints, side: int, trials: int) -> Ints:
    """Blocks of grid values, shape (rows, trials * chunks); chunks that do not differ are at the
    midpoint.
    """
    block = (corner if side == 0 else 1 - corner) * STEPS
    blocks = np.full((shape.size, shape.chunks), STEPS // 2, dtype=np.int64)
    blocks[:, : shape.changed] = block[:, None]
    return np.tile(blocks, (1, trials))


def _play_family(
    mechanism: NoisyTable,
    shape: _Shape,
    corner: Ints,
    rows: Reals,
    side: int,
    trials: int,
    seed: int | None,
) -> Floats:
    """The log likelihood ratio of Laplace noise on the coefficients, up to a factor, summed over
    the chunks.
    """
    # Shrinking is post-processing: what comes before it tells at least as much.
    plain = replace(mechanism, shrink=None)  # type: ignore[call-arg]
    words = Words(source(seed, "audit"))
    ends = [rows @ (end * float(STEPS)) for end in (corner, 1 - corner)]
    scores = []
    for count in batches(trials, shape.size * shape.chunks):
        blocks = _corners(shape, corner, side, count)
        noisy = rows @ plain.perturb(blocks, shape.epsilon, words).values
        each = (np.abs(noisy - ends[1][:, None]) - np.abs(noisy - ends[0][:, None])).sum(axis=0)
        scores.append(each.reshape(count, shape.chunks)[:, : shape.changed].sum(axis=1))
    return np.concatenate(scores)[:, None]


def _exact_fourier(shape: _Shape, corner: Ints, k: int, difference: bool) -> float:
    """The true loss between the two corners, in the integers the mechanism adds its noise to."""
    n, d = shape.size, coordinates(shape.size, k)
    ends = np.stack((corner, 1 - corner), axis=1) * STEPS
    if difference:
        ends = np.concatenate((ends[:1] - STEPS // 2, np.diff(ends, axis=0)))
        apart, total = STEPS**2 * (4 * n - 3), STEPS * (2 * n - 1)
    else:
        ends = ends - STEPS // 2
        apart, total = n * STEPS**2, n * STEPS
    grid = grid_l1("audit", n, d, n * k * apart, total, shape.epsilon, MOST_T)
    whole = grid.rounded(coefficients(fourier_rows(n, k), ends))
    t, s = laplace_scale(Fraction(grid.sensitivity) / shape.epsilon)
    return float(Fraction(int(np.abs(whole[:, 0] - whole[:, 1]).sum()) * s, t) * shape.changed)


def _tells_by_its_scale(mechanism: NoisyTable) -> bool:
    """Whether the release is exact where all people agree, and noisy where one does not: then the
    scale tells everything.
    """
    length = (
        ROWS
        if "chunk" not in mechanism.parameters()
        else 2 * int(str(mechanism.parameters()["chunk"]))
    )
    names = ["a", "b", "c"]
    same = np.tile(np.linspace(0.2, 0.8, length), (3, 1))
    other = same.copy()
    other[2] = 0.9
    # Where k is chosen from the data the exact release may leave out coefficients; two draws are
    # then still equal.
    quiet, loud = (
        [mechanism.release(table_of(t, names), seed=s).data.values[:length] for s in (1, 2)]
        for t in (same, other)
    )
    return bool(np.abs(quiet[0] - quiet[1]).max() < 1e-9) and bool(
        np.abs(loud[0] - loud[1]).max() > 1e-3
    )


def _published(
    mechanism: NoisyTable, shape: _Shape, play: Callable[[int, int, int | None], Reals] | None
) -> Game:
    description = shape.description
    exact = None
    if _tells_by_its_scale(mechanism):
        exact = float("inf")
        description += (
            " Besides: where all people agree the published release has no noise at all, so one"
            " person's difference is seen with certainty."
        )
    return Game(shape.unit, float(mechanism.budget), description, play, exact)


def lpa(mechanism: LPA, unit: str | None) -> Game:
    """Laplace noise on the values themselves."""
    shape = _Shape.of(mechanism, unit)
    if mechanism.reading != "corrected":
        return _published(mechanism, shape, None)
    corner, rows = np.ones(shape.size, dtype=np.int64), np.eye(shape.size)
    coarse = coarsening(shape.size, shape.epsilon)
    t, s = laplace_scale(laplace_steps(shape.size, shape.epsilon, coarse))
    exact = float(Fraction(shape.size * (STEPS >> coarse) * s, t))
    return Game(
        shape.unit,
        float(mechanism.budget),
        shape.description,
        lambda side, n, seed: _play_family(mechanism, shape, corner, rows, side, n, seed),
        exact,
    )


def fpa(mechanism: FPA, unit: str | None) -> Game:
    """Noise on the half spectrum of the whole recording."""
    shape = _Shape.of(mechanism, unit)
    if mechanism.reading == "published-real":
        return _real_only(mechanism, shape)
    if mechanism.reading == "published":
        return _published(mechanism, shape, None)
    k = mechanism.k or public_k(shape.size, float(shape.epsilon), mechanism.shrinks)
    return _fourier_game(mechanism, shape, k, difference=False)


def chunked(mechanism: CFPA | DCFPA, unit: str | None) -> Game:
    """Noise on the half spectrum of every chunk, of values or of differences."""
    shape, difference = _Shape.of(mechanism, unit), mechanism.name == "dcfpa"
    if mechanism.reading == "published":
        return _published(
            mechanism,
            shape,
            lambda side, n, seed: _play_published(mechanism, shape, difference, side, n, seed),
        )
    choose = public_difference_k if difference else public_k
    k = mechanism.k or choose(shape.size, float(shape.epsilon), mechanism.shrinks)
    return _fourier_game(mechanism, shape, k, difference)


def _fourier_game(mechanism: NoisyTable, shape: _Shape, k: int, difference: bool) -> Game:
    corner, rows = _worst(shape.size, k, difference)
    exact = _exact_fourier(shape, corner, k, difference)
    description = f"{shape.description} k = {k}."
    return Game(
        shape.unit,
        float(mechanism.budget),
        description,
        lambda side, n, seed: _play_family(mechanism, shape, corner, rows, side, n, seed),
        exact,
    )


def _real_only(mechanism: FPA, shape: _Shape) -> Game:
    """Imaginary parts come through as they are: one release tells two
    inputs apart with certainty.
    """

    def play(side: int, trials: int, seed: int | None) -> Reals:
        wave = 0.5 + 0.25 * np.sin(2 * np.pi * np.arange(shape.size) / shape.size) * (
            1 if side == 0 else -1
        )
        people = np.stack((np.zeros(shape.size), np.ones(shape.size), wave))
        work = plan(
            mechanism.name,
            sequences("audit", table_of(people, ["0", "1", "p"])),
            float(shape.epsilon),
            None,
            mechanism.k or 5,
            real_only=True,
        )
        rng = plain_generator(seed, "audit")
        released = np.stack([work.draw(rng)[0][2, 0] for _ in range(trials)])
        return np.fft.rfft(released, axis=1)[:, 1:2].imag

    description = (
        f"{shape.description} One wave against its mirror image: the imaginary part of bin 1 is"
        " released without noise."
    )
    return Game(shape.unit, float(mechanism.budget), description, play, float("inf"))


def _play_published(
    mechanism: CFPA | DCFPA,
    shape: _Shape,
    difference: bool,
    side: int,
    trials: int,
    seed: int | None,
) -> Reals:
    """Chunks all 0 against all 1, with one person all 0 and one all 1 in both datasets, so that the
    data's range is the same.
    """
    length = shape.size * shape.chunks
    people = np.stack((np.zeros(length), np.ones(length), np.full(length, float(side))))
    # The paper gives every chunk the whole epsilon.
    work = plan(
        mechanism.name,
        sequences("audit", table_of(people, ["0", "1", "p"])),
        float(mechanism.budget),
        shape.size,
        mechanism.k,
        difference,
    )
    (batch,) = work.batches
    mine = np.flatnonzero(batch.recording == 2)
    rng = plain_generator(seed, "audit")
    scores = []
    for _ in range(trials):
        blocks = batch.draw(rng)[mine, 0]
        levels = blocks[:, 0] if difference else blocks.mean(axis=1)
        scores.append((np.clip(levels, 0.0, 1.0).sum(), levels.sum()))
    return np.array(scores)


def dct_knorm(mechanism: DCTKNorm, unit: str | None) -> Game:
    """Round noise on cosine coefficients: all 0 against all 1, which moves the level alone, and by
    the whole sensitivity.
    """
    shape = _Shape.of(mechanism, unit)
    chosen = mechanism.design(shape.size, shape.epsilon)
    rows = cosine_rows(shape.size, np.array(chosen.places))
    corner = np.ones(shape.size, dtype=np.int64)
    ends = [rows @ (end * float(STEPS)) for end in (corner, 1 - corner)]
    grid = mechanism.noise(shape.size, shape.epsilon).grid
    exact_ends = grid.rounded(
        mechanism.whole(np.stack((corner, 1 - corner), axis=1) * STEPS, chosen)
    ).T

    def play(side: int, trials: int, seed: int | None) -> Reals:
        words, plain, scores = Words(source(seed, "audit")), replace(mechanism, shrink="none"), []
        for count in batches(trials, shape.size):
            blocks = _corners(shape, corner, side, count)
            noisy = rows @ plain.perturb(blocks, shape.epsilon, words).values
            near, far = (np.linalg.norm(noisy - end[:, None], axis=0) for end in ends)
            level = noisy[chosen.places.index(0)] if 0 in chosen.places else far
            scores.append(np.stack((far - near, level), axis=1))
        return np.concatenate(scores)

    description = f"{shape.description} D = {len(chosen.places)}, {chosen.noise.profile} noise."
    return Game(
        shape.unit,
        float(mechanism.budget),
        description,
        play,
        mechanism.noise(shape.size, shape.epsilon).loss(*exact_ends),
    )
