"""Protecting every recording of a cohort, one file at a time.

A release is one thing: looking at it twice must not draw new noise, because two noisy copies say more than one. Recordings in memory are
protected at once. Recordings that are still files are protected each time they are loaded, with noise under keys that come from the
operating system, are remembered with the release and never leave the process: pickling such a release is refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.noise.rng import Source, WordArray
from gazeveil.privacy.stream.supply import Bits, SeededBits, derived_seed

if TYPE_CHECKING:
    from gazeveil.privacy.stream.session import StreamMechanism


class Keyed(Protocol):
    """What holds a secret key."""

    @property
    def key(self) -> bytes:
        """The key."""
        ...


class Secret:
    """The keys of one release, each drawn from the operating system when it is first needed, and the same ever after.

    It cannot be pickled, so it cannot be published by accident.
    """

    def __init__(self) -> None:
        self._keys: dict[tuple[str | int, ...], bytes] = {}

    def __reduce__(self) -> NoReturn:
        raise DataError("A protected cohort over files holds the secret keys of its noise and cannot be sent elsewhere. Write it, or load it first.")

    def key(self, *names: str | int) -> bytes:
        """32 secret bytes for what the names say."""
        found = self._keys.get(names)
        # setdefault is one step, so that two threads agree
        return found if found is not None else self._keys.setdefault(names, os.urandom(32))


class KeyedSource:
    """AES-256 in counter mode under a remembered key: the same words each time, which only who holds the key can tell."""

    secure = True

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._stream: CipherContext = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def take(self, count: int) -> WordArray:
        """The next words."""
        return np.frombuffer(bytearray(self._stream.update(bytes(8 * count))), dtype=np.uint64)

    def child(self, *keys: str | int) -> KeyedSource:
        """A source of its own under a key that follows from this one."""
        return KeyedSource(derived_key(self._key, *keys))


def derived_key(secret: bytes, *names: str | int) -> bytes:
    """32 bytes of BLAKE2b for what the names say, under a secret of at most 64 bytes."""
    text = "\x1f".join(f"{type(n).__name__}:{n}" for n in names)
    return hashlib.blake2b(text.encode(), key=secret, digest_size=32).digest()


class KeyedBits:
    """Noise of one recording of a release.

    Parameters
    ----------
    secret : Secret
        The keys of the release.
    *keys : str
        Which recording.
    """

    def __init__(self, secret: Secret, *keys: str) -> None:
        self.secret, self.keys = secret, keys

    def sources(self, streams: int, *keys: str | int) -> list[Source]:
        """One keyed source."""
        return [KeyedSource(self.secret.key(*self.keys, *keys))]


def protect_cohort(mechanism: StreamMechanism, cohort: Cohort, seed: int | None, kept: tuple[str, ...]) -> tuple[Cohort, list[Guarantee]]:
    """The protected cohort, and the promises of its streams.

    The attributes of people stay: they are no part of any stream, and the guarantee says so.
    """
    secret = Secret() if seed is None else None
    items: list[Recording | Handle] = []
    # A promise depends on rate and space alone, and putting one into words costs more than protecting a short recording.
    promises: dict[tuple[float, Space], Guarantee] = {}

    def promise(rate_hz: float, space: Space) -> None:
        if (rate_hz, space) not in promises:
            promises[rate_hz, space] = mechanism.promise(rate_hz, space)

    for item in cohort.items:
        bits: Bits = KeyedBits(secret, *item.key) if secret is not None else SeededBits((derived_seed(seed or 0, *item.key),))
        if isinstance(item, Recording):
            out, rate_hz = mechanism.protected(item, bits, kept)
            items.append(out)
            promise(rate_hz, item.space)
        else:
            load: Callable[[], Recording] = partial(_load, mechanism, item.load, bits, kept)
            items.append(Handle(item.person, item.stimulus, load, item.session, item.task))
            if mechanism.rate_matters or not promises:
                recording = item.load()  # a promise that depends on the rate needs every rate, so the files are read once for it
                promise(recording.rate_hz, recording.space)
    if not promises:
        raise DataError("This cohort has no recordings. Nothing was released.")
    about = [g.with_not_covered("the attributes of people", "who saw what") for g in promises.values()]
    return Cohort(items, cohort.people, name=cohort.name), about


def _load(mechanism: StreamMechanism, load: Callable[[], Recording], bits: Bits, kept: tuple[str, ...]) -> Recording:
    return mechanism.protected(load(), bits, kept)[0]
