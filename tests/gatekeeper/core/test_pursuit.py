"""Smooth pursuit while samples arrive: the sums behind it, the detector's option, and what apps are
told of it.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import gazeveil
from gazeveil.events import OnlineDetector, detect
from gazeveil.events.agreement import pool
from gazeveil.events.auto.network import Network
from gazeveil.events.online.detector import Edge, gather
from gazeveil.gatekeeper import PublicEvent, SaccadeStart
from gazeveil.gatekeeper.client import connect
from gazeveil.gaze.geometry import Screen
from tests.support.gatekeeper_running import Running, running
from tests.support.recordings import real_cohort
from tests.support.wearers import Trace, keeper, later, looks

SCREEN = Screen(1680, 1050, 474, 297, 550)


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


def kinds(
    x_deg: NDArray[np.float64], rate_hz: float = 250.0, noise_deg: float = 0.0, seed: int = 0
) -> list[str]:
    """What the detector calls a trace along one axis."""
    noise = np.random.default_rng(seed).normal(0, noise_deg, (2, len(x_deg)))
    detector = OnlineDetector(rate_hz, SCREEN, pursuit=True)
    t = np.arange(len(x_deg)) * round(1e9 / rate_hz)
    edges = detector.push(t, x_deg + noise[0], noise[1]) + detector.close()
    return [e.kind for e in edges if e.edge == "offset"]


# --- what is a pursuit
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate_hz", [60.0, 120.0, 250.0, 1000.0])
@pytest.mark.parametrize(
    ("way_deg", "seconds", "kind"),
    [(8.0, 1.0, "pursuit"), (4.0, 0.6, "pursuit"), (0.1, 1.0, "fixation"), (0.0, 0.6, "fixation")],
)
def test_gaze_that_gets_somewhere_is_a_pursuit(
    way_deg: float, seconds: float, kind: str, rate_hz: float
) -> None:
    path = np.linspace(0, way_deg, round(seconds * rate_hz))
    assert kinds(path, rate_hz, noise_deg=0.02) == [kind]


def test_a_small_jump_inside_a_fixation_is_no_pursuit() -> None:
    jump = np.concatenate((np.zeros(50), np.linspace(0, 1.5, 8), np.full(50, 1.5)))
    assert "pursuit" not in kinds(jump, noise_deg=0.01)
    assert kinds(np.linspace(0, 1.5, len(jump)), noise_deg=0.01) == ["pursuit"]


@pytest.mark.parametrize("rate_hz", [30.0, 60.0, 120.0])
def test_fixations_that_only_tremble_are_no_pursuits(rate_hz: float) -> None:
    found = [
        k for seed in range(60) for k in kinds(np.zeros(round(0.5 * rate_hz)), rate_hz, 0.2, seed)
    ]
    assert found.count("fixation") >= 60
    assert "pursuit" not in found


# --- the detector's option
# --------------------------------------------------------------------------------------------------


def pushed(
    recording: gazeveil.Recording, sizes: list[int], pursuit: bool = True
) -> tuple[Edge, ...]:
    detector = OnlineDetector(recording.rate_hz, recording.space, pursuit=pursuit)
    edges: tuple[Edge, ...] = ()
    done, turn = 0, 0
    while done < len(recording):
        part = slice(done, done + sizes[turn % len(sizes)])
        edges += detector.push(
            recording.t_ns[part],
            recording.x_deg[part],
            recording.y_deg[part],
            recording.valid[part],
        )
        detector = pickle.loads(pickle.dumps(detector)) if turn % 50 == 0 else detector
        done, turn = part.stop, turn + 1
    return edges + detector.close()


@pytest.mark.parametrize("rate_hz", [60.0, 120.0])
def test_any_blocks_give_the_same_pursuits_and_the_option_changes_nothing_else(
    rate_hz: float,
) -> None:
    (recording,) = gazeveil.simulate(1, 1, 20, rate_hz, task="tracking", seed=1)
    whole = pushed(recording, [10**6])
    assert sum(e.kind == "pursuit" for e in whole) >= 3
    assert gather(whole).of("pursuit").duration_s.sum() > 0.8 * 20
    assert pushed(recording, [1]) == whole
    assert pushed(recording, [1, 7, 250, 3]) == whole
    plain = pushed(recording, [10**6], pursuit=False)
    assert [(e.index, e.t_ns, e.decided, e.edge) for e in plain] == [
        (e.index, e.t_ns, e.decided, e.edge) for e in whole
    ]
    assert all(
        a.kind == b.kind or (a.kind, b.kind, b.edge) == ("fixation", "pursuit", "offset")
        for a, b in zip(plain, whole, strict=True)
    )
    assert "pursuit" not in detect(recording, "online").kind
    assert (detect(recording, "online", pursuit=True).kind == "pursuit").sum() == sum(
        e.kind == "pursuit" for e in whole
    )


def test_people_call_it_pursuit_too() -> None:
    # All recordings of the people with even numbers, with the network that was trained on the
    # others: 0.71.
    cohort = real_cohort("gazecom")
    even = list(
        cohort.select(people=[p for p in cohort.people if int(p.removeprefix("obs")) % 2 == 0])
    )
    file = Path(__file__).parents[3] / "benchmarks/event_networks/online_gazecom-even.npz"
    unseen = Network.load(file)
    found = [detect(r, "online", pursuit=True, network=unseen).words(len(r)) for r in even]
    label = [r.labels["handlabeller_final"] for r in even]
    right = pool((a, b, r.t_ns) for a, b, r in zip(label, found, even, strict=True))["pursuit"].f1
    turned = pool(
        (a, np.roll(b, len(b) // 2), r.t_ns) for a, b, r in zip(label, found, even, strict=True)
    )["pursuit"].f1
    assert right > 0.68
    assert turned < 0.3


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


def test_the_number_of_a_pursuit_asks_for_no_dwell_time() -> None:
    k = keeper("a")
    heard: list[PublicEvent | SaccadeStart] = []
    k.app("a").add_event_listener("pursuit", heard.append)
    k.push(*scene())
    k.lost()
    assert isinstance(heard[0], PublicEvent)
    with pytest.raises(gazeveil.gatekeeper.Denied) as no:
        k.app("a").get_dwell_time(heard[0].number)
    assert no.value.code == "unknown"


# --- service and client
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home: Path = tmp_path_factory.mktemp("pursuit") / "home"
    with running(home) as found:
        yield found


def test_the_service_and_its_client_tell_pursuits(here: Running) -> None:
    token = here.app()
    moving = np.linspace(122.0, 132.0, 120)
    with here.tracker() as tracker, here.talk(token) as talk:
        assert talk.subscribe(1, what="pursuit")["type"] == "subscribed"
        tracker.look(100.0, 82.0)
        tracker.send(moving, 82.0)
        tracker.look(160.0, 82.0)
        event = talk.until("event")
        assert (event["kind"], event["x_deg"], event["y_deg"]) == ("pursuit", 127.5, 82.5)
        assert event["duration_ms"] in (900, 1000)
    stop = threading.Event()

    def swing() -> None:
        while not stop.is_set():
            tracker.send(moving, 82.0)
            # Four times as fast as life: a busy machine that falls behind drops what waits.
            stop.wait(0.25)

    with here.tracker() as tracker, connect(here.address, token) as gaze:
        thread = threading.Thread(target=swing)
        thread.start()
        try:
            first = next(iter(gaze.on("pursuit")))
        finally:
            stop.set()
            thread.join()
    assert first["kind"] == "pursuit"
    assert set(first) == {"type", "kind", "number", "x_deg", "y_deg", "t_ms", "duration_ms"}
