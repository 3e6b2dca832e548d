"""Releases of tables, maps and drawn recordings are verified as whole as those of samples: what
they count, promise and leave out, also where the tamperer wrote page and hashes anew.

Releases of every format, of maps and of feature tables are verified; raw rows in text are found
as they are in Parquet.

A release of somebody hostile makes `verify` open no file outside it, wait for nothing, and print
nothing but text.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import GazeveilError
from gazeveil.privacy.publication.certificate import hashes
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.privacy.publication.page import page
from gazeveil.release.publishing import publish
from gazeveil.release.recipe import Recipe
from gazeveil.release.verify import VerifiedRelease, verify
from tests.release.verify.test_verify import MECHANISM, certified_anew, named, red
from tests.support.command_line import run

TABLE, MAPS, DRAWN, THINNED = (
    "fpa:epsilon=10",
    "heatmap-laplace:epsilon=2",
    "event-synth-pd:k=4,gamma=4",
    "temporal:K=3",
)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of stimuli that folders are called after, with a digit, as GazeCom has one."""
    made = gazeveil.simulate(8, 2, 6.0, 60.0, seed=1)
    folder = tmp_path_factory.mktemp("raw") / "recordings"
    gazeveil.Cohort(
        [r.with_(person=f"viewer{r.person}", stimulus=f"bridge_{r.stimulus[-1]}") for r in made]
    ).write(folder)
    (folder / "bridge_1").mkdir()
    return folder


@pytest.fixture(scope="module")
def releases(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("releases")
    for mechanism in (TABLE, MAPS, DRAWN, THINNED):
        released(raw, folder / mechanism.partition(":")[0], mechanism)
    return folder


def released(raw: Path, out: Path, mechanism: str, to: str = "parquet") -> Path:
    choices = PublicationChoices(durations="common", to=to)
    publish(Recipe(raw, mechanism, choices, battery="none"), gazeveil.read(raw), out)
    return out


@pytest.mark.parametrize("to", ["parquet", "csv"])
@pytest.mark.parametrize("mechanism", [TABLE, MAPS, "k-same-select:k=4", "marginals:k=4"])
def test_a_table_and_maps_are_green_against_their_recordings(
    mechanism: str, to: str, raw: Path, tmp_path: Path
) -> None:
    out = released(raw, tmp_path / "out", mechanism, to)
    result = verify(out, against=raw)
    assert result.passed, [c for c in result.checks if not c.passed]
    assert next(c for c in result.checks if c.name == "promise").note.startswith("worked out again")


def _both(name: str, value: list[str]) -> Callable[[dict[str, Any]], None]:
    def edit(certificate: dict[str, Any]) -> None:
        certificate[name] = certificate["guarantee"][name] = value

    return edit


def _more_people(certificate: dict[str, Any]) -> None:
    certificate["mechanism"]["parameters"]["k"] = "40"
    for part in (certificate["guarantee"], certificate["per_person"]):
        part["numbers"]["k"] = "40"


def _less_for_a_person(certificate: dict[str, Any]) -> None:
    certificate["guarantee"]["user"] = {"epsilon": "1"}
    certificate["per_person"]["numbers"] = {"epsilon": "1"}


@pytest.mark.parametrize(
    ("mechanism", "edit", "red"),
    [
        (TABLE, lambda c: c["contents"].update(people=2400), "contents"),
        (TABLE, lambda c: c["contents"].update(rows=5), "contents"),
        (TABLE, lambda c: c["per_person"]["numbers"].update(epsilon="1"), "promise"),
        (TABLE, _less_for_a_person, "promise"),
        (TABLE, _both("not_covered", []), "promise"),
        (TABLE, _both("assumptions", []), "promise"),
        (MAPS, lambda c: c["contents"].update(stimuli=1), "contents"),
        (MAPS, lambda c: c["contents"].update(people=500), "contents"),
        (MAPS, _less_for_a_person, "promise"),
        (MAPS, _both("not_covered", []), "promise"),
        (DRAWN, _more_people, "groups"),
        (DRAWN, lambda c: c["per_person"]["numbers"].update(k="40"), "promise"),
        (DRAWN, lambda c: c.update(not_covered=[]), "promise"),
        (THINNED, lambda c: c["guarantee"].update(status="proved"), "promise"),
    ],
)
def test_an_edited_certificate_is_red_although_page_and_hashes_fit(
    mechanism: str, edit: Callable[[dict[str, Any]], None], red: str, releases: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(releases / mechanism.partition(":")[0], out)
    assert verify(out).passed
    certified_anew(out, edit)
    assert {c.name for c in verify(out).checks if not c.passed} == {red}


def test_a_table_of_people_is_green_until_it_promises_larger_groups(tmp_path: Path) -> None:
    people = {f"a{i}": {"age": 20 + i % 9, "gender": "fm"[i % 2]} for i in range(24)}
    file = tmp_path / "people.csv"
    gazeveil.mechanism("demographics:k=4").release(people).write(file)
    assert verify(file).failures == ()
    stated = file.with_name("people.csv.PRIVACY.json")
    certificate = json.loads(stated.read_text("utf-8"))
    certificate["mechanism"]["parameters"]["k"] = "20"
    for part in (certificate["guarantee"], certificate["per_person"]):
        part["numbers"]["k"] = "20"
    file.with_name("people.csv.PRIVACY.md").write_text(page(certificate), "utf-8")
    certificate["files"] = hashes(file)
    stated.write_text(json.dumps(certificate, indent=1), "utf-8")
    assert [c.name for c in verify(file).checks if not c.passed] == ["contents"]


@pytest.mark.parametrize("name", ["fpa", "heatmap-laplace"])
def test_inspect_prints_the_certificate_of_a_table_and_of_maps(
    name: str, releases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", releases / name) == 0
    assert f"Made by {name} (corrected)." in capsys.readouterr().out


def test_a_damaged_table_is_red(releases: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(releases / "fpa", out)
    (out / "features.parquet").write_bytes(b"PAR1 nothing PAR1")
    assert not verify(out).passed


@pytest.mark.parametrize("mechanism", [TABLE, MAPS])
def test_what_the_public_clock_tells_is_not_covered_by_tables_and_maps_either(
    mechanism: str, releases: Path
) -> None:
    out = releases / mechanism.partition(":")[0]
    certificate = json.loads((out / "PRIVACY.json").read_text("utf-8"))
    assert any("rounded medians" in clause for clause in certificate["not_covered"])
    assert any("clock of 60 Hz" in clause for clause in certificate["assumptions"])


def test_the_page_says_nothing_of_names_where_maps_have_none(releases: Path) -> None:
    assert "random names" in (releases / "fpa/PRIVACY.md").read_text("utf-8")
    assert "random names" not in (releases / "heatmap-laplace/PRIVACY.md").read_text("utf-8")


def test_the_page_does_not_call_samples_gone_that_stay(releases: Path) -> None:
    gone = "The recordings themselves are not part of this release."
    assert gone in (releases / "fpa/PRIVACY.md").read_text("utf-8")
    assert gone not in (releases / "temporal/PRIVACY.md").read_text("utf-8")


@pytest.fixture(scope="module")
def raw_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw_texts") / "recordings"
    named(gazeveil.simulate(8, 2, 4.0, 120.0, task="reading", seed=1)).write(folder)
    return folder


def plant(file: Path, raw_texts: Path, samples: int, write: Callable[[float], str]) -> None:
    """Put recorded samples into a text file whose gaze is in the columns 1 and 2."""
    packed = file.suffix == ".gz"
    text = gzip.decompress(file.read_bytes()).decode() if packed else file.read_text("utf-8")
    lines = text.splitlines()
    sign = "\t" if "\t" in lines[0] else ","
    original = gazeveil.read(raw_texts)[3]
    at = np.flatnonzero(original.valid)[100 : 100 + samples]
    for line, i in enumerate(at, start=30):
        cells = lines[line].split(sign)
        cells[1:3] = write(float(original.x_deg[i])), write(float(original.y_deg[i]))
        lines[line] = sign.join(cells)
    data = ("\n".join(lines) + "\n").encode()
    file.write_bytes(gzip.compress(data, mtime=0) if packed else data)


@pytest.fixture(scope="module", params=["csv", "bids"])
def text_release(
    raw_texts: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """A release in text that is what its certificate says."""
    out = tmp_path_factory.mktemp("text_release") / "out"
    with pytest.MonkeyPatch.context() as patch:  # before a test has a home of its own
        patch.setenv("GAZEVEIL_HOME", str(out.parent / "home"))
        assert run("protect", raw_texts, out, "--mechanism", MECHANISM, "--to", request.param) == 0
    assert verify(out, raw_texts).failures == ()
    return out


@pytest.mark.parametrize(
    ("samples", "write"),
    [(1, repr), (8, repr), (8, "{:.3f}".format)],
    ids=["one", "run", "rounded"],
)
def test_raw_rows_in_text_are_red(
    text_release: Path, samples: int, write: Callable[[float], str], raw_texts: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(text_release, tmp_path / "out"))
    files = [*out.glob("recordings/*.csv"), *out.glob("**/*_physio.tsv.gz")]
    plant(sorted(files)[4], raw_texts, samples, write)
    assert red(verify(out)) == ["files"]
    certified_anew(out)
    assert verify(out).passed
    assert red(verify(out, raw_texts)) == ["raw rows"]


def test_a_feature_table_is_verified_with_the_certificate_beside_it(
    raw_texts: Path, tmp_path: Path
) -> None:
    table = gazeveil.window_features(gazeveil.read(raw_texts), window_s=2, step_s=0.5)
    file = tmp_path / "features.csv"
    gazeveil.protect(table, "dct-knorm:epsilon=10").write(file)
    assert verify(file, raw_texts).failures == ()
    (tmp_path / "other.txt").write_text("anna-schmidt", "utf-8")  # not part of the release
    assert verify(file, raw_texts).passed
    text = file.read_text("utf-8")
    file.write_text(text.replace("0", "1", 1), "utf-8")
    assert red(verify(file))[0] == "files"
    file.write_text(text + "bob.jones\n", "utf-8")
    assert {"files", "identifiers"} <= set(red(verify(file, raw_texts)))
    file.unlink()
    assert run("verify", file) == 2


def test_long_names_become_files_that_a_disk_takes(tmp_path: Path) -> None:
    long = ("x" * 5000, "y" * 5000)
    cohort = gazeveil.Cohort(
        r.with_(stimulus=name, session=name[:300], task=name[:400])
        for r, name in zip(gazeveil.simulate(2, 1, 2.0, 60.0, seed=1), long, strict=True)
    )
    gazeveil.protect(cohort, MECHANISM).write(tmp_path / "out", to="bids")
    assert verify(tmp_path / "out").passed
    assert len(gazeveil.read(tmp_path / "out")) == 2


#: The header of the file outside, which an error about it would quote.
SECRET = "salary_of_gertrud"
BOXES = "stimulus,name,left_deg,top_deg,right_deg,bottom_deg\n*,whole,100,60,160,100\n"
LARGEST = "kaleido:epsilon=1,w=30,r_deg=largest,regions="


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "out"
    cohort = gazeveil.simulate(3, 1, 2.0, 60.0, seed=1)
    gazeveil.protect(cohort, "kaleido:epsilon=1,w=30,r_deg=2").write(folder)
    return folder


@pytest.fixture
def out(published: Path, tmp_path: Path) -> Path:
    shutil.copytree(published, tmp_path / "out")
    (tmp_path / "secret.csv").write_text(f"name,{SECRET}\n1,2\n")
    return tmp_path / "out"


def forged(folder: Path, edit: Callable[[dict[str, Any]], None]) -> VerifiedRelease:
    """The verdict on a certificate with hashes that fit, and a page where one can be made."""
    certificate = json.loads((folder / "PRIVACY.json").read_text("utf-8"))
    edit(certificate)
    with contextlib.suppress(GazeveilError):
        (folder / "PRIVACY.md").write_text(page(certificate), "utf-8")
    certificate["files"] = hashes(folder)
    (folder / "PRIVACY.json").write_text(json.dumps(certificate), "utf-8")
    return verify(folder)


@pytest.mark.parametrize(
    "made",
    [
        {"name": "kaleido", "parameters": {"regions": "PATH"}},
        {"name": "kaleido-uniform", "parameters": {"regions": "PATH"}},
        {"name": "kaleido", "parameters": {"w": "30,regions=PATH"}},
        {"name": "kaleido:regions=PATH,stimulus", "parameters": {}},
        {"name": "chain", "parameters": {"stages": "kaleido(E;regions=PATH)"}},
        {"name": "chain", "parameters": {"stages": "temporal(K=2)+kaleido(E; regions = PATH )"}},
    ],
    ids=["alone", "uniform", "in-a-value", "in-the-name", "in-a-chain", "second-in-a-chain"],
)
@pytest.mark.parametrize("way", ["absolute", "above", "below-and-above", "linked"])
def test_no_file_outside_is_opened(out: Path, made: dict[str, Any], way: str) -> None:
    os.symlink(out.parent / "secret.csv", out.parent / "linked.csv")
    path = {
        "absolute": str(out.parent / "secret.csv"),
        "above": "../secret.csv",
        "below-and-above": "recordings/../../secret.csv",
        "linked": str(out.parent / "linked.csv"),
    }[way]
    needed = {} if made["name"] == "chain" else {"epsilon": "1", "w": "30", "r_deg": "largest"}
    parameters = {
        k: v.replace("PATH", path).replace("E", "epsilon=1;w=30;r_deg=largest")
        for k, v in {**needed, **made["parameters"]}.items()
    }
    name = made["name"].replace("PATH", path)
    result = forged(out, lambda c: c["mechanism"].update(name=name, parameters=parameters))
    assert not result.passed
    assert SECRET not in str(result.to_dict())


def test_a_file_of_the_working_directory_is_not_taken_for_one_of_the_release(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(out.parent)
    result = forged(
        out, lambda c: c["mechanism"]["parameters"].update(r_deg="largest", regions="secret.csv")
    )
    assert SECRET not in str(result.to_dict())


@pytest.mark.parametrize("text", [LARGEST, "chain:stages=kaleido(epsilon=1;w=30;r_deg=largest;"])
def test_who_verifies_may_give_the_file(tmp_path: Path, text: str) -> None:
    boxes, release = tmp_path / "boxes.csv", tmp_path / "with, comma" / "out"
    boxes.write_text(BOXES)
    chosen = f"{text}regions={boxes})" if "chain" in text else f"{text}{boxes}"
    cohort = gazeveil.simulate(3, 1, 2.0, 60.0, seed=1)
    gazeveil.protect(cohort, chosen).write(release)
    assert verify(release, regions=boxes).passed
    boxes.write_text(BOXES.replace("160", "120"))
    assert not verify(release, regions=boxes).passed  # another file gives another promise


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda g: None, ""),
        (lambda g: g["numbers"].update(epsilon="1/2"), "'numbers'"),
        (lambda g: g["numbers"].update(r_deg="90"), "not the least r of a stimulus"),
        (lambda g: g["numbers"].update(r_deg="far"), "not a number of degrees"),
        (lambda g: g["also"][0].update(epsilon="1/2"), "'also'"),
        (lambda g: g["user"].update(epsilon="1"), "'user'"),
    ],
)
def test_all_but_r_is_compared_without_the_file_of_regions(
    tmp_path: Path, edit: Callable[[dict[str, Any]], None], told: str
) -> None:
    boxes, release = tmp_path / "boxes.csv", tmp_path / "out"
    boxes.write_text(BOXES)
    cohort = gazeveil.simulate(3, 1, 2.0, 60.0, seed=1)
    gazeveil.protect(cohort, f"{LARGEST}{boxes}").write(release)
    forged(release, lambda c: edit(c["guarantee"]))
    check = next(c for c in verify(release, cohort).checks if c.name == "promise")
    assert bool(check.failures) == bool(told)
    assert told in " ".join(check.failures)
    assert told or "That r was not compared" in check.note


def test_a_window_is_compared_without_the_file_too(out: Path) -> None:
    def edit(certificate: dict[str, Any]) -> None:
        certificate["mechanism"]["parameters"].update(r_deg="largest", regions="boxes.csv")
        certificate["guarantee"]["numbers"]["w_samples"] = "3000"

    assert "'w_samples': '3000'" in " ".join(forged(out, edit).failures)


@pytest.mark.parametrize(
    "edit",
    [
        lambda c: c["alignment"].update(rate_hz="1e999999999"),
        lambda c: c["guarantee"]["numbers"].update(k="1e999999999"),
        lambda c: c["guarantee"].update(definition="k-anonymity", numbers={"k": "1e999999999"}),
        lambda c: c["per_person"].update(numbers={"epsilon": "1e999999999"}),
    ],
    ids=["rate", "k", "groups", "person"],
)
def test_numbers_that_would_fill_the_memory_are_red(
    out: Path, edit: Callable[[dict[str, Any]], None]
) -> None:
    assert not forged(out, edit).passed


@pytest.mark.parametrize("name", ["PRIVACY.md", "PRIVACY.sig", "recordings/more.parquet"])
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_nothing_is_read_beside_a_pipe_or_a_link(out: Path, name: str, kind: str) -> None:
    (out / name).unlink(missing_ok=True)
    os.mkfifo(out / name) if kind == "pipe" else os.symlink("/dev/zero", out / name)
    result = verify(out)
    assert [c.name for c in result.checks] == ["files"]
    assert not result.passed


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_certificate_is_a_file(out: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    place = out / "PRIVACY.json"
    place.unlink()
    os.mkfifo(place) if kind == "pipe" else os.symlink("/dev/zero", place)
    assert run("verify", out) == 2
    assert "neither a file nor a folder" in " ".join(capsys.readouterr().err.split())


def test_no_text_of_a_certificate_is_more_than_words_on_its_page(out: Path) -> None:
    evil = "x\n\n## What is promised\n\nAll is safe.\u202e <img src=x onerror=alert(1)> [a](b:c)"

    def edit(certificate: dict[str, Any]) -> None:
        certificate["kept"] = [evil]
        certificate["not_covered"] = [evil]
        certificate["mechanism"]["parameters"][evil] = evil
        certificate["attack"] = {
            **dict.fromkeys(("attacker", "found", "people", "guessing"), 1),
            "protocol": f"# {evil}",
            "deep": json.loads("[" * 80 + "]" * 80),
        }

    before = (out / "PRIVACY.md").read_text("utf-8")
    forged(out, edit)
    after = (out / "PRIVACY.md").read_text("utf-8")
    headings = [line for line in after.splitlines() if line.startswith("#")]
    assert headings == [line for line in before.splitlines() if line.startswith("#")]
    assert [t for t in ("<img", "](b", "\u202e") if t in after] == []
    assert after.count("&lt;img src=x") >= 4, "it is still said"


def test_no_text_of_a_release_moves_the_cursor(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "x\x1b[2J\x1b[H\r is what its certificate says.\n.txt").write_text("x")
    assert run("verify", out) == 1
    printed = capsys.readouterr()
    assert not set("\x1b\r\x9b") & set(printed.out + printed.err)
    assert sum(line.endswith("certificate says.") for line in printed.out.splitlines()) == 0
