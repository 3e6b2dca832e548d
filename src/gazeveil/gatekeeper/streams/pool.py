"""The shared protected streams of a device: who subscribes to which, and which stream a text leads
to.

A family has at most one shared stream that is in use or being paid for. A place at a stream is
reserved before payment, under the lock of the Gatekeeper. Of several simultaneous requests, the
first therefore sets the parameters of the family. A refused request returns its place and leaves no
trace. An unused shared stream stays, so that a returning app continues the same session. Another
stream of the family replaces it once its first lease is paid. That is never cheaper: the new stream
begins with a lease of its own, and the rest of the old lease is lost.
"""

from __future__ import annotations

import math
from fractions import Fraction

from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.policy.families import family_of, problem, view_of
from gazeveil.gatekeeper.policy.wearers import CHANGED
from gazeveil.gatekeeper.streams.billing import Billing
from gazeveil.gatekeeper.streams.graded import GradedStream
from gazeveil.gatekeeper.streams.session_clock import SessionClock
from gazeveil.gatekeeper.streams.shared import SharedStream, StreamView, Subscriber
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.geometry import Space
from gazeveil.privacy import registry
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Samples

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
        raise Denied(
            "mechanism",
            "Samples are given only through a mechanism on streams, written"
            " name:parameter=value,...",
        )
    if (why := problem(made)) is not None:
        raise Denied("mechanism", why + ".")
    return made


def every_of(rate_hz: float, stride: int, most_hz: float | None) -> int:
    """Every how many samples of the tracker reach the mechanism, so that no more than `most_hz`
    leave.
    """
    return 1 if most_hz is None else max(1, math.ceil(rate_hz / stride / most_hz - 1e-9))


def _key_of(mechanism: StreamMechanism, every: int) -> tuple[str, int]:
    """What tells the shared stream of a mechanism apart from others."""
    if view_of(mechanism) is not None:
        return _GRADED
    return str(mechanism), every


class StreamPool:
    """All shared streams of a device.

    Parameters
    ----------
    rate_hz : float
        Of the tracker.
    space : Sphere or Screen
        What the degrees mean.
    billing : Billing
        Where leases are paid.
    r_deg : Fraction
        How far samples move in the change that all leases are charged for, in degrees.
    seed : int, optional
        A test stream.
    """

    def __init__(
        self, rate_hz: float, space: Space, billing: Billing, r_deg: Fraction, seed: int | None
    ) -> None:
        self.rate_hz, self.space, self.billing = rate_hz, space, billing
        self._r_deg, self._seed = r_deg, seed
        self._streams: dict[tuple[str, int], SharedStream] = {}
        self._subscribers: dict[Subscription, tuple[SharedStream, Subscriber]] = {}
        self._reserved: list[SharedStream] = []
        self._active: tuple[SharedStream, ...] = ()
        self._made = 0
        self._clock = SessionClock(rate_hz)

    @property
    def active(self) -> tuple[SharedStream, ...]:
        """Streams that have a subscriber."""
        return self._active

    def charge_at(self, r_deg: Fraction) -> None:
        """Charge further leases of all streams for moves by so many degrees."""
        self._r_deg = r_deg
        for shared in self._streams.values():
            shared.charge_at(r_deg)

    def reserve(self, mechanism: StreamMechanism, every: int) -> tuple[SharedStream, StreamView]:
        """A place at the shared stream for a mechanism, and the view; to be followed by
        :meth:`subscribe` or :meth:`give_back`.

        A shared stream that is new is kept only when it gets a subscriber, so that who is refused
        changes nothing.

        Raises
        ------
        Denied
            With the code "rate" where the family has a session with other parameters, or one that
            gives fewer samples. A second session would have independent noise, and an app with both
            could average.
        """
        shared = self._stream_for(mechanism, every)
        view = shared.view_of(mechanism, every // shared.every)
        self._reserved.append(shared)
        return shared, view

    def give_back(self, shared: SharedStream) -> None:
        """Give a reserved place back."""
        self._reserved.remove(shared)

    def _stream_for(self, mechanism: StreamMechanism, every: int) -> SharedStream:
        family, key = family_of(mechanism), _key_of(mechanism, every)
        for shared in (*self._reserved, *self._active):
            if shared.family != family:
                continue
            if shared.key == key or (shared.key[0] == key[0] and every % shared.every == 0):
                return shared
            there = "gaussian" if shared.key == _GRADED else shared.key[0]
            rate = "" if there != key[0] else f" at {shared.rate_hz:g} samples a second"
            raise Denied(
                "rate",
                f"This device gives one stream of the family {family} at a time, now {there}{rate}."
                " Ask for that one, or wait.",
            )
        return self._streams.get(key) or self._made_for(key, mechanism)

    def quoted(self, mechanism: StreamMechanism, every: int) -> tuple[SharedStream, StreamView]:
        """Return a shared stream for its price alone, whatever is open now.

        It takes no subscribers.
        """
        shared = self._made_for(_key_of(mechanism, every), mechanism, quoted=True)
        return shared, shared.view_of(mechanism, every // shared.every)

    def _made_for(
        self, key: tuple[str, int], mechanism: StreamMechanism, quoted: bool = False
    ) -> SharedStream:
        # Streams of one device never share noise, also in tests.
        seed = None if self._seed is None else self._seed + 7919 * self._made
        self._made += not quoted
        try:
            made = GradedStream if key == _GRADED else SharedStream
            shared = made(
                mechanism, self.rate_hz, key[1], self.space, self.billing, self._r_deg, seed
            )
        except ParameterError as error:
            raise Denied("parameter", " ".join(str(error).split())[:300]) from None
        shared.key = key
        return shared

    def subscribe(self, shared: SharedStream, subscriber: Subscriber, paid: Fraction) -> None:
        """Add a subscriber that is paid for, with what the device paid for it.

        Raises
        ------
        Denied
            Where there is no room for it any more, or where another person wears the device since
            the shared stream was found.
        """
        if shared.billing is not self.billing:
            raise Denied("wearer", CHANGED)
        self.give_back(shared)
        new = self._streams.get(shared.key) is not shared
        if new:
            shared.charge_at(self._r_deg)
        shared.subscribe(subscriber, paid)
        if new:
            # The family's other streams are unused: while one is in use, no other is reserved.
            for key, stream in tuple(self._streams.items()):
                if stream.family == shared.family and key != _GRADED:
                    del self._streams[key]
            self._streams[shared.key] = shared
        self._subscribers[subscriber.subscription] = (shared, subscriber)
        self._active = tuple(b for b in self._streams.values() if b.subscribers)

    def leave(self, subscription: Subscription) -> None:
        """Remove a subscriber."""
        if subscription in self._subscribers:
            shared, subscriber = self._subscribers.pop(subscription)
            shared.leave(subscriber)
            self._active = tuple(b for b in self._streams.values() if b.subscribers)

    def ready(self, count: int) -> bool:
        """Whether all shared streams in use can take so many samples without waiting."""
        return all(shared.ready(count) for shared in self._active)

    def push(self, samples: Samples) -> None:
        """Give samples to all shared streams in use."""
        for run, released_ns in self._clock.runs(samples):
            for shared in self._active:
                shared.push(run, released_ns)

    def pause(self) -> None:
        """The tracker vanished: another clock is believed at once."""
        self._clock.pause()

    def __len__(self) -> int:
        return len(self._active)
