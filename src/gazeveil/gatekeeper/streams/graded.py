"""All Gaussian streams of a device, also those that `temporal` thins out: views of one graded
session, so that there is one noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.policy.families import view_of
from gazeveil.gatekeeper.streams.billing import charged_change
from gazeveil.gatekeeper.streams.shared import SharedStream, StreamView, Subscriber, cut
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.guarantee import Change
from gazeveil.privacy.rational import format_exact
from gazeveil.privacy.stream.gaussian import GRID_BITS
from gazeveil.privacy.stream.graded import Graded
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Samples

#: Different amounts of Gaussian noise at a time: each is drawn for every sample.
MOST_VIEWS = 8

#: A Gaussian stream's sigma is rounded up to a multiple of this, in degrees: levels of one graded
#: session must not lie nearer to each other, and none can be finer.
SIGMA_STEP_DEG = Fraction(1, 64)


class GradedStream(SharedStream):
    """All Gaussian streams: views of one graded session at the tracker's rate. A device has one, so
    that there is one noise.

    A bounded rate leaves samples out of the view, not out of the session: views of different rates
    would otherwise have noise of their own. A sample that goes to no view costs nothing.

    A level is made known when its first lease is paid; who is refused leaves nothing behind. There
    are at most :data:`MOST_VIEWS`. Levels without a subscriber stay until another needs their
    place: then the session goes on with those in use and a new key, which is the same law, because
    noise of different samples is independent and every sample is told from one key.
    """

    def _open(self, space: Space, seed: int | None) -> None:
        # A public grid: which sigmas it can carry must not depend on who came first.
        self._graded = Graded("gaussian", (), bits=GRID_BITS).open(self.rate_hz, space, seed)
        self._session = self._graded
        self.lease = max(1, math.ceil(self.rate_hz))
        self.currency = "rho"
        self._count = 0

    def charge_at(self, r_deg: Fraction) -> None:
        """Charge further leases for moves by so many degrees."""
        # Kept together, because the ledger's thread reads them too.
        self._tariff: tuple[Fraction, dict[tuple[Fraction, int], Fraction]] = (r_deg, {})

    def _rho(self, scale_deg: Fraction, samples: int) -> Fraction:
        r_deg, known = self._tariff
        if (scale_deg, samples) not in known:
            # A test stream's promise is only claimed; it is charged all the same.
            known[scale_deg, samples] = (
                self._graded.guarantee(scale_deg)
                .claimed_loss(charged_change(samples, r_deg))
                .amount
            )
        return known[scale_deg, samples]

    def view_of(self, mechanism: StreamMechanism, every: int = 1) -> StreamView:
        """Return the view; it is created by its first subscription.

        Raises
        ------
        Denied
            Where all levels are in use: a second session would have noise of its own, and averaging
            the two would take noise away.
        """
        asked = view_of(mechanism)
        assert asked is not None
        scale = -(-asked.sigma_deg // SIGMA_STEP_DEG) * SIGMA_STEP_DEG
        self._used_with(scale)
        # The promise of the noise, said for the change that the device charges for.
        promise = replace(
            self._graded.guarantee(scale), change=Change.sample(self._tariff[0], "coordinates")
        )
        if asked.hold:
            return StreamView(promise, scale, every, asked.K)
        return StreamView(promise, scale, every * asked.K)

    def _used_with(self, scale_deg: Fraction) -> set[Fraction]:
        """The levels in use, this one among them."""
        used = {view.scale_deg for view in self._views() if view.scale_deg is not None}
        if scale_deg not in used and len(used) >= MOST_VIEWS:
            there = ", ".join(format_exact(sigma_deg) for sigma_deg in sorted(used))
            raise Denied(
                "rate",
                f"This device gives Gaussian streams with {MOST_VIEWS} different sigma_deg at a"
                f" time, now {there}. Ask for one of these.",
            )
        return used | {scale_deg}

    def subscribe(self, subscriber: Subscriber, paid_device: Fraction) -> None:
        """Make the level of a paid subscriber known, and add the subscriber.

        Raises
        ------
        Denied
            Where others took the last levels while this one was paid for; the lease is lost.
        """
        scale = subscriber.view.scale_deg
        assert scale is not None
        used = self._used_with(scale)
        if scale not in self._graded.levels:
            if len(self._graded.levels) >= MOST_VIEWS:
                self._graded.keep_only(*(used - {scale}))
            self._graded.declare(scale)
        super().subscribe(subscriber, paid_device)

    def cost(self, views: Iterable[StreamView]) -> Fraction:
        """The finest of the views, for all samples that go to any of them: what a coalition learns.
        Noise is independent from sample to sample.
        """
        known = [(v.scale_deg, v.places_every) for v in views if v.scale_deg is not None]
        if not known:
            return Fraction(0)
        samples = min(
            self.lease, sum(math.ceil(self.lease / every) for every in {e for _, e in known})
        )
        return self._rho(min(scale for scale, _ in known), samples)

    def _release(self, samples: Samples) -> Callable[[Subscriber], Samples]:
        views, first = self._graded.push(*samples), self._count
        self._count += len(samples[0])
        # By its whole numbers: a hash of a Fraction costs as much as all else that a subscriber
        # does here.
        finest = {(scale.numerator, scale.denominator): samples for scale, samples in views.items()}
        made: dict[tuple[int, int, int], Samples] = {}

        def of(subscriber: Subscriber) -> Samples:
            scale, every = subscriber.view.scale_deg, subscriber.view.every
            assert scale is not None
            if subscriber.view.held > 1:
                return _held(subscriber, cut(views[scale], first, every), -(-first // every))
            n, d = scale.numerator, scale.denominator
            if every == 1:
                return finest[n, d]
            if (n, d, every) not in made:
                made[n, d, every] = cut(finest[n, d], first, every)
            return made[n, d, every]

        return of


def _held(subscriber: Subscriber, samples: Samples, first: int) -> Samples:
    """A place repeated until the next; `first` is the number of the first sample among those of the
    view.
    """
    t, x, y, valid = samples
    for i in range(len(t)):
        if (first + i) % subscriber.view.held == 0:
            subscriber.place = (float(x[i]), float(y[i]))
        x[i], y[i] = subscriber.place
        valid[i] = not math.isnan(subscriber.place[0])
    return t, x, y, valid
