"""The progress bar appears on a terminal after a while, and nowhere else."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from gazeveil.cli import arguments as progress


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal is given; a bar appears after 50 ms."""
    written = io.StringIO()
    screen = Console(file=written, force_terminal=True, width=80)
    monkeypatch.setattr(progress, "Console", lambda stderr: screen)
    monkeypatch.setattr(progress, "AFTER_S", 0.05)
    return written


def test_a_long_loop_shows_how_far_it_is(terminal: io.StringIO) -> None:
    for _ in progress.track(range(4), 4, "Counting"):
        time.sleep(0.2)
    assert "Counting" in terminal.getvalue()
    assert "/4" in terminal.getvalue()


def test_work_of_unknown_length_and_a_bar_inside_another_are_shown(terminal: io.StringIO) -> None:
    with progress.bar("Outside"):
        time.sleep(0.2)
        for _ in progress.track(range(2), 2, "Inside"):
            time.sleep(0.2)
    assert "Outside" in terminal.getvalue()


def test_nothing_is_shown_where_nobody_watches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "AFTER_S", 0.01)
    for _ in progress.track(range(2), 2, "Counting"):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")
