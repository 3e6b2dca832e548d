"""Noise for streams: the same values in the same order, whether they are asked for one at a time or
a million at once.

A :class:`Supply` draws ahead, because drawing a single value costs as much as drawing hundreds.
What was drawn ahead is protective noise and is treated as such: a pickled copy and a forked child
never see it, and the user overwrites it with zeros when it is spent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Floats, Ints
from gazeveil.privacy.randomness.rng import ProcessIdentity, Source, SystemSource, TestStream, Words

#: `sampler(count, words)` gives that many values; `functools.partial(discrete_gaussian, sigma)` is
#: one.
Sampler: TypeAlias = Callable[[int, Words], Ints]

_AHEAD = 512
_AHEAD_MANY = 64  # per stream, where thousands of streams go together


def derived_seed(seed: int, *keys: str | int) -> int:
    """The seed of one stream among many: a function of the seed and the stream's keys, below 2**63.

    Examples
    --------
    >>> derived_seed(1, "p1", "video") == derived_seed(1, "p1", "video")
    True
    >>> derived_seed(1, "p1", "video") == derived_seed(1, "p2", "video")
    False
    """
    text = "\x1f".join(["derived", str(int(seed)), *(f"{type(k).__name__}:{k}" for k in keys)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


class Bits:
    """Where the noise of a session comes from: one source for each stream, or one for all of them.

    Parameters
    ----------
    seeds : sequence of int, optional
        Test streams, one for each stream. Without them the operating system serves all streams:
        its words never repeat.
    """

    def __init__(self, seeds: Sequence[int] | None = None) -> None:
        self.seeds = None if seeds is None else tuple(seeds)

    @property
    def seeded(self) -> bool:
        """Whether the noise is repeatable, and so without protection."""
        return self.seeds is not None

    def sources(self, streams: int, *keys: str | int) -> list[Source]:
        """Sources for the purpose that the keys name; other keys give unrelated sources."""
        if self.seeds is None:
            return [SystemSource()]
        return [TestStream(s, *keys) for s in self.seeds]


class NoiseStream(Protocol):
    """Values that follow one law."""

    secure: bool

    def draw(self, count: int) -> NDArray[Any]:
        """The next values."""
        ...


class Integers:
    """Exact whole-number noise of a :data:`Sampler`, which must be picklable."""

    def __init__(self, sampler: Sampler, source: Source) -> None:
        self.sampler = sampler
        self.words = Words(source)
        self.secure = source.secure

    def draw(self, count: int) -> Ints:
        """The next values."""
        return self.sampler(count, self.words)


class Normals:
    """Standard normals in floating point, as the papers' programs draw them; for published readings
    only.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.secure = source.secure
        self._identity = ProcessIdentity()
        self._leave()

    def _leave(self) -> None:
        """Begin with words of one's own."""
        self._generator = np.random.Generator(
            np.random.SFC64(np.random.SeedSequence(self.source.take(4).tolist()))
        )

    def __getstate__(self) -> dict[str, Any]:
        # The state of the generator tells all noise to come: it is the original's alone.
        return {
            k: v
            for k, v in self.__dict__.items()
            if k != "_identity" and not (k == "_generator" and self.secure)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._identity = ProcessIdentity()
        if self.secure:
            self._leave()

    def draw(self, count: int) -> Floats:
        """The next values."""
        if self.secure and not self._identity.original:
            self._identity.renew(self._leave)
        return self._generator.standard_normal(count)


class Supply:
    """Noise drawn ahead for one or many streams that go in step, `ahead` values per stream: one
    noise for each stream, or one secure one for all.
    """

    def __init__(
        self, noises: Sequence[NoiseStream], streams: int = 1, ahead: int | None = None
    ) -> None:
        self.noises = list(noises)
        self.streams = streams
        self.ahead = ahead or (_AHEAD if streams <= 8 else _AHEAD_MANY)
        self.secure = all(n.secure for n in self.noises)
        self._identity = ProcessIdentity()
        self._leave()

    def _leave(self) -> None:
        """Drop what was drawn ahead."""
        self._ready: NDArray[Any] = np.empty((self.streams, 0))
        self._next = 0

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_identity"]
        if self.secure:
            # Values that protect the original must not protect the copy too.
            del state["_ready"], state["_next"]
        else:
            state["_ready"], state["_next"] = self._ready[:, self._next :].copy(), 0
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._identity = ProcessIdentity()
        if "_ready" not in state:
            self._leave()

    def _fresh(self, count: int) -> NDArray[Any]:
        if len(self.noises) == 1:
            return self.noises[0].draw(self.streams * count).reshape(self.streams, count)
        return np.stack([n.draw(count) for n in self.noises])

    def take(self, count: int) -> NDArray[Any]:
        """The next `count` values of each stream, shape (streams, count); overwrite them with zeros
        when they are spent.
        """
        if self.secure and not self._identity.original:
            self._identity.renew(self._leave)
        begin, end = self._next, self._next + count
        if end <= self._ready.shape[1]:
            self._next = end
            return self._ready[:, begin:end]
        left = self._ready[:, begin:]
        missing = count - left.shape[1]
        fresh = self._fresh(max(missing, self.ahead) if count < self.ahead else missing)
        whole = fresh if left.shape[1] == 0 else np.concatenate((left, fresh), axis=1)
        left[...] = 0
        self._ready, self._next = (whole, count) if whole.shape[1] > count else (whole[:, :0], 0)
        return whole[:, :count]
