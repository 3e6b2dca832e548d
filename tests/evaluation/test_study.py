"""What a study is: how it is written down, what it refuses before any work, which cells it has, how
it splits people and stimuli.

A protected copy that would look safe for a reason that is no protection: another rate, or names
that were exchanged.

Inference attacks among the attacks of a study.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gazeveil
from gazeveil import evaluate, simulate
from gazeveil.attacks import registry
from gazeveil.attacks.base import Attack
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.evaluation.plan import Cell, plan, seed_of
from gazeveil.evaluation.releases import split_of
from gazeveil.evaluation.results import Results, frame_of, outcomes_of
from gazeveil.evaluation.run import CopyWarning, doubt_about_names, study_of_copy
from gazeveil.evaluation.sources import Files, Simulated, fingerprint, opened
from gazeveil.evaluation.study import Study, attacker
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from tests.support.places import ROOT
from tests.support.small_attacks import Duration, Learning, Place, Shift, Twin

SMALL = """
name = "small"
seed = 7
repetitions = 2
mechanisms = ["gaussian:sigma_deg=5", "k-same-select:k=2"]
attacks = ["rbfn"]
scenarios = ["private/private"]
train = 0.5

[simulate]
people = 4
stimuli = 3
seconds = 2
rate_hz = 60
seed = 1
sessions = 2

[preparation]
detector = "ivt"
setting = "ren2024"
window_s = 1.0
"""


def people(count: int = 4, stimuli: int = 4, **more: object) -> Cohort:
    return gazeveil.simulate(count, stimuli, 1.0, 60.0, seed=1, **more)  # type: ignore[arg-type]


def small(**settings: object) -> Study:
    given: dict[str, object] = {
        "source": people(),
        "attacks": (Place(),),
        "repetitions": 2,
        **settings,
    }
    return Study(**given)  # type: ignore[arg-type]


def written(folder: Path, text: str) -> Path:
    place = folder / "study.toml"
    place.write_text(text, encoding="utf-8")
    return place


def test_a_file_says_the_same_as_python(tmp_path: Path) -> None:
    study = Study.read(written(tmp_path, SMALL))
    source = Simulated(4, 3, 2, 60, seed=1, options={"sessions": 2})
    preparation = FeaturePipeline("ivt", {"setting": "ren2024"}, window_s=1.0)
    same = Study(
        source,
        ("gaussian:sigma_deg=5", "k-same-select:k=2"),
        ("rbfn",),
        (),
        ("private/private",),
        2,
        7,
        "small",
        train=0.5,
        preparation=preparation,
    )  # type: ignore[arg-type]
    assert study.describe() == same.describe()
    assert study.source == same.source
    assert study.preparation.window_s == 1.0
    assert (
        len(opened(study.source, study.people, study.stimuli, study.preparation).keys) == 4 * 3 * 2
    )


def test_paths_are_relative_to_the_file_or_to_the_data_folder_and_else_the_simulation_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(2, 2).write(tmp_path / "data" / "mine")
    (tmp_path / "studies").mkdir()
    text = 'attacks = ["rbfn"]\n[cohort]\npath = "{}"\npeople = ["p2"]\nstimuli = 1\n'
    place = written(tmp_path / "studies", text.format("../data/mine"))
    study = Study.read(place)
    assert isinstance(study.source, Files)
    assert opened(study.source, study.people, study.stimuli, study.preparation).keys == (
        ("p2", "free-viewing-1", "1", "free-viewing"),
    )
    monkeypatch.delenv("GAZEVEIL_DATA", raising=False)
    written(tmp_path / "studies", text.format("mine"))
    with pytest.raises(GazeveilError, match="there is no such file or folder"):
        Study.read(place)
    monkeypatch.setenv("GAZEVEIL_DATA", str(tmp_path / "data"))
    assert isinstance(Study.read(place).source, Files)
    written(
        tmp_path / "studies",
        text.format("nowhere")
        + "\n[simulate]\npeople = 2\nstimuli = 2\nseconds = 1\nrate_hz = 60\n",
    )
    assert isinstance(Study.read(place).source, Simulated)


def test_names_of_people_that_are_not_there_are_refused() -> None:
    with pytest.raises(GazeveilError, match=r"Did you mean 'p1'"):
        opened(people(), ("p11",), None, FeaturePipeline())
    with pytest.raises(GazeveilError, match="asks for 9 people and the cohort has 4"):
        opened(people(), 9, None, FeaturePipeline())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ('mechanisms = ["gausian:sigma_deg=1"]', "Did you mean 'gaussian'"),
        ('attacks = ["linkag"]', "Did you mean 'linkage'"),
        ('utilities = ["salency"]', "Did you mean 'saliency'"),
        ('scenarios = ["private/privat"]', "Did you mean 'private/private'"),
        ('mechanisms = ["gaussian:sigma=1"]', "Did you mean 'sigma_deg'"),
        ('attack = ["rbfn"]', "Did you mean 'attacks'"),
        ('mechanisms = ["temporal:K=3", "temporal:K=3"]', "more than once under 'mechanisms'"),
        ('scenarios = ["raw/private", "raw/private"]', "more than once under 'scenarios'"),
        ('attacks = ["rbfn", "rbfn:knowledge=black-box"]', "more than once under 'attacks'"),
        ('mechanisms = ["heatmap-laplace:epsilon=1"]', "releases maps"),
        ('mechanisms = ["demographics:k=2"]', "releases attributes of people"),
        ('scenarios = ["raw/raw"]\nmechanisms = ["temporal:K=3"]', "has no place for a mechanism"),
        ('events = ["carried"]\nmechanisms = ["k-same-select:k=2"]', "cannot be carried"),
        ("attacks = []", "needs something to measure"),
        ("scenarios = []", "at least one scenario"),
        ("train = 1.0", "above 0 and below 1"),
        ("repetitions = 0", "at least 1"),
        ("seed = -1", "at least 0"),
        ('split = "stimuli"', "Did you mean 'stimulus'"),
        ('tables = "window"', "Did you mean 'windows'"),
        ("preparation = 3", "section of its own"),
        ("mechanisms = 3", "must be a list"),
        ("[cohort]\npeople = 4\n[simulation]\nx = 1", "Did you mean 'simulate'"),
        ("[simulate]\npeople = 4", "needs 'stimuli'"),
        (
            "[simulate]\npeople = 4\nstimuli = 2\nseconds = 1\nrate_hz = 60\ntask = 'readin'",
            "Did you mean 'reading'",
        ),
        (
            "[simulate]\npeople = 4\nstimuli = 2\nseconds = 1\nrate_hz = 60\nrate = 60",
            "no option 'rate'",
        ),
        ("[preparation]\ndetector = 'itv'", "Did you mean 'ivt'"),
        ("[preparation]\ndetector = 'ivt'\nseting = 'george'", "Did you mean 'setting'"),
        ("[preparation]\nwindow_s = 0", "positive"),
        ("[cohort]\npath = 'x'\nformt = 'csv'", "Did you mean 'format'"),
        ("= 3", "is not TOML"),
    ],
)
def test_a_contradictory_file_is_refused_in_one_sentence_that_names_it(
    tmp_path: Path, change: str, sentence: str
) -> None:
    base = (
        'attacks = ["rbfn"]\n'
        if not change.startswith("attacks") and "attacks =" not in change
        else ""
    )
    tail = (
        ""
        if "[simulate]" in change
        else "\n[simulate]\npeople = 4\nstimuli = 2\nseconds = 1\nrate_hz = 60\n"
    )
    with pytest.raises(GazeveilError, match=sentence.replace("(", r"\(")) as refused:
        Study.read(written(tmp_path, base + change + tail))
    assert "study.toml" in str(refused.value)
    assert "\n" not in str(refused.value)


def fixations() -> RecordingSet:
    return RecordingSet(None, {"fixation": gazeveil.event_features(people(), kind="fixation")})


def only(cohort: Cohort, wanted: Callable[[str, str], bool]) -> Cohort:
    return Cohort([r for r in cohort if wanted(r.person, r.stimulus)], cohort.people)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"source": people(1, 3)}, "at least two people to tell apart, and the study has 1"),
        ({"source": people(3, 1)}, "none of the 3 people did"),
        ({"source": only(people(3, 3), lambda p, s: p[1:] == s[-1])}, "none of the 3 people did"),
        ({"split": "session"}, "at least two people with two sessions"),
        (
            {"source": fixations(), "attacks": (Duration(),), "mechanisms": ("temporal:K=3",)},
            "temporal protects samples, and the study's cohort holds tables",
        ),
        (
            {
                "source": fixations(),
                "attacks": (Duration(),),
                "mechanisms": ("lpa:epsilon=1",),
                "tables": "windows",
            },
            "holds fixation. Set tables = 'events'",
        ),
        (
            {"source": fixations(), "attacks": (Place(),)},
            "place cannot use the recordings given, which hold tables of features only",
        ),
    ],
)
def test_what_the_recordings_do_not_allow_is_refused_before_any_work(
    settings: dict[str, object], sentence: str
) -> None:
    study = small(**settings)
    with pytest.raises(GazeveilError, match=sentence):
        plan(study, opened(study.source, None, None, study.preparation))


def cells(study: Study) -> list[Cell]:
    return [
        c
        for c in plan(study, opened(study.source, None, None, study.preparation)).cells
        if c.kind != "about"
    ]


def test_the_baseline_is_always_there_and_cells_are_the_product() -> None:
    study = small(
        mechanisms=("gaussian:sigma_deg=5", "temporal:K=3"),
        scenarios=("private/raw", "private/private"),
        utilities=(Shift(), Learning()),
    )
    found = cells(study)
    none = [c for c in found if c.mechanism == "none"]
    assert {(c.what, c.scenario) for c in none} == {
        ("place", "raw/raw"),
        ("shift", "raw/raw"),
        ("learning", "raw/raw"),
    }
    # A comparison without training or noise is the same in every repetition.
    assert [c.repetition for c in none if c.what == "shift"] == [0]
    protected = [c for c in found if c.mechanism != "none"]
    assert len([c for c in protected if c.kind == "attack"]) == 2 * 2 * 2
    assert {c.scenario for c in protected if c.what == "shift"} == {"raw/private"}
    assert {c.scenario for c in protected if c.what == "learning"} == {
        "private/raw",
        "private/private",
    }
    assert len(found) == len(set(found))
    assert {c.mechanism for c in cells(small())} == {"none"}


def test_a_battery_is_unfolded_where_a_study_is_made_and_its_name_stays() -> None:
    strong = small(attacks="strong")
    assert [str(a) for a in strong.attacks] == list(registry.battery("strong"))
    assert strong.describe()["battery"] == "strong battery"
    assert replace(strong, repetitions=3).battery == "strong battery"
    both = small(attacks=("lda", "quick", Place()))
    assert [str(a) for a in both.attacks] == ["rbfn", "linkage", "lda", "place"]
    assert both.battery == "quick battery and 2 more"
    assert small().battery == "no battery, chosen one by one"
    nobody = small(attacks="none", utilities=("density",))
    assert (nobody.attacks, nobody.battery) == ((), "nobody")


def test_cells_that_would_only_repeat_another_are_left_out_and_said() -> None:
    attacks: tuple[Attack, ...] = (
        Place(knowledge="white-box"),
        Place(denoiser="lowpass"),
        Twin(),
        Duration(denoiser="lowpass"),
    )
    study = small(
        mechanisms=("gaussian:sigma_deg=5", "k-same-select:k=2"),
        attacks=attacks,
        scenarios=("private/raw", "raw/private", "release/release"),
    )
    planned = plan(study, opened(study.source, None, None, study.preparation))
    by_attack: dict[str, set[str]] = {}
    for c in planned.cells:
        if c.kind == "attack" and c.mechanism.startswith("gaussian"):
            by_attack.setdefault(c.what, set()).add(c.scenario)
    assert by_attack == {
        "place:knowledge=white-box": {"raw/private"},
        "place:denoiser=lowpass": {"private/raw", "raw/private", "release/release"},
        "twin": {"private/raw", "raw/private"},
        "duration:denoiser=lowpass": {"private/raw", "raw/private", "release/release"},
    }
    table_cells = {
        c.what for c in planned.cells if c.mechanism.startswith("k-same") and c.kind == "attack"
    }
    assert table_cells == {"twin"}
    # What would only repeat another figure comes last and is counted: nothing is missing for it.
    repeated = planned.left_out[len(planned.left_out) - planned.repeats :]
    assert any("white-box in private/raw is the black-box attacker again" in s for s in repeated)
    assert not any("cannot use" in s for s in repeated)
    assert any(
        "place:denoiser=lowpass cannot use a release of k-same-select, which holds fixation and"
        " saccade tables" in s
        for s in planned.left_out
    )


def test_batches_hold_the_cells_of_one_mechanism_repetition_and_way_of_finding_events() -> None:
    study = small(mechanisms=("gaussian:sigma_deg=5",), events=("redetected", "carried"))
    planned = plan(study, opened(study.source, None, None, study.preparation))
    batches = planned.batches(frozenset(planned.cells))
    assert sorted(c for b in batches for c in map(str, b.cells)) == sorted(map(str, planned.cells))
    for batch in batches:
        assert {(c.mechanism, c.repetition, c.events) for c in batch.cells} == {
            (batch.mechanism, batch.repetition, batch.events)
        }
    # The baseline's events are found once; a mechanism's once per way.
    assert {c.events for c in planned.cells if c.mechanism == "none"} == {"redetected"}
    assert {c.events for c in planned.cells if c.mechanism != "none" and c.kind == "attack"} == {
        "redetected",
        "carried",
    }


@pytest.mark.parametrize(
    ("share", "learnt"), [(0.75, 6), (0.5, 4), (0.25, 2), (0.01, 1), (0.99, 7)]
)
def test_a_split_by_stimulus_has_the_asked_share_and_leaves_both_sides_to_everybody(
    share: float, learnt: int
) -> None:
    keys = opened(people(3, 8), None, None, FeaturePipeline()).keys
    splits = [split_of(small(train=share), keys, r) for r in range(6)]
    for split in splits:
        gallery, probe = ({k for k in keys if side(k)} for side in (split.gallery, split.probe))
        assert gallery | probe == set(keys)
        assert not gallery & probe
        assert len({k[1] for k in gallery}) == learnt
        assert split.people == ("p1", "p2", "p3")
        assert split.left_out == 0
    assert len({frozenset(k[1] for k in keys if s.gallery(k)) for s in splits}) > 1
    again = split_of(small(train=share, mechanisms=("temporal:K=3",)), keys, 0)
    assert {k for k in keys if again.gallery(k)} == {k for k in keys if splits[0].gallery(k)}


def test_people_who_lack_a_side_are_left_out_and_counted() -> None:
    keys = (*((p, s, "1", "") for p in "abc" for s in "xyz"), ("d", "x", "1", ""))
    split = split_of(small(), keys, 0)
    assert split.people == ("a", "b", "c")
    assert split.left_out == 1
    assert not any(split.gallery(k) or split.probe(k) for k in keys if k[0] == "d")


def test_a_sparse_design_is_split_so_that_as_many_people_as_possible_stay() -> None:
    # Each person saw two of eight stimuli: a single draw of half of them leaves only about half of
    # the people.
    rng = np.random.default_rng(3)
    keys = tuple((f"p{i}", f"s{j}", "1", "") for i in range(8) for j in rng.permutation(8)[:2])
    assert np.mean([len(split_of(small(train=0.5), keys, r).people) for r in range(10)]) > 6


def test_a_split_by_session_asks_about_the_last_one() -> None:
    keys = (
        *((p, s, e, "") for p in "ab" for s in "xy" for e in ("2", "9", "10")),
        ("c", "x", "1", ""),
    )
    split = split_of(small(split="session"), keys, 0)
    assert {k[2] for k in keys if split.probe(k)} == {"10"}
    assert {k[2] for k in keys if split.gallery(k)} == {"2", "9"}
    assert split.left_out == 1


def test_seeds_follow_from_words_alone() -> None:
    assert seed_of(1, "a", 2) == seed_of(1, "a", 2) == 1785246165
    assert (
        len({seed_of(s, *w) for s in (0, 1) for w in (("a",), ("a", "b"), ("ab",), ("b", "a"))})
        == 8
    )
    assert 0 <= seed_of(0, "x") < 2**31


def test_a_fingerprint_is_of_what_recordings_hold_and_not_of_where_they_lie(tmp_path: Path) -> None:
    cohort = people(2, 2).load()
    here = fingerprint(cohort, RecordingSet(cohort))
    cohort.write(tmp_path / "a")
    files = Files(str(tmp_path / "a"))
    assert fingerprint(files, opened(files, None, None, FeaturePipeline())) == here
    moved = Cohort(
        [cohort[0].with_(x_deg=np.roll(cohort[0].x_deg, 1)), *list(cohort)[1:]], cohort.people
    )
    assert fingerprint(moved, RecordingSet(moved)) != here
    older = Cohort(list(cohort), {p: {**a, "age": 99} for p, a in cohort.people.items()})
    assert fingerprint(older, RecordingSet(older)) != here
    assert fingerprint(cohort, RecordingSet(Cohort(list(cohort)[::-1], cohort.people))) == here


def test_the_study_of_the_manual_can_be_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "howto" / "evaluate.md").read_text(encoding="utf-8")
    text = page.split("```toml")[1].split("```")[0]
    (tmp_path / "recordings").mkdir()
    (tmp_path / "boxes.toml").write_text("")
    study = Study.read(written(tmp_path, text))
    assert str(study.utilities[1]) == f"aoi:areas={tmp_path / 'boxes.toml'}"
    assert [str(a) for a in study.attacks] == [*registry.battery("strong"), "lda"]
    assert isinstance(study.source, Files)
    assert study.source.options == {"unit": "px"}


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
    assert doubt_about_names(replace(results([], [], 3, 1))) == ""


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


ATTACKS = ("attributes", "record-linkage")


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return simulate(6, 3, 5.0, 100.0, seed=1)


@pytest.fixture(scope="module")
def inferred_results(cohort: Cohort) -> Results:
    return evaluate(cohort, "gaussian:sigma_deg=1/100", ATTACKS, repetitions=1, executor=1)


def test_inferences_know_raw_recordings_and_are_asked_about_a_release(
    inferred_results: Results,
) -> None:
    frame = inferred_results.frame
    assert set(frame["attack"]) == set(ATTACKS)
    assert frame["utility"].null_count() == frame.height
    assert set(frame.filter(mechanism="gaussian")["scenario"]) == {"raw/private"}
    assert set(frame.filter(mechanism="none")["scenario"]) == {"raw/raw"}
    metrics = {"accuracy", "linkage_rate", "matching_rate"}
    assert metrics <= set(frame["metric"])
    assert "identification_rate" not in set(frame["metric"])
    row = frame.row(by_predicate=_is("gaussian", "linkage_rate"), named=True)
    assert row["low"] <= row["value"] <= row["high"]
    assert (row["n"], row["chance"], row["better"]) == (6, pytest.approx(1 / 6), "lower")


def test_the_report_shows_them_apart_from_who_is_recognised(
    inferred_results: Results, tmp_path: Path
) -> None:
    page = inferred_results.report(tmp_path).read_text(encoding="utf-8")
    assert "What else is inferred" in page
    assert "matching rate" in page


def test_membership_needs_others_and_a_copy_is_asked_by_kind(cohort: Cohort) -> None:
    with pytest.raises(ParameterError, match="gazeveil attack --kind membership"):
        attacker("membership")
    with pytest.raises(ParameterError, match="--kind"):
        study_of_copy(cohort, cohort, ("record-linkage",))


def _is(mechanism: str, metric: str) -> pl.Expr:
    return (pl.col("mechanism") == mechanism) & (pl.col("metric") == metric)
