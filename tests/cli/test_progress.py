"""The progress bar appears on a terminal after a while, and nowhere else.

Ctrl-C ends a loop with a progress bar, also where C code dropped it.
"""

from __future__ import annotations

import io
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from rich.console import Console

from gazeveil.cli import arguments as progress
from gazeveil.cli.arguments import bar, interrupts_kept, raise_lost_interrupt, track


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


def drop_an_interrupt() -> None:
    """Press Ctrl-C, and lose it as C code does that clears errors."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_what_was_dropped_is_raised_at_the_next_step() -> None:
    seen = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the loop is what is interrupted
        for item in track(range(9), 9, "Counting"):
            seen.append(item)
            if item == 2:
                drop_an_interrupt()
    assert seen == [0, 1, 2]


def test_it_is_left_to_whoever_handles_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with bar("Counting") as update:
            signal.raise_signal(signal.SIGINT)
            update(1, 1)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_are_not_interrupted() -> None:
    with interrupts_kept(), ThreadPoolExecutor(1) as pool:
        drop_an_interrupt()
        pool.submit(raise_lost_interrupt).result()
        with pytest.raises(KeyboardInterrupt):
            raise_lost_interrupt()
