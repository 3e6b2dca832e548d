"""The attacker `ekyt`: parameters, bad input in one sentence, conformance, verification."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gazeveil import evaluate
from gazeveil.attacks.base import Scores
from gazeveil.attacks.conformance import check_attack
from gazeveil.attacks.identify.verification import (
    Ekyt,
    by_age,
    by_duration,
    by_gallery,
    enrolled_and_asked,
    verification_scores,
)
from gazeveil.attacks.registry import attack
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.simulate import simulate
from gazeveil.models.ekyt.weights import BatchPlan, EkytModel, RecordingMarks, train_ekyt
from gazeveil.models.ekyt.windows import VelocityInput, WindowSet
from gazeveil.models.training import StepPlan
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")

#: Small enough for a test: three people are told apart, not thousands.
QUICK = "ekyt:rate_hz=30,window_s=2,steps=3,people=4,windows=2,device=cpu"


@pytest.fixture(scope="module")
def people() -> Cohort:
    return Cohort(list(simulate(3, 3, 6.0, 60.0, seed=4, sessions=2)))


@pytest.fixture(scope="module")
def model(people: Cohort) -> EkytModel:
    windows = WindowSet.of(people, VelocityInput(30.0, 2.0))
    return train_ekyt(windows, StepPlan(3), BatchPlan(3, 2))[0]


def sides(cohort: Cohort) -> tuple[RecordingSet, RecordingSet]:
    first = cohort.stimuli[0]
    both = RecordingSet(cohort)
    return both.where(lambda k: k[1] != first), both.where(lambda k: k[1] == first)


def test_the_text_of_the_attacker_says_what_is_not_the_default() -> None:
    assert str(attack("ekyt")) == "ekyt"
    assert str(attack("ekyt:channels=gaze+head,steps=50")) == "ekyt:channels=gaze+head,steps=50"


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"channels": "eye"}, "'channels' parameter of ekyt must be one of gaze, gaze.head, head"),
        ({"rate_hz": 0}, "'rate_hz' parameter of ekyt must be a positive finite number"),
        ({"window_s": -1}, "'window_s' parameter of ekyt"),
        ({"steps": 0}, "'steps' parameter of ekyt must be a whole number of at least 1"),
        ({"people": 1}, "'people' parameter of ekyt must be a whole number of at least 2"),
        ({"windows": 1}, "'windows' parameter of ekyt must be a whole number of at least 2"),
        ({"weights": 3}, "'weights' parameter of ekyt must be text"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, object], sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        Ekyt(**parameters)  # type: ignore[arg-type]


def test_every_probe_is_scored_against_everybody_and_a_seed_repeats_it(people: Cohort) -> None:
    first, second, other = (attack(QUICK).identify(*sides(people), seed) for seed in (1, 1, 2))
    assert first.known == first.probes == tuple(sorted(people.people))
    np.testing.assert_array_equal(first.values, second.values)
    assert not np.array_equal(first.values, other.values)
    assert np.abs(first.values).max() <= 1 + 1e-9


def test_sides_of_different_rates_are_brought_to_the_lower_one(people: Cohort) -> None:
    gallery, probe = sides(people)
    assert probe.cohort is not None
    slow = RecordingSet(Cohort([r.resample(24.0) for r in probe.cohort]))
    scores = attack(QUICK).identify(gallery, slow, 1)
    assert np.isfinite(scores.values).all()
    assert np.ptp(scores.values) > 0


def _lost(cohort: Cohort) -> Cohort:
    return Cohort([r.with_(valid=np.zeros(len(r), dtype=bool)) for r in cohort])


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_lost, "needs windows of at least two.*Got 0"),
        (lambda c: c.select(people=[next(iter(c.people))]), "needs windows of at least two.*Got 1"),
        (lambda c: Cohort([r.slice(0, 30) for r in c]), "needs windows of at least two.*Got 0"),
    ],
)
def test_a_gallery_without_anything_to_learn_is_refused_in_a_sentence(
    people: Cohort, spoil, sentence: str
) -> None:
    gallery, probe = sides(people)
    assert gallery.cohort is not None
    with pytest.raises(DataError, match=sentence):
        attack(QUICK).identify(RecordingSet(spoil(gallery.cohort)), probe, 1)


def test_a_probe_without_windows_is_a_guess_and_others_are_not(people: Cohort) -> None:
    gallery, probe = sides(people)
    assert probe.cohort is not None
    somebody = next(iter(people.people))
    spoilt = [
        r.with_(valid=np.zeros(len(r), dtype=bool)) if r.person == somebody else r
        for r in probe.cohort
    ]
    scores = attack(QUICK).identify(gallery, RecordingSet(Cohort(spoilt)), 1)
    rows = dict(zip(scores.probes, scores.values, strict=True))
    assert (rows[somebody] == 0).all()
    assert all(np.ptp(row) > 0 for person, row in rows.items() if person != somebody)


def test_somebody_known_without_windows_is_the_least_likely(people: Cohort) -> None:
    gallery, probe = sides(people)
    assert gallery.cohort is not None
    somebody = next(iter(people.people))
    spoilt = [
        r.with_(valid=np.zeros(len(r), dtype=bool)) if r.person == somebody else r
        for r in gallery.cohort
    ]
    scores = attack(QUICK).identify(RecordingSet(Cohort(spoilt)), probe, 1)
    assert (scores.values[:, scores.known.index(somebody)] == -1).all()


def test_tables_and_a_missing_head_are_refused(people: Cohort) -> None:
    gallery, probe = sides(people)
    tables = RecordingSet(None, {"fixation": gallery.fixations})
    assert not attack(QUICK).can(tables)
    with pytest.raises(DataError, match="looks at samples"):
        attack(QUICK).identify(tables, probe, 1)
    both = attack(QUICK + ",channels=gaze+head")
    assert np.isfinite(both.identify(gallery, probe, 1).values).all()
    assert gallery.cohort is not None
    headless = RecordingSet(Cohort([r.with_(head_deg=None) for r in gallery.cohort]))
    with pytest.raises(DataError, match="needs the direction of the head"):
        both.identify(headless, probe, 1)


def test_weights_of_other_people_are_used_as_they_are(
    people: Cohort, model: EkytModel, tmp_path: Path
) -> None:
    model.save(tmp_path / "weights.npz")
    who = attack(f"ekyt:weights={tmp_path / 'weights.npz'},device=cpu")
    gallery, probe = sides(people)
    first, second = (who.identify(gallery, probe, seed) for seed in (1, 2))
    np.testing.assert_array_equal(first.values, second.values)
    assert gallery.cohort is not None
    with pytest.raises(DataError, match="No recording of the gallery has a window of 2 s"):
        who.identify(RecordingSet(_lost(gallery.cohort)), probe, 1)


def marked(model: EkytModel, cohort: Cohort, people: Sequence[str], file: Path) -> str:
    """The attacker with weights whose file marks the recordings of some people."""
    marks = RecordingMarks.of((r for r in cohort if r.person in people), "salt")
    replace(model, marks=marks).save(file)
    return f"ekyt:weights={file},device=cpu"


@pytest.mark.parametrize("mechanisms", [[], ["gaussian:sigma_deg=1"]])
def test_a_study_leaves_people_out_whom_the_weights_were_trained_on(
    model: EkytModel, tmp_path: Path, mechanisms: list[str]
) -> None:
    five = Cohort(list(simulate(5, 3, 6.0, 60.0, seed=11)))
    names = sorted(five.people)
    who = marked(model, five, names[:2], tmp_path / "weights.npz")
    scenarios = ["raw/raw", "private/private"] if mechanisms else ["raw/raw"]
    found = evaluate(
        five,
        mechanisms,
        attacks=[who],
        utilities=[],
        scenarios=scenarios,
        repetitions=1,
        seed=1,
        executor=1,
    )
    rates = found.frame.filter(found.frame["metric"] == "identification_rate")
    # Two of five are left out, also where their gaze is protected and no mark knows it.
    assert len(rates) == len(scenarios)
    assert rates["n"].to_list() == [3] * len(rates)
    assert rates["chance"].to_list() == pytest.approx([1 / 3] * len(rates))


def test_a_study_of_nobody_but_people_trained_on_is_refused_in_a_sentence(
    model: EkytModel, tmp_path: Path
) -> None:
    three = Cohort(list(simulate(3, 3, 6.0, 60.0, seed=11)))
    who = marked(model, three, sorted(three.people)[:2], tmp_path / "weights.npz")
    with pytest.raises(DataError, match=r"trained on 2 of these 3 people.*needs two to tell apart"):
        evaluate(three, [], attacks=[who], utilities=[], repetitions=1, seed=1, executor=1)


def test_pieces_are_not_attacked_with_weights_that_were_trained_on_their_people(
    model: EkytModel, tmp_path: Path
) -> None:
    five = Cohort(list(simulate(5, 3, 6.0, 60.0, seed=11)))
    who = marked(model, five, sorted(five.people)[:2], tmp_path / "weights.npz")
    pieces = "mosaic:epsilon=10,r_deg=2,piece_s=2,gap_s=0,crowd=3"
    found = evaluate(
        five, [pieces], attacks=[who], utilities=[], scenarios=["raw/private"], repetitions=1,
        seed=1, executor=1,
    )  # fmt: skip
    (failure,) = found.failures
    assert "trained on 2 of these 5 people, and pieces are named among" in failure["sentence"]


def test_weights_know_whom_they_were_trained_on(
    people: Cohort, model: EkytModel, tmp_path: Path
) -> None:
    who = attack(marked(model, people, tuple(people.people), tmp_path / "new.npz"))
    assert who.trained_on(RecordingSet(people)) == set(people.people)
    nobody = attack(marked(model, people, (), tmp_path / "old.npz"))
    assert nobody.trained_on(RecordingSet(people)) == frozenset()
    gallery, probe = sides(people)
    assert nobody.identify(gallery, probe, 1).probes == probe.persons


def test_a_probe_is_enrolled_and_asked_about_with_different_recordings(people: Cohort) -> None:
    windows = WindowSet.of(people, VelocityInput(30.0, 2.0))
    enrolled, asked = enrolled_and_asked(windows)
    assert not set(enrolled.owner) & set(asked.owner)
    assert set(enrolled.persons) == set(asked.persons) == set(people.people)
    one_each = windows.where(lambda k: k[1] == people.stimuli[0] and k[2] == "1")
    with pytest.raises(DataError, match="at least two people with two usable recordings"):
        enrolled_and_asked(one_each)


def test_pieces_hold_the_seconds_asked_for(people: Cohort, model: EkytModel) -> None:
    windows = WindowSet.of(people, model.setting)
    enrolled, asked = enrolled_and_asked(windows)
    short, long = (verification_scores(model, enrolled, asked, d) for d in (2.0, 4.0))
    assert len(short.probes) > len(long.probes) >= len(people.people)
    assert short.known == tuple(sorted(people.people))
    with pytest.raises(ParameterError, match="at least one window, 2 s"):
        verification_scores(model, enrolled, asked, 1.0)
    with pytest.raises(DataError, match="No recording holds 60 s"):
        verification_scores(model, enrolled, asked, 60.0)
    assert [v.value for v in by_duration(model, windows, (2.0, 4.0, 60.0))] == [2.0, 4.0]


def test_template_age_counts_sessions(people: Cohort, model: EkytModel) -> None:
    windows = WindowSet.of(people, model.setting)
    assert [(v.condition, v.value) for v in by_age(model, windows, 2.0)] == [("sessions", 1)]
    assert by_age(model, windows.where(lambda k: k[2] == "1"), 2.0) == ()


def test_larger_galleries_are_harder_to_search_and_no_harder_to_verify_in() -> None:
    rng = np.random.default_rng(0)
    names = tuple(f"p{i}" for i in range(60))
    scores = Scores(names, names, rng.normal(size=(60, 60)) + 2.0 * np.eye(60))
    small, large, whole = by_gallery(scores, (5, 30, 60, 100), seed=1)
    assert small.rank1 > large.rank1 > whole.rank1
    assert abs(small.eer - whole.eer) < 0.06
    assert (small.people, whole.people, whole.probes) == (5, 60, 60)


@pytest.mark.heavy
def test_the_conformance_kit_passes() -> None:
    results = check_attack(attack("ekyt:steps=10,windows=4,rate_hz=60,device=cpu"))
    assert [r for r in results if not r.passed] == []
