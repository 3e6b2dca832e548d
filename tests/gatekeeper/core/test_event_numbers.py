"""Apps that read events off the numbers of events: gaps, numbers of others, and two apps that
compare theirs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gazeveil import gatekeeper
from gazeveil.gatekeeper import Denied
from gazeveil.gatekeeper.core.events.log import LENGTH, EventLog, PublicEvent
from gazeveil.gatekeeper.core.events.numbers import EventNumbers
from tests.support.gatekeeper_running import running
from tests.support.wearers import keeper, later, looks

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


def test_listeners_have_no_gaps_for_kinds_they_do_not_hear() -> None:
    k = keeper("shop", seed=None)
    heard: list[Any] = []
    k.app("shop").add_event_listener("saccade", heard.append)
    k.push(*looks(PLACES * 2))
    k.lost()
    numbers = [event.number for event in heard]
    assert len(numbers) > 10
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
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


def test_over_the_service_numbers_of_two_apps_tell_nothing_of_each_other(tmp_path: Path) -> None:
    with running(tmp_path / "home") as here:
        tokens = [here.app(), here.app()]
        with here.talk(tokens[0]) as one, here.talk(tokens[1]) as other, here.tracker() as tracker:
            for talk in (one, other):
                assert talk.subscribe(what="fixation")["type"] == "subscribed"
            for i in range(14):
                tracker.look(*PLACES[i % len(PLACES)], 0.4)
            heard = [[talk.until("event") for _ in range(10)] for talk in (one, other)]
        assert [(e["t_ms"], e["x_deg"]) for e in heard[0]] == [
            (e["t_ms"], e["x_deg"]) for e in heard[1]
        ], "the same events"
        first, second = ([event["number"] for event in events] for events in heard)
        assert not set(first) & set(second)
        for numbers in (first, second):
            assert numbers == list(range(numbers[0], numbers[0] + 10))
        with here.client(tokens[0]) as app:
            assert app.get(f"/v1/fixations/{first[0]}/dwell").status_code == 200
            wrong = [app.get(f"/v1/fixations/{number}/dwell") for number in (second[0], 3)]
            assert wrong[0].status_code == wrong[1].status_code == 404
            assert wrong[0].json() == wrong[1].json()


def test_the_old_name_of_an_event_answers_with_the_new_one() -> None:
    with pytest.raises(AttributeError, match="PublicEvent"):
        getattr(gatekeeper, "SeenEvent")  # noqa: B009
