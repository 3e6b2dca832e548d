"""Protecting every recording of a cohort, one file at a time.

A release is one thing: looking at it twice must not draw new noise, because two noisy copies say
more than one. Recordings in memory are protected at once. Recordings that are still files are
protected each time they are loaded, with noise that follows from the release's one master key, the
recording's names and its gaze (:mod:`gazeveil.privacy.randomness.keys`). So threads, forked
processes and repeated loads get the same bits, and a file that changed in between gets other noise.
The key never leaves the process and its children: pickling such a release is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import TypeAlias

from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.randomness.keys import MasterKey
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.randomness.supply import Bits, derived_seed

#: Gives the rate in Hz, the space and the samples of a recording.
Shape: TypeAlias = Callable[[Recording], tuple[float, Space, int]]

#: Gives the protected copy of a recording, with noise from the given bits.
Protect: TypeAlias = Callable[[Recording, Bits], Recording]


class KeyedBits(Bits):
    """Noise of one recording of a release: the same for the same gaze, on every load.

    Parameters
    ----------
    master : MasterKey
        Of the release.
    recording : Recording, optional
        What it protects, where that is loaded more than once: a file that has changed gets other
        noise. One in memory is protected just once.
    *keys : str
        Which one of the release it is.
    """

    def __init__(self, master: MasterKey, recording: Recording | None, *keys: str) -> None:
        super().__init__()
        self.master, self.recording, self.keys = master, recording, keys

    @cached_property
    def _about(self) -> tuple[str, ...]:
        r = self.recording
        if r is None:
            return self.keys
        return (
            *self.keys,
            repr(r.rate_hz),
            repr(r.space),
            self.master.tag(r.t_ns, r.x_deg, r.y_deg, r.valid),
        )

    def sources(self, streams: int, *keys: str | int) -> list[Source]:
        """One keyed source."""
        return [self.master.source(*self._about, *keys)]


class RecordingShapes:
    """What the promise needs of recordings that are still files: rates, spaces and lengths, noted
    when a recording is first loaded.

    Parameters
    ----------
    cohort : Cohort
        The raw recordings.
    shape : callable
        Gives the rate, the space and the samples of a recording.
    """

    def __init__(self, cohort: Cohort, shape: Shape) -> None:
        self._cohort, self._shape = cohort, shape
        self._seen: dict[RecordingKey, tuple[float, Space, int]] = {}

    def __getstate__(self) -> dict[str, object]:
        # Another process notes what it looks at; the recordings themselves stay where they are.
        return {"_cohort": Cohort([]), "_shape": self._shape, "_seen": {}}

    def taken(self) -> dict[RecordingKey, tuple[float, Space, int]]:
        """What was noted since this was last asked, for :meth:`learn` elsewhere."""
        seen, self._seen = self._seen, {}
        return seen

    def note(self, key: RecordingKey, recording: Recording) -> None:
        """A recording was looked at."""
        self._seen[key] = self._shape(recording)

    def learn(self, seen: Mapping[RecordingKey, tuple[float, Space, int]]) -> None:
        """Recordings were looked at elsewhere."""
        self._seen.update(seen)

    def all(self) -> Iterator[tuple[str, float, Space, int]]:
        """Person, rate, space and samples of every recording; those not loaded yet are read now."""
        for item in self._cohort.items:
            if item.key not in self._seen:
                self.note(item.key, item if isinstance(item, Recording) else item.load())
            yield (item.person, *self._seen[item.key])


def shapes_of(load: Callable[[], Recording]) -> RecordingShapes | None:
    """Where the shape of a recording is noted that is protected when it is loaded; None where none
    is.
    """
    arguments = load.args if isinstance(load, partial) else ()
    return next((a for a in arguments if isinstance(a, RecordingShapes)), None)


def protect_cohort(
    protect: Protect, cohort: Cohort, seed: int | None, shape: Shape
) -> tuple[Cohort, RecordingShapes]:
    """The protected cohort, and the rates, spaces and lengths of its recordings.

    The attributes of people stay: they are no part of any stream, and the guarantee says so.

    Parameters
    ----------
    protect : callable
        Gives the protected copy of a recording, with noise from the given bits.
    cohort : Cohort
        What to protect.
    seed : int, optional
        Test streams instead of secret keys.
    shape : callable
        See :class:`RecordingShapes`.
    """
    if len(cohort) == 0:
        raise DataError("This cohort has no recordings. Nothing was released.")
    master = MasterKey(seed)
    items: list[Recording | Handle] = []
    shapes = RecordingShapes(cohort, shape)
    for item in cohort.items:
        if isinstance(item, Recording):
            shapes.note(item.key, item)
            items.append(protect(item, _bits(master, None, item.key)))
        else:
            load: Callable[[], Recording] = partial(
                _load, protect, item.load, master, item.key, shapes
            )
            items.append(Handle(item.person, item.stimulus, load, item.session, item.task))
    return Cohort(items, cohort.people, name=cohort.name, read_as=cohort.read_as), shapes


def _bits(master: MasterKey, recording: Recording | None, key: RecordingKey) -> Bits:
    if master.seed is not None:
        return Bits((derived_seed(master.seed, *key),))
    return KeyedBits(master, recording, *key)


def _load(
    protect: Protect,
    load: Callable[[], Recording],
    master: MasterKey,
    key: RecordingKey,
    shapes: RecordingShapes,
) -> Recording:
    recording = load()
    shapes.note(key, recording)
    return protect(recording, _bits(master, recording, key))
