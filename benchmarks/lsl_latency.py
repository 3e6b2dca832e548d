"""What a relay between two streams of the Lab Streaming Layer adds to the delay, with the real
liblsl.

    python benchmarks/lsl_latency.py [--rates 120 250 1000] [--seconds 10] [--json FILE]

Four processes of one machine: one sends gaze over LSL at a rate, one relays it as `gazeveil relay`
does, one receives the raw stream, and one the protected one. All read liblsl's clock. A sample is
told from the others by its number: those sent before everybody is connected are lost ones. What the
relay adds is the time at which its sample arrived minus that at which the raw one arrived. Needs
`pip install 'gazeveil[lsl]'` and liblsl.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np

RATES_HZ = (120.0, 250.0, 1000.0)
MECHANISM = "gaussian:sigma_deg=1"
LABELS = ("confidence", "norm_pos_x", "norm_pos_y")

#: Of the samples that are compared, the first are left out: numba and caches are warm then.
WARM_S = 1.0


def send(name: str, rate_hz: float, count: int, ready: Event) -> None:
    """Send lost samples until everybody is there, then `count` good ones at times."""
    import pylsl

    info = pylsl.StreamInfo(name, "Gaze", 3, rate_hz, pylsl.cf_float32, name)
    channels = info.desc().append_child("channels")
    for label in LABELS:
        channels.append_child("channel").append_child_value("label", label)
    outlet = pylsl.StreamOutlet(info)
    begun, sent, good = time.perf_counter(), 0, 0
    while good < count:
        sent += 1
        time.sleep(max(0.0, begun + sent / rate_hz - time.perf_counter()))
        sure = float(ready.is_set())
        good += bool(sure)
        outlet.push_sample([sure, 0.5, 0.5], pylsl.local_clock())
    time.sleep(1.0)


def receive(name: str, count: int, connected: Event, results: Any) -> None:
    """Arrival times of the good samples of a stream, and what they are stamped with."""
    import pylsl

    inlet = None
    while inlet is None:
        found = pylsl.resolve_byprop("name", name, 1, 1.0)
        inlet = pylsl.StreamInlet(found[0]) if found else None
    inlet.open_stream(10.0)
    arrived, stamped = [], []
    while len(arrived) < count:
        row, stamp = inlet.pull_sample(20.0)
        now = pylsl.local_clock()
        if row is None:
            break
        connected.set()
        if row[0] > 0.5:
            arrived.append(now)
            stamped.append(stamp)
    results.put((name, arrived, stamped))


def relay(raw: str, protected: str, seconds: float) -> None:
    """The command itself."""
    from gazeveil.cli.main import main

    streams = ("--in", f"lsl:{raw}", "--out", f"lsl:{protected}")
    main(["relay", *streams, "--mechanism", MECHANISM, "--seconds", str(seconds)])


def measure(rate_hz: float, seconds: float) -> dict[str, float]:
    """Delays at one rate, in milliseconds."""
    # what is forked has no threads of liblsl yet
    context = multiprocessing.get_context("fork")
    count = round(rate_hz * (seconds + WARM_S))
    raw, protected = f"raw-{os.getpid()}-{rate_hz:g}", f"protected-{os.getpid()}-{rate_hz:g}"
    ready, results = context.Event(), context.Queue()
    connected = {name: context.Event() for name in (raw, protected)}
    helpers = [
        context.Process(target=send, args=(raw, rate_hz, count, ready), daemon=True),
        context.Process(target=relay, args=(raw, protected, seconds + 60), daemon=True),
        *(
            context.Process(target=receive, args=(name, count, connected[name], results))
            for name in connected
        ),
    ]
    for helper in helpers:
        helper.start()
    try:
        if not all(event.wait(60.0) for event in connected.values()):
            raise SystemExit("A stream did not come within a minute.")
        time.sleep(1.0)
        ready.set()
        both = {name: (a, s) for name, a, s in (results.get(timeout=seconds + 60) for _ in (0, 1))}
    finally:
        for helper in helpers:
            helper.terminate()
            helper.join()
    return _figures(rate_hz, both[raw], both[protected])


def _figures(
    rate_hz: float, raw: tuple[list[float], list[float]], protected: tuple[list[float], list[float]]
) -> dict[str, float]:
    if len(raw[0]) != len(protected[0]):
        raise SystemExit(f"{len(raw[0])} samples came raw, {len(protected[0])} protected.")
    skip = round(rate_hz * WARM_S)
    direct, relayed = (np.array(arrived)[skip:] for arrived in (raw[0], protected[0]))
    sent = np.array(raw[1])[skip:]
    out: dict[str, float] = {"rate_hz": rate_hz, "samples": len(direct)}
    for name, delay in (("direct", direct - sent), ("added", relayed - direct)):
        for label, value in zip(
            ("median", "p99", "max"), np.quantile(delay, (0.5, 0.99, 1.0)), strict=True
        ):
            out[f"{name}_{label}_ms"] = float(value * 1e3)
    # a released time lies on the grid, within a period of the sample's own
    out["stamp_off_ms"] = float(np.abs(np.array(protected[1])[skip:] - sent).max() * 1e3)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=float, nargs="+", default=list(RATES_HZ))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    rows = [measure(rate_hz, chosen.seconds) for rate_hz in chosen.rates]
    print(f"{platform.machine()}, {os.cpu_count()} cores, {MECHANISM}, milliseconds")
    print("| rate | samples | direct median / p99 | added median / p99 / largest | stamp off |")
    print("|---|---|---|---|---|")
    for r in rows:
        print(
            f"| {r['rate_hz']:g} Hz | {r['samples']} |"
            f" {r['direct_median_ms']:.2f} / {r['direct_p99_ms']:.2f} |"
            f" {r['added_median_ms']:.2f} / {r['added_p99_ms']:.2f} / {r['added_max_ms']:.2f} |"
            f" {r['stamp_off_ms']:.2f} |"
        )
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
