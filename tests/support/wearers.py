"""A wearer whose gaze is known, and policies that let apps ask about it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.gatekeeper import Gatekeeper, Grant, Ledger, Policy
from gazeveil.gatekeeper.policy.grant import SCOPES

ALL = frozenset(SCOPES)

MECHANISMS = (
    *(f"gaussian:sigma_deg={sigma}" for sigma in (2, 3, 4, 5, 6)),
    *(f"kaleido:epsilon=1/2,w={w},r_deg=2" for w in (20, 30, 50)),
    "kaleido:epsilon=1,w=50,r_deg=2",
)

Trace = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


def grant(**changes: Any) -> Grant:
    """Everything, with a large budget."""
    given: dict[str, Any] = {
        "scopes": ALL,
        "mechanisms": MECHANISMS,
        "budgets": {"epsilon": Fraction(1000), "rho": Fraction(10**6)},
        "streams": 4,
    }
    return Grant(**{**given, "calls_per_minute": 10**6, "areas": 1000, **changes})


def policy(*apps: str, consent: bool = True, **changes: Any) -> Policy:
    """The same grant for every app."""
    return Policy({app: grant(**changes) for app in apps}, consent=consent)


def keeper(
    *apps: str,
    rate_hz: float = 100.0,
    ledger: Any = None,
    grants: dict[str, Any] | None = None,
    **options: Any,
) -> Gatekeeper:
    """A Gatekeeper with a ledger in memory and a seed."""
    return Gatekeeper(
        policy(*apps, **(grants or {})),
        ledger or Ledger.open("sqlite://"),
        rate_hz=rate_hz,
        **{"seed": 1, **options},
    )


def looks(
    places: Iterable[tuple[float, float]],
    each_s: float = 0.4,
    rate_hz: float = 100.0,
    noise_deg: float = 0.01,
    seed: int = 0,
) -> Trace:
    """Fixations at known places with straight saccades of 40 ms between them."""
    rng = np.random.default_rng(seed)
    rest, flight = round(each_s * rate_hz), max(2, round(0.04 * rate_hz))
    x: list[NDArray[np.float64]] = []
    y: list[NDArray[np.float64]] = []
    before: tuple[float, float] | None = None
    for place in places:
        if before is not None:
            share = np.arange(1, flight + 1) / (flight + 1)
            step = (place[0] - before[0] + 180) % 360 - 180  # the short way round
            x.append((before[0] + share * step) % 360)
            y.append(before[1] + share * (place[1] - before[1]))
        x.append(place[0] + rng.normal(0, noise_deg, rest))
        y.append(place[1] + rng.normal(0, noise_deg, rest))
        before = place
    n = sum(map(len, x))
    t = (np.arange(n) * round(1e9 / rate_hz)).astype(np.int64)
    return t, np.concatenate(x), np.concatenate(y)


def later(trace: Trace, other: Trace, gap_ns: int = 10_000_000) -> Trace:
    """The second trace moved to come after the first."""
    return other[0] - other[0][0] + trace[0][-1] + gap_ns, other[1], other[2]
