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
from gazeveil.attacks.registry import attack
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import distance_deg
from gazeveil.privacy.synthesis.clock.k_same import ClockRenderKSame, Law, crowd, seen
from tests.support.recordings import real_cohort
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


def test_a_group_of_people_who_did_the_same_gets_that_back() -> None:
    for space in (SCREEN, Sphere()):
        r = scanpath("a", "s", np.random.default_rng(3), space, 250.0, 20.0)
        out = ClockRenderKSame(4).release(Cohort([r.with_(person=p) for p in "abcd"]), seed=1).data
        for o in out:
            assert len(o) == len(r)
            assert np.median(distance_deg(space, o.x_deg, o.y_deg, r.x_deg, r.y_deg)) < 0.5
        assert not np.array_equal(out[0].x_deg, out[1].x_deg)


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


@pytest.mark.parametrize("text", ["clock-render-k-same:k=4"])
def test_the_audit_does_not_refute_them(text: str) -> None:
    # One run in a million refutes honest noise by chance.
    result = gazeveil.audit(text, trials=2000, confidence=1 - 1e-6)
    assert not result.refuted


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


@pytest.mark.parametrize("text", ["clock-render-k-same:k=3"])
@pytest.mark.parametrize("task", ["reading", "free-viewing"])
def test_detectors_and_features_take_the_output_like_any_recording(text: str, task: str) -> None:
    data = gazeveil.simulate(4, 1, 20, 250, task=task, seed=1).load()
    out = gazeveil.mechanism(text).release(data, seed=1).data
    assert len(out) == 4
    for r in out:
        assert (dict(r.labels), dict(r.metadata), r.pupil, r.space) == ({}, {}, None, data[0].space)
        for method in ("ivt", "auto"):
            assert "fixation" in set(gazeveil.detect(r, method).kind.tolist())
    assert len(gazeveil.event_features(out, kind="fixation", method="ivt")) >= 8


@pytest.mark.parametrize("text", ["clock-render-k-same:k=2"])
def test_lazy_recordings_give_lazy_ones_that_read_the_same_twice(text: str) -> None:
    data = cohort(4)
    lazy = Cohort([Handle(r.person, r.stimulus, (lambda r=r: r), r.session, r.task) for r in data])
    out = gazeveil.mechanism(text).release(lazy).data
    assert all(isinstance(item, Handle) for item in out.items)
    np.testing.assert_array_equal(out[0].x_deg, out[0].x_deg)
    seeded = gazeveil.mechanism(text).release(lazy, seed=3).data
    for a, b in zip(seeded, gazeveil.mechanism(text).release(data, seed=3).data, strict=True):
        np.testing.assert_array_equal(a.x_deg, b.x_deg)


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


def test_bad_input_is_refused_in_words() -> None:
    cls = ClockRenderKSame
    with pytest.raises(ParameterError, match="'k' parameter"):
        cls(k=1)
    with pytest.raises(ParameterError, match="slot_s"):
        cls(k=2, slot_s=0)
    with pytest.raises(ParameterError, match="a Cohort"):
        cls(k=2).release([])
    with pytest.raises(
        DataError, match="needs at least 4 people, and this cohort has recordings of 3"
    ):
        cls(k=4).release(cohort(3))
    rng = np.random.default_rng(1)
    with pytest.raises(DataError, match="on a sphere and some on a screen"):
        cls(k=2).release(
            Cohort([scanpath(f"p{i}", "s", rng, Sphere() if i else SCREEN) for i in range(3)])
        )


def test_nothing_in_common_and_two_screens_are_refused_in_words() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(
        DataError, match="No stimulus, session and task has recordings of 2 members"
    ):
        ClockRenderKSame(2).release(Cohort([scanpath(f"p{i}", f"s{i}", rng) for i in range(5)]))
    other = Screen(1280, 720, 600, 225, 450)
    two = Cohort([scanpath("a", "s", rng), scanpath("b", "s", rng, other)])
    assert ClockRenderKSame(2).release(two, seed=1).data[0].space == Screen(
        1280, 720, 500, 225, 450
    )


# --- real people
# --------------------------------------------------------------------------------------------------


def test_real_people_are_not_found_more_often_than_one_in_k() -> None:
    data = real_cohort("gazecom").load()
    raw = RecordingSet(data).prepared(("fixation", "saccade"))
    stimuli = np.random.default_rng([7, 1]).permutation(raw.stimuli).tolist()
    probe = raw.select(stimuli=stimuli[8:])
    assert (
        attack("linkage").identify(raw.select(stimuli=stimuli[:8]), probe, 1).credit().mean() > 0.8
    )
    gallery = (
        RecordingSet(ClockRenderKSame(4).release(data, seed=1).data)
        .prepared(("fixation", "saccade"))
        .select(stimuli=stimuli[:8])
    )
    found = (
        attack("linkage")
        .identify(gallery, raw.select(people=gallery.persons, stimuli=stimuli[8:]), 1)
        .credit()
        .mean()
    )
    assert found <= 0.25 + 3 * np.sqrt(0.25 * 0.75 / len(gallery.persons))
