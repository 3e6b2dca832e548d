"""The shared protected streams of a device: who sits where, and which stream a text leads to."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.streams import MOST_BASES, Base, GradedBase, Seat, Till, View
from gazeveil.gatekeeper.subscription import Subscription
from gazeveil.gaze.geometry import Space
from gazeveil.privacy import registry
from gazeveil.privacy.stream.gaussian import Gaussian
from gazeveil.privacy.stream.session import Samples, StreamMechanism


def mechanism_of(text: str) -> StreamMechanism:
    """The mechanism an app wrote, if it is one on streams.

    Raises
    ------
    Denied
        With the code "mechanism".
    """
    try:
        made = registry.mechanism(text) if isinstance(text, str) and len(text) <= 512 else None
    except (GazeveilError, RecursionError) as error:
        raise Denied("mechanism", " ".join(str(error).split())[:300]) from None
    if not isinstance(made, StreamMechanism):
        raise Denied("mechanism", "Samples are given only through a mechanism on streams, written name:parameter=value,...")
    return made


def every_of(rate_hz: float, stride: int, most_hz: float | None) -> int:
    """Every how many samples of the tracker reach the mechanism, so that no more than `most_hz` leave."""
    return 1 if most_hz is None else max(1, math.ceil(rate_hz / stride / most_hz - 1e-9))


class Pool:
    """All bases of a device.

    Parameters
    ----------
    rate_hz : float
        Of the tracker.
    space : Sphere or Screen
        What the degrees mean.
    till : Till
        Where leases are paid.
    seed : int, optional
        A test stream.
    """

    def __init__(self, rate_hz: float, space: Space, till: Till, seed: int | None) -> None:
        self.rate_hz, self.space, self.till, self._seed = rate_hz, space, till, seed
        self._bases: dict[tuple[str, int], Base] = {}
        self._seats: dict[Subscription, tuple[Base, Seat]] = {}
        self._active: tuple[Base, ...] = ()
        self._clock = 0
        self._made = 0
        self._last_ns, self._shift_ns, self._behind = -(2**62), 0, 0
        self._period_ns, self._believe = round(1e9 / rate_hz), round(0.5 * rate_hz)

    @property
    def active(self) -> tuple[Base, ...]:
        """Bases that somebody sits at."""
        return self._active

    def find(self, mechanism: StreamMechanism, every: int) -> tuple[Base, View]:
        """The base and the view for a mechanism; a new base if there is none."""
        if isinstance(mechanism, Gaussian) and mechanism.reading == "corrected":
            for base in self._bases.values():
                if isinstance(base, GradedBase):
                    try:
                        return base, base.view_of(mechanism, every)
                    except ParameterError:
                        continue  # finer than that session can carry, or one too many
            made: Base = self._add((f"graded gaussian {self._made}", 1), GradedBase, mechanism)
        else:
            key = (str(mechanism), every)
            made = self._bases[key] if key in self._bases else self._add(key, Base, mechanism)
        return made, made.view_of(mechanism, every)

    def _add(self, key: tuple[str, int], kind: type[Base], mechanism: StreamMechanism) -> Base:
        if len(self._bases) >= MOST_BASES:
            idle = [(base.idle_since, k) for k, base in self._bases.items() if not base.seats]
            if not idle:
                raise Denied("rate", f"This device already gives {MOST_BASES} different streams. Ask for a mechanism that another app uses.")
            del self._bases[min(idle)[1]]
        # Streams of one device never share noise, also in tests.
        seed = None if self._seed is None else self._seed + 7919 * self._made
        self._made += 1
        try:
            base = kind(mechanism, self.rate_hz, key[1], self.space, self.till, seed)
        except ParameterError as error:
            raise Denied("parameter", " ".join(str(error).split())[:300]) from None
        base.key = key
        self._bases[key] = base
        return base

    def sit(self, base: Base, seat: Seat, paid: Fraction) -> None:
        """Take a seat that is paid for, with what the device paid for it."""
        base.sit(seat, paid)
        self._bases[base.key] = base  # it may have had to make room while its first lease was paid
        self._seats[seat.subscription] = (base, seat)
        self._active = tuple(b for b in self._bases.values() if b.seats)

    def leave(self, subscription: Subscription) -> None:
        """Give a seat up."""
        if subscription in self._seats:
            base, seat = self._seats.pop(subscription)
            self._clock += 1
            base.leave(seat, self._clock)
            self._active = tuple(b for b in self._bases.values() if b.seats)

    def push(self, samples: Samples) -> None:
        """Give samples to all bases in use."""
        if len(samples[0]):
            samples = (self._on(samples[0]), *samples[1:])
            for base in self._active:
                base.push(samples)

    def _on(self, t_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times that go on, also where the tracker began a new clock.

        A session would have to forget its past to believe a clock that went back, and with it what it has spent in the current window.
        """
        first = int(t_ns[0]) + self._shift_ns
        if first <= self._last_ns:
            self._behind += len(t_ns)
            if self._behind > self._believe:
                self._shift_ns += self._last_ns + self._period_ns - first
        if int(t_ns[0]) + self._shift_ns > self._last_ns:
            self._behind = 0
        on = t_ns + self._shift_ns if self._shift_ns else t_ns
        self._last_ns = max(self._last_ns, int(on.max()))
        return on

    def pause(self) -> None:
        """The tracker vanished: a clock that begins anew is believed at once."""
        self._behind = self._believe

    def __len__(self) -> int:
        return len(self._active)
