"""Ctrl-C ends a loop with a progress bar, also where C code dropped it."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from gazeveil.cli.arguments import bar, interrupts_kept, raise_lost_interrupt, track


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
