"""Speed and error of the Kaleido family, beside numpy drawing two normals per sample in the same
run: one JSON line per figure.

    python benchmarks/kaleido.py [--json FILE] [--recordings 100] [--errors]

Noise is drawn from the operating system's key, as in production. Machines are noisy, so what counts
is the ratio of two times measured one after the other. `--errors` measures the RMS error of the
rules on recordings under GAZEVEIL_DATA (gazecom and eyenavgs) at equal epsilon, w, r.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from gazeveil import Cohort, Recording, Screen, Sphere, read, simulate
from gazeveil.gaze.geometry import Space, distance_deg
from gazeveil.privacy.stream.kaleido.mechanism import Kaleido, KaleidoUniform
from speed import Lines, best_s

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
RATE_HZ = 120.0
FOLDER_HZ, SECONDS = 250.0, 60.0
FLOOR = 0.35
RUNS = 7
FAMILY = (Kaleido, KaleidoUniform)


def gaze(
    samples: int, space: Space, rate_hz: float = RATE_HZ
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """One simulated stream without losses."""
    recording = simulate(1, 1, samples / rate_hz, rate_hz, task="video", space=space, seed=1)[0]
    keep = recording.valid
    times = -(-samples // int(keep.sum()))
    x, y = (np.tile(a[keep], times)[:samples] for a in (recording.x_deg, recording.y_deg))
    return (
        (np.arange(samples) * (1e9 / rate_hz)).astype(np.int64),
        x,
        y,
        np.ones(samples, dtype=np.bool_),
    )


def bench_speed(lines: Lines, recordings: int) -> None:
    """A folder of recordings of 60 s at 250 Hz, each in a session of its own."""
    generator, samples = np.random.default_rng(1), round(SECONDS * FOLDER_HZ)
    for space in (SCREEN, Sphere()):
        data = gaze(samples, space, FOLDER_HZ)
        for cls in FAMILY:
            mechanism = cls(1, 60, 2)

            def release_all(mechanism: Kaleido = mechanism) -> None:
                for _ in range(recordings):
                    mechanism.open(FOLDER_HZ, space).push(*data)  # noqa: B023 - called at once

            def draw_all() -> None:
                for _ in range(recordings):
                    generator.normal(size=(samples, 2))

            release_all()
            numpy_s = ours_s = float("inf")
            for _ in range(RUNS):  # in turns, so that a busy moment of the machine hits both
                numpy_s = min(numpy_s, best_s(draw_all, runs=1))
                ours_s = min(ours_s, best_s(release_all, runs=1))
            total = recordings * samples
            lines.add(
                f"{mechanism.name} on a {type(space).__name__.lower()}, recordings of 60 s at"
                " 250 Hz, t_skip 50 ms, secure noise",
                FLOOR,
                numpy_s / ours_s,
                "times numpy drawing two normals per sample",
                recordings=recordings,
                ours_msamples_per_s=round(total / ours_s / 1e6, 2),
                numpy_msamples_per_s=round(total / numpy_s / 1e6, 2),
            )


def bench_single(lines: Lines) -> None:
    for space in (SCREEN, Sphere()):
        data = gaze(20_000, space)
        session = Kaleido(1, 60, 2).open(RATE_HZ, space)
        t, x, y = data[0].tolist(), data[1].tolist(), data[2].tolist()
        times = []
        for i in range(len(t)):
            begin = perf_counter()
            session.push(t[i], x[i], y[i], True)
            times.append(perf_counter() - begin)
        micro = np.array(times[100:]) * 1e6
        lines.add(
            f"kaleido on a {type(space).__name__.lower()}, 10 microseconds over the median push of"
            " one sample",
            1.0,
            10.0 / float(np.median(micro)),
            "times",
            median_us=round(float(np.median(micro)), 2),
            p99_us=round(float(np.quantile(micro, 0.99)), 2),
        )


def bench_many(lines: Lines) -> None:
    streams, ticks = 1000, 240
    for space in (SCREEN, Sphere()):
        data = gaze(ticks + streams, space)
        windows = [np.lib.stride_tricks.sliding_window_view(a, streams) for a in data]
        session = Kaleido(1, 60, 2).open_many(streams, RATE_HZ, space)
        for i in range(5):
            session.push(data[0][i], *(w[i] for w in windows[1:]))
        begin = perf_counter()
        for i in range(5, ticks):
            session.push(data[0][i], *(w[i] for w in windows[1:]))
        seconds = perf_counter() - begin
        lines.add(
            f"kaleido, 1,000 streams at 120 Hz in step on a {type(space).__name__.lower()}, half of"
            " real time over their time",
            1.0,
            0.5 * (ticks - 5) / RATE_HZ / seconds,
            "times",
            streams=streams,
            us_per_step=round(seconds / (ticks - 5) * 1e6, 1),
        )


def rms_deg(recordings: list[Recording], mechanism: Kaleido, seed: int) -> float:
    """Root of the mean squared angle between true and released gaze."""
    squares, count = 0.0, 0
    for i, recording in enumerate(recordings):
        out = mechanism.release(recording, seed=seed + i).data
        both = recording.valid & out.valid
        d = distance_deg(
            recording.space,
            recording.x_deg[both],
            recording.y_deg[both],
            out.x_deg[both],
            out.y_deg[both],
        )
        squares, count = squares + float(np.sum(d * d)), count + int(both.sum())
    return float(np.sqrt(squares / count))


def some(cohort: Cohort, count: int, rate_hz: float) -> list[Recording]:
    """Every few recordings, at the papers' rate."""
    step = max(1, len(cohort) // count)
    return [cohort[i].resample(rate_hz) for i in range(0, len(cohort), step)][:count]


def bench_errors(lines: Lines) -> None:
    root = Path(os.environ.get("GAZEVEIL_DATA", ""))
    if not os.environ.get("GAZEVEIL_DATA"):
        print("GAZEVEIL_DATA is not set: errors not measured", file=sys.stderr)
        return
    for name in ("gazecom", "eyenavgs_nthu"):
        recordings = some(read(root / name), 12, 100.0)
        for epsilon in (1, 2, 5, 10):
            for w in (50, 200):
                for r in (2, 10):
                    halving = rms_deg(recordings, Kaleido(epsilon, w, r), 1)
                    for cls in (KaleidoUniform,):
                        ours = rms_deg(recordings, cls(epsilon, w, r), 1)
                        lines.add(
                            f"{cls.name} on {name}, RMS error of halving over its own",
                            1.0,
                            halving / ours,
                            "times",
                            epsilon=epsilon,
                            w=w,
                            r_deg=r,
                            rms_deg=round(ours, 2),
                            halving_rms_deg=round(halving, 2),
                            recordings=len(recordings),
                        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    parser.add_argument("--recordings", type=int, default=100)
    parser.add_argument(
        "--errors", action="store_true", help="RMS errors on recordings instead of speed"
    )
    arguments = parser.parse_args()
    lines = Lines(arguments.json)
    if arguments.errors:
        bench_errors(lines)
    else:
        bench_speed(lines, arguments.recordings)
        bench_single(lines)
        bench_many(lines)
    if not lines.close():
        sys.exit("a floor was missed")


if __name__ == "__main__":
    main()
