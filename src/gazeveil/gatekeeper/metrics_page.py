"""Counters for Prometheus at `/metrics`: how the service does, nothing about where anybody looks.

The page is open, so nothing on it may depend on gaze: no app's name, no number of events, no message that was sent because an eye moved, and no
request, because an app may ask when it was told of a look. Nor may it tell an app what others were given, since the device's budget goes down
with that: subscriptions and samples sent are for the owner. With the owner's token the page also holds what others must not see.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

#: What the page is.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The counters of one service."""

    def __init__(self) -> None:
        self.registry, self.owners = CollectorRegistry(), CollectorRegistry()
        r = self.registry
        self.requests = Counter("gazeveil_requests", "HTTP requests", ["method", "route", "status"], registry=self.owners)
        self.refusals = Counter("gazeveil_refusals", "Refused calls and subscriptions by code", ["code"], registry=self.owners)
        self.events_dropped = Counter("gazeveil_events_dropped", "Events dropped for slow readers", registry=self.owners)
        self.guesses = Counter("gazeveil_wrong_tokens", "Tokens that were wrong", registry=r)
        self.connections = Gauge("gazeveil_connections", "Open WebSockets", ["kind"], registry=r)
        self.subscriptions = Gauge("gazeveil_subscriptions", "Open subscriptions", registry=self.owners)
        self.sent = Counter("gazeveil_samples_sent", "Protected samples sent", registry=self.owners)
        self.dropped = Counter("gazeveil_samples_dropped", "Protected samples dropped for slow readers", registry=self.owners)
        self.tracker_samples = Counter("gazeveil_tracker_samples", "Samples that came from the tracker", registry=r)
        self.tracker_lost = Counter("gazeveil_tracker_lost", "Times the tracker vanished", registry=r)
        self.tracker_bad = Counter("gazeveil_tracker_malformed", "Messages of the tracker that could not be read", registry=r)
        self.tracker_connected = Gauge("gazeveil_tracker_connected", "1 while the tracker is there", registry=r)
        self.database_up = Gauge("gazeveil_database_up", "1 while the database answers", registry=r)
        self.push_seconds = Histogram(
            "gazeveil_push_seconds",
            "Time in which a block of the tracker was worked off",
            registry=r,
            buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 1, 5),
        )

    def page(self, owner: bool = False) -> bytes:
        """The page as text, for everybody or for the owner."""
        return generate_latest(self.registry) + (generate_latest(self.owners) if owner else b"")
