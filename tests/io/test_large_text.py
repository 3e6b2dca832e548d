"""Large CSV files and Tobii exports are read in blocks: the same recordings and the same errors as
read whole, in memory that grows with a recording and not with the text.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import Screen
from gazeveil.io.plain import reader, text

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LARGE_BYTES", "LARGE_ZIPPED_BYTES", "LARGE_ROWS"):
        monkeypatch.setattr(reader, name, 0)
    monkeypatch.setattr(text, "BLOCK_BYTES", 64)


def rows(n: int = 200, separator: str = ",", person: str = "") -> list[str]:
    rng = np.random.default_rng(n)
    gaze = rng.uniform(100, 700, (n, 2))
    first = f"{person}{separator}" if person else ""
    return [
        first + separator.join((str(4 * i), f"{x:.3f}", f"{y:.3f}"))
        for i, (x, y) in enumerate(gaze)
    ]


PLAIN = "\n".join(["t_ms,x_px,y_px", *rows()]) + "\n"
KEYED = "\n".join(
    [
        "person,t_ms,x_px,y_px",
        *(line for pair in zip(rows(person="a"), rows(person="b"), strict=True) for line in pair),
        *rows(50, person="c"),
    ]
)
TEXTS: dict[str, bytes] = {
    "plain": PLAIN.encode(),
    "returns": PLAIN.replace("\n", "\r\n").encode(),
    "no last line break": PLAIN.rstrip().encode(),
    "comments and blanks": ("# made\n\n" + PLAIN.replace("\n40,", "\n# note\n\n40,")).encode(),
    "byte-order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "latin-1": PLAIN.replace("t_ms,x_px,y_px", "t_ms,x_px,y_px,label")
    .replace("\n4,", "\n4,")
    .replace("\n", ",f\xfcr\n")
    .replace("label,f\xfcr", "label")
    .encode("latin-1"),
    "quotes": ("t_ms,x_px,y_px,label\n" + "\n".join(f'{r},"a, b"' for r in rows(60))).encode(),
    "comma numbers": (
        "t_ms;x_px;y_px\n" + "\n".join(r.replace(".", ",") for r in rows(separator=";"))
    ).encode(),
    "several people": KEYED.encode(),
    "zipped": gzip.compress(PLAIN.encode()),
    "zipped, several people": gzip.compress(KEYED.encode()),
}


@pytest.mark.parametrize("name", TEXTS)
def test_blocks_give_the_recordings_that_the_whole_file_gives(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / ("a.csv.gz" if name.startswith("zipped") else "a.csv")
    path.write_bytes(TEXTS[name])
    whole = list(gazeveil.read(path, "csv", screen=SCREEN))
    request.getfixturevalue("tiny_blocks")
    cut = gazeveil.read(path, "csv", screen=SCREEN)
    assert all(item.chunks is not None for item in cut.items)  # type: ignore[union-attr]
    for one, other in zip(whole, cut, strict=True):
        assert one.key == other.key
        for channel in ("t_ns", "x_deg", "y_deg", "valid"):
            np.testing.assert_array_equal(getattr(one, channel), getattr(other, channel))
        assert {k: v.tolist() for k, v in one.labels.items()} == {
            k: v.tolist() for k, v in other.labels.items()
        }
    for item, one in zip(cut.items, whole, strict=True):
        pieces = list(item.chunks(7))  # type: ignore[union-attr,misc]
        assert max(len(p) for p in pieces) <= 7
        np.testing.assert_array_equal(np.concatenate([p.x_deg for p in pieces]), one.x_deg)


def test_a_line_break_inside_quotes_ends_no_block(tmp_path: Path, tiny_blocks: None) -> None:
    path = tmp_path / "a.csv"
    rows = (f'{4 * i},{i + 300},200,"one\ntwo\nthree"' for i in range(50))
    path.write_text("\n".join(["t_ms,x_px,y_px,label", *rows]), "utf-8")
    (recording,) = gazeveil.read(path, "csv", screen=SCREEN)
    assert recording.t_ns.tolist() == [4_000_000 * i for i in range(50)]
    assert len(set(recording.labels["label"])) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAIN.replace("\n400,", "\nnow,"), "line 102: 'now' in column 't_ms' is not a time"),
        (PLAIN.replace("\n400,", "\n400,one,1\n400,"), "line 102: 'one' in column 'x_px'"),
        (PLAIN.replace("\n400,", "\n399,1\n400,"), "line 102: the row has 2 cells, the header 3"),
    ],
)
def test_errors_name_the_line_of_the_file(
    tmp_path: Path, tiny_blocks: None, text: str, message: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(FormatError, match=message):
        list(gazeveil.read(path, "csv", screen=SCREEN))


def test_an_archive_that_ends_early_is_named(tmp_path: Path, tiny_blocks: None) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(PLAIN.encode())[:-200])
    with pytest.raises(FormatError, match="ends early"):
        list(gazeveil.read(path, "csv", screen=SCREEN))


def test_a_utf16_file_is_read_whole(tmp_path: Path, tiny_blocks: None) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(PLAIN.encode("utf-16"))
    (recording,) = gazeveil.read(path, "csv", screen=SCREEN)
    assert len(recording) == 200


_PEAK = """
import sys
import gazeveil
from gazeveil.gaze.geometry import Screen
from gazeveil.io.plain import text
text.BLOCK_BYTES = int(sys.argv[2])
screen = Screen(1280, 720, 400.0, 225.0, 450.0)

def peak_kib():
    # Not ru_maxrss: a process begins with that of the one that started it.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

small = gazeveil.read(sys.argv[3], "csv", screen=screen)[0]
before = peak_kib()
samples = sum(len(r) for r in gazeveil.read(sys.argv[1], "csv", screen=screen))
print(samples, peak_kib() - before)
"""


def _peak_mib(path: Path, small: Path, block_bytes: int) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(path), str(block_bytes), str(small)],
        env={**os.environ, "POLARS_MAX_THREADS": "2"},  # each thread has buffers of its own
        capture_output=True,
        text=True,
        check=True,
    )
    samples, kib = map(int, done.stdout.split())
    assert samples == 1_000_000
    return kib / 1024


def test_memory_grows_with_one_recording_not_with_the_text(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text(PLAIN, "utf-8")
    gaze = np.random.default_rng(0).uniform(100, 700, (50_000, 2)).tolist()
    path = tmp_path / "large.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write("person,t_ms,x_px,y_px\n")
        for person in range(20):
            lines = (f"p{person},{4 * i},{x:.6f},{y:.6f}" for i, (x, y) in enumerate(gaze))
            file.write("\n".join(lines) + "\n")
    # 30 MiB of text, 20 recordings of 1.2 MiB in blocks of 1 MiB: 33 to 37 MiB were measured, and
    # 230 MiB where the file is read whole.
    most_mib = 64
    assert _peak_mib(path, tmp_path / "small.csv", 1 << 20) < most_mib
    assert _peak_mib(path, tmp_path / "small.csv", 1 << 30) > 2 * most_mib


def _tobii(unit: str, sensor: bool, wrong: str = "") -> str:
    """An export of three people with lost samples, events and a recording that comes again."""
    rng = np.random.default_rng(3)
    names = ["Recording timestamp" + unit, "Participant name", "Recording name"]
    names += ["Recording resolution width", "Recording resolution height"]
    names += [f"Gaze point {s}{a} [DACS px]" for s in ("", "left ", "right ") for a in "XY"]
    names += ["Pupil diameter left [mm]", "Validity left", "Validity right"]
    names += ["Presented Stimulus name", "Eye movement type", "Event"]
    lines = ["\t".join([*names, "Sensor"][: len(names) + sensor])]
    for i in range(240):
        person, event, lost = f"P{(i // 40) % 3}", i % 17 == 0, i % 11 == 0
        gaze = ["" if lost else f"{v:.2f}" for v in rng.uniform(100, 900, 6)]
        gaze = [wrong if wrong and i == 150 and not lost else gaze[0], *gaze[1:]]
        cells = [str(4000 * i), person, "r1", "1920", "1080", *gaze, "" if lost else "3.1"]
        cells += ["Invalid" if lost else "Valid"] * 2 + ["clip"[: 4 * (i % 3 > 0)], "Fixation", ""]
        if event:
            cells = [str(4000 * i), person, "r1", "1920", "1080", *[""] * 9, "clip", "", "Key"]
        lines.append("\t".join([*cells, "" if event else "Eye Tracker"][: len(cells) + sensor]))
    return "\n".join(lines) + "\n"


def test_people_of_one_file_are_not_taken_for_files(tmp_path: Path) -> None:
    path = tmp_path / "export.tsv"
    # One recording of each, so that there are as many people as recordings.
    first = _tobii(" [μs]", True).splitlines()[:121]
    path.write_text("\n".join(line.replace("clip", "") for line in first), encoding="utf-8")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert [r.person for r in gazeveil.read(tmp_path)] == ["P0", "P1", "P2"]
    assert not any("person of its own" in str(w.message) for w in said)


@pytest.mark.parametrize("unit", [" [μs]", ""])
@pytest.mark.parametrize("sensor", [True, False])
def test_a_tobii_export_in_blocks_gives_the_same_bits(
    unit: str, sensor: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "whole.tsv").write_text(_tobii(unit, sensor), "utf-8")
    whole = list(gazeveil.read(tmp_path / "whole.tsv", "tobii-tsv"))
    assert len(whole) == 6
    monkeypatch.setattr(text, "BLOCK_BYTES", 256)
    (tmp_path / "cut.tsv").write_text(_tobii(unit, sensor), "utf-8")
    cut = list(gazeveil.read(tmp_path / "cut.tsv", "tobii-tsv"))
    assert [r.key for r in cut] == [r.key for r in whole]
    for a, b in zip(whole, cut, strict=True):
        assert a.messages == b.messages
        assert {**a.metadata, "source": ""} == {**b.metadata, "source": ""}
        assert a.space == b.space
        for channel in ("t_ns", "x_deg", "y_deg", "valid", "left_deg", "right_deg", "pupil"):
            assert getattr(a, channel).tobytes() == getattr(b, channel).tobytes(), channel
        assert a.labels["tobii"].tolist() == b.labels["tobii"].tolist()


def test_a_wrong_cell_of_a_tobii_export_is_named_by_the_same_line_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for size in (1 << 20, 256):
        monkeypatch.setattr(text, "BLOCK_BYTES", size)
        path = tmp_path / f"{size}" / "a.tsv"
        path.parent.mkdir()
        path.write_text(_tobii(" [μs]", True, "12,x"), "utf-8")
        with pytest.raises(FormatError) as refused:
            list(gazeveil.read(path, "tobii-tsv"))
        said.append(str(refused.value).replace(str(path), "FILE"))
    assert said[0] == said[1]
    assert "line 152" in said[0]
    assert "'12,x' in column 'Gaze point X [DACS px]' is not a number" in said[0]
