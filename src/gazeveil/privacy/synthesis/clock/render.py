"""`clock-render`: gaze is read at public times, each reading gets noise, and one public eye looks
where the readings say.

Most of what tells people apart lies in how their eyes move: the noise of the tracker on them,
drift, speed profiles, when they move. Most of what is useful lies in where they look. So nothing is
released but a place per slot of a public clock, and every sample is drawn from one model of the eye
that is the same for all.

* The clock (:mod:`gazeveil.privacy.synthesis.clock.stage`): slots of at least `slot_s`, one sample
  read in each, never more than n = ceil(w / L) in a window of w samples.
* A reading is rounded to a public lattice and gets planar Laplace noise of scale b = n r / epsilon
  (on a sphere by area, density proportional to exp(-arc / b)), as in `kaleido`.
* Everything after that is post-processing with public randomness: readings are fused to fixations
  (:mod:`gazeveil.privacy.synthesis.clock.places`) and rendered
  (:mod:`gazeveil.privacy.synthesis.clock.eye`).

`form="stream"` reads the last sample of a slot and shows it from the next one on, so gaze is at
most one slot late besides the way there. `form="offline"` reads the middle of a slot and shows it
in that slot; it needs the whole recording. Proof: proofs/clock-render.md.

Games for the family of `clock-render`. Of `clock-render` itself: two streams that lie r apart
during one window, and all noisy readings of it.

The window is placed so that as many samples are read in it as can be. What the public eye draws
from the readings cannot tell more than the readings, so these are judged: the logarithm of their
likelihood ratio, and their mean.

`clock-render-k-same`: groups of people share where they look on one public clock; one public eye
renders it for each of them.

For N >= k people:

1. one partition of all people for everything, in floor(N / k) groups of k to 2k - 1, drawn without
   looking at the data;
2. for each group and each stimulus, session and task: if fewer than k members have it, it is left
   out for the whole group;
3. in each slot of the clock the group looks at the mean of its members' places, each weighted by
   how many look there (as `match="crowd"` of k-same-synth); slots in which fewer than k members
   were seen are filled from the one before, for a second. The release is as long as the k-th
   longest of the members' recordings;
4. every member, those without data too, gets a recording rendered from these places by the eye of
   `clock-render`.

Within a group only public randomness differs. Nothing of when eyes move, how fast, and of what
trackers add is anybody's. Proof: proofs/clock-render-k-same.md.

Many people on one public clock: where each of them looks in each slot, and recordings rendered
from such places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.audit.people import crowd_game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.noise.arithmetic import ASSUMPTION
from gazeveil.privacy.noise.lattice import LatticeLaw
from gazeveil.privacy.promise.loss import Change
from gazeveil.privacy.promise.privacy_map import WindowBudget
from gazeveil.privacy.randomness.rng import ASSUMPTION as BITS_ASSUMPTION
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.audit import at_a_time
from gazeveil.privacy.stream.kaleido.mechanism import LEAST_R_DEG, MOST_W
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Session, Stage
from gazeveil.privacy.synthesis.clock import eye as clock_eye
from gazeveil.privacy.synthesis.clock import places as clock_places
from gazeveil.privacy.synthesis.clock.stage import Clock, ClockStage, NoisySlots, WholeStage, show
from gazeveil.privacy.synthesis.ksame.mechanism import (
    common_frame,
    enough_people,
    groups_of,
    law_guarantee,
    one_kind_of_space,
    shared,
    unknown_rates,
)
from gazeveil.privacy.synthesis.ksame.pairs import NEAR_DEG, degrees, places

FORMS = ("stream", "offline")

#: Numerical error of one window: each of its draws is off by less than 2**-400.
_DELTA = Fraction(1, 1 << 370)


@dataclass(frozen=True)
class ClockRender(StreamMechanism):
    """Noisy places at public times, rendered by one public eye.

    Parameters
    ----------
    epsilon : number
        Budget of any window.
    r_deg : number
        How far each sample of a window may move, in degrees.
    slot_s : number
        Seconds of a slot; whole samples, rounded up.
    window_s : number
        Seconds of a window; whole samples, rounded up.
    form : {"stream", "offline"}
        With a delay of a slot as samples come, or aligned in time from whole recordings.
    pursuit : bool
        Whether places of one fixation may drift from slot to slot.
    fill_s : number
        A loss of this many seconds, in whole slots, is filled with the last place; a longer one
        comes out as lost.

    Examples
    --------
    >>> str(ClockRender(10, 2).promise(250.0, Sphere())).split(" (neighbours")[0]
    'clock-render (corrected) promises (epsilon, w, r)-differential privacy with epsilon = 10, w =
    125 samples and r = 2 degrees'
    """

    name: ClassVar[str] = "clock-render"
    label: ClassVar[str] = "clock-render"
    summary: ClassVar[str] = "Renders gaze from noisy places at public times."
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "streams", (":epsilon=10,r_deg=2,form=offline", ":epsilon=10,r_deg=2")
    )
    paper: ClassVar[str] = "ours"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-w-r-dp",
            "window",
            "proved",
            "places at public times with lattice noise, everything else drawn from one public eye",
        )
    }

    epsilon: Number
    r_deg: Number
    slot_s: Number = Fraction(1, 4)
    window_s: Number = Fraction(1, 2)
    form: str = "stream"
    pursuit: bool = True
    fill_s: Number = 1

    def check(self) -> None:
        """Store exact numbers."""
        self.store("epsilon", exact(self.name, "epsilon", self.epsilon, least=Fraction(1, 1 << 20)))
        self.store("r_deg", exact(self.name, "r_deg", self.r_deg, least=LEAST_R_DEG))
        for name in ("slot_s", "window_s"):
            self.store(name, exact(self.name, name, getattr(self, name), above=0))
        self.store("fill_s", exact(self.name, "fill_s", self.fill_s, least=0))
        for name, most in (
            ("epsilon", 1 << 10),
            ("r_deg", 360),
            ("slot_s", 3600),
            ("window_s", 3600),
            ("fill_s", 3600),
        ):
            if getattr(self, name) > most:
                checks.refuse(self.name, name, f"at most {most}", getattr(self, name))
        checks.one_of(self.name, "form", self.form, FORMS)
        if not isinstance(self.pursuit, bool):
            checks.refuse(self.name, "pursuit", "True or False", self.pursuit)

    def clock(self, rate_hz: float) -> Clock:
        """When gaze is read at a rate."""
        clock = Clock.of(
            Fraction(self.slot_s),
            Fraction(self.window_s),
            checks.positive(self.name, "rate_hz", rate_hz),
            self.form == "stream",
        )
        if max(clock.window, clock.length) > MOST_W:
            checks.refuse(
                self.name,
                "window_s",
                f"and slot_s at most {MOST_W} samples long",
                self.window_s,
                "Choose shorter ones, or a lower rate.",
            )
        return clock

    def noise(self, rate_hz: float, space: Space) -> LatticeLaw:
        """The noise of a reading: equal shares for the readings of a window."""
        each = Fraction(self.epsilon) / self.clock(rate_hz).count
        return LatticeLaw(space, Fraction(self.r_deg), each, inside=True)

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """(epsilon, w, r)-DP of every window, which is as many samples as its seconds hold at this
        rate, and what follows for other changes.
        """
        clock = self.clock(rate_hz)
        return Guarantee(
            "epsilon-w-r-dp",
            WindowBudget(
                float(rate_hz),
                space,
                Fraction(self.epsilon),
                clock.window,
                Fraction(self.r_deg),
                _DELTA,
                clock.count,
            ),
            Change.window(seconds=Fraction(self.window_s), move_deg=Fraction(self.r_deg)),
            mechanism=self.title,
            assumptions=(BITS_ASSUMPTION, ASSUMPTION, "the rate is public"),
            not_covered=("in which slots nothing was seen",),
            reason="proofs/clock-render.md",
        )

    @property
    def causal(self) -> bool:
        """The offline form looks ahead."""
        return self.form == "stream"

    def open(self, rate_hz: float, space: Space | None = None, seed: int | None = None) -> Session:
        """A session for one stream; see :class:`StreamMechanism`. The offline form has none."""
        self._needs_stream("open")
        return super().open(rate_hz, space, seed)

    def open_many(
        self, count: int, rate_hz: float, space: Space | None = None, seed: int | None = None
    ) -> Session:
        """A session for many streams that go in step."""
        self._needs_stream("open_many")
        return super().open_many(count, rate_hz, space, seed)

    def _needs_stream(self, verb: str) -> None:
        if not self.causal:
            checks.refuse(
                f"{self.name}.{verb}",
                "form",
                "stream: the offline form looks at whole recordings",
                self.form,
                "Use release, or form='stream'.",
            )

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """The private part, and the public eye."""
        private = self.slots(rate_hz, space, streams, bits)
        keys = bits.sources(streams, self.name, self.reading, "eye")
        made = ClockStage if self.form == "stream" else WholeStage
        return made(
            private, self.model(rate_hz, space), self.settings(rate_hz, space), streams, keys
        )

    def slots(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> NoisySlots:
        """The private part alone."""
        return NoisySlots(
            self.clock(rate_hz),
            self.noise(rate_hz, space),
            streams,
            bits.sources(streams, self.name, self.reading),
        )

    def scale_deg(self, rate_hz: float, space: Space) -> float:
        """Scale b of the noise of a reading, in degrees."""
        return self.noise(rate_hz, space).scale_deg

    def model(self, rate_hz: float, space: Space) -> Floats:
        """What the public model knows about readings."""
        slot_s = self.clock(rate_hz).length / rate_hz
        # no noise is farther than about half the space
        noise_deg = min(math.sqrt(3.0) * self.scale_deg(rate_hz, space), 90.0)
        return clock_places.model(
            isinstance(space, Sphere),
            noise_deg,
            slot_s,
            self.pursuit,
            math.ceil(Fraction(self.fill_s) / Fraction(repr(slot_s))),
        )

    def settings(self, rate_hz: float, space: Space) -> Floats:
        """What the public eye knows."""
        edges = (
            (math.inf, math.inf)
            if isinstance(space, Sphere)
            else (space.width_deg / 2, space.height_deg / 2)
        )
        length = self.clock(rate_hz).length
        # what comes late already is shown without further delay
        latest, longest = (0, -(-length // 4)) if self.form == "stream" else (length // 4, length)
        return clock_eye.settings(isinstance(space, Sphere), rate_hz, edges, latest, longest)

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        return clock_render(self, unit)


RATE_HZ = 100.0

# So large that nothing is clamped: what is clamped tells less.
_SCREEN = Screen(1000, 1000, 1e6, 1e6, 1000.0)


def clock_render(mechanism: ClockRender, unit: str | None) -> Game:
    """The joint outcome of one window; the exact loss is that of readings that lie beyond both
    streams on the line through them.
    """
    audited = asked_unit(unit, "window", ("window",))
    clock, noise = mechanism.clock(RATE_HZ), mechanism.noise(RATE_HZ, _SCREEN)
    step_deg = float(noise.step_deg)
    scale = noise.scale
    # beyond the screen there is no place to differ
    r_steps = Fraction(mechanism.r_deg) / noise.step_deg
    apart = min(math.floor(r_steps), math.floor(80.0 / step_deg))
    samples = clock.count * clock.length
    differ = (np.arange(samples) >= clock.aim) & (np.arange(samples) < clock.aim + clock.window)

    def play(side: int, trials: int, seed: int | None) -> Floats:
        scores, several = [], at_a_time(samples)
        for begin in range(0, trials, several):
            rows = min(several, trials - begin)
            slots = NoisySlots(clock, noise, rows, [source(seed, "audit", side, begin)])
            x = np.tile(np.where(differ & (side == 0), apart * step_deg, 0.0), (rows, 1))
            z, v, ok = slots.take(x, np.zeros_like(x), np.ones_like(x, dtype=np.bool_))
            assert ok.all()
            ratio = (np.hypot(z, v) - np.hypot(z - apart * step_deg, v)).sum(axis=1) / (
                scale * step_deg
            )
            scores.append(np.stack((ratio, z.mean(axis=1)), axis=1))
        return np.concatenate(scores)

    description = (
        f"One window of {clock.window} samples at 100 Hz in which {clock.count} are read: two"
        " streams that lie r apart in all of it."
    )
    return Game(audited, float(mechanism.epsilon), description, play, clock.count * apart / scale)


#: Standard deviation along an axis, in degrees, up to which means of people are taken for one
#: place, and seconds without one that are filled.
SPREAD_DEG, FILL_S = 0.5, 1.0

#: The longest recording that is put on a clock, in slots: about three months at four a second.
_MOST_SLOTS = 1 << 25


@dataclass(frozen=True, eq=False)
class GazeBySlot:
    """Where one recording looked, slot by slot.

    Parameters
    ----------
    space : Sphere or Screen
        What the degrees mean.
    rate_hz : float
        Samples per second; NaN where it is not known, and then there are no slots.
    samples, length : int
        Samples of the recording and of a slot.
    places : array, shape (slots, 3)
        Unit vectors on a sphere, (x, y, 0) on a screen; NaN where nothing was seen.
    """

    space: Space
    rate_hz: float
    samples: int
    length: int
    places: Floats = field(repr=False)

    @property
    def seconds(self) -> float:
        """The whole recording."""
        return self.samples / self.rate_hz

    def at(self, rate_hz: float, length: int, slots: int) -> Floats:
        """The places in the slots of another clock, shape (slots, 3): those under way in the middle
        of them.
        """
        middle_s = (np.arange(slots) + 0.5) * (length / rate_hz)
        slot = np.floor(middle_s * (self.rate_hz / self.length) + 1e-9).astype(np.int64)
        out = np.full((slots, 3), np.nan)
        there = slot < len(self.places)
        out[there] = self.places[slot[there]]
        return out


def length_of(slot_s: Fraction, rate_hz: float) -> int:
    """Samples of a slot, rounded up."""
    return max(1, math.ceil(slot_s * Fraction(repr(float(rate_hz)))))


def seen(recording: Recording, slot_s: Fraction) -> GazeBySlot:
    """Where a recording looked in each slot: the mean of the good samples of the slot's middle
    fifth, else the good sample nearest to its middle.
    """
    if not recording.rate_hz > 0 or len(recording) == 0:
        return GazeBySlot(recording.space, recording.rate_hz, len(recording), 1, np.empty((0, 3)))
    length = length_of(slot_s, recording.rate_hz)
    slots = -(-len(recording) // length)
    if slots > _MOST_SLOTS:
        raise DataError(
            f"{recording.title} has {slots} slots of {float(slot_s):g} s, more than {_MOST_SLOTS}."
            " Choose longer slots."
        )
    good = recording.valid & np.isfinite(recording.x_deg) & np.isfinite(recording.y_deg)
    x, y = (np.where(good, a, 0.0) for a in (recording.x_deg, recording.y_deg))
    middles = _middles(np.ascontiguousarray(places(recording.space, x, y)), good, length, slots)
    if isinstance(recording.space, Sphere):
        size = np.linalg.norm(middles, axis=1, keepdims=True)
        middles = np.divide(middles, size, out=np.full_like(middles, np.nan), where=size > 1e-9)
    return GazeBySlot(recording.space, recording.rate_hz, len(recording), length, middles)


@compiled
def _middles(place: Floats, good: Bools, length: int, slots: int) -> Floats:
    out = np.full((slots, 3), np.nan)
    for j in range(slots):
        begin, end = j * length, min((j + 1) * length, len(good))
        low, high = begin + (2 * (end - begin)) // 5, begin + (3 * (end - begin) + 4) // 5
        total, count = np.zeros(3), 0
        for i in range(low, max(high, low + 1)):
            if good[i]:
                total += place[i]
                count += 1
        if count == 0:
            middle, best = (begin + end - 1) / 2.0, -1
            for i in range(begin, end):
                if good[i] and (best < 0 or abs(i - middle) < abs(best - middle)):
                    best = i
            if best >= 0:
                total, count = place[best].copy(), 1
        if count > 0:
            out[j] = total / count
    return out


def all_seen(data: Cohort, slot_s: Fraction) -> dict[RecordingKey, GazeBySlot]:
    """Every recording of a cohort on the clock; one is held at a time.

    Raises
    ------
    DataError
        For a stimulus that some saw on a sphere and some on a screen.
    """
    gaze: dict[RecordingKey, GazeBySlot] = {}
    for item in data.items:
        gaze[item.key] = seen(item if isinstance(item, Recording) else item.load(), slot_s)
    one_kind_of_space((key, places.space) for key, places in gaze.items())
    return gaze


@dataclass(frozen=True, eq=False)
class Law:
    """What a recording is rendered from; the fields are those of :class:`GazeBySlot`."""

    space: Space
    rate_hz: float
    samples: int
    length: int
    places: Floats = field(repr=False)


@dataclass(frozen=True)
class Rendering:
    """A recording that is rendered from a law with a public eye when it is called; the same each
    time.
    """

    key: RecordingKey
    law: Law
    eye: int

    def __call__(self) -> Recording:
        """The recording."""
        law = self.law
        sphere = isinstance(law.space, Sphere)
        n, slot_s = law.samples, law.length / law.rate_hz
        ok: Bools = np.isfinite(law.places[:, 0])
        slot_x, slot_y = degrees(law.space, np.where(ok[:, None], law.places, 0.0))
        edges = (
            (math.inf, math.inf)
            if isinstance(law.space, Sphere)
            else (law.space.width_deg / 2, law.space.height_deg / 2)
        )
        x, y, valid = np.empty((1, n)), np.empty((1, n)), np.empty((1, n), dtype=np.bool_)
        # means over people wander slowly; an eye does not, so it fixates and jumps after them
        model = clock_places.model(
            sphere, SPREAD_DEG, slot_s, False, math.ceil(FILL_S / slot_s - 1e-9)
        )
        settings = clock_eye.settings(sphere, law.rate_hz, edges, law.length // 4, law.length)
        show(
            slot_x[None],
            slot_y[None],
            ok[None],
            law.length,
            model,
            settings,
            np.array([self.eye], dtype=np.uint64),
            x,
            y,
            valid,
        )
        t: Ints = np.rint(np.arange(n) * (1e9 / law.rate_hz)).astype(np.int64)
        person, stimulus, session, task = self.key
        return Recording(
            person,
            stimulus,
            t,
            x[0],
            y[0],
            valid[0],
            space=law.space,
            rate_hz=law.rate_hz,
            session=session,
            task=task,
        )


def rendered(
    laws: Mapping[RecordingKey, Law], eyes: Mapping[RecordingKey, int], lazy: bool
) -> list[Recording | Handle]:
    """Recordings of all laws, at once or when they are looked at."""
    items: list[Recording | Handle] = []
    for key in sorted(laws):
        load = Rendering(key, laws[key], eyes[key])
        items.append(Handle(key[0], key[1], load, key[2], key[3]) if lazy else load())
    return items


@dataclass(frozen=True)
class ClockRenderKSame(Mechanism[Cohort]):
    """Replace each person's recordings by renderings of where their group looked.

    Parameters
    ----------
    k : int
        Smallest group, at least 2.
    slot_s : number
        Seconds of a slot of the clock; whole samples, rounded up.

    Examples
    --------
    >>> print(ClockRenderKSame(4))
    clock-render-k-same:k=4,slot_s=1/4,reading=corrected
    """

    k: int
    slot_s: Number = Fraction(1, 4)

    name: ClassVar[str] = "clock-render-k-same"
    label: ClassVar[str] = "clock-render k-same"
    summary: ClassVar[str] = "Renders the same places, at public times, for k people."
    plot: ClassVar[PlotRecipe] = PlotRecipe("population", (":k=4", ":k=15"))
    kind: ClassVar[str] = "cohort"
    noise_unit: ClassVar[str] = "fit"
    paper: ClassVar[str] = "ours"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "k-anonymity",
            "user",
            "proved",
            "one partition for everything, places shared on a public clock, and one public eye",
        )
    }

    def check(self) -> None:
        """Store the numbers exactly."""
        self.store("k", checks.count(self.name, "k", self.k, least=2))
        self.store("slot_s", slot_seconds(self.name, self.slot_s))

    def release(self, data: Cohort, seed: int | None = None) -> Release[Cohort]:
        """Render a cohort; see :class:`Mechanism`. Recordings that are not loaded yet are rendered
        each time they are looked at, the same each time.

        Raises
        ------
        ParameterError
            For anything but a Cohort.
        DataError
            For fewer than k people, a sphere and a screen under one stimulus, or nothing that k
            members of a group have in common.
        """
        laws, notes = self._laws(data, Words(source(seed, self.name)))
        eyes = dict(
            zip(sorted(laws), source(seed, self.name, "eye").take(len(laws)).tolist(), strict=True)
        )
        out = Cohort(
            rendered(laws, eyes, any(isinstance(item, Handle) for item in data.items)),
            name=data.name,
            read_as=data.read_as,
        )
        return self.released(
            out, law_guarantee(self.title, self.k, "proofs/clock-render-k-same.md"), seed, notes
        )

    def laws(self, data: Cohort, seed: int | None = None) -> dict[RecordingKey, Law]:
        """What :meth:`release` with the same seed renders, by (person, stimulus, session, task):
        what the promise is about.
        """
        return self._laws(data, Words(source(seed, self.name)))[0]

    def _laws(self, data: Cohort, words: Words) -> tuple[dict[RecordingKey, Law], dict[str, int]]:
        people = enough_people(self.name, data, self.k)
        gaze = all_seen(data, Fraction(self.slot_s))
        laws, notes = shared(gaze, groups_of(people, self.k, words), self.k, self._shared)
        return laws, {"recordings_of_unknown_rate": unknown_rates(gaze), **notes}

    def _shared(self, members: Sequence[GazeBySlot]) -> Law:
        """Where a group looked."""
        frame = common_frame(members, self.k)
        length = length_of(Fraction(self.slot_s), frame.rate_hz)
        slots = -(-frame.samples // length)
        places = np.stack([m.at(frame.rate_hz, length, slots) for m in members])
        return Law(
            frame.space,
            frame.rate_hz,
            frame.samples,
            length,
            crowd(places, self.k, isinstance(frame.space, Sphere)),
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        return crowd_game(self, unit, self._arrays)

    def _arrays(self, data: Cohort, seed: int) -> dict[RecordingKey, tuple[Floats, ...]]:
        """What makes up each law."""
        return {key: (law.places,) for key, law in self.laws(data, seed).items()}


def crowd(places: Floats, k: int, on_sphere: bool) -> Floats:
    """The place of a group in each slot: the mean of its members', weighted by the square of how
    many look there.

    Parameters
    ----------
    places : array, shape (members, slots, 3)
        NaN where a member was not seen.
    k : int
        Least number of members who must have been seen.
    on_sphere : bool
        Whether places are unit vectors.

    Returns
    -------
    array, shape (slots, 3)
        NaN where fewer than k were seen.
    """
    there: Bools = np.isfinite(places[:, :, 0])
    filled = np.where(there[:, :, None], places, 0.0)
    near = np.radians(NEAR_DEG) if on_sphere else NEAR_DEG
    total, weights = np.zeros(places.shape[1:]), np.zeros(places.shape[1])
    for m in range(len(places)):
        away = ((filled - filled[m]) ** 2).sum(axis=2)
        agree = (np.exp(-away / (2 * near * near)) * there).sum(axis=0)
        weight = np.where(there[m], agree * agree, 0.0)
        total += weight[:, None] * filled[m]
        weights += weight
    enough = there.sum(axis=0) >= k
    return np.where(enough[:, None], total / np.where(enough, weights, 1.0)[:, None], np.nan)


def slot_seconds(owner: str, value: Number) -> Fraction:
    """A length of slots that makes sense."""
    slot_s = exact(owner, "slot_s", value, above=0)
    if slot_s > 3600:
        checks.refuse(owner, "slot_s", "at most 3600", value)
    return slot_s
