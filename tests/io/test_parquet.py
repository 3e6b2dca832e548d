"""

What a file holds is read once, and again when the file has changed.

Folders that are written whole or not at all, also where a process is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

import gazeveil
from gazeveil import Cohort, Events, Recording, Sphere
from gazeveil.errors import DataError, FormatError
from gazeveil.gaze.recording import Message
from gazeveil.gaze.summary import summarise
from gazeveil.io.parquet import INDEX
from gazeveil.io.parsing.assemble import read_json
from gazeveil.io.source import remove_abandoned, staged
from tests.support.recordings import assert_same
from tests.support.strategies import SCREEN, recordings


def full() -> Recording:
    n = 7
    rng = np.random.default_rng(5)
    return Recording(
        "Zoë/../x",
        "a b",
        np.arange(n) * 10**7,
        rng.normal(size=n),
        rng.normal(size=n),
        np.arange(n) != 3,
        space=SCREEN,
        rate_hz=100.0,
        session="2",
        task="reading",
        left_deg=rng.normal(size=(n, 2)),
        right_deg=rng.normal(size=(n, 2)),
        head_deg=rng.normal(size=(n, 3)),
        eye_in_head_deg=rng.normal(size=(n, 2)),
        pupil=rng.normal(size=n),
        confidence=rng.random(n),
        labels={"me": np.array(["fixation"] * n)},
        events=Events.from_words(["fixation"] * n, np.arange(n) * 10**7, source="me"),
        messages=(Message(5, "TRIALID ä"),),
        counts={"rows": 9, "gray": 2},
        metadata={
            "date": "x",
            "target": np.arange(2.0 * n).reshape(n, 2),
            "box": np.arange(4),
            "none": None,
        },
    )


def test_every_channel_comes_back_bit_for_bit(tmp_path: Path) -> None:
    a = full()
    Cohort([a], people={a.person: {"age": 41, "gender": "f"}}).write(tmp_path / "c")
    cohort = gazeveil.read(tmp_path / "c")
    b = cohort[0]
    assert_same(a, b)
    assert dict(a.counts) == dict(b.counts)
    assert b.labels["me"].tolist() == ["fixation"] * 7
    assert b.events.source == "me"
    np.testing.assert_array_equal(b.metadata["target"], a.metadata["target"])
    assert b.metadata["box"] == [0, 1, 2, 3]
    assert dict(cohort.people[a.person]) == {"age": 41, "gender": "f"}


@given(recordings())
@settings(max_examples=30)
def test_any_recording_survives_the_trip(
    tmp_path_factory: pytest.TempPathFactory, r: Recording
) -> None:
    folder = tmp_path_factory.mktemp("c") / "cohort"
    Cohort([r]).write(folder)
    back = gazeveil.read(folder)[0]
    assert_same(r, back)
    assert r.x_deg.tobytes() == back.x_deg.tobytes()


def test_a_recording_of_events_alone_comes_back(tmp_path: Path) -> None:
    none = np.empty(0)
    minus = np.array([-1])
    values: list[Any] = [["fixation"], minus, minus, [0], [200_000_000]]
    place: dict[str, Any] = {"x_deg": [1.0], "y_deg": [2.0]}
    events = Events(*values, **place)
    Cohort(
        [Recording("p", "s", none.astype(np.int64), none, none, space=SCREEN, events=events)]
    ).write(tmp_path / "c")
    back = gazeveil.read(tmp_path / "c")[0]
    assert len(back) == 0
    assert back.events.x_deg.tolist() == [1.0]
    assert back.duration_s == pytest.approx(0.2)


def test_pieces_add_up_to_the_whole(tmp_path: Path) -> None:
    n = 1000
    r = Recording(
        "p",
        "s",
        np.arange(n),
        np.linspace(0, 359, n),
        np.full(n, 90.0),
        space=Sphere(),
        rate_hz=10.0,
    )
    Cohort([r]).write(tmp_path / "c")
    handle = gazeveil.read(tmp_path / "c").items[0]
    pieces = list(handle.chunks(300))  # type: ignore[union-attr, misc]
    assert [len(p) for p in pieces] == [300, 300, 300, 100]
    np.testing.assert_array_equal(np.concatenate([p.x_deg for p in pieces]), r.x_deg)


def test_a_folder_that_is_not_empty_is_never_written_into(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "mine.txt").write_text("keep")
    with pytest.raises(DataError, match="not an empty folder"):
        Cohort([full()]).write(tmp_path / "c")
    assert (tmp_path / "c" / "mine.txt").read_text() == "keep"


def test_a_crash_while_writing_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Recording:
        raise RuntimeError("disk gone")

    from gazeveil.gaze.cohort import Handle

    with pytest.raises(RuntimeError):
        Cohort([full(), Handle("p", "s", broken)]).write(tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def damaged_index(folder: Path) -> None:
    (folder / INDEX).write_text('{"format": "gaze')


def index_with(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        index = json.loads((folder / INDEX).read_text())
        edit(index)
        (folder / INDEX).write_text(json.dumps(index))

    return harm


def cut_file(folder: Path) -> None:
    file = folder / "recordings" / "000001.parquet"
    file.write_bytes(file.read_bytes()[:-50])


def missing_file(folder: Path) -> None:
    (folder / "recordings" / "000001.parquet").unlink()


def missing_events(folder: Path) -> None:
    (folder / "recordings" / "000001.events.parquet").unlink()


def rewritten(header: str | None = None, **columns: pl.Expr) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        file = folder / "recordings" / "000001.parquet"
        frame, note = pl.read_parquet(file), pl.read_parquet_metadata(file)["gazeveil"]
        frame.with_columns(**columns).write_parquet(
            file, metadata={"gazeveil": note if header is None else header}
        )

    return harm


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (rewritten(header="{"), "cut or damaged"),
        (rewritten(header="[]"), "cut or damaged"),
        (rewritten(header='{"version": 1}'), "cut or damaged"),
        (rewritten(x_deg=pl.lit("a")), "cut or damaged"),
        (
            rewritten(x_deg=pl.lit(float("inf"))),
            "marked valid but holds NaN or infinity.* Mend the file or leave it out",
        ),
        (damaged_index, "index of the cohort is cut or damaged"),
        (index_with(lambda i: i.update(version=99)), "version 99 .* Upgrade Gazeveil"),
        (
            index_with(lambda i: i["recordings"][0].update(file="../../x.parquet")),
            "outside the folder",
        ),
        (index_with(lambda i: i["recordings"][0].pop("person")), "entry of the index is not whole"),
        (cut_file, "cut or damaged"),
        (missing_file, "cut or damaged"),
        (missing_events, "events of this recording are missing"),
    ],
)
def test_a_damaged_folder_is_named_in_one_sentence(
    tmp_path: Path, harm: object, message: str
) -> None:
    Cohort([full()]).write(tmp_path / "c")
    harm(tmp_path / "c")  # type: ignore[operator]
    with pytest.raises(FormatError, match=message):
        list(gazeveil.read(tmp_path / "c"))


def test_damage_of_any_kind_is_a_sentence_also_in_pieces(tmp_path: Path) -> None:
    Cohort([full()]).write(tmp_path / "c")
    file = tmp_path / "c" / "recordings" / "000001.parquet"
    whole, rng = file.read_bytes(), np.random.default_rng(1)
    refused = 0
    for _ in range(60):
        data = bytearray(whole)
        for place in rng.integers(max(0, len(data) - 2500), len(data), 3):
            data[place] = rng.integers(256)
        file.write_bytes(bytes(data))
        for read in (
            lambda: list(gazeveil.read(tmp_path / "c")),
            lambda: summarise(gazeveil.read(tmp_path / "c")),
        ):
            try:
                read()
            except FormatError:
                refused += 1
    assert refused > 20


def test_parquet_from_elsewhere_is_refused_with_the_way_to_read_it(tmp_path: Path) -> None:
    frame = pl.DataFrame({"t_ns": [0, 10], "x_deg": [200.0, None], "y_deg": [90.0, None]})
    frame.write_parquet(tmp_path / "clip.parquet")
    with pytest.raises(FormatError, match=r"gazeveil\.Cohort\.from_frame"):
        gazeveil.read(tmp_path / "clip.parquet")[0]


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"a": 1}')
    assert read_json(file) is read_json(file)
    file.write_text('{"a": 2}')
    os.utime(file, ns=(0, 1))  # a change within one tick of the disk's clock has the same time
    assert read_json(file) == {"a": 2}


def test_a_fault_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    with pytest.raises((FormatError, OSError)):
        read_json(file)
    file.write_text("{}")
    assert read_json(file) == {}


def hidden(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name.startswith("."))


def killed_while_writing(target: Path) -> None:
    """A process that begins to write and is killed."""
    script = """
        import sys
        from gazeveil.io.source import staged
        with staged(sys.argv[1]) as folder:
            (folder / "half").write_text("half")
            print("ready", flush=True)
            sys.stdin.read()
        """
    command = [sys.executable, "-c", textwrap.dedent(script), str(target)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        os.kill(process.pid, signal.SIGKILL)


def test_a_folder_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    def broken() -> None:
        with staged(tmp_path / "out") as folder:
            (folder / "half").write_text("half")
            raise DataError("stop")

    with pytest.raises(DataError, match="stop"):
        broken()
    assert list(tmp_path.iterdir()) == []
    with staged(tmp_path / "out") as folder:
        (folder / "file").write_text("whole")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "file").read_text() == "whole"


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    killed_while_writing(tmp_path / "out")
    assert len(hidden(tmp_path)) == 1
    with staged(tmp_path / "out"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_what_is_being_written_and_what_has_another_name_stays(tmp_path: Path) -> None:
    killed_while_writing(tmp_path / "other")
    (tmp_path / ".out.notes").mkdir()
    left = hidden(tmp_path)
    with staged(tmp_path / "out") as folder:
        assert remove_abandoned(tmp_path / "out") == 0
        assert folder.is_dir()
    assert hidden(tmp_path) == left
    assert remove_abandoned(tmp_path / "other") == 1
    assert remove_abandoned(tmp_path / "nowhere" / "out") == 0
