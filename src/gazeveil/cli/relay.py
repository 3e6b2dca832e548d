"""`gazeveil relay`: a mechanism between a tracker and the programs that use it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from gazeveil.cli.arguments import (
    SEEDED,
    JsonOption,
    ScreenOption,
    TestSeedOption,
    parse_screen,
    say,
    write_json,
)
from gazeveil.errors import ParameterError

HELP = """\
Example: `gazeveil relay --in pupil://127.0.0.1:50020 --out pupil://127.0.0.1:50030
--mechanism "kaleido:epsilon=1,w=60,r_deg=2" --rate 120`

Then point the program that reads Pupil on port 50020 to port 50030. Also `neon://host:port`,
`invisible://host:port`, `lsl`, `replay:PATH` and `simulated` in; `lsl:NAME` out. Stops with
Ctrl-C."""


def command(
    source: Annotated[
        str,
        typer.Option(
            "--in", metavar="TRACKER", help="Where gaze comes from, e.g. pupil://127.0.0.1:50020."
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="ADDRESS", help="Where programs connect, e.g. pupil://127.0.0.1:50030."
        ),
    ],
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism", "-m", help="A stream mechanism, e.g. kaleido:epsilon=1,w=60,r_deg=2."
        ),
    ],
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", metavar="HZ", help="Nominal rate of the tracker, where it is not its default."
        ),
    ] = None,
    screen: ScreenOption = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="Stop after so long.")] = None,
    seed: TestSeedOption = None,
    json_file: JsonOption = None,
) -> None:
    """Relay gaze."""
    from gazeveil.gatekeeper.trackers import open_tracker
    from gazeveil.relay import Protector, open_sink, relay

    came_from, goes_to = source.partition("?")[0], out.partition("?")[0]
    _check(came_from, goes_to, seconds)
    if came_from.partition(":")[0] == "lsl" and rate is None:
        say("Looking for the LSL stream.")
    tracker = open_tracker(source, **_tracker_options(source, rate, screen))
    protector = Protector(mechanism, tracker.rate_hz, tracker.space, seed)
    sink = open_sink(out)
    promise = protector.guarantee
    say(promise.plain)
    if seed is not None:
        say(SEEDED)
    if sink.seen_by:
        say(sink.seen_by)

    async def work() -> None:
        with _stop_on_signals(seconds) as stop:
            address = await sink.start(tracker, promise, protector.rate_hz)
            say(f"Relaying {came_from} to {address}. Stop with Ctrl-C.")
            try:
                await relay(tracker, sink, protector, stop)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise ParameterError(
                    f"Another program uses the port of {came_from}. Choose another one with --in.",
                    name="in",
                    got=source,
                ) from None
            finally:
                await sink.close()

    with _own_log_lines():
        protector.warm()
        began = time.monotonic()
        asyncio.run(work())
    say(
        f"{protector.counts['in']:,} samples came, {protector.counts['out']:,} went out protected,"
        f" {tracker.counts['malformed']:,} messages were malformed."
    )
    summary = {
        "in": came_from,
        "out": goes_to,
        "mechanism": str(protector.mechanism),
        "rate_hz": tracker.rate_hz,
        "seconds": round(time.monotonic() - began, 3),
        "counts": {
            "tracker": dict(tracker.counts),
            "relay": dict(protector.counts),
            "out": dict(sink.counts),
        },
        "guarantee": promise.to_dict(),
        "sentence": str(promise),
        "seed": seed,
    }
    write_json(json_file, summary)


def _check(came_from: str, goes_to: str, seconds: float | None) -> None:
    if seconds is not None and not seconds > 0:
        raise ParameterError(
            f"The '--seconds' option must be above 0. Got {seconds} instead.",
            name="seconds",
            got=seconds,
        )
    if came_from == goes_to:
        raise ParameterError(
            f"--in and --out are both {goes_to}. Choose another port for --out.",
            name="out",
            got=goes_to,
        )


def _tracker_options(source: str, rate_hz: float | None, screen: str | None) -> dict[str, object]:
    """What the options say about the tracker."""
    scheme = source.partition(":")[0].partition("?")[0]
    options: dict[str, object] = {}
    if rate_hz is not None:
        options["rate_hz"] = rate_hz
    if screen is not None:
        options["space" if scheme == "simulated" else "screen"] = parse_screen(screen)
    return options


@contextlib.contextmanager
def _stop_on_signals(seconds: float | None) -> Iterator[asyncio.Event]:
    """An event of the running loop that Ctrl-C sets, or the end of the time."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not the loop's own handlers: between taking those away and ignoring the signal, a second
        # Ctrl-C would end the program in the middle of its last lines. Only a main thread has any.
        with contextlib.suppress(ValueError):
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
    if seconds is not None:
        loop.call_later(seconds, stop.set)
    try:
        yield stop
    finally:
        # It is stopping, and so is the program: a second Ctrl-C must reach neither a loop that is
        # being taken down nor the last lines.
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):
                signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def _own_log_lines() -> Iterator[None]:
    """Log our own lines alone: what libraries would say is not for the user, and may hold gaze."""
    logger, lines = logging.getLogger("gazeveil"), logging.StreamHandler()
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(lines)
