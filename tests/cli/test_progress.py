"""The progress bar appears on a terminal after a while, and nowhere else."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console
from rich.progress import Progress

from gazeveil.cli import progress


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal is given; a bar appears after 50 ms."""
    written = io.StringIO()
    screen = Console(file=written, force_terminal=True, width=80)
    monkeypatch.setattr(progress, "Console", lambda stderr: screen)
    monkeypatch.setattr(progress, "AFTER_S", 0.05)
    return written


def test_a_short_loop_shows_nothing(terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER_S", 60.0)  # short, whatever else the machine does
    assert list(progress.track(range(3), 3, "Counting")) == [0, 1, 2]
    assert terminal.getvalue() == ""


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


def test_the_time_left_is_known_from_the_first_item_without_what_was_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "cores", lambda: 2)  # with many, nothing is the least it can be
    now = [100.0]
    shown = Progress(progress.TimeLeftColumn(), get_time=lambda: now[0])
    task = shown.add_task("cells", total=None)

    def text() -> str:
        return progress.TimeLeftColumn().render(shown.tasks[0]).plain

    assert text() == ""
    shown.reset(task, total=12, completed=2, before=2)
    now[0] += 40.0
    assert text().startswith("over ")  # nothing is finished yet: the least it can be
    shown.update(task, completed=3)
    assert text() == "about 6:00 left"  # nine of 40 s each
    now[0] += 10.0
    shown.update(task, completed=7)
    assert text() == "about 0:50 left"  # five of 10 s each
    assert progress.clock(7325.4) == "2:02:05"
