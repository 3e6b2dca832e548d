"""Speed beside the peers, on the same samples in the same run: one JSON line per figure.

    python benchmarks/speed.py [--json FILE] [--samples 10000000]

Machines are noisy, so what counts is the ratio of two times measured one after the other, not the
times. Each time is the best of a few runs after one that compiles. Figures without a peer state
samples or bytes per second against the floor the project set for a quiet aarch64 core, which is
lower where a fixed piece of work takes longer in the same run (`slower`: how many times).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from gazeveil import Recording, Screen, detect, event_features, read, simulate
from gazeveil.gaze.cohort import Cohort
from lines import Lines, best_s, slower

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
RATE_HZ = 1000.0


def simulated(samples: int) -> Recording:
    """One long recording without losses, so that peers that cannot take NaN
    see the same samples.
    """
    pieces = list(
        simulate(
            max(1, samples // 1_000_000),
            1,
            min(samples, 1_000_000) / RATE_HZ,
            RATE_HZ,
            task="video",
            space=SCREEN,
            seed=1,
        )
    )
    x, y = (
        np.concatenate([_filled(getattr(p, name), p.valid) for p in pieces])[:samples]
        for name in ("x_deg", "y_deg")
    )
    return Recording(
        "bench", "video", np.arange(len(x)) * 1_000_000, x, y, space=SCREEN, rate_hz=RATE_HZ
    )


def _filled(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    seen = np.flatnonzero(valid)
    return np.interp(np.arange(len(values)), seen, values[seen])


def hard_inputs(samples: int, least: int = 100) -> dict[str, Recording]:
    """Inputs that are hard for a sliding dispersion of 1 degree whose shortest window has `least`
    samples: ramps that break the limit just before and just after every shortest window, walks,
    noise, stillness.
    """
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(0, 0.02, (samples, 2)), axis=0)
    shapes = {
        "ramp": (np.mod(np.arange(samples) * (1.0 / (least + 1)), 40.0) - 20.0, np.zeros(samples)),
        "crawl": (
            np.mod(np.arange(samples) * (1.0 / (least - 2)), 40.0)
            - 20.0
            + rng.normal(0, 0.002, samples),
            np.zeros(samples),
        ),
        "walk": (20 * np.sin(walk[:, 0] / 20), 20 * np.sin(walk[:, 1] / 20)),
        "noise": (rng.normal(0, 0.3, samples), rng.normal(0, 0.3, samples)),
        "still": (np.zeros(samples), np.zeros(samples)),
    }
    t = np.arange(samples) * 1_000_000
    return {
        name: Recording("bench", name, t, x, y, space=SCREEN, rate_hz=RATE_HZ)
        for name, (x, y) in shapes.items()
    }


def pymovements_gaze(recording: Recording) -> object:
    """The same positions as a pymovements Gaze in degrees."""
    import polars as pl
    import pymovements as pm

    screen = pm.Experiment(1280, 720, 40.0, 22.5, 45.0, origin="upper left", sampling_rate=RATE_HZ)
    frame = pl.DataFrame(
        {"time": recording.t_ns // 1_000_000, "x": recording.x_deg, "y": recording.y_deg}
    )
    return pm.Gaze(
        frame, experiment=screen, time_column="time", time_unit="ms", position_columns=["x", "y"]
    )


def bench_ivt(lines: Lines, recording: Recording) -> None:
    gaze = pymovements_gaze(recording)

    def peer() -> None:
        copy = gaze.clone()  # type: ignore[attr-defined]
        begin = perf_counter()
        copy.pos2vel(method="savitzky_golay", window_length=7, degree=2)
        copy.detect("ivt", velocity_threshold=30.0, minimum_duration=100)
        taken = perf_counter() - begin
        peer.seconds = min(getattr(peer, "seconds", np.inf), taken)  # type: ignore[attr-defined]

    detect(recording.slice(0, 10_000), "ivt")
    ours = best_s(lambda: detect(recording, "ivt"))
    peer()
    seconds = float(peer.seconds)  # type: ignore[attr-defined]
    rate = len(recording) / ours / 1e6
    lines.add(
        "I-VT, positions to events",
        30.0,
        seconds / ours,
        "times the peer",
        peer="pymovements pos2vel + detect('ivt')",
        peer_version=version("pymovements"),
        samples=len(recording),
        ours_msamples_per_s=round(rate, 2),
    )


def bench_idt(lines: Lines, recording: Recording) -> None:
    gaze = pymovements_gaze(recording)
    detect(recording.slice(0, 10_000), "idt")
    ours = best_s(lambda: detect(recording, "idt"), runs=5)
    begin = perf_counter()
    gaze.detect("idt", dispersion_threshold=1.0, minimum_duration=100)  # type: ignore[attr-defined]
    peer = perf_counter() - begin
    lines.add(
        "I-DT, positions to events",
        200.0,
        peer / ours,
        "times the peer",
        peer="pymovements detect('idt')",
        peer_version=version("pymovements"),
        samples=len(recording),
        ours_msamples_per_s=round(len(recording) / ours / 1e6, 2),
    )
    worst_s, worst = hardest_s(len(recording), 100, perf_counter)
    # Both floors hold the hardest input to something that is not our own time of the usual one:
    # over that, every gain on the usual input looked like a loss on the hardest.
    lines.add(
        "I-DT on the hardest input, over the peer on the usual one",
        200.0,
        peer / worst_s,
        "times the peer",
        input=worst,
        usual_over_hardest=round(ours / worst_s, 3),
    )
    # Looking at every window again takes ten times as long with windows ten times as long. Both
    # times are a few milliseconds of one thread: the processor's, so that other work has no part.
    short_s, _ = hardest_s(len(recording), 100, process_time)
    long_s, worst = hardest_s(len(recording), 1000, process_time)
    lines.add(
        "I-DT, hardest input: time with windows of 100 samples over that with 1,000",
        0.5,
        short_s / long_s,
        "ratio",
        input=worst,
    )


def hardest_s(samples: int, least: int, clock: Callable[[], float]) -> tuple[float, str]:
    """Seconds of the input that takes I-DT longest, and its name, for shortest fixations of `least`
    samples.
    """
    taken = {
        name: best_s(partial(detect, hard, "idt", min_fixation_ms=1000 * least / RATE_HZ), 5, clock)
        for name, hard in hard_inputs(samples, least).items()
    }
    worst = max(taken, key=lambda name: taken[name])
    return taken[worst], worst


def bench_auto(lines: Lines, recording: Recording) -> None:
    import logging

    from remodnav.clf import EyegazeClassifier

    logging.getLogger("remodnav").setLevel(logging.WARNING)

    x_px, y_px = recording.space.to_px(recording.x_deg, recording.y_deg)  # type: ignore[union-attr]
    samples = np.rec.fromarrays([x_px, y_px], names="x,y")
    peer_clf = EyegazeClassifier(px2deg=SCREEN.width_deg / SCREEN.width_px, sampling_rate=RATE_HZ)
    detect(recording.slice(0, 10_000))
    ours = best_s(lambda: detect(recording))
    part = samples[: len(samples) // 5]
    begin = perf_counter()
    peer_clf(peer_clf.preproc(part), classify_isp=True, sort_events=True)
    peer = (perf_counter() - begin) * len(samples) / len(part)
    lines.add(
        "default detector with pursuit",
        1.0,
        peer / ours,
        "times the peer",
        peer="REMoDNaV preproc + classify, timed on a fifth of the samples",
        peer_version=version("remodnav"),
        samples=len(recording),
        ours_msamples_per_s=round(len(recording) / ours / 1e6, 2),
    )


def bench_features(lines: Lines, recording: Recording) -> None:
    events = detect(recording, "ivt")
    event_features(recording.slice(0, 50_000), kind="saccade", method="ivt")
    event_features(recording.slice(0, 50_000), kind="fixation", method="ivt")

    def work() -> None:
        event_features(recording, kind="fixation", events=events)
        event_features(recording, kind="saccade", events=events)

    seconds, times = best_s(work), slower()
    lines.add(
        "features of all fixations and saccades",
        round(1.0 / times, 3),
        len(recording) / seconds / 1e6,
        "M samples/s",
        samples=len(recording),
        events=len(events),
        slower=round(times, 2),
    )


def _read_all(cohort: Cohort) -> int:
    return sum(len(recording) for recording in cohort)


def bench_reading(lines: Lines) -> None:
    data = os.environ.get("GAZEVEIL_DATA")
    folder = Path(data) / "gazecom" if data else None
    if folder is None or not folder.is_dir():
        print("GazeCom is not under GAZEVEIL_DATA: reading speed not measured", file=sys.stderr)
        return
    import gzip

    with tempfile.TemporaryDirectory() as temporary:
        total = 0
        for file in sorted(folder.rglob("*.arff.gz")):
            text = gzip.decompress(file.read_bytes())
            total += len(text)
            target = Path(temporary) / file.parent.name / file.name.removesuffix(".gz")
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(text)
        for name, path in (("ARFF", Path(temporary)), ("ARFF, gzipped, per byte of text", folder)):
            cohort = read(path)
            seconds, times = best_s(partial(_read_all, cohort), runs=2), slower()
            lines.add(
                f"reading GazeCom {name}",
                round(20.0 / times, 3),
                total / seconds / 1e6,
                "MB/s",
                files=len(cohort),
                megabytes=round(total / 1e6, 1),
                slower=round(times, 2),
            )


def bench_simulation(lines: Lines) -> None:
    for task, space in (("video", SCREEN), ("free-viewing", None)):
        simulate(1, 1, 10.0, RATE_HZ, task=task, space=space, seed=3)[0]
        cohort = simulate(10, 4, 60.0, RATE_HZ, task=task, space=space, seed=4)
        seconds, times = best_s(partial(_read_all, cohort), runs=2), slower()
        samples = 10 * 4 * 60 * int(RATE_HZ)
        lines.add(
            f"simulating {task}",
            round(1.0 / times, 3),
            samples / seconds / 1e6,
            "M samples/s",
            samples=samples,
            slower=round(times, 2),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    parser.add_argument(
        "--samples",
        type=int,
        default=10_000_000,
        help="samples for I-VT and features; a tenth for I-DT and REMoDNaV",
    )
    arguments = parser.parse_args()
    lines = Lines(arguments.json)
    recording = simulated(arguments.samples)
    tenth = recording.slice(0, max(100_000, arguments.samples // 10))
    bench_ivt(lines, recording)
    bench_idt(lines, tenth)
    bench_auto(lines, tenth)
    bench_features(lines, recording)
    bench_reading(lines)
    bench_simulation(lines)
    if not lines.close():
        sys.exit("a floor was missed")


if __name__ == "__main__":
    main()
