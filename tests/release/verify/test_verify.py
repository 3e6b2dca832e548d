"""`verify` is green for what was released and red for each way of tampering with it, also where the
tamperer wrote the certificate anew.

Whatever says which pieces belong together is found.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gazeveil
from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Message
from gazeveil.io.parquet import load, write_recording
from gazeveil.privacy.publication.certificate import hashes, new_key, read_certificate, sign
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.privacy.publication.page import page
from gazeveil.release.publishing import publish
from gazeveil.release.recipe import Recipe
from gazeveil.release.verify import VerifiedRelease, verify
from gazeveil.release.verify.promised import FilesOfRelease, ReleasedRecording, check_pieces
from gazeveil.release.verify.run import vocabulary
from tests.support.command_line import run

NAMES = (
    "anna-schmidt",
    "bob.jones",
    "carla_neumann",
    "dieter",
    "emil77",
    "frieda",
    "gus",
    "hannelore",
)
WORD = re.compile(r"[^\W\d_]{3,}")
MECHANISM = "kaleido:epsilon=1,w=30,r_deg=2"


def named(cohort: gazeveil.Cohort) -> gazeveil.Cohort:
    """The cohort with names, a session that is a date, and a message."""
    new = dict(zip(cohort.people, NAMES, strict=True))
    message = Message(0, "operator Gertrud Maier, device QX-448812")
    recordings = [
        r.with_(
            person=new[r.person],
            session="2017-10-13-10-27",
            messages=(message,),
            metadata={"serial": "SN-9938-21", "calibration": {"eye_distance_mm": 63.218754}},
            rate_hz=119.8837265,
            t_ns=r.t_ns + 1_629_390_345_000_000_000,
            pupil=np.full(len(r), 3.2),
        )
        for r in cohort
    ]
    people = {
        new[p]: {"age": 20 + i, "gender": "f" if i % 2 else "m"}
        for i, p in enumerate(cohort.people)
    }
    return gazeveil.Cohort(recordings, people)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw") / "recordings"
    named(gazeveil.simulate(8, 2, 4.0, 120.0, seed=1)).write(folder)
    return folder


@pytest.fixture(scope="module")
def published(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "out"
    assert run("protect", raw, folder, "--mechanism", MECHANISM) == 0
    return folder


@pytest.fixture
def out(published: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "out"
    shutil.copytree(published, copy)
    return copy


def certified_anew(folder: Path, edit: Callable[[dict[str, Any]], None] = lambda c: None) -> None:
    """What somebody does who tampers and knows how: a page and hashes that fit."""
    certificate = json.loads((folder / "PRIVACY.json").read_text("utf-8"))
    edit(certificate)
    (folder / "PRIVACY.md").write_text(page(certificate), "utf-8")
    certificate["files"] = hashes(folder)
    (folder / "PRIVACY.json").write_text(json.dumps(certificate, indent=1), "utf-8")


def red(result: VerifiedRelease) -> list[str]:
    return [check.name for check in result.checks if not check.passed]


def recordings(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


def test_what_was_released_is_green(out: Path, raw: Path) -> None:
    result = verify(out, raw)
    assert result.failures == ()
    assert len(result.checks) == 10
    certified_anew(out)
    assert verify(out, raw).passed  # so what is red below is red for what was edited


def test_one_flipped_byte_is_red(out: Path) -> None:
    file = recordings(out)[3]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    result = verify(out)
    assert f"recordings/{file.name} was changed" in " ".join(result.failures)


def test_missing_and_extra_files_are_named(out: Path) -> None:
    file = recordings(out)[0]
    file.rename(out / "recordings" / "other.bin")
    assert {
        f"recordings/{file.name} is missing.",
        "recordings/other.bin is not in the certificate.",
    } <= set(verify(out).failures)


def test_two_people_swapped_are_red(out: Path) -> None:
    rows = {load(f).person: f for f in recordings(out)}
    (one, first), (two, second) = list(rows.items())[:2]
    for file, name in ((first, two), (second, one)):
        write_recording(load(file).with_(person=name), file)
    assert "files" in red(verify(out))


@pytest.mark.parametrize(
    "edit",
    [
        lambda c: c["mechanism"]["parameters"].update(epsilon="1/10"),
        lambda c: c["mechanism"]["parameters"].update(w="60"),
        lambda c: c["mechanism"]["parameters"].update(epsilon="-1"),
        lambda c: c["mechanism"].update(name="nonsense"),
        lambda c: c["guarantee"]["numbers"].update(epsilon="1/10"),
        lambda c: c["guarantee"]["user"].update(epsilon="1"),
        lambda c: c["per_person"]["numbers"].update(epsilon="1"),
        lambda c: c.update(sentence=c["sentence"].replace("epsilon = 1,", "epsilon = 0.1,")),
        lambda c: c["guarantee"].update(definition="epsilon-dp"),
        lambda c: c.pop("mechanism"),
    ],
)
def test_an_edited_promise_is_red_even_where_page_and_hashes_are_made_anew(
    out: Path, edit: Callable[[dict[str, Any]], None]
) -> None:
    certificate = json.loads((out / "PRIVACY.json").read_text("utf-8"))
    edit(certificate)
    (out / "PRIVACY.json").write_text(json.dumps(certificate), "utf-8")
    assert not verify(out).passed
    if "mechanism" in certificate:
        certified_anew(out)
        assert red(verify(out)) == ["promise"]


def _places(part: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where every value of a certificate stands."""
    inside = part.items() if isinstance(part, dict) else enumerate(part)
    found = []
    for name, value in inside:
        found.append((*before, name))
        if isinstance(value, dict | list):
            found += _places(value, (*before, name))
    return found


@pytest.mark.parametrize(
    ("junk", "every"),
    [(None, 4), *(pytest.param(junk, 1, marks=pytest.mark.heavy) for junk in (None, "1/0"))],
)
def test_no_value_of_a_certificate_can_be_edited_unseen(
    out: Path, junk: object, every: int
) -> None:
    """Each is red or bad input, never green and never a traceback."""
    file = out / "PRIVACY.json"
    whole = file.read_text("utf-8")
    for place in _places(json.loads(whole))[::every]:
        certificate = json.loads(whole)
        part = certificate
        for name in place[:-1]:
            part = part[name]
        if part[place[-1]] == junk and type(part[place[-1]]) is type(junk):
            continue
        part[place[-1]] = junk
        file.write_text(json.dumps(certificate), "utf-8")
        try:
            passed = verify(out).passed
        except FormatError:
            continue
        assert not passed, place


def test_a_sum_over_a_person_follows_from_the_recordings_that_were_protected(
    raw: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    gazeveil.protect(gazeveil.read(raw), MECHANISM).write(folder, rate_hz=60)  # aligned afterwards
    assert "--against" in verify(folder).checks[4].note
    assert verify(folder, raw).passed

    def less(certificate: dict[str, Any]) -> None:
        certificate["guarantee"]["user"]["epsilon"] = "1"
        certificate["per_person"]["numbers"]["epsilon"] = "1"

    certified_anew(folder, less)
    assert red(verify(folder, raw)) == ["promise"]


def test_an_edited_page_is_red(out: Path) -> None:
    text = (out / "PRIVACY.md").read_text("utf-8")
    (out / "PRIVACY.md").write_text(text.replace("2.72", "1.01"), "utf-8")
    assert red(verify(out)) == ["files", "page"]


def test_the_page_of_another_version_is_known_by_its_hash(out: Path) -> None:
    certified_anew(out, lambda c: c["versions"].update(gazeveil="0.0.9"))
    text = (out / "PRIVACY.md").read_text("utf-8")
    (out / "PRIVACY.md").write_text(text.replace("# Privacy of", "# About"), "utf-8")
    certificate = json.loads((out / "PRIVACY.json").read_text("utf-8"))
    certificate["files"] = hashes(out)
    (out / "PRIVACY.json").write_text(json.dumps(certificate), "utf-8")
    assert verify(out).passed
    assert "of version 0.0.9" in verify(out).checks[1].note
    certificate["kept"] = ["person"]
    (out / "PRIVACY.json").write_text(json.dumps(certificate), "utf-8")
    assert red(verify(out)) == ["page"]


def test_wrong_counts_rates_and_times_are_red(out: Path) -> None:
    certified_anew(out, lambda c: c["contents"].update(samples=1))
    assert "counts 1 samples" in " ".join(verify(out).failures)
    file = recordings(out)[0]
    r = load(file)
    write_recording(r.with_(t_ns=r.t_ns + 5, pupil=np.ones(len(r))), file)
    certified_anew(out)
    told = " ".join(verify(out).failures)
    assert "1 recordings do not begin at time 0" in told
    assert "1 recordings have pupil" in told


def planted(out: Path, raw: Path, samples: int, step: int = 1) -> None:
    """Put some recorded samples into a released recording."""
    file = recordings(out)[2]
    r, original = load(file), load(recordings(raw)[5])
    x, y = r.x_deg.copy(), r.y_deg.copy()
    at = np.flatnonzero(r.valid & original.valid)[50 : 50 + samples * step : step]
    x[at], y[at] = original.x_deg[at], original.y_deg[at]
    write_recording(r.with_(x_deg=x, y_deg=y), file)
    certified_anew(out)


@pytest.mark.parametrize("samples", [1, 2, 40])
def test_planted_raw_rows_are_red(samples: int, out: Path, raw: Path) -> None:
    planted(out, raw, samples)
    assert verify(out).passed  # nobody can see it without the recordings
    assert red(verify(out, raw)) == ["raw rows"]


def test_a_screen_with_the_digits_of_an_estimate_is_red(out: Path) -> None:
    file = recordings(out)[0]
    still = load(file)
    screen, zero = Screen(1920, 1080, 513.8106178756442, 290, 630), np.zeros(len(still))
    write_recording(still.with_(space=screen, x_deg=zero, y_deg=zero), file)
    certified_anew(out)
    found = verify(out)
    assert "contents" in red(found)
    assert "1 screens belong to one person each" in " ".join(found.failures)


def test_a_copy_of_the_recordings_is_red(raw: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    gazeveil.protect(gazeveil.read(raw), "temporal:K=2").write(folder)
    result = verify(folder, raw)
    assert red(result) == ["raw rows"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("anna-schmidt.txt", b""),
        ("sub-emil77/notes.txt", b""),
        ("notes.txt", b"recorded with Carla_Neumann"),
        ("notes.txt", b"sampled 2017-10-13-10-27"),
        ("notes.txt", b"from SN-9938-21."),
        ("notes.txt", b"t0=1629390345.25"),
        ("notes.txt", b"1629390345000000000"),
        ("notes.txt", b"at 119.8837265 Hz"),
        ("notes.txt", b'{"ipd": 63.218754}'),
        ("notes.txt", b"x" * (1 << 23) + b" bob.jones "),
        ("notes.txt", b"operator Gertrud Maier, device QX-448812"),
        ("notes.txt.gz", gzip.compress(b"hello bob.jones", mtime=0)),
    ],
)
def test_identifiers_in_names_and_bytes_are_red(
    file: str, content: bytes, out: Path, raw: Path
) -> None:
    (out / file).parent.mkdir(exist_ok=True)
    (out / file).write_bytes(content)
    certified_anew(out)
    assert red(verify(out, raw)) == ["identifiers"]


def test_a_name_in_a_column_or_in_the_metadata_of_parquet_is_red(out: Path, raw: Path) -> None:
    extra = out / "extra.parquet"
    pl.DataFrame({"who": ["x", "Frieda"] * 500}).write_parquet(extra)
    certified_anew(out)
    assert any("'frieda'" in f for f in verify(out, raw).failures)
    pl.DataFrame({"n": [1]}).write_parquet(extra, metadata={"by": "dieter"})
    certified_anew(out)
    assert any("'dieter'" in f for f in verify(out, raw).failures)


def test_words_that_only_contain_a_name_are_not_found(out: Path, raw: Path) -> None:
    (out / "notes.txt").write_text("friedas, emil778, hannelores", "utf-8")
    certified_anew(out)
    assert verify(out, raw).passed


def test_a_short_name_that_is_released_is_red(raw: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    gazeveil.protect(gazeveil.read(raw), MECHANISM).write(folder, keep=("person",))
    assert verify(folder, raw).passed  # kept by name, printed as not covered
    certified_anew(folder, lambda c: c.update(kept=[]))
    assert any("'gus'" in f for f in verify(folder, raw).failures)


def test_a_copied_time_stamp_is_red(out: Path, raw: Path) -> None:
    stamp = (raw / "cohort.json").stat().st_mtime_ns
    os.utime(recordings(out)[0], ns=(stamp, stamp))
    assert red(verify(out, raw)) == ["time stamps"]


def test_a_row_of_the_table_that_too_few_share_is_red(out: Path) -> None:
    index = json.loads((out / "cohort.json").read_text("utf-8"))
    one = next(iter(index["people"].values()))
    assert one, "the release has a table of people"
    one[next(iter(one))] = "unique"
    (out / "cohort.json").write_text(json.dumps(index), "utf-8")
    certified_anew(out)
    assert red(verify(out)) == ["people's table"]
    certified_anew(out, lambda c: c.update(people_table=None))
    assert red(verify(out)) == ["people's table"]


def test_groups_that_are_too_small_are_red(raw: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    gazeveil.protect(gazeveil.read(raw), "k-same-synth:k=4").write(folder)
    assert verify(folder, raw).passed
    certified_anew(folder, lambda c: c["guarantee"]["numbers"].update(k="5"))
    assert set(red(verify(folder))) >= {"promise"}
    index = json.loads((folder / "cohort.json").read_text("utf-8"))
    gone = index["recordings"].pop()
    (folder / gone["file"]).unlink()
    (folder / "cohort.json").write_text(json.dumps(index), "utf-8")
    certified_anew(folder, lambda c: c["guarantee"]["numbers"].update(k="4"))
    assert "groups" in red(verify(folder))


def test_signatures(out: Path, tmp_path: Path) -> None:
    lab, stranger = new_key(tmp_path / "lab.key"), new_key(tmp_path / "stranger.key")
    assert red(verify(out, key=lab.public)) == ["signature"]

    def signed(key: Any) -> None:
        signature = sign(key, (out / "PRIVACY.json").read_bytes())
        (out / "PRIVACY.sig").write_text(json.dumps(signature), "utf-8")

    signed(lab)
    assert verify(out, key=lab.public).passed
    assert f"signed by {lab.public}" in verify(out).checks[2].note
    certified_anew(out)
    assert red(verify(out)) == ["signature"]
    signed(stranger)
    assert verify(out).passed
    assert red(verify(out, key=lab.public)) == ["signature"]
    (out / "PRIVACY.sig").write_text("nonsense", "utf-8")
    assert red(verify(out)) == ["signature"]


def test_a_folder_without_a_certificate_is_bad_input(raw: Path) -> None:
    with pytest.raises(FormatError, match="there is no certificate"):
        verify(raw)


def test_the_verb(out: Path, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    assert run("verify", out, "--against", raw, "--json", figures) == 0
    assert "is what its certificate says" in capsys.readouterr().out
    assert json.loads(figures.read_text("utf-8"))["passed"] is True
    (out / "extra").write_text("x", "utf-8")
    assert run("verify", out, "--json", figures) == 1
    assert "FAILED files: extra is not in the certificate." in capsys.readouterr().out
    assert json.loads(figures.read_text("utf-8"))["passed"] is False
    assert run("verify", raw) == 2
    assert "there is no certificate" in capsys.readouterr().err
    assert run("verify") == 2
    assert run("verify", out, "--key", "short") == 2
    assert run("verify", "--new-key", tmp_path / "a.key") == 0
    assert run("verify", "--new-key", tmp_path / "a.key") == 2


def test_inspect_shows_the_certificate_of_a_release_and_of_nothing_else(
    out: Path, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    assert run("inspect", out, "--json", figures) == 0
    told = capsys.readouterr().out
    assert "Made by kaleido (corrected)." in told
    assert "by a factor of at most 2.72." in told
    shown = json.loads(figures.read_text("utf-8"))["certificate"]
    assert shown["guarantee"]["numbers"]["epsilon"] == "1"
    assert run("inspect", raw) == 0
    assert "Certificate" not in capsys.readouterr().out


@pytest.mark.parametrize("to", ["parquet", "csv", "bids"])
def test_every_word_of_a_release_is_known_whoever_was_recorded(to: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    gazeveil.Cohort(list(gazeveil.simulate(4, 1, 2, 60, seed=1))).write(source)
    out = tmp_path / "out"
    choices = PublicationChoices(to=to)
    publish(
        Recipe(source, "gaussian:sigma_deg=5", choices, battery="none"), gazeveil.read(source), out
    )
    certificate = read_certificate(out)
    known = vocabulary(certificate, FilesOfRelease(out, None)).lower()
    names = {
        word
        for key in gazeveil.read(out).keys
        for name in key
        for word in WORD.findall(name.lower())
    }
    for path in sorted(out.rglob("*")):
        text = f"{path.name} "
        if path.suffix in {".md", ".json", ".toml", ".csv", ".tsv"}:
            text += re.sub(r'"?[0-9a-f]{16,}"?', "", path.read_text("utf-8"))
        words = {w for w in WORD.findall(text.lower()) if "viewing" not in w} - names - {"out"}
        assert words <= set(WORD.findall(known)), path


WHOLE = tuple(
    ReleasedRecording(
        f"{s}-{k}-{i}", s, "1", "", 60.0, Sphere(), k * 6 * 10**9, 300, (), f"{s}{k}{i}"
    )
    for s in ("a", "b")
    for k in range(3)
    for i in range(4)
)


def test_pieces_that_are_alike_pass() -> None:
    assert check_pieces(WHOLE).passed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"person": WHOLE[5].person}, "more than one piece"),
        ({"session": "2"}, "differ in session"),
        ({"samples": 299}, "differ in session, length"),
        ({"rate_hz": 60.01}, "rate"),
        ({"start_ns": 1}, "different numbers"),
    ],
)
def test_one_piece_that_differs_is_found(change: dict[str, object], said: str) -> None:
    broken = (replace(WHOLE[0], **change), *WHOLE[1:])  # type: ignore[arg-type]
    (failure,) = check_pieces(broken).failures
    assert said in failure


def test_a_missing_piece_is_found() -> None:
    assert "different numbers" in check_pieces(WHOLE[1:]).failures[0]
