"""The stages of `clock-render`: read the clock, add noise to what was read, look where it says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.privacy.noise.lattice import LatticeLaw
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.stream.losses.fill_stages import stream_keys
from gazeveil.privacy.stream.stage import Samples, Stage
from gazeveil.privacy.synthesis.clock import eye, places
from gazeveil.privacy.synthesis.clock.slots import CHOSEN, TICK, Clock, read_slots


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


class WholeStage(Stage):
    """The offline form: a block is a whole recording, and what was read in a slot is shown in that
    slot. Parameters as of :class:`ClockStage`.
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
