"""Noise on the sphere never takes long: few tries at every scale that a plan can reach, by the law
at each of them.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gazeveil import Sphere
from gazeveil.errors import ParameterError
from gazeveil.gaze.geometry import haversine_deg
from gazeveil.privacy.noise import spherical
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.stream.kaleido import stage as kaleido_stage
from gazeveil.privacy.stream.kaleido import step
from gazeveil.privacy.stream.kaleido.mechanism import Kaleido, KaleidoUniform
from gazeveil.privacy.stream.kaleido.stage import KaleidoPlan, LatticeStage
from gazeveil.privacy.stream.kaleido.step import tangent_of
from gazeveil.privacy.synthesis.clock.render import ClockRender
from tests.support.laws import assert_distribution

#: Five sigma and less: a false alarm in a million.
SIGMAS = 4.9

EPSILONS = (Fraction(1, 1 << 20), Fraction(1, 100), 1, 4, 64, 1024)
WINDOWS = (1, 60, 720, 1 << 20)
RADII = (Fraction(1, 1 << 10), Fraction(1, 20), 1, 20, 360)


class Bounded:
    """Test words that do not go on for ever: whoever waits for more is stuck."""

    secure = False

    def __init__(self, stream: TestStream, most: int) -> None:
        self.stream, self.left = stream, most

    def take(self, count: int) -> np.ndarray:
        self.left -= count
        assert self.left >= 0, "a point takes too many tries"
        return self.stream.take(count)

    def child(self, *keys: str | int) -> Bounded:
        return Bounded(self.stream.child(*keys), self.left)


def published(
    plan: KaleidoPlan, count: int, source: Any, units: int | None = None, y: float = 90.0
) -> tuple[np.ndarray, np.ndarray, int]:
    """First publications of many streams that look at one place, and their units; `units` is what
    they are to be published with.
    """
    stage = LatticeStage(plan, count, [source])
    stage.traced = True
    if units is not None:
        stage.states[:, step.SPENT] = plan.units - 2 * units
    one = np.ones((count, 1))
    _, a, b, _ = stage.run(
        np.zeros((count, 1), dtype=np.int64), 200.0 * one, y * one, one.astype(np.bool_)
    )
    assert stage.trace is not None
    assert stage.trace.min() == stage.trace.max()
    return a[:, 0], b[:, 0], int(stage.trace[0, 0])


# --- no session waits
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [Kaleido, KaleidoUniform])
@pytest.mark.parametrize("rate_hz", [10.0, 120.0, 2000.0])
def test_no_setting_takes_many_tries(cls: Any, rate_hz: float) -> None:
    for epsilon, w, r_deg in itertools.product(EPSILONS, WINDOWS, RADII):
        plan = cls(epsilon, w, r_deg).plan(rate_hz, Sphere())
        assert plan.tries() <= 1.0 + spherical.WIDE_RAD**2  # the bound of the proof for every plan
        stage = LatticeStage(plan, 1, [Bounded(TestStream(1), 4000)])
        good = np.ones((1, 50), dtype=np.bool_)
        for y in (90.0, 0.0):
            stage.run(
                np.zeros((1, 50), dtype=np.int64),
                np.full((1, 50), 180.0),
                np.full((1, 50), y),
                good.copy(),
            )


@pytest.mark.parametrize("r_deg", RADII)
def test_readings_at_public_times_take_few_tries(r_deg: Any) -> None:
    for epsilon, rate_hz in itertools.product(EPSILONS, (10.0, 2000.0)):
        scale = ClockRender(epsilon, r_deg).noise(rate_hz, Sphere()).scale
        # equal shares have the tangent that fits them best
        own = spherical.tangent(min(scale, spherical.WIDE_RAD))
        assert spherical.most_tries(scale, scale, *own) <= spherical.MOST_TRIES


# --- the bound
# --------------------------------------------------------------------------------------------------


def tries_of(scale: float, shrink: float, lead: float) -> float:
    """Tries of a point on average, by the proof."""
    if scale > spherical.WIDE_RAD:
        return 1.0 + scale**-2
    return (
        (1.0 + scale**2) * shrink**2 * math.exp(lead / scale) / (1.0 + math.exp(-math.pi / scale))
    )


@pytest.mark.parametrize("cls", [Kaleido, KaleidoUniform])
def test_the_bound_of_a_plan_holds_at_every_scale_it_can_reach(cls: Any) -> None:
    for epsilon, w, r_deg in itertools.product(EPSILONS, WINDOWS, RADII):
        plan = cls(epsilon, w, r_deg).plan(120.0, Sphere())
        fitted, least, most = (plan.settings.fitted, plan.settings.least_units, plan.share(0)[0])
        spent = [
            int(v)
            for v in plan.units
            * np.concatenate((np.linspace(0.0, 1.0, 30), 1.0 - 2.0 ** -np.arange(1.0, 40.0)))
        ]
        reached = {plan.share(s)[0] for s in spent} | {fitted, fitted + 1, fitted - 1, least, most}
        low = plan.share(plan.units)[0]
        for units in (u for u in reached if max(least, low) <= u <= most):
            line = tangent_of(units, fitted, plan.settings.shrink, plan.settings.lead)
            assert tries_of(plan.scale(units), *line) <= plan.tries() * (1 + 1e-12)


@pytest.mark.parametrize(
    ("scale", "of"),
    [(0.01, 0.0), (0.5, 0.8), (0.6, 0.0), (1.25, 0.0), (1.25, 1.25), (1.26, 1.25), (0.3, 0.9)],
)
def test_tries_are_as_many_as_the_proof_says(scale: float, of: float) -> None:
    words = TestStream(2, str(scale)).take(160_000).reshape(-1, 4)
    line = spherical.tangent(of)
    kept = np.mean(
        [spherical.arc_kept(scale, *w[[0, 1, 3]], *line)[0] == spherical.SETTLED for w in words]
    )
    wanted = 1.0 / tries_of(scale, *line)
    assert abs(kept - wanted) < SIGMAS * math.sqrt(wanted * (1 - wanted) / len(words))
    assert spherical.most_tries(scale, scale, *line) * wanted >= 1 - 1e-12


def test_a_plan_that_might_take_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No parameters lead there; a plan would have to go wrong."""
    monkeypatch.setattr(
        kaleido_stage, "FITTING", 0.01
    )  # as if the one tangent served nearly every scale
    with pytest.raises(
        ParameterError, match=r"at most 4 tries on average\. Got 4\.0 instead\. Choose less\."
    ):
        Kaleido(4, 720, 1).open(120.0, Sphere())


def test_hardly_any_budget_for_points_is_a_plan_that_publishes_nothing() -> None:
    plan = Kaleido(Fraction(1, 1 << 20), 1 << 20, 360, h=1 + Fraction(1, 1 << 40)).plan(
        10.0, Sphere()
    )
    assert plan.settings.least_units > plan.share(0)[0]


# --- the law
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("w", "which"),
    [(600, "first"), (720, "first"), (60, "unfitted"), (60, "fitted"), (60, "usual")],
)
def test_arcs_follow_their_law_at_narrow_scales_and_on_both_sides_of_the_change(
    w: int, which: str
) -> None:
    """Density proportional to exp(-arc / b) sin(arc), to within 5 % of b."""
    plan = Kaleido(4, w, 1 if w > 60 else 10).plan(120.0, Sphere())
    fitted = plan.settings.fitted
    units = {
        "first": None,
        "unfitted": fitted + 1,
        "fitted": fitted,
        "usual": plan.units // (plan.slots + 1),
    }[which]
    parts = []
    for seed in range(10):
        a, b, found = published(plan, 20_000, TestStream(seed, which), units)
        parts.append(np.radians(haversine_deg(200.0, 90.0, a, b)))
    assert units in (None, found)
    assert (found > fitted) == (which in ("first", "unfitted"))
    scale = plan.scale(found)

    def cdf(rho: np.ndarray, k: float) -> np.ndarray:
        c = 1.0 / (scale * k)
        return (1.0 - np.exp(-c * rho) * (np.cos(rho) + c * np.sin(rho))) / (
            1.0 + math.exp(-c * math.pi)
        )

    rho = np.concatenate(parts)
    assert_distribution(rho, cdf)
    for q in (0.01, 0.1, 0.5, 0.9, 0.99):
        below = float(np.mean(cdf(rho, 1.0) <= q))
        assert abs(below - q) < SIGMAS * math.sqrt(q * (1 - q) / len(rho))
