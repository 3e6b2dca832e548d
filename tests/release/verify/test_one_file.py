"""Releases of tables, maps and drawn recordings are verified as whole as those of samples: what
they count, promise and leave out, also where the tamperer wrote page and hashes anew.

Releases of every format, of maps and of feature tables are verified; raw rows in text are found
as they are in Parquet.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.privacy.publication.certificate import hashes
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.privacy.publication.page import page
from gazeveil.release.publishing import publish
from gazeveil.release.recipe import Recipe
from gazeveil.release.verify import verify
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
