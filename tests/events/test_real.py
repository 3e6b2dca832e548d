"""The default detector against people who label by hand, with networks that were trained without
what they are judged on; the whole of it is in benchmarks/events_agreement.py.

Smooth pursuit while samples arrive: the sums behind it and the detector's option.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from benchmarks.agreement import Agreement, pool
from numpy.typing import NDArray

import gazeveil
from gazeveil.events import OnlineDetector, detect
from gazeveil.events.auto.network import Network
from gazeveil.events.online.detector import Edge, gather
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from tests.support.recordings import real, real_cohort

NETWORKS = Path(__file__).parents[2] / "benchmarks" / "event_networks"


def unseen(dataset: str) -> Network:
    """The network that was trained without a dataset."""
    return Network.load(NETWORKS / f"auto_{dataset}.npz")


def judged(recordings: list[Recording], labels: tuple[str, ...], network: Network) -> Agreement:
    """Agreement with all labellers."""
    found = [(r, gazeveil.detect(r, network=network)) for r in recordings]
    return pool((r.labels[name], events, r.t_ns) for r, events in found for name in labels)


@pytest.fixture(scope="module")
def gazecom() -> Agreement:
    """All recordings of the people with even numbers: the network saw the others."""
    cohort = real_cohort("gazecom")
    held_out = cohort.select(
        people=[p for p in cohort.people if int(p.removeprefix("obs")) % 2 == 0]
    )
    return judged(list(held_out), ("handlabeller_final",), unseen("gazecom-even"))


@pytest.mark.parametrize(
    ("word", "least"), [("fixation", 0.945), ("saccade", 0.88), ("pursuit", 0.70)]
)
def test_people_not_seen_before_agree_with_their_hand_labels(
    gazecom: Agreement, word: str, least: float
) -> None:
    assert gazecom[word].f1 >= least


def test_saccades_begin_and_end_where_the_labellers_put_them(gazecom: Agreement) -> None:
    assert gazecom["saccade"].event_f1 > 0.9
    assert gazecom["saccade"].onset_distance_ms <= 8
    assert gazecom["saccade"].offset_distance_ms <= 8


@pytest.mark.parametrize(
    ("task", "least"),
    [
        ("img", {"fixation": 0.95, "saccade": 0.86, "pso": 0.6}),
        ("dots", {"saccade": 0.74, "pursuit": 0.86}),
        ("video", {"saccade": 0.82, "pursuit": 0.75}),
    ],
)
def test_another_lab_that_the_network_never_saw(task: str, least: dict[str, float]) -> None:
    trials = list(gazeveil.read(real("lund2013") / task, format="lund2013"))
    found = judged(trials, ("MN", "RA"), unseen("lund2013"))
    assert {word: found[word].f1 for word in least if found[word].f1 < least[word]} == {}


@pytest.mark.parametrize(("person", "saccade", "pso"), [("S1", 0.88, 0.55), ("S2", 0.95, 0.65)])
def test_settling_is_kept_apart_from_saccades_at_1000_hz(
    person: str, saccade: float, pso: float
) -> None:
    recording = next(
        r for r in gazeveil.read(real("irf_lookatpoint"), format="irf") if r.person == person
    )
    found = judged([recording], tuple(recording.labels), unseen("irf"))
    assert found["saccade"].f1 >= saccade
    assert found["pso"].f1 >= pso
    assert "pursuit" not in found.classes  # the targets stand still


@pytest.mark.parametrize(("step", "noise_deg"), [(2, 0.0), (4, 0.0), (1, 0.3), (4, 0.5)])
def test_a_lower_rate_and_noise_cost_little(step: int, noise_deg: float) -> None:
    cohort = real_cohort("gazecom")
    worse, rng = [], np.random.default_rng(1)
    for r in cohort.select(people=["obs04", "obs10"]):
        keep = np.arange(0, len(r), step)
        x, y = (
            axis[keep] + noise_deg * rng.standard_normal(len(keep)) for axis in (r.x_deg, r.y_deg)
        )
        worse.append(
            r.with_(
                t_ns=r.t_ns[keep],
                x_deg=x,
                y_deg=y,
                valid=r.valid[keep],
                rate_hz=r.rate_hz / step,
                labels={name: words[keep] for name, words in r.labels.items()},
                confidence=None,
                counts={},
            )
        )
    found = judged(worse, ("handlabeller_final",), unseen("gazecom-even"))
    plain = pool((r.labels["handlabeller_final"], gazeveil.detect(r, "ivt"), None) for r in worse)
    assert found["fixation"].f1 > max(0.85, plain["fixation"].f1)
    assert found["saccade"].f1 > max(0.7, plain["saccade"].f1)


SCREEN = Screen(1680, 1050, 474, 297, 550)


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
    file = Path(__file__).parents[2] / "benchmarks/event_networks/online_gazecom-even.npz"
    unseen = Network.load(file)
    found = [detect(r, "online", pursuit=True, network=unseen).words(len(r)) for r in even]
    label = [r.labels["handlabeller_final"] for r in even]
    right = pool((a, b, r.t_ns) for a, b, r in zip(label, found, even, strict=True))["pursuit"].f1
    turned = pool(
        (a, np.roll(b, len(b) // 2), r.t_ns) for a, b, r in zip(label, found, even, strict=True)
    )["pursuit"].f1
    assert right > 0.68
    assert turned < 0.3
