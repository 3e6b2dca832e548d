"""Words in the bytes of a release: what chance puts into packed bytes is no find, text is."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gazeveil.release.verify import identifiers
from gazeveil.release.verify.identifiers import finds

PACKED = np.random.default_rng(1).bytes(300_000)


@pytest.mark.parametrize(
    ("name", "held", "found"),
    [
        ("1.parquet", b"\0anna\0", False),
        ("1.tsv.gz", b"\xff\xfeANNA\x80", False),
        ("1.parquet", b"\0the gaze of anna in spring\0", True),
        ("1.bin", b"\0anna\0", True),  # what it is nobody knows, so all of it is looked at
    ],
)
def test_a_short_word_in_packed_bytes_counts_within_text_alone(
    tmp_path: Path, name: str, held: bytes, found: bool
) -> None:
    (tmp_path / name).write_bytes(PACKED + held + PACKED)
    assert [text for text, _ in finds(tmp_path, ["anna"])] == (["anna"] if found else [])


def test_a_long_word_counts_anywhere_and_text_that_poses_as_packed_is_text(tmp_path: Path) -> None:
    (tmp_path / "1.parquet").write_bytes(PACKED + b"\0anna-schmidt\0" + PACKED)
    (tmp_path / "2.parquet").write_bytes(b"anna")
    assert dict(finds(tmp_path, ["anna", "anna-schmidt"])) == {
        "anna-schmidt": "the bytes of 1.parquet",
        "anna": "the bytes of 2.parquet",
    }


def test_the_columns_of_a_packed_file_tell_short_words(tmp_path: Path) -> None:
    import polars as pl

    frame = pl.DataFrame({"x": np.arange(2000.0), "who": ["anna"] * 2000})
    frame.write_parquet(tmp_path / "1.parquet", compression="zstd")
    assert [text for text, _ in finds(tmp_path, ["anna"])] == ["anna"]


def _damaged(content: bytes) -> bytes:
    return content[:200] + b"\xff" * 50 + content[250:]


def _zipped(name: str = "m.txt", packed: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packed) as archive:
        archive.writestr(name, bytes(range(256)) * 400 + b" anna schmidt ")
    return out.getvalue()


def _flagged(content: bytes, local: int, central: int, value: int) -> bytes:
    """A zip file with one byte of its two heads changed."""
    changed = bytearray(content)
    changed[local] = changed[content.index(b"PK\x01\x02") + central] = value
    return bytes(changed)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.gz", _damaged(gzip.compress(np.random.default_rng(1).bytes(5000)))),
        ("a.gz", gzip.compress(b"x" * 5000)[:-9]),
        ("a.zip", _damaged(_zipped())),
        ("a.zip", _flagged(_zipped(), 6, 8, 1)),  # encrypted
        ("a.zip", _flagged(_zipped(), 8, 10, 99)),  # packed in a way that nobody knows
    ],
    ids=["damaged", "cut", "damaged-zip", "encrypted", "unknown"],
)
def test_what_cannot_be_unpacked_is_told(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    unread: list[str] = []
    assert list(finds(tmp_path, ["anna schmidt"], unread)) == []
    assert len(unread) == 1
    assert unread[0].startswith(f"{name} (")


def test_what_unpacks_without_end_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identifiers, "_MOST_BYTES", 1 << 20)
    monkeypatch.setattr(identifiers, "_CHUNK", 1 << 16)
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(1 << 24)))
    (tmp_path / "b\udcff.gz").write_bytes(gzip.compress(b"anna schmidt"))
    unread: list[str] = []
    found = dict(finds(tmp_path, ["anna schmidt"], unread))
    assert found == {"anna schmidt": "the packed bytes of b\udcff.gz"}
    assert unread == ["a.gz (it unpacks to more than 200 times its size)"]
