"""Game for event-synth-pd: people who differ a little in where they look, and an attacker who holds
another raw session of everybody.

Each of 20 people looks 60 times at one of six places. They differ in a small offset from these
places, as calibration leaves it, and in how steadily they look; both are no larger than what
changes from one look to the next, so each single event could be several people's. Averaged over 60
events they tell who it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import Game, asked_unit

if TYPE_CHECKING:
    from gazeveil.privacy.synthesis.events_pd.mechanism import EventSynthPD


COHORTS, PEOPLE, EVENTS, RATE_HZ = 8, 20, 60, 60.0

#: Cohorts after which the game ends without a release: there is no participant to identify. A
#: record is lost only after all attempts were made.
EMPTY = 2

#: Places people look at, in degrees.
PLACES = np.array([[x, y] for x in (-12.0, 0.0, 12.0) for y in (-6.0, 6.0)])

#: Standard deviations in degrees: of a person's offset, of one look around it, of samples in a
#: look; and of the logarithm of the last, per person and look.
OFFSET_DEG, LOOK_DEG, SAMPLE_DEG, STEADY, LOOK_STEADY = 0.1, 0.1, 0.15, 0.15, 0.2

_SAMPLES, _MOVING, _NEAR_DEG = 8, 3, 0.7


def sessions(
    rng: np.random.Generator, people: int = PEOPLE, events: int = EVENTS
) -> tuple[Cohort, Cohort]:
    """Two sessions of the same people."""
    offset, steady = OFFSET_DEG * rng.normal(size=(people, 2)), STEADY * rng.normal(size=people)
    screen = Screen(1920, 1080, 600.0, 340.0, 700.0)
    names = [f"p{i:02}" for i in rng.permutation(people)]
    return tuple(
        Cohort(
            [_session(rng, names[i], offset[i], steady[i], events, screen) for i in range(people)]
        )
        for _ in range(2)
    )  # type: ignore[return-value]


def _session(
    rng: np.random.Generator, name: str, offset: Floats, steady: float, events: int, screen: Screen
) -> Recording:
    # No place twice in a row: every look is an event of its own.
    steps = rng.integers(1, len(PLACES), events)
    at = PLACES[np.cumsum(steps) % len(PLACES)] + offset + LOOK_DEG * rng.normal(size=(events, 2))
    spread = SAMPLE_DEG * np.exp(steady + LOOK_STEADY * rng.normal(size=events))
    parts = []
    for i in range(events):
        if i:
            parts.append(
                at[i - 1]
                + (at[i] - at[i - 1]) * (np.arange(1, _MOVING + 1) / (_MOVING + 1))[:, None]
            )
        parts.append(at[i] + spread[i] * rng.normal(size=(_SAMPLES, 2)))
    gaze = np.concatenate(parts)
    t = np.rint(np.arange(len(gaze)) * 1e9 / RATE_HZ).astype(np.int64)
    return Recording(name, "s", t, gaze[:, 0], gaze[:, 1], space=screen, rate_hz=RATE_HZ)


def traits(recording: Recording) -> Floats:
    """What the attacker looks at: the mean offset from the places, and the spread of samples around
    it.
    """
    gaze = np.column_stack((recording.x_deg, recording.y_deg))[recording.valid]
    if len(gaze) == 0:
        return np.full(3, np.nan)
    away = gaze[:, None] - PLACES[None]
    nearest = np.abs(away).sum(axis=2).argmin(axis=1)
    own = away[np.arange(len(gaze)), nearest]
    own = own[np.hypot(own[:, 0], own[:, 1]) < _NEAR_DEG]
    return np.array([*own.mean(axis=0), np.log(own.std())]) if len(own) > 1 else np.full(3, np.nan)


def found_share(released: Cohort, known: Cohort) -> tuple[float, int]:
    """Share of released names that the attacker gives the right person, and how many names were
    released with anything to look at.

    Traits are taken relative to the mean and spread over people on each side, so that what
    synthesis does to everybody does not matter.
    """
    sides = []
    for cohort in (released, known):
        vectors = {r.person: traits(r) for r in cohort}
        rows = np.array([v for v in vectors.values() if np.isfinite(v).all()]).reshape(-1, 3)
        unit = np.maximum(rows.std(axis=0), 1e-9) if len(rows) > 1 else np.ones(3)
        sides.append(
            {p: (v - rows.mean(axis=0)) / unit for p, v in vectors.items() if np.isfinite(v).all()}
        )
    right = 0
    for name, mine in sides[0].items():
        apart = {person: float(((mine - other) ** 2).sum()) for person, other in sides[1].items()}
        right += min(apart, key=lambda person: apart[person]) == name
    return right / max(len(sides[0]), 1), len(sides[0])


def event_synth_pd(mechanism: EventSynthPD, unit: str | None) -> Game:
    """Find people again in releases; and exchange two people's recordings under the same test
    stream, which must change nothing.
    """
    rng, names, moved = np.random.default_rng(0), 0, False
    shares: list[float] = []
    while len(shares) < (COHORTS if names or len(shares) < EMPTY else EMPTY):
        trial = len(shares)
        released, known = sessions(rng, max(PEOPLE, mechanism.k))
        out = mechanism.release(released, seed=trial).data
        share, count = found_share(out, known)
        shares.append(share * count)
        names += count
        if count and mechanism.reading == "corrected":
            moved |= not same(out, mechanism.release(exchanged(released), seed=trial).data)
    rate = sum(shares) / max(names, 1)
    bound = 1 / mechanism.k
    description = (
        f"{len(shares)} cohorts of {max(PEOPLE, mechanism.k)} people with {EVENTS} events each, an"
        f" attacker who holds another raw session of everybody: {names} names released, {rate:.2f}"
        f" of them found, {bound:.2f} is claimed to be the most."
    )
    # The bound is for the mean: 3.3 standard deviations above it are chance once in 2,000 times.
    far = rate > bound + 3.3 * np.sqrt(bound * (1 - bound) / max(names, 1))
    broken = (
        "People are found more often than that."
        if far
        else "Exchanging two people's recordings changes the release."
        if moved
        else ""
    )
    return Game(asked_unit(unit, "user", ("user",)), None, description, broken=broken)


def exchanged(cohort: Cohort) -> Cohort:
    """The first two people's recordings under each other's names."""
    names = list(cohort.people)
    other = {names[0]: names[1], names[1]: names[0]}
    by_key = {r.key: r for r in cohort}
    return Cohort([by_key[other.get(k[0], k[0]), *k[1:]].with_(person=k[0]) for k in by_key])


def same(a: Cohort, b: Cohort) -> bool:
    """Whether two releases are the same bit for bit."""
    return all(
        p.key == q.key
        and np.array_equal(p.x_deg, q.x_deg, equal_nan=True)
        and np.array_equal(p.y_deg, q.y_deg, equal_nan=True)
        for p, q in zip(a, b, strict=True)
    )
