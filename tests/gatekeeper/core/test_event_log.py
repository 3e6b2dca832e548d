"""The event log of the Gatekeeper, what queries tell of it, and the metrics of areas."""

from __future__ import annotations

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.events import detect
from gazeveil.gatekeeper import LEVELS, Denied, PublicEvent, SaccadeStart
from gazeveil.gatekeeper.core.events.log import EventLog
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.grid import Grid
from gazeveil.gaze.recording import Recording
from tests.support.wearers import keeper, later, looks

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


def test_the_sheet_forgets_old_events_and_metrics_go_on() -> None:
    event_log = EventLog(length=10)
    for i in range(25):
        event_log.write("fixation", 0, 0, 0.0, 0.0, i * 100, 100)
    assert (event_log.oldest, event_log.count) == (16, 25)
    assert event_log.get(15) is None
    assert event_log.get(26) is None
    oldest = event_log.get(16)
    assert oldest is not None
    assert oldest.event.number == 16
    for after in range(-1, 27):
        assert [e.event.number for e in event_log.after(after)] == list(
            range(max(16, after + 1), 26)
        )


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
