"""What a lab may give to a publication by mistake, and what it is told: a file that cannot be read,
one person under two names, a stimulus that is called after somebody.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import gazeveil
from gazeveil.privacy.composition import BudgetError
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.release.publishing import Watcher, planned, publish
from gazeveil.release.recipe import Recipe
from tests.support.command_line import run

MAPS = "heatmap-laplace:epsilon=2"


def recipe(source: Path, mechanism: str, **choices: object) -> Recipe:
    chosen = PublicationChoices(**{"durations": "common", **choices})  # type: ignore[arg-type]
    return Recipe(source, mechanism, chosen, battery="none")


def plan_lines(source: Path, mechanism: str, **choices: object) -> dict[str, str]:
    made = recipe(source, mechanism, **choices)
    read = gazeveil.read(source, confirmed=("person",))
    return dict(planned(made, read, Watcher()).lines)


def csv_folder(folder: Path) -> Path:
    """Recordings as CSV files, one of them without a row."""
    folder.mkdir()
    for recording in gazeveil.simulate(4, 1, 3.0, 60.0, seed=1):
        pl.DataFrame(
            {"t_s": recording.t_ns / 1e9, "x_deg": recording.x_deg, "y_deg": recording.y_deg}
        ).write_csv(folder / f"{recording.person}.csv")
    (folder / "p9.csv").write_bytes(b"")
    return folder


@pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")
def test_a_file_that_cannot_be_read_is_named_among_what_is_left_out(tmp_path: Path) -> None:
    source = csv_folder(tmp_path / "in")
    assert "1 file of the folder: p9.csv (" in plan_lines(source, MAPS)["left out"]
    (source / "p9.csv").unlink()
    assert plan_lines(source, MAPS)["left out"] == "nothing."


def test_lengths_of_stimuli_that_were_not_named_are_not_called_public(tmp_path: Path) -> None:
    source = gazeveil.simulate(2, 2, 3.0, 60.0, seed=1).write(tmp_path / "in")
    stimulus = "free-viewing-1"
    said = plan_lines(source, "gaussian:sigma_deg=3", durations={stimulus: 2})["lengths"]
    assert said.endswith("recordings of 1 stimulus keep their own")


@pytest.mark.parametrize("mechanism", ["k-same-synth:k=3", MAPS, "kaleido:epsilon=1,w=30,r_deg=2"])
def test_one_person_under_two_names_is_refused_without_a_ledger_too(
    mechanism: str, tmp_path: Path
) -> None:
    cohort = gazeveil.simulate(6, 1, 4.0, 60.0, seed=1)
    again = [r.with_(person="somebody else") for r in cohort if r.person == "p1"]
    source = gazeveil.Cohort([*cohort, *again]).write(tmp_path / "in")
    made, read = recipe(source, mechanism), gazeveil.read(source)
    with pytest.raises(BudgetError, match="one person has two names"):
        publish(made, read, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    publish(made, read.select(people=[f"p{i}" for i in range(1, 7)]), tmp_path / "out")


def test_no_map_is_called_after_a_person_or_by_a_name_that_one_person_has(tmp_path: Path) -> None:
    recordings = list(gazeveil.simulate(3, 2, 4.0, 60.0, seed=1))
    named = {"free-viewing-1": "beach", "free-viewing-2": "room_of_hannelore"}
    people = {"p1": "hannelore", "p2": "gus", "p3": "dieter"}
    renamed = [r.with_(person=people[r.person], stimulus=named[r.stimulus]) for r in recordings]
    # A third stimulus that one person alone saw.
    renamed.append(renamed[-1].with_(stimulus="attic"))
    source = gazeveil.Cohort(renamed).write(tmp_path / "in")
    publish(recipe(source, MAPS), gazeveil.read(source), tmp_path / "out")
    names = set(pl.read_parquet(tmp_path / "out/maps.parquet")["stimulus"])
    assert names == {"beach", "stimulus-001", "stimulus-002"}


def test_the_consent_form_promises_no_missing_name_or_date_where_they_are_kept(
    tmp_path: Path,
) -> None:
    source = gazeveil.simulate(2, 1, 3.0, 60.0, seed=1).write(tmp_path / "in")
    for keep, named, dated in (
        ((), True, True),
        (("person",), False, True),
        (("times",), True, False),
    ):
        out = tmp_path / f"out-{'-'.join(keep)}"
        made = recipe(source, "gaussian:sigma_deg=3", keep=keep, durations="keep")
        publish(made, gazeveil.read(source), out)
        page = (out / "PRIVACY.md").read_text("utf-8")
        assert ("without my name" in page) is named
        assert ("without the date" in page) is dated


@pytest.mark.parametrize("mechanism", ["gaussian:sigma_deg=3", MAPS])
def test_no_time_stamp_tells_how_long_a_recording_took(mechanism: str, tmp_path: Path) -> None:
    source = gazeveil.simulate(3, 2, 3.0, 60.0, seed=1).write(tmp_path / "in")
    publish(recipe(source, mechanism), gazeveil.read(source), tmp_path / "out")
    files = list((tmp_path / "out").rglob("*"))
    assert len(files) > 3
    assert len({p.stat().st_mtime_ns for p in files}) == 1


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (MAPS, "holds no recordings"),
        ("fpa:epsilon=10", "holds no recordings"),
        ("mosaic:epsilon=10,r_deg=2,crowd=3,piece_s=1,gap_s=1/2", "nobody keeps whose they are"),
    ],
)
def test_nobody_is_sent_for_a_key_that_cannot_exist(
    mechanism: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = gazeveil.simulate(4, 1, 6.0, 60.0, seed=1).write(tmp_path / "in")
    publish(recipe(source, mechanism), gazeveil.read(source), tmp_path / "out")
    assert run("attack", source, tmp_path / "out") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert words in said
    assert "--key-file" not in said


@pytest.mark.parametrize(
    ("mechanism", "shows"),
    [("clock-render:epsilon=1,r_deg=2", True), ("kaleido:epsilon=1,w=30,r_deg=2", False)],
)
def test_a_length_that_losses_show_is_printed_as_not_covered(
    mechanism: str, shows: bool, tmp_path: Path
) -> None:
    recordings = list(gazeveil.simulate(3, 1, 10.0, 60.0, seed=1))
    recordings[0] = recordings[0].slice(0, 300)  # five seconds, of ten that are public
    source = gazeveil.Cohort(recordings).write(tmp_path / "in")
    publish(recipe(source, mechanism), gazeveil.read(source), tmp_path / "out")
    tails = [r.valid[420:] for r in gazeveil.read(tmp_path / "out")]
    assert any(not tail.any() for tail in tails) is shows
    page = (tmp_path / "out/PRIVACY.md").read_text("utf-8")
    assert ("which ends in lost samples" in page) is shows
