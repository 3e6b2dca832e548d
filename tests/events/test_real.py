"""The default detector against people who label by hand; the whole of it is in
benchmarks/events_agreement.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import gazeveil
from gazeveil.events.agreement import Agreement, pool
from tests.support.recordings import real


@pytest.fixture(scope="module")
def gazecom() -> Agreement:
    """All recordings of the people with even numbers: none of them was used
    to choose a parameter."""
    cohort = gazeveil.read(real("gazecom"), format="gazecom")
    held_out = cohort.select(
        people=[p for p in cohort.people if int(p.removeprefix("obs")) % 2 == 0]
    )
    return pool((r.labels["handlabeller_final"], gazeveil.detect(r), r.t_ns) for r in held_out)


@pytest.mark.parametrize(
    ("word", "least"), [("fixation", 0.93), ("saccade", 0.86), ("pursuit", 0.66)]
)
def test_people_not_seen_before_agree_with_their_hand_labels(
    gazecom: Agreement, word: str, least: float
) -> None:
    assert gazecom[word].f1 >= least


def test_saccades_begin_and_end_where_the_labellers_put_them(gazecom: Agreement) -> None:
    assert gazecom["saccade"].event_f1 > 0.9
    assert gazecom["saccade"].onset_distance_ms <= 8
    assert gazecom["saccade"].offset_distance_ms <= 8


@pytest.mark.parametrize(("person", "saccade", "pso"), [("S1", 0.85, 0.6), ("S2", 0.92, 0.7)])
def test_settling_is_kept_apart_from_saccades_at_1000_hz(
    person: str, saccade: float, pso: float
) -> None:
    recording = next(
        r for r in gazeveil.read(real("irf_lookatpoint"), format="irf") if r.person == person
    )
    (labels,) = recording.labels.values()
    found = pool([(labels, gazeveil.detect(recording), recording.t_ns)])
    assert found["saccade"].f1 >= saccade
    assert found["pso"].f1 >= pso
    assert "pursuit" not in found.classes  # the targets stand still


def test_half_the_rate_costs_little() -> None:
    cohort = gazeveil.read(real("gazecom"), format="gazecom")
    slower = []
    for r in cohort.select(people="obs04"):
        keep = np.arange(0, len(r), 2)
        half = r.with_(
            t_ns=r.t_ns[keep],
            x_deg=r.x_deg[keep],
            y_deg=r.y_deg[keep],
            valid=r.valid[keep],
            rate_hz=125.0,
            labels={},
            confidence=None,
            counts={},
        )
        slower.append((r.labels["handlabeller_final"][keep], gazeveil.detect(half), half.t_ns))
    found = pool(slower)
    assert found["fixation"].f1 > 0.9
    assert found["saccade"].f1 > 0.8
