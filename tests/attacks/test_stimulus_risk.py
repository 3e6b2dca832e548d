"""Stimulus risk: a stimulus that hides people is named, one of many equal ones is not."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import gazeveil
from gazeveil.arrays import Floats
from gazeveil.attacks.infer.kinds import KINDS
from gazeveil.attacks.infer.stimulus_risk import dealt, sides_of, stimulus_risk
from gazeveil.attacks.infer.told_apart import person_share, told_apart
from gazeveil.errors import DataError, ParameterError
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import RecordingSet
from tests.support.pieces import RawPieces
from tests.support.recordings import real_cohort
from tests.support.trait_people import trait_material, trait_table


def people_who_show(blank: tuple[str, ...] = (), noise: float = 0.5, **parts: int) -> RecordingSet:
    """Tables of people with traits; in the blank stimuli nothing of the person shows."""
    table = trait_table(noise=noise, rows=8, **parts)
    rng = np.random.default_rng(5)
    values = table.values.copy()
    rows = np.isin(table.keys.stimulus, blank)
    values[rows] = rng.normal(size=(int(rows.sum()), values.shape[1]))
    return trait_material(replace(table, values=values))


def test_a_stimulus_in_which_nobody_shows_is_at_chance_and_told_apart() -> None:
    risk = stimulus_risk(people_who_show(("s02",)), attacks=("linkage",), seed=1)
    assert risk.stimuli == tuple(f"s{i:02}" for i in range(6))
    rates = {s: risk.of(s).value for s in risk.stimuli}
    assert rates.pop("s02") <= 0.2
    assert min(rates.values()) >= 0.9
    assert risk.apart.p_value[2] <= 0.001
    assert risk.of("s02", "within").value <= 0.2
    assert risk.of("s00", "within").value >= 0.6
    rows = risk.rows()
    assert rows[-1]["stimulus"] == "s02"
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_the_figure_without_an_attacker_sees_the_same_stimulus() -> None:
    share = stimulus_risk(people_who_show(("s02",)), attacks=("linkage",), seed=1).person_share
    assert abs(share[2]) < 0.15
    assert np.delete(share, 2).min() > 0.35


def test_names_that_stand_for_nobody_are_found_no_more_often_than_by_guessing() -> None:
    control = stimulus_risk(people_who_show(), attacks=("linkage",), seed=1).mean("control")
    # 120 questions at 1/20; one-sided at 1 in 1000.
    assert control.value <= 0.05 + 3.1 * math.sqrt(0.05 * 0.95 / 120)


def test_dealing_changes_owners_and_nothing_else() -> None:
    whole = people_who_show()
    other = dealt(whole, np.random.default_rng(1))
    assert set(other.keys) == set(whole.keys)
    assert np.array_equal(other.fixations.values, whole.fixations.values)
    assert (other.fixations.keys.person != whole.fixations.keys.person).mean() > 0.8
    cohort = gazeveil.simulate(5, 2, seconds=2, rate_hz=60, seed=1)
    recordings = dealt(RecordingSet(cohort), np.random.default_rng(1)).cohort
    assert recordings is not None
    assert [r.stimulus for r in recordings] == [r.stimulus for r in cohort]
    for ours, theirs in zip(recordings, cohort, strict=True):
        np.testing.assert_array_equal(ours.x_deg, theirs.x_deg)


def test_people_who_did_not_see_a_stimulus_count_neither_way() -> None:
    whole = people_who_show()
    some = whole.where(lambda key: key[:2] not in {("p00", "s00"), ("p01", "s00")})
    risk = stimulus_risk(some, attacks=("linkage",), seed=1)
    assert np.isnan(risk.across[0, :2]).all()
    assert np.isfinite(risk.across[1:]).all()
    assert risk.of("s00").n == 18
    assert risk.of("s00").value >= 0.9


def test_a_stimulus_of_three_people_is_left_out() -> None:
    few = {"p00", "p01", "p02"}
    some = people_who_show().where(lambda key: key[1] != "s00" or key[0] in few)
    risk = stimulus_risk(some, attacks=("linkage",), seed=1)
    assert risk.left_out == ("s00",)
    assert "s00" not in risk.stimuli


def test_a_release_is_attacked_from_raw_and_from_itself() -> None:
    raw = people_who_show()
    # The release turns every feature round: who learnt from raw recordings is led astray.
    table = raw.fixations
    release = trait_material(replace(table, values=-table.values))
    risk = stimulus_risk(raw, release, attacks=("linkage",), seed=1)
    assert set(risk.speakers) == {"linkage on release"}
    assert risk.mean().value >= 0.9
    alone = stimulus_risk(raw, attacks=("linkage",), seed=1)
    assert set(alone.speakers) == {"linkage on raw"}


def test_no_more_than_one_in_twenty_equal_cohorts_has_a_stimulus_named() -> None:
    def named(planted: float) -> float:
        rng = np.random.default_rng(11)
        found = 0
        for _ in range(200):
            able = rng.uniform(0.1, 0.9, size=24)[None, :] * np.ones((10, 1))
            able[3] = np.minimum(1.0, able[3] + planted)
            outcomes = (rng.uniform(size=able.shape) < able).astype(np.float64)
            outcomes[rng.uniform(size=able.shape) < 0.05] = np.nan
            found += told_apart(outcomes, seed=1, draws=199).count > 0
        return found / 200

    # At a level of 5 % more than 21 of 200 come about once in 1000 runs.
    assert named(0.0) <= 21 / 200
    assert named(0.5) >= 0.9


def test_outcomes_that_do_not_vary_tell_nothing_apart() -> None:
    apart = told_apart(np.ones((4, 6)), seed=1, draws=99)
    assert apart.count == 0
    assert apart.p_any == 1.0
    assert math.isnan(apart.least_difference)


def test_the_largest_difference_is_moved_to_the_mean() -> None:
    rng = np.random.default_rng(3)
    equal = told_apart((rng.uniform(size=(12, 30)) < 0.5).astype(np.float64), seed=1, draws=99)
    assert np.abs(equal.shrunk).max() < 0.6 * np.abs(equal.excess).max()
    outcomes: Floats = np.repeat(np.linspace(0, 1, 12)[:, None], 30, axis=1)
    clear = told_apart(outcomes, seed=1, draws=99)
    assert np.allclose(clear.shrunk, clear.excess, rtol=0.1)


def test_only_the_first_seconds_are_looked_at_where_asked() -> None:
    raw = RecordingSet(gazeveil.simulate(4, 2, seconds=6, rate_hz=60, seed=2))
    sides = sides_of(raw, raw, seconds=2.0)
    assert sides.galleries == ("raw",)
    assert sides.release.cohort is not None
    assert {len(r) for r in sides.release.cohort} == {120}
    with pytest.raises(ParameterError, match="seconds"):
        sides_of(people_who_show(), people_who_show(), seconds=2.0)


def test_what_cannot_be_compared_is_refused() -> None:
    raw = RecordingSet(gazeveil.simulate(4, 2, seconds=6, rate_hz=60, seed=2))
    with pytest.raises(DataError, match="release of pieces"):
        stimulus_risk(raw, protect(raw, RawPieces(piece_s=2.0), 1))
    with pytest.raises(DataError, match="Got 0 such stimuli"):
        stimulus_risk(raw.select(people=raw.persons[:3]))
    with pytest.raises(DataError, match="can attack this release"):
        stimulus_risk(people_who_show(), attacks=("steps",))
    with pytest.raises(ParameterError):
        KINDS["stimulus-risk"](attacks="linkage+nonsense")  # type: ignore[call-arg]


def test_halves_of_different_people_share_nothing() -> None:
    whole = people_who_show(stimuli=1)
    first, second = whole.halves()
    assert person_share(first, second) > 0.35
    stranger = dealt(second, np.random.default_rng(2))
    assert abs(person_share(first, stranger)) < 0.25


def test_real_clips_identify_and_names_dealt_anew_do_not() -> None:
    cohort = real_cohort("gazecom")
    part = cohort.select(people=sorted(cohort.people)[:12], stimuli=cohort.stimuli[:3])
    risk = stimulus_risk(RecordingSet(part), attacks=("linkage",), seed=1)
    across = risk.mean()
    assert across.low > across.chance
    assert risk.mean("control").low <= 1 / 12
