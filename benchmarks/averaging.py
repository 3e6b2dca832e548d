"""How near an attacker comes to where somebody looks steadily, by averaging what a stream mechanism
releases.

    python benchmarks/averaging.py [--trials 200] [--json FILE] gaussian:sigma_deg=5
    gaussian-place:sigma_deg=5 ...

Gaze comes from somewhere else and then rests at one place for ten seconds, in ten sessions a day,
on ten days: with the drift and the tremor of a steady eye and with the noise of a tracker. The
attacker knows when gaze rests, and takes the best of several estimates: mean and median of all
samples, mean of the different places that were released, and the middle of their convex hull.
Printed is the median error in degrees after 0.3 s, 10 s, ten sessions and ten days, at random
places and at the worst ones, where four cells of 5 degrees meet.

`gaussian-place` keeps its noise for a day, as the Gatekeeper does; all others draw noise for each
session.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.spatial import ConvexHull, QhullError

from gazeveil import mechanism
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.place.mechanism import GaussianPlace
from gazeveil.privacy.stream.place.noise import PlaceNoise
from gazeveil.privacy.stream.session import Session

RATE_HZ = 120.0
SECONDS, SHORT_S = 10.0, 0.3
SESSIONS, DAYS = 10, 10
APPROACH_S = 0.05
FROM_DEG = 15.0
TRACKER_DEG = 0.3  # noise of a headset's tracker, standard deviation along an axis
TREMOR_DEG = 0.02
DRIFT_DEG = 0.15  # how far a steady eye wanders, standard deviation along an axis
DRIFT_S = 0.5

#: How long the attacker looks, in words, in the order of :func:`errors_deg`.
AFTER = ("0.3 s", "10 s", "ten sessions", "ten days")

#: `opened(day)` gives a new session of that day.
Opened = Callable[[int], Session]


def steady(
    place: tuple[float, float], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Gaze that comes to a place and rests there: x and y in degrees, and the number of the first
    sample at rest.
    """
    approach, rest = round(APPROACH_S * RATE_HZ), round(SECONDS * RATE_HZ)
    angle = rng.uniform(0, 2 * np.pi)
    keep = np.exp(-1 / (DRIFT_S * RATE_HZ))
    found = []
    for axis, away in enumerate((np.cos(angle), np.sin(angle))):
        pushes = rng.normal(0, DRIFT_DEG, rest) * np.sqrt(
            np.where(np.arange(rest) == 0, 1.0, 1 - keep**2)
        )
        drift = lfilter([1.0], [1.0, -keep], pushes)
        eye = np.concatenate(
            (
                FROM_DEG * away * np.linspace(1, 0, approach, endpoint=False),
                drift + rng.normal(0, TREMOR_DEG, rest),
            )
        )
        found.append(place[axis] + eye + rng.normal(0, TRACKER_DEG, approach + rest))
    return found[0], found[1], approach


def released(
    session: Session, place: tuple[float, float], rng: np.random.Generator, space: Space
) -> NDArray[np.float64]:
    """What a session releases of steady gaze, as offsets from the place in degrees, shape (n, 2);
    lost samples are left out.
    """
    x, y, first = steady(place, rng)
    sphere = isinstance(space, Sphere)
    t = np.rint(np.arange(len(x)) * (1e9 / RATE_HZ)).astype(np.int64)
    out = session.push(t, np.mod(x, 360.0) if sphere else x, y)
    some = out[3].copy()
    some[: first // session.mechanism.stride] = False
    dx, dy = out[1][some] - place[0], out[2][some] - place[1]
    return np.stack(((dx + 180) % 360 - 180 if sphere else dx, dy), axis=1)


def estimates(seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """Errors of several estimates of the place, in degrees."""
    if not len(seen):
        return np.full(4, np.inf)
    numbers = np.unique(seen[:, 0] + 1j * seen[:, 1])
    distinct = np.stack((numbers.real, numbers.imag), axis=1)
    middle = distinct.mean(axis=0)
    if len(distinct) > 3:
        with contextlib.suppress(QhullError):  # all on one line
            middle = distinct[ConvexHull(distinct).vertices].mean(axis=0)
    return np.hypot(
        *np.array([seen.mean(axis=0), np.median(seen, axis=0), distinct.mean(axis=0), middle]).T
    )


def attack(
    opened: Opened,
    place: tuple[float, float],
    rng: np.random.Generator,
    space: Space,
    days: int = DAYS,
) -> NDArray[np.float64]:
    """Errors of all estimates of one place, shape (durations, estimates)."""
    short = round(SHORT_S * RATE_HZ)
    told = [
        [released(opened(day), place, rng, space) for _ in range(SESSIONS)] for day in range(days)
    ]
    first = told[0][0]
    kept = max(1, short // opened(0).mechanism.stride)
    return np.array(
        [
            estimates(s)
            for s in (
                first[:kept],
                first,
                np.concatenate(told[0]),
                np.concatenate([s for day in told for s in day]),
            )
        ]
    )


def opener(chosen: StreamMechanism, space: Space) -> Opened:
    """Sessions as the Gatekeeper opens them: places have one key a day, everything else noise of
    its own in each session.
    """
    if not isinstance(chosen, GaussianPlace):
        return lambda day: chosen.open(RATE_HZ, space)
    noises: dict[int, PlaceNoise] = {}
    return lambda day: chosen.open_with(
        noises.setdefault(day, PlaceNoise(os.urandom(32))), RATE_HZ, space
    )


def random_place(rng: np.random.Generator) -> tuple[float, float]:
    """Somewhere around the middle of the sphere."""
    return float(rng.uniform(160, 200)), float(rng.uniform(70, 110))


def worst_place(rng: np.random.Generator) -> tuple[float, float]:
    """Where four cells of 5 degrees meet."""
    return 5.0 * int(rng.integers(32, 40)), 5.0 * int(rng.integers(14, 22))


@dataclass(frozen=True)
class Found:
    """Median errors of the strongest estimate in degrees, in the order of :data:`AFTER`."""

    mechanism: str
    where: str
    errors_deg: tuple[float, ...]


def errors_deg(
    chosen: StreamMechanism,
    where: str,
    trials: int,
    rng: np.random.Generator,
    space: Space | None = None,
    days: int = DAYS,
) -> Found:
    """The attack on many people; each time the estimate counts that is best over all of them."""
    space = Sphere() if space is None else space
    place = random_place if where == "random" else worst_place
    every = np.array(
        [attack(opener(chosen, space), place(rng), rng, space, days) for _ in range(trials)]
    )
    return Found(str(chosen), where, tuple(float(e) for e in np.median(every, axis=0).min(axis=1)))


def main(given: Sequence[str] | None = None) -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument(
        "mechanisms", nargs="*", default=[f"gaussian-place:sigma_deg={s}" for s in (2, 5, 8)]
    )
    asked.add_argument("--trials", type=int, default=200)
    asked.add_argument("--json", type=Path)
    options = asked.parse_args(given)
    print(f"{'mechanism':40} {'place':8}" + "".join(f"{a:>14}" for a in AFTER))
    rows = []
    for text in options.mechanisms:
        for where in ("random", "corner"):
            chosen: Any = mechanism(text)
            found = errors_deg(chosen, where, options.trials, np.random.default_rng(1))
            rows.append(
                {
                    "mechanism": text,
                    "where": where,
                    **dict(zip(AFTER, found.errors_deg, strict=True)),
                }
            )
            print(
                f"{text:40} {where:8}" + "".join(f"{e:14.2f}" for e in found.errors_deg), flush=True
            )
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
