"""Speed of protection on streams, beside what bare numpy does in the same run: one JSON line per
figure.

    python benchmarks/streams.py [--json FILE] [--samples 2000000]

Times of blocks are processor time of one core, the best of a few runs after one that compiles,
since other work on the machine must not count; figures of single pushes are by the clock: they are
medians and 99th percentiles of 20,000 pushes, and stand beside those of an empty session, which
takes samples and lets them pass, so that what the machine itself costs can be seen.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter_ns, process_time
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gazeveil import Recording, mechanism, simulate
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.guarantee import Guarantee, no_promise
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Samples, Session, Stage
from lines import slower

RATE_HZ = 500.0

#: Samples per second of the published smoothing defence as found, and how many times faster ours
#: must be.
FOUND, TIMES = 34_000, 100


@dataclass(frozen=True)
class Nothing(StreamMechanism):
    """An empty session: the front alone."""

    name: ClassVar[str] = "nothing"
    kind: ClassVar[str] = "stream"
    paper: ClassVar[str] = ""
    claims: ClassVar[Mapping[str, Claim]] = {"corrected": Claim("none", "user", "proved")}

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        return no_promise(self.name, "it does nothing")

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        return _Pass()


class _Pass(Stage):
    def run(
        self,
        t_ns: NDArray[np.int64],
        x_deg: NDArray[np.float64],
        y_deg: NDArray[np.float64],
        valid: NDArray[np.bool_],
    ) -> Samples:
        return t_ns, x_deg, y_deg, valid


def best_s(work: Callable[[], object], runs: int = 5) -> float:
    """Processor seconds of the fastest of a few runs."""
    times = []
    for _ in range(runs):
        gc.collect()
        begin = process_time()
        work()
        times.append(process_time() - begin)
    return min(times)


def add(
    rows: list[dict[str, object]],
    figure: str,
    value: float,
    unit: str,
    floor: float | None = None,
    ceiling: float | None = None,
    **more: object,
) -> None:
    """Print a figure and keep it."""
    met = (floor is None or value >= floor) and (ceiling is None or value <= ceiling)
    bound = (
        {"floor": floor}
        if floor is not None
        else {"ceiling": ceiling}
        if ceiling is not None
        else {}
    )
    rows.append(
        {
            "figure": figure,
            "value": float(f"{value:.4g}"),
            "unit": unit,
            **bound,
            "met": met,
            **more,
        }
    )
    print(json.dumps(rows[-1]), flush=True)


def blocks(rows: list[dict[str, object]], r: Recording) -> None:
    """Whole recordings at once."""
    n, times = len(r), slower(process_time)

    def rate(text: str, seed: int | None) -> float:
        session = mechanism(text).open(RATE_HZ, r.space, seed)  # type: ignore[attr-defined]
        session.push(r.t_ns[:8], r.x_deg[:8], r.y_deg[:8], r.valid[:8])

        def work() -> None:
            session.reset()
            session.push(r.t_ns, r.x_deg, r.y_deg, r.valid)

        return n / best_s(work)

    for text in ("gaussian:sigma_deg=10", "spatial:L=64"):
        add(
            rows,
            f"{text}, corrected, secure noise",
            rate(text, None) / 1e6,
            "million samples/s",
            floor=round(2.0 / times, 3),
            slower=round(times, 2),
        )
    rng = np.random.default_rng(1)
    bare = n / best_s(lambda: rng.standard_normal(2 * n))
    ours = rate("gaussian:sigma_deg=10,reading=published", 1)
    add(
        rows,
        "gaussian published on a test stream against numpy drawing as many normals",
        ours / bare,
        "times",
        floor=0.5,
        numpy_million_samples_s=round(bare / 1e6, 2),
    )
    for text in ("smoothing:", "smoothing:reading=published"):
        add(
            rows,
            f"{text} against the published program as found",
            rate(text, None) / FOUND,
            "times",
            floor=float(TIMES),
        )
    for text in ("temporal:K=3", "kalman:", "chain:stages=gaussian(sigma_deg=10)+temporal(K=3)"):
        add(rows, text, rate(text, None) / 1e6, "million samples/s")


#: Floors for recordings whose losses are filled, as shares of numpy drawing two normals a sample.
FLOORS = {"temporal:K=3": 0.4, "spatial:L=64": 0.4}

#: Goals that are not reached. Exact noise alone takes longer: with losses kept, `gaussian` has
#: 0.28, `kaleido` 0.22 and `kaleido-uniform` 0.30. `mosaic` makes ten recordings of each.
GOALS = {
    "gaussian:sigma_deg=10": 0.4,
    "kaleido:epsilon=10,w=60,r_deg=2": 0.32,
    "kaleido-uniform:epsilon=10,w=60,r_deg=2": 0.32,
    "mosaic:epsilon=10,r_deg=2": 0.08,
}


def filled(rows: list[dict[str, object]]) -> None:
    """Cohorts of recordings of a minute at 120 Hz, of which blinks take some samples."""
    cohort = simulate(20, 1, 60.0, 120.0, seed=1).load()
    n, rng = sum(len(r) for r in cohort), np.random.default_rng(1)
    bare = n / best_s(lambda: rng.standard_normal(2 * n))
    for text in (*FLOORS, *GOALS):
        made: Any = mechanism(text)
        ours = n / best_s(lambda made=made: made.release(cohort).data.load())
        add(
            rows,
            f"{text}, losses filled, against numpy drawing two normals a sample",
            ours / bare,
            "times",
            floor=FLOORS.get(text),
            goal=GOALS.get(text),
            million_samples_s=round(ours / 1e6, 2),
            numpy_million_samples_s=round(bare / 1e6, 2),
        )


def single(rows: list[dict[str, object]], pushes: int = 20_000) -> None:
    """One sample at a time."""
    empty = _percentiles(Nothing(), pushes)
    for text in (
        "gaussian:sigma_deg=10",
        "gaussian:sigma_deg=10,reading=published",
        "temporal:K=3",
        "spatial:L=64",
        "smoothing:",
        "kalman:",
    ):
        median, p99 = _percentiles(mechanism(text), pushes)  # type: ignore[arg-type]
        more = {
            "p99": round(p99, 2),
            "empty_median": round(empty[0], 2),
            "empty_p99": round(empty[1], 2),
        }
        add(rows, f"one push, {text}", median, "microseconds (median)", ceiling=10.0, **more)


def _percentiles(m: StreamMechanism, pushes: int) -> tuple[float, float]:
    session = m.open(120.0)
    for i in range(200):
        session.push(i * 8_333_333, 100.0, 50.0, True)
    times = np.empty(pushes)
    gc.collect()
    for i in range(pushes):
        t = (i + 200) * 8_333_333
        begin = perf_counter_ns()
        session.push(t, 100.0, 50.0, True)
        times[i] = perf_counter_ns() - begin
    median, p99 = np.percentile(times, [50, 99]) / 1e3
    return float(median), float(p99)


def together(
    rows: list[dict[str, object]], streams: int = 1000, rate_hz: float = 120.0, seconds: int = 2
) -> None:
    """Many streams, one tick at a time."""
    ticks = int(rate_hz * seconds)
    rng = np.random.default_rng(2)
    x, y = rng.uniform(0, 360, (ticks, streams)), rng.uniform(0, 180, (ticks, streams))

    def step(session: Session) -> None:
        session.reset()
        for i in range(ticks):
            session.push(i * 8_333_333, x[i], y[i])

    for text in ("gaussian:sigma_deg=10", "smoothing:", "kalman:"):
        for seed in (None, 1):
            chosen: Any = mechanism(text)
            session = chosen.open_many(streams, rate_hz, seed=seed)
            session.push(0, x[0], y[0])
            share = best_s(partial(step, session), 3) / seconds
            kind = "test streams" if seed else "secure noise"
            add(
                rows,
                f"{streams} streams at {rate_hz:g} Hz in step, {text}, {kind}",
                share,
                "of real time",
                ceiling=0.5,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--samples", type=int, default=2_000_000)
    given = parser.parse_args()
    rows: list[dict[str, object]] = []
    add(
        rows,
        "machine",
        float(os.cpu_count() or 1),
        "cores",
        load=round(os.getloadavg()[0], 2),
        python=platform.python_version(),
        machine=platform.machine(),
    )
    blocks(rows, simulate(1, 1, given.samples / RATE_HZ, RATE_HZ, seed=1)[0])
    filled(rows)
    single(rows)
    together(rows)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    sys.exit(0 if all(r["met"] for r in rows) else "a floor was missed")


if __name__ == "__main__":
    main()
