"""Load on the Gatekeeper beside a bare WebSocket echo of equal messages: one JSON line per figure.

    python benchmarks/gatekeeper_load.py [--json FILE] [--seconds 4] [--turns 3] [--soak 300]

Both servers run in a process of their own on this machine with the same uvicorn configuration; the
client is this process, and both are measured in turns in the same run.

*Messages.* The echo: each of 8 connections sends a batch of 12 samples (228 bytes) and waits for
it. The Gatekeeper: a tracker sends such batches, at most two ahead of the slowest stream, and 8
private streams get them. Counted is what the client receives in a second. The tracker's nominal
rate is 10 kHz, so that a lease is what it is in real use: one a second.

*Latency.* 100 private streams of 10 apps, 120 samples a second each, one sample a message (41
bytes); from before the tracker's send to the receipt at each stream. The echo: 100 connections,
each sends such a message 120 times a second; from before its own send to its receipt. Where other
work keeps the echo's client from sending that often, the streams are measured at the rate it
reached, which is told, and the latencies are not judged: what is measured then is the queue for the
processor.

*One message.* One private stream at 120 Hz: processor time of the server for each message of one
sample, with all that runs beside. The echo: one connection that sends such messages 120 times a
second. To compare two commits, run this file with the other one's `src` on `PYTHONPATH`.

*Cold start.* With an empty compile cache: seconds to the first page, to `ready`, and then to the
first samples of the first stream.

*Soak.* 200 private streams of 10 apps at 120 samples a second, for so many seconds: samples that
were dropped, whether each stream got every sample the tracker sent, and the server's memory, whose
median over the last third must not be more than 2 percent and 2 MiB above that over the second.

Ratios mean something on a quiet machine alone: `load_before`, the machine's load average of the
last minute before the run, is told with each figure, and a run that begins above 0.5 says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket as socket_module
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from secrets import token_hex, token_urlsafe
from typing import Any

import httpx
import numpy as np
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect

from gazeveil.gatekeeper import blocks
from lines import Lines

MECHANISM = "gaussian:sigma_deg=3"
STREAMS, RATE_HZ, APPS = 100, 120.0, 10
SOAK_STREAMS, SOAK_BATCH = 200, 4
CONNECTIONS, BATCH = 8, 12

#: How many times the echo's latency ours may be, and which share of the rate the echo must reach
#: for that to be judged.
MOST_TIMES, LEAST_REACHED = 3.0, 0.95

#: What each app may have, as a policy has it.
GRANT = """
[apps.app-{number}]
scopes = ["samples"]
mechanisms = ["{mechanism}"]
streams = 200
budgets = {{ rho = 1000000000 }}
"""


#: Messages that every app gets unasked.
PAUSES = ("paused", "resumed")


async def echo(websocket: WebSocket) -> None:
    """Send back what came."""
    await websocket.accept()
    try:
        while True:
            await websocket.send_bytes(await websocket.receive_bytes())
    except WebSocketDisconnect:
        return


def serve_echo(port: int) -> None:
    app = Starlette(routes=[WebSocketRoute("/", echo)])
    uvicorn.run(
        app,
        port=port,
        loop="uvloop",
        http="h11",
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        access_log=False,
        log_level="error",
    )


class Gatekeeper:
    """A process of the service, with apps that may stream."""

    def __init__(
        self, port: int, rate_hz: float, python: str = sys.executable, **more: str
    ) -> None:
        started_s = time.monotonic()
        self.home = tempfile.TemporaryDirectory(prefix="gazeveil-load-")
        self.address, self.ws = f"http://127.0.0.1:{port}", f"ws://127.0.0.1:{port}"
        token = f"gv_owner_{token_hex(8)}_{token_urlsafe(32)}"
        file = Path(self.home.name) / "owner-token"
        file.touch(0o600)
        file.write_text(token)
        environment = {
            # Batches come as fast as they are taken, so their times are no age.
            "GAZEVEIL_LATE_MS": "0",
            **os.environ,
            "GAZEVEIL_HOME": self.home.name,
            "GAZEVEIL_OWNER_TOKEN_FILE": str(file),
            "GAZEVEIL_TRACKER": "websocket",
            "GAZEVEIL_RATE_HZ": str(rate_hz),
            **more,
        }
        command = [python, "-m", "gazeveil.cli.main", "serve", "--port", str(port)]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(self.address)
        self.page_s = time.monotonic() - started_s
        while httpx.get(self.address + "/health/ready").status_code != 200:
            time.sleep(0.1)  # it compiles
        self.ready_s = time.monotonic() - started_s
        bearer = {"Authorization": f"Bearer {token}"}
        owner = httpx.Client(base_url=self.address, timeout=30, headers=bearer)
        self.tokens = []
        for number in range(APPS):
            self.tokens.append(
                owner.post("/v1/apps", json={"name": f"app-{number}"})
                .raise_for_status()
                .json()["token"]
            )
        grants = [GRANT.format(number=number, mechanism=MECHANISM) for number in range(APPS)]
        policy = "consent = true\ndevice.rho = 1000000000\n" + "".join(grants)
        owner.put("/v1/policy", content=policy).raise_for_status()
        self.tracker_token = (Path(self.home.name) / "tracker-token").read_text().strip()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.home.cleanup()

    async def stream(self, number: int, batch: int) -> ClientConnection:
        """An app's connection with one private stream."""
        socket = await connect(self.ws + "/v1/stream", compression=None)
        await socket.send(json.dumps({"type": "hello", "token": self.tokens[number % APPS]}))
        await socket.recv()
        await socket.send(
            json.dumps(
                {
                    "type": "subscribe",
                    "id": 1,
                    "what": "samples",
                    "mechanism": MECHANISM,
                    "encoding": "binary",
                    "batch": batch,
                }
            )
        )
        answer = json.loads(await socket.recv())
        while answer["type"] in PAUSES:
            answer = json.loads(await socket.recv())
        if answer["type"] != "subscribed":
            sys.exit(f"The stream was refused: {answer['reason']}")
        return socket

    async def tracker(self) -> ClientConnection:
        socket = await connect(self.ws + "/v1/tracker", compression=None)
        await socket.send(json.dumps({"type": "hello", "token": self.tracker_token}))
        await socket.recv()
        return socket


async def cold_start(lines: Lines, load_before: float) -> None:
    """Start with an empty compile cache, and open the first stream once the service is ready."""
    with tempfile.TemporaryDirectory(prefix="gazeveil-cold-") as empty:
        keeper = Gatekeeper(free_port(), RATE_HZ, NUMBA_CACHE_DIR=empty)
        try:
            tracker, asked_s = await keeper.tracker(), time.monotonic()
            first, t_ns = await keeper.stream(0, 1), 10**9
            reading = asyncio.create_task(first_samples(first))
            while not reading.done():
                t_ns += round(1e9 / RATE_HZ)
                await tracker.send(batch_of(t_ns, 0, 1))
                await asyncio.wait({reading}, timeout=1 / RATE_HZ)
            first_s = time.monotonic() - asked_s
        finally:
            keeper.close()
    lines.keep(
        {
            "figure": "first samples of the first stream after a cold start and ready",
            "value": round(first_s, 3),
            "unit": "s",
            "limit": 1.0,
            "met": first_s <= 1.0,
            "page_s": round(keeper.page_s, 2),
            "ready_s": round(keeper.ready_s, 2),
            "load_before": load_before,
        }
    )


async def first_samples(socket: ClientConnection) -> None:
    """Wait for the first samples of a stream."""
    while not isinstance(await socket.recv(), bytes):
        pass


def cpu_s(process: subprocess.Popen[Any]) -> float:
    """Seconds of processor time a server has used; does not depend on what else runs on the
    machine.
    """
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket_module.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def until(address: str) -> None:
    """Wait until somebody answers there."""
    for _ in range(600):
        try:
            httpx.get(address + "/health")
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    sys.exit(f"Nobody answers at {address}.")


def batch_of(t_ns: int, step_ns: int, count: int) -> bytes:
    t = t_ns + step_ns * np.arange(count, dtype=np.int64)
    return blocks.pack(blocks.block(t, np.full(count, 180.0), np.full(count, 90.0)))


async def echo_messages(address: str, seconds: float) -> float:
    """Messages a second of the echo."""
    message = batch_of(0, 1, BATCH)
    sockets = [await connect(address, compression=None) for _ in range(CONNECTIONS)]
    counts = [0] * CONNECTIONS
    end = time.perf_counter() + seconds

    async def go(number: int) -> None:
        while time.perf_counter() < end:
            await sockets[number].send(message)
            await sockets[number].recv()
            counts[number] += 1

    await asyncio.gather(*(go(n) for n in range(CONNECTIONS)))
    for socket in sockets:
        await socket.close()
    return sum(counts) / seconds


async def stream_messages(keeper: Gatekeeper, seconds: float, t_ns: list[int]) -> tuple[float, int]:
    """Messages a second of private streams, and samples that were dropped."""
    sockets = [await keeper.stream(n, BATCH) for n in range(CONNECTIONS)]
    tracker = await keeper.tracker()
    step_ns = 100_000
    got, seen, dropped = [0] * CONNECTIONS, [0] * CONNECTIONS, [0] * CONNECTIONS
    moved = asyncio.Event()

    async def listen(number: int) -> None:
        async for data in sockets[number]:
            if not isinstance(data, bytes):
                assert json.loads(data)["type"] in PAUSES, data
                continue
            got[number] += 1
            *_, count, sequence, dropped[number] = blocks.HEADER.unpack_from(data)
            seen[number] = (sequence + count) // BATCH
            moved.set()

    listeners = [asyncio.create_task(listen(n)) for n in range(CONNECTIONS)]
    sent, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        while sent - min(seen) >= 2:
            moved.clear()
            await asyncio.wait_for(moved.wait(), 10)
        await tracker.send(batch_of(t_ns[0], step_ns, BATCH))
        t_ns[0] += BATCH * step_ns
        sent += 1
    rate = sum(got) / (time.perf_counter() - begin)
    for socket in (*sockets, tracker):
        await socket.close()
    await asyncio.gather(*listeners)
    return rate, sum(dropped)


async def echo_latency(
    address: str, process: subprocess.Popen[Any], seconds: float, connections: int = STREAMS
) -> tuple[np.ndarray, float, float]:
    """Milliseconds from before each send to its receipt, all connections; the server's processor
    time; the rate that was reached.
    """
    message = batch_of(0, 1, 1)
    sockets = [await connect(address, compression=None) for _ in range(connections)]
    begun: list[list[float]] = [[] for _ in range(connections)]
    took: list[float] = []

    async def listen(number: int) -> None:
        at = 0
        async for _ in sockets[number]:
            took.append(time.perf_counter() - begun[number][at])
            at += 1

    listeners = [asyncio.create_task(listen(n)) for n in range(connections)]

    async def burst() -> None:
        for number, socket in enumerate(sockets):
            begun[number].append(time.perf_counter())
            await socket.send(message)

    begin = cpu_s(process)
    rate_hz = await _paced(seconds, RATE_HZ, burst)
    await asyncio.sleep(0.5)
    used = cpu_s(process) - begin
    for socket in sockets:
        await socket.close()
    await asyncio.gather(*listeners)
    return np.array(took) * 1000, used, rate_hz


async def _paced(seconds: float, rate_hz: float, work: Any) -> float:
    """Do something `rate_hz` times a second, never faster to catch up; the
    rate that was reached.
    """
    begin = due = time.perf_counter()
    times = 0
    while (now := time.perf_counter()) - begin < seconds:
        due = max(due + 1 / rate_hz, now)
        await asyncio.sleep(due - now)
        await work()
        times += 1
    return times / (time.perf_counter() - begin)


async def stream_latency(
    keeper: Gatekeeper, seconds: float, rate_hz: float, t_ns: list[int], streams: int = STREAMS
) -> tuple[np.ndarray, float, int]:
    """Milliseconds from before the tracker's send to the receipt at each stream; the server's
    processor time; samples that were dropped.
    """
    sockets = [await keeper.stream(n, 1) for n in range(streams)]
    tracker = await keeper.tracker()
    step_ns = round(1e9 / RATE_HZ)
    begun: list[float] = []
    took: list[float] = []
    dropped = [0] * streams

    async def listen(number: int) -> None:
        async for data in sockets[number]:
            now = time.perf_counter()
            if not isinstance(data, bytes):
                assert json.loads(data)["type"] in PAUSES, data
                continue
            *_, sequence, dropped[number] = blocks.HEADER.unpack_from(data)
            took.append(now - begun[sequence])

    listeners = [asyncio.create_task(listen(n)) for n in range(streams)]

    async def one() -> None:
        begun.append(time.perf_counter())
        await tracker.send(batch_of(t_ns[0], step_ns, 1))
        t_ns[0] += step_ns

    begin = cpu_s(keeper.process)
    await _paced(seconds, rate_hz, one)
    await asyncio.sleep(0.5)
    used = cpu_s(keeper.process) - begin
    for socket in (*sockets, tracker):
        await socket.close()
    await asyncio.gather(*listeners)
    return np.array(took) * 1000, used, sum(dropped)


async def one_message(
    keeper: Gatekeeper,
    address: str,
    bare_process: subprocess.Popen[Any],
    seconds: float,
    t_ns: list[int],
) -> tuple[float, float]:
    """Microseconds of processor time of a message of one sample: of the Gatekeeper with one stream
    open, and of the echo with one connection.
    """
    took, used, _ = await stream_latency(keeper, seconds, RATE_HZ, t_ns, streams=1)
    bare_took, bare_used, _ = await echo_latency(address, bare_process, seconds, connections=1)
    return 1e6 * used / len(took), 1e6 * bare_used / len(bare_took)


def memory_mib(process: subprocess.Popen[Any]) -> float:
    """Memory that a server holds, in MiB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return (
        int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
        / 1024
    )


async def soak(lines: Lines, seconds: float, load_before: float) -> None:
    """Many streams for a long time."""
    keeper, t_ns = Gatekeeper(free_port(), RATE_HZ), [10**9]
    try:
        sockets = [await keeper.stream(n, SOAK_BATCH) for n in range(SOAK_STREAMS)]
        tracker = await keeper.tracker()
        step_ns = round(1e9 / RATE_HZ)
        got, dropped = [0] * SOAK_STREAMS, [0] * SOAK_STREAMS
        memory: list[float] = []

        async def listen(number: int) -> None:
            async for data in sockets[number]:
                if not isinstance(data, bytes):
                    assert json.loads(data)["type"] in PAUSES, data
                    continue
                *_, count, sequence, dropped[number] = blocks.HEADER.unpack_from(data)
                got[number] = sequence + count

        async def look() -> None:
            while True:
                memory.append(memory_mib(keeper.process))
                await asyncio.sleep(1.0)

        listeners = [asyncio.create_task(listen(n)) for n in range(SOAK_STREAMS)]
        looking = asyncio.create_task(look())
        sent = 0

        async def one() -> None:
            nonlocal sent
            await tracker.send(batch_of(t_ns[0], step_ns, 1))
            t_ns[0] += step_ns
            sent += 1

        rate_hz = await _paced(seconds, RATE_HZ, one)
        await asyncio.sleep(2.0)
        looking.cancel()
        for socket in (*sockets, tracker):
            await socket.close()
        await asyncio.gather(*listeners)
    finally:
        keeper.close()
    third = len(memory) // 3
    second, last = (
        float(np.median(memory[third : 2 * third])),
        float(np.median(memory[2 * third :])),
    )
    # What does not fill a message yet waits for the next sample.
    whole = sum(sent - count < SOAK_BATCH for count in got)
    lines.keep(
        {
            "figure": (
                f"{SOAK_STREAMS} streams at {RATE_HZ:g} Hz for {seconds:g} s, {SOAK_BATCH} samples"
                " a message"
            ),
            "met": (
                not sum(dropped)
                and whole == SOAK_STREAMS
                and last <= 1.02 * second + 2.0
                and rate_hz > 0.98 * RATE_HZ
            ),
            "dropped_samples": sum(dropped),
            "streams_with_every_sample": whole,
            "reached_hz": round(rate_hz, 1),
            "memory_mib_second_third": round(second, 1),
            "memory_mib_last_third": round(last, 1),
            "load_before": load_before,
        }
    )


async def measure(
    lines: Lines,
    bare_process: subprocess.Popen[Any],
    port: int,
    seconds: float,
    turns: int,
    load_before: float,
) -> None:
    address = f"ws://127.0.0.1:{port}/"
    keeper, t_ns = Gatekeeper(free_port(), 10_000.0), [10**9]
    try:
        # The first turn compiles and warms both sides.
        await echo_messages(address, 0.5)
        await stream_messages(keeper, 1.0, t_ns)
        pairs = [
            (await echo_messages(address, seconds), await stream_messages(keeper, seconds, t_ns))
            for _ in range(turns)
        ]
    finally:
        keeper.close()
    echoed, streamed = (
        float(np.median([p[0] for p in pairs])),
        float(np.median([p[1][0] for p in pairs])),
    )
    lost = sum(p[1][1] for p in pairs)
    ratio = float(np.median([p[1][0] / p[0] for p in pairs]))
    what = (
        f"messages of {CONNECTIONS} private streams in batches of {BATCH}, over those of a bare"
        " echo"
    )
    lines.add(
        what,
        0.5,
        ratio,
        "times",
        messages_per_s=round(streamed),
        echo_messages_per_s=round(echoed),
        dropped_samples=lost,
        turns=turns,
        load_before=load_before,
    )

    keeper, t_ns = Gatekeeper(free_port(), RATE_HZ), [10**9]
    try:
        await echo_latency(address, bare_process, 0.5)
        await stream_latency(keeper, 1.0, RATE_HZ, t_ns)
        both = []
        alone = [
            await one_message(keeper, address, bare_process, seconds, t_ns) for _ in range(turns)
        ]
        for _ in range(turns):
            bare = await echo_latency(address, bare_process, seconds)
            both.append((bare, await stream_latency(keeper, seconds, bare[2], t_ns)))
    finally:
        keeper.close()
    one_us, bare_us = np.median(alone, axis=0)
    lines.keep(
        {
            "figure": (
                "processor time of a tracker's message of one sample, one stream open, over that"
                " of a bare echo"
            ),
            "value": round(float(np.median([one / bare for one, bare in alone])), 3),
            "unit": "times",
            "met": None,
            "why": "to be compared with the same figure of another commit",
            "microseconds": round(float(one_us), 1),
            "echo_microseconds": round(float(bare_us), 1),
            "turns": turns,
            "load_before": load_before,
        }
    )
    more = {
        "reached_hz": round(float(np.median([bare[2] for bare, _ in both])), 1),
        "messages": sum(len(ours[0]) for _, ours in both),
        "echo_messages": sum(len(bare[0]) for bare, _ in both),
        "dropped_samples": sum(ours[2] for _, ours in both),
        "cpu_us_per_message": round(
            1e6 * sum(ours[1] for _, ours in both) / sum(len(ours[0]) for _, ours in both), 1
        ),
        "echo_cpu_us_per_message": round(
            1e6 * sum(bare[1] for bare, _ in both) / sum(len(bare[0]) for bare, _ in both), 1
        ),
        "turns": turns,
        "load_before": load_before,
    }
    for name, share in (("median", 50), ("99th percentile", 99)):
        bare_ms = float(np.median([np.percentile(bare[0], share) for bare, _ in both]))
        ours_ms = float(np.median([np.percentile(ours[0], share) for _, ours in both]))
        times = float(
            np.median(
                [
                    np.percentile(ours[0], share) / np.percentile(bare[0], share)
                    for bare, ours in both
                ]
            )
        )
        lines.keep(
            {
                "figure": (
                    f"{name} latency of {STREAMS} streams at {RATE_HZ:g} Hz, over that of a bare"
                    " echo"
                ),
                "value": round(times, 3),
                "unit": "times",
                "limit": MOST_TIMES,
                **judged(times, float(more["reached_hz"])),
                "milliseconds": round(ours_ms, 3),
                "echo_milliseconds": round(bare_ms, 3),
                **more,
            }
        )


def judged(times: float, reached_hz: float) -> dict[str, object]:
    """Whether a latency is low enough, where the machine let the echo's client send in time."""
    if reached_hz < LEAST_REACHED * RATE_HZ:
        why = f"the machine is busy: the echo reached {reached_hz:g} of {RATE_HZ:g} Hz"
        return {"met": None, "why": why}
    return {"met": times <= MOST_TIMES}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--soak", type=float, help="seconds of 200 streams at 120 Hz, instead of the comparison"
    )
    parser.add_argument("--serve-echo", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve_echo is not None:
        serve_echo(arguments.serve_echo)
        return
    lines, port = Lines(arguments.json), free_port()
    load_before = round(os.getloadavg()[0], 2)
    if load_before > 0.5:
        print(
            f"The machine is not quiet: its load average is {load_before}. What follows is no"
            " figure for a page.",
            file=sys.stderr,
        )
    if arguments.soak is not None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(soak(lines, arguments.soak, load_before))
        sys.exit(0 if lines.close() else 1)
    bare = subprocess.Popen([sys.executable, __file__, "--serve-echo", str(port)])
    try:
        until(f"http://127.0.0.1:{port}")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(cold_start(lines, load_before))
            runner.run(measure(lines, bare, port, arguments.seconds, arguments.turns, load_before))
    finally:
        bare.terminate()
        bare.wait(20)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
