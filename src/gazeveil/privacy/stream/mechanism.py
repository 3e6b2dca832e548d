"""What every stream mechanism shares: opening sessions, and releasing whole recordings and cohorts
through them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.promise.algebra import RecordingsMap
from gazeveil.privacy.promise.stream_map import StreamMap
from gazeveil.privacy.randomness.supply import Bits, derived_seed
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.cohorts import protect_cohort
from gazeveil.privacy.stream.session import NEVER_COVERED, Session
from gazeveil.privacy.stream.stage import Stage

DAVIDJOHN2021 = (
    'David-John et al., "A privacy-preserving approach to streaming eye-tracking data", IEEE'
    " TVCG 2021"
)

#: Parts of a recording that a release leaves out unless `keep` names them, in words.
KEEPABLE = {
    "t_ns": "the tracker's own times",
    "labels": "the labels of samples",
    "events": "the events that came with the recording",
    "head_deg": "the head's direction",
    "eye_in_head_deg": "the eye's direction in the head",
    "left_deg": "the left eye's gaze",
    "right_deg": "the right eye's gaze",
    "pupil": "the pupil size",
    "confidence": "the tracker's confidence",
    "messages": "the experiment's messages",
    "metadata": "the metadata",
}


@dataclass(frozen=True)
class StreamMechanism(Mechanism[Any]):
    """Base of the mechanisms on streams: subclasses say what they promise (:meth:`promise`) and how
    they work (:meth:`stage`).
    """

    @abstractmethod
    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """The working state for `streams` streams; noise comes from `bits`."""

    @abstractmethod
    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """What a stream of that rate in that space is promised, known before any sample is seen.

        Its map, where it promises anything, is a
        :class:`~gazeveil.privacy.promise.stream_map.StreamMap`; what recordings and people add up
        to follows from it.
        """

    @property
    def stride(self) -> int:
        """Every how many samples one is released; 1 where each is."""
        return 1

    @property
    def causal(self) -> bool:
        """Whether it can run as samples come; if not, it has no sessions and is no stage of a
        chain.
        """
        return True

    @property
    def keeps_tracker_times(self) -> bool:
        """Whether the tracker's own times and labels pass through."""
        return self.reading.startswith("published")

    def propagate_move(self, w: int, r_deg: Fraction) -> tuple[int, Fraction] | None:
        """How a change travels through a stage that comes before the noise.

        If any of `w` samples in a row move by at most `r_deg`, then at most so many released
        samples in a row move by at most so much; None where there is no such bound.
        """
        return None

    def open(self, rate_hz: float, space: Space | None = None, seed: int | None = None) -> Session:
        """A session for one stream.

        Parameters
        ----------
        rate_hz : float
            Nominal samples per second.
        space : Sphere or Screen
            What the degrees mean; a Sphere by default.
        seed : int, optional
            A test stream instead of the operating system's randomness: repeatable, and only
            `claimed`.

        Raises
        ------
        ParameterError
            For a rate that is not a positive finite number, or another space.
        """
        return Session(
            self, rate_hz, Sphere() if space is None else space, None if seed is None else (seed,)
        )

    def open_many(
        self, count: int, rate_hz: float, space: Space | None = None, seed: int | None = None
    ) -> Session:
        """A session for many streams that go in step: each push takes one sample (or one block) of
        every stream.

        Stream i gives what `open(rate_hz, space, seed=derived_seed(seed, "stream", i))` gives.
        Without a seed all streams draw from the operating system.
        """
        n = checks.count(f"{self.name}.open_many", "count", count)
        seeds = None if seed is None else tuple(derived_seed(seed, "stream", i) for i in range(n))
        return Session(self, rate_hz, Sphere() if space is None else space, seeds, streams=n)

    def release(self, data: Any, seed: int | None = None, keep: Iterable[str] = ()) -> Release[Any]:
        """Protect a recording, or every recording of a cohort as a stream of its own.

        Parameters
        ----------
        data : Recording or Cohort
            A cohort gives a cohort; recordings that are not loaded yet are protected when they are
            loaded, with the same noise each time.
        seed : int, optional
            A test stream. A recording of a cohort gets `derived_seed(seed, person, stimulus,
            session, task)`.
        keep : names of :data:`KEEPABLE`
            Parts of the recording to pass on as they are; the guarantee then says that it does not
            cover them.

        Raises
        ------
        ParameterError
            For data of another kind or an unknown name in `keep`.
        DataError
            For a recording whose rate is not known.
        """
        kept = _keep(self.name, keep)
        if isinstance(data, Recording):
            out = self.protected(data, Bits(None if seed is None else (seed,)), kept)
            return Release(
                out,
                self._released([(data.person, data.rate_hz, data.space, len(data))], kept, seed),
                self.provenance(seed),
            )
        if not isinstance(data, Cohort):
            checks.refuse(self.name, "data", "a Recording or a Cohort", data)
        result, shapes = protect_cohort(partial(self.protected, kept=kept), data, seed)

        def promised() -> Guarantee:
            return self._released(shapes.all(), kept, seed).with_not_covered(
                "the attributes of people", "who saw what"
            )

        loaded = all(isinstance(item, Recording) for item in data.items)
        return Release(result, promised() if loaded else promised, self.provenance(seed))

    def _released(
        self,
        recordings: Iterable[tuple[str, float, Space, int]],
        kept: tuple[str, ...],
        seed: int | None,
    ) -> Guarantee:
        """What recordings of those people, rates, spaces and lengths are promised together: their
        maps merged, each with noise of its own.
        """
        promises: dict[tuple[float, Space], Guarantee] = {}
        merged: list[tuple[str, StreamMap, int]] = []
        for person, rate_hz, space, samples in recordings:
            if (rate_hz, space) not in promises:
                promises[rate_hz, space] = self.promise(rate_hz, space)
            losses = promises[rate_hz, space].losses
            if isinstance(losses, StreamMap):
                merged.append((person, losses, samples))
        # Where one of them promises nothing, so does the release.
        promise = next((g for g in promises.values() if not isinstance(g.losses, StreamMap)), None)
        if promise is None:
            promise = replace(next(iter(promises.values())), losses=RecordingsMap.of(merged))
        promise = promise.with_not_covered(*(c for g in promises.values() for c in g.not_covered))
        promise = promise.with_not_covered(
            *(
                ("the tracker's own times", "the labels of samples")
                if self.keeps_tracker_times
                else NEVER_COVERED
            )
        )
        promise = promise.with_not_covered(*(f"{KEEPABLE[k]}, kept as they were" for k in kept))
        return promise if seed is None else promise.tested()

    def protected(self, recording: Recording, bits: Bits, kept: tuple[str, ...]) -> Recording:
        """A protected copy of one recording."""
        if np.isnan(recording.rate_hz):
            raise DataError(
                f"The rate of {recording.title} is not known. Say it: recording.with_(rate_hz=...)."
            )
        session = Session(self, recording.rate_hz, recording.space, bits=bits)
        t, x, y, valid = session.push(
            recording.t_ns, recording.x_deg, recording.y_deg, recording.valid
        )
        keep = {*kept, *(("t_ns", "labels") if self.keeps_tracker_times else ())}
        every = slice(None, None, self.stride)
        parts: dict[str, Any] = {
            n: getattr(recording, n)[every]
            for n in keep
            if n not in ("labels", "events", "messages", "metadata")
            and getattr(recording, n) is not None
        }
        if "labels" in keep:
            parts["labels"] = {k: v[every] for k, v in recording.labels.items()}
        parts |= {n: getattr(recording, n) for n in ("events", "messages", "metadata") if n in keep}
        if "events" in keep and self.stride != 1:
            raise DataError(
                f"{self.name} leaves samples out, so events that count samples cannot be kept."
                " Detect them again in the release."
            )
        return Recording(
            recording.person,
            recording.stimulus,
            **{"t_ns": t, **parts},
            x_deg=x,
            y_deg=y,
            valid=valid,
            space=recording.space,
            rate_hz=recording.rate_hz / self.stride,
            session=recording.session,
            task=recording.task,
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.stream.audit_samples import samplewise

        return samplewise(self, unit)


def _keep(owner: str, keep: Iterable[str]) -> tuple[str, ...]:
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in names:
        checks.one_of(owner, "keep", name, KEEPABLE)
    return tuple(dict.fromkeys(names))
