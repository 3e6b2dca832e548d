"""Relays: a tracker's protocol in, a mechanism applied, the same protocol out, so that existing
clients need no change.
"""

from __future__ import annotations

import asyncio
import contextlib
from importlib import import_module
from inspect import signature
from urllib.parse import parse_qsl

from gazeveil import checks
from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.relay.protector import Protector
from gazeveil.relay.sink import Sink

__all__ = ["Protector", "Sink", "open_sink", "relay", "sinks"]

#: Word before the colon -> (module, class, packages it needs, how it is written).
_SINKS: dict[str, tuple[str, str, str, str]] = {
    "pupil": ("zmq", "PupilSink", "zmq msgpack", "pupil://host:port"),
    "lsl": ("lsl", "LSLSink", "", "lsl:NAME"),
}


def sinks() -> tuple[str, ...]:
    """How each output is written."""
    return tuple(form for *_, form in _SINKS.values())


def open_sink(text: str) -> Sink:
    """An output of a relay; options follow as in an address:
    `pupil://127.0.0.1:50030?surface=NAME`.

    Raises
    ------
    ParameterError
        For an unknown output or option.
    MissingExtraError
        Where a package is missing.
    """
    word, _, rest = text.partition(":")
    if word not in _SINKS:
        checks.refuse("relay", "out", "one of " + ", ".join(sinks()), text)
    place, _, query = rest.partition("?")
    module, name, packages, _ = _SINKS[word]
    try:
        cls = getattr(import_module(f"gazeveil.relay.{module}"), name)
    except ImportError as error:
        if error.name and error.name.partition(".")[0] in packages.split():
            raise MissingExtraError(error.name.partition(".")[0], "service") from None
        raise
    options = dict(parse_qsl(query, keep_blank_values=True))
    checks.known_options(
        f"The output {word}", options, [p for p in signature(cls).parameters if p != "place"]
    )
    sink = cls(place.removeprefix("//"), **options)
    assert isinstance(sink, Sink)
    return sink


async def relay(tracker: Tracker, sink: Sink, protector: Protector, stop: asyncio.Event) -> None:
    """Pass gaze on until the tracker ends or `stop` is set; the sink must have been started.

    Nothing of a block is sent but what the protector returns.
    """

    async def work() -> None:
        async for samples in tracker.samples():
            if samples is None:
                protector.lost()
                sink.lost()
                continue
            released = protector.push(samples)
            if len(released):
                sink.send(released)

    tasks = [asyncio.ensure_future(work()), asyncio.ensure_future(stop.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            # an error of the tracker is the caller's to see
            tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
        await tracker.close()
