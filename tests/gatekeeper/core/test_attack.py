"""Ten colluding apps on real people: what they find is what the level tells by itself. The full
figures: benchmarks/gatekeeper_attack.py.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from gazeveil.gaze.cohort import Cohort
from tests.support.places import ROOT
from tests.support.recordings import real_cohort


@pytest.fixture(scope="module")
def bench() -> Any:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import gatekeeper_attack
    finally:
        sys.path.pop(0)
    return gatekeeper_attack


@pytest.mark.parametrize("level", ["coarse", "fine"])
def test_what_ten_apps_collect_from_a_person_is_the_sheet_and_no_more(
    bench: Any, level: str
) -> None:
    cohort = real_cohort("gazecom")
    person = list(cohort.select(people=list(cohort.people)[:1], stimuli=cohort.stimuli[:2]))
    events, streamed = bench.replay(person, level, listeners=True)
    own = [bench.rebuilt(r, bench.event_log(r, level), bench.LEVELS[level].tick_ms) for r in person]
    areas, _ = bench.replay(person, level, listeners=False)
    for together, alone, queried, raw, stream in zip(
        events, own, areas, person, streamed, strict=True
    ):
        assert together.x_deg.tobytes() == alone.x_deg.tobytes()
        assert together.y_deg.tobytes() == alone.y_deg.tobytes()
        assert queried.valid.sum() > 0.5 * alone.valid.sum(), (
            "areas that cover the screen tell most of it"
        )
        assert len(stream) == len(raw)


@pytest.mark.heavy
def test_the_coalitions_rate_lies_within_the_levels_interval(bench: Any) -> None:
    cohort = real_cohort("gazecom")
    everybody = list(cohort.select(stimuli=cohort.stimuli[:4]))
    people: dict[str, list[Any]] = {}
    for recording in everybody:
        people.setdefault(recording.person, []).append(recording)
    assert len(people) == 24
    own = bench.rates(
        Cohort([bench.rebuilt(r, bench.event_log(r, "coarse"), 100) for r in everybody]), 3
    )
    pooled = [
        r for person in people.values() for r in bench.replay(person, "coarse", listeners=True)[0]
    ]
    together = bench.rates(Cohort(pooled), 3)
    raw = bench.rates(Cohort(everybody), 3)
    for attack in bench.ATTACKS:
        assert own[attack]["low"] <= together[attack]["value"] <= own[attack]["high"]
        assert raw[attack]["value"] > own[attack]["high"], (
            "the attack works: it finds people in raw samples"
        )
