"""Long blocks of Kaleido: first opinions keep their bounds and never decide against double precision, and two threads release what one does."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from gazeveil import Screen, Sphere
from gazeveil.privacy.noise.rng import TestStream
from gazeveil.privacy.stream import front, kaleido_ahead, kaleido_stage
from gazeveil.privacy.stream import kaleido_block as block
from gazeveil.privacy.stream import kaleido_noise as noise
from gazeveil.privacy.stream import kaleido_quick as quick
from gazeveil.privacy.stream import kaleido_step as step
from gazeveil.privacy.stream.kaleido import Kaleido, KaleidoReserve, KaleidoUniform
from gazeveil.privacy.stream.kaleido_stage import LatticeStage

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)

# --- proposals -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-8, 0.001, 0.1, 0.5, 1.0, noise.WIDE_RAD])
def test_the_tangent_lies_below_the_arc_of_every_chord(scale: float) -> None:
    shrink, lead = noise.tangent(scale)
    half = np.concatenate((np.linspace(0.0, 1.0, 100_001), np.sin(0.5 * np.arccos(shrink)) * np.linspace(0.99, 1.01, 1001)))
    gap = 2.0 * np.arcsin(np.minimum(half, 1.0)) - 2.0 * half / shrink + lead
    assert gap.min() >= 0.0
    assert gap.min() < 1e-9  # it touches


@pytest.mark.parametrize("scale", [noise.WIDE_RAD, 2.0, 10.0, 1e5])
def test_a_point_and_the_one_opposite_are_never_too_likely_together(scale: float) -> None:
    rho = np.linspace(0.0, math.pi, 10_001)
    assert np.all(np.exp(-rho / scale) + np.exp((rho - math.pi) / scale) <= (1.0 + math.exp(-math.pi / scale)) * (1 + 1e-15))


@pytest.mark.parametrize("scale", [0.2, 0.7, 1.2, 1.3, 3.0])
def test_as_many_tries_are_kept_as_the_proof_says(scale: float) -> None:
    words = TestStream(1, str(scale)).take(160_000).reshape(-1, 4)
    shrink, lead = noise.tangent(scale)
    kept = np.mean([noise.arc_kept(scale, *w[[0, 1, 3]], shrink, lead)[0] == noise.SETTLED for w in words])
    narrow = (1 + math.exp(-math.pi / scale)) * math.exp(-2 * (1 - math.atan(scale) / scale))
    wanted = scale**2 / (1 + scale**2) if scale > noise.WIDE_RAD else narrow
    assert abs(kept - wanted) < 5 * math.sqrt(wanted * (1 - wanted) / len(words))


# --- first opinions --------------------------------------------------------------------------------------------------------------------


def short(values: np.ndarray) -> list[np.float32]:
    return list(values.astype(np.float32))


def test_functions_of_single_precision_are_far_within_their_bounds() -> None:
    rng = np.random.default_rng(1)
    for u in [*short(rng.random(3000)), *short(np.exp(-rng.uniform(0, 27, 3000))), np.float32(1.0)]:
        truth = -math.log(u)
        assert abs(float(quick.exponential(u)) - truth) <= 0.25 * (1 + truth) * quick.EXPONENTIAL_ERROR
    assert math.isnan(quick.exponential(np.float32(2.0**-41)))
    for quarters in short(rng.uniform(-4, 4, 3000)):
        angle = float(quarters) * math.pi / 2
        for found, truth in zip(quick.cos_sin(quarters), (math.cos(angle), math.sin(angle)), strict=True):
            assert abs(float(found) - truth) <= 2.0**-21
    for arc in rng.uniform(0, math.pi, 3000):
        y, x = np.float32(math.sin(arc)), np.float32(math.cos(arc))
        assert abs(float(quick.angle(y, x)) - math.atan2(y, x)) <= 2.0**-20
    for x in short(rng.uniform(0, math.pi / 2, 3000)):
        assert abs(float(quick.sine(x)) - math.sin(x)) <= 0.25 * quick.ARC_ERROR
    most = math.pi / 2 / noise.WIDE_RAD
    for x in short(rng.uniform(-most, most, 3000)):
        assert abs(float(quick.log_cosh(x)) - math.log(math.cosh(x))) <= 2.0**-18


def some_words(count: int, per: int, *keys: str) -> np.ndarray:
    """Words of which some are very small or very large."""
    words = TestStream(7, *keys).take(count * per)
    place = np.arange(len(words))
    words = np.where(place % 101 == 3, words >> np.uint64(30), words)
    words = np.where(place % 101 == 5, ~(words >> np.uint64(30)), words)
    return np.where(place % 1009 == 4, words >> np.uint64(60), words)


@pytest.mark.parametrize(("threshold", "scale"), [(0.02, 0.7), (0.02, 4.2), (1.0, 0.001), (0.0, 1e6)])
def test_opinions_on_tests_are_open_or_near_the_truth(threshold: float, scale: float) -> None:
    words = some_words(20_000, 1, "tests", str(scale))
    limits = np.empty(len(words), dtype=np.float32)
    block.test_opinions(words, limits, threshold, scale)
    bound = 2.0 * quick.test_error(threshold, scale) + quick.SQUARE_ERROR
    known = 0
    for word, limit in zip(words, limits, strict=True):
        truth, error = noise.arc_limit(threshold, scale, *noise.laplace_unit(word))
        if math.isnan(limit):
            continue
        known += math.isfinite(error)
        if truth in (-1.0, 8.0) or limit in (-1.0, 8.0):
            assert limit == truth
        else:
            assert abs(float(limit) - truth) <= 0.5 * bound
    # where nearly all noise is far larger than the sphere, single precision does not see much of it
    assert known > (0.9 if scale < 100 else 0.5) * len(words)


@pytest.mark.parametrize("text", ["narrow", "wide"])
def test_opinions_on_points_never_decide_against_double_precision(text: str) -> None:
    """The rules of `decide` again, in Python, on words of all sizes."""
    scales = (0.01, 0.3, 0.67, 1.1, noise.WIDE_RAD) if text == "narrow" else (1.2501, 1.6, 2.2, 5.0, 300.0)
    plan = KaleidoUniform(3 if text == "narrow" else "0.4", 50, 2, slots=50, t_skip_ms=10).plan(100.0, Sphere())
    assert plan.whole[step.NARROW] == (text == "narrow")
    shrink, lead = float(plan.real[step.SHRINK]), float(plan.real[step.LEAD])
    per = step.words_of_record(plan.whole)
    words = some_words(4000, per, text)
    rows = np.empty((quick.ROWS, 4000), dtype=np.float32)
    whole = plan.whole.copy()
    whole[step.RULE] = step.HALVING  # any scale may come
    block.point_opinions(words, rows, whole, plan.real)
    decided = opened = 0
    for k, scale in itertools.product(range(4000), scales):
        w = words[per * k : per * k + per]
        truth, side = noise.arc_kept(scale, w[0], w[1], w[3] if per == 4 else w[0], shrink, lead)
        e, reach = float(rows[quick.KEEP, k]), float(rows[quick.REACH, k])
        likely = 1.0
        if text == "narrow":
            half, longest = 0.5 * scale * shrink * reach, 0.5 * (scale * (e + reach) - lead)
            margin = math.sin(min(max(longest, 0.0), math.pi / 2)) - half
            bound = 2.0 * (scale * (2.0 + e + reach) * quick.EXPONENTIAL_ERROR + quick.ARC_ERROR)
        else:
            most = math.log(math.cosh(math.pi / 2 / scale))
            margin, likely = e - most + math.log(math.cosh(reach / scale)), e - most - math.log(2) + reach / scale
            bound = (1.0 + e) * quick.LEVEL_ERROR
        if not (abs(margin) > bound and abs(likely) > (bound if text == "wide" else 0.0)):
            opened += 1
            continue
        decided += 1
        if truth != noise.UNSETTLED:
            assert (margin > 0) == (truth == noise.SETTLED)
            if truth == noise.SETTLED:
                assert (1.0 if likely > 0 else -1.0) == side
                cos_rho, sin_rho, _ = noise.arc(scale, w[0], w[3] if per == 4 else w[0], shrink, side)
                if text == "wide":
                    assert abs(side * float(rows[quick.COS_ARC, k]) - cos_rho) < 2.0**-20
                    assert abs(side * float(rows[quick.SIN_ARC, k]) - sin_rho) < 2.0**-20
                elif 1 - half * half > quick.LEAST_INSIDE:
                    assert math.hypot(1 - 2 * half * half - cos_rho, 2 * half * math.sqrt(1 - half * half) - sin_rho) < quick.SQUARE_ERROR / 8
    assert opened < 0.01 * decided


# --- two threads -----------------------------------------------------------------------------------------------------------------------


def gaze(space: Any, count: int, lost: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    x, y = np.cumsum(rng.normal(0, 0.5, (2, 1, count)), axis=2)
    x, y = (np.mod(x + 180, 360), np.clip(y + 90, 0, 179.9)) if isinstance(space, Sphere) else (np.clip(x, -30, 30), np.clip(y, -15, 15))
    good = rng.random((1, count)) > 0.05
    if lost == "at first":
        good[:, : count // 2] = False
    elif lost == "at last":
        good[:, count // 2 :] = False
    elif lost == "all":
        good[...] = False
    return x, y, good


def released(plan: Any, samples: tuple[np.ndarray, np.ndarray, np.ndarray], sizes: list[int], traced: bool = False) -> list[np.ndarray]:
    stage = LatticeStage(plan, 1, [TestStream(3)])
    stage.traced = traced
    parts, begin = [], 0
    for size in sizes:
        x, y, good = (a[:, begin : begin + size].copy() for a in samples)
        parts.append((*stage.run(np.zeros((1, size), dtype=np.int64), x, y, good)[1:], stage.trace if traced else np.zeros((1, 0))))
        begin += size
    return [np.concatenate([p[k] for p in parts], axis=1) for k in range(4)]


@pytest.mark.parametrize("lost", ["some", "at first", "at last", "all"])
@pytest.mark.parametrize("skip_ms", [10, 60])
@pytest.mark.parametrize("cls", [Kaleido, KaleidoReserve, KaleidoUniform])
@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_two_threads_release_what_one_does(space: Any, cls: Any, skip_ms: int, lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = cls(1, 60, 2, t_skip_ms=skip_ms).plan(100.0, space)
    count = 12_000
    samples = gaze(space, count, lost)
    monkeypatch.setattr(kaleido_ahead, "CHUNK", 500)
    found = []
    for many, sizes, traced in (
        (10**9, [count], True), (100, [count], True), (100, [count], False), (100, [3000, 7, 2993, 6000], False), (10**9, [1000] * 12, False)
    ):  # fmt: skip
        for module in (kaleido_ahead, kaleido_stage):
            monkeypatch.setattr(module, "MANY", many)
        found.append(released(plan, samples, sizes, traced))
    for other in found[1:]:
        for a, b in zip(found[0][:3], other[:3], strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found[0][3], found[1][3])
    assert found[0][2].any() == (lost != "all")
    assert (found[0][2] <= samples[2]).all()


@pytest.mark.parametrize(
    ("mechanism", "count"),
    [(Kaleido(1, 60, 2, t_skip_ms=10), 500_000), (KaleidoUniform(1, 60, 2, t_skip_ms=10, slots=60), 500_000), (Kaleido(50, 60, 64, t_skip_ms=10), 600_000)],
    ids=["wide", "without tests", "a coarse lattice"],
)
def test_decisions_near_their_boundary_are_the_same_in_a_long_stream(mechanism: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long enough that some of the draws are open in single precision, or too close to a point that is not placed yet."""
    plan = mechanism.plan(100.0, Sphere())
    samples = gaze(Sphere(), count, "some")
    found = []
    for many in (10**9, 100):
        for module in (kaleido_ahead, kaleido_stage):
            monkeypatch.setattr(module, "MANY", many)
        found.append(released(plan, samples, [count]))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_extreme_scales_go_through_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets for which noise is a few steps, or covers the sphere many times."""
    samples = gaze(Sphere(), 4000, "some")
    monkeypatch.setattr(kaleido_ahead, "CHUNK", 300)
    for cls, (epsilon, w, r) in itertools.product((Kaleido, KaleidoUniform), ((1000, 60, "0.001"), ("0.0001", 60, 10), (1, 2000, 1), (200, 1, 90))):
        plan = cls(epsilon, w, r, t_skip_ms=10).plan(100.0, Sphere())
        found = []
        for many in (10**9, 100):
            for module in (kaleido_ahead, kaleido_stage):
                monkeypatch.setattr(module, "MANY", many)
            found.append(released(plan, samples, [4000]))
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_source_that_fails_stops_the_block_and_its_words_are_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        secure = True

        def __init__(self, left: list[int]) -> None:
            self.left = left

        def take(self, count: int) -> np.ndarray:
            self.left[0] -= 1
            if self.left[0] < 0:
                raise OSError("no entropy")
            return TestStream(self.left[0]).take(count)

        def child(self, *keys: str | int) -> Failing:
            return self

    monkeypatch.setattr(kaleido_ahead, "CHUNK", 500)
    for module in (kaleido_ahead, kaleido_stage):
        monkeypatch.setattr(module, "MANY", 100)
    for space in (SCREEN, Sphere()):
        source = Failing([9])
        stage = LatticeStage(Kaleido(1, 60, 2, t_skip_ms=10).plan(100.0, space), 1, [source])
        samples = gaze(space, 12_000, "some")
        with pytest.raises(OSError, match="no entropy"):
            stage.run(np.zeros((1, 12_000), dtype=np.int64), *(a.copy() for a in samples))
        draws = stage.draws[0]
        assert len(draws.tests.words) == len(draws.points.words) == 0
        source.left[0] = 1000
        stage.run(np.zeros((1, 12_000), dtype=np.int64), *(a.copy() for a in samples))


def test_used_words_are_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[np.ndarray] = []

    class Kept(TestStream):
        def take(self, count: int) -> np.ndarray:
            given.append(super().take(count))
            return given[-1]

        def child(self, *keys: str | int) -> Kept:
            return Kept(5, *keys)

    monkeypatch.setattr(kaleido_ahead, "CHUNK", 500)
    for module in (kaleido_ahead, kaleido_stage):
        monkeypatch.setattr(module, "MANY", 100)
    stage = LatticeStage(Kaleido(1, 60, 2, t_skip_ms=10).plan(100.0, Sphere()), 1, [Kept(5)])
    stage.run(np.zeros((1, 6000), dtype=np.int64), *gaze(Sphere(), 6000, "some"))
    draws = stage.draws[0]
    left = len(draws.tests.words) + len(draws.points.words)
    assert len(given) > 20
    # what is not zero is what is left over, or was copied there
    assert sum(np.count_nonzero(g) for g in given) <= left


# --- the front -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sphere", [True, False])
@pytest.mark.parametrize("native", [True, False])
def test_whole_pieces_pass_the_front_as_single_samples_do(sphere: bool, native: bool) -> None:
    rng = np.random.default_rng(8)
    n, period = 20 * front.PIECE, 1e9 / 120.0
    for trouble in range(13):
        t = np.rint(np.arange(n) * period + rng.normal(0, 1e5, n)).astype(np.int64)
        x, y = (rng.uniform(0, 360, n), rng.uniform(0, 180, n)) if sphere else (rng.uniform(-89, 89, n), rng.uniform(-89, 89, n))
        valid = np.ones(n, dtype=np.bool_)
        at = int(rng.integers(2 * front.PIECE, n - 2 * front.PIECE))
        if trouble == 1:
            valid[at] = False
        elif trouble == 2:
            x[at] = np.nan
        elif trouble == 3:
            y[at] = 180.0 if sphere else 90.0
        elif trouble == 4:
            x[at] = -1e-300 if sphere else -90.0
        elif trouble == 5:
            t[at] = t[at - 1]
        elif trouble == 6:
            t[at:] += 10**9  # a pause
        elif trouble == 7:
            t[at:] -= 10**9  # a clock that is set back
        elif trouble == 8:
            t = np.rint(np.arange(n) * period * 0.7).astype(np.int64)  # faster than it says
        elif trouble == 9:
            t = np.rint(np.arange(n) * period * 1.4).astype(np.int64)
        elif trouble == 10:
            t[at] = 2**63 - 1
        elif trouble == 11:
            valid[:at] = False
        elif trouble == 12:
            t[at:] += int(3 * period)
        found = []
        for size in (n, 1, 700):
            arrays = [a.reshape(1, -1).copy() for a in (t, x, y, valid)]
            clock = np.zeros((1, 4), dtype=np.int64)
            for begin in range(0, n, size):
                front.accept(*(a[:, begin : begin + size] for a in arrays), sphere, native, period, clock)
            found.append([*arrays, clock])
        for other in found[1:]:
            for a, b in zip(found[0], other, strict=True):
                np.testing.assert_array_equal(a, b)
        assert found[0][3].any()
