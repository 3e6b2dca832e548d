"""The base of stream mechanisms: open sessions, and release whole recordings and cohorts through
them.

Protecting every recording of a cohort, one file at a time.

A release is one thing: looking at it twice must not draw new noise, because two noisy copies say
more than one. Recordings in memory are protected at once. Recordings that are still files are
protected each time they are loaded, with noise that follows from the release's one master key, the
recording's names and its gaze (:mod:`gazeveil.privacy.randomness.supply`). So threads, forked
processes and repeated loads get the same bits, and a file that changed in between gets other noise.
The key never leaves the process and its children: pickling such a release is refused.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.composition import RecordingsMap
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.promise.privacy_map import StreamMap
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.randomness.supply import Bits, MasterKey, derived_seed
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.losses.expected_gaze import FillRecorded
from gazeveil.privacy.stream.losses.public_clock import (
    LOSSES,
    NEVER_COVERED,
    on_clock,
    on_the_clock,
    steps_of,
)
from gazeveil.privacy.stream.session import Session, Stage

DAVIDJOHN2021 = (
    'David-John et al., "A privacy-preserving approach to streaming eye-tracking data", IEEE'
    " TVCG 2021"
)

_MOST_S, _MOST_HZ = 7 * 86400, 100_000

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


#: Those of :data:`KEEPABLE` that have a value for each sample, and so show which are lost.
_BY_SAMPLE = frozenset(KEEPABLE) - {"messages", "metadata"}


@dataclass(frozen=True)
class StreamMechanism(Mechanism[Any]):
    """Base of the mechanisms on streams: subclasses say what they promise (:meth:`promise`) and how
    they work (:meth:`stage`).

    Class attributes
    ----------------
    fills : str
        From what lost samples are filled, one of
        :data:`~gazeveil.privacy.stream.losses.public_clock.FILLS`; empty where they cannot be.

    Parameters
    ----------
    losses : {"keep", "fill"}, optional
        What becomes of lost samples and pauses. `keep` releases them as they are. `fill` releases a
        sample at every step of a public clock that begins at 0, and gaze that the public model
        expects where there was none (proofs/losses.md). Left out, releases of recordings fill
        where the mechanism can and the reading is not `published`, unless `keep=` names a part
        that has a value for each sample; live streams keep.
    duration_s : number, optional
        The public duration of every recording in seconds; longer ones are cut, shorter ones are
        filled. Left out, each has its own, which is then not covered. With `fill` alone.
    clock_hz : number, optional
        The public rate of the clock in Hz; left out, each recording has its own, which is then not
        covered. With `fill` alone.
    """

    kind: ClassVar[str] = "stream"
    fills: ClassVar[str] = ""
    noise_unit: ClassVar[str] = "recording"

    losses: str | None = field(default=None, kw_only=True)
    duration_s: Number | None = field(default=None, kw_only=True)
    clock_hz: Number | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.losses is not None:
            checks.one_of(self.name, "losses", self.losses, LOSSES)
        if self.losses == "fill" and not self.can_fill:
            checks.refuse(
                self.name,
                "losses",
                "keep: this reading or mechanism passes losses on as they are",
                self.losses,
                "Leave it out, or choose a reading or mechanism that fills them.",
            )
        for name, most in (("duration_s", _MOST_S), ("clock_hz", _MOST_HZ)):
            value = getattr(self, name)
            if value is None:
                continue
            number = exact(self.name, name, value, above=0)
            if number > most:
                checks.refuse(self.name, name, f"at most {most}", value)
            if self.losses == "keep" or not self.can_fill:
                checks.refuse(
                    self.name, name, "left out where losses are kept", value, "Or losses='fill'."
                )
            self.store(name, number)

    @property
    def can_fill(self) -> bool:
        """Whether `losses="fill"` is possible."""
        return bool(self.fills) and not self.keeps_tracker_times

    def for_recordings(self, keep: Iterable[str] = ()) -> StreamMechanism:
        """The same mechanism with `losses` said, as a release of recordings takes it.

        Parameters
        ----------
        keep : names of :data:`KEEPABLE`
            What is passed on; where one of them has a value for each sample, losses are kept too.
        """
        shown = sorted(_BY_SAMPLE.intersection(keep))
        wanted = self.losses == "fill" or self.duration_s is not None or self.clock_hz is not None
        if shown and wanted:
            checks.refuse(
                self.name,
                "keep",
                f"without {', '.join(shown)} where losses are filled: it shows which are lost",
                tuple(keep),
                "Leave it out, or say losses='keep'.",
            )
        if self.losses is not None:
            return self
        return replace(self, losses="fill" if self.can_fill and not shown else "keep")

    def filled(self, stage: Stage, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """A stage, with one before it that fills losses if they are to be filled from what was
        recorded.
        """
        if self.losses != "fill":
            return stage
        sources = bits.sources(streams, self.name, self.reading, "losses")
        return FillRecorded(stage, rate_hz, space, streams, sources)

    @abstractmethod
    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """The working state for `streams` streams; noise comes from `bits`."""

    def noise_scale_deg(self, recording: Recording) -> Floats | None:
        """Scale of the noise of each sample of a released recording in degrees, as far as the
        release itself makes it public; None where all samples have one.
        """
        return None

    @abstractmethod
    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """Compute the promise of a stream of that rate in that space, known before any sample.

        Its map, where it promises anything, is a
        :class:`~gazeveil.privacy.promise.privacy_map.StreamMap`; what recordings and people add up
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

    @property
    def hides_losses(self) -> bool:
        """Whether what is released does not show which samples were lost; its times must not then,
        either.
        """
        return self.losses == "fill"

    def propagate_move(self, w: int, r_deg: Fraction) -> tuple[int, Fraction] | None:
        """How a change travels through a stage that comes before the noise.

        If any of `w` samples in a row move by at most `r_deg`, then at most so many released
        samples in a row move by at most so much; None where there is no such bound.
        """
        return None

    def on_stimulus(self, stimulus: str) -> StreamMechanism:
        """As it runs on a recording of a stimulus: itself, unless its parameters differ by stimulus
        (public regions).
        """
        return self

    def without_files(self, r_deg: Fraction = Fraction(1)) -> StreamMechanism:
        """A mechanism of the same claim that opens no file: `r_deg` stands for an r that follows
        from one.
        """
        return self

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
        self._check_live("open")
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
        self._check_live("open_many")
        n = checks.count(f"{self.name}.open_many", "count", count)
        seeds = None if seed is None else tuple(derived_seed(seed, "stream", i) for i in range(n))
        return Session(self, rate_hz, Sphere() if space is None else space, seeds, streams=n)

    def _check_live(self, verb: str) -> None:
        for name in ("duration_s", "clock_hz"):
            if getattr(self, name) is not None:
                checks.refuse(
                    f"{self.name}.{verb}",
                    name,
                    "left out: a live stream ends and comes as it does",
                    getattr(self, name),
                    "Leave it out; losses='fill' alone fills lost samples as they come.",
                )

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
        made = self.for_recordings(kept)
        if isinstance(data, Recording):
            out, shape = made.protected(data, Bits(None if seed is None else (seed,)), kept)
            promise = made.joint_promise([(data.person, *shape)], kept, seed)
            return Release(out, promise, made.provenance(seed), kept=kept)
        if not isinstance(data, Cohort):
            checks.refuse(self.name, "data", "a Recording or a Cohort", data)
        result, shapes = protect_cohort(
            partial(made.protected, channels=kept), data, seed, made.shape
        )

        def promised() -> Guarantee:
            return made.joint_promise(shapes.all(), kept, seed).with_not_covered(
                "the attributes of people", "who saw what"
            )

        loaded = all(isinstance(item, Recording) for item in data.items)
        made_by = made.provenance(seed)
        return Release(result, promised() if loaded else promised, made_by, kept=kept)

    def shape(self, recording: Recording) -> Shape:
        """What the promise about a recording depends on; on the public clock where losses are
        filled.
        """
        if self.losses != "fill" or np.isnan(recording.rate_hz):
            return recording.rate_hz, recording.space, len(recording)
        rate = self._rate(recording)
        return rate, recording.space, steps_of(recording, rate, self._duration)[1]

    def _rate(self, recording: Recording) -> float:
        return recording.rate_hz if self.clock_hz is None else float(self.clock_hz)

    @property
    def _duration(self) -> Fraction | None:
        return None if self.duration_s is None else Fraction(self.duration_s)

    def joint_promise(
        self,
        recordings: Iterable[tuple[str, float, Space, int]],
        channels: tuple[str, ...],
        seed: int | None,
    ) -> Guarantee:
        """Compute the joint promise of recordings: their maps merged, each with noise of its own.

        Parameters
        ----------
        recordings : iterable of (person, rate_hz, space, samples)
            Rates in Hz.
        channels : names of :data:`KEEPABLE`
            What is passed on.
        seed : int or None
            The test stream, if there is one.
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
            # What one of them takes for granted (of doubles on a sphere, say), all of them do.
            each = promises.values()
            promise = replace(
                next(iter(each)),
                losses=RecordingsMap.of(merged),
                also=tuple(dict.fromkeys(a for g in each for a in g.also)),
                assumptions=tuple(dict.fromkeys(a for g in each for a in g.assumptions)),
            )
        promise = promise.with_not_covered(*(c for g in promises.values() for c in g.not_covered))
        if self.losses == "fill":
            public = self.clock_hz is not None, self.duration_s is not None
            promise = on_the_clock(promise, self.fills, *public)
        else:
            promise = promise.with_not_covered(
                *(
                    ("the tracker's own times", "the labels of samples")
                    if self.keeps_tracker_times
                    else NEVER_COVERED
                )
            )
        promise = promise.with_not_covered(*(f"{KEEPABLE[k]}, kept as they were" for k in channels))
        return promise if seed is None else promise.tested()

    def protected(
        self, recording: Recording, bits: Bits, channels: tuple[str, ...]
    ) -> tuple[Recording, Shape]:
        """A protected copy of one recording, and its :meth:`shape`."""
        if np.isnan(recording.rate_hz):
            raise DataError(
                f"The rate of {recording.title} is not known. Say it: recording.with_(rate_hz=...)."
            )
        rate_hz = self._rate(recording) if self.losses == "fill" else recording.rate_hz
        samples = recording.t_ns, recording.x_deg, recording.y_deg, recording.valid
        made = self.on_stimulus(recording.stimulus)
        if self.losses == "fill":
            samples = on_clock(recording, rate_hz, self._duration)
            if not samples[3].any():
                # Missing gaze is not invented: the guarantee states that this shows.
                made = replace(made, losses="keep", duration_s=None, clock_hz=None)
            # The clock has validated them.
            stage = made.stage(rate_hz, recording.space, 1, bits)
            t, x, y, valid = (
                a[0]
                for a in stage.run(
                    samples[0][None], samples[1][None], samples[2][None], samples[3][None]
                )
            )
        else:
            t, x, y, valid = Session(made, rate_hz, recording.space, bits=bits).push(*samples)
        keep = {*channels, *(("t_ns", "labels") if self.keeps_tracker_times else ())}
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
        out = Recording(
            recording.person,
            recording.stimulus,
            **{"t_ns": t, **parts},
            x_deg=x,
            y_deg=y,
            valid=valid,
            space=recording.space,
            rate_hz=rate_hz / self.stride,
            session=recording.session,
            task=recording.task,
        )
        return out, (rate_hz, recording.space, len(samples[0]))

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.stream.audit import samplewise

        return samplewise(self, unit)


def _keep(owner: str, keep: Iterable[str]) -> tuple[str, ...]:
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in names:
        checks.one_of(owner, "keep", name, KEEPABLE)
    return tuple(dict.fromkeys(names))


#: Rate in Hz, space and number of samples of a recording.
Shape: TypeAlias = tuple[float, Space, int]

#: Gives the protected copy of a recording, with noise from the given bits, and its shape.
Protect: TypeAlias = Callable[[Recording, Bits], tuple[Recording, Shape]]


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
        Gives the shape of a recording.
    """

    def __init__(self, cohort: Cohort, shape: Callable[[Recording], Shape]) -> None:
        self._cohort, self._shape = cohort, shape
        self._seen: dict[RecordingKey, Shape] = {}

    def __getstate__(self) -> dict[str, object]:
        # Another process notes what it looks at; the recordings themselves stay where they are.
        return {"_cohort": Cohort([]), "_shape": self._shape, "_seen": {}}

    def taken(self) -> dict[RecordingKey, Shape]:
        """What was noted since this was last asked, for :meth:`learn` elsewhere."""
        seen, self._seen = self._seen, {}
        return seen

    def learn(self, seen: Mapping[RecordingKey, Shape]) -> None:
        """Recordings were looked at, here or elsewhere."""
        self._seen.update(seen)

    def all(self) -> Iterator[tuple[str, float, Space, int]]:
        """Person, rate, space and samples of every recording; those not loaded yet are read now."""
        for item in self._cohort.items:
            if item.key not in self._seen:
                recording = item if isinstance(item, Recording) else item.load()
                self._seen[item.key] = self._shape(recording)
            yield (item.person, *self._seen[item.key])


def shapes_of(load: Callable[[], Recording]) -> RecordingShapes | None:
    """Where the shape of a recording is noted that is protected when it is loaded; None where none
    is.
    """
    arguments = load.args if isinstance(load, partial) else ()
    return next((a for a in arguments if isinstance(a, RecordingShapes)), None)


def protect_cohort(
    protect: Protect, cohort: Cohort, seed: int | None, shape: Callable[[Recording], Shape]
) -> tuple[Cohort, RecordingShapes]:
    """The protected cohort, and the rates, spaces and lengths of its recordings.

    The attributes of people stay: they are no part of any stream, and the guarantee says so.

    Parameters
    ----------
    protect : callable
        Gives the protected copy of a recording, with noise from the given bits, and its shape.
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
            made, own = protect(item, _bits(master, None, item.key))
            shapes.learn({item.key: own})
            items.append(made)
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
    made, own = protect(recording, _bits(master, recording, key))
    shapes.learn({key: own})
    return made
