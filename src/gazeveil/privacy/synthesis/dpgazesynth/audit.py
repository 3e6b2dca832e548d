"""Games for reports about windows: DPGazeSynth's devices on two windows that differ as much as
neighbours may.

The first window stays where it begins; the second begins r away and has as many runs as are told
apart, each one cell to the right of the last. They differ in the start, in every fixation time that
can differ, and in every slot of transitions, so all parts of the budget are spent at once. What is
judged is the whole message: the logarithm of its likelihood ratio. For `published` the number of
fixation times alone tells the two apart.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.privacy.audit.games import GAME_SCREEN, Game, asked_unit
from gazeveil.privacy.noise.exact import laplace_scale
from gazeveil.privacy.noise.local import GRR, OUE, FrequencyOracle
from gazeveil.privacy.noise.planar import raised_scale
from gazeveil.privacy.randomness.rng import Words
from gazeveil.privacy.synthesis.dpgazesynth.grid import WindowLayout, Windows
from gazeveil.privacy.synthesis.dpgazesynth.messages import ReportHeader
from gazeveil.privacy.synthesis.dpgazesynth.scheme import Scheme, Streams

if TYPE_CHECKING:
    from gazeveil.privacy.synthesis.dpgazesynth.mechanism import Synthesis

RATE_HZ = 100.0
_ROWS = 5000  # windows at a time
_PAIR = (
    "One window at 100 Hz: gaze that stays, and gaze that begins r away and moves on as often as is"
    " told apart."
)


def _pair(plan: WindowLayout) -> tuple[Windows, Windows]:
    """One window each."""
    grid, runs = plan.grid, min(plan.cap, plan.samples)
    row = grid.G // 2 * grid.G
    cells = row + np.arange(runs) % grid.G
    lengths = np.array([1] * (runs - 1) + [plan.samples - runs + 1], dtype=np.int64)
    away = float(min(plan.r_deg, Fraction(repr(GAME_SCREEN.width_deg / 4))))
    still = Windows(
        plan.samples,
        np.zeros(1),
        np.zeros(1),
        np.array([0, 1]),
        cells[:1],
        np.array([plan.samples]),
    )
    return still, Windows(
        plan.samples, np.full(1, away), np.zeros(1), np.array([0, runs]), cells, lengths
    )


def _many(windows: Windows, times: int) -> Windows:
    """The same window many times; the first of each two is even and the second odd."""
    runs = len(windows.cell)
    return Windows(
        windows.samples,
        np.tile(windows.x_deg, times),
        np.tile(windows.y_deg, times),
        np.arange(times + 1) * runs,
        np.tile(windows.cell, times),
        np.tile(windows.length, times),
    )


def _supports(oracle: FrequencyOracle, rows: NDArray[Any], category: Ints) -> Bools:
    """Whether each report supports a category."""
    if isinstance(oracle, GRR):
        return np.asarray(rows[:, 0] == category)
    if isinstance(oracle, OUE):
        return np.asarray(rows[np.arange(len(rows)), category] == 1)
    return np.asarray((rows == category[:, None]).any(axis=1))


def _exact(scheme: Scheme, plan: WindowLayout, pair: tuple[Windows, Windows]) -> float:
    """The largest log ratio of the probabilities of a message."""
    steps = math.floor(abs(float(pair[1].x_deg[0])) * 2.0**plan.step_bits)
    start = steps / float(raised_scale(plan.start_scale))
    oracles = scheme.questions(plan)
    if scheme.times:
        t, s = laplace_scale(plan.time_scale)
        times = np.abs(pair[0].capped(plan.cap) - pair[1].capped(plan.cap)).sum() * s / t
        return start + float(times) + (plan.cap - 1) * math.log(oracles["steps"].odds)
    # even windows answer one question, odd ones the other
    return (
        start
        + max(math.log(oracles[n].odds) for n in ("counts", "lengths"))
        + math.log(oracles["steps"].odds)
    )


def _ratios(
    scheme: Scheme,
    plan: WindowLayout,
    pair: tuple[Windows, Windows],
    side: int,
    rows: int,
    streams: Streams,
) -> Floats:
    """Log likelihood ratios of the messages of one side."""
    head = ReportHeader("p", "s", "1", "", RATE_HZ, rows * plan.samples, 0, plan.grid.space)
    report, truth = scheme.ask(plan, head, _many(pair[side], rows), streams)
    places = [np.hypot(report.x_deg - w.x_deg[0], report.y_deg - w.y_deg[0]) for w in pair]
    ratio = (places[1] - places[0]) / float(
        raised_scale(plan.start_scale) / Fraction(2) ** plan.step_bits
    )
    if scheme.times:
        t, s = laplace_scale(plan.time_scale)
        away = [np.abs(report.lengths - w.capped(plan.cap)).sum(axis=1) for w in pair]
        ratio += (away[1] - away[0]) * s / t
    # what each side would answer, question by question
    other = [scheme.ask(plan, head, _many(w, rows), Streams(0))[1] for w in pair]
    for name, oracle in scheme.questions(plan).items():
        answers = oracle.report(truth[name], Words(streams.source("answers", name)))
        supported = [_supports(oracle, answers, o[name]).astype(np.float64) for o in other]
        gain = (supported[0] - supported[1]) * math.log(oracle.odds)
        where = {"counts": np.arange(0, rows, 2), "lengths": np.arange(1, rows, 2)}.get(
            name, np.arange(len(gain)) * rows // max(len(gain), 1)
        )
        np.add.at(ratio, where, gain)
    return ratio


def windows_game(mechanism: Synthesis, unit: str | None) -> Game:
    """The game of both mechanisms."""
    game_unit = asked_unit(unit, "window", ("window",))
    claimed = float(Fraction(str(mechanism.epsilon)))
    layout = mechanism.scheme().plan(GAME_SCREEN, RATE_HZ)
    if mechanism.reading == "published":
        pair = _pair(layout)
        description = (
            f"{_PAIR} One sends {len(pair[0].cell)} fixation time, the other {len(pair[1].cell)}."
        )
        return Game(
            game_unit,
            claimed,
            description,
            lambda side, trials, _: np.full((trials, 1), float(len(pair[side].cell))),
            math.inf,
        )
    # The promise does not depend on the size of the grid, and a small one is quickly drawn.
    small = replace(mechanism, G=min(mechanism.G, 6), r_deg=layout.r_deg)
    scheme = small.scheme()
    plan = scheme.plan(GAME_SCREEN, RATE_HZ)
    pair = _pair(plan)

    def play(side: int, trials: int, seed: int | None) -> Floats:
        streams = Streams(seed, "audit", str(side))
        parts = [
            _ratios(scheme, plan, pair, side, min(_ROWS, trials - begin), streams.of(str(begin)))
            for begin in range(0, trials, _ROWS)
        ]
        return np.concatenate(parts)[:, None]

    return Game(game_unit, claimed, _PAIR, play, _exact(scheme, plan, pair))
