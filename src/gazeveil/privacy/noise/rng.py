"""Random bits: from the operating system, or from a marked test stream.

Protective noise takes its bits from :class:`SystemSource`. A seed gives a :class:`TestStream`, whose releases are only `claimed`: whoever
knows the seed can undo the noise. Both hand out the same kind of 64-bit words through :class:`Words`, which keeps what a sampler left
over, so that drawing one value at a time or a million at once uses the same bits for the same value.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gazeveil.checks import refuse

WordArray: TypeAlias = NDArray[np.uint64]

#: A sampler's kernel: `kernel(out, done, words, position) -> (done, position)`. It stops at the first value whose words do not suffice
#: and returns the position *before* that value, so the value is drawn again from the same words once there are more of them.
Kernel: TypeAlias = Callable[[NDArray[np.int64], int, WordArray, int], tuple[int, int]]

_LEAST_WORDS = 256
_MOST_WORDS = 1 << 20


class Source(Protocol):
    """Where 64-bit words come from."""

    secure: bool

    def take(self, count: int) -> WordArray:
        """The next `count` words."""
        ...


class SystemSource:
    """The operating system's generator."""

    secure = True

    def take(self, count: int) -> WordArray:
        """Fresh words; if the system has none to give, the error stops the release."""
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)


class TestStream:
    """Repeatable words for tests and studies; never protects anybody.

    Parameters
    ----------
    seed : int
        Any integer.
    *keys : str or int
        Further parts of the key: streams with other keys are unrelated.
    """

    __test__ = False  # not a test class, whatever its name says to pytest
    secure = False

    def __init__(self, seed: int, *keys: str | int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            refuse("TestStream", "seed", "a whole number", seed)
        text = "\x1f".join([str(int(seed)), *(f"{type(k).__name__}:{k}" for k in keys)])
        self._seed, self._keys = int(seed), keys
        # Philox is counter-based: the words do not depend on how many are asked for at a time.
        self._bits = np.random.Philox(key=np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], dtype=np.uint64))

    def take(self, count: int) -> WordArray:
        """The next words of the stream."""
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)

    def child(self, *keys: str | int) -> TestStream:
        """An unrelated stream of the same seed for a part of the work."""
        return TestStream(self._seed, *self._keys, *keys)


def source(seed: int | None, *keys: str | int) -> Source:
    """The operating system for `seed=None`, else a marked test stream."""
    return SystemSource() if seed is None else TestStream(seed, *keys)


class Words:
    """Runs samplers over a source and keeps the words they left.

    Parameters
    ----------
    source : Source
        Where words come from.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._left = np.empty(0, dtype=np.uint64)

    def __getstate__(self) -> dict[str, object]:
        # A copy of a session must never repeat the noise of the original: words of the system that are not used yet stay behind.
        left = np.empty(0, dtype=np.uint64) if self.source.secure else self._left
        return {"source": self.source, "_left": left}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def run(self, kernel: Kernel, count: int, words_per_value: int) -> NDArray[np.int64]:
        """Draw `count` values with a kernel.

        Parameters
        ----------
        kernel : callable
            See :data:`Kernel`.
        count : int
            Values to draw.
        words_per_value : int
            How many words a value takes on average, for asking in the right portions.
        """
        out = np.empty(count, dtype=np.int64)
        done, position, words = 0, 0, self._left
        while done < count:
            done, position = kernel(out, done, words, position)
            if done < count:
                wanted = min(max((count - done) * words_per_value * 5 // 4, _LEAST_WORDS), _MOST_WORDS)
                fresh = np.concatenate((words[position:], self.source.take(wanted)))
                words[:] = 0  # used bits must not linger in memory
                words, position = fresh, 0
        words[:position] = 0
        self._left = words[position:].copy()
        return out
