"""The shared protected streams of a device: who subscribes to which, and which stream a mechanism
leads to.

A family has at most one shared stream that is in use or being paid for. A place at a stream is
reserved before payment, under the lock of the Gatekeeper. Of several simultaneous requests, the
first therefore sets the parameters of the family. A refused request returns its place and leaves no
trace. An unused shared stream stays, so that a returning app continues the same session. Another
stream of the family replaces it once its first lease is paid. That is never cheaper: the new stream
begins with a lease of its own, and the rest of the old lease is lost.
"""

from __future__ import annotations

from fractions import Fraction

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.blocks import OneSample
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.policy.grant import FAMILIES
from gazeveil.gatekeeper.policy.policy import CHANGED
from gazeveil.gatekeeper.streams.billing import Billing
from gazeveil.gatekeeper.streams.shared import (
    GradedStream,
    SessionClock,
    SharedStream,
    StreamView,
    Subscriber,
)
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Samples


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
        #: By family; replaced when another of the family is paid for.
        self._streams: dict[str, SharedStream] = {}
        self._subscribers: dict[Subscription, tuple[SharedStream, Subscriber]] = {}
        self._reserved: list[SharedStream] = []
        #: Streams that have a subscriber.
        self.active: tuple[SharedStream, ...] = ()
        self._made = 0
        self._clock = SessionClock(rate_hz)

    def charge_at(self, r_deg: Fraction) -> None:
        """Charge further leases of all streams for moves by so many degrees."""
        self._r_deg = r_deg
        for shared in self._streams.values():
            shared.charge_at(r_deg)

    def reserve(self, mechanism: StreamMechanism) -> tuple[SharedStream, StreamView]:
        """A place at the shared stream for a mechanism, and the view; to be followed by
        :meth:`subscribe` or :meth:`give_back`.

        A shared stream that is new is kept only when it gets a subscriber, so that who is refused
        changes nothing.

        Raises
        ------
        Denied
            With the code "rate" where the family has a session with other parameters: a second
            session would have independent noise, and an app with both could average.
        """
        shared = self._stream_for(mechanism)
        view = shared.view_of(mechanism)
        self._reserved.append(shared)
        return shared, view

    def give_back(self, shared: SharedStream) -> None:
        """Give a reserved place back."""
        self._reserved.remove(shared)

    def _stream_for(self, mechanism: StreamMechanism) -> SharedStream:
        family = FAMILIES[mechanism.name]
        used = [s for s in (*self._reserved, *self.active) if FAMILIES[s.mechanism.name] == family]
        idle = self._streams.get(family)
        for shared in (*used, *([idle] if idle else [])):
            if family == "gaussian" or str(shared.mechanism) == str(mechanism):
                return shared
        if used:
            raise Denied(
                "rate",
                f"This device gives one stream of the family {family} at a time, now"
                f" {used[0].mechanism.public_text}. Ask for that one, or wait.",
            )
        # Streams of one device never share noise, also in tests.
        seed = None if self._seed is None else self._seed + 7919 * self._made
        self._made += 1
        made = GradedStream if family == "gaussian" else SharedStream
        try:
            return made(mechanism, self.rate_hz, self.space, self.billing, self._r_deg, seed)
        except ParameterError as error:
            raise Denied("parameter", " ".join(str(error).split())[:300]) from None

    def subscribe(self, shared: SharedStream, subscriber: Subscriber, paid: Fraction) -> None:
        """Add a subscriber that is paid for, with what the device paid for it.

        Raises
        ------
        Denied
            Where another person wears the device since the shared stream was found.
        """
        if shared.billing is not self.billing:
            raise Denied("wearer", CHANGED)
        self.give_back(shared)
        family = FAMILIES[shared.mechanism.name]
        if self._streams.get(family) is not shared:
            shared.charge_at(self._r_deg)
        shared.subscribe(subscriber, paid)
        # The family's other stream is unused: while one is in use, no other is reserved.
        self._streams[family] = shared
        self._subscribers[subscriber.subscription] = (shared, subscriber)
        self._count()

    def leave(self, subscription: Subscription) -> None:
        """Remove a subscriber."""
        if subscription in self._subscribers:
            shared, subscriber = self._subscribers.pop(subscription)
            shared.leave(subscriber)
            self._count()

    def _count(self) -> None:
        self.active = tuple(s for s in self._streams.values() if s.subscribers)

    def ready(self, count: int) -> bool:
        """Whether all shared streams in use can take so many samples without waiting."""
        return all(shared.ready(count) for shared in self.active)

    def push(self, samples: Samples | OneSample) -> None:
        """Give samples, or one as numbers, to all shared streams in use."""
        for run, released_ns in self._clock.runs(samples):
            for shared in self.active:
                shared.push(run, released_ns)

    def pause(self) -> None:
        """The tracker vanished: another clock is believed at once."""
        self._clock.pause()
