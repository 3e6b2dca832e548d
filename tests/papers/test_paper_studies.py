"""Studies as files: what they ask for, that they answer the papers' figures, and what a run of
several parts leaves.

A time limit that cuts what takes too long and says so.
"""

from __future__ import annotations

import importlib.resources
import multiprocessing
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gazeveil import Cohort, Recording, simulate
from gazeveil.attacks.registry import unfold
from gazeveil.errors import FormatError, GazeveilError, ParameterError
from gazeveil.evaluation.results import Results, frame_of, outcomes_of
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.papers import page, protocols, study_file
from gazeveil.papers.figures import (
    CITATIONS,
    FOLDER,
    CellQuery,
    Lookup,
    Order,
    pairs,
    same,
    same_text,
    study_names,
    study_path,
)
from gazeveil.papers.grading import figures_of, paper_module
from gazeveil.papers.page import write
from gazeveil.papers.parts import CHECKSUMS, MultiPartStudy, StudyPart, most_seen
from gazeveil.privacy.registry import mechanism
from tests.support.recordings import real

STUDIES = sorted(p for p in FOLDER.rglob("*.toml"))
EMPTY = Results(frame_of([]), outcomes_of(()))


def parts_of(paper: str) -> list[StudyPart]:
    return [
        part
        for path in STUDIES
        for held in [study_file.read(path)]
        if held.paper == paper
        for part in held.parts
    ]


# --- the files
# --------------------------------------------------------------------------------------------------


def test_every_paper_and_both_real_sets_have_studies() -> None:
    held = [study_file.read(p) for p in STUDIES]
    assert {h.paper for h in held} == {"", *CITATIONS}
    assert {p.stem for p, h in zip(STUDIES, held, strict=True) if not h.paper} == {
        "gazecom",
        "eyenavgs",
        "clock-gazecom",
        "clock-eyenavgs",
        "front-gazecom",
        "front-eyenavgs",
        "front-vr-eyetracking",
        "public-vr",
        "head-frame",
    }
    # Each mirrored part of a paper has its own file.
    for paper in CITATIONS:
        assert {h.figure for h in held if h.paper == paper} | {"groups"} >= set(
            paper_module(paper).LOCATIONS
        )


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("path", STUDIES, ids=lambda p: p.relative_to(FOLDER).as_posix())
def test_every_name_and_parameter_of_a_study_is_known(path: Path, quick: bool) -> None:
    for part in study_file.read(path, quick).parts:
        for text in part.said["mechanisms"]:
            assert str(mechanism(text))
        for text in unfold(part.said["attacks"]):
            assert str(protocols.attack(str(text)))
        for text in part.said["utilities"]:
            assert str(protocols.utility(text))


def utilities_of(part: StudyPart) -> list[str]:
    """Utilities of a part, those that only its files allow too."""
    more = part.said.get("with_files", {}).get("utilities", [])
    return [*part.said["utilities"], *(t for text in more for t in study_file.expand(text))]


def answers(part: StudyPart, cell: CellQuery) -> bool:
    """Whether a part computes a cell."""
    if part.label != cell.cohort:
        return False
    texts = part.said["mechanisms"]
    if cell.mechanism != "none" and not any(_same_mechanism(t, cell) for t in texts):
        return False
    if cell.attack and not any(
        same_text(cell.attack, str(protocols.attack(str(t))), "attack")
        for t in unfold(part.said["attacks"])
    ):
        return False
    trains = True
    if cell.utility:
        found = [
            u
            for u in map(protocols.utility, utilities_of(part))
            if same_text(cell.utility, str(u), "utility")
        ]
        if not found:
            return False
        trains = found[0].trains
    if cell.events and cell.events not in part.said.get("events", ["redetected"]):
        return False
    return (
        cell.mechanism == "none"
        or not trains
        or not cell.scenario
        or cell.scenario in part.said["scenarios"]
    )


def _same_mechanism(text: str, cell: CellQuery) -> bool:
    name, given = pairs(text)
    return (
        name == cell.mechanism
        and all(same(v, given.get(k)) for k, v in cell.parameters.items())
        and cell.reading in ("", given.get("reading", "corrected"))
    )


@pytest.mark.parametrize("paper", CITATIONS)
def test_the_studies_of_a_paper_compute_every_cell_its_figures_ask_for(paper: str) -> None:
    parts, module = parts_of(paper), paper_module(paper)
    lookup = Lookup(
        Results(
            EMPTY.frame,
            EMPTY.outcomes,
            study={
                "parts": [
                    {"cohort": p.label, "real": True, "people": 1, "stimuli": 1} for p in parts
                ]
            },
        )
    )
    asked = {f.about: module.ask(f, lookup) for f in figures_of(paper)}
    wanted = [(what, cell) for what, cell in asked.items() if isinstance(cell, CellQuery)]
    assert len(wanted) > 20
    lost = [what for what, cell in wanted if not any(answers(p, cell) for p in parts)]
    assert lost == []


@pytest.mark.parametrize("paper", CITATIONS)
def test_the_studies_of_a_paper_compute_every_cell_its_orders_speak_of(paper: str) -> None:
    parts = parts_of(paper)
    claims = [c for c in paper_module(paper).orders(Lookup(EMPTY), "") if isinstance(c, Order)]
    assert claims
    lost = [
        (claim.id, cell)
        for claim in claims
        for cell in claim.cells
        if not any(answers(p, cell) for p in parts)
    ]
    assert lost == []


def test_the_real_sets_are_found_under_the_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GAZEVEIL_DATA", str(real("gazecom").parent))
    held = study_file.read(FOLDER / "gazecom.toml").parts
    assert all(p.real for p in held)
    assert held[0].source == "recordings of the dataset, the files that were graded"
    assert len(CHECKSUMS[held[0].said["cohort"]["format"]]) == 64
    assert CHECKSUMS["gazecom"] in held[0].layouts[0]
    # Other files are said, and are no error.
    monkeypatch.setitem(CHECKSUMS, "gazecom", "0" * 64)
    assert "other files than those that were graded" in held[0].source
    et_dk2 = study_file.read(FOLDER / "davidjohn2021" / "fig4.toml").parts[0]
    assert et_dk2.source == "simulated people"
    assert "not known" in et_dk2.layouts[0]
    monkeypatch.setenv("GAZEVEIL_DATA", str(tmp_path))
    assert not any(p.real for p in study_file.read(FOLDER / "gazecom.toml").parts)


def test_what_only_files_have_is_left_out_of_a_simulated_part() -> None:
    (held,) = study_file.read(FOLDER / "bozkir2021" / "mpiiprivaceye.toml").parts
    assert not held.real
    assert not any(t.startswith("privacy-sensitivity") for t in held.said["utilities"])
    with_files = held.said["with_files"]["utilities"]
    assert any(t.startswith("privacy-sensitivity") for t in with_files)


# --- reading
# --------------------------------------------------------------------------------------------------


def test_braces_stand_for_each_value_and_their_ends_in_the_short_form() -> None:
    assert study_file.expand("gaussian:sigma_deg={1,2,5}") == [
        "gaussian:sigma_deg=1",
        "gaussian:sigma_deg=2",
        "gaussian:sigma_deg=5",
    ]
    assert study_file.expand("gaussian:sigma_deg={1,2,5}", ends=True) == [
        "gaussian:sigma_deg=1",
        "gaussian:sigma_deg=5",
    ]
    assert study_file.expand("linkage") == ["linkage"]
    assert len(study_file.expand("kaleido:epsilon={10,5,2,1},w={50,200},r_deg={2,10}")) == 16


def test_a_part_may_name_a_battery_and_without_attackers_nobody_attacks(tmp_path: Path) -> None:
    text = """
utilities = ["density"]
[[part]]
label = "A"
attacks = "quick"
simulate = { people = 3, stimuli = 3, seconds = 4, rate_hz = 60, seed = 1 }
[[part]]
label = "B"
attacks = ["quick", "rbfn:prototypes=4"]
simulate = { people = 3, stimuli = 3, seconds = 4, rate_hz = 60, seed = 1 }
[[part]]
label = "C"
simulate = { people = 3, stimuli = 3, seconds = 4, rate_hz = 60, seed = 1 }
"""
    plan = study_file.read(written(tmp_path, text))
    named = [[str(a) for a in part.study().attacks] for part in plan.parts]
    assert named == [["rbfn", "linkage"], ["rbfn", "linkage", "rbfn:prototypes=4"], []]
    results = study_file.run(study_file.shorter(plan, repetitions=1), executor=1)
    batteries = [p["battery"] for p in results.study["parts"]]  # type: ignore[attr-defined]
    assert batteries[:2] == ["quick battery", "quick battery and 1 more"]


STUDY = """
name = "small"
paper = "davidjohn2021"
figure = "fig4"
seed = 3
repetitions = 2
attacks = ["rbfn:prototypes=4,reading=published"]
scenarios = ["private/private"]
mechanisms = ["gaussian:sigma_deg={1,10},reading=published"]

[quick]
repetitions = 1
most = { people = 3, stimuli = 2, seconds = 6 }

[[part]]
label = "ET-DK2"
simulate = { people = 4, stimuli = 4, seconds = 8, rate_hz = 60, seed = 1 }

[[part]]
label = "ET-DK2, 8 stimuli"
draw = { stimuli = 2, people = 3 }
train = 0.5
mechanisms = []
simulate = { people = 4, stimuli = 4, seconds = 8, rate_hz = 60, seed = 1 }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_short_form_caps_people_stimuli_and_seconds(tmp_path: Path) -> None:
    full, short = (
        study_file.read(written(tmp_path, STUDY), quick).parts[0] for quick in (False, True)
    )
    assert full.said["simulate"]["people"] == 4
    assert short.said["simulate"] == {
        "people": 3,
        "stimuli": 2,
        "seconds": 6,
        "rate_hz": 60,
        "seed": 1,
    }
    assert (full.study().repetitions, short.study().repetitions) == (2, 1)
    # A part with fewer is left as it is.
    generous = study_file.read(
        written(tmp_path, STUDY.replace("people = 3, stimuli = 2, seconds = 6", "people = 99")),
        True,
    ).parts[0]
    assert generous.said["simulate"]["people"] == 4


def test_a_draw_takes_so_many_people_and_stimuli(tmp_path: Path) -> None:
    study = study_file.read(written(tmp_path, STUDY)).parts[1].study()
    assert isinstance(study.source, type(simulate(1, 1, 1, 60)))
    assert len(study.source.people) == 3
    assert len(study.source.stimuli) == 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('label = "ET-DK2"\n', ""), "each with a label"),
        (("ET-DK2, 8 stimuli", "ET-DK2"), "names two parts"),
        (('paper = "davidjohn2021"', 'paper = "davidjon2021"'), "Did you mean 'davidjohn2021'"),
        (("seconds = 6 }", "minutes = 6 }"), "no option 'minutes'"),
        (("[[part]]", "[[part"), "is not TOML"),
    ],
)
def test_a_wrong_file_is_one_sentence_that_names_it(
    tmp_path: Path, change: tuple[str, str], sentence: str
) -> None:
    with pytest.raises(FormatError, match=sentence) as caught:
        study_file.read(written(tmp_path, STUDY.replace(*change)), quick=True)
    assert "study.toml" in str(caught.value)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        study_file.read(tmp_path / "none.toml")
    assert not study_file.has_parts(tmp_path / "none.toml")


JOINED = """
attacks = ["rbfn:prototypes=4"]
[[part]]
label = "both"
join = "{how}"
{more}
simulate = [
  {{ dataset = "ET-DK2", people = 18, stimuli = 2, task = "video", {rest} }},
  {{ dataset = "360_em", people = 13, stimuli = 3, task = "search", {rest} }},
]
""".replace("{rest}", "seconds = 2, rate_hz = 60, seed = 1")


def test_several_tasks_are_of_the_same_people_and_several_datasets_of_different_ones(
    tmp_path: Path,
) -> None:
    tasks = (
        study_file.read(written(tmp_path, JOINED.format(how="tasks", more="")))
        .parts[0]
        .study()
        .source
    )
    assert len(tasks.people) == 18  # type: ignore[union-attr]
    assert {key[3] for key in tasks.keys} == {"video", "search"}  # type: ignore[union-attr]
    sets = (
        study_file.read(written(tmp_path, JOINED.format(how="datasets", more="")))
        .parts[0]
        .study()
        .source
    )
    assert len(sets.people) == 31  # type: ignore[union-attr]
    assert len(sets) == 18 * 2 + 13 * 3  # type: ignore[arg-type]
    first = sets[0]  # type: ignore[index]
    assert (first.person, first.stimulus) == ("ET-DK2 p1", "ET-DK2 video-1")


def test_people_can_have_the_ages_and_genders_of_the_supplements_table(tmp_path: Path) -> None:
    study = (
        study_file.read(
            written(
                tmp_path,
                JOINED.format(
                    how="datasets", more='attributes = "davidjohn2023 supplement Table 1"'
                ),
            )
        )
        .parts[0]
        .study()
    )
    assert isinstance(study.source, RecordingSet)
    assert study.source.people["ET-DK2 p1"] == {"age": 43, "gender": "M"}
    assert study.source.people["360_em p13"] == {"age": 32, "gender": "M"}


def test_recordings_can_be_reduced_to_their_windows_without_some_columns(tmp_path: Path) -> None:
    text = """
    utilities = ["gender"]
    tables = "windows"
    preparation = { window_s = 2.0, step_s = 1.0 }
    [[part]]
    label = "MPIIDPEye"
    windows = true
    drop = ["wb1_min", "wb2_min", "wb3_min", "wb4_min"]
    simulate = { people = 2, stimuli = 3, seconds = 6, rate_hz = 30, task = "reading", seed = 1 }
    """
    source = study_file.read(written(tmp_path, text)).parts[0].study().source
    assert isinstance(source, RecordingSet)
    assert source.cohort is None
    assert len(source.windows.columns) == 48
    assert set(source.people) == {"p1", "p2"}


# --- running
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Path]:
    folder = tmp_path_factory.mktemp("small")
    plan = study_file.read(written(folder, STUDY))
    return study_file.run(plan, folder / "out", executor=1), folder / "out"


def test_a_run_of_parts_is_one_result_under_the_parts_labels(small: tuple[Results, Path]) -> None:
    results, out = small
    assert set(results.frame["cohort"].unique()) == {"ET-DK2", "ET-DK2, 8 stimuli"}
    assert set(results.outcomes["cohort"].unique()) == {"ET-DK2", "ET-DK2, 8 stimuli"}
    rates = results.frame.filter(
        (pl.col("metric") == "identification_rate") & (pl.col("cohort") == "ET-DK2")
    )
    assert rates["mechanism"].to_list() == ["none", "gaussian", "gaussian"]
    assert [
        (p["cohort"], p["dataset"], p["real"], p["people"]) for p in results.study["parts"]
    ] == [  # type: ignore[attr-defined]
        ("ET-DK2", "ET-DK2", False, 4),
        ("ET-DK2, 8 stimuli", "ET-DK2", False, 3),
    ]
    back = Results.read(out)
    assert back.frame.equals(results.frame)
    assert back.study["published"] == results.study["published"]


def test_a_run_of_parts_holds_the_published_figures_beside_ours(
    small: tuple[Results, Path],
) -> None:
    rows = {r["id"]: r for r in small[0].study["published"]}  # type: ignore[attr-defined]
    ours = small[0].frame.filter(
        (pl.col("mechanism") == "gaussian")
        & pl.col("parameters").str.contains("sigma_deg=10")
        & (pl.col("metric") == "identification_rate")
    )
    assert rows["PF1467"]["ours"] == pytest.approx(100 * ours["value"][0])
    assert rows["PF1467"]["kind"] == "order-only"
    assert rows["PF1467"]["reason"] == "simulated people"
    assert rows["PF1476"]["reason"] == "not in this run"


def test_running_again_computes_nothing_new(small: tuple[Results, Path]) -> None:
    results, out = small
    again = study_file.run(study_file.read(out.parent / "study.toml"), out, executor=1)
    assert again.frame.equals(results.frame)
    times: Any = again.study["times"]
    assert all(t["computed"] == 0 for t in times.values())


def test_the_page_shows_the_papers_pictures_and_works_offline(small: tuple[Results, Path]) -> None:
    results, out = small
    target = page.write({"small": results}, out)
    text = target.read_text(encoding="utf-8")
    assert text.count("data:image/png;base64,") == 1
    # Simulated people are in italics, and the picture of Fig. 4 says so.
    assert "<td>30/<em>" in text
    assert "Figs" not in text
    assert "http://" not in text
    assert "https://" not in text
    for label in ("ET-DK2", "ET-DK2, 8 stimuli"):
        assert (out / "parts" / study_file.folder_name(label) / "report.html").is_file()
        assert f'href="parts/{study_file.folder_name(label)}/report.html"' in text


def test_a_part_that_cannot_be_computed_stops_no_other(tmp_path: Path) -> None:
    text = STUDY.replace(
        "train = 0.5\nmechanisms = []\nsimulate = { people = 4, stimuli = 4,",
        "mechanisms = []\nsimulate = { people = 1, stimuli = 4,",
    )
    results = study_file.run(study_file.read(written(tmp_path, text), quick=True), executor=1)
    assert set(results.frame["cohort"].unique()) == {"ET-DK2"}
    (failure,) = (f for f in results.failures if f["cell"] == "ET-DK2, 8 stimuli")
    assert "two people" in failure["sentence"]


def test_where_no_part_can_be_computed_there_is_one_sentence(tmp_path: Path) -> None:
    text = STUDY.replace("people = 4,", "people = 1,")
    with pytest.raises(GazeveilError, match="No part of the study could be computed"):
        study_file.run(study_file.read(written(tmp_path, text), quick=True), executor=1)


# --- protocols of single papers
# --------------------------------------------------------------------------------------------------


def windows(people: int, recordings: int, rows: int, spread: float, seed: int = 0) -> FeatureTable:
    """Windows of people whose features lie around a place of their own."""
    rng = np.random.default_rng(seed)
    places = rng.standard_normal((people, 6))
    keys: list[Iterable[object]] = [[], [], []]
    values = []
    for p in range(people):
        for r in range(recordings):
            values.append(places[p] + spread * rng.standard_normal((rows, 6)))
            for held, one in zip(
                keys, ([f"p{p}"] * rows, [f"text-{r}"] * rows, range(rows)), strict=True
            ):
                held += list(one)  # type: ignore[operator]
    n = people * recordings * rows
    return FeatureTable(
        np.concatenate(values),
        tuple("abcdef"),
        Keys(keys[0], keys[1], ["1"] * n, [""] * n, keys[2]),
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("vote", [False, True])
@pytest.mark.parametrize("classifier", ["knn", "forest"])
def test_people_are_named_window_by_window_or_by_vote(classifier: str, vote: bool) -> None:
    person = protocols.PersonByWindow(classifier, vote, every=1)
    for spread, low, high in ((0.05, 0.99, 1.01), (1e3, 0.0, 0.5)):
        raw = RecordingSet(None, {"window": windows(6, 3, 20, spread)})
        accuracy = next(r for r in person.measure(raw, raw, raw, 0) if r.metric == "accuracy")
        assert low <= accuracy.value <= high
        assert accuracy.chance == pytest.approx(1 / 6)
        assert accuracy.better == "lower"


def test_one_release_split_is_recognised_by_its_noise_and_two_are_not() -> None:
    raw = RecordingSet(None, {"window": windows(8, 3, 20, 1.0)})
    rng = np.random.default_rng(1)

    def release() -> RecordingSet:
        # The same large offset for all windows of a recording: noise on the lowest coefficient
        # alone.
        table = raw.windows
        values = table.values.copy()
        for rows in table.recordings().values():
            values[rows] += 100 * rng.standard_normal(6)
        return RecordingSet(None, {"window": FeatureTable(values, table.columns, table.keys)})

    person = protocols.PersonByWindow("knn", True, every=1)
    first, second = release(), release()
    split = person.measure(raw, first, first, 0)[0].value
    apart = person.measure(raw, first, second, 0)[0].value
    assert split == 1.0
    assert apart < 0.5


def test_the_demographic_attack_names_nobody_of_another_group() -> None:
    cohort = simulate(31, 2, seconds=4, rate_hz=60, seed=5)
    from gazeveil.papers.davidjohn2023 import table_1

    people = dict(zip(sorted(cohort.people), table_1().values(), strict=True))
    recording_set = RecordingSet(cohort, None, None, people)
    attack = protocols.attack("demographic:k=15")
    scores = attack.identify(
        recording_set.select(stimuli=["free-viewing-1"]),
        recording_set.select(stimuli=["free-viewing-2"]),
        0,
    )
    groups = {p: a["age"] >= 29 for p, a in people.items()}  # type: ignore[operator]
    for row, probe in enumerate(scores.probes):
        others = [k for k in scores.known if groups[k] != groups[probe]]
        assert all(scores.values[row, scores.known.index(k)] == -np.inf for k in others)
    assert str(attack) == "demographic:k=15"


# --- everything in short form, minutes
# -----------------------------------------------------------------------------------------------


@pytest.mark.heavy
@pytest.mark.parametrize("path", STUDIES, ids=lambda p: p.relative_to(FOLDER).as_posix())
def test_every_study_runs_in_its_short_form(path: Path, tmp_path: Path) -> None:
    held = study_file.read(path, quick=True)
    results = study_file.run(held, tmp_path, executor=1)
    assert not results.failures
    assert set(results.frame["cohort"].unique()) == {p.label for p in held.parts}
    assert page.write({path.stem: results}, tmp_path).is_file()


def test_the_installed_package_holds_the_studies() -> None:
    files = importlib.resources.files("gazeveil.papers") / "studies"
    for name in study_names():
        text = files.joinpath(f"{name}.toml").read_text(encoding="utf-8")
        assert text == study_path(name).read_text(encoding="utf-8")
        assert study_file.read(study_path(name)).parts
    assert "davidjohn2021/fig4" in study_names()
    with pytest.raises(ParameterError, match="Did you mean 'davidjohn2021/fig4'"):
        study_path("davidjohn2021/fig")


def test_a_short_form_takes_people_who_saw_the_same_stimuli() -> None:
    seen = {"a": "xy", "b": "xyz", "c": "yz", "d": "z", "e": "yz"}
    recordings = [
        Recording(p, s, np.arange(3) * 10**7, np.full(3, 180.0), np.full(3, 90.0), rate_hz=100.0)
        for p, stimuli in seen.items()
        for s in stimuli
    ]
    raw = RecordingSet(Cohort(recordings), None, FeaturePipeline())
    first = most_seen(raw, {"people": 3, "stimuli": 2})
    assert set(first.persons) == {"b", "c", "e"}
    assert set(first.stimuli) == {"y", "z"}
    assert set(most_seen(raw, {}).persons) == set(seen)


def test_one_part_runs_alone_and_without_files_the_folders_are_named() -> None:
    plan = study_file.read(FOLDER / "davidjohn2021" / "fig4.toml")
    assert [p.label for p in plan.only("VR-EyeTracking").parts] == ["VR-EyeTracking"]
    with pytest.raises(ParameterError, match="--part"):
        plan.only("GazeCom")
    simulated = replace(plan, parts=tuple(replace(p, real=False) for p in plan.parts))
    with pytest.raises(ParameterError, match="Gaze_txt_files/<person>/<video>"):
        simulated.only(have_data=True)


def test_a_folder_may_be_unpacked_with_underscores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAZEVEIL_DATA", str(tmp_path))
    (tmp_path / "vr_eyetracking").mkdir()
    plan = study_file.read(FOLDER / "davidjohn2021" / "fig4.toml")
    (part,) = plan.only("VR-EyeTracking", have_data=True).parts
    assert part.said["cohort"]["path"] == "vr_eyetracking"


TWO_PARTS = """
name = "A study"
paper = "davidjohn2021"
figure = "fig4"
seed = 1
repetitions = 3
attacks = ["linkage"]
scenarios = ["private/private"]
mechanisms = ["gaussian:sigma_deg={1,10},reading=published"]
[[part]]
label = "ET-DK2"
simulate = { people = 3, stimuli = 4, seconds = 4, rate_hz = 60, seed = 1 }
[[part]]
label = "DGaze"
simulate = { people = 3, stimuli = 2, seconds = 4, rate_hz = 60, seed = 2 }
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> MultiPartStudy:
    path = tmp_path_factory.mktemp("studies") / "study.toml"
    path.write_text(TWO_PARTS)
    return study_file.read(path)


def test_a_part_over_its_limit_is_cut_named_and_finished_the_next_time(
    plan: MultiPartStudy, tmp_path: Path
) -> None:
    # One cell is always computed here, so that a cut part has something to show.
    cut = study_file.run(plan, tmp_path, executor=1, limit_s=1e-6)
    sentences = {f["sentence"] for f in cut.failures}
    assert sentences == {"Cut: the time limit of 1e-06 s was over."}
    assert cut.frame.height > 0
    page = write({"a/b": cut}, tmp_path).read_text(encoding="utf-8")
    assert "the time limit of 1e-06 s was over" in page
    whole = study_file.run(plan, tmp_path, executor=1)
    assert not whole.failures
    assert whole.frame.equals(study_file.run(plan, executor=1).frame)


def test_processes_are_stopped_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The clock is looked at before a process can have started. A machine that stands still may let
    # some cells end all the same; a thousand repetitions never.
    monkeypatch.setattr("gazeveil.evaluation.run.LOOK_S", 0.001)
    path = tmp_path / "study.toml"
    path.write_text(TWO_PARTS.replace("repetitions = 3", "repetitions = 1000"))
    try:
        cut = study_file.run(study_file.read(path), executor=2, limit_s=1e-6)
        sentences = {failure["sentence"] for failure in cut.failures}
    except ParameterError as error:
        sentences = {str(error)}
    assert sentences
    assert all("time limit of 1e-06 s was over" in sentence for sentence in sentences)
    assert not multiprocessing.active_children()
