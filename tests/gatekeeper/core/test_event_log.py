"""The event log of the Gatekeeper, what queries tell of it, and the metrics of areas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.events import detect
from gazeveil.gatekeeper import LEVELS, Denied, PublicEvent, SaccadeStart
from gazeveil.gatekeeper.core.events import LENGTH, EventLog, EventNumbers
from gazeveil.gaze.geometry import Grid, Screen, Sphere, haversine_deg
from gazeveil.gaze.recording import Recording
from tests.support.wearers import Trace, keeper, later, looks

SCREEN = Screen(1920, 1080, 530, 300, 600)


# --- the event log
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["coarse", "fine"])
@pytest.mark.parametrize("space", [Sphere(), SCREEN])
def test_fixations_have_the_cell_of_their_mean_and_whole_ticks(
    level: str, space: Sphere | Screen
) -> None:
    centre = (180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0)
    places = [
        (centre[0] + dx, centre[1] + dy)
        for dx, dy in [(-12.3, 3.4), (8.8, -6.1), (1.7, 9.9), (-3.3, -8.7)]
    ]
    k = keeper("a", space=space, level=level, rate_hz=250.0)
    seen: list[PublicEvent] = []
    k.app("a").add_event_listener("fixation", seen.append)
    k.push(*looks(places, rate_hz=250.0))
    k.lost()
    grid, tick = Grid(space, LEVELS[level].resolution_deg), LEVELS[level].tick_ms
    assert [(e.x_deg, e.y_deg) for e in seen] == [grid.centre(*grid.cell(*p)) for p in places]
    assert all(e.t_ms % tick == 0 and e.duration_ms % tick == 0 for e in seen)
    assert all(abs(e.duration_ms - 400) <= 2 * tick + 20 for e in seen)
    assert [e.t_ms for e in seen] == pytest.approx([440 * i for i in range(4)], abs=tick + 20)


def test_the_sheet_tells_what_the_online_detector_tells_however_samples_are_cut() -> None:
    rng = np.random.default_rng(3)
    trace = looks([(180 + a, 90 + b) for a, b in rng.uniform(-30, 30, (60, 2))], each_s=0.25)
    whole, single, pieces = [], [], []
    for how, seen in (("whole", whole), ("single", single), ("pieces", pieces)):
        k = keeper("a", level="fine")
        k.app("a").add_event_listener("fixation", seen.append)
        k.app("a").add_event_listener("saccade", seen.append, mode="start-stop")
        t, x, y = trace
        if how == "whole":
            k.push(t, x, y)
        elif how == "single":
            for a, b, c in zip(t.tolist(), x.tolist(), y.tolist(), strict=True):
                k.push(a, b, c)
        else:
            for part in np.array_split(np.arange(len(t)), 37):
                k.push(t[part], x[part], y[part], np.ones(len(part), dtype=bool))
        k.lost()
    assert whole == single == pieces
    recording = Recording(
        "p",
        "s",
        t_ns=trace[0],
        x_deg=trace[1],
        y_deg=trace[2],
        valid=np.ones(len(trace[0]), dtype=bool),
        space=Sphere(),
        rate_hz=100.0,
    )
    offline = detect(recording, "online")
    long_enough = (offline.kind == "fixation") & (offline.duration_s >= 0.06)
    fixations = [e for e in whole if isinstance(e, PublicEvent) and e.kind == "fixation"]
    assert [e.t_ms for e in fixations] == [
        int(t) // 10_000_000 * 10 for t in offline.onset_ns[long_enough]
    ]
    assert (
        sum(isinstance(e, SaccadeStart) for e in whole)
        == int((offline.kind == "saccade").sum())
        > 50
    )


def test_bad_samples_are_lost_samples_and_never_an_error() -> None:
    t, x, y = looks([(100, 80), (140, 80), (100, 80), (140, 80)])
    k = keeper("a")
    app = k.app("a")
    area = app.register_area("left", 90, 70, 20, 20)
    x[5], y[17], x[30] = np.nan, np.inf, -1e308
    t[50], t[60] = 0, 2**63 - 1
    k.push(t, x, y)
    k.push(int(t[-1]) + 10_000_000, float("nan"), float("inf"), True)
    k.push(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
    k.lost()
    assert app.metrics(area.id).fixations >= 1
    with pytest.raises(ParameterError):
        k.push(np.zeros(3, dtype=np.int64), np.zeros(2), np.zeros(3))
    with pytest.raises(ParameterError) as wrong:
        k.push(np.zeros(1, dtype=np.int64), np.array(["123.456789"]), np.zeros(1))
    assert "123.456789" not in str(wrong.value)


def test_a_clock_that_was_set_back_does_not_stop_the_sheet() -> None:
    first = looks([(100, 80), (140, 80)] * 5)
    second = looks([(100, 80), (140, 80)] * 20)  # begins at time 0 again
    k = keeper("a")
    app = k.app("a")
    area = app.register_area("left", 90, 70, 20, 20)
    k.push(*first)
    before = app.metrics(area.id).fixations
    k.push(*second)
    k.lost()
    times = [f.t_ms for f in app.get_fixations(area.id)]
    assert app.metrics(area.id).fixations >= before + 15
    assert times == sorted(times)


def test_events_are_told_only_when_their_tick_is_over() -> None:
    """Otherwise a callback's moment would give the native time of the decision away."""
    t, x, y = looks([(100, 80), (140, 80), (100, 80), (140, 80), (100, 80)])
    k = keeper("a")
    app = k.app("a")
    area = app.register_area("left", 90, 70, 20, 20)
    heard: list[int] = []
    clock = [0]
    app.add_event_listener("fixation", lambda e: heard.append(clock[0]))
    app.add_event_listener("saccade", lambda e: heard.append(clock[0]), mode="start-stop")
    counts = []
    for a, b, c in zip(t.tolist(), x.tolist(), y.tolist(), strict=True):
        clock[0] = a
        k.push(a, b, c)
        counts.append(len(app.get_fixations(area.id)))
    assert len(heard) >= 8
    assert all(moment % 100_000_000 == 0 for moment in heard), (
        "callbacks come with the first sample of a tick"
    )
    changes = np.flatnonzero(np.diff(counts)) + 1
    assert len(changes) >= 2
    assert all(t[i] % 100_000_000 == 0 for i in changes), "so do answers"


def test_queries_take_ranges_numbers_and_limits() -> None:
    k = keeper("a")
    app = k.app("a")
    area = app.register_area("left", 90, 70, 20, 20)
    k.push(*looks([(102, 82), (142, 82)] * 10))
    k.lost()
    every = app.get_fixations(area.id)
    assert len(every) == 10
    assert app.get_fixations(area.id, since_ms=every[3].t_ms, until_ms=every[6].t_ms) == every[3:6]
    assert app.get_fixations(area.id, after=every[4].number) == every[5:]
    assert app.get_fixations(area.id, limit=2) == every[:2]
    assert app.get_fixations(area.id, limit=0) == app.get_fixations(area.id, limit=-5) == ()
    assert app.get_dwell_time(every[2].number) == every[2].duration_ms
    landed = app.get_saccades(area.id)
    assert len(landed) == 9
    assert {(e.duration_ms, e.x_deg, e.y_deg) for e in landed} == {(0, 102.5, 82.5)}
    with pytest.raises(Denied) as no:
        app.get_fixations(area.id, since_ms=0.5)  # type: ignore[arg-type]
    assert no.value.code == "parameter"


# --- metrics
# --------------------------------------------------------------------------------------------------


def test_metrics_are_what_the_sheet_says() -> None:
    k = keeper("a")
    app = k.app("a")
    left, right, never = (
        app.register_area("left", 90, 70, 20, 20),
        app.register_area("right", 130, 70, 20, 20),
        app.register_area("never", 270, 70, 20, 20),
    )
    k.push(*looks([(200, 92), (137, 82), (142, 78), (103, 82), (138, 82), (200, 92)]))
    k.lost()
    m = app.metrics(right.id)
    fixations = app.get_fixations(right.id)
    assert (m.fixations, m.visits, m.order) == (3, 2, 1)
    assert m.dwell_ms == sum(f.duration_ms for f in fixations)
    assert m.first_fixation_ms == fixations[0].t_ms
    assert m.first_saccade_ms == app.get_saccades(right.id)[0].t_ms
    assert (app.metrics(left.id).order, app.metrics(left.id).visits) == (2, 1)
    nothing = app.metrics(never.id)
    assert (
        nothing.fixations,
        nothing.visits,
        nothing.dwell_ms,
        nothing.order,
        nothing.first_fixation_ms,
        nothing.first_saccade_ms,
    ) == (0, 0, 0, None, None, None)


def test_an_area_counts_from_its_registration_on() -> None:
    k = keeper("a")
    app = k.app("a")
    first = looks([(100, 80), (140, 80)] * 4)
    k.push(*first)
    area = app.register_area("late", 90, 70, 20, 20)
    assert area.since_ms > 3000
    assert app.get_fixations(area.id) == ()
    k.push(*later(first, looks([(200, 92), (100, 80), (140, 80)])))
    k.lost()
    assert [f.t_ms >= area.since_ms for f in app.get_fixations(area.id)] == [True]
    m = app.metrics(area.id)
    assert m.first_fixation_ms == app.get_fixations(area.id)[0].t_ms - area.since_ms > 0


def test_durations_of_ticks_are_right_on_average() -> None:
    rng = np.random.default_rng(5)
    places = [(180 + a, 90 + b) for a, b in rng.uniform(-25, 25, (300, 2))]
    k = keeper("a")
    area = k.app("a").register_area("all", 0, 0, 360, 180)
    parts = [
        looks([p], each_s=float(s), seed=i)
        for i, (p, s) in enumerate(zip(places, rng.uniform(0.12, 0.6, 300), strict=True))
    ]
    t = np.arange(sum(len(p[0]) for p in parts)) * 10_000_000
    k.push(t, np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts]))
    k.lost()
    m = k.app("a").metrics(area.id)
    # 10 to 30 ms of each belong to the saccade; a tick is 100 ms, so rounding down would lose 50 ms
    # of each.
    assert m.dwell_ms / m.fixations == pytest.approx(1e3 * len(t) / 100 / 300 - 20, abs=15)


# --- grid and areas
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resolution", [0.5, 1.0, 5.0, 7.3])
@pytest.mark.parametrize("space", [Sphere(), SCREEN])
def test_a_cell_holds_its_middle_and_is_nowhere_much_smaller_than_the_resolution(
    resolution: float, space: Sphere | Screen
) -> None:
    grid = Grid(space, resolution)
    rng = np.random.default_rng(1)
    x = grid.left_deg + rng.random(2000) * grid.width_deg
    y = grid.top_deg + rng.random(2000) * grid.height_deg
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        cell = grid.cell(a, b)
        assert cell is not None
        middle = grid.centre(*cell)
        assert grid.cell(*middle) == cell
    assert min(grid.column_deg, grid.row_deg) >= resolution
    if isinstance(space, Sphere):
        for row in range(1, grid.rows - 1):
            xs = (0.0, *((column + 0.5) * grid.column_deg for column in range(grid.columns)))
            first, *others = dict.fromkeys(grid.cell(x, (row + 0.5) * grid.row_deg) for x in xs)
            if others:
                apart = haversine_deg(*grid.centre(*first), *grid.centre(*others[0]))
                assert apart >= 0.69 * resolution or apart > 100  # a row of two cells


def test_areas_are_snapped_outward_and_a_snapped_area_stays_as_it_is() -> None:
    k = keeper("a")
    area = k.app("a").register_area("shelf", 91.0, 62.0, 11.0, 12.0)
    assert (area.x_deg, area.y_deg, area.width_deg, area.height_deg) == (90.0, 60.0, 15.0, 15.0)
    again = k.app("a").register_area(
        "shelf", area.x_deg, area.y_deg, area.width_deg, area.height_deg
    )
    assert (again.x_deg, again.y_deg, again.width_deg, again.height_deg) == (90.0, 60.0, 15.0, 15.0)


@pytest.mark.parametrize(
    "rectangle",
    [
        (0, 0, 0, 20),
        (0, 0, -20, 20),
        (0, 0, float("nan"), 20),
        (float("inf"), 0, 20, 20),
        ("x", 0, 20, 20),
        (0, 178, 20, 20),
        (0, 400, 20, 20),
    ],
)
def test_areas_without_sides_or_nowhere_are_refused(
    rectangle: tuple[float, float, float, float],
) -> None:
    with pytest.raises(Denied) as no:
        keeper("a").app("a").register_area("x", *rectangle)
    assert no.value.code == "area"


def test_an_app_has_no_more_areas_than_its_grant_and_ids_are_not_used_again() -> None:
    app = keeper("a", grants={"areas": 2}).app("a")
    one, two = app.register_area("1", 0, 0, 10, 10), app.register_area("2", 20, 20, 10, 10)
    with pytest.raises(Denied, match="2 areas"):
        app.register_area("3", 40, 40, 10, 10)
    app.remove_area(one.id)
    assert (app.areas(), app.register_area("3", 40, 40, 10, 10).id) == ((two,), 3)


def test_an_area_that_goes_round_at_360_has_both_sides() -> None:
    k = keeper("a")
    app = k.app("a")
    area = app.register_area("behind", 350.0, 80.0, 20.0, 20.0)
    k.push(*looks([(352, 92), (8, 92), (92, 92), (358, 92), (180, 92)]))
    k.lost()
    assert [(f.x_deg, f.y_deg) for f in app.get_fixations(area.id)] == [
        (352.5, 92.5),
        (7.5, 92.5),
        (357.5, 92.5),
    ]
    assert app.metrics(area.id).visits == 2


def test_a_fixation_across_the_edge_of_the_sphere_is_where_it_was_and_not_on_the_other_side() -> (
    None
):
    t = np.arange(100) * 10_000_000
    x = np.where(np.arange(100) % 2, 359.0, 3.0)  # mean direction 1 degree, mean number 181
    k = keeper("a")
    app = k.app("a")
    seen: list[PublicEvent] = []
    app.add_event_listener("fixation", seen.append)
    quiet = np.convolve(np.where(x > 180, x - 360, x), np.ones(10) / 10, mode="same") % 360
    k.push(t, quiet, np.full(100, 92.0))
    k.lost()
    assert {e.x_deg for e in seen} == {2.5}


# --- Apps that read events off the numbers of events: gaps, numbers of others, and two apps
# that compare theirs.
# --------------------------------------------------------------------------------------------------


#: Looks inside the first area, then elsewhere, and so on.
PLACES = [(102, 82), (200, 92), (142, 82), (260, 60), (300, 120), (122, 92), (20, 80), (142, 82)]


def test_numbers_have_no_gaps_where_the_wearer_looked_elsewhere() -> None:
    """The number of events between two looks at an app's own area once told how often the wearer
    had looked at others' things.
    """
    k = keeper("shop", seed=None)
    app = k.app("shop")
    area = app.register_area("shelf", 90, 70, 60, 40)
    k.push(*looks(PLACES * 4))
    k.lost()
    fixations = app.get_fixations(area.id)
    assert len(fixations) >= 12, "and as many elsewhere"
    numbers = [event.number for event in fixations]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    saccades = app.get_saccades(area.id)
    assert [event.number for event in saccades] == list(
        range(numbers[-1] + 1, numbers[-1] + 1 + len(saccades))
    )
    k.close()


def test_two_apps_cannot_join_their_events_by_number() -> None:
    k = keeper("a", "b", seed=None)
    heard: dict[str, list[Any]] = {"a": [], "b": []}
    for name in heard:
        k.app(name).add_event_listener("fixation", heard[name].append)
    k.push(*looks(PLACES * 3))
    k.lost()
    a, b = ([event.number for event in heard[name]] for name in "ab")
    assert len(a) == len(b) > 20
    assert not set(a) & set(b), "numbers begin where nobody knows"
    assert all(n < 2**53 for n in (*a, *b)), "exact in JavaScript"
    for name, foreign in (("a", b[3]), ("b", a[3])):
        with pytest.raises(Denied, match="told of no such fixation"):
            k.app(name).get_dwell_time(foreign)
    k.close()


def test_a_number_stays_with_its_event_however_the_app_learns_of_it() -> None:
    k = keeper("shop")
    app = k.app("shop")
    heard: list[PublicEvent] = []
    area = app.register_area("shelf", 90, 70, 60, 40)
    trace = looks(PLACES)
    k.push(*trace)
    k.lost()
    first = app.get_fixations(area.id)
    app.add_event_listener("fixation", heard.append)  # type: ignore[arg-type]
    k.push(*later(trace, looks(PLACES)))
    k.lost()
    both = app.get_fixations(area.id)
    assert both[: len(first)] == first
    assert set(both[len(first) :]) <= set(heard)
    assert app.get_fixations(area.id, after=first[-1].number) == both[len(first) :]
    assert app.get_fixations(area.id, after=both[-1].number) == ()
    assert [app.get_dwell_time(event.number) for event in both] == [
        event.duration_ms for event in both
    ]
    outside = next(event for event in heard if event not in both)
    newer = [event for event in both if event.t_ms > outside.t_ms]
    assert list(app.get_fixations(area.id, after=outside.number)) == newer, (
        "after any event the app was told of"
    )
    assert app.get_fixations(area.id, after=1) == both, (
        "a number it was not told of leaves nothing out"
    )
    k.close()


def test_numbers_that_the_sheet_has_forgotten_are_forgotten_too() -> None:
    event_log, numbers = EventLog(), EventNumbers(5)
    for i in range(5 * LENGTH):
        event = numbers.told(
            event_log.write("fixation", 1, 1, 2.5, 2.5, 100 * i, 100), event_log.oldest
        )
        assert event.number == 5 + i
    assert len(numbers._mine) == len(numbers._device_number) <= 2 * LENGTH + 1
    assert numbers.device_number(5) is None
    assert numbers.device_number(4 + 5 * LENGTH) == 5 * LENGTH
    assert [numbers.device_number(wrong) for wrong in (True, "7", None, 7.0)] == [None] * 4


# --- Smooth pursuit: what apps are told of it.
# --------------------------------------------------------------------------------------------------


def followed(
    start_deg: float,
    way_deg: float,
    seconds: float,
    rate_hz: float = 100.0,
    noise_deg: float = 0.01,
    y_deg: float = 80.0,
) -> Trace:
    """Gaze that moves to the right at one speed."""
    n = round(seconds * rate_hz)
    rng = np.random.default_rng(3)
    x = start_deg + way_deg * np.arange(n) / max(1, n - 1) + rng.normal(0, noise_deg, n)
    return (
        (np.arange(n) * round(1e9 / rate_hz)).astype(np.int64),
        x,
        y_deg + rng.normal(0, noise_deg, n),
    )


def joined(*traces: Trace) -> Trace:
    """One after the other."""
    all_t = [traces[0]]
    for trace in traces[1:]:
        all_t.append(later(all_t[-1], trace))
    t, x, y = (np.concatenate(column) for column in zip(*all_t, strict=True))
    return t, x, y


# --- what apps are told
# --------------------------------------------------------------------------------------------------


def scene() -> Trace:
    """A fixation, a pursuit of 8 deg around x = 142 (cell 140 to 145), a fixation, a pursuit around
    102, a fixation.
    """
    return joined(
        looks([(100.0, 82.0)], 0.5),
        followed(138.0, 8.0, 1.0, y_deg=82.0),
        looks([(170.0, 82.0)], 0.5),
        followed(98.0, 8.0, 0.8, y_deg=82.0),
        looks([(142.0, 82.0), (170.0, 82.0)], 0.5),
    )


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_listener_is_told_one_cell_a_tick_and_whole_ticks_of_a_pursuit(size: int) -> None:
    k = keeper("a", "b")
    heard: list[PublicEvent | SaccadeStart] = []
    others: list[PublicEvent | SaccadeStart] = []
    k.app("a").add_event_listener("pursuit", heard.append)
    k.app("b").add_event_listener("fixation", others.append)
    t, x, y = scene()
    for i in range(0, len(t), size):
        part = slice(i, i + size)
        k.push(*(t[part], x[part], y[part]) if size > 1 else (int(t[i]), float(x[i]), float(y[i])))
    k.lost()
    told = [
        (e.kind, e.x_deg, e.y_deg, e.t_ms, e.duration_ms)
        for e in heard
        if isinstance(e, PublicEvent)
    ]
    assert told == [("pursuit", 142.5, 82.5, 500, 900), ("pursuit", 102.5, 82.5, 2000, 700)]
    assert [e.kind for e in others] == ["fixation"] * 4
    k.close()


def test_a_pursuit_counts_into_dwell_and_is_no_fixation_and_no_visit() -> None:
    k = keeper("a")
    app = k.app("a")
    left = app.register_area("left", 95, 75, 15, 15)
    middle = app.register_area("middle", 135, 75, 15, 15)
    right = app.register_area("right", 165, 75, 15, 15)
    k.push(*scene())
    k.lost()
    one = app.metrics(left.id)
    events = app.get_fixations(left.id)
    assert len(events) == one.fixations == one.visits == 1
    assert one.dwell_ms == events[0].duration_ms + 700
    two = app.metrics(middle.id)
    assert (two.fixations, two.visits, two.order) == (1, 1, 3)
    assert two.first_fixation_ms is not None
    assert two.first_fixation_ms >= 2700
    # A pursuit elsewhere lies between its two fixations.
    assert app.metrics(right.id).visits == 2
    k.close()
