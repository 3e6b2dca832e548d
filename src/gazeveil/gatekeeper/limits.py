"""How often, how much and how deep: the limits that keep one caller from starving the others.

A bucket holds `burst` drops and fills at a steady rate; each request takes one. Buckets are kept for the most recent keys only, so that
inventing addresses cannot fill the memory.

Wrong tokens are limited by address. While an address has guessed too often, only tokens that were right before, or given out since the start, are
looked at: a guess that happens to be right is refused like the others, so the rate of guessing is really limited, and honest apps on the same machine
go on.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

#: Keys that a set of buckets remembers.
KEYS = 10_000

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class Buckets:
    """Token buckets by key; safe to use from several threads.

    Parameters
    ----------
    per_minute : float
        How fast a bucket fills.
    burst : int, optional
        Its size; by default what a minute gives.
    clock : callable
        Seconds that never go back.

    Examples
    --------
    >>> now = [0.0]
    >>> buckets = Buckets(60, burst=2, clock=lambda: now[0])
    >>> [buckets.take("a") for _ in range(3)], buckets.take("b")
    ([True, True, False], True)
    >>> now[0] = 1.0
    >>> buckets.take("a")
    True
    """

    def __init__(self, per_minute: float, burst: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_minute / 60.0
        self._burst = float(burst if burst is not None else max(1.0, per_minute))
        self._clock = clock
        self._level: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def _now(self, key: str) -> tuple[float, float]:
        now = self._clock()
        level, seen = self._level.get(key, (self._burst, now))
        return min(self._burst, level + max(0.0, now - seen) * self._per_second), now

    def take(self, key: str) -> bool:
        """Take a drop; False where there is none."""
        with self._lock:
            level, now = self._now(key)
            there = level >= 1.0
            self._level[key] = (level - 1.0 if there else level, now)
            self._level.move_to_end(key)
            if len(self._level) > KEYS:
                self._level.popitem(last=False)
            return there

    def empty(self, key: str) -> bool:
        """Whether a drop could not be taken now."""
        with self._lock:
            return self._now(key)[0] < 1.0

    def __len__(self) -> int:
        return len(self._level)


class Guesses:
    """Limits wrong tokens by address, without shutting out those whose token was right before.

    Parameters
    ----------
    per_minute : float
        Wrong tokens an address may send in a minute.
    clock : callable
        Seconds that never go back.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets = Buckets(per_minute, clock=clock)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._lock = threading.Lock()

    @staticmethod
    def _name(token: str) -> bytes:
        return hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def may_try(self, address: str, token: str) -> bool:
        """Whether a token of this address is looked at."""
        with self._lock:
            if self._name(token) in self._known:
                return True
        return not self._buckets.empty(address)

    def right(self, token: str) -> None:
        """Remember a token that was right."""
        with self._lock:
            name = self._name(token)
            self._known[name] = None
            self._known.move_to_end(name)
            if len(self._known) > KEYS:
                self._known.popitem(last=False)

    def wrong(self, address: str, token: str) -> None:
        """Count a token that was wrong; one that was right once is right no more."""
        with self._lock:
            self._known.pop(self._name(token), None)
        self._buckets.take(address)


def depth(text: bytes) -> int:
    """How deep a JSON text nests, without parsing it.

    Examples
    --------
    >>> depth(b'{"a": [1, {"b": "]]]]"}]}'), depth(b"[" * 100_000)
    (3, 100000)
    """
    level = deepest = 0
    for match in _TOKENS.finditer(text):
        mark = match.group()
        if mark in (b"[", b"{"):
            level += 1
            deepest = max(deepest, level)
        elif mark in (b"]", b"}"):
            level = max(0, level - 1)
    return deepest
