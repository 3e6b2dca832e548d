"""A protected copy that would look safe for a reason that is no protection: another rate, or names
that were exchanged.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gazeveil
from gazeveil.evaluation.api import CopyWarning, doubt_about_names, study_of_copy
from gazeveil.evaluation.results import Results, frame_of, outcomes_of
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording


def test_raw_recordings_come_to_the_rate_of_a_slower_copy() -> None:
    raw = gazeveil.simulate(3, 2, 4.0, 120.0, seed=1)
    slow = Cohort([r.resample(30.0) for r in raw])
    with pytest.warns(CopyWarning, match="The copy has 30 samples a second and raw .* up to 120"):
        study = study_of_copy(raw, slow, ("linkage",))
    assert {r.rate_hz for r in study.source} == {30.0}
    np.testing.assert_array_equal(study.source[0].x_deg, slow[0].x_deg)
    mixed = Cohort([*slow[:3], *raw[3:]])
    for copy in (raw, mixed, Cohort([r.resample(240.0) for r in raw])):
        same = study_of_copy(raw, copy, ("linkage",)).source
        assert {r.rate_hz for r in same} == {120.0}


def results(people: list[str], answers: list[str], repetitions: int, attacks: int) -> Results:
    rows = [
        {
            "mechanism": "copy",
            "scenario": "raw/private",
            "attack": f"a{attack}",
            "metric": "identification_rate",
            "repetition": repetition,
            "part": person,
            "value": float(person == answer),
            "answer": answer,
        }
        for attack in range(attacks)
        for repetition in range(repetitions)
        for person, answer in zip(people, answers, strict=True)
    ]
    return Results(frame_of([]), outcomes_of(rows), (), {}, {})


def test_a_copy_with_exchanged_names_is_not_called_safe() -> None:
    people = [f"p{i}" for i in range(8)]
    renamed = [*people[1:], people[0]]
    for repetitions, attacks in ((3, 1), (1, 2)):
        doubt = doubt_about_names(results(people, renamed, repetitions, attacks))
        assert doubt.startswith("Attackers take 8 of 8 people of the copy for one and the same")
        assert doubt_about_names(results(people, people, repetitions, attacks)) == ""
    assert doubt_about_names(results(people, renamed, 1, 1)) == "", "one draw cannot tell"
    empty = results([], [], 3, 1)
    assert doubt_about_names(replace(empty)) == ""


def test_the_attack_itself_says_that_names_were_exchanged() -> None:
    """People whose movements are of sizes of their own, so that anybody tells them apart."""

    def of(number: int, stimulus: str, name: str) -> Recording:
        raw, size = base[stimulus], 0.01 * 2.0**number
        x_deg, y_deg = (size * (v - np.nanmean(v)) for v in (raw.x_deg, raw.y_deg))
        return raw.with_(person=name, x_deg=180 + x_deg, y_deg=np.clip(90 + y_deg, 1, 179))

    base = {r.stimulus: r for r in gazeveil.simulate(1, 4, 4.0, 60.0, seed=2)}
    names = [f"p{i}" for i in range(8)]
    raw = Cohort([of(i, s, n) for s in base for i, n in enumerate(names)])
    moved = Cohort([of(i, s, names[(i + 3) % 8]) for s in base for i, _ in enumerate(names)])
    with pytest.warns(CopyWarning, match="of 8 people of the copy for one and the same other"):
        gazeveil.attack(raw, moved, "steps", repetitions=2, executor=1)
