"""`mosaic`: names say nothing, gaps and losses leave no trace, nobody is stitched from themselves,
and nothing but the noisy readings comes out.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError, GazeveilError
from gazeveil.privacy.guarantee import Change
from gazeveil.privacy.randomness.rng import SystemSource, TestStream, Words
from gazeveil.privacy.synthesis.mosaic.mechanism import Mosaic
from gazeveil.privacy.synthesis.mosaic.paths import (
    NOBODY,
    PATHS,
    PathLaw,
    dealt_names,
    followed,
    nearness,
    paths_in,
)
from gazeveil.privacy.synthesis.mosaic.readings import CrowdReadings, PublicWindows
from tests.support.laws import fits

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
RATE_HZ = 100.0

#: Hardly any noise, so that paths can be compared with what was recorded.
SHARP: dict[str, Any] = {"epsilon": 1000, "r_deg": Fraction(1, 10)}


def viewer(
    person: int, stimulus: str = "film", seconds: float = 13.0, space: Any = SCREEN, **parts: Any
) -> Recording:
    """Somebody who looks at a place of their own for half a second at a time."""
    n = round(seconds * RATE_HZ)
    rng = np.random.default_rng([person, len(stimulus)])
    places = rng.normal(0, 6, (n // 50 + 1, 2))[np.arange(n) // 50]
    middle = (180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0)
    made = Recording(
        f"p{person}",
        stimulus,
        (np.arange(n) * 10_000_000).astype(np.int64),
        places[:, 0] + middle[0],
        places[:, 1] + middle[1],
        space=space,
        rate_hz=RATE_HZ,
    )
    return made.with_(**parts) if parts else made


def crowd(people: int = 12, **options: Any) -> Cohort:
    return Cohort([viewer(i, **options) for i in range(people)])


def with_lost(r: Recording, lost: slice) -> Recording:
    valid = r.valid.copy()
    valid[lost] = False
    return r.with_(valid=valid)


# --- names
# --------------------------------------------------------------------------------------------------


def test_names_are_dealt_uniformly() -> None:
    """Chi-square over all orders of four viewers, false-alarm rate 1e-6; a deal that favours one
    order twice over is rejected.
    """
    words, orders = Words(SystemSource()), list(itertools.permutations(range(4)))
    drawn = Counter(tuple(dealt_names(4, words).tolist()) for _ in range(12_000))
    counts = [drawn[o] for o in orders]
    even = np.full(len(orders), 1 / len(orders))
    assert fits(counts, even)
    uneven = even.copy()
    uneven[0], uneven[1:] = 2 / 24, (1 - 2 / 24) / 23
    assert not fits(counts, uneven)


def test_names_of_a_release_say_nothing_of_the_order_of_people() -> None:
    """From releases alone: whose piece comes first in a window, chi-square at 1e-6."""
    data = crowd(3, seconds=60.0)
    made = Mosaic(10, 2, piece_s=Fraction(1, 4), gap_s=0, crowd=3)
    first = []
    for _ in range(8):
        origins = made.release_with_origins(data).origins
        first += [key[0] for name, key in origins.items() if name.endswith("-0001")]
    assert len(first) > 1500
    assert fits([first.count(f"p{i}") for i in range(3)], [1 / 3] * 3)
    assert not fits([first.count(f"p{i}") for i in range(3)], [0.45, 0.275, 0.275])


def test_no_two_pieces_share_a_name_and_each_viewer_has_one_in_each_window() -> None:
    data = Cohort([viewer(i, s) for i in range(12) for s in ("film", "other film")])
    made = Mosaic(10, 2).release_with_origins(data, seed=1)
    pieces = list(made.release.data)
    assert len(pieces) == len({p.person for p in pieces}) == 12 * 2 * 2
    for stimulus, begin in {(p.stimulus, int(p.t_ns[0])) for p in pieces}:
        window = [p for p in pieces if (p.stimulus, int(p.t_ns[0])) == (stimulus, begin)]
        assert sorted(made.origins[p.person] for p in window) == sorted(
            r.key for r in data if r.stimulus == stimulus
        )


# --- what leaves no trace
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paths", PATHS)
def test_what_happens_in_gaps_is_not_read(paths: str) -> None:
    made = Mosaic(10, 2, paths=paths)
    inside = PublicWindows.of(RATE_HZ, 25, Fraction(5), Fraction(1), Fraction(13)).inside()
    data = crowd()
    moved = []
    for r in data:
        x = r.x_deg.copy()
        x[: len(inside)][~inside] += 20.0
        moved.append(r.with_(x_deg=x))
    assert not inside.all()
    a, b = (made.release(c, seed=5).data for c in (data, Cohort(moved)))
    for one, other in zip(a, b, strict=True):
        assert np.array_equal(one.x_deg, other.x_deg)


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_losses_leave_no_trace(paths: str, space: Any) -> None:
    people = list(crowd(14, space=space))
    people[0] = with_lost(people[0], slice(0, 700))  # the whole first piece and more
    people[1] = with_lost(people[1], slice(200, 260))
    people[2] = with_lost(people[2], slice(0, None))  # never seen at all
    pieces = list(Mosaic(10, 2, paths=paths).release(Cohort(people), seed=2).data)
    assert len(pieces) == 28
    for p in pieces:
        assert p.valid.all()
        assert np.isfinite(p.x_deg).all()
        assert np.isfinite(p.y_deg).all()
    assert len({p.t_ns.tobytes() for p in pieces}) == 2


def test_lengths_rates_and_times_are_public() -> None:
    people = [viewer(i, seconds=13 + i) for i in range(12)]
    people[3] = people[3].with_(t_ns=people[3].t_ns + 10**15)
    pieces = list(Mosaic(10, 2, duration_s=11, clock_hz=20).release(Cohort(people), seed=1).data)
    assert {len(p) for p in pieces} == {100}
    assert {p.rate_hz for p in pieces} == {20.0}
    assert {int(p.t_ns[0]) for p in pieces} == {0, 6 * 10**9}


def test_nobody_is_alone_in_the_last_windows_by_coming_often() -> None:
    often = [viewer(0, seconds=40.0, session=str(i)) for i in range(12)]
    people = Cohort([*often, *(viewer(i) for i in range(1, 12))])
    pieces = list(Mosaic(10, 2).release(people, seed=1).data)
    assert {int(p.t_ns[0]) for p in pieces} == {0, 6 * 10**9}  # as of twelve people for 13 s
    with pytest.raises(DataError, match="duration_s"):
        Mosaic(10, 2, duration_s=40).release(people)


def test_people_without_gaze_are_no_crowd() -> None:
    people = list(crowd(13))
    lost = [with_lost(p, slice(0, 500)) for p in people[:2]]  # the first piece
    made = Mosaic(10, 2).release(Cohort([*lost, *people[2:]]), seed=1)
    assert {int(p.t_ns[0]) for p in made.data} == {6 * 10**9}
    assert len(list(made.data)) == 13  # whoever was lost elsewhere has a piece like all others
    assert "in which windows fewer than 12 people have gaze" in made.guarantee.not_covered
    again = [with_lost(viewer(0, session=s), slice(0, 500)) for s in "ab"]  # one person, twice
    made = Mosaic(10, 2).release(Cohort([*people[2:], *again]), seed=1)
    assert {int(p.t_ns[0]) for p in made.data} == {6 * 10**9}
    empty = [with_lost(p, slice(0, None)) for p in people[:2]]
    with pytest.raises(DataError, match=r"stimulus 'film' at most 11 have gaze in any piece"):
        Mosaic(10, 2).release(Cohort([*empty, *people[2:]]))


def test_only_readings_come_out() -> None:
    """Samples that are not read may be anything, and the release is the same: the rest is computed
    from readings alone.
    """
    data = crowd()
    aim = 12  # the middle of a slot of 25 samples
    changed = []
    for r in data:
        read = np.arange(len(r)) % 25 == aim
        changed.append(r.with_(x_deg=np.where(read, r.x_deg, 0.0)))
    a, b = (Mosaic(10, 2).release(c, seed=9).data for c in (data, Cohort(changed)))
    for one, other in zip(a, b, strict=True):
        assert np.array_equal(one.x_deg, other.x_deg)
        assert np.array_equal(one.y_deg, other.y_deg)


# --- whose readings
# --------------------------------------------------------------------------------------------------


def readings(people: int, slots: int, seed: int = 0, sphere: bool = False) -> CrowdReadings:
    rng = np.random.default_rng(seed)
    places = np.zeros((people, slots, 3))
    places[:, :, :2] = rng.normal(0, 5, (people, slots, 2))
    if sphere:
        places = np.asarray(Sphere().vectors(places[..., 0] + 180, places[..., 1] + 90))
    return CrowdReadings(
        tuple((f"p{i}", "s", "1", "") for i in range(people)),
        Sphere() if sphere else SCREEN,
        PublicWindows(4.0, 1, slots, 0, 1),
        places,
        np.ones((people, slots), dtype=np.bool_),
    )


LAW = PathLaw("stitch", 2.0, 4.0, 0.5, 2, 4)


@pytest.mark.parametrize("sphere", [False, True])
def test_nobody_is_stitched_from_themselves(sphere: bool) -> None:
    crowd_readings = readings(6, 40, sphere=sphere)
    # Two recordings of one person: neither may serve the other.
    keys = (*crowd_readings.keys[:5], ("p0", "s", "2", ""))
    crowd_readings = replace(crowd_readings, keys=keys)
    places = paths_in(crowd_readings, 0, LAW, TestStream(1)).places
    for viewer_number, forbidden in ((0, (0, 5)), (5, (0, 5)), (3, (3,))):
        for slot in range(40):
            here = places[viewer_number, slot]
            taken = np.flatnonzero((crowd_readings.places[:, slot] == here).all(axis=1))
            assert len(taken) == 1
            assert taken[0] not in forbidden


def test_a_path_follows_the_posterior() -> None:
    """All paths over three slots and three others against their probabilities by enumeration,
    chi-square at a false-alarm rate of 1e-6; another length b is rejected.
    """
    crowd_readings = readings(4, 3, seed=3)
    others = np.array([1, 2, 3])
    near = nearness(crowd_readings.places, 5.0, False)
    usable = np.ascontiguousarray(crowd_readings.seen.T) & np.isin(np.arange(4), others)
    seen = np.array([True, False, True])
    rng = np.random.default_rng(0)
    drawn = Counter(
        tuple(
            followed(
                crowd_readings.places[0],
                seen,
                crowd_readings.places,
                usable,
                near,
                3.0,
                0.4,
                False,
                rng.random(3),
            ).tolist()
        )
        for _ in range(60_000)
    )
    paths = list(itertools.product(others.tolist(), repeat=3))
    counts = [drawn[p] for p in paths]
    assert fits(counts, _posterior(crowd_readings.places, seen, paths, 3.0, 0.4, 5.0))
    assert not fits(counts, _posterior(crowd_readings.places, seen, paths, 3.3, 0.4, 5.0))


def _posterior(
    places: np.ndarray,
    seen: np.ndarray,
    paths: list[tuple[int, ...]],
    b_deg: float,
    stay: float,
    move_deg: float,
) -> np.ndarray:
    def step(a: int, c: int, slot: int) -> float:
        weights = {
            o: np.exp(-np.linalg.norm(places[a, slot - 1] - places[o, slot]) / move_deg)
            for o in (1, 2, 3)
        }
        return stay * (a == c) + (1 - stay) * weights[c] / sum(weights.values())

    weights = []
    for path in paths:
        w = 1.0
        for slot, c in enumerate(path):
            w *= step(path[slot - 1], c, slot) if slot else 1.0
            if seen[slot]:
                w *= np.exp(-np.linalg.norm(places[0, slot] - places[c, slot]) / b_deg)
        weights.append(w)
    return np.array(weights) / sum(weights)


def test_far_readings_and_empty_slots_leave_no_hole() -> None:
    places = np.zeros((3, 4, 3))
    places[1:, :, 0] = 1e5  # too far for a double's exponential
    seen = np.array([[True] * 4, [True, False, False, True], [True, False, True, False]])
    some = CrowdReadings(readings(3, 4).keys, SCREEN, PublicWindows(4.0, 1, 4, 0, 1), places, seen)
    path = paths_in(some, 0, replace(LAW, b_deg=1e-3, move_deg=1e-3), TestStream(4))
    assert path.there.all()
    nobody = replace(some, seen=np.zeros_like(seen))
    assert not paths_in(nobody, 0, LAW, TestStream(4)).there.any()
    assert not nobody.usable.any()
    assert (
        followed(
            places[0], seen[0], places, np.zeros((4, 3), bool), np.ones((4, 3, 3)), 1.0, 0.5,
            False, np.zeros(4),
        )
        == NOBODY
    ).all()  # fmt: skip


@pytest.mark.parametrize("paths", ["exchange", "near"])
def test_exchange_keeps_every_reading_of_every_slot(paths: str) -> None:
    some = readings(7, 20, seed=2)
    law = replace(LAW, paths=paths, among=2, segment=4, b_deg=1e3)
    made = paths_in(some, 0, law, TestStream(3))
    for slot in range(20):
        before, after = (
            sorted(map(tuple, p[:, slot].tolist())) for p in (some.places, made.places)
        )
        assert before == after
    assert sorted(set(made.origins.tolist())) != []
    assert sorted(made.origins.tolist()) == list(range(7))
    assert not np.array_equal(made.places, some.places)
    # Within a segment a path has one giver.
    givers = [
        [int(np.flatnonzero((some.places[:, s] == made.places[v, s]).all(axis=1))[0]) for s in row]
        for v in range(7)
        for row in np.arange(20).reshape(5, 4)
    ]
    assert all(len(set(row)) == 1 for row in givers)


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_near_exchanges_only_among_those_who_look_near_one_another(space: Any) -> None:
    x_deg = np.array([0.0, 3.0, 5.0, 40.0, 90.0])
    one = np.stack((x_deg, np.zeros(5), np.zeros(5)), axis=1)
    if isinstance(space, Sphere):
        one = space.vectors(x_deg, np.full(5, 90.0))
    places = np.repeat(one[:, None], 64, axis=1)
    windows = PublicWindows(4.0, 1, 64, 0, 1)
    some = CrowdReadings(readings(5, 64).keys, space, windows, places, np.ones((5, 64), bool))
    for among, groups in ((2, ({0, 1}, {1, 2})), (3, ({0, 1, 2},))):
        law = replace(LAW, paths="near", among=among, segment=1, b_deg=6.0)
        made = paths_in(some, 0, law, TestStream(7)).places
        apart = np.linalg.norm(made[:, :, None] - one, axis=3)
        givers = [set(row.tolist()) for row in apart.argmin(axis=2)]
        assert givers[3:] == [{3}, {4}]
        assert any(givers[person] == group for group in groups for person in group)
        assert set.union(*givers[:3]) == {0, 1, 2}


def test_own_paths_are_those_of_their_origins() -> None:
    data = crowd()
    made = Mosaic(**SHARP, paths="own").release_with_origins(data, seed=1)
    raw = {r.key: r for r in data}
    for piece in made.release.data:
        own = raw[made.origins[piece.person]]
        here = np.searchsorted(own.t_ns, piece.t_ns)
        away = np.hypot(piece.x_deg - own.x_deg[here], piece.y_deg - own.y_deg[here])
        assert np.median(away) < 0.5


def test_randomness_is_fresh_for_every_piece() -> None:
    """All look at one place all the time, nearly without noise: what is left is the public eye's
    unrest, which must not be the same in two pieces.
    """
    still = viewer(0).with_(x_deg=np.zeros(1300), y_deg=np.zeros(1300))
    data = Cohort([still.with_(person=f"p{i}") for i in range(12)])
    pieces = list(Mosaic(**SHARP).release(data, seed=1).data)
    alike = np.corrcoef([p.x_deg for p in pieces])
    assert np.abs(alike[~np.eye(len(pieces), dtype=np.bool_)]).max() < 0.9


# --- the promise
# --------------------------------------------------------------------------------------------------


def test_the_promise_is_that_of_the_readings() -> None:
    made = Mosaic(10, 2).release(crowd())
    g = made.guarantee
    assert (g.status, g.definition, g.epsilon) == ("proved", "epsilon-w-r-dp", Fraction(10))
    # Two pieces of 20 slots, two readings to a window of half a second: 20 windows of epsilon.
    person = g.map(Change.person(move_deg=2)).numbers()["epsilon"]
    assert person == 20 * 10
    assert (
        person
        < gazeveil.mechanism("clock-render:epsilon=10,r_deg=2,form=offline")
        .release(crowd())
        .guarantee.map(Change.person(move_deg=2))
        .numbers()["epsilon"]
    )
    text = str(g)
    assert "epsilon = 0" in text
    assert "names of a stimulus" in text
    assert any("public clock" in clause for clause in g.assumptions)
    for missing in ("nothing was seen", "joining pieces", "how many people", "median rate"):
        assert any(missing in clause for clause in g.not_covered), missing


def test_the_audit_is_tight() -> None:
    # One run in a million refutes honest noise by chance.
    found = gazeveil.audit(Mosaic(10, 2), trials=2000, confidence=1 - 1e-6)
    assert not found.refuted
    assert 9.9 < found.epsilon_lower <= 10


def test_stated_duration_and_rate_are_covered() -> None:
    g = Mosaic(10, 2, duration_s=11, clock_hz=100).release(crowd()).guarantee
    assert not any("median rate" in c or "in length" in c for c in g.not_covered)


# --- lazy, repeatable, refused
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"crowd": 2}, "crowd"),
        ({"paths": "mixed"}, "paths"),
        ({"piece_s": 0}, "piece_s"),
        ({"gap_s": -1}, "gap_s"),
        ({"stay": 2}, "stay"),
        ({"b_deg": 0}, "b_deg"),
        ({"among": 13}, "among"),
        ({"epsilon": 0}, "epsilon"),
        ({"r_deg": "two"}, "r_deg"),
        ({"duration_s": -1}, "duration_s"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], word: str) -> None:
    with pytest.raises(GazeveilError, match=word):
        Mosaic(**{"epsilon": 10, "r_deg": 2, **parameters})


def _nameless_rate() -> Cohort:
    people = list(crowd())
    people[0] = people[0].with_(rate_hz=float("nan"))
    return Cohort(people)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (crowd(11), "at least 12 people"),
        (Cohort([*crowd(6), *(r.with_(session="2") for r in crowd(6))]), "at least 12 people"),
        (Cohort([*crowd(12), viewer(0, "seen by one")]), "'seen by one' \\(1\\)"),
        (Cohort([]), "has none"),
        (crowd(12, seconds=3.0), "pieces of 5 s"),
        (_nameless_rate(), "rate of"),
        (Cohort([*crowd(12), viewer(12, space=Sphere())]), "sphere"),
        (viewer(1), "a Cohort"),
    ],
)
def test_what_cannot_be_hidden_is_refused(data: Any, words: str) -> None:
    with pytest.raises(GazeveilError, match=words):
        Mosaic(10, 2).release(data)
