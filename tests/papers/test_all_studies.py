"""A time limit that cuts what takes too long and says so."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from gazeveil.errors import ParameterError
from gazeveil.papers import study_file
from gazeveil.papers.page import write
from gazeveil.papers.parts import MultiPartStudy

STUDY = """
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
    path.write_text(STUDY)
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
    path.write_text(STUDY.replace("repetitions = 3", "repetitions = 1000"))
    try:
        cut = study_file.run(study_file.read(path), executor=2, limit_s=1e-6)
        sentences = {failure["sentence"] for failure in cut.failures}
    except ParameterError as error:
        sentences = {str(error)}
    assert sentences
    assert all("time limit of 1e-06 s was over" in sentence for sentence in sentences)
    assert not multiprocessing.active_children()
