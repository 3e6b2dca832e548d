"""The length of a published feature table follows from public durations, never from gaze."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, FeatureTable
from gazeveil.errors import DataError
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.release.plan import MOST_EVENTS_HZ
from gazeveil.release.publishing import Watcher, planned, publish
from gazeveil.release.recipe import Recipe

SECONDS = 6.0


def released(cohort: Cohort, folder: Path, table: str = "events") -> tuple[FeatureTable, dict]:
    source = cohort.write(folder / "in")
    choices = PublicationChoices(durations="common")
    recipe = Recipe(source, "fpa:epsilon=10", choices, table=table, battery="none")
    publish(recipe, gazeveil.read(source), folder / "out")
    certificate = json.loads((folder / "out" / "PRIVACY.json").read_text())
    return FeatureTable.read(folder / "out" / "features.parquet"), certificate


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return gazeveil.simulate(4, 2, SECONDS, 100.0, seed=3)


def test_a_stare_changes_neither_rows_nor_recordings(cohort: Cohort, tmp_path: Path) -> None:
    first = cohort[0]
    stare = first.with_(
        x_deg=np.full(len(first), 180.0),
        y_deg=np.full(len(first), 90.0),
        valid=np.arange(len(first)) % 50 == 0,  # too few samples in a row for any event
    )
    table, certificate = released(cohort, tmp_path / "a")
    other, _ = released(Cohort([stare, *list(cohort)[1:]]), tmp_path / "b")
    assert len(gazeveil.event_features(stare)) == 0
    assert len(table) == len(other) == 8 * SECONDS * MOST_EVENTS_HZ
    assert len(table.recordings()) == len(other.recordings()) == 8
    assert certificate["guarantee"]["status"] == "proved"
    length = int(SECONDS * MOST_EVENTS_HZ)
    assert f"the length of {length} rows is public" in certificate["assumptions"]
    assert f"length={length}" in (tmp_path / "a" / "out" / "publish.toml").read_text()


def test_where_no_duration_is_public_the_length_is_derived_and_claimed(
    cohort: Cohort, tmp_path: Path
) -> None:
    source = cohort.write(tmp_path / "in")
    choices = PublicationChoices(durations="keep")
    recipe = Recipe(source, "fpa:epsilon=10", choices, battery="none")
    plan = dict(planned(recipe, gazeveil.read(source), Watcher()).lines)
    assert "claimed, since the length is derived from the data" in plan["promise"]
    publish(recipe, gazeveil.read(source), tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "PRIVACY.json").read_text())
    assert certificate["guarantee"]["status"] == "claimed"


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ("k-same-synth:k=3", "among k = 3, and 2 people took part"),
        ("event-synth-pd:k=4,gamma=4", "among k = 4, and 2 people took part"),
        ("mosaic:epsilon=4,r_deg=4", "among crowd = 12, and 2 people took part"),
        ("k-same-select:k=3", "among k = 3, and 2 people took part"),
    ],
)
def test_the_plan_says_what_cannot_be_done(mechanism: str, words: str, tmp_path: Path) -> None:
    source = gazeveil.simulate(2, 1, 4.0, 60.0, seed=1).write(tmp_path / "in")
    recipe = Recipe(source, mechanism, PublicationChoices(durations="common"), battery="none")
    with pytest.raises(DataError, match=words):
        planned(recipe, gazeveil.read(source), Watcher())
