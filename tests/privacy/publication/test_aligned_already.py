"""A recording that is on the public clock passes as it is; any other goes the long way."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.publication import alignment as module
from gazeveil.privacy.publication.alignment import Alignment

N = 1000


def recording(**changes: object) -> Recording:
    rng = np.random.default_rng(1)
    parts: dict[str, object] = {
        "t_ns": np.rint(np.arange(N) * (1e9 / 120)).astype(np.int64),
        "x_deg": 180 + rng.normal(0, 5, N),
        "y_deg": 90 + rng.normal(0, 5, N),
        "rate_hz": 120.0,
    }
    return Recording("p", "s", **{**parts, **changes})  # type: ignore[arg-type]


def same(a: Recording, b: Recording) -> bool:
    arrays = all(
        np.array_equal(getattr(a, n), getattr(b, n), equal_nan=n != "valid")
        for n in ("t_ns", "x_deg", "y_deg", "valid")
    )
    return arrays and a.rate_hz == b.rate_hz and a.space == b.space and a.labels == b.labels


@pytest.mark.parametrize("length", [None, Fraction(N, 120)])
def test_what_is_aligned_passes_as_the_long_way_would_have_it(
    monkeypatch: pytest.MonkeyPatch, length: Fraction | None
) -> None:
    made = Alignment(Fraction(120), lengths_s={} if length is None else {"s": length})
    one = recording()
    short = made.applied(one)
    assert np.shares_memory(short.x_deg, one.x_deg), "it took the long way"
    monkeypatch.setattr(module, "_is_aligned", lambda *_: False)
    assert same(short, made.applied(one))


@pytest.mark.parametrize(
    "changes",
    [
        {"t_ns": np.arange(N) * 8_333_333},
        {"t_ns": np.rint(np.arange(N) * (1e9 / 120)).astype(np.int64) + 7},
        {"valid": np.arange(N) != 5},
        {"rate_hz": 119.0},
        {"pupil": np.ones(N)},
        {"labels": {"a": np.full(N, "x")}},
        {"metadata": {"a": 1}},
    ],
    ids=["drifting", "late", "lost", "rate", "pupil", "labels", "metadata"],
)
def test_anything_else_goes_the_long_way(changes: dict[str, object]) -> None:
    one = recording(**changes)
    assert not np.shares_memory(Alignment(Fraction(120)).applied(one).x_deg, one.x_deg)


def test_another_length_goes_the_long_way() -> None:
    assert len(Alignment(Fraction(120), lengths_s={"s": Fraction(3)}).applied(recording())) == 360


def test_the_public_distance_is_put_in_all_the_same() -> None:
    screen = Screen(1920, 1080, 531.0, 299.0, 612.0)
    rng = np.random.default_rng(2)
    one = recording(x_deg=rng.normal(0, 3, N), y_deg=rng.normal(0, 3, N), space=screen)
    assert Alignment(Fraction(120)).applied(one).space.distance_mm == 600.0
