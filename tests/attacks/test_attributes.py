"""Attributes guessed from gaze: found where they show, at chance where they do not, never from
recordings of the same person.
"""

import math

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.infer.attributes import AttributeInference
from gazeveil.attacks.vectors.kinds import centred, person_vectors
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from tests.support.trait_people import trait_material, trait_table


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
