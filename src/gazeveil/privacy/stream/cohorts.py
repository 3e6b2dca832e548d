"""Protecting every recording of a cohort, one file at a time.

A release is one thing: looking at it twice must not draw new noise, because two noisy copies say more than one. Recordings in memory are
protected at once. Recordings that are still files are protected each time they are loaded, with noise under keys that come from the
operating system, are remembered with the release and never leave the process: pickling such a release is refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.noise.rng import Source, WordArray
from gazeveil.privacy.stream.supply import Bits, SeededBits, derived_seed

if TYPE_CHECKING:
    from gazeveil.privacy.stream.session import StreamMechanism


#: (person, stimulus, session, task).
Key: TypeAlias = tuple[str, str, str, str]


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


class Known:
    """What the promise needs of recordings that are still files: rates, spaces and lengths, noted when a recording is first loaded.

    Parameters
    ----------
    cohort : Cohort
        The raw recordings.
    """

    def __init__(self, cohort: Cohort) -> None:
        self._cohort = cohort
        self._seen: dict[Key, tuple[float, Space, int]] = {}

    def note(self, recording: Recording) -> None:
        """A recording was looked at."""
        self._seen[recording.key] = recording.rate_hz, recording.space, len(recording)

    def all(self) -> Iterator[tuple[str, float, Space, int]]:
        """Person, rate, space and samples of every recording; those that nobody has loaded yet are read now."""
        for item in self._cohort.items:
            if item.key not in self._seen:
                self.note(item if isinstance(item, Recording) else item.load())
            yield (item.person, *self._seen[item.key])


def protect_cohort(mechanism: StreamMechanism, cohort: Cohort, seed: int | None, kept: tuple[str, ...]) -> tuple[Cohort, Known]:
    """The protected cohort, and what is known of its recordings.

    The attributes of people stay: they are no part of any stream, and the guarantee says so.
    """
    if len(cohort) == 0:
        raise DataError("This cohort has no recordings. Nothing was released.")
    secret = Secret() if seed is None else None
    items: list[Recording | Handle] = []
    known = Known(cohort)
    for item in cohort.items:
        bits: Bits = KeyedBits(secret, *item.key) if secret is not None else SeededBits((derived_seed(seed or 0, *item.key),))
        if isinstance(item, Recording):
            known.note(item)
            items.append(mechanism.protected(item, bits, kept))
        else:
            load: Callable[[], Recording] = partial(_load, mechanism, item.load, bits, kept, known)
            items.append(Handle(item.person, item.stimulus, load, item.session, item.task))
    return Cohort(items, cohort.people, name=cohort.name), known


def _load(mechanism: StreamMechanism, load: Callable[[], Recording], bits: Bits, kept: tuple[str, ...], known: Known) -> Recording:
    recording = load()
    known.note(recording)
    return mechanism.protected(recording, bits, kept)
