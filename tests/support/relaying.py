"""A relay in the event loop of a test, and the search for raw numbers in what its clients get."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator

import gazeveil
from gazeveil.gatekeeper.trackers import Tracker
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.relay import Protector, relay
from gazeveil.relay.lsl import LSLSink
from gazeveil.relay.picture import pinhole
from gazeveil.relay.zmq import PupilSink

KALEIDO = "kaleido:epsilon=1,w=60,r_deg=2"
PERIOD_NS = 10_000_000
CAMERA = pinhole()


def stream_mechanism(text: str) -> StreamMechanism:
    found = gazeveil.mechanism(text)
    assert isinstance(found, StreamMechanism)
    return found


def numbers(value: object) -> Iterator[float]:
    """Every float in a nested value."""
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, float):
        yield value


def traces(values: Iterator[float] | list[float], data: bytes) -> list[float]:
    """Which numbers are in bytes: as doubles or floats of either byte order, or as text."""
    text = data.decode("latin-1")
    return [
        v
        for v in values
        if any(struct.pack(form, v) in data for form in (">d", "<d", ">f", "<f")) or repr(v) in text
    ]


class Running:
    """A relay in the event loop of a test."""

    def __init__(self, tracker: Tracker, sink: PupilSink | LSLSink, protector: Protector) -> None:
        self.tracker, self.sink, self.protector = tracker, sink, protector
        self.stop = asyncio.Event()

    async def __aenter__(self) -> Running:
        self.protector.warm()
        await self.sink.start(self.tracker, self.protector.guarantee)
        self.task = asyncio.ensure_future(relay(self.tracker, self.sink, self.protector, self.stop))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop.set()
        await self.task
        await self.sink.close()
