"""A page that may be sent on: no raw trace and no name of a person on it, unless asked for; and
what a map says of a release without fixations.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from gazeveil.evaluation.report import pictures
from gazeveil.evaluation.report.findings import Findings
from gazeveil.evaluation.report.sections import utilities
from gazeveil.evaluation.results import Results
from gazeveil.utility.base import NO_FIXATION
from tests.support import made_results

#: Names that nothing else on the page holds.
PEOPLE = [f"Zzyx{chr(65 + i)}quorth" for i in range(24)]


def results() -> Results:
    sentence = f"recording (person '{PEOPLE[2]}', stimulus 'clip', session '1') is too short."
    study = {
        "failures": [{"cell": "rbfn", "sentence": sentence}],
        "left_out": [sentence],
        "notes": [f"person '{PEOPLE[3]}' was left out."],
        "people": PEOPLE,
    }
    made = made_results.results(people=PEOPLE, study=study)
    return replace(made, examples={**made.examples, "title": f"{PEOPLE[0]}, clip"})


pytestmark = pytest.mark.usefixtures("undrawn")


def named(text: str) -> list[str]:
    return [p for p in PEOPLE if p in text]


def test_no_name_and_no_trace_is_on_the_page_unless_asked_for(tmp_path: Path) -> None:
    study = results()
    asked = study.report(tmp_path / "report", with_raw=True)
    assert len(named(asked.read_text("utf-8"))) == 24
    assert (asked.parent / "traces.png").is_file()
    sent = study.report(tmp_path / "report")
    text = sent.read_text("utf-8")
    assert named(text) == []
    assert not (sent.parent / "traces.png").exists()
    assert "traces.png" not in text
    assert "maps.png" in text
    assert "may be sent on" in text
    assert "is too short" in text  # the reason stays, without the name


def test_a_map_of_few_people_is_on_no_page_that_is_sent_on(tmp_path: Path) -> None:
    study = results()
    few = replace(study, examples={**study.examples, "viewers": 4})
    assert (few.report(tmp_path / "report", with_raw=True).parent / "maps.png").is_file()
    sent = few.report(tmp_path / "report")
    assert "maps.png" not in sent.read_text("utf-8")
    assert "fewer than 5 people saw one stimulus" in sent.read_text("utf-8")
    assert not (sent.parent / "maps.png").exists()
    unknown = {k: v for k, v in study.examples.items() if k != "viewers"}
    assert pictures.few_viewers(Findings(replace(study, examples=unknown)))
    few.write(tmp_path / "folder")
    assert pictures.few_viewers(Findings(Results.read(tmp_path / "folder")))
    study.write(tmp_path / "folder")
    assert not pictures.few_viewers(Findings(Results.read(tmp_path / "folder")))


def test_a_release_without_fixations_is_said_and_not_given_a_figure() -> None:
    made = made_results.results()
    lost = made.frame.with_columns(
        note=pl.when(pl.col("mechanism") == "gaussian")
        .then(pl.lit(f"180 rows; {NO_FIXATION}"))
        .otherwise(pl.col("note"))
    )
    before, after = (str(utilities(Findings(r))) for r in (made, replace(made, frame=lost)))
    assert "no fixation found" not in before
    assert "no fixation found; an even map has" in after


def test_the_picture_of_maps_names_nobody(tmp_path: Path) -> None:
    findings = Findings(results())
    plain, with_name = (pictures.maps(findings, tmp_path, named_) for named_ in (False, True))
    assert PEOPLE[0] not in plain.caption
    assert PEOPLE[0] in with_name.caption
