"""Random bits: keyed from the operating system, or from a marked test stream.

Protective noise takes its bits from :class:`SystemSource`. A seed gives a :class:`TestStream`,
whose releases are only `claimed`: with the seed the noise can be undone. Both hand out the same
kind of 64-bit words through :class:`Words`, which keeps what a sampler left over, so that drawing
one value at a time or a million at once uses the same bits for the same value.

No word protects twice: a forked child, a pickled or copied object and a second thread all get words
of their own, and used words are overwritten with zeros.

Noise protects once. A forked child, an unpickled object and a copy hold the same key and stream
position as the original. One noise on two people's gaze can be subtracted. A
:class:`ProcessIdentity` tells whether its holder is the original; a copy takes a key of its own or
refuses.

A snapshot of the whole machine that is resumed twice cannot be told from inside; that it is not
done is assumed (:data:`gazeveil.privacy.randomness.rng.ASSUMPTION`).

:class:`WordRecords` has words in records of equal length, for draws that may need more exact words.
Records are used in the order in which the source gives them, so the size of a block changes nothing
that is drawn. A real that has to be known more exactly goes on in words that belong to the number
of its record.

Uniform choices from random words: whole numbers without modulo bias, shuffles, and a float
generator for what needs no proof.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import ArrayLike, NDArray

from gazeveil.arrays import Ints
from gazeveil.checks import refuse
from gazeveil.compiled import compiled

_forks = 0
_renewing = threading.RLock()  # what a holder forgets may hold more that is forgotten


def _forked() -> None:
    global _forks, _renewing
    _forks += 1
    _renewing = threading.RLock()  # the parent's may have been held by a thread that is not here


os.register_at_fork(after_in_child=_forked)


class ProcessIdentity:
    """Which one of several like objects its holder is.

    A forked child tells by the process: by the count of forks also when process numbers come round,
    by the number also when C code forked. An unpickled or copied identity is never the original. A
    shallow copy of the holder shares the identity, so holders make such copies deep.

    Examples
    --------
    >>> from copy import deepcopy
    >>> mine = ProcessIdentity()
    >>> mine.original, deepcopy(mine).original
    (True, False)
    """

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = (os.getpid(), _forks)

    @property
    def original(self) -> bool:
        """Whether the holder was made in this process and not as a copy."""
        return self._process == (os.getpid(), _forks)

    def renew(self, forget: Callable[[], None]) -> None:
        """Let a holder that is not the original forget what belongs to it; of several threads one
        does so, the others wait.
        """
        with _renewing:
            if not self.original:
                forget()
                self._process = (os.getpid(), _forks)

    def __reduce__(self) -> tuple[Callable[[], ProcessIdentity], tuple[()]]:
        return _stranger, ()


def _stranger() -> ProcessIdentity:
    """The identity of a copy."""
    made = ProcessIdentity()
    made._process = (-1, -1)
    return made


WordArray: TypeAlias = NDArray[np.uint64]

#: A sampler's kernel: `kernel(out, done, words, position) -> (done, position)`. It stops at the
#: first value whose words do not suffice and returns the position *before* that value, so the value
#: is drawn again from the same words once there are more of them.
Kernel: TypeAlias = Callable[[Ints, int, WordArray, int], tuple[int, int]]

#: What every guarantee assumes about the bits of :class:`SystemSource`. A machine that is resumed
#: twice from one snapshot draws the same noise twice.
ASSUMPTION = (
    "the operating system's generator gives secret keys, AES-256 in counter mode under such a key"
    " cannot be told from true random bits, and nobody reads the memory of the running machine or"
    " resumes a snapshot of it twice"
)

#: Bytes under one key.
REKEY_BYTES = 1 << 30

_LEAST_WORDS = 256
_MOST_WORDS = 1 << 16  # half a megabyte: stays in the cache between the cipher and the sampler
_ZEROS = bytes(8 * _MOST_WORDS)


class Source(Protocol):
    """Where 64-bit words come from."""

    secure: bool

    def take(self, count: int) -> WordArray:
        """The next `count` words."""
        ...

    def child(self, *keys: str | int) -> Source:
        """A source for a part of the work whose words are not those of the whole."""
        ...


class SystemSource:
    """AES-256 in counter mode under a key from the operating system's generator.

    The cipher is about ten times as fast as the operating system and is fed by nothing else: a new
    key for every object, every forked or unpickled copy and every :data:`REKEY_BYTES` bytes. That
    assumes that AES-256 is a pseudorandom function (:data:`ASSUMPTION`): 2**30 bytes are 2**26
    blocks, which differ from true random ones by at most 2**-77 (the birthday term 2**52 / 2**129)
    beyond what AES itself gives away. If the operating system has no key to give, its error stops
    the release.
    """

    secure = True

    def __init__(self) -> None:
        self._identity = ProcessIdentity()
        self._leave()

    def _leave(self) -> None:
        self._lock = threading.Lock()
        self._stream: CipherContext | None = None
        self._bytes_left = 0

    def __getstate__(self) -> dict[str, object]:
        return {}  # a key is never copied

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__()  # type: ignore[misc]

    def take(self, count: int) -> WordArray:
        """Fresh words; if the system has no key to give, the error stops the release."""
        if not self._identity.original:
            self._identity.renew(self._leave)
        out = np.empty(
            8 * count + 15, dtype=np.uint8
        )  # the cipher asks for room for one more block
        with self._lock:
            done = 0
            while done < 8 * count:
                part = min(8 * count - done, len(_ZEROS), self._bytes_left)
                if part == 0:
                    self._rekey()
                    continue
                assert self._stream is not None
                self._stream.update_into(
                    memoryview(_ZEROS)[:part], out.data[done : done + part + 15]
                )
                done += part
                self._bytes_left -= part
        return out[: 8 * count].view(np.uint64)

    def child(self, *keys: str | int) -> SystemSource:
        """The source itself: it never gives a word twice."""
        return self

    def _rekey(self) -> None:
        self._stream = None  # if the system fails, nothing is drawn from an old key
        secret = os.urandom(48)
        if len(secret) != 48:
            raise OSError(
                "The operating system gave fewer random bytes than asked for. Nothing was released."
            )
        self._stream = Cipher(algorithms.AES256(secret[:32]), modes.CTR(secret[32:])).encryptor()
        self._bytes_left = REKEY_BYTES


class TestStream:
    """Repeatable words for tests and studies; never protects anybody. Streams with other keys are
    unrelated.
    """

    __test__ = False  # not a test class, whatever its name says to pytest
    secure = False

    def __init__(self, seed: int, *keys: str | int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            refuse("TestStream", "seed", "a whole number", seed)
        text = "\x1f".join([str(int(seed)), *(f"{type(k).__name__}:{k}" for k in keys)])
        self._seed, self._keys = int(seed), keys
        # Philox is counter-based: the words do not depend on how many are asked for at a time.
        self._bits = np.random.Philox(
            key=np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], dtype=np.uint64)
        )

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
    """Runs samplers over a source and keeps the words they left."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._left: WordArray = np.empty(0, dtype=np.uint64)
        self._identity = ProcessIdentity()
        self._lock = threading.Lock()

    def _leave(self) -> None:
        """Leave words that protect the parent of this process; a test stream goes on."""
        if self.source.secure:
            self._left = np.empty(0, dtype=np.uint64)
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        # A copy of a session must never repeat the noise of the original: words of the system that
        # are not used yet stay behind.
        left = np.empty(0, dtype=np.uint64) if self.source.secure else self._left.copy()
        return {"source": self.source, "left": left}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(state["source"])  # type: ignore[misc]
        self._left = np.asarray(state["left"], dtype=np.uint64)

    def run(self, kernel: Kernel, count: int, words_per_value: int) -> Ints:
        """Draw `count` values with a :data:`Kernel`. Words are asked for in portions of
        `words_per_value`, what a value takes on average.
        """
        if not self._identity.original:
            self._identity.renew(self._leave)
        with self._lock:
            out = np.empty(count, dtype=np.int64)
            done, position, words = 0, 0, self._left
            self._left = np.empty(
                0, dtype=np.uint64
            )  # if the source fails, half-used words are not used again
            while done < count:
                done, position = kernel(out, done, words, position)
                if done < count:
                    wanted = min(
                        max((count - done) * words_per_value * 9 // 8, _LEAST_WORDS), _MOST_WORDS
                    )
                    taken = self.source.take(wanted)
                    fresh = (
                        np.concatenate((words[position:], taken))
                        if position < len(words)
                        else taken
                    )
                    if fresh is not taken:
                        taken[:] = 0
                    words[:] = 0  # used bits must not linger in memory
                    words, position = fresh, 0
            words[:position] = 0
            self._left = words[position:].copy()
            words[position:] = 0
            return out


#: Most records asked for at a time.
MOST_RECORDS = 32768

_LEAST_RECORDS = 64  # a session stays small when it is pickled


class WordRecords(Words):
    """A sequence of words of a source in numbered records of `per` words."""

    def __init__(self, source: Source, per: int) -> None:
        super().__init__(source)
        self.per = per
        self.first = 0  # number of the record that begins the words at hand
        self.position = 0
        self._further: dict[int, WordArray] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "per": self.per, "first": self.first}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(state["source"], state["per"])  # type: ignore[misc]
        self._left = np.asarray(state["left"], dtype=np.uint64)
        self.first = int(state["first"])  # type: ignore[call-overload]

    @property
    def words(self) -> WordArray:
        """The words at hand."""
        return self._left

    def __enter__(self) -> None:
        """Hold the words for one block of draws; a forked child has words of its own."""
        if not self._identity.original:
            self._identity.renew(self._leave)
        self._lock.acquire()

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Keep the words that were not used; after an error not the half-used ones either."""
        try:
            if error is None:
                self._drop()
            else:
                self._left[...] = 0
                self._left, self.position = np.empty(0, dtype=np.uint64), 0
            for words in self._further.values():
                words[...] = 0
            self._further.clear()
        finally:
            self._lock.release()

    def more(self, records: int) -> None:
        """Append the words of about so many records to those at hand."""
        self._drop()
        records = min(max(records, _LEAST_RECORDS), MOST_RECORDS)
        taken = self.source.take(records * self.per)
        if len(self._left):
            fresh = np.concatenate((self._left, taken))
            self._left[...], taken[...] = 0, 0
            taken = fresh
        self._left = taken

    def further(self, record: int, count: int) -> WordArray:
        """Words in which reals of a record go on; within a block always the same ones."""
        if record not in self._further:
            self._further[record] = self.source.child("further", record).take(count)
        return self._further[record]

    def drawn_on(self, words: int, further: int) -> WordArray:
        """The first `words` words of the record at hand, and `further` words in which they go
        on.
        """
        own = self._left[self.position : self.position + words]
        return np.concatenate((own, self.further(self.first + self.position // self.per, further)))

    def _drop(self) -> None:
        """Overwrite the used words."""
        self._left[: self.position] = 0
        self.first += self.position // self.per
        self._left, self.position = self._left[self.position :], 0


@compiled
def high_word(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper 64 bits of the product."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    return a1 * b1 + (middle >> half) + (other >> half)


@compiled
def draw_below(m: np.uint64, words: WordArray, position: int) -> tuple[np.uint64, int]:
    """A uniform integer in [0, m) and the position after it; position -1 when the words ran out."""
    while True:
        if position >= len(words):
            return np.uint64(0), -1
        word = words[position]
        position += 1
        low = word * m
        # only where low < m can the word be one of the 2**64 mod m that make the blocks unequal
        if low >= m or low >= (np.uint64(0) - m) % m:
            return high_word(word, m), position


@compiled
def _choose(
    limits: WordArray, out: Ints, done: int, words: WordArray, position: int
) -> tuple[int, int]:
    while done < len(out):
        value, after = draw_below(limits[done], words, position)
        if after < 0:
            return done, position
        out[done] = np.int64(value)
        done += 1
        position = after
    return done, position


def uniform_below(limits: ArrayLike, words: Words) -> Ints:
    """For each limit m a whole number, uniform on 0, ..., m - 1, exactly.

    Parameters
    ----------
    limits : array of int, shape (n,)
        Each at least 1.
    words : Words
        Random bits.
    """
    whole = np.asarray(limits, dtype=np.int64)
    if len(whole) and whole.min() < 1:
        refuse("uniform_below", "limits", "whole numbers of at least 1", int(whole.min()))
    return words.run(partial(_choose, whole.astype(np.uint64)), len(whole), 1)


def shuffled(count: int, words: Words) -> Ints:
    """The numbers 0, ..., count - 1 in uniformly random order (Fisher and Yates)."""
    order = np.arange(count, dtype=np.int64)
    for place, pick in enumerate(uniform_below(np.arange(count, 0, -1), words).tolist()):
        order[place], order[place + pick] = order[place + pick], order[place]
    return order


def generator(source: Source) -> np.random.Generator:
    """A numpy generator keyed from a source, for sampling from what is already released and for
    `published` float noise.

    Its floats have holes (Mironov 2012): no proof may rest on them.
    """
    return np.random.Generator(np.random.Philox(key=source.take(2)))
