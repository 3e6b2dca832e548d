"""Counters for Prometheus at `/metrics`: how the service does, nothing about where or when anybody
looks.

The page is the owner's alone. Scrapes are stored elsewhere, often for years, so its figures are
coarse. It is renewed once a minute, however often it is requested. Two scrapes a second apart are
equal, and no counter reveals the second of an eye movement. There is no histogram of the time taken
by samples: a saccade takes longer than rest, and the sum would reveal it. Only blocks that took far
too long are counted. Dropped events are counted in hundreds. No app's name is on the page.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

#: What the page is.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Seconds for which a page stays as it is.
RENEWED_S = 60.0

#: Seconds after which a block of the tracker has taken far too long.
SLOW_S = 0.05

#: Events are counted in steps of this many.
EVENTS_STEP = 100


class Metrics:
    """The counters of one service; the clock gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.registry = r = CollectorRegistry()
        self.requests = Counter(
            "gazeveil_requests", "HTTP requests", ["method", "route", "status"], registry=r
        )
        self.refusals = Counter(
            "gazeveil_refusals", "Refused calls and subscriptions by code", ["code"], registry=r
        )
        self.events_dropped = Counter(
            "gazeveil_events_dropped", "Events dropped for slow readers, in hundreds", registry=r
        )
        self.guesses = Counter("gazeveil_wrong_tokens", "Tokens that were wrong", registry=r)
        self.connections = Gauge("gazeveil_connections", "Open WebSockets", ["kind"], registry=r)
        self.strangers = Gauge(
            "gazeveil_strangers", "Open connections without a valid token or session", registry=r
        )
        self.subscriptions = Gauge("gazeveil_subscriptions", "Open subscriptions", registry=r)
        self.sent = Counter("gazeveil_samples_sent", "Protected samples sent", registry=r)
        self.dropped = Counter(
            "gazeveil_samples_dropped", "Protected samples dropped for slow readers", registry=r
        )
        self.tracker_samples = Counter(
            "gazeveil_tracker_samples", "Samples that came from the tracker", registry=r
        )
        self.tracker_lost = Counter(
            "gazeveil_tracker_lost", "Times the tracker vanished", registry=r
        )
        self.tracker_bad = Counter(
            "gazeveil_tracker_malformed",
            "Messages of the tracker that could not be read",
            registry=r,
        )
        self.tracker_slow = Counter(
            "gazeveil_tracker_slow",
            f"Blocks of the tracker that took longer than {SLOW_S:g} s",
            registry=r,
        )
        self.tracker_connected = Gauge(
            "gazeveil_tracker_connected", "1 while the tracker is there", registry=r
        )
        self.database_up = Gauge("gazeveil_database_up", "1 while the database answers", registry=r)
        self._clock = clock
        self._lock = threading.Lock()
        self._page = b""
        self._made_s: float | None = None

    def pushed(self, seconds: float, samples: int) -> None:
        """Count a block of the tracker."""
        self.tracker_samples.inc(samples)
        if seconds > SLOW_S:
            self.tracker_slow.inc()

    def page(self, refresh: Callable[[], None]) -> bytes:
        """The page as text, at most :data:`RENEWED_S` old; `refresh` brings counters that are kept
        elsewhere up to date.
        """
        with self._lock:
            now = self._clock()
            if self._made_s is None or now - self._made_s >= RENEWED_S:
                refresh()
                self._page, self._made_s = generate_latest(self.registry), now
            return self._page
