"""People recognised by their raw gaze, under a secret key: a new name, another order, a subset of
recordings or a recording cut to two seconds does not hide them.

A step is four different samples in a row, rounded to a thousandth of a degree. Of every half
second of steps the smallest keyed hash is kept (winnowing; Schleimer, Wilkerson and Aiken 2003), so
any two seconds that two recordings share give at least three hashes in common, and two people share
none. Without the key, the hashes of a ledger reveal nothing. Key and hashes lie in one file, which
belongs to the curator, as the recordings do. A participant who is recorded anew is not recognised:
give both recordings to one release. Recordings that were resampled, moved or read with another
screen are not recognised either. The ledger guards against oversight, not against its holder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gazeveil.gaze.recording import Recording
from gazeveil.privacy.publication.names import PublicNames

#: Keyed hashes of one person's gaze.
PersonPrint: TypeAlias = frozenset[int]

#: Seconds of steps of which one hash is kept, and how many hashes two people must share to be one.
WINDOW_S, SHARED = 0.5, 2

#: Of a secret key.
KEY_BYTES = 32

_STEP, _ROUNDED_DEG = 4, 1e-3
#: Steps of a window where a recording has no rate: a dataset of fixations alone.
_FEW_STEPS = 4


def prints_of(recording: Recording, key: bytes) -> PersonPrint:
    """The hashes of one recording; empty where it has no gaze."""
    x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
    events = recording.events
    if not len(x) and events is not None and events.x_deg is not None and events.y_deg is not None:
        known = np.isfinite(events.x_deg) & np.isfinite(events.y_deg)
        x, y = events.x_deg[known], events.y_deg[known]  # a dataset of fixations alone
    places = np.stack(
        [np.rint(x / _ROUNDED_DEG).astype(np.int64), np.rint(y / _ROUNDED_DEG).astype(np.int64)], 1
    )
    moved = np.concatenate(([True], (np.diff(places, axis=0) != 0).any(axis=1)))
    places = places[moved] if len(places) else places
    if len(places) < _STEP:
        return frozenset()
    steps = _mixed(places, key).astype(np.int64)  # 63 bits
    rate_hz = recording.rate_hz if recording.rate_hz > 0 else 0.0
    window = max(_FEW_STEPS, round(WINDOW_S * rate_hz))
    if len(steps) <= window:
        return frozenset((int(steps.min()),))
    return frozenset(np.unique(_smallest(steps, window)).astype(np.int64).tolist())


def _smallest(steps: NDArray[np.int64], window: int) -> NDArray[np.float64]:
    """The smallest step of each whole window, from running minima of blocks as long as a window,
    forwards and backwards (van Herk 1992). Ledgers hold hashes as doubles have them.
    """
    blocks = np.full((-(-len(steps) // window), window), np.inf)
    blocks.ravel()[: len(steps)] = steps
    ahead = np.minimum.accumulate(blocks, axis=1).ravel()
    behind = np.minimum.accumulate(blocks[:, ::-1], axis=1)[:, ::-1].ravel()
    count = len(steps) - window + 1
    return np.minimum(behind[:count], ahead[window - 1 :][:count])


def _mixed(places: NDArray[np.int64], key: bytes) -> NDArray[np.uint64]:
    """One keyed 63-bit hash for each step of a recording.

    A polynomial over the samples of a step with secret odd coefficients, then a secret mixing by
    multiplication and shifts. It is fast, and without the key gaze cannot be tested against it.
    """
    words = np.frombuffer(hashlib.blake2b(key, digest_size=64).digest(), dtype=np.uint64) | 1
    more = np.frombuffer(hashlib.blake2b(key + b"2", digest_size=64).digest(), dtype=np.uint64) | 1
    count = len(places) - _STEP + 1
    total = np.zeros(count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for i in range(_STEP):
            part = places[i : i + count].view(np.uint64)
            total += part[:, 0] * words[2 * i] + part[:, 1] * words[2 * i + 1]
            total ^= total >> np.uint64(29)
            total *= more[i]
        total ^= total >> np.uint64(32)
        total *= more[_STEP]
        total ^= total >> np.uint64(29)
    return total >> np.uint64(1)


class PeopleSeen:
    """Who is in a release, recognised by their recorded gaze.

    Parameters
    ----------
    key : bytes, optional
        Secret; left out, a fresh one that is not stored.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = os.urandom(KEY_BYTES) if key is None else key
        self.people: dict[str, PersonPrint] = {}

    def note_all(self, recordings: Recording | Iterable[Recording]) -> PeopleSeen:
        """Look at recordings."""
        for recording in [recordings] if isinstance(recordings, Recording) else recordings:
            self.note(recording)
        return self

    def note(self, recording: Recording) -> None:
        """A recording that was looked at."""
        prints = prints_of(recording, self._key)
        self.people[recording.person] = self.people.get(recording.person, frozenset()) | prints

    def of(self, names: PublicNames, pieces: bool) -> Mapping[str, PersonPrint]:
        """Those of them who have these names; all where names are those of pieces or of maps."""
        named = {} if pieces else {p: self.people[p] for p in names.people if p in self.people}
        return named or self.people


def under_two_names(people: Mapping[str, PersonPrint]) -> tuple[str, str] | None:
    """Two names whose gaze is that of one person; None where there are none."""
    having: dict[int, list[str]] = {}
    for name, prints in people.items():
        met = {other for h in prints for other in having.get(h, ())}
        for other in sorted(met):
            if same_person(prints, people[other]):
                return other, name
        for h in prints:
            having.setdefault(h, []).append(name)
    return None


def same_person(one: PersonPrint, other: PersonPrint) -> bool:
    """Whether two prints are of gaze that they share."""
    if not one or not other:
        return False
    return len(one & other) >= min(SHARED, len(one), len(other))
