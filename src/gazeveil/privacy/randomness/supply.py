"""Noise for streams: the same values in the same order, whether they are asked for one at a time or
a million at once.

A :class:`Supply` draws ahead, because drawing a single value costs as much as drawing hundreds.
What was drawn ahead is protective noise and is treated as such: a pickled copy and a forked child
never see it, and the user overwrites it with zeros when it is spent.

One secret for one release or session, and everything else derived from it.

A lazy release must be the same on every read: two noisy copies of a recording say more than one,
and forty can be averaged. So the master key is drawn from the operating system when the release is
made, not when it is read. The key of a recording and a purpose is derived from it by public labels.
Threads, forked processes and repeated loads then get the same bits without coordination.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.privacy.randomness.rng import (
    ProcessIdentity,
    Source,
    SystemSource,
    TestStream,
    WordArray,
    Words,
)

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


def derived_key(secret: bytes, *labels: str | int) -> bytes:
    """32 bytes of BLAKE2b for what the labels say, under a secret of at most 64 bytes.

    Every label stands with its kind and length, so that no two sequences of labels are written
    alike, whatever names people have.
    """
    text = "".join([f"{type(label).__name__}:{len(str(label))}:{label}" for label in labels])
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), key=secret, digest_size=32
    ).digest()


_DRAWN_ANEW: ContextVar[bool] = ContextVar("drawn_anew", default=False)


@contextmanager
def drawn_anew() -> Iterator[None]:
    """Let master keys be pickled without their secret: an unpickled one draws a new key.

    For work that is handed to other processes and done there once, with noise that no other
    process needs: the secret itself never travels. All that is pickled together has one new key
    together.
    """
    token = _DRAWN_ANEW.set(True)
    try:
        yield
    finally:
        _DRAWN_ANEW.reset(token)


class MasterKey:
    """The secret from which all noise of a release or a session is derived, and with which it can
    be undone. With a seed it gives test streams instead: repeatable, without a secret or
    protection.

    It is printed nowhere and cannot be pickled (:func:`drawn_anew` sends a blank one). A copy
    within the process is the same key: one release has one noise.
    """

    __slots__ = ("_key", "seed")

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self._key = b"" if seed is not None else os.urandom(64)
        if seed is None and len(self._key) != 64:
            raise OSError(
                "The operating system gave fewer random bytes than asked for. Nothing was released."
            )

    def source(self, *labels: str | int) -> Source:
        """Words for what the labels say, from the first one on each time it is asked for."""
        return (
            TestStream(self.seed, *labels)
            if self.seed is not None
            else KeyedSource(derived_key(self._key, *labels))
        )

    def tag(self, *arrays: NDArray[np.generic]) -> str:
        """A label for these very values: under it the same values have the same words, other ones
        unrelated words.

        A file may change between two loads, and one noise on two versions of it would tell their
        difference. Values are told apart by GMAC under a key of their own, whose tags are only ever
        labels of keys: two inputs of n bytes have the same one with probability below n / 2**130.
        """
        mac = Cipher(
            algorithms.AES256(derived_key(self._key, "tag")), modes.GCM(bytes(12))
        ).encryptor()
        for array in arrays:
            mac.authenticate_additional_data(np.ascontiguousarray(array).view(np.uint8).data)
        mac.finalize()
        return ",".join(f"{a.dtype.str}{a.shape}" for a in arrays) + mac.tag.hex()

    def __copy__(self) -> MasterKey:
        return self

    def __deepcopy__(self, memo: object) -> MasterKey:
        return self

    def __reduce__(self) -> tuple[type[MasterKey], tuple[int | None]]:
        if self.seed is None and not _DRAWN_ANEW.get():
            raise DataError(
                "A release that is not loaded yet holds the secret keys of its noise and cannot be"
                " sent elsewhere. Write it, or load it first."
            )
        return MasterKey, (self.seed,)

    def __repr__(self) -> str:
        return "MasterKey(hidden)" if self.seed is None else f"MasterKey(seed={self.seed})"


class KeyedSource:
    """AES-256 in counter mode under a derived key of 32 bytes: the same words each time, which only
    who holds the key can tell.

    It belongs to the process that made it. A forked child or a copy would go on with the same words
    on other gaze, so both are refused.
    """

    secure = True

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._identity = ProcessIdentity()
        self._lock = threading.Lock()
        self._stream: CipherContext = Cipher(
            algorithms.AES256(key), modes.CTR(bytes(16))
        ).encryptor()

    def take(self, count: int) -> WordArray:
        """The next words."""
        self._check()
        with self._lock:
            return np.frombuffer(bytearray(self._stream.update(bytes(8 * count))), dtype=np.uint64)

    def child(self, *keys: str | int) -> KeyedSource:
        """A source of its own under a key that follows from this one."""
        self._check()
        return KeyedSource(derived_key(self._key, *keys))

    def _check(self) -> None:
        if not self._identity.original:
            raise DataError(
                "This noise was begun in another process and must not protect twice. Load the"
                " recording again in this one."
            )

    def __reduce__(self) -> NoReturn:
        raise DataError(
            "Noise under a secret key cannot be copied or sent elsewhere: it would protect twice."
            " Open a session or load the recording there."
        )
