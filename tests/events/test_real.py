"""The default detector against people who label by hand, with networks that were trained without
what they are judged on; the whole of it is in benchmarks/events_agreement.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.events.agreement import Agreement, pool
from gazeveil.events.auto.network import Network
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
