"""Folders that are written whole or not at all, also where a process is killed."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gazeveil.errors import DataError
from gazeveil.io.source import remove_abandoned, staged


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
