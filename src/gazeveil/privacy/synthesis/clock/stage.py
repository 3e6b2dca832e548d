"""The stages of `clock-render`: read the clock, add noise to what was read, look where it says.

The public clock of `clock-render`: one sample of gaze in each slot, chosen by its number and by
which samples are lost, never by where it is.

Slots have L samples and follow one another from the first sample on. In each slot one good sample
is *read*: the one nearest to `aim`, counted from the slot's first sample. A sample may be read only
if it comes w or more samples after the count-th last one that was read, so that no window of w
samples holds more than `count` of them, whatever is lost. A slot without such a sample reads
nothing.

Why one sample and not the mean of the middle of a slot: a window of w = 2 L samples can touch the
middles of three slots and the middle *samples* of two only, so a mean would cost half as much noise
again, which is more than the tracker noise that it averages away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.privacy.noise.lattice import LatticeLaw
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.stream.losses.expected_gaze import stream_keys
from gazeveil.privacy.stream.session import Samples, Stage
from gazeveil.privacy.synthesis.clock import eye, places

# State of a stream, by place: samples so far, samples of the slot so far, the sample read in this
# slot (-1: none yet), the oldest place of the ring; then the numbers of the last `count` samples
# that were read.
SEEN, TICK, CHOSEN, HEAD, RING = range(5)


@dataclass(frozen=True)
class Clock:
    """When gaze is read.

    Parameters
    ----------
    length : int
        Samples of a slot, L.
    window : int
        Samples of a window, w.
    aim : int
        The sample of a slot that is read if it is there, from 0 to L - 1.

    Examples
    --------
    >>> Clock.of(Fraction(1, 4), Fraction(1, 2), 250.0, late=False)
    Clock(length=63, window=125, aim=31)
    >>> Clock.of(Fraction(1, 4), Fraction(1, 2), 250.0, late=True).count
    2
    """

    length: int
    window: int
    aim: int

    @classmethod
    def of(cls, slot_s: Fraction, window_s: Fraction, rate_hz: float, late: bool) -> Clock:
        """The clock of a rate; `late` reads the last sample of a slot, else the middle one."""
        rate = Fraction(repr(float(rate_hz)))
        length = max(1, math.ceil(slot_s * rate))
        return cls(length, max(1, math.ceil(window_s * rate)), length - 1 if late else length // 2)

    @property
    def count(self) -> int:
        """How many samples of a window are read at most."""
        return -(-self.window // self.length)

    def state(self, streams: int) -> Ints:
        """Streams that have not begun."""
        state = np.zeros((streams, RING + self.count), dtype=np.int64)
        state[:, CHOSEN] = -1
        state[:, RING:] = -self.window
        return state


@compiled
def read_slots(
    x_deg: Floats,
    y_deg: Floats,
    valid: Bools,
    length: int,
    window: int,
    aim: int,
    flush: bool,
    states: Ints,
    chosen: Floats,
    slot_x: Floats,
    slot_y: Floats,
    slot_ok: Bools,
) -> None:
    """What is read in the slots that end within a block of samples.

    Parameters
    ----------
    x_deg, y_deg, valid : arrays of shape (streams, n)
        Samples.
    length, window, aim : int
        See :class:`Clock`.
    flush : bool
        Whether the slot that is under way ends with the block.
    states : array of int64, shape (streams, RING + count)
        Updated.
    chosen : array of float64, shape (streams, 2)
        Where the sample read in the slot under way lies; updated.
    slot_x, slot_y, slot_ok : arrays of shape (streams, slots)
        Filled; where nothing is read, NaN and False.
    """
    count = states.shape[1] - RING
    n = x_deg.shape[1]
    for s in range(x_deg.shape[0]):
        seen = states[s, SEEN]
        tick = states[s, TICK]
        best = states[s, CHOSEN]
        head = states[s, HEAD]
        best_x, best_y = chosen[s, 0], chosen[s, 1]
        slot, i = 0, 0
        while i < n or (flush and tick > 0):
            first = states[s, RING + head] + window
            start = seen - tick
            until = min(n, i + length - tick)
            if aim == length - 1:  # the last one: no need to look at those before it
                for k in range(until - 1, max(i, i + first - seen) - 1, -1):
                    if valid[s, k]:
                        best, best_x, best_y = seen + k - i, x_deg[s, k], y_deg[s, k]
                        break
            else:
                for k in range(i, until):
                    at = seen + k - i
                    if (
                        valid[s, k]
                        and at >= first
                        and (best < 0 or abs(at - start - aim) < abs(best - start - aim))
                    ):
                        best, best_x, best_y = at, x_deg[s, k], y_deg[s, k]
            seen += until - i
            tick += until - i
            i = until
            if tick < length and not flush:
                break
            slot_x[s, slot], slot_y[s, slot], slot_ok[s, slot] = np.nan, np.nan, best >= 0
            if best >= 0:
                slot_x[s, slot], slot_y[s, slot] = best_x, best_y
                states[s, RING + head] = best
                head = head + 1 if head + 1 < count else 0
            slot, tick, best = slot + 1, 0, np.int64(-1)
        states[s, SEEN] = seen
        states[s, TICK] = tick
        states[s, CHOSEN] = best
        states[s, HEAD] = head
        chosen[s, 0], chosen[s, 1] = best_x, best_y


class NoisySlots:
    """The private part: readings of the clock with lattice noise, for one stream or many; one
    source for each, or one secure one for all.
    """

    def __init__(
        self, clock: Clock, noise: LatticeLaw, streams: int, sources: Sequence[Source]
    ) -> None:
        self.clock = clock
        self.noise = noise.sampler(sources)
        self.states, self.chosen = clock.state(streams), np.zeros((streams, 2))

    @property
    def tick(self) -> int:
        """Samples of the slot under way."""
        return int(self.states[0, TICK])

    def reset(self) -> None:
        """Begin a new slot; what was read stays counted, so that windows across the reset keep
        their promise.
        """
        self.states[:, TICK], self.states[:, CHOSEN] = 0, -1

    def take(
        self, x_deg: Floats, y_deg: Floats, valid: Bools, flush: bool = False
    ) -> tuple[Floats, Floats, Bools]:
        """Noisy readings of the slots that end in a block, shape (streams, slots); NaN and False
        where nothing was read.
        """
        rows, n = x_deg.shape
        clock = self.clock
        slots, left = divmod(self.tick + n, clock.length)
        slots += flush and left > 0
        x = np.empty((rows, slots))
        y = np.empty((rows, slots))
        ok = np.empty((rows, slots), dtype=np.bool_)
        read_slots(
            x_deg,
            y_deg,
            valid,
            clock.length,
            clock.window,
            clock.aim,
            flush,
            self.states,
            self.chosen,
            x,
            y,
            ok,
        )
        if slots:
            self.noise.add(x, y, ok)
        return x, y, ok


class ClockStage(Stage):
    """The causal form: what was read in a slot is shown from the next slot on.

    Parameters
    ----------
    slots : NoisySlots
        The private part.
    model, settings : arrays
        Of :mod:`gazeveil.privacy.synthesis.clock.places` and
        :mod:`gazeveil.privacy.synthesis.clock.eye`.
    streams : int
        How many streams.
    sources : sequence of Source
        Where the keys of the public eye come from.
    """

    def __init__(
        self,
        slots: NoisySlots,
        model: Floats,
        settings: Floats,
        streams: int,
        sources: Sequence[Source],
    ) -> None:
        self.slots, self.model, self.settings = slots, model, settings
        self.keys = stream_keys(streams, sources)
        self.numbers = np.zeros(streams, dtype=np.int64)
        self.eyes, self.gaze = np.zeros((streams, eye.STATE)), np.zeros((streams, places.STATE))

    def reset(self) -> None:
        """Forget the places; see :meth:`NoisySlots.reset`."""
        self.slots.reset()
        self.eyes[...], self.gaze[...] = 0.0, 0.0

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """What is shown while these samples come."""
        length = self.slots.clock.length
        left = length - self.slots.tick
        x, y, ok = self.slots.take(x_deg, y_deg, valid)
        slot_places = np.empty((*x.shape, places.PLACE))
        places.follow(x, y, ok, self.model, self.gaze, slot_places)
        path = eye.unrest(float(self.settings[eye.RATE]))
        eye.render_gaze(
            x_deg,
            y_deg,
            valid,
            slot_places,
            left,
            length,
            0,
            self.settings,
            path,
            self.eyes,
            self.keys,
            self.numbers,
        )
        return t_ns, x_deg, y_deg, valid


class WholeStage(ClockStage):
    """The offline form: a block is a whole recording, and what was read in a slot is shown in that
    slot.
    """

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """What is shown instead of these samples."""
        self.slots.reset()
        show(
            *self.slots.take(x_deg, y_deg, valid, flush=True),
            self.slots.clock.length,
            self.model,
            self.settings,
            self.keys,
            x_deg,
            y_deg,
            valid,
        )
        return t_ns, x_deg, y_deg, valid


def show(
    slot_x: Floats,
    slot_y: Floats,
    slot_ok: Bools,
    length: int,
    model: Floats,
    settings: Floats,
    keys: NDArray[np.uint64],
    x_deg: Floats,
    y_deg: Floats,
    valid: Bools,
) -> None:
    """Whole recordings, shape (streams, n), from what is said of all their slots; into the last
    three arrays.
    """
    slot_places = np.empty((*slot_x.shape, places.PLACE))
    places.look_back(slot_x, slot_y, slot_ok, model, slot_places)
    # jumps begin up to `latest` samples after a slot and last a while: in the mean they cross its
    # beginning
    early = min(
        length - 1,
        int(settings[eye.LATEST]) // 2
        + round(
            0.5e-3 * (eye.SACCADE_MS + 10.0 * eye.SACCADE_MS_PER_DEG) * float(settings[eye.RATE])
        ),
    )
    numbers = np.zeros(len(keys), dtype=np.int64)
    path, eyes = eye.unrest(float(settings[eye.RATE])), np.zeros((len(keys), eye.STATE))
    eye.render_gaze(
        x_deg, y_deg, valid, slot_places, 0, length, early, settings, path, eyes, keys, numbers
    )
