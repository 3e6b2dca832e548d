"""Tests of short limits of time, on a machine that may stand still for longer than they last.

A limit of half a second cuts an honest client that the machine stopped for half a second between
two lines. With a limit of a minute such a test would take minutes. So it is done with a short one
first, and where that fails with longer ones: a machine that stands still once does not stand still
for so long thrice, and a program that is wrong is wrong whatever the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Value = TypeVar("_Value")


def with_more_time(work: Callable[[float], _Value], *limits_s: float) -> _Value:
    """What the work gives with the first limit with which it does not fail.

    Parameters
    ----------
    work : callable
        Does what is tested with a limit in seconds, and fails where something is wrong.
    *limits_s : float
        Limits, each longer than the one before. What fails with the last one is raised.

    Examples
    --------
    >>> tried = []
    >>> def work(limit_s):
    ...     tried.append(limit_s)
    ...     assert limit_s > 1, "cut"
    >>> with_more_time(work, 0.5, 5, 50)
    >>> tried
    [0.5, 5]
    >>> with_more_time(work, 0.5, 1)
    Traceback (most recent call last):
    ...
    AssertionError: cut
    """
    for limit_s in limits_s[:-1]:
        try:
            return work(limit_s)
        except Exception:  # whatever a connection that was cut ends in
            continue
    return work(limits_s[-1])
