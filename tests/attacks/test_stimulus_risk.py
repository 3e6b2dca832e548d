"""Stimulus risk: a stimulus that hides people is named, one of many equal ones is not."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.infer.kinds import KINDS
from gazeveil.attacks.infer.stimulus_risk import StimulusComparison, told_apart
from gazeveil.attacks.result import InferenceResult
from gazeveil.errors import DataError, ParameterError
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import RecordingSet
from tests.support.pieces import RawPieces
from tests.support.trait_people import trait_material, trait_table


def people_who_show(blank: tuple[str, ...] = (), noise: float = 0.5, **parts: int) -> RecordingSet:
    """Tables of people with traits; in the blank stimuli nothing of the person shows."""
    table = trait_table(noise=noise, rows=8, **parts)
    rng = np.random.default_rng(5)
    values = table.values.copy()
    rows = np.isin(table.keys.stimulus, blank)
    values[rows] = rng.normal(size=(int(rows.sum()), values.shape[1]))
    return trait_material(replace(table, values=values))


def compared(
    raw: RecordingSet, release: RecordingSet | None = None, **parameters: object
) -> tuple[InferenceResult, dict[str, dict[str, object]]]:
    """The result, and the row of each stimulus."""
    attack = StimulusComparison(**{"attacks": "linkage", **parameters})  # type: ignore[arg-type]
    found = attack.run(raw, raw if release is None else release, seed=1)
    return found, {row["stimulus"]: row for row in found.details["stimuli"]}


def test_a_stimulus_in_which_nobody_shows_is_at_chance_and_told_apart() -> None:
    found, rows = compared(people_who_show(("s02",)))
    assert sorted(rows) == [f"s{i:02}" for i in range(6)]
    rates = {s: row["across"] for s, row in rows.items()}
    assert rates.pop("s02") <= 0.2  # type: ignore[operator]
    assert min(rates.values()) >= 0.9  # type: ignore[type-var,operator]
    assert rows["s02"]["p_value"] <= 0.001  # type: ignore[operator]
    assert found.details["stimuli"][-1]["stimulus"] == "s02"
    assert found.result("stimuli_apart").value >= 1
    json.dumps(found.to_dict(), allow_nan=False)


def test_names_that_stand_for_nobody_are_found_no_more_often_than_by_guessing() -> None:
    control = compared(people_who_show())[0].result("control_rate")
    # 120 questions at 1/20; one-sided at 1 in 1000.
    assert control.value <= 0.05 + 3.1 * math.sqrt(0.05 * 0.95 / 120)


def test_people_who_did_not_see_a_stimulus_count_neither_way() -> None:
    whole = people_who_show()
    some = whole.where(lambda key: key[:2] not in {("p00", "s00"), ("p01", "s00")})
    _, rows = compared(some)
    assert {s: row["across_people"] for s, row in rows.items()} == {
        f"s{i:02}": 18 if i == 0 else 20 for i in range(6)
    }
    assert rows["s00"]["across"] >= 0.9  # type: ignore[operator]


def test_a_stimulus_of_three_people_is_left_out() -> None:
    few = {"p00", "p01", "p02"}
    some = people_who_show().where(lambda key: key[1] != "s00" or key[0] in few)
    found, rows = compared(some)
    assert found.details["left_out"] == ["s00"]
    assert "s00" not in rows


def test_a_release_is_attacked_from_raw_and_from_itself() -> None:
    raw = people_who_show()
    # The release turns every feature round: who learnt from raw recordings is led astray.
    table = raw.fixations
    release = trait_material(replace(table, values=-table.values))
    found, rows = compared(raw, release)
    assert {row["speaker"] for row in rows.values()} == {"linkage on release"}
    assert found.result("across_rate").value >= 0.9
    _, alone = compared(raw)
    assert {row["speaker"] for row in alone.values()} == {"linkage on raw"}


def test_no_more_than_one_in_twenty_equal_cohorts_has_a_stimulus_named() -> None:
    def named(planted: float) -> float:
        rng = np.random.default_rng(11)
        found = 0
        for _ in range(200):
            able = rng.uniform(0.1, 0.9, size=24)[None, :] * np.ones((10, 1))
            able[3] = np.minimum(1.0, able[3] + planted)
            outcomes = (rng.uniform(size=able.shape) < able).astype(np.float64)
            outcomes[rng.uniform(size=able.shape) < 0.05] = np.nan
            found += bool((told_apart(outcomes, seed=1, draws=199).p_value <= 0.05).any())
        return found / 200

    # At a level of 5 % more than 21 of 200 come about once in 1000 runs.
    assert named(0.0) <= 21 / 200
    assert named(0.5) >= 0.9


def test_outcomes_that_do_not_vary_tell_nothing_apart() -> None:
    apart = told_apart(np.ones((4, 6)), seed=1, draws=99)
    assert apart.p_value.min() == 1.0
    assert apart.p_any == 1.0
    assert math.isnan(apart.least_difference)


def test_only_the_first_seconds_are_looked_at_where_asked() -> None:
    raw = RecordingSet(gazeveil.simulate(4, 2, seconds=6, rate_hz=60, seed=2))
    _, rows = compared(raw, attacks="steps", seconds=2.0)
    assert [row["seconds"] for row in rows.values()] == pytest.approx([119 / 60] * 2)
    with pytest.raises(ParameterError, match="seconds"):
        compared(people_who_show(), seconds=2.0)


def test_what_cannot_be_compared_is_refused() -> None:
    raw = RecordingSet(gazeveil.simulate(4, 2, seconds=6, rate_hz=60, seed=2))
    with pytest.raises(DataError, match="release of pieces"):
        compared(raw, protect(raw, RawPieces(piece_s=2.0), 1))
    with pytest.raises(DataError, match="Got 0 such stimuli"):
        compared(raw.select(people=raw.persons[:3]))
    with pytest.raises(DataError, match="can attack this release"):
        compared(people_who_show(), attacks="steps")
    with pytest.raises(ParameterError):
        KINDS["stimulus-risk"](attacks="linkage+nonsense")  # type: ignore[call-arg]
