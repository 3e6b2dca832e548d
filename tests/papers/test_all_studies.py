"""All studies in one go, and a time limit that cuts what takes too long and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gazeveil.cli.main import main
from gazeveil.errors import ParameterError
from gazeveil.papers import series, study_file
from gazeveil.papers.comparison.all_studies import run_all
from gazeveil.papers.comparison.overview import write_overview

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
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "study.toml"
    path.write_text(STUDY)
    return path


def test_a_part_over_its_limit_is_cut_named_and_finished_the_next_time(
    plan: Path, tmp_path: Path
) -> None:
    # One cell is always computed here, so that a cut part has something to show.
    cut = series.run(plan, tmp_path, executor=1, limit_s=1e-6)
    sentences = {f["sentence"] for f in cut.failures}
    assert sentences == {"Cut: the time limit of 1e-06 s was over."}
    assert cut.frame.height > 0
    page = write_overview({"a/b": cut}, {}, tmp_path / "page").read_text(encoding="utf-8")
    assert "the time limit of 1e-06 s was over" in page
    whole = series.run(plan, tmp_path, executor=1)
    assert not whole.failures
    assert whole.frame.equals(series.run(plan, executor=1).frame)


def test_studies_side_by_side_say_what_each_says_alone(plan: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text(STUDY.replace("people = 3", "people = 1"))
    plans = {"a/one": study_file.read(plan), "a/two": study_file.read(broken)}
    seen: list[tuple[int, int]] = []
    found = dict(run_all(plans, tmp_path, 2, None, lambda done, of: seen.append((done, of))))
    assert set(found) == set(plans)
    assert seen == [(i, 4) for i in range(1, 5)]
    results = found["a/one"]
    assert not isinstance(results, str)
    assert results.frame.equals(series.run(plan, executor=1).frame)
    assert (tmp_path / "a" / "one" / "parts" / "et-dk2" / "cells").is_dir()
    # One that cannot be computed stops no other.
    assert "two people" in str(found["a/two"])


def test_processes_are_stopped_when_the_time_is_over(plan: Path) -> None:
    with pytest.raises(ParameterError, match="the time limit of 1e-06 s was over"):
        series.run(plan, executor=2, limit_s=1e-6)


def test_a_limit_must_be_positive(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "--all", "--quick", "--limit-s", "0"])
    assert ended.value.code == 2
    assert "--limit-s" in capsys.readouterr().err


def test_the_record_counts_what_was_not_computed(plan: Path, tmp_path: Path) -> None:
    cut = series.run(plan, limit_s=1e-6, executor=1)
    write_overview({"a/b": cut}, {}, tmp_path)
    record = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    (count,) = record["studies"]["a/b"]["not_computed"].values()
    assert count == len(cut.failures) > 0
