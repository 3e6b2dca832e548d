"""Games for streams: two streams that differ inside one window, and everything that is released in
it.

Kaleido is stateful, and the past is the same for both neighbours, so its promise must hold after
every past. The game begins at the worst one: a publication lies exactly where one neighbour looks
next, and is old enough for the whole budget to be free again. In each slot the two streams are r
apart, and they change places from slot to slot: then the outcome "publish, and close to my gaze"
speaks for the same stream in the test and in the publication, slot after slot. The published
reading begins with its first sample, where its budget is largest.

Between two slots the last output is repeated, so slots alone are played, and of a very long window
the first ones. A shorter observation carries no more information, so no claim is refuted falsely.
The exact loss is that of the whole window.

Games for the stream mechanisms that add noise to samples or none at all: one window of steady
gaze against the same window moved by r.

The sum of the released x is the best statistic there is for independent Gaussian noise, so the
bound comes close to the account. What promises nothing has nothing to refute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.audit.games import DELTA, GAME_SCREEN, Game
from gazeveil.privacy.promise.loss import epsilon_of_rho
from gazeveil.privacy.randomness.rng import source
from gazeveil.privacy.randomness.supply import Bits, derived_seed
from gazeveil.privacy.stream.kaleido import step
from gazeveil.privacy.stream.kaleido.published import PublishedKaleido
from gazeveil.privacy.stream.kaleido.stage import KaleidoPlan, LatticeStage

if TYPE_CHECKING:
    from gazeveil.privacy.stream.kaleido.mechanism import Kaleido
    from gazeveil.privacy.stream.mechanism import StreamMechanism

RATE_HZ = 100.0
_ROWS = 5000  # streams at a time
_HELD = 1 << 21  # slots of them at a time, which are some hundred megabytes
_SLOTS = 1024  # slots of a window that are played
_DESCRIPTION = (
    "One window at 100 Hz: two streams r apart that change places from slot to slot, after a past"
    " that leaves the whole budget."
)

#: `share(spent)` -> (share of the next publication, part of it that later ones must know of), in
#: the same unit.
Share = Callable[[float], tuple[float, float]]


def _log_far(x: float) -> float:
    """Logarithm of P(Laplace(1) < x): the test says publish when the distance is x scales above the
    threshold.
    """
    return math.log(0.5) + x if x < 0 else math.log1p(-0.5 * math.exp(-x))


def worst_loss(
    slots: int, test_scale: float, threshold: float, r: float, share: Share, tested_first: bool
) -> float:
    """The largest log ratio of the probabilities of one outcome of a window.

    A slot that repeats loses r / test_scale, if both places are beyond the threshold; one that
    publishes loses r over the scale of its noise, and besides what the answer "far" tells of a
    distance of r against 0. `share` gives r over the scale of the next publication.
    """
    tests = test_scale > 0
    repeat = r / test_scale if tests else 0.0
    far = (
        _log_far((r - threshold) / test_scale) - _log_far(-threshold / test_scale) if tests else 0.0
    )
    best, published, spent = (slots * repeat if tests and tested_first else 0.0), 0.0, 0.0
    for p in range(1, slots + 1):
        loss, tracked = share(spent)
        published = published + loss + (far if tested_first or p > 1 else 0.0)
        spent = spent + tracked
        if tests or p == slots:
            best = max(best, published + (slots - p) * repeat)
    return best


def _exact(mechanism: Kaleido) -> float:
    if mechanism.reading == "published":
        skip = mechanism.skip(RATE_HZ)
        slots = math.ceil(mechanism.w / skip)
        epsilon = float(mechanism.epsilon)
        h = float(mechanism.h)
        whole = epsilon - epsilon / h
        r = float(mechanism.r_deg)
        threshold = float(mechanism.l_thresh_deg)
        # It counts tests by time: after pauses of the tracker of t_skip or more, each of the w
        # samples is tested.
        return max(
            worst_loss(
                n, h * slots / epsilon, threshold, r, lambda s: ((whole - s) / 2,) * 2, False
            )
            for n in (slots, mechanism.w)
        )
    plan = mechanism.plan(RATE_HZ, GAME_SCREEN)
    r = float(math.floor(mechanism.r_deg / plan.step_deg))  # type: ignore[operator]

    def share(spent: float) -> tuple[float, float]:
        units, tracked = plan.share(int(spent))
        return r / plan.scale(units), tracked

    return worst_loss(plan.slots, plan.settings.test_scale, plan.settings.threshold, r, share, True)


def at_a_time(each: int) -> int:
    """Streams that are played at a time, if `each` numbers are held of one."""
    return max(1, min(_ROWS, _HELD // each))


def _play(mechanism: Kaleido, side: int, trials: int, seed: int | None) -> Floats:
    published = mechanism.reading == "published"
    plan = None if published else anywhere(slots_alone(mechanism.plan(RATE_HZ, GAME_SCREEN)))
    parts, several = (
        [],
        at_a_time(min(mechanism.w, _SLOTS) if plan is None else plan.slots),
    )  # a stage keeps a place for each slot of a window
    for begin in range(0, trials, several):
        bits, rows = source(seed, "audit", side, begin), min(several, trials - begin)
        parts.append(
            _published(mechanism, side, rows, bits)
            if plan is None
            else _corrected(plan, float(mechanism.r_deg), side, rows, bits)
        )
    return np.concatenate(parts)


def slots_alone(plan: KaleidoPlan) -> KaleidoPlan:
    """The plan for a stream that consists of the samples at its slots."""
    return replace(plan, settings=plan.settings._replace(skip=1, window=plan.slots))


def anywhere(plan: KaleidoPlan) -> KaleidoPlan:
    """The plan without a screen's edges: what is clamped to them tells less."""
    settings, most = plan.settings, round(90 / plan.step_deg) - 1
    everywhere = settings._replace(x_low=-most, x_high=most, y_low=-most, y_high=most)
    return replace(plan, settings=everywhere)


def _streams(odd: Ints, r: float) -> tuple[Floats, Floats]:
    """Where the two streams look, along one axis."""
    return np.where(odd == 0, r, 0.0), np.where(odd == 0, 0.0, r)


def _statistics(
    x: Floats,
    y: Floats,
    tests: Bools,
    published: Bools,
    scale: Floats,
    places: tuple[Floats, Floats],
    before: float,
    threshold: float,
    test_scale: float,
) -> Floats:
    """Log likelihood ratio of the outcome of a window under the two streams; x and y are what was
    released.
    """
    rows = len(x)
    last = (
        np.concatenate((np.full((rows, 1), before), x[:, :-1]), axis=1),
        np.concatenate((np.zeros((rows, 1)), y[:, :-1]), axis=1),
    )
    total = np.zeros(rows)
    near = []
    for place in places:
        if test_scale > 0:
            gap = (np.hypot(place - last[0], last[1]) - threshold) / test_scale
            tail = 0.5 * np.exp(-np.abs(gap))
            near.append(np.where(gap > 0, tail, 1 - tail))
    if near:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(
                published, np.log((1 - near[0]) / (1 - near[1])), np.log(near[0] / near[1])
            )
        total += np.where(tests, np.nan_to_num(ratio), 0.0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        closer = (np.hypot(places[1] - x, y) - np.hypot(places[0] - x, y)) / scale
    total += np.where(published, np.nan_to_num(closer), 0.0).sum(axis=1)
    return np.stack((total, published.sum(axis=1).astype(np.float64)), axis=1)


def _corrected(plan: KaleidoPlan, r_deg: float, side: int, rows: int, bits: Any) -> Floats:
    stage = LatticeStage(plan, rows, [bits])
    stage.traced = True
    g = float(plan.step_deg)
    places = _streams(np.arange(min(plan.slots, _SLOTS)) % 2, math.floor(r_deg / g) * g)
    # The common past: one publication at 0, where the second stream looks first.
    stage.states[:, step.COUNT], stage.states[:, step.HAS] = plan.skip, 1
    stage.states[:, step.LAST_TEST] = 0
    x = np.tile(places[side], (rows, 1))
    _, x, y, _ = stage.run(
        np.zeros_like(x, dtype=np.int64), x, np.zeros_like(x), np.ones_like(x, dtype=np.bool_)
    )
    assert stage.trace is not None
    published = stage.trace > 0
    scale = plan.settings.scale_times_units / np.maximum(stage.trace, 1) * g
    tests = published | (stage.trace == step.REPEATED)
    return _statistics(
        x,
        y,
        tests,
        published,
        scale,
        places,
        0.0,
        plan.settings.threshold * g,
        plan.settings.test_scale * g,
    )


def _published(mechanism: Kaleido, side: int, rows: int, bits: Any) -> Floats:
    stage = mechanism.stage(RATE_HZ, GAME_SCREEN, rows, _FixedSource(bits))
    assert isinstance(stage, PublishedKaleido)
    sample_ns = int(1e9 / RATE_HZ)
    tested = np.arange(0, mechanism.w, max(1, -(-stage.skip_ns // sample_ns)))[
        :_SLOTS
    ]  # the procedure looks at the time alone
    places = _streams((tested // mechanism.skip(RATE_HZ)) % 2, float(mechanism.r_deg))
    x = np.tile(places[side], (rows, 1))
    times = np.tile(tested * sample_ns, (rows, 1))
    _, x, y, _ = stage.run(times, x, np.zeros_like(x), np.ones_like(x, dtype=np.bool_))
    assert stage.trace is not None
    published = stage.trace == 1
    tests = (published | (stage.trace == -1)) & (np.cumsum(published, axis=1) - published > 0)
    budget = stage.budget * 0.5 ** np.cumsum(published, axis=1)
    return _statistics(
        x,
        y,
        tests,
        published,
        float(mechanism.r_deg) / budget,
        places,
        0.0,
        float(stage.settings[1]),
        1 / float(stage.settings[2]),
    )


class _FixedSource(Bits):
    """Hands one source to a stage."""

    def __init__(self, bits: Any) -> None:
        super().__init__()
        self.bits = bits

    def sources(self, streams: int, *keys: str | int) -> list[Any]:
        return [self.bits]


def kaleido(mechanism: Kaleido, unit: str | None) -> Game:
    """The joint outcome of one window; the exact loss is that of the worst
    outcome that can occur.
    """
    published = mechanism.reading == "published"
    slots = (
        math.ceil(mechanism.w / mechanism.skip(RATE_HZ))
        if published
        else mechanism.plan(RATE_HZ, GAME_SCREEN).slots
    )
    description = _DESCRIPTION + (
        f" Of its {slots:,} slots the first {_SLOTS:,} are played." if slots > _SLOTS else ""
    )
    description += (
        " The exact loss is that of a stream with pauses, which tests every sample."
        if published
        else ""
    )
    return Game(
        "window",
        float(mechanism.epsilon),
        description,
        lambda side, trials, seed: _play(mechanism, side, trials, seed),
        exact=_exact(mechanism),
    )


_RATE_HZ = 100.0
_AT_ONCE = 200_000  # samples held at a time


def _play_samples(
    mechanism: StreamMechanism, w: int, r_deg: float, side: int, trials: int, seed: int | None
) -> Floats:
    """Sum and last value of the released x in each of many windows."""
    several = max(1, _AT_ONCE // w)
    out = np.empty((trials, 2))
    for begin in range(0, trials, several):
        n = min(several, trials - begin)
        session = mechanism.open_many(
            n, _RATE_HZ, seed=None if seed is None else derived_seed(seed, begin, side)
        )
        t = np.broadcast_to(np.arange(w) * round(1e9 / _RATE_HZ), (n, w))
        x = session.push(t, np.full((n, w), 180.0 + side * r_deg), np.full((n, w), 90.0))[1]
        out[begin : begin + n] = np.stack((np.nansum(x, axis=1), x[:, -1]), axis=1)
    return out


def samplewise(mechanism: StreamMechanism, unit: str | None) -> Game:
    """Zero-concentrated differential privacy of one window, judged as (epsilon, delta) at delta =
    1e-6; or nothing.
    """
    promise = mechanism.promise(_RATE_HZ, Sphere())
    if promise.definition == "none":
        return Game("window", None, f"{promise} There is no claim to refute.")
    # A promise about one sample has no window.
    w, r = int(promise.numbers.get("w_samples", 1)), float(promise.numbers["r_deg"])
    description = (
        f"{w} samples of steady gaze at {_RATE_HZ:g} Hz, against the same moved by {r:g} degrees."
    )
    if "epsilon" in promise.numbers:
        claimed, delta = float(promise.numbers["epsilon"]), 0.0
    else:
        claimed, delta = float(epsilon_of_rho(promise.numbers["rho"], DELTA)), float(DELTA)
        description += (
            f" rho = {float(promise.numbers['rho']):.4g} is judged as epsilon at delta = 1e-6."
        )
    return Game(
        promise.unit,
        claimed,
        description,
        lambda side, n, seed: _play_samples(mechanism, w, r, side, n, seed),
        delta=delta,
    )
