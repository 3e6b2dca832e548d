"""Tests with a limit of time get more of it, and a program that is wrong gets none."""

from __future__ import annotations

import pytest

from tests.support.more_time import with_more_time


def test_what_fails_with_a_short_limit_is_tried_with_a_longer_one_and_no_longer() -> None:
    tried: list[float] = []

    def work(limit_s: float) -> float:
        tried.append(limit_s)
        assert limit_s > 1, "cut"
        return limit_s

    assert with_more_time(work, 0.5, 5, 50) == 5
    assert tried == [0.5, 5]


def test_what_fails_with_every_limit_fails() -> None:
    def work(limit_s: float) -> None:
        raise OSError(f"cut after {limit_s} s")

    with pytest.raises(OSError, match="cut after 50 s"):
        with_more_time(work, 0.5, 5, 50)
