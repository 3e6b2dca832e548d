"""One secret for one release or session, and everything else derived from it.

A lazy release must be the same on every read: two noisy copies of a recording say more than one,
and forty can be averaged. So the master key is drawn from the operating system when the release is
made, not when it is read. The key of a recording and a purpose is derived from it by public labels.
Threads, forked processes and repeated loads then get the same bits without coordination.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from gazeveil.errors import DataError
from gazeveil.privacy.randomness.rng import ProcessIdentity, Source, TestStream, WordArray


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
