"""`gazeveil relay`: a mechanism between a tracker and the programs that use it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import time
from typing import Annotated

import typer

from gazeveil.cli.arguments import JsonOption, ScreenOption, console, parse_screen, write_json
from gazeveil.errors import ParameterError

NAME = "relay"
HELP = """Put a mechanism between a tracker and existing programs: the same protocol in and out, protected gaze in between.

Example: `gazeveil relay --in pupil://127.0.0.1:50020 --out pupil://127.0.0.1:50030 --mechanism "kaleido:epsilon=1,w=60,r_deg=2" --rate 120`

Then point the program that reads Pupil on port 50020 to port 50030. Also `websocket://host:port` (a tracker connects), `ws://host:port` (a tracker that
serves), `lsl`, `openxr://host:port`, `replay:PATH` and `simulated` in; `pupil://`, `websocket://` and `lsl:NAME` out. Stops with Ctrl-C."""

#: Sources that take a screen under another name than their own geometry.
_SPACES = ("websocket", "ws", "wss", "simulated")


def command(
    source: Annotated[
        str,
        typer.Option(
            "--in",
            metavar="TRACKER",
            help="Where gaze comes from, e.g. pupil://127.0.0.1:50020.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="ADDRESS",
            help="Where programs connect, e.g. pupil://127.0.0.1:50030.",
            show_default=False,
        ),
    ],
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism",
            "-m",
            help="A stream mechanism, e.g. kaleido:epsilon=1,w=60,r_deg=2.",
            show_default=False,
        ),
    ],
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", metavar="HZ", help="Nominal rate of the tracker, where it is not its default."
        ),
    ] = None,
    screen: ScreenOption = None,
    forward: Annotated[
        list[str] | None,
        typer.Option(
            "--forward",
            metavar="TOPIC",
            help=(
                "A Pupil topic without gaze to pass on as it is, e.g. frame.world. May be repeated."
            ),
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="Stop after so long.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            help="For tests only: repeatable noise, which protects nobody.",
            show_default=False,
        ),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Relay gaze."""
    from gazeveil.gatekeeper.relay import Protector, open_sink
    from gazeveil.gatekeeper.trackers import open_tracker

    word = source.partition(":")[0].partition("?")[0]
    options: dict[str, object] = {}
    if rate is not None:
        options["rate_hz"] = rate
    if screen is not None:
        options["space" if word in _SPACES else "screen"] = parse_screen(screen)
    if forward:
        from gazeveil.gatekeeper.relay.topics import check_forward

        if word != "pupil" or out.partition(":")[0] != "pupil":
            raise ParameterError(
                "--forward passes on topics of Pupil, so --in and --out must both be pupil://.",
                name="forward",
                got=forward,
            )
        options["forward"] = check_forward(tuple(forward))
    if seconds is not None and not seconds > 0:
        raise ParameterError(
            f"The '--seconds' option must be above 0. Got {seconds} instead.",
            name="seconds",
            got=seconds,
        )
    if source.partition("?")[0] == out.partition("?")[0]:
        raise ParameterError(
            f"--in and --out are both {out.partition('?')[0]}. Choose another port for --out.",
            name="out",
            got=out,
        )
    tracker = open_tracker(source, **options)
    protector = Protector(mechanism, tracker.rate_hz, tracker.space, seed)
    sink = open_sink(out)
    promise = protector.guarantee.with_not_covered(
        *(f"the topic {topic}, passed on as it is" for topic in forward or ())
    )
    say = console()
    say.print(str(promise), soft_wrap=True)
    if seed is not None:
        say.print(
            "This is a test: the noise came from a seed, so whoever knows it can undo the noise.",
            soft_wrap=True,
        )
    # our own lines alone: what libraries would say is not for the user, and may hold gaze
    lines = logging.StreamHandler()
    logging.getLogger("gazeveil").addHandler(lines)
    logging.getLogger("gazeveil").setLevel(logging.INFO)
    protector.warm()
    began = time.monotonic()

    async def work() -> None:
        from gazeveil.gatekeeper.relay import relay

        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            # some event loops have no signal handlers; there Ctrl-C ends it as it ends every
            # program
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, stop.set)
        if seconds is not None:
            loop.call_later(seconds, stop.set)
        where = await sink.start(tracker, promise)
        say.print(
            f"Relaying {source.partition('?')[0]} to {where}. Stop with Ctrl-C.", soft_wrap=True
        )
        try:
            await relay(tracker, sink, protector, stop)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise ParameterError(
                f"Another program uses the port of {source.partition('?')[0]}. Choose another one"
                " with --in.",
                name="in",
                got=source,
            ) from None
        finally:
            # It is stopping, and so is the program: a second Ctrl-C must reach neither a loop that
            # is being taken down nor the last lines.
            for number in (signal.SIGINT, signal.SIGTERM):
                with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                    loop.remove_signal_handler(number)
                    signal.signal(number, signal.SIG_IGN)
            await sink.close()

    try:
        asyncio.run(work())
    finally:
        logging.getLogger("gazeveil").removeHandler(lines)
    counts = {
        "tracker": dict(tracker.counts),
        "relay": dict(protector.counts),
        "out": dict(sink.counts),
    }
    came, went = protector.counts["in"], protector.counts["out"]
    say.print(
        f"{came:,} samples came, {went:,} went out protected, {tracker.counts['malformed']:,}"
        " messages were malformed.",
        soft_wrap=True,
    )
    figures = {
        "in": source.partition("?")[0],
        "out": out.partition("?")[0],
        "mechanism": str(protector.mechanism),
        "rate_hz": tracker.rate_hz,
        "seconds": round(time.monotonic() - began, 3),
        "counts": counts,
        "guarantee": promise.to_dict(),
        "sentence": str(promise),
        "seed": seed,
    }
    write_json(json_file, figures)
