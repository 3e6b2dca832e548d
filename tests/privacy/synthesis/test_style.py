"""`style`: paths are computed from noisy readings alone, near the own ones, and move as the donor
moves; donors are dealt without the data.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import distance_deg
from gazeveil.privacy.audit.run import judge
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.randomness.rng import TestStream, Words
from gazeveil.privacy.synthesis.clock.audit import clock_render
from gazeveil.privacy.synthesis.clock.render import ClockRender
from gazeveil.privacy.synthesis.style.mechanism import Style, derangement
from gazeveil.privacy.synthesis.style.movement import (
    BINS,
    DIRECTIONS,
    EDGES_DEG,
    arc_deg,
    bin_of,
    log_ratios,
    movements,
)
from gazeveil.privacy.synthesis.style.paths import UNIT_DEG, path_of
from gazeveil.privacy.synthesis.style.readings import StimulusReadings

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
FALSE_ALARM = 1e-6


def viewer(
    person: int, stimulus: int, space: Any, seed: int = 0, seconds: float = 20.0
) -> Recording:
    """Somebody who looks about: odd people take long steps, even ones short steps."""
    rng = np.random.default_rng([seed, person, stimulus])
    n, rate_hz = round(seconds * 60), 60.0
    looks = np.arange(n) // 20
    places = rng.normal(0, 6.0 if person % 2 else 1.5, (looks[-1] + 1, 2))
    middle = (180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0)
    x, y = np.clip(places[looks], -15, 15).T + np.array(middle)[:, None]
    t_ns = np.rint(np.arange(n) * 1e9 / rate_hz).astype(np.int64)
    return Recording(f"p{person}", f"s{stimulus}", t_ns, x, y, space=space, rate_hz=rate_hz)


def cohort(people: int = 8, stimuli: int = 3, space: Any = SCREEN) -> Cohort:
    return Cohort([viewer(p, s, space) for p in range(people) for s in range(stimuli)])


def moved_share(data: Cohort) -> float:
    """Share of samples that almost no noise leaves more than 2 degrees from where they were."""
    released = Style(1000, Fraction(1, 10), weight=16).release(data, seed=1).data
    raw = {r.key: r for r in data}
    pairs = [(r, raw[r.key]) for r in released]
    apart = [np.hypot(r.x_deg - own.x_deg, r.y_deg - own.y_deg) for r, own in pairs]
    return float(np.mean(np.concatenate(apart) > 2))


def test_sessions_of_their_own_do_not_leave_people_alone() -> None:
    data = cohort(6, 2)
    dated = Cohort([r.with_(session=f"2026-11-{i + 10}") for i, r in enumerate(data)])
    assert moved_share(dated) > 0.9 * moved_share(data) > 0.6


def test_who_has_no_company_is_printed() -> None:
    said = "which fewer than 3 people have"
    data = list(cohort(6, 2))
    release = Style(10, 2).release
    assert not any(said in c for c in release(Cohort(data), seed=1).guarantee.not_covered)
    alone = Cohort([*data, viewer(0, 7, SCREEN), viewer(1, 7, SCREEN)])
    assert any(f"2 recordings, {said}" in c for c in release(alone, seed=1).guarantee.not_covered)
    longer = Cohort([viewer(0, 0, SCREEN, seconds=30.0), *data[1:]])
    text = str(release(longer, seed=1).guarantee)
    assert f"1 recording or its end, {said}" in text


def mean_step_deg(recording: Recording) -> float:
    x, y = recording.x_deg[10::20], recording.y_deg[10::20]
    return float(distance_deg(recording.space, x[1:], y[1:], x[:-1], y[:-1]).mean())


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_everybody_keeps_a_name_and_all_recordings_and_no_attribute(space: Any) -> None:
    data = Cohort(list(cohort(4, 2, space)), {f"p{i}": {"age": 30 + i} for i in range(4)})
    release = Style(10, 2).release(data, seed=1)
    assert sorted(release.data.keys) == sorted(data.keys)
    assert not any(release.data.people.values())
    for r in release.data:
        assert len(r) == 1200
        assert r.rate_hz == 60.0
        assert r.t_ns[0] == 0


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_without_weight_it_is_clock_render(space: Any) -> None:
    data = cohort(4, 1, space)
    theirs = ClockRender(10, 2, form="offline").release(data, seed=1).data
    other = {r.key: r for r in Style(10, 2, weight=8).release(data, seed=1).data}
    for mine, r in zip(Style(10, 2, weight=0).release(data, seed=1).data, theirs, strict=True):
        assert mine.key == r.key
        # the same readings; jumps and the unrest of the eye are drawn apart
        far = distance_deg(space, mine.x_deg, mine.y_deg, r.x_deg, r.y_deg)
        assert np.median(far) < 0.25
        moved = other[r.key]
        assert np.median(distance_deg(space, moved.x_deg, moved.y_deg, r.x_deg, r.y_deg)) > 0.35


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_a_path_moves_as_its_donor_moves(space: Any) -> None:
    data = cohort(8, 3, space)
    donors = derangement([f"p{i}" for i in range(8)], Words(TestStream(5, "style", "donors")))
    steps: dict[float, dict[str, float]] = {}
    for weight in (0.0, 4.0):
        made: dict[str, list[float]] = {}
        for r in Style(100, 2, weight=weight).release(data, seed=5).data:
            made.setdefault(r.person, []).append(mean_step_deg(r))
        steps[weight] = {p: float(np.mean(v)) for p, v in made.items()}
    unlike = [p for p, d in donors.items() if int(p[1]) % 2 != int(d[1]) % 2]
    assert len(unlike) >= 2
    for person in unlike:
        longer = steps[4.0][person] > steps[0.0][person]
        assert longer == (int(donors[person][1]) % 2 == 1), person


def test_samples_that_are_not_read_may_be_anything() -> None:
    data = cohort(4, 1)
    aim, length = ClockRender(10, 2, form="offline").clock(60.0).aim, 15
    assert ClockRender(10, 2, form="offline").clock(60.0).length == length
    other = []
    for r in data:
        read = np.arange(len(r)) % length == aim
        other.append(
            r.with_(x_deg=np.where(read, r.x_deg, 3.0), y_deg=np.where(read, r.y_deg, 1.0))
        )
    one, two = (Style(10, 2).release(d, seed=2).data for d in (data, Cohort(other)))
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.x_deg, b.x_deg)
        assert np.array_equal(a.y_deg, b.y_deg)


def test_losses_leave_no_lost_sample_where_others_look() -> None:
    items = list(cohort(4, 1))
    gone = np.arange(1200) // 300 == 2
    items[0] = items[0].with_(valid=items[0].valid & ~gone)
    for r in Style(10, 2).release(Cohort(items), seed=2).data:
        assert r.valid.all()


def test_recordings_that_are_files_are_rendered_the_same_each_time() -> None:
    data = cohort(3, 2)
    handles = Cohort(
        [
            Handle(r.person, r.stimulus, partial(data.__getitem__, i), r.session, r.task)
            for i, r in enumerate(data)
        ]
    )
    release = Style(10, 2).release(handles, seed=3)
    eager = {r.key: r for r in Style(10, 2).release(data, seed=3).data}
    for _ in range(2):
        for r in release.data:
            assert np.array_equal(r.x_deg, eager[r.key].x_deg)


def test_unequal_rates_and_lengths_are_kept() -> None:
    items = list(cohort(4, 1))
    slow = items[0]
    items[0] = Recording(
        slow.person,
        slow.stimulus,
        slow.t_ns[:600:2],
        slow.x_deg[:600:2],
        slow.y_deg[:600:2],
        space=SCREEN,
        rate_hz=30.0,
    )
    made = {r.person: r for r in Style(10, 2).release(Cohort(items), seed=1).data}
    assert (len(made["p0"]), made["p0"].rate_hz) == (300, 30.0)
    assert (len(made["p1"]), made["p1"].rate_hz) == (1200, 60.0)


# --- the parts


def test_donors_are_others_and_every_choice_is_as_likely() -> None:
    people, words = list("abcd"), Words(TestStream(1, "donors"))
    allowed = [
        q for q in permutations(people) if all(a != b for a, b in zip(people, q, strict=True))
    ]
    draws = 9000
    seen = Counter(tuple(derangement(people, words).values()) for _ in range(draws))
    assert set(seen) == set(allowed)

    def improbable(counts: list[int]) -> bool:
        expected = draws / len(allowed)
        square = sum((c - expected) ** 2 / expected for c in counts)
        return bool(chi2.sf(square, len(allowed) - 1) < FALSE_ALARM)

    assert not improbable([seen[q] for q in allowed])
    # control: one choice twice as often as the others is rejected
    assert improbable([draws // 5, *[draws // 10] * 8])


@pytest.mark.parametrize("sphere", [False, True])
def test_the_path_is_the_cheapest_of_all(sphere: bool) -> None:
    rng = np.random.default_rng(4)
    places = rng.normal(0, 3, (3, 5, 3))
    places[:, :, 2] = 0.0
    if sphere:
        places = rng.normal(0, 0.1, (3, 5, 3)) + np.array([0.0, 0.0, 1.0])
        places /= np.linalg.norm(places, axis=2, keepdims=True)
    crowd = StimulusReadings(
        (("a", "", "", ""), ("b", "", "", ""), ("c", "", "", "")), sphere, places
    )
    ratios = rng.normal(0, 1, (2, BINS))

    def cost(choice: tuple[int, ...]) -> float:
        path = [places[c, j] for j, c in enumerate(choice)]
        total = sum(arc_deg(p, places[1, j], sphere) / UNIT_DEG for j, p in enumerate(path))
        for j, place in enumerate(path):
            total -= 2 * ratios[1, bin_of(crowd.middle[j], place, sphere, EDGES_DEG, DIRECTIONS)]
            if j:
                step = bin_of(path[j - 1], place, sphere, EDGES_DEG, DIRECTIONS)
                total -= 2 * ratios[0, step]
        return float(total)

    best = min(product(range(3), repeat=5), key=cost)
    made = path_of(crowd, 1, ratios, 2.0)
    assert np.array_equal(made, np.stack([places[c, j] for j, c in enumerate(best)]))


@pytest.mark.parametrize("sphere", [False, True])
def test_steps_to_the_right_and_down_have_their_bins(sphere: bool) -> None:
    space = Sphere()

    def at(x: float, y: float) -> np.ndarray:
        return space.vectors(180.0 + x, 90.0 + y) if sphere else np.array([x, y, 0.0])

    for place, (x, y) in enumerate([(3.5, 0), (2.5, 2.5), (0, 3.5), (-2.5, 2.5), (-3.5, 0)]):
        found = bin_of(at(0, 0), at(x, y), sphere, EDGES_DEG, DIRECTIONS)
        assert found == 5 * DIRECTIONS + place


def test_laws_of_people_who_move_alike_say_nothing() -> None:
    counts = np.random.default_rng(1).integers(5, 50, (2, BINS)).astype(float)
    assert np.allclose(log_ratios(counts, 8 * counts), 0.0, atol=0.05)
    assert np.allclose(log_ratios(np.zeros((2, BINS)), counts), 0.0)
    rare, often = np.zeros((2, BINS)), np.zeros((2, BINS))
    rare[:, 0], often[:, 9] = 400, 400
    ratios = log_ratios(rare, 4 * (rare + often))
    assert (ratios[:, 0] > 0.3).all()
    assert (ratios[:, 9] < -1).all()


def test_every_step_is_counted_once() -> None:
    places = np.random.default_rng(1).normal(0, 3, (2, 6, 3))
    places[:, :, 2] = 0
    places[:, 3] = np.nan
    keys = (("a", "s", "", ""), ("b", "s", "", ""))
    counts = movements({("s", "", ""): StimulusReadings(keys, False, places)}, ["a", "b"])
    assert counts["a"].sum(axis=1).tolist() == [3.0, 5.0]


# --- the promise


def test_the_promise_is_that_of_the_readings() -> None:
    data = cohort(4, 2)
    mine = Style(10, 2, weight=16).release(data).guarantee
    theirs = gazeveil.protect(data, "clock-render:epsilon=10,r_deg=2,form=offline").guarantee
    assert mine.status == "proved"
    assert mine.epsilon == theirs.epsilon == 10
    assert mine.map(Change.person()).amount == theirs.map(Change.person()).amount
    assert any("promises nothing about it" in clause for clause in mine.not_covered)
    assert Style(10, 2).release(data, seed=1).guarantee.status == "claimed"


def test_the_audit_sees_the_budget_and_catches_half_of_the_noise() -> None:
    sure = 1 - FALSE_ALARM
    assert not gazeveil.audit("style:epsilon=1,r_deg=2", trials=5000, confidence=sure).refuted

    class Half(ClockRender):
        """Claims its epsilon and spends twice as much."""

        def noise(self, rate_hz: float, space: Any) -> Any:
            return ClockRender(2 * Fraction(self.epsilon), self.r_deg).noise(rate_hz, space)

    planted = replace(clock_render(Half(1, 2), None), exact=None)
    assert judge("planted", planted, 20_000, 0.999).refuted


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(DataError, match="at least 3 people"):
        Style(10, 2).release(cohort(2, 1))
    with pytest.raises(ParameterError, match="weight"):
        Style(10, 2, weight=-1)
    with pytest.raises(ParameterError, match="weight"):
        Style(10, 2, weight=1001)
    with pytest.raises(ParameterError, match="epsilon"):
        Style(0, 2)
    mixed = [viewer(0, 0, SCREEN), viewer(1, 0, Sphere()), viewer(2, 0, SCREEN)]
    with pytest.raises(DataError, match="sphere"):
        Style(10, 2).release(Cohort(mixed))
