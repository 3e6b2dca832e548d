"""Differentially private counters of fixations in an area: the binary tree mechanism on integers.

Time is cut into horizons of T = 2**L - 1 ticks, public and the same for every counter. In a horizon
the count up to a tick t is a sum over the blocks of the binary digits of t (at most L of them), and
every block [a, b) has its own count plus discrete Laplace noise of scale L / epsilon, drawn once
(Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011). A fixation lies in one block of
each level, so everything the counter ever tells is epsilon-differentially private about the
presence of one fixation in the area. The error of a count has variance at most L times 2 (L /
epsilon)**2, instead of growing with the number of answers. Proof: proofs/gatekeeper.md.

Blocks are drawn on first use. An unused block costs no random bits, and a tick without fixations
costs nothing. All apps share one counter for areas of the same cells. An app gets the present count
minus the count at its first call. Earlier fixations cancel out; the noise of both counts remains.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

from gazeveil import checks
from gazeveil.gatekeeper.core.areas import Rectangle
from gazeveil.gatekeeper.core.events.quantise import LEAST_FIXATION_MS
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.noise.exact import discrete_laplace, tail_delta
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import Loss
from gazeveil.privacy.promise.privacy_map import WholeMap
from gazeveil.privacy.randomness.rng import ASSUMPTION, Words, source
from gazeveil.privacy.rational import Number, exact

#: Levels of the tree: a horizon of 16383 ticks, 27 minutes at 100 ms.
TREE_LEVELS = 14

#: Pending events at most; more are merged before the next query.
MOST_WAITING = 4096


@dataclass(frozen=True)
class CounterAnswer:
    """A noisy count.

    Parameters
    ----------
    fixations : int
        Since the app first asked, plus noise: right on average, and so it may be negative.
    epsilon : Fraction
        Of one fixation.
    guarantee : Guarantee
        The promise in words and numbers.
    """

    fixations: int
    epsilon: Fraction
    guarantee: Guarantee


class TreeCounter:
    """A running count under continual observation.

    Parameters
    ----------
    epsilon : number
        Budget of one event.
    levels : int
        Of the tree; the horizon is 2**levels - 1 ticks.
    words : Words
        Random bits.
    first_tick : int
        Where it begins.

    Examples
    --------
    >>> counter = TreeCounter(Fraction(1000), 4, Words(source(1)))
    >>> counter.add(2); counter.add(2); counter.add(5)
    >>> counter.count(2), counter.count(3), counter.count(10)
    (0, 2, 3)
    """

    def __init__(self, epsilon: Fraction, levels: int, words: Words, first_tick: int = 0) -> None:
        self.epsilon, self.levels = epsilon, levels
        self.horizon = (1 << levels) - 1
        self.first_tick = first_tick
        self._scale = Fraction(levels) / epsilon
        self._words = words
        self._tree = 0  # which horizon the events and blocks below belong to
        self._events: list[int] = []  # ticks within it
        self._later: list[int] = []  # ticks of horizons without a query so far
        self._blocks: dict[tuple[int, int], int] = {}
        self._before = 0  # answers of finished horizons
        self._asked = 0

    def tree_of(self, tick: int) -> int:
        """The horizon that a tick belongs to."""
        return max(0, tick - self.first_tick) // self.horizon

    def add(self, tick: int) -> None:
        """One event in that tick; ticks never go back, and an event is never put before a tick that
        was asked about.
        """
        place = max(tick - self.first_tick, self._asked)
        self._later.append(place)
        if len(self._later) > MOST_WAITING:
            # No query for long: merge each finished horizon into one number, as a query would.
            self.count(place + self.first_tick)

    def count(self, tick: int) -> int:
        """The noisy number of events before that tick."""
        now = max(tick - self.first_tick, self._asked)
        self._asked = now
        while now // self.horizon > self._tree:
            self._fill()
            self._before += self._prefix(self.horizon)
            self._tree += 1
            self._events, self._blocks = [], {}
        self._fill()
        return self._before + self._prefix(now - self._tree * self.horizon)

    def _fill(self) -> None:
        """Take over the events of the current horizon."""
        begin, end = self._tree * self.horizon, (self._tree + 1) * self.horizon
        mine = [place - begin for place in self._later if place < end]
        self._later = [place for place in self._later if place >= end]
        self._events = sorted(self._events + mine)

    def _prefix(self, ticks: int) -> int:
        """The noisy count of the first ticks of the current horizon."""
        used: dict[tuple[int, int], int] = {}
        begin = 0
        for level in reversed(range(self.levels)):
            if ticks >> level & 1:
                end = begin + (1 << level)
                block = (begin, end)
                known = block in self._blocks
                used[block] = self._blocks[block] if known else self._draw(begin, end)
                begin = end
        # A block that is no part of the current prefix is no part of any later one.
        self._blocks = used
        return sum(used.values())

    def _draw(self, begin: int, end: int) -> int:
        true = bisect_left(self._events, end) - bisect_left(self._events, begin)
        return true + int(discrete_laplace(self._scale, 1, self._words)[0])


class Counters:
    """All counters of a device, one for each rectangle of cells.

    Parameters
    ----------
    epsilon : number
        Of one fixation in one area.
    levels : int
        Of the trees.
    tick_ms : int
        The public clock.
    seed : int, optional
        A test stream.
    """

    def __init__(self, epsilon: Number, levels: int, tick_ms: int, seed: int | None) -> None:
        self.epsilon = exact("Gatekeeper", "counter_epsilon", epsilon, above=0)
        self.levels = checks.count("Gatekeeper", "counter_levels", levels)
        if self.levels > 30:
            checks.refuse("Gatekeeper", "counter_levels", "at most 30", levels)
        self._seed = seed
        self._tick_ms = tick_ms
        self._counters: dict[Rectangle, TreeCounter] = {}
        self.guarantee = self._promise()

    def anew(self) -> Counters:
        """Counters of the same kind that have counted nothing, with noise of their own."""
        seed = None if self._seed is None else self._seed + 1
        return Counters(self.epsilon, self.levels, self._tick_ms, seed)

    def __len__(self) -> int:
        return len(self._counters)

    def get(self, rectangle: Rectangle) -> TreeCounter | None:
        """The counter of a rectangle, where there is one."""
        return self._counters.get(rectangle)

    def begin(self, rectangle: Rectangle, tick: int) -> TreeCounter:
        """The counter of a rectangle; it begins now if there is none."""
        if rectangle not in self._counters:
            words = Words(source(self._seed, "gatekeeper", "counter", str(rectangle)))
            self._counters[rectangle] = TreeCounter(self.epsilon, self.levels, words, tick)
        return self._counters[rectangle]

    def add(self, row: int, column: int, tick: int) -> None:
        """A fixation in a cell."""
        for rectangle, counter in self._counters.items():
            if rectangle.has(row, column):
                counter.add(tick)

    def _promise(self) -> Guarantee:
        # Fixations do not overlap and last at least so long; what is told in a horizon ended in it
        # or in the second before it.
        horizon = (1 << self.levels) - 1
        most = (horizon * self._tick_ms + 1000) // LEAST_FIXATION_MS + 1
        per_level = self.epsilon / self.levels
        of_one = Loss.pure(self.epsilon, tail_delta(per_level, self.levels))
        of_horizon = Loss.pure(self.epsilon * most, tail_delta(per_level, self.levels * most))
        all_fixations = (
            f"all fixations of one horizon of {horizon} ticks in one area, of which there are at"
            f" most {most}"
        )
        promise = Guarantee(
            "epsilon-dp",
            WholeMap.of("event", of_one),
            Change.event(),
            # Counting goes on horizon after horizon, so what a person adds up to is not known; only
            # what a horizon does.
            also=((all_fixations, of_horizon),),
            mechanism="Gatekeeper counter",
            assumptions=("an event is one fixation in the area", ASSUMPTION),
            not_covered=(
                "further areas that hold the same cells: each has a counter of its own, and"
                " their budgets add up",
                "what the exact answers of other scopes tell",
                "that the app asked, and when",
            ),
            reason="proofs/gatekeeper.md",
        )
        return promise if self._seed is None else promise.tested()
