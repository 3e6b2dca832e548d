"""Blocks of Kaleido: proposals on the sphere, and releases that do not depend on how samples and
words are cut into portions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gazeveil import Screen, Sphere
from gazeveil.privacy.noise import spherical
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.stream import session
from gazeveil.privacy.stream.kaleido.mechanism import Kaleido, KaleidoUniform
from gazeveil.privacy.stream.kaleido.stage import LatticeStage

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)

# --- proposals
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-8, 0.001, 0.1, 0.5, 1.0, spherical.WIDE_RAD])
def test_the_tangent_lies_below_the_arc_of_every_chord(scale: float) -> None:
    shrink, lead = spherical.tangent(scale)
    half = np.concatenate(
        (
            np.linspace(0.0, 1.0, 100_001),
            np.sin(0.5 * np.arccos(shrink)) * np.linspace(0.99, 1.01, 1001),
        )
    )
    gap = 2.0 * np.arcsin(np.minimum(half, 1.0)) - 2.0 * half / shrink + lead
    assert gap.min() >= 0.0
    assert gap.min() < 1e-9  # it touches


# --- portions
# --------------------------------------------------------------------------------------------------


def gaze(space: Any, count: int, lost: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    x, y = np.cumsum(rng.normal(0, 0.5, (2, 1, count)), axis=2)
    x, y = (
        (np.mod(x + 180, 360), np.clip(y + 90, 0, 179.9))
        if isinstance(space, Sphere)
        else (np.clip(x, -30, 30), np.clip(y, -15, 15))
    )
    good = rng.random((1, count)) > 0.05
    if lost == "at first":
        good[:, : count // 2] = False
    elif lost == "at last":
        good[:, count // 2 :] = False
    elif lost == "all":
        good[...] = False
    return x, y, good


def released(
    plan: Any,
    samples: tuple[np.ndarray, np.ndarray, np.ndarray],
    sizes: list[int],
    traced: bool = False,
) -> list[np.ndarray]:
    stage = LatticeStage(plan, 1, [TestStream(3)])
    stage.traced = traced
    parts, begin = [], 0
    for size in sizes:
        x, y, good = (a[:, begin : begin + size].copy() for a in samples)
        parts.append(
            (
                *stage.run(np.zeros((1, size), dtype=np.int64), x, y, good)[1:],
                stage.trace if traced else np.zeros((1, 0)),
            )
        )
        begin += size
    return [np.concatenate([p[k] for p in parts], axis=1) for k in range(4)]


@pytest.mark.parametrize("lost", ["some", "at first", "at last", "all"])
@pytest.mark.parametrize("skip_ms", [10, 60])
@pytest.mark.parametrize("cls", [Kaleido, KaleidoUniform])
@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_portions_of_samples_and_words_release_the_same(
    space: Any, cls: Any, skip_ms: int, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = cls(1, 60, 2, t_skip_ms=skip_ms).plan(100.0, space)
    count = 12_000
    samples = gaze(space, count, lost)
    found = []
    for chunk, sizes, traced in (
        (32_768, [count], True),
        (500, [count], True),
        (500, [count], False),
        (500, [3000, 7, 2993, 6000], False),
        (64, [1000] * 12, False),
    ):
        monkeypatch.setattr("gazeveil.privacy.randomness.rng.MOST_RECORDS", chunk)
        found.append(released(plan, samples, sizes, traced))
    for other in found[1:]:
        for a, b in zip(found[0][:3], other[:3], strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found[0][3], found[1][3])
    assert found[0][2].any() == (lost != "all")
    assert (found[0][2] <= samples[2]).all()


def test_a_source_that_fails_stops_the_block_and_its_words_are_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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

    monkeypatch.setattr("gazeveil.privacy.randomness.rng.MOST_RECORDS", 500)
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

    monkeypatch.setattr("gazeveil.privacy.randomness.rng.MOST_RECORDS", 500)
    stage = LatticeStage(Kaleido(1, 60, 2, t_skip_ms=10).plan(100.0, Sphere()), 1, [Kept(5)])
    stage.run(np.zeros((1, 6000), dtype=np.int64), *gaze(Sphere(), 6000, "some"))
    draws = stage.draws[0]
    left = len(draws.tests.words) + len(draws.points.words)
    assert len(given) > 20
    # what is not zero is what is left over, or was copied there
    assert sum(np.count_nonzero(g) for g in given) <= left


# --- the front
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sphere", [True, False])
@pytest.mark.parametrize(
    ("keeps_tracker_times", "hides_losses"), [(True, False), (False, False), (False, True)]
)
def test_whole_pieces_pass_the_front_as_single_samples_do(
    sphere: bool, keeps_tracker_times: bool, hides_losses: bool
) -> None:
    rng = np.random.default_rng(8)
    n, period = 20 * session.PIECE, 1e9 / 120.0
    steps, second_ns = np.arange(n) * period, 10**9
    beyond_x, beyond_y = (-1e-300, 180.0) if sphere else (-90.0, 90.0)
    whole = slice(None, None)
    at = int(rng.integers(2 * session.PIECE, n - 2 * session.PIECE))
    here, later, before = slice(at, at + 1), slice(at, n), slice(0, at)
    usual = np.rint(steps + rng.normal(0, 1e5, n)).astype(np.int64)
    troubles: list[tuple[str, slice, Any]] = [
        ("valid", whole, True),  # none
        ("valid", here, False),
        ("valid", before, False),
        ("x", here, np.nan),
        ("x", here, beyond_x),
        ("y", here, beyond_y),
        ("t", here, usual[at - 1]),
        ("t", here, 2**63 - 1),
        ("t", later, usual[later] + second_ns),  # a pause
        ("t", later, usual[later] - second_ns),  # a clock that is set back
        ("t", later, usual[later] + int(3 * period)),
        ("t", whole, np.rint(0.7 * steps).astype(np.int64)),  # faster than it says
        ("t", whole, np.rint(1.4 * steps).astype(np.int64)),
    ]
    for name, part, value in troubles:
        given = {"t": usual.copy(), "x": rng.uniform(-89, 89, n), "y": rng.uniform(-89, 89, n)}
        if sphere:
            given |= {"x": rng.uniform(0, 360, n), "y": rng.uniform(0, 180, n)}
        given["valid"] = np.ones(n, dtype=np.bool_)
        given[name][part] = value
        found = []
        for size in (n, 1, 700):
            arrays = [given[k].reshape(1, -1).copy() for k in ("t", "x", "y", "valid")]
            clock = np.zeros((1, 5), dtype=np.int64)
            for begin in range(0, n, size):
                session.validate_samples(
                    *(a[:, begin : begin + size] for a in arrays),
                    sphere,
                    keeps_tracker_times,
                    hides_losses,
                    period,
                    clock,
                )
            found.append([*arrays, clock])
        for other in found[1:]:
            for a, b in zip(found[0], other, strict=True):
                np.testing.assert_array_equal(a, b)
        assert found[0][3].any()
