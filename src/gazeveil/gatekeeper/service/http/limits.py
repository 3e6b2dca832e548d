"""How often, how much and how deep: the limits that keep one caller from starving the others.

A bucket holds `burst` drops and fills at a steady rate; each request takes one. Buckets are kept
for the most recent keys only, so that inventing addresses cannot fill the memory.

Wrong tokens are limited by who sends them. The limit spares the database and the log; what makes
guessing hopeless is the 256 random bits of a token.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

#: Keys that a set of buckets remembers.
KEYS = 10_000

#: A string, or a bracket outside of strings. After a quote the pattern cannot fail (a string that
#: never ends goes to the end of the text, an escape hides whatever follows it) and its repeats give
#: nothing back, so every byte is read once: a pattern that may fail there reads the rest again from
#: each quote.
_MARKS = re.compile(rb'"[^"\\]*+(?:\\.?+[^"\\]*+)*+"?+|[\[\]{}]', re.DOTALL)


class Buckets:
    """Token buckets by key; safe to use from several threads. A bucket holds `burst`, by default
    what a minute gives; the clock gives seconds that never go back.

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

    def __init__(
        self,
        per_minute: float,
        burst: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
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
    """Limits wrong tokens in a minute by who sends them: where from, which page, and which token
    they are made to look like.

    A sender of wrong tokens fills a bucket of its own. Valid tokens never come here
    (:mod:`gazeveil.gatekeeper.service.credentials.live_tokens`), so wrong ones shut out no holder
    of a valid one.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets = Buckets(per_minute, clock=clock)

    @staticmethod
    def _key(address: str, origin: str | None, token_id: str) -> str:
        return f"{address} {(origin or '')[:256]} {token_id}"

    def may_try(self, address: str, origin: str | None = None, token_id: str = "") -> bool:
        """Whether another token of this kind is looked at. The origin is the page's, where it is
        not the service's own; `token_id` is the public part of the token where there is a live one
        of that id, else nothing: invented ids share one bucket.
        """
        return not self._buckets.empty(self._key(address, origin, token_id))

    def wrong(self, address: str, origin: str | None = None, token_id: str = "") -> None:
        """Count a token that was wrong."""
        self._buckets.take(self._key(address, origin, token_id))


def depth(text: bytes) -> int:
    """How deep a JSON text nests, without parsing it.

    Examples
    --------
    >>> depth(b'{"a": [1, {"b": "]]]]"}]}'), depth(b"[" * 100_000)
    (3, 100000)
    """
    level = deepest = 0
    for match in _MARKS.finditer(text):
        mark = match.group()
        if mark in (b"[", b"{"):
            level += 1
            deepest = max(deepest, level)
        elif mark in (b"]", b"}"):
            level = max(0, level - 1)
    return deepest
