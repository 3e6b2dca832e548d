"""The shared protected streams of a device: who sits where, and which stream a text leads to."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.streams import MOST_BASES, Base, GradedBase, Seat, View
from gazeveil.gatekeeper.subscription import Subscription
from gazeveil.gatekeeper.till import Till
from gazeveil.gaze.geometry import Space
from gazeveil.privacy import registry
from gazeveil.privacy.stream.gaussian import Gaussian
from gazeveil.privacy.stream.session import Samples, StreamMechanism

#: Where all Gaussian streams are; no mechanism's text is like it.
_GRADED = ("gaussian, graded", 1)


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
    r_deg : Fraction
        How far samples move in the change that all leases are charged for, in degrees.
    seed : int, optional
        A test stream.
    """

    def __init__(self, rate_hz: float, space: Space, till: Till, r_deg: Fraction, seed: int | None) -> None:
        self.rate_hz, self.space, self.till, self._r_deg, self._seed = rate_hz, space, till, r_deg, seed
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

    def charge_at(self, r_deg: Fraction) -> None:
        """Charge further leases of all streams for moves by so many degrees."""
        self._r_deg = r_deg
        for base in self._bases.values():
            base.charge_at(r_deg)

    def find(self, mechanism: StreamMechanism, every: int) -> tuple[Base, View]:
        """The base and the view for a mechanism. A base that is new is kept only when somebody sits at it, so that who is refused changes nothing.

        Raises
        ------
        Denied
            Where the device gives as many different streams as it can.
        """
        graded = isinstance(mechanism, Gaussian) and mechanism.reading == "corrected"
        key = _GRADED if graded else (str(mechanism), every)
        base = self._bases.get(key)
        if base is None:
            if len(self._bases) >= MOST_BASES and self._idlest() is None:
                raise Denied("rate", f"This device already gives {MOST_BASES} different streams. Ask for a mechanism that another app uses.")
            base = self._made_for(key, GradedBase if graded else Base, mechanism)
        return base, base.view_of(mechanism, every)

    def _idlest(self) -> tuple[str, int] | None:
        """The base that may make room. The graded one never does: of two of them each would have noise of its own."""
        idle = [(base.idle_since, key) for key, base in self._bases.items() if not base.seats and key != _GRADED]
        return min(idle)[1] if idle else None

    def _made_for(self, key: tuple[str, int], kind: type[Base], mechanism: StreamMechanism) -> Base:
        # Streams of one device never share noise, also in tests.
        seed = None if self._seed is None else self._seed + 7919 * self._made
        self._made += 1
        try:
            base = kind(mechanism, self.rate_hz, key[1], self.space, self.till, self._r_deg, seed)
        except ParameterError as error:
            raise Denied("parameter", " ".join(str(error).split())[:300]) from None
        base.key = key
        return base

    def sit(self, base: Base, seat: Seat, paid: Fraction) -> None:
        """Take a seat that is paid for, with what the device paid for it.

        Raises
        ------
        Denied
            Where there is no room for it any more.
        """
        # While it was paid for, somebody else may have come first with the same mechanism, or the base may have made room.
        there = self._bases.get(base.key)
        if there is None:
            base.charge_at(self._r_deg)
        (there or base).sit(seat, paid)
        if there is None:
            idlest = self._idlest() if len(self._bases) >= MOST_BASES else None
            if idlest is not None:
                del self._bases[idlest]
            self._bases[base.key] = base
        self._seats[seat.subscription] = (there or base, seat)
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
