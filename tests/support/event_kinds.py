"""What is asked of detected events."""

from __future__ import annotations

from gazeveil import Events


def assert_partition(events: Events, n: int) -> None:
    assert n == 0 or (events.onset[0] == 0 and events.offset[-1] == n - 1)
    assert (events.onset[1:] == events.offset[:-1] + 1).all()


def kinds(events: Events) -> list[str]:
    return events.kind.tolist()
