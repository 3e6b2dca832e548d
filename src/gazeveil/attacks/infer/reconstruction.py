"""Rebuild fixations from answers about rectangles, the way an app could from a Gatekeeper
(David-John et al. 2021 section 4) that lets it choose them.

An app may ask how many fixations (or which, by handle) lie in a rectangle. Halving the side again
and again finds one of them to a precision of eta in about log2(width / eta) + log2(height / eta)
questions. Two things make the attack harder to stop than it looks:

* it never asks about a small rectangle. The number of fixations left of x and above y is an answer
  about a rectangle that covers at least half the area on each side, or the difference of such
  answers; a small cell is then a difference of four. A least size of rectangles therefore protects
  nothing;
* where answers carry fresh noise it asks again and takes the median; where one answer is kept and
  repeated that gains nothing.

What does stop it is that the answers themselves depend on nothing finer than a public grid: edges
and positions are snapped to it. Times go the same way (one side instead of two), and dwell times by
differences of totals.

Answers about rectangles as a Gatekeeper might give them: what the reconstruction attack asks.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from statistics import median
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats
from gazeveil.errors import DataError

#: Left, top, right, bottom, in degrees; y grows downwards.
Rectangle: TypeAlias = tuple[float, float, float, float]

#: A number, or handles that stay the same from answer to answer.
Answer: TypeAlias = float | Collection[Hashable]


def exact_answers(
    x_deg: ArrayLike, y_deg: ArrayLike, handles: bool = False, least_deg: float = 0.0
) -> Callable[[Rectangle], Answer]:
    """The answers of a Gatekeeper that takes every rectangle at its word, or widens those below a
    least side about their middle.
    """
    x, y = (np.asarray(a, dtype=np.float64) for a in (x_deg, y_deg))

    def answer(rectangle: Rectangle) -> Answer:
        left, top, right, bottom = rectangle
        more_x, more_y = (
            max(0.0, least_deg - (b - a)) / 2 for a, b in ((left, right), (top, bottom))
        )
        inside = (
            (x >= left - more_x)
            & (x < right + more_x)
            & (y >= top - more_y)
            & (y < bottom + more_y)
        )
        return _counted(inside, handles)

    return answer


def snapped_answers(
    x_deg: ArrayLike,
    y_deg: ArrayLike,
    area_deg: Rectangle,
    grid_deg: float,
    least_deg: float = 0.0,
    handles: bool = False,
) -> Callable[[Rectangle], Answer]:
    """The answers of a Gatekeeper that widens rectangles to the lines of a public grid (from the
    area's left top corner) and to a least side.
    """
    left, top, _, _ = checked_area(area_deg)
    grid = checks.positive("snapped_answers", "grid_deg", grid_deg)
    least = checks.not_negative("snapped_answers", "least_deg", least_deg)
    origin = np.array([left, top])
    x, y = (np.asarray(a, dtype=np.float64) for a in (x_deg, y_deg))
    cell = np.floor((np.stack((x, y), axis=1) - origin) / grid)

    def answer(rectangle: Rectangle) -> Answer:
        low = np.floor((np.array(rectangle[:2]) - origin) / grid + 1e-9)
        high = np.ceil((np.array(rectangle[2:]) - origin) / grid - 1e-9)
        high = np.maximum(high, low + max(1, math.ceil(least / grid - 1e-9)))
        inside = ((cell >= low) & (cell < high)).all(axis=1)
        return _counted(inside, handles)

    return answer


def _counted(inside: Bools, handles: bool) -> Answer:
    return np.flatnonzero(inside).tolist() if handles else int(np.count_nonzero(inside))


def checked_area(area_deg: Rectangle) -> Rectangle:
    """An area whose edges are numbers in order."""
    left, top, right, bottom = (checks.number("rebuild", "area_deg", v) for v in area_deg)
    if not (left < right and top < bottom):
        raise DataError(
            f"An area needs left < right and top < bottom. Got {(left, top, right, bottom)}."
        )
    return left, top, right, bottom


Interval: TypeAlias = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Rebuilt:
    """What the attacker believes.

    Parameters
    ----------
    positions_deg : array of float64, shape (fixations, 2)
        x and y, middles of the cells.
    cells_deg : array of float64, shape (fixations, 4)
        Left, top, right, bottom of the smallest rectangle each was confined to.
    resolution_deg : float
        The longest side of a cell: what the answers seem to give. A grid inside the answers is not
        seen here; :func:`achieved` compares with the truth.
    queries : int
        Questions asked.
    complete : bool
        Whether every cell is as small as wanted; False where the questions ran out.
    """

    positions_deg: Floats = field(repr=False)
    cells_deg: Floats = field(repr=False)
    resolution_deg: float
    queries: int
    complete: bool


@dataclass(frozen=True)
class ReconstructionAccuracy:
    """Rebuilt positions against the true ones, matched one to one at the least total distance.

    Parameters
    ----------
    found, missed, invented : int
        Pairs; true ones without a partner; rebuilt ones without a partner.
    median_deg, largest_deg : float
        Over the pairs, the larger of the errors in x and y.
    """

    found: int
    missed: int
    invented: int
    median_deg: float
    largest_deg: float


class _Oracle:
    """Asks, counts and remembers; repeated questions are asked again only
    where `repeats` says so.
    """

    def __init__(self, answer: Callable[..., Answer], most: int, repeats: int) -> None:
        self._answer, self._most, self._repeats = answer, most, repeats
        self._answers: dict[tuple[float, ...], float | frozenset[Hashable]] = {}
        self.queries = 0

    def affordable(self, questions: int) -> bool:
        return self.queries + questions * self._repeats <= self._most

    def __call__(self, *where: float) -> float | frozenset[Hashable]:
        if where not in self._answers:
            answers = [self._answer(*where) for _ in range(self._repeats)]
            self.queries += self._repeats
            numbers = [float(a) for a in answers if isinstance(a, int | float | np.number)]
            if len(numbers) == len(answers):
                self._answers[where] = median(numbers)
            else:
                self._answers[where] = frozenset(
                    h for a in answers if not isinstance(a, int | float | np.number) for h in a
                )
        return self._answers[where]

    def number(self, *where: float) -> float:
        answer = self(*where)
        return answer if isinstance(answer, float) else float(len(answer))

    def handles(self, *where: float) -> frozenset[Hashable]:
        answer = self(*where)
        return answer if isinstance(answer, frozenset) else frozenset()


def _middle(low: float, high: float, origin: float, grid: float | None) -> float:
    half = (low + high) / 2
    return (
        half if grid is None else min(max(origin + round((half - origin) / grid) * grid, low), high)
    )


def _bisect(
    whole: Interval,
    content: float,
    upto: Callable[[float], float],
    finest: float,
    grid: float | None,
    affordable: Callable[[], bool],
) -> tuple[list[tuple[Interval, int]], bool]:
    """Intervals that hold something, with how much, by halving wherever there is something; the
    widest first, so that questions go round evenly.
    """
    waiting = deque([(whole[0], whole[1], 0.0, content)])
    done: list[tuple[Interval, int]] = []
    complete = True
    while waiting:
        low, high, before, until = waiting.popleft()
        inside = round(until - before)
        if inside < 1:
            continue
        middle = _middle(low, high, whole[0], grid)
        if high - low <= finest or not low < middle < high:
            done.append(((low, high), inside))
        elif not affordable():
            complete = False
            done.append(((low, high), inside))
        else:
            # A count that noise or snapping moved out of its range is no count; what is left must
            # still add up.
            at = min(max(upto(middle), before), until)
            waiting += [(low, middle, before, at), (middle, high, at, until)]
    return sorted(done), complete


def rebuild(
    answer: Callable[[Rectangle], Answer],
    area_deg: Rectangle,
    finest_deg: float = 0.1,
    most_queries: int = 100_000,
    grid_deg: float | None = None,
    repeats: int = 1,
) -> Rebuilt:
    """Positions of all fixations in an area.

    Parameters
    ----------
    answer : callable
        Takes a rectangle (left, top, right, bottom in degrees); gives the number of fixations in
        it, or their handles.
    area_deg : rectangle
        Where to look.
    finest_deg : float
        Side of cells at which the attacker is content.
    most_queries : int
        Budget of questions.
    grid_deg : float, optional
        A grid from the area's left top corner that the attacker knows the answers to be snapped to;
        it then asks on the lines only.
    repeats : int
        How often each question is asked; of numbers the median counts.

    Raises
    ------
    DataError
        If the area is empty.

    Examples
    --------
    >>> from gazeveil.attacks.infer.reconstruction import exact_answers
    >>> found = rebuild(exact_answers([1.0, -3.2], [2.0, 0.7]), (-20, -10, 20, 10), finest_deg=0.01)
    >>> found.positions_deg.round(1).tolist()
    [[-3.2, 0.7], [1.0, 2.0]]
    """
    left, top, right, bottom = checked_area(area_deg)
    finest = checks.positive("rebuild", "finest_deg", finest_deg)
    grid = None if grid_deg is None else checks.positive("rebuild", "grid_deg", grid_deg)
    most, times = (
        checks.count("rebuild", "most_queries", most_queries),
        checks.count("rebuild", "repeats", repeats),
    )
    oracle = _Oracle(lambda *where: answer((where[0], where[1], where[2], where[3])), most, times)
    everything = oracle(left, top, right, bottom)
    columns: list[tuple[Interval, int]]
    cells: list[Rectangle] = []
    if isinstance(everything, frozenset):
        across, complete_x = _by_handle(
            everything,
            (left, right),
            lambda x: _left_of(oracle, x, left, top, right, bottom),
            finest,
            grid,
            oracle,
        )
        down, complete_y = _by_handle(
            everything,
            (top, bottom),
            lambda y: _above(oracle, y, left, top, right, bottom),
            finest,
            grid,
            oracle,
        )
        cells = sorted((across[h][0], down[h][0], across[h][1], down[h][1]) for h in everything)
        complete = complete_x and complete_y
    else:
        corner = _Corner(oracle, left, top, right, bottom, everything)
        columns, complete = _bisect(
            (left, right),
            everything,
            lambda x: corner(x, bottom),
            finest,
            grid,
            lambda: oracle.affordable(1),
        )
        for (begin, end), inside in columns:
            rows, whole = _bisect(
                (top, bottom),
                inside,
                lambda y, a=begin, b=end: corner(b, y) - corner(a, y),  # type: ignore[misc]
                finest,
                grid,
                lambda: oracle.affordable(6),
            )
            complete &= whole
            cells += [(begin, low, end, high) for (low, high), n in rows for _ in range(n)]
    boxes = np.array(cells, dtype=np.float64).reshape(-1, 4)
    positions = np.stack(((boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2), axis=1)
    sides = np.concatenate((boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]))
    return Rebuilt(
        positions, boxes, float(sides.max()) if len(sides) else math.nan, oracle.queries, complete
    )


def _left_of(
    oracle: _Oracle, x: float, left: float, top: float, right: float, bottom: float
) -> frozenset[Hashable]:
    """Handles of fixations left of x, from a rectangle that is at least half as
    wide as the area.
    """
    if x >= (left + right) / 2:
        return oracle.handles(left, top, x, bottom)
    return oracle.handles(left, top, right, bottom) - oracle.handles(x, top, right, bottom)


def _above(
    oracle: _Oracle, y: float, left: float, top: float, right: float, bottom: float
) -> frozenset[Hashable]:
    if y >= (top + bottom) / 2:
        return oracle.handles(left, top, right, y)
    return oracle.handles(left, top, right, bottom) - oracle.handles(left, y, right, bottom)


def _by_handle(
    handles: frozenset[Hashable],
    whole: Interval,
    upto: Callable[[float], frozenset[Hashable]],
    finest: float,
    grid: float | None,
    oracle: _Oracle,
) -> tuple[dict[Hashable, Interval], bool]:
    """The interval of every handle; one question halves the intervals of all handles that share
    one.
    """
    waiting: deque[tuple[float, float, frozenset[Hashable]]] = deque([(*whole, handles)])
    result: dict[Hashable, Interval] = {}
    complete = True
    while waiting:
        low, high, inside = waiting.popleft()
        if not inside:
            continue
        middle = _middle(low, high, whole[0], grid)
        small = high - low <= finest or not low < middle < high
        if small or not oracle.affordable(1):
            complete &= small
            result.update(dict.fromkeys(inside, (low, high)))
            continue
        before = inside & upto(middle)
        waiting += [(low, middle, before), (middle, high, inside - before)]
    return result, complete


class _Corner:
    """How many fixations lie left of x and above y, from rectangles that cover at least half the
    area's width and height.
    """

    def __init__(
        self, oracle: _Oracle, left: float, top: float, right: float, bottom: float, total: float
    ) -> None:
        self._oracle, self._box, self._total = oracle, (left, top, right, bottom), total
        self._centre = (left + right) / 2, (top + bottom) / 2

    def __call__(self, x: float, y: float) -> float:
        left, top, right, bottom = self._box
        if x <= left or y <= top:
            return 0.0
        ask = self._oracle.number
        narrow, flat = x < self._centre[0], y < self._centre[1]
        if not narrow and not flat:
            return ask(left, top, x, y)
        if narrow and not flat:
            return ask(left, top, right, y) - ask(x, top, right, y)
        if not narrow:
            return ask(left, top, x, bottom) - ask(left, y, x, bottom)
        return (
            self._total
            - ask(x, top, right, bottom)
            - ask(left, y, right, bottom)
            + ask(x, y, right, bottom)
        )


def achieved(rebuilt_deg: ArrayLike, true_deg: ArrayLike) -> ReconstructionAccuracy:
    """How near the rebuilt positions, shape (n, 2), come to the true ones, shape (m, 2)."""
    from scipy.optimize import linear_sum_assignment

    ours, truth = (np.asarray(a, dtype=np.float64).reshape(-1, 2) for a in (rebuilt_deg, true_deg))
    apart = np.abs(ours[:, None] - truth[None]).max(axis=-1)
    rows, columns = linear_sum_assignment(apart)
    errors = apart[rows, columns]
    nothing = len(errors) == 0
    return ReconstructionAccuracy(
        len(errors),
        len(truth) - len(errors),
        len(ours) - len(errors),
        math.nan if nothing else float(np.median(errors)),
        math.nan if nothing else float(errors.max()),
    )
