"""`clock-render-k-same`: groups share places on one clock, and
nobody's own gaze comes out.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.privacy.synthesis.clock.render import ClockRenderKSame, Law, crowd, seen
from tests.support.strategies import SCREEN


def scanpath(
    person: str,
    stimulus: str,
    rng: np.random.Generator,
    space: Any = SCREEN,
    rate: float = 100.0,
    seconds: float = 6.0,
) -> Recording:
    n = int(seconds * rate)
    jumps = np.cumsum(rng.random(n) < 3 / rate)
    gaze = rng.normal(0, 5, (jumps[-1] + 1, 2))[jumps] + rng.normal(0, 0.05, (n, 2))
    middle = (180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0)
    t = (np.arange(n) * 1e9 / rate).astype(np.int64)
    return Recording(
        person,
        stimulus,
        t,
        gaze[:, 0] + middle[0],
        np.clip(gaze[:, 1], -13, 13) + middle[1],
        space=space,
        rate_hz=rate,
    )


def cohort(people: int, stimuli: int = 2, space: Any = SCREEN, seed: int = 1) -> Cohort:
    rng = np.random.default_rng(seed)
    return Cohort(
        [
            scanpath(f"p{p}", f"s{s}", rng, space, seconds=float(rng.uniform(4, 8)))
            for p in range(people)
            for s in range(stimuli)
        ]
    )


# --- places
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_a_slot_is_seen_at_its_middle_fifth_or_at_the_nearest_good_sample(space: Any) -> None:
    n, base = 100, (180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0)
    x = base[0] + np.arange(n) * 0.1
    valid = np.ones(n, dtype=np.bool_)
    valid[30:45] = False  # the second slot of 25 samples has its end left
    valid[50:75] = False  # the third has nothing
    r = Recording(
        "p", "s", np.arange(n) * 10**7, x, np.full(n, base[1]), valid, space=space, rate_hz=100.0
    )
    found = seen(r, Fraction(1, 4))
    assert (found.length, len(found.places)) == (25, 4)
    at = space.degrees(found.places)[0] if isinstance(space, Sphere) else found.places[:, 0]
    assert at[0] == pytest.approx(x[10:15].mean(), abs=1e-6)
    assert at[1] == pytest.approx(x[29], abs=1e-6)
    assert np.isnan(at[2])
    assert at[3] == pytest.approx(x[85:90].mean(), abs=1e-6)


def test_a_group_looks_where_most_of_it_looks_and_only_with_k_of_it() -> None:
    places = np.zeros((5, 3, 3))
    places[:3, :, 0], places[3:, :, 0] = 10.0, -10.0
    places[:2, 1] = np.nan
    places[0, 2], places[1, 2] = np.nan, np.nan
    out = crowd(places, 3, on_sphere=False)
    assert 10.0 > out[0, 0] > 3.0  # nine to four in squares, not three to two
    assert out[1, 0] < -3.0
    assert np.isnan(crowd(places, 4, on_sphere=False)[1:]).all()
    np.testing.assert_allclose(crowd(np.full((4, 6, 3), 2.5), 4, False), 2.5)


def test_rates_and_lengths_that_differ_share_one_clock() -> None:
    rng = np.random.default_rng(1)
    slow, fast = (
        scanpath("a", "s", rng, rate=100.0, seconds=8.0),
        scanpath("b", "s", rng, rate=200.0, seconds=5.0),
    )
    out = ClockRenderKSame(2).release(Cohort([slow, fast]), seed=1).data
    assert {r.rate_hz for r in out} == {150.0}
    assert {len(r) for r in out} == {750}  # the second longest
    # what both do at the same second is what comes out at that second
    still = [
        Recording(
            p,
            "s",
            (np.arange(int(6 * f)) * 1e9 / f).astype(np.int64),
            np.where(np.arange(int(6 * f)) < 3 * f, -5.0, 5.0),
            np.zeros(int(6 * f)),
            space=SCREEN,
            rate_hz=f,
        )
        for p, f in (("a", 100.0), ("b", 170.0))
    ]
    got = ClockRenderKSame(2).release(Cohort(still), seed=1).data[0]
    crossed = np.flatnonzero(got.x_deg > 0)[0] / got.rate_hz
    assert abs(crossed - 3.0) < 0.25


# --- promises
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_everything_under_one_name_has_the_law_of_at_least_k_names(space: Any) -> None:
    data = cohort(11, 3, space)
    laws = ClockRenderKSame(3).laws(data, seed=1)
    records: dict[str, bytes] = {}
    for key in sorted(laws):
        law = laws[key]
        records[key[0]] = records.get(key[0], b"") + b"|".join(
            (key[1].encode(), law.places.tobytes(), str((law.samples, law.rate_hz)).encode())
        )
    assert min(Counter(records.values()).values()) >= 3
    released = ClockRenderKSame(3).release(data, seed=1).data
    assert {r.key: len(r) for r in released} == {k: v.samples for k, v in laws.items()}


def test_the_guarantee_of_k_same_says_what_is_true() -> None:
    g = ClockRenderKSame(2).release(cohort(4)).guarantee
    assert (g.definition, g.unit, g.status, g.k) == ("k-anonymity", "user", "proved", 2)
    assert ClockRenderKSame(2).release(cohort(4), seed=1).guarantee.status == "claimed"


def test_the_audit_catches_places_that_one_member_does_not_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laws = ClockRenderKSame._laws

    def planted(self: Any, data: Any, words: Any) -> Any:
        found, notes = laws(self, data, words)
        first = next(iter(found))
        law = found[first]
        return {
            **found,
            first: Law(law.space, law.rate_hz, law.samples, law.length, law.places * 1.0000001),
        }, notes

    monkeypatch.setattr(ClockRenderKSame, "_laws", planted)
    assert gazeveil.audit("clock-render-k-same:k=4", trials=100).refuted


# --- what comes out, and bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["clock-render-k-same:k=2"])
def test_odd_recordings_are_taken_along(text: str) -> None:
    rng = np.random.default_rng(2)
    t = np.arange(300) * 10**7
    lost = Recording(
        "lost", "s", t, np.full(300, np.nan), np.full(300, np.nan), space=SCREEN, rate_hz=100.0
    )
    one = Recording("one", "s", t[:1], np.zeros(1), np.zeros(1), space=SCREEN, rate_hz=100.0)
    unknown = Recording("unknown", "s", t[:1], np.zeros(1), np.zeros(1), space=SCREEN)
    whole = scanpath("whole", "s", rng)
    mechanism = gazeveil.mechanism(text)
    for group in (
        (whole, lost),
        (lost, lost.with_(person="b")),
        (whole, one),
        (one, one.with_(person="b")),
        (whole, unknown, whole.with_(person="c")),
    ):
        out = mechanism.release(Cohort(list(group)), seed=1).data
        assert len(out) == len(group)
        assert all(np.isfinite(r.x_deg[r.valid]).all() for r in out)
    both = mechanism.release(Cohort([lost, lost.with_(person="b")]), seed=1).data
    assert not any(r.valid.any() for r in both)


def apart(count: int, stimuli: int = 1, spaces: tuple[Any, ...] = (SCREEN,)) -> Cohort:
    """Everybody has one recording; stimuli and spaces take turns."""
    rng = np.random.default_rng(1)
    return Cohort(
        [scanpath(f"p{i}", f"s{i % stimuli}", rng, spaces[i % len(spaces)]) for i in range(count)]
    )


@pytest.mark.parametrize(
    ("parameters", "data", "error", "words"),
    [
        ({"k": 1}, [], ParameterError, "'k' parameter"),
        ({"k": 2, "slot_s": 0}, [], ParameterError, "slot_s"),
        ({"k": 2}, [], ParameterError, "a Cohort"),
        ({"k": 4}, apart(3), DataError, "needs at least 4 people, and this cohort has recording"),
        ({"k": 2}, apart(3, 1, (SCREEN, Sphere())), DataError, "a sphere and some on a screen"),
        ({"k": 2}, apart(5, 5), DataError, "No stimulus, session and task has recordings of 2 m"),
    ],
)
def test_bad_input_is_refused_in_words(
    parameters: dict[str, Any], data: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ClockRenderKSame(**parameters).release(data)


def test_two_screens_become_the_one_between_them() -> None:
    two = apart(2, 1, (SCREEN, Screen(1280, 720, 600, 225, 450)))
    screen = ClockRenderKSame(2).release(two, seed=1).data[0].space
    assert screen == Screen(1280, 720, 500, 225, 450)
