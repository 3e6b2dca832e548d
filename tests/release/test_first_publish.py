"""A lab's first publish: first names in every place where a name can stand, in twelve layouts, a
yes to every question, and none of them in the release; without a yes nothing is written.

Identifiers planted in every format: none of them is in any byte, name or time of a release, and
what is left of rates, counts, lengths and losses links nothing to anybody.

What a lab may give to a publication by mistake, and what it is told: a file that cannot be read,
one person under two names, a stimulus that is called after somebody.
"""

from __future__ import annotations

import gzip
import json
import pickle
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gazeveil
from gazeveil import Recording
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.composition import BudgetError
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.release.publishing import Watcher, planned, publish
from gazeveil.release.recipe import Recipe
from gazeveil.release.verify import verify
from tests.support.command_line import gazeveil as command
from tests.support.command_line import run
from tests.support.identifiers import FORMATS, plant, traces_in
from tests.support.recordings import real

#: Forty first names, of several languages and scripts.
NAMES = """
Anneliese Bartholomew Celestine Dagmar Eberhard Friederike Gundula Hannelore Ingeborg
Joachim Katharina Leopold Mechthild Nikolaus Ottilie Philippa Quirin Roswitha Siegfried
Theodora Ulrike Valentin Wilhelmina Xaver Yolanda Zacharias Jürgen Käthe Sören Zoë
François Begoña Łukasz Øyvind Aleksandra Mikhail 小明王 陈美丽 さくら Αλέξης
"""
FIRST_NAMES = NAMES.split()

PIXELS = np.array([960.0, 540.0])


def rows(seed: int) -> pl.DataFrame:
    """Two seconds of gaze at 100 Hz, in pixels."""
    rng = np.random.default_rng(seed)
    places = np.repeat(rng.normal(PIXELS, 150, (8, 2)), 25, axis=0) + rng.normal(0, 2, (200, 2))
    return pl.DataFrame({"t_ms": np.arange(200) * 10, "x_px": places[:, 0], "y_px": places[:, 1]})


def files(folder: Path, name_of: Callable[[str, str, int], str], people: list[str]) -> None:
    for i, person in enumerate(people):
        for j, film in enumerate(("beach", "room")):
            path = folder / name_of(person, film, i)
            path.parent.mkdir(parents=True, exist_ok=True)
            rows(10 * i + j).write_csv(path)


def in_paths(pattern: str) -> Callable[[Path, list[str]], None]:
    """A layout in which people are parts of paths."""

    def make(folder: Path, people: list[str]) -> None:
        files(folder, lambda p, s, i: pattern.format(name=p, film=s, number=f"{i + 1:02d}"), people)

    return make


def in_columns(person: str, *others: str) -> Callable[[Path, list[str]], None]:
    """A layout of one table, with further columns that hold other people's names."""

    def make(folder: Path, people: list[str]) -> None:
        folder.mkdir(parents=True)
        parts = [
            rows(10 * i + j).with_columns(
                pl.lit(name).alias(person),
                pl.lit(film).alias("stimulus"),
                *(pl.lit(people[-1 - k]).alias(column) for k, column in enumerate(others)),
            )
            for i, name in enumerate(people)
            for j, film in enumerate(("beach", "room"))
        ]
        pl.concat(parts).write_csv(folder / f"all_{people[0]}.csv")

    return make


def with_table(folder: Path, people: list[str]) -> None:
    in_paths("p{number}/{film}.csv")(folder, people)
    cells = {
        "person": [f"p{i + 1:02d}" for i in range(len(people))],
        "name": people,
        "mail": [f"{p}@lab.example" for p in people],
        "age": [30] * len(people),
    }
    pl.DataFrame(cells).write_csv(folder / "people.csv")
    (folder / "README.txt").write_text(f"Recorded by {people[0]} and {people[1]}.", "utf-8")


LAYOUTS: dict[str, Callable[[Path, list[str]], None]] = {
    "person/film": in_paths("{name}/{film}.csv"),
    "film/person": in_paths("{film}/{name}.csv"),
    "cond/film/person": in_paths("cond/{film}/{name}.csv"),
    "person_film": in_paths("{name}_{film}.csv"),
    "film_person": in_paths("{film}_{name}.csv"),
    "site/date/person": in_paths("site_a/2024-05-17/{name}/{film}.csv"),
    "number, film and name": in_paths("p{number}/{film}_{name}.csv"),
    "mail": in_paths("{name}@lab.example/{film}.csv"),
    "session of a name": in_paths("sub-{number}/ses-{name}/{film}.csv"),
    "column": in_columns("participant", "experimenter"),
    "column nobody lists": in_columns("Kürzel", "Versuchsleiterin", "remark"),
    "table of people": with_table,
}


def texts_of(folder: Path) -> Iterator[str]:
    """Every text of a release, read by other means than the library's."""
    for path in sorted(folder.rglob("*")):
        yield path.relative_to(folder).as_posix()
        if path.suffix == ".parquet":
            yield json.dumps(pl.read_parquet_metadata(path), ensure_ascii=False)
            yield pl.read_parquet(path).write_csv()
        elif path.is_file():
            data = path.read_bytes()
            # Compressed bytes may look like any three letters.
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            yield from (data.decode(code, "replace") for code in ("utf-8", "utf-16-le", "latin-1"))
            yield data.decode("unicode_escape", "replace")


def recipe_of(source: Path, mechanism: str = "gaussian:sigma_deg=3", to: str = "parquet") -> Recipe:
    choices = PublicationChoices(durations="common", to=to)
    return Recipe(source, mechanism, choices, battery="none")


def releases() -> list[Any]:
    """Every layout in every form: each layout in one, and one of names in its columns in all three;
    `make audit` has the others.
    """
    forms = ("parquet", "csv", "bids")
    return [
        pytest.param(layout, to, marks=() if soon else pytest.mark.heavy)
        for i, layout in enumerate(LAYOUTS)
        for j, to in enumerate(forms)
        for soon in [i % 3 == j or layout == "column nobody lists"]
    ]


@pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")
@pytest.mark.parametrize(("layout", "to"), releases())
def test_no_first_name_is_in_a_release(layout: str, to: str, tmp_path: Path) -> None:
    place = list(LAYOUTS).index(layout)
    people = [FIRST_NAMES[(4 * place + i) % len(FIRST_NAMES)] for i in range(4)]
    source, out = tmp_path / "in", tmp_path / "out"
    LAYOUTS[layout](source, people)
    cohort = gazeveil.read(source)
    publish(recipe_of(source, to=to), cohort, out, Watcher(ask=lambda questions: None))
    written = "\n".join(texts_of(out)).casefold()
    assert [name for name in people if name.casefold() in written] == []
    assert verify(out, against=source).passed


@pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")
@pytest.mark.parametrize("mechanism", ["heatmap-laplace:epsilon=2", "fpa:epsilon=10"])
@pytest.mark.parametrize("layout", ["film/person", "number, film and name", "column"])
def test_no_first_name_is_in_maps_and_tables(layout: str, mechanism: str, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    LAYOUTS[layout](source, FIRST_NAMES[20:24])
    told = Watcher(ask=lambda questions: None)
    publish(recipe_of(source, mechanism), gazeveil.read(source), out, told)
    written = "\n".join(texts_of(out)).casefold()
    assert [name for name in FIRST_NAMES if name.casefold() in written] == []


@pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_guesses_stop_a_release(layout: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    LAYOUTS[layout](source, FIRST_NAMES[:4])
    with pytest.raises(DataError, match=r"Reading guessed what a release rests on"):
        publish(recipe_of(source), gazeveil.read(source), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")
def test_an_assumed_screen_and_lost_samples_stop_a_release(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    gone_back = pl.concat([rows(1), rows(2).head(120)]).with_columns(participant=pl.lit("p1"))
    whole = rows(3).with_columns(participant=pl.lit("p2"))
    pl.concat([gone_back, whole]).write_csv(source / "all.csv")
    with pytest.raises(DataError) as stopped:
        publish(recipe_of(source), gazeveil.read(source), tmp_path / "out")
    assert "screen: 1920 x 1080" in str(stopped.value)
    assert "1 recording with more than 20 % lost by reading" in str(stopped.value)


REBUILT: dict[str, Callable[[Cohort, Path], Cohort]] = {
    "a list of its recordings": lambda cohort, path: Cohort(list(cohort)),
    "its items": lambda cohort, path: Cohort(cohort.items),
    "merged": lambda cohort, path: Cohort([*cohort.items[:3], *list(cohort)[3:]]),
    "written and read": lambda cohort, path: gazeveil.read(cohort.write(path)),
}


@pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")
@pytest.mark.parametrize("mechanism", ["gaussian:sigma_deg=3", "k-same-synth:k=2"])
@pytest.mark.parametrize("way", REBUILT)
def test_no_first_name_is_in_a_release_of_a_rebuilt_cohort(
    way: str, mechanism: str, tmp_path: Path
) -> None:
    LAYOUTS["film/person"](tmp_path / "in", FIRST_NAMES[:4])
    cohort = REBUILT[way](gazeveil.read(tmp_path / "in"), tmp_path / "parquet")
    gazeveil.protect(cohort, mechanism).write(tmp_path / "out", ledger=False)
    written = "\n".join(texts_of(tmp_path / "out")).casefold()
    assert [name for name in FIRST_NAMES[:4] if name.casefold() in written] == []


@pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")
def test_a_guess_stays_a_guess_when_it_is_written_as_parquet(tmp_path: Path) -> None:
    LAYOUTS["film/person"](tmp_path / "in", FIRST_NAMES[:4])
    source = gazeveil.read(tmp_path / "in").write(tmp_path / "parquet")
    with pytest.raises(DataError, match="people are parts of paths") as stopped:
        publish(recipe_of(source), gazeveil.read(source), tmp_path / "out")
    assert 'confirmed = ["person"' in str(stopped.value)


def test_without_a_yes_the_lines_are_shown_and_with_it_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAZEVEIL_HOME", str(tmp_path / "home"))
    source, out = tmp_path / "in", tmp_path / "out"
    in_paths("{name}/{film}.csv")(source, FIRST_NAMES[:4])
    words = ("publish", source, out, "-m", "gaussian:sigma_deg=3", "--attacks", "none")
    stopped = command(*words)
    assert stopped.code == 2
    assert "Say --confirm" in " ".join(stopped.err.split())
    assert not out.exists()
    assert not (source / "dataset.toml").exists()
    done = command(*words, "--confirm")
    assert done.code == 0, done.err
    told = tomllib.loads((source / "dataset.toml").read_text("utf-8"))
    assert told["pattern"] == "{person}/{stimulus}.csv"
    assert command("protect", source, tmp_path / "again", "-m", "gaussian:sigma_deg=3").code == 0
    refused = command(
        "publish", source, tmp_path / "third", "-m", "k-same-synth:k=2", "--attacks", "none"
    )
    assert refused.code == 2
    said = " ".join(refused.err.split())
    for way in (out.name, "--instead-of", "--compare"):
        assert way in said


def test_a_release_makes_room_and_a_note_beside_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAZEVEIL_HOME", str(tmp_path / "home"))
    source, out = tmp_path / "in", tmp_path / "out"
    in_columns("participant")(source, FIRST_NAMES[:4])
    words = ("publish", source, "-m", "k-same-synth:k=2", "--attacks", "none", "--confirm")
    assert command(*words, out).code == 0
    (out / "notes.txt").write_text("mine")
    refused = command(*words, tmp_path / "second", "--instead-of", out)
    assert refused.code == 2
    assert "notes.txt is no file of the release" in " ".join(refused.err.split())
    assert (out / "PRIVACY.json").exists()
    (out / "notes.txt").unlink()
    assert command(*words, tmp_path / "second", "--instead-of", out).code == 0
    assert not out.exists()
    assert command(*words, tmp_path / "third", "--instead-of", source).code == 2
    assert len(list(source.iterdir())) == 2


@pytest.mark.parametrize("name", ["dpgazesynth:epsilon=4", "mosaic:epsilon=4,r_deg=4"])
def test_a_release_that_is_not_loaded_says_why_it_is_not_pickled(name: str, tmp_path: Path) -> None:
    source = gazeveil.simulate(12, 1, 6.0, 60.0, seed=1).write(tmp_path / "in")
    release = gazeveil.protect(gazeveil.read(source), name)
    with pytest.raises(DataError, match="Write it, or load it first"):
        pickle.dumps(release)
    assert "mechanism" in release._repr_html_()


#: A dataset of fixations alone has no samples to protect.
SAMPLES = [name for name in FORMATS if name != "neuroliaa"]


def published(source: Path, out: Path, mechanism: str, **choices: object) -> Cohort:
    recipe = Recipe(
        source,
        mechanism,
        PublicationChoices(**{"durations": "common", **choices}),  # type: ignore[arg-type]
        battery="none",
    )
    # What is planted is one recording under two names, which a test release alone takes.
    answers = ("person", "copy", "screen")
    publish(recipe, gazeveil.read(source, confirmed=answers), out, seed=1)
    return gazeveil.read(out)


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")
@pytest.mark.parametrize("name", SAMPLES)
def test_no_planted_identifier_is_in_a_release(name: str, tmp_path: Path) -> None:
    assert plant(name, tmp_path / "in")
    assert traces_in(tmp_path / "in")
    copy = published(tmp_path / "in", tmp_path / "out", "gaussian:sigma_deg=2")
    assert len(copy) > 0
    assert traces_in(tmp_path / "out") == []


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")
@pytest.mark.parametrize("to", ["csv", "bids"])
@pytest.mark.parametrize("name", ["pupil-invisible", "parquet", "eyenavgs"])
def test_no_planted_identifier_is_in_a_release_of_another_format(
    name: str, to: str, tmp_path: Path
) -> None:
    plant(name, tmp_path / "in")
    published(tmp_path / "in", tmp_path / "out", "gaussian:sigma_deg=2", to=to)
    assert traces_in(tmp_path / "out") == []


def signature(recording: Recording) -> tuple[float, int, float, int]:
    """What links recordings without any look at gaze."""
    lost = int((~recording.valid).sum())
    return recording.rate_hz, len(recording), recording.duration_s, lost


@pytest.mark.data
def test_rates_counts_lengths_and_losses_of_eyenavgs_link_nothing(tmp_path: Path) -> None:
    source = real("eyenavgs_nthu")
    scenes = sorted(p.name for p in source.iterdir() if p.is_dir())[:2]
    raw = gazeveil.read(source).select(stimuli=scenes)
    raw = Cohort(raw.items[:: max(1, len(raw) // 12)], raw.people)
    signatures = {signature(r) for r in raw}
    assert len({s[0] for s in signatures}) > 4  # rates of their own: the danger is there
    recipe = Recipe(
        source,
        "gaussian:sigma_deg=2",
        PublicationChoices(durations="common", keep=("stimulus",)),
        battery="none",
    )
    publish(recipe, raw, tmp_path / "out")
    copy = gazeveil.read(tmp_path / "out")
    assert len({r.rate_hz for r in copy}) == 1
    for stimulus in scenes:  # one signature for each scene: nothing but guessing
        assert len(copy.select(stimuli=[stimulus])) == len(raw.select(stimuli=[stimulus]))
        assert len({signature(r) for r in copy.select(stimuli=[stimulus])}) == 1


@pytest.mark.data
def test_lengths_that_are_kept_are_printed_as_not_covered(tmp_path: Path) -> None:
    plant("eyenavgs", tmp_path / "in")
    recipe = Recipe(tmp_path / "in", "gaussian:sigma_deg=2", PublicationChoices(), battery="none")
    done = publish(recipe, gazeveil.read(tmp_path / "in"), tmp_path / "out")
    assert "how long each recording is" in done.description.guarantee.not_covered


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
