"""Protecting every recording of a cohort, one file at a time.

A release is one thing: looking at it twice must not draw new noise, because two noisy copies say more than one. Recordings in memory are
protected at once. Recordings that are still files are protected each time they are loaded, with noise that follows from the release's one
master key, the recording's names and its gaze (:mod:`gazeveil.privacy.noise.keys`). So threads, forked processes and repeated loads get the same bits,
and a file that changed in between gets other noise. The key never leaves the process and its children: pickling such a release is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.noise.keys import MasterKey
from gazeveil.privacy.noise.rng import Source
from gazeveil.privacy.stream.supply import Bits, SeededBits, derived_seed

if TYPE_CHECKING:
    from gazeveil.privacy.stream.session import StreamMechanism


class KeyedBits:
    """Noise of one recording of a release: the same for the same gaze, whoever loads it and when.

    Parameters
    ----------
    master : MasterKey
        Of the release.
    recording : Recording
        What it protects.
    *keys : str
        Which one of the release it is.
    """

    def __init__(self, master: MasterKey, recording: Recording, *keys: str) -> None:
        self.master, self.recording, self.keys = master, recording, keys

    @cached_property
    def _about(self) -> tuple[str, ...]:
        r = self.recording
        return *self.keys, repr(r.rate_hz), repr(r.space), self.master.tag(r.t_ns, r.x_deg, r.y_deg, r.valid)

    def sources(self, streams: int, *keys: str | int) -> list[Source]:
        """One keyed source."""
        return [self.master.source(*self._about, *keys)]


def protect_cohort(mechanism: StreamMechanism, cohort: Cohort, seed: int | None, kept: tuple[str, ...]) -> tuple[Cohort, list[Guarantee]]:
    """The protected cohort, and the promises of its streams.

    The attributes of people stay: they are no part of any stream, and the guarantee says so.
    """
    master = MasterKey(seed)
    items: list[Recording | Handle] = []
    # A promise depends on rate and space alone, and putting one into words costs more than protecting a short recording.
    promises: dict[tuple[float, Space], Guarantee] = {}

    def promise(rate_hz: float, space: Space) -> None:
        if (rate_hz, space) not in promises:
            promises[rate_hz, space] = mechanism.promise(rate_hz, space)

    for item in cohort.items:
        if isinstance(item, Recording):
            out, rate_hz = mechanism.protected(item, _bits(master, item, item.key), kept)
            items.append(out)
            promise(rate_hz, item.space)
        else:
            load: Callable[[], Recording] = partial(_load, mechanism, item.load, master, item.key, kept)
            items.append(Handle(item.person, item.stimulus, load, item.session, item.task))
            if mechanism.rate_matters or not promises:
                recording = item.load()  # a promise that depends on the rate needs every rate, so the files are read once for it
                promise(recording.rate_hz, recording.space)
    if not promises:
        raise DataError("This cohort has no recordings. Nothing was released.")
    about = [g.with_not_covered("the attributes of people", "who saw what") for g in promises.values()]
    return Cohort(items, cohort.people, name=cohort.name), about


def _bits(master: MasterKey, recording: Recording, key: tuple[str, ...]) -> Bits:
    if master.seed is not None:
        return SeededBits((derived_seed(master.seed, *key),))
    return KeyedBits(master, recording, *key)


def _load(mechanism: StreamMechanism, load: Callable[[], Recording], master: MasterKey, key: tuple[str, ...], kept: tuple[str, ...]) -> Recording:
    recording = load()
    return mechanism.protected(recording, _bits(master, recording, key), kept)[0]
