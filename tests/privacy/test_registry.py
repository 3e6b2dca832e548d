"""Reading by name, by sniffing, from files and from folders."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError, ParameterError

CSV = "t_ms,x_deg,y_deg\n0,-1.0,2.0\n10,1.1,2.1\n20,,\n30,1.2,2.0\n"


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_files_of_another_kind_are_skipped_and_listed(tmp_path: Path) -> None:
    put(tmp_path / "anna" / "a.csv", CSV)
    put(tmp_path / "anna" / "b.csv.gz", gzip.compress(CSV.encode()))
    put(tmp_path / "notes.txt", "hello")
    put(tmp_path / "README.md", "hello")
    put(tmp_path / ".hidden.csv", CSV)
    cohort = gazeveil.read(tmp_path)
    assert len(cohort) == 2
    assert {Path(s.path).name: s.reason for s in cohort.skipped} == {
        "README.md": "not a recording",
        "notes.txt": "not csv",
        ".hidden.csv": "hidden",
    }
    assert all(len(r) == 4 and r.counts["rows"] == 4 for r in cohort)


def test_two_recordings_of_one_key_need_a_decision(tmp_path: Path) -> None:
    put(tmp_path / "site1" / "anna" / "a.csv", CSV)
    put(tmp_path / "site2" / "anna" / "a.csv", CSV.replace("1", "2"))
    with pytest.raises(gazeveil.errors.DataError, match="Two recordings say person 'anna'"):
        gazeveil.read(tmp_path, person="anna", stimulus="a")
    cohort = gazeveil.read(tmp_path, person="anna", stimulus="a", clash="session")
    assert [r.session for r in cohort] == ["1.1", "1.2"]


def test_people_come_from_a_mapping_or_a_table(tmp_path: Path) -> None:
    put(tmp_path / "data" / "anna" / "a.csv", CSV)
    cohort = gazeveil.read(tmp_path / "data", people={"anna": {"age": 30}})
    assert cohort.people["anna"]["age"] == 30
    table = put(tmp_path / "people.csv", "person,age,gender\nanna,31,f\nberta,40,f\n")
    assert dict(gazeveil.read(tmp_path / "data", people=table).people) == {
        "anna": {"age": 31, "gender": "f"}
    }
    with pytest.raises(ParameterError, match="'people' option of read"):
        gazeveil.read(tmp_path / "data", people=7)


@pytest.mark.parametrize(
    ("name", "content", "options", "error", "message"),
    [
        ("none.csv", None, {}, FormatError, "no such file or folder"),
        ("a.csv", b"", {}, FormatError, "the file is empty"),
        ("a.bin", b"\x00\x01\x02", {}, FormatError, "its format is not known.*format="),
        ("a.edf", b"SR_RESEARCH_COMBINED_FILE", {}, FormatError, "edf2asc"),
        ("a.csv", CSV.encode(), {"format": "tobi-tsv"}, ParameterError, "Did you mean 'tobii-tsv'"),
        (
            "a.csv",
            CSV.encode(),
            {"colums": {}},
            ParameterError,
            "has no option 'colums'. Did you mean 'columns'",
        ),
        (
            "a.csv",
            CSV.encode(),
            {"clash": "maybe"},
            ParameterError,
            "'clash' parameter of read must be one of error, session",
        ),
        ("a.csv", CSV.encode(), {"format": "openneeds"}, FormatError, "not public"),
    ],
)
def test_reading_fails_in_one_sentence(
    tmp_path: Path,
    name: str,
    content: bytes | None,
    options: dict[str, object],
    error: type[Exception],
    message: str,
) -> None:
    if content is not None:
        put(tmp_path / name, content)
    with pytest.raises(error, match=message):
        list(gazeveil.read(tmp_path / name, **options))  # type: ignore[arg-type]


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no file in this folder looks like a known recording"):
        gazeveil.read(tmp_path)
    put(tmp_path / "a.csv", CSV)
    with pytest.raises(FormatError, match="no file here looks like eyelink-asc"):
        gazeveil.read(tmp_path, format="eyelink-asc")


@pytest.mark.parametrize(
    "encode",
    [
        lambda t: t.encode("utf-16"),
        lambda t: t.encode("utf-8-sig"),
        lambda t: t.replace("\n", "\r\n").encode(),
        lambda t: gzip.compress(t.encode("utf-16")),
    ],
)
def test_encodings_and_line_ends_do_not_matter(tmp_path: Path, encode: object) -> None:
    put(tmp_path / "a.csv", encode(CSV))  # type: ignore[operator]
    (r,) = gazeveil.read(tmp_path / "a.csv")
    np.testing.assert_array_equal(r.t_ns, [0, 10_000_000, 20_000_000, 30_000_000])
    assert r.valid.tolist() == [True, True, False, True]


def test_a_truncated_archive_is_named(tmp_path: Path) -> None:
    whole = gzip.compress((CSV + CSV.split("\n", 1)[1] * 2000).encode())
    put(tmp_path / "a.csv.gz", whole[: len(whole) // 2])
    with pytest.raises(
        FormatError, match=r"a\.csv\.gz: the gzip archive ends early\. Copy the file again"
    ):
        list(gazeveil.read(tmp_path / "a.csv.gz"))
    put(tmp_path / "b.csv.gz", whole[:200] + b"garbage" + whole[207:])
    with pytest.raises(FormatError, match=r"gzip archive is damaged|ends early"):
        list(gazeveil.read(tmp_path / "b.csv.gz", format="csv"))
