"""Smooth pursuit while samples arrive: the sums behind it and the detector's option."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import gazeveil
from gazeveil.events import OnlineDetector, detect
from gazeveil.events.agreement import pool
from gazeveil.events.auto.network import Network
from gazeveil.events.online.detector import Edge, gather
from gazeveil.gaze.geometry import Screen
from tests.support.recordings import real_cohort

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
