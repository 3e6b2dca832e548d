"""The papers' studies on their datasets: small files in the published layouts, and every file is
used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gazeveil.evaluation.sources import opened
from gazeveil.features.recording_set import RecordingSet
from gazeveil.io.known import known_table
from gazeveil.models import classifiers
from gazeveil.models.headset import dgaze, ehtask
from gazeveil.papers import study_file
from gazeveil.papers.figures import study_path
from gazeveil.papers.grading import FEWEST_PEOPLE, compare
from gazeveil.papers.parts import MultiPartStudy, StudyPart
from tests.support import paper_files

SCREEN = known_table("gazebase-vr").screen

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """All datasets, and how many recordings each has."""
    data = tmp_path_factory.mktemp("data")
    return data, {
        "ET-DK2": paper_files.et_dk2(data, seconds=5),
        "VR-Saliency": paper_files.vr_saliency(data, named=True),
        "VR-EyeTracking": paper_files.vr_eyetracking(data, seconds=6),
        "360_em": paper_files.em360(data, seconds=5),
        "MPIIDPEye": paper_files.mpiidpeye(data),
        "MPIIPrivacEye": paper_files.mpiiprivaceye(data),
        "GazeBaseVR": paper_files.gazebase_vr(data),
        "DGaze, arrays": paper_files.dgaze(data, 12),
        "EHTask, arrays": paper_files.ehtask(data),
        "OpenNEEDS": paper_files.recordings(data, "openneeds"),
        "DGaze": paper_files.recordings(data, "dgaze-recordings"),
        "EHTask": paper_files.recordings(data, "ehtask-recordings"),
    }


@pytest.fixture
def data(written: tuple[Path, dict[str, int]], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GAZEVEIL_DATA", str(written[0]))
    # What is learnt is no matter here: batches of the published 256 and 100 trees take seconds.
    for network in (dgaze, ehtask):
        monkeypatch.setattr(network, "BATCH", dict.fromkeys(network.BATCH, 8))
    unfitted = classifiers.unfitted
    monkeypatch.setattr(
        classifiers,
        "unfitted",
        lambda *given, trees=1, **more: unfitted(*given, trees=min(trees, 5), **more),
    )
    return written[0]


def shortened(plan: MultiPartStudy) -> MultiPartStudy:
    """One repetition, of every mechanism and reading the first setting without a network, which
    takes minutes to train, and one batch for one reading of the networks of utilities.
    """

    def first(texts: Sequence[str]) -> list[str]:
        kinds: dict[tuple[str, bool], str] = {}
        for text in (t for t in texts if "generator=cvae" not in t):
            kinds.setdefault((text.partition(":")[0], "=published" in text), text)
        return list(kinds.values())

    def barely_trained(text: str) -> str:
        if "ehtask" not in text and "dgaze" not in text:
            return text
        text = text.replace("reading={published,corrected}", "reading=corrected")
        return re.sub(r",steps=\d+", "", text) + ",steps=1"

    parts = (
        replace(
            p,
            said={
                **p.said,
                "repetitions": 1,
                "mechanisms": first(p.said["mechanisms"]),
                "utilities": [barely_trained(u) for u in p.said.get("utilities", ())],
            },
        )
        for p in plan.parts
    )
    return replace(plan, parts=tuple(parts))


def part_of(name: str, label: str, quick: bool = False) -> StudyPart:
    return next(p for p in study_file.read(study_path(name), quick).parts if p.label == label)


# One of each paper that takes seconds; `make audit` runs the others.
STUDIES = (
    pytest.param("davidjohn2021/fig3", marks=pytest.mark.heavy),
    pytest.param("davidjohn2021/fig4", marks=pytest.mark.heavy),
    pytest.param("davidjohn2021/tables", marks=pytest.mark.heavy),
    pytest.param("davidjohn2022/fig1", marks=pytest.mark.heavy),
    "davidjohn2022/fig2",
    pytest.param("davidjohn2023/bars", marks=pytest.mark.heavy),
    pytest.param("bozkir2021/mpiidpeye", marks=pytest.mark.heavy),
    "bozkir2021/mpiiprivaceye",
    "ren2024/fig2",
    "ren2024/tables",
)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_runs_to_its_end_on_files_and_uses_every_one(
    name: str, written: tuple[Path, dict[str, int]]
) -> None:
    results = study_file.run(shortened(study_file.read(study_path(name))), executor=1)
    assert results.failures == ()
    parts: list[dict[str, object]] = results.study["parts"]  # type: ignore[assignment]
    assert all(p["real"] for p in parts), [p["cohort"] for p in parts if not p["real"]]
    counts = written[1]
    used = {str(p["cohort"]): p["recordings"] for p in parts}
    assert used == {c: counts.get(c, counts[c.partition(",")[0]]) for c in used}
    # Fewer than ten participants grade nothing of recordings, not of the papers' datasets either.
    few = {str(p["cohort"]) for p in parts if int(str(p["people"])) < FEWEST_PEOPLE}
    assert few
    if few == set(used):
        rows = [r for r in compare(results) if str(r["id"]).startswith("PF")]
        measured = [r for r in rows if r["low"] is not None]
        assert not any(r["verdict"] or r["kind"] == "exact" for r in measured)


def test_the_demographic_study_takes_31_people_of_two_datasets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, videos = 6, 5
    paper_files.et_dk2(tmp_path, people=18, images=images, seconds=3)
    paper_files.em360(tmp_path, people=13, videos=videos, seconds=3)
    monkeypatch.setenv("GAZEVEIL_DATA", str(tmp_path))
    plan = shortened(study_file.read(study_path("davidjohn2023/demographic")))
    results = study_file.run(replace(plan, parts=plan.parts[:1]), executor=1)
    assert results.failures == ()
    (part,) = results.study["parts"]  # type: ignore[misc]
    assert (part["real"], part["people"], part["recordings"]) == (
        True,
        31,
        18 * images + 13 * videos,
    )


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("quick", [False, True])
def test_what_annotators_saw_is_no_feature_and_follows_its_window(quick: bool) -> None:
    part = part_of("bozkir2021/mpiiprivaceye", "MPIIPrivacEye", quick)
    source = part.study().source
    assert isinstance(source, RecordingSet)
    table = source.windows
    assert len(table.columns) == 48
    assert len(source.persons) == (6 if quick else 7)
    saw = table.annotations["privacy_sensitive"]
    number = np.array([int(p[1:]) for p in table.keys.person.tolist()])
    np.testing.assert_array_equal(saw, (table.keys.index // 7 + number) % 2)
    # The end of P10 R1 has no eye features.
    rows = (table.keys.person == "P10") & (table.keys.stimulus == "R1")
    assert rows.sum() == (0 if quick else 70)


@pytest.mark.usefixtures("data")
def test_gender_comes_from_the_table_of_people_beside_the_features() -> None:
    source = part_of("bozkir2021/mpiidpeye", "MPIIDPEye").study().source
    assert isinstance(source, RecordingSet)
    assert source.people["P3"] == {"gender": "female"}
    assert {str(a["gender"]) for a in source.people.values()} == {"female", "male"}


@pytest.mark.usefixtures("data")
def test_dwell_times_are_in_the_datasets_areas_and_simulated_ones_in_a_grid(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert part_of("davidjohn2021/tables", "ET-DK2").said["utilities"] == ["aoi:areas=dataset"]
    monkeypatch.setenv("GAZEVEIL_DATA", str(tmp_path))
    assert part_of("davidjohn2021/tables", "ET-DK2").said["utilities"] == ["aoi"]


@pytest.mark.usefixtures("data")
def test_the_papers_conditions_are_read() -> None:
    def held(name: str, label: str) -> RecordingSet:
        study = part_of(name, label).study()
        return opened(study.source, study.people, study.stimuli, study.preparation)

    seated = held("davidjohn2021/fig4", "VR-Saliency")
    assert {key[3] for key in seated.keys} == {"seated_vr"}
    assert not any("target" in s for s in held("davidjohn2021/fig4", "360_em").stimuli)
    screen = held("ren2024/tables", "GazeBaseVR").cohort
    assert screen is not None
    assert {r.space for r in screen} == {SCREEN}
    frames = held("davidjohn2021/fig4", "VR-EyeTracking").cohort
    assert frames is not None
    assert {r.rate_hz for r in frames} == {25.0}


def test_runs_without_a_viewer_are_measured_and_nobody_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper_files.vr_saliency(tmp_path, named=False)
    monkeypatch.setenv("GAZEVEIL_DATA", str(tmp_path))
    maps = part_of("davidjohn2021/tables", "VR-Saliency").resolved()
    assert maps.real
    assert maps.said["attacks"] == []
    people = part_of("davidjohn2021/fig3", "VR-Saliency").resolved()
    assert not people.real
    plan = shortened(study_file.read(study_path("davidjohn2021/tables")))
    results = study_file.run(
        replace(plan, parts=tuple(p for p in plan.parts if p.label == "VR-Saliency")), executor=1
    )
    assert results.failures == ()
    assert results.study["parts"][0]["recordings"] == 12  # type: ignore[index]
    assert "no attacker is asked" in str(results.study["left_out"])
    assert results.frame["attack"].is_null().all()


@pytest.mark.heavy
@pytest.mark.usefixtures("data")
def test_the_short_form_takes_what_is_there_and_grades_nothing() -> None:
    # At most 6 people and 6 stimuli, and the files have 3 and 4.
    plan = study_file.read(study_path("davidjohn2021/fig4"), quick=True)
    some = tuple(p for p in plan.parts if p.label in ("ET-DK2", "360_em"))
    results = study_file.run(shortened(replace(plan, parts=some)), executor=1)
    assert results.failures == ()
    parts: list[dict[str, object]] = results.study["parts"]  # type: ignore[assignment]
    assert [p["recordings"] for p in parts] == [12, 12]
    assert not any(r["verdict"] for r in compare(results))
