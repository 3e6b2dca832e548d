"""Attributes guessed from gaze: found where they show, at chance where they do not, never from
recordings of the same person.

Membership inference: certain for a raw release, weaker with larger groups, at chance under
differential privacy and for strangers.

The inference attacks behind one call: raw recordings and a release in, one result out.

Demographics with gaze (David-John et al. 2023): k-anonymous ranges stop nobody who also looks at
the gaze, and k-same stops it only inside the ranges.

Stimulus risk: a stimulus that hides people is named, one of many equal ones is not.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.base import InferenceAttack, Scores
from gazeveil.attacks.curves import auc, roc_area, roc_area_interval, tpr_at_fpr
from gazeveil.attacks.infer import KINDS
from gazeveil.attacks.infer.people import (
    AttributeInference,
    MembershipInference,
    demographic_attack,
    groups_of,
    judged,
    nearness,
)
from gazeveil.attacks.infer.stimulus_risk import StimulusComparison, told_apart
from gazeveil.attacks.result import InferenceResult
from gazeveil.attacks.vectors.kinds import centred, person_vectors
from gazeveil.errors import DataError, ParameterError
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.demographics import Demographics
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.ksame import KSameSelect
from tests.support.pieces import RawPieces
from tests.support.trait_people import Blind, Nearest, trait_material, trait_table


def infer(raw, release, attribute, seed=1, people=None, draws=99):
    if people is not None:
        raw = RecordingSet(raw.cohort, raw.tables, raw.pipeline, people)
    return AttributeInference(attribute, draws=draws).run(raw, release, seed)


def about(n=30, seed=1):
    rng = np.random.default_rng(seed)
    gender = rng.permutation(np.repeat(["female", "male"], [n - n // 2, n // 2]))
    return {
        f"p{i:02}": {"gender": str(gender[i]), "age": float(rng.integers(20, 70))} for i in range(n)
    }


def shown(effect, people, seed=1, stimuli=4):
    """People whose traits depend a little on gender and age."""
    table = trait_table(people=len(people), stimuli=stimuli, seed=seed, rows=3)
    values = table.values.copy()
    for p, a in people.items():
        rows = table.keys.person == p
        values[rows, 0] += effect * (a["gender"] == "male")
        values[rows, 1] += effect * (a["age"] - 45) / 15
    return trait_material(
        FeatureTable(values, table.columns, table.keys, table.bounds), about=people
    )


def test_an_attribute_that_shows_is_guessed():
    recording_set = shown(4.0, about())
    found = infer(recording_set, recording_set, "gender", seed=1, draws=199)
    assert found.result("accuracy").value > 0.8
    assert found.result("accuracy").chance == 0.5
    assert found.result("auc").value > 0.9
    assert found.result("auc").p_value == pytest.approx(1 / 200)
    guessed = [g == about()[p]["gender"] for p, g in found.details["guesses"].items()]
    assert np.mean(guessed) == found.result("accuracy").value


def test_a_number_that_shows_is_guessed():
    recording_set = shown(3.0, about())
    found = infer(recording_set, recording_set, "age", seed=1, draws=199)
    assert found.result("correlation").value > found.result("correlation").low > 0.3
    assert found.result("correlation").p_value == pytest.approx(1 / 200)
    assert found.result("mae").value < 0.8 * found.result("mae").chance
    assert found.result("auc").value > 0.75


def test_an_attribute_that_does_not_show_is_at_chance_although_people_are_recognisable():
    # Traits and many recordings make everybody recognisable: an attacker that saw the person in
    # training would guess every attribute.
    accuracy, auc, correlation, p = [], [], [], []
    for seed in range(20):
        people = about(n=24, seed=seed)
        recording_set = shown(0.0, people, seed=100 + seed)
        gender, age = (
            infer(recording_set, recording_set, a, seed=1, draws=19) for a in ("gender", "age")
        )
        accuracy.append(gender.result("accuracy").value)
        auc.append(gender.result("auc").value)
        correlation.append(age.result("correlation").value)
        p += [gender.result("auc").p_value, age.result("correlation").p_value]
    assert abs(np.mean(accuracy) - 0.5) < 4 * math.sqrt(0.25 / (20 * 24))
    assert abs(np.mean(auc) - 0.5) < 0.08
    assert abs(np.mean(correlation)) < 0.15
    assert np.mean(np.array(p) <= 0.05) < 0.16


def test_people_without_the_attribute_are_left_out_and_counted():
    people = about(12)
    people["p03"] = {"gender": "", "age": math.nan}
    people["p04"] = {}
    people["p05"]["gender"] = "other"  # the only one: nobody to learn this class from
    recording_set = shown(
        2.0, people | {"p03": {"gender": "male", "age": 30}, "p04": {"gender": "male", "age": 30}}
    )
    found = infer(recording_set, recording_set, "gender", seed=1, people=people, draws=19)
    assert found.details["left_out"] == 3
    assert not {"p03", "p04", "p05"} & set(found.details["guesses"])
    age = infer(recording_set, recording_set, "age", people=people, draws=19)
    assert age.details["left_out"] == 2


def test_three_classes_have_an_accuracy_and_no_area():
    people = {f"p{i:02}": {"hand": "lrb"[i % 3]} for i in range(12)}
    found = infer(
        trait_material(people=12, about=people),
        trait_material(people=12, about=people),
        "hand",
        seed=1,
    )
    assert [r.metric for r in found.results] == ["accuracy"]
    assert found.result("accuracy").chance == pytest.approx(1 / 3)


def test_too_few_people_or_one_value_are_refused():
    with pytest.raises(DataError, match="at least 6 people"):
        infer(trait_material(people=4, about=about(4)), trait_material(people=4), "gender", seed=1)
    same = {f"p{i:02}": {"gender": "male"} for i in range(10)}
    with pytest.raises(DataError, match="Got 10 people with 1"):
        infer(trait_material(people=10, about=same), trait_material(people=10), "gender", seed=1)
    with pytest.raises(DataError, match="Got 0 people"):
        infer(
            trait_material(people=10, about=about(10)),
            trait_material(people=10),
            "shoe size",
            seed=1,
        )
    with pytest.raises(DataError, match="must be text or a finite number"):
        infer(
            trait_material(people=10, about={"p00": {"age": [3]}}),
            trait_material(people=10),
            "age",
            seed=1,
        )


def test_a_release_that_holds_nothing_tells_nothing_though_the_training_side_holds_the_person():
    cohort = gazeveil.simulate(8, 2, seconds=4, rate_hz=60, seed=1).load()
    blank = [
        r.with_(
            x_deg=np.full(len(r), np.nan),
            y_deg=np.full(len(r), np.nan),
            valid=np.zeros(len(r), dtype=bool),
        )
        for r in cohort
    ]
    found = infer(
        RecordingSet(cohort),
        RecordingSet(gazeveil.Cohort(blank, cohort.people)),
        "gender",
        seed=1,
        draws=19,
    )
    assert found.result("auc").value == 0.5
    assert found.result("auc").p_value == 1.0


def test_person_vectors_forget_the_stimulus_and_bridge_what_was_not_measured():
    table = trait_table(people=4, stimuli=3, noise=0.0, rows=2)
    values = table.values.copy()
    values[table.keys.stimulus == "s01"] += 100.0
    values[(table.keys.person == "p00") & (table.keys.stimulus == "s02"), 0] = np.nan
    plain, moved = (
        person_vectors(centred(trait_material(FeatureTable(v, table.columns, table.keys))))
        for v in (table.values, values)
    )
    assert moved.values[:, 1:12] == pytest.approx(plain.values[:, 1:12])
    assert np.isfinite(moved.values[0, 0])
    assert moved.people == ("p00", "p01", "p02", "p03")


def test_a_release_of_window_features_alone_has_person_vectors_too():
    table = trait_table(people=4, stimuli=2, rows=5)
    found = person_vectors(centred(RecordingSet(tables={"window": table})))
    assert found.values.shape == (4, 24)
    assert found.columns[0] == "window_f0_mean"


def test_a_stimulus_one_person_saw_alone_loses_the_mean_over_everything():
    keys = Keys(["a", "b", "c"], ["s", "s", "alone"], ["1"] * 3, [""] * 3, [0] * 3)
    found = centred(trait_material(FeatureTable([[1.0], [3.0], [8.0]], ("f",), keys)))
    assert found.values[:, 0].tolist() == [-1.0, 1.0, 4.0]


@pytest.fixture(scope="module")
def crowd():
    return trait_material(people=40, stimuli=6, rows=8, seed=3)


def by(name, **parameters):
    """Publishes tables by a mechanism."""
    chosen = mechanism(name, **parameters)
    return lambda recording_set, seed: RecordingSet(
        tables={"fixation": chosen.release(recording_set.fixations, seed=seed).data}
    )


def membership(release, targets, members):
    """The area under the curve, of raw recordings against a release."""
    return judged(nearness(release, targets), members, "").result("auc")


def play(crowd, publish, rounds):
    """A random half of the people is published, and the attacker holds other stimuli of all."""
    rng = np.random.default_rng(1)
    areas = []
    for seed in range(rounds):
        members = rng.permutation(crowd.persons)[: len(crowd.persons) // 2].tolist()
        mixed = rng.permutation(crowd.stimuli).tolist()
        shown, held = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
        release = publish(crowd.select(people=members, stimuli=shown), seed)
        areas.append(membership(release, crowd.select(stimuli=held), members).value)
    return float(np.mean(areas))


def test_a_raw_release_tells_who_took_part_from_other_recordings(crowd):
    people, half = list(crowd.persons), crowd.stimuli[:3]
    release = crowd.select(people=people[:20], stimuli=half)
    found = MembershipInference().run(crowd.select(stimuli=crowd.stimuli[3:]), release)
    assert found.result("auc").value > 0.97
    strict = found.result("tpr_at_fpr_0.001")
    assert strict.value > 0.8
    assert strict.chance < 0.05


def test_larger_groups_tell_less_and_redrawn_ones_more(crowd):
    two, four, eight = (play(crowd, by("k-same-select", k=k), rounds=12) for k in (2, 4, 8))
    redrawn = play(crowd, by("k-same-select", k=4, reading="published"), rounds=12)
    assert two > four > eight
    assert two > 0.75
    assert eight > 0.5  # k-anonymity does not promise that taking part stays secret
    assert redrawn > four + 0.1


def test_differential_privacy_and_marginals_leave_chance(crowd):
    for publish in (by("dp-k-same", k=4, epsilon=1), by("marginals", k=4)):
        assert abs(play(crowd, publish, rounds=12) - 0.5) < 0.12


def test_a_release_of_strangers_says_nothing_of_anybody():
    strangers = trait_material(people=20, stimuli=3, rows=8, seed=99)
    values = []
    for seed in range(12):
        targets = trait_material(people=40, stimuli=3, rows=8, seed=seed)
        members = np.random.default_rng(seed).permutation(targets.persons)[:20].tolist()
        values.append(membership(strangers, targets, members).value)
    assert abs(np.mean(values) - 0.5) < 0.08


def test_the_names_of_the_release_are_not_looked_at(crowd):
    people = list(crowd.persons)
    inside = crowd.select(people=people[:20], stimuli=crowd.stimuli[:3])
    table = inside.fixations
    other = Keys(
        np.char.add("x", table.keys.person),
        table.keys.stimulus,
        table.keys.session,
        table.keys.task,
        table.keys.index,
    )
    renamed = RecordingSet(
        tables={"fixation": FeatureTable(table.values, table.columns, other, table.bounds)}
    )
    targets = crowd.select(stimuli=crowd.stimuli[3:])
    assert nearness(renamed, targets) == nearness(inside, targets)


def test_a_release_of_windows_is_compared_with_windows():
    whole = trait_table(people=20, stimuli=4, rows=6)
    targets = RecordingSet(tables={"window": whole, "fixation": whole})
    members = targets.persons[:10]
    release = RecordingSet(tables={"window": whole.select(people=members)})
    assert membership(release, targets, members).value > 0.9


def test_targets_of_one_kind_are_refused(crowd):
    with pytest.raises(DataError, match="took part and targets who did not"):
        membership(crowd, crowd, crowd.persons)


# --- telling two groups apart
# --------------------------------------------------------------------------------------------------


def test_the_area_counts_pairs_and_ties():
    assert roc_area([3, 2], [1, 0]) == 1.0
    assert roc_area([1], [1]) == 0.5
    assert roc_area([2, 1], [1, 1.5]) == pytest.approx((1 + 1 + 0.5 + 0) / 4)
    assert roc_area([np.nan], [0.0]) == 0.0


def test_the_interval_of_an_area_has_a_width_even_where_nothing_overlaps():
    low, high = roc_area_interval(1.0, 12, 12)
    assert high == 1.0
    assert 0.7 < low < 0.95


def test_the_interval_of_an_area_covers_nineteen_times_in_twenty():
    rng = np.random.default_rng(1)
    truth = 0.76024993890652  # P(N(1, 1) > N(0, 1)) = Phi(1 / sqrt(2))
    inside = 0
    for _ in range(200):
        found = auc(rng.normal(1, 1, 20), rng.normal(0, 1, 20))
        inside += found.low <= truth <= found.high
    assert 0.9 < inside / 200 < 0.995


def test_hits_at_few_false_alarms_of_a_useless_score_are_as_many_as_chance_says():
    rng = np.random.default_rng(2)
    found = [tpr_at_fpr(rng.normal(size=50), rng.normal(size=99), 0.1) for _ in range(200)]
    assert found[0].chance == pytest.approx(0.1)
    assert np.mean([f.value for f in found]) == pytest.approx(0.1, abs=0.02)
    assert tpr_at_fpr([5.0, 1.0], [2.0, 3.0], 0.001).value == 0.5
    with pytest.raises(ParameterError, match="from 0 to below 1"):
        tpr_at_fpr([1.0], [1.0], 1.0)
    with pytest.raises(DataError, match="at least one person in each"):
        auc([], [1.0])


@pytest.fixture(scope="module")
def raw() -> RecordingSet:
    cohort = gazeveil.simulate(8, 3, seconds=8, rate_hz=100, seed=3)
    people = {
        p: {"gender": "fm"[i % 2], "age": 20 + 5 * i} for i, p in enumerate(sorted(cohort.people))
    }
    return RecordingSet(Cohort(cohort.items, people), people=people)


def test_every_kind_has_a_name_and_a_purpose_in_one_line() -> None:
    assert set(KINDS) == {
        "attributes",
        "membership",
        "record-linkage",
        "demographics",
        "relinking",
        "stimulus-risk",
    }
    for kind, attack in KINDS.items():
        assert issubclass(attack, InferenceAttack)
        assert attack.name == attack().kind == kind
        assert attack.summary
        assert "\n" not in attack.summary


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_takes_raw_recordings_and_a_release(raw: RecordingSet, kind: str) -> None:
    people = raw.persons[:5] if kind == "membership" else raw.persons
    release = raw.select(people=people)
    if KINDS[kind].pieces == "yes":
        release = protect(raw, RawPieces(piece_s=2.0), 1)
    quick = {"attacks": "linkage", "draws": 99} if kind == "stimulus-risk" else {}
    result = KINDS[kind](**quick).run(raw, release, seed=1)
    assert result.kind == kind
    assert result.results
    told = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [r["metric"] for r in told["results"]] == [r.metric for r in result.results]


def test_an_unprotected_release_gives_its_people_away(raw: RecordingSet) -> None:
    for kind in ("record-linkage", "demographics"):
        assert KINDS[kind]().run(raw, raw, seed=1).results[0].value == 1.0


#: Ages and genders of the 31 people of the supplement.
AGES = (
    43,
    27,
    29,
    32,
    28,
    26,
    23,
    30,
    28,
    26,
    52,
    26,
    35,
    50,
    33,
    31,
    32,
    36,
    38,
    29,
    23,
    31,
    27,
    31,
    23,
    24,
    23,
    27,
    23,
    23,
    32,
)
WOMEN = frozenset((1, 4, 6, 8, 20, 21, 24))
PEOPLE = {f"p{i:02}": {"age": a, "gender": "F" if i in WOMEN else "M"} for i, a in enumerate(AGES)}


def sides(seed=1):
    """A table to publish and other recordings of the same 31 people that the attacker holds."""
    whole = trait_table(people=31, stimuli=12, seed=seed)
    first = np.isin(whole.keys.stimulus, [f"s{i:02}" for i in range(6)])
    return whole.where(first), trait_material(whole.where(~first))


def rate(table, probe, released, attack=None):
    return demographic_attack(attack or Nearest(), trait_material(table), probe, released, seed=1)


@pytest.mark.parametrize(
    ("k", "sizes"), [(4, (4, 5, 6, 7, 9)), (6, (6, 7, 9, 9)), (8, (8, 10, 13)), (15, (15, 16))]
)
def test_the_supplements_groups_have_its_sizes(k, sizes):
    groups = groups_of(Demographics(k, reading="published").release(PEOPLE).data)
    assert tuple(sorted(list(groups.values()).count(g) for g in set(groups.values()))) == sizes


@pytest.mark.parametrize("k", [4, 6, 8, 15])
def test_demographics_alone_leave_a_guess_and_the_gaze_names_the_person(k):
    released = Demographics(k, reading="published").release(PEOPLE).data
    table, probe = sides()
    result, _ = rate(table, probe, released)
    assert result.chance <= 1 / k
    assert result.value > 0.8
    assert result.p_value < 1e-6
    blind, _ = rate(table, probe, released, Blind())
    assert blind.low <= blind.chance <= blind.high


def test_k_same_across_the_ranges_does_not():
    # Groups of 4 over everybody, ranges of at least 4: the filter leaves few of a target's group,
    # often the target alone.
    released = Demographics(4).release(PEOPLE).data
    across = []
    for seed in range(6):
        table, probe = sides(seed)
        across.append(rate(KSameSelect(4).release(table, seed=seed).data, probe, released)[0].value)
    assert np.mean(across) > 0.25 + 3 * math.sqrt(0.25 * 0.75 / (31 * 6))


def test_filtering_first_names_people_of_one_group_only():
    released = Demographics(4).release(PEOPLE).data
    table, probe = sides()
    groups = groups_of(released)
    _, scores = rate(table, probe, released)
    for row, person in enumerate(scores.probes):
        assert {
            groups[scores.known[i]] for i in np.flatnonzero(np.isfinite(scores.values[row]))
        } == {groups[person]}


def test_somebody_without_a_score_is_still_a_candidate_inside_the_group():
    class Lost(Nearest):
        def identify(self, gallery, probe, seed):
            names = gallery.persons, probe.persons
            return Scores(*names, np.full((len(names[1]), len(names[0])), np.nan))

    released = Demographics(4).release(PEOPLE).data
    result, scores = rate(*sides(), released, Lost())
    assert np.isfinite(scores.values).sum(axis=1).min() >= 4
    assert result.value == pytest.approx(result.chance)


def test_people_without_released_demographics_are_named():
    table, probe = sides()
    released = dict(Demographics(4).release(PEOPLE).data)
    del released["p03"]
    with pytest.raises(DataError, match="'p03' has no released demographics"):
        rate(table, probe, released)


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
