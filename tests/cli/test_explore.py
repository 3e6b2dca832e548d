"""`gazeveil explore` as somebody types it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

import gazeveil
from tests.support.command_line import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("explore") / "recordings"
    gazeveil.simulate(3, 3, 6, 60, task="reading", seed=1).write(out)
    return out


def test_the_page_is_saved_and_says_what_is_in_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "new" / "page.html"
    assert run("explore", folder, "--save", page, "-m", "gaussian:sigma_deg=2") == 0
    said = capsys.readouterr().out
    assert "3 people, 3 stimuli, 9 recordings" in said
    assert "no recorded gaze is in it" in said
    assert page.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--save", "page.txt"), "HTML"),
        (("-m", "gaussian:sigma_deg=0|1"), "sigma_deg"),
        (("-m", "lpa:epsilon=1"), "releases are recordings"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    folder: Path, arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("explore", folder, *arguments) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said


def test_it_serves_until_it_is_stopped(folder: Path) -> None:
    command = [sys.executable, "-m", "gazeveil.cli.main", "explore", str(folder), "--no-open"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        link = lines[1].split()[1]
        address, _, secret = link.partition("#")
        assert address.startswith("http://127.0.0.1:")
        asked = Request(f"{address}api/board", headers={"X-Gazeveil-Session": secret})
        assert b'"p1"' in urlopen(asked, timeout=30).read()
        process.send_signal(signal.SIGINT)
        assert "nothing was written" in process.stdout.read()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
