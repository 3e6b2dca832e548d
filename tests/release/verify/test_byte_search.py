"""Words in the bytes of a release: what chance puts into packed bytes is no find, text is.

Raw rows are told from chance.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.release.verify import identifiers
from gazeveil.release.verify.identifiers import BINARY_DEG, TEXT_DEG, check_raw_rows, finds

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


SCREEN = gazeveil.Screen(1280, 720, 400.0, 225.0, 450.0)


def recording(x: np.ndarray, y: np.ndarray, person: str = "p") -> gazeveil.Recording:
    return gazeveil.Recording(
        person,
        "s",
        t_ns=np.arange(len(x)) * 4_000_000,
        x_deg=x,
        y_deg=y,
        valid=np.ones(len(x), bool),
        space=SCREEN,
        rate_hz=250.0,
    )


def drawn(seed: int, samples: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(0, 6, samples), rng.normal(0, 4, samples)


def checked(
    released: tuple[np.ndarray, np.ndarray], raw: tuple[np.ndarray, np.ndarray], near_deg: float
) -> bool:
    return check_raw_rows(
        gazeveil.Cohort([recording(*released)]), gazeveil.Cohort([recording(*raw)]), near_deg
    ).passed


@pytest.mark.parametrize("near_deg", [BINARY_DEG, TEXT_DEG])
@pytest.mark.parametrize("seed", range(5))
def test_other_gaze_is_no_raw_row(seed: int, near_deg: float) -> None:
    assert checked(drawn(2 * seed), drawn(2 * seed + 1), near_deg)


def test_gaze_on_the_same_grid_meets_by_chance_alone() -> None:
    coarse = [tuple(np.round(v, 1) for v in drawn(seed)) for seed in (1, 2)]
    assert checked(coarse[0], coarse[1], BINARY_DEG)


def test_corners_and_the_middle_are_nobodys() -> None:
    def cut(seed: int) -> tuple[np.ndarray, np.ndarray]:
        x, y = drawn(seed)
        x, y = np.clip(x, -8, 8), np.clip(y, -5, 5)
        x[::50], y[::50] = 0.0, 0.0
        return x, y

    one, other = cut(1), cut(2)
    assert ((one[0] == 8) & (one[1] == 5)).any()
    assert checked(one, other, BINARY_DEG)


@pytest.mark.parametrize("near_deg", [BINARY_DEG, TEXT_DEG])
def test_a_run_is_found_wherever_it_lies(near_deg: float) -> None:
    (x, y), raw = drawn(1), drawn(2)
    x[7000:7004], y[7000:7004] = raw[0][300:304], raw[1][300:304]
    assert not checked((x, y), raw, near_deg)


def test_a_run_of_repeated_samples_is_found() -> None:
    """A slow tracker on a fast clock: each sample is repeated."""
    (x, y), raw = drawn(1), drawn(2)
    x[7000:7080], y[7000:7080] = np.repeat(raw[0][300:304], 20), np.repeat(raw[1][300:304], 20)
    assert not checked((x, y), raw, TEXT_DEG)


def test_a_single_sample_is_found_where_chance_gives_none() -> None:
    (x, y), raw = drawn(1), drawn(2)
    x[7000], y[7000] = raw[0][300], raw[1][300]
    assert not checked((x, y), raw, BINARY_DEG)
    assert checked((x, y), raw, TEXT_DEG)  # there chance gives several


def test_nothing_released_holds_nothing() -> None:
    empty = np.empty(0)
    assert checked((empty, empty), drawn(1), BINARY_DEG)
    assert checked(drawn(1), (empty, empty), BINARY_DEG)
