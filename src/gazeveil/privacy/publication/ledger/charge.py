"""What a release costs the people in it, as a ledger notes it.

People recognised by their raw gaze, under a secret key: a new name, another order, a subset of
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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter1d

from gazeveil.errors import FormatError
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.guarantee import OF_PEOPLE, Guarantee
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import Loss, PromiseError


@dataclass(frozen=True)
class ReleaseCharge:
    """The cost of a release for everything of one person.

    Parameters
    ----------
    mechanism : str
        Name and reading.
    definition : str
        Of its guarantee.
    loss : Loss, optional
        What is lost at most if everything of one person is replaced; None where no bound is known.
    reason : str
        Why there is no bound.
    table : bool
        Whether a table of people's attributes is part of the release.
    pieces : bool
        Whether it holds pieces under names that do not last
        (:class:`~gazeveil.privacy.pieces.PieceMechanism`).
    """

    mechanism: str
    definition: str
    loss: Loss | None
    reason: str = ""
    table: bool = False
    pieces: bool = False

    @property
    def groups(self) -> bool:
        """Whether it promises groups of people, which do not add up."""
        return self.definition in OF_PEOPLE

    def to_dict(self) -> dict[str, object]:
        """The charge as JSON has it; fractions as text."""
        loss = self.loss
        return {
            "mechanism": self.mechanism,
            "definition": self.definition,
            "loss": None
            if loss is None
            else {
                "measure": loss.measure,
                "amount": str(loss.amount),
                "delta": str(loss.delta),
                "delta_num": str(loss.delta_num),
            },
            "reason": self.reason,
            "table": self.table,
            "pieces": self.pieces,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], place: object = "ledger") -> ReleaseCharge:
        """What :meth:`to_dict` wrote."""
        try:
            loss = stored["loss"]
            return cls(
                str(stored["mechanism"]),
                str(stored["definition"]),
                None
                if loss is None
                else Loss(
                    loss["measure"],
                    *(Fraction(loss[name]) for name in ("amount", "delta", "delta_num")),
                ),
                str(stored["reason"]),
                bool(stored["table"]),
                bool(stored.get("pieces", False)),
            )
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise FormatError(
                str(place), "an entry of the ledger is not whole", "Restore it from a copy."
            ) from error


def charge_of(guarantee: Guarantee, table: bool = False, pieces: bool = False) -> ReleaseCharge:
    """The charge of a release with this guarantee: whether a table of people's attributes goes with
    it, and whether it holds pieces under names that do not last.
    """
    name = guarantee.mechanism or guarantee.definition
    if guarantee.definition in OF_PEOPLE:
        reason = f"{name} promises groups of people, and such promises do not add up"
        return ReleaseCharge(name, guarantee.definition, None, reason, table, pieces)
    metric = "space" if guarantee.change is None else guarantee.change.metric
    try:
        loss = guarantee.map(Change.person(metric=metric))
    except PromiseError as error:
        reason = str(error).rstrip(".")
        return ReleaseCharge(name, guarantee.definition, None, reason, table, pieces)
    return ReleaseCharge(name, guarantee.definition, loss, "", table, pieces)


#: Keyed hashes of one person's gaze.
PersonPrint: TypeAlias = frozenset[int]

#: Seconds of steps of which one hash is kept, and how many hashes two people must share to be one.
WINDOW_S, SHARED = 0.5, 2

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
    smallest = minimum_filter1d(steps, window)[window // 2 : len(steps) - (window - 1) // 2]
    return frozenset(np.unique(smallest).tolist())


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


def people_prints(recordings: Iterable[Recording], key: bytes) -> dict[str, PersonPrint]:
    """The hashes of every person of some recordings, by their names there."""
    found: dict[str, PersonPrint] = {}
    for recording in recordings:
        prints = prints_of(recording, key)
        found[recording.person] = found.get(recording.person, frozenset()) | prints
    return found


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
