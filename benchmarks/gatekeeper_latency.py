"""What protection adds to the delay of a stream, per mechanism at 60, 90, 120 and 250 Hz; and
foveated rendering in its own terms.

    python benchmarks/gatekeeper_latency.py [--json FILE]
    [--page docs/results/gatekeeper_latency.md]
    [--scenes 12]

*Delay of the method.* Two runs have the same noise; in one of them the gaze steps by 10 degrees, at
another phase in each stream. How far the two runs are apart, over how far they are in the end, is
the response to the step, and the area above it is the mean delay. No noise is in this figure. A
mechanism that lets fewer samples through (`temporal` without `hold`) would add the time to the next
one; here it holds.

*Time of a push.* One sample at a time through an open session, by the clock: median and 99th
percentile, beside the same for a session that does nothing, measured in turns in the same run.

*Foveated rendering.* People of EyeNavGS (Quest Pro, real eyes) look around; at each frame the
renderer draws the sharp region around the sample released last; the frame is good if the true gaze
at that time is inside. Shares of frames are means over people. Needs GAZEVEIL_DATA.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns

import numpy as np
from numpy.typing import NDArray

from gazeveil import Recording, Sphere, mechanism, mechanisms, read, simulate
from gazeveil.gaze.geometry import distance_deg
from gazeveil.privacy.stream.mechanism import StreamMechanism
from streams import Nothing

RATES_HZ = (60.0, 90.0, 120.0, 250.0)
FRAMES_HZ = (60.0, 90.0, 120.0)
#: What the page shows of them.
PUSH_HZ, PAGE_HZ = (60.0, 250.0), 90.0
RADII_DEG = (10.0, 15.0, 20.0)
STEP_DEG = 10.0
#: What the figures mean, at the head of the page; renew it with them.
MEANING = (
    "**`gaussian`, `spatial`, `kalman` and `temporal` delay gaze by at most 17 ms and keep at least"
    " 95 % of frames sharp; `smoothing`, the Kaleido family and `clock-render` delay it by 20 to"
    " 322 ms and keep 15 to 79 %.**"
)

#: Half a second of samples is Kaleido's own window.
WINDOW_S = 0.5

TEXTS = (
    "gaussian:sigma_deg=2",
    "temporal:K=3,hold=True",
    "spatial:L=64",
    "smoothing",
    "kalman",
    "kaleido:epsilon=3,w={w},r_deg=2",
    "kaleido-uniform:epsilon=3,w={w},r_deg=2",
    "clock-render:epsilon=3,r_deg=2",
)


def texts() -> list[str]:
    """Those of the mechanisms that are there."""
    return [text for text in TEXTS if text.partition(":")[0] in mechanisms()]


def stream_mechanism(text: str, rate_hz: float) -> StreamMechanism:
    found = mechanism(text.format(w=round(rate_hz * WINDOW_S)))
    assert isinstance(found, StreamMechanism)
    return found


def shown(text: str) -> str:
    return text.replace("w={w}", "w=0.5 s")


def delay_ms(
    text: str, rate_hz: float, streams: int = 400, before_s: float = 1.5, after_s: float = 1.5
) -> float:
    """Mean delay: area above the response to a step, by two runs with the same noise."""
    n0, n1 = round(before_s * rate_hz), round(after_s * rate_hz)
    phases = np.arange(streams) % max(1, round(0.5 * rate_hz))
    n = n0 + n1 + int(phases.max())
    t = np.broadcast_to(
        np.round(np.arange(n) * (1e9 / rate_hz)).astype(np.int64), (streams, n)
    ).copy()
    rng = np.random.default_rng(1)
    # a little tremor, so that detectors of fixations see an eye and not a constant
    x = 175.0 + 0.02 * rng.standard_normal((streams, n))
    y = 90.0 + 0.02 * rng.standard_normal((streams, n))
    at = n0 + phases
    stepped = x + STEP_DEG * (np.arange(n)[None, :] >= at[:, None])
    ok = np.ones((streams, n), dtype=np.bool_)
    chosen = stream_mechanism(text, rate_hz)
    outs = [
        chosen.open_many(streams, rate_hz, Sphere(), seed=7).push(t, moved, y, ok)
        for moved in (x, stepped)
    ]
    assert outs[0][1].shape == (streams, n), (
        "a mechanism that leaves samples out has no response at every sample"
    )
    apart = distance_deg(
        Sphere(), outs[0][1].ravel(), outs[0][2].ravel(), outs[1][1].ravel(), outs[1][2].ravel()
    ).reshape(streams, n)
    response = np.stack(
        [np.clip(apart[s, a : a + n1] / STEP_DEG, 0.0, 1.0) for s, a in enumerate(at)]
    )
    mean = np.nanmean(response, axis=0)
    plateau = float(mean[-round(0.25 * n1) :].mean())
    # not clipped at 1: what noise is left then cancels instead of adding up
    return max(0.0, float(np.sum(1.0 - mean / plateau) / rate_hz * 1000.0))


def push_times_us(rate_hz: float, pushes: int) -> dict[str, tuple[float, float]]:
    """Median and 99th percentile of one push of one sample in microseconds, for each mechanism and
    for a session that does nothing.
    """
    recording = simulate(1, 1, pushes / rate_hz + 1, rate_hz, seed=3)[0]
    t, x, y, v = (
        recording.t_ns.tolist(),
        recording.x_deg.tolist(),
        recording.y_deg.tolist(),
        recording.valid.tolist(),
    )
    every = {"nothing": Nothing(), **{text: stream_mechanism(text, rate_hz) for text in texts()}}
    sessions = {name: chosen.open(rate_hz, Sphere()) for name, chosen in every.items()}
    taken: dict[str, list[int]] = {name: [] for name in sessions}
    warm = min(200, pushes // 4)
    gc.collect()
    gc.disable()
    try:
        # in turns of 50, so that what else the machine does falls on all alike
        for start in range(0, pushes, 50):
            for name, session in sessions.items():
                for i in range(start, min(start + 50, pushes)):
                    begin = perf_counter_ns()
                    session.push(t[i], x[i], y[i], v[i])
                    if i >= warm:
                        taken[name].append(perf_counter_ns() - begin)
    finally:
        gc.enable()
    return {
        name: (float(np.median(times)) / 1000, float(np.percentile(times, 99)) / 1000)
        for name, times in taken.items()
    }


def true_gaze(
    recording: Recording, at_ns: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gaze at any time: on the way from one good sample to the next, NaN in gaps of more than two
    samples.
    """
    good = recording.valid
    t = recording.t_ns[good]
    vectors = Sphere().vectors(recording.x_deg[good], recording.y_deg[good])
    after = np.clip(np.searchsorted(t, at_ns), 1, len(t) - 1)
    gap = t[after] - t[after - 1]
    share = ((at_ns - t[after - 1]) / np.maximum(gap, 1))[:, None]
    near = (gap <= 2.5e9 / recording.rate_hz) & (share[:, 0] >= 0) & (share[:, 0] <= 1)
    return Sphere().degrees(
        np.where(near[:, None], vectors[after - 1] * (1 - share) + vectors[after] * share, np.nan)
    )


def inside(recording: Recording, text: str | None) -> dict[tuple[float, float], tuple[int, int]]:
    """Per frame rate and radius: frames with the true gaze inside the sharp region, and all frames
    with a true gaze.
    """
    if text is None:
        t, x, y, valid = recording.t_ns, recording.x_deg, recording.y_deg, recording.valid
    else:
        session = stream_mechanism(text, recording.rate_hz).open(recording.rate_hz, recording.space)
        _, x, y, valid = session.push(
            recording.t_ns, recording.x_deg, recording.y_deg, recording.valid
        )
        # a sample is there when the tracker gave it, whatever time it carries
        t = recording.t_ns
    t, x, y = t[valid], x[valid], y[valid]
    counts: dict[tuple[float, float], tuple[int, int]] = {}
    for frames_hz in FRAMES_HZ:
        frames = recording.t_ns[0] + np.round(
            np.arange(round(recording.duration_s * frames_hz)) * (1e9 / frames_hz)
        ).astype(np.int64)
        last = np.searchsorted(t, frames, side="right") - 1
        true_x, true_y = true_gaze(recording, frames)
        seen = np.isfinite(true_x) & (last >= 0)
        apart = distance_deg(Sphere(), true_x[seen], true_y[seen], x[last[seen]], y[last[seen]])
        for radius in RADII_DEG:
            counts[frames_hz, radius] = (
                int(np.count_nonzero(apart <= radius)),
                int(np.count_nonzero(seen)),
            )
    return counts


def foveated(
    folder: Path, scenes: int
) -> tuple[dict[str, dict[tuple[float, float], tuple[float, float, float]]], str]:
    """Per mechanism, frame rate and radius: mean share over people and the interval of that mean;
    and which recordings.
    """
    cohort = read(folder, "eyenavgs")
    names = sorted(cohort.stimuli)[:: max(1, len(cohort.stimuli) // scenes)][:scenes]
    recordings = [r for r in cohort.select(stimuli=names) if r.valid.mean() > 0.5]
    people = sorted({r.person for r in recordings})
    rates = sorted({round(r.rate_hz) for r in recordings})
    said = (
        f"{len(people)} people, {len(names)} scenes, {len(recordings)} recordings at {min(rates)}"
        f" to {max(rates)} Hz"
    )
    result = {}
    for text in (None, *texts()):
        shares: dict[tuple[float, float], list[float]] = {}
        by_person: dict[str, dict[tuple[float, float], list[tuple[int, int]]]] = {
            p: {} for p in people
        }
        for recording in recordings:
            for key, pair in inside(recording, text).items():
                by_person[recording.person].setdefault(key, []).append(pair)
        for found in by_person.values():
            for key, pairs in found.items():
                shares.setdefault(key, []).append(
                    sum(a for a, _ in pairs) / max(1, sum(b for _, b in pairs))
                )
        rng = np.random.default_rng(5)
        drawn = rng.integers(0, len(people), (2000, len(people)))
        result[text or "none"] = {
            k: (
                float(np.mean(v)),
                *(float(q) for q in np.percentile(np.array(v)[drawn].mean(axis=1), [2.5, 97.5])),
            )
            for k, v in shares.items()
        }
    return result, said


def _most_apart(value: Callable[..., dict[str, object]]) -> float:
    """Largest difference in points between a printed mean and that at the rate on the page."""

    def mean(text: str, frames_hz: float, radius_deg: float) -> float:
        found = value("inside", text, frames_hz=frames_hz, radius_deg=radius_deg)
        return round(100 * float(str(found["value"])), 1)

    return max(
        abs(mean(text, f, r) - mean(text, PAGE_HZ, r))
        for text in ("none", *texts())
        for f in FRAMES_HZ
        for r in RADII_DEG
    )


def page(rows: list[dict[str, object]], said: str) -> str:
    """The manual's page."""
    lines = [
        "# Latency added, and foveated rendering in its own terms",
        "",
        MEANING,
        "",
        (
            "Made by `python benchmarks/gatekeeper_latency.py --page"
            " docs/results/gatekeeper_latency.md`."
        ),
        "",
        "## Delay of the method",
        "",
        (
            "How much later a released sample tells of a movement, in ms, on however fast a"
            f" machine: the area above the response to a step of {STEP_DEG:g} degrees (400"
            " streams). No mechanism holds samples back. `smoothing` averages over a fixed number"
            " of samples; the Kaleido family and `clock-render` look at gaze at public times only."
        ),
        "",
        "| mechanism | " + " | ".join(f"{r:g} Hz" for r in RATES_HZ) + " |",
        "|---|" + "---|" * len(RATES_HZ),
    ]

    def value(figure: str, text: str, **more: object) -> dict[str, object]:
        return next(
            r
            for r in rows
            if r["figure"] == figure
            and r["mechanism"] == text
            and all(r[k] == v for k, v in more.items())
        )

    delays = {
        text: [f"{value('delay', text, rate_hz=r)['value']:.1f}" for r in RATES_HZ]
        for text in texts()
    }
    lines += [f"| `{shown(text)}` | " + " | ".join(cells) + " |" for text, cells in delays.items()]
    lines += [
        "",
        "## Time of one push",
        "",
        (
            "Median / 99th percentile of a push of one sample, as a multiple of the median of a"
            " session that does nothing (its row is in microseconds). In brackets: the 99th"
            " percentile as a share of the time between two samples."
        ),
        "",
        "| mechanism | " + " | ".join(f"{r:g} Hz" for r in PUSH_HZ) + " |",
        "|---|" + "---|" * len(PUSH_HZ),
    ]
    base = {r: value("push", "nothing", rate_hz=r) for r in PUSH_HZ}
    lines.append(
        "| a session that does nothing | "
        + " | ".join(f"{base[r]['value']:.1f} / {base[r]['p99']:.1f} µs" for r in PUSH_HZ)
        + " |"
    )
    for text in texts():
        cells = []
        for r in PUSH_HZ:
            one, empty = value("push", text, rate_hz=r), float(str(base[r]["value"]))
            share = float(str(one["p99"])) * r / 1e6
            cells.append(
                f"{float(str(one['value'])) / empty:.1f} / {float(str(one['p99'])) / empty:.1f}"
                f" ({100 * share:.2f} %)"
            )
        lines.append(f"| `{shown(text)}` | " + " | ".join(cells) + " |")
    lines += ["", "## Foveated rendering", ""]
    if not said:
        lines += ["The recordings were not there when this page was written.", ""]
        return "\n".join(lines)
    lines += [
        (
            "A renderer draws each frame sharp within a radius around the sample released last."
            " Share of frames in per cent whose true gaze lies inside, mean over participants with"
            " 95 % CI (participants drawn again), at"
            f" {PAGE_HZ:g} Hz; at {', '.join(f'{f:g}' for f in FRAMES_HZ if f != PAGE_HZ)} Hz the"
            f" means differ by at most {_most_apart(value):.1f}. EyeNavGS, real headset gaze:"
            f" {said}."
        ),
        "",
        "| mechanism | " + " | ".join(f"{r:g} degrees" for r in RADII_DEG) + " |",
        "|---|" + "---|" * len(RADII_DEG),
    ]
    for text in ("none", *texts()):
        cells = []
        for radius in RADII_DEG:
            one = value("inside", text, frames_hz=PAGE_HZ, radius_deg=radius)
            mean, low, high = (100 * float(str(one[k])) for k in ("value", "low", "high"))
            cells.append(f"{mean:.1f} ({low:.1f}\N{EN DASH}{high:.1f})")
        lines.append(f"| `{shown(text)}` | " + " | ".join(cells) + " |")
    lines += [
        "",
        (
            "- What `none` lacks to 100 is the age of the last sample. A Kaleido window is half a"
            " second of samples."
        ),
        (
            "- The Kaleido family promises most and needs a large sharp region; `gaussian` and"
            " `spatial` keep nearly all frames and promise less."
        ),
        (
            "- Foveated rendering needs gaze itself, so no preset is for it: it belongs into the"
            " platform's compositor, which needs no grant."
        ),
        (
            "- Frame times are a side channel that no mechanism here covers: they tell how much of"
            " the picture was sharp."
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--scenes", type=int, default=12)
    parser.add_argument("--pushes", type=int, default=4000)
    given = parser.parse_args()
    rows: list[dict[str, object]] = []

    def add(**row: object) -> None:
        rows.append({k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in row.items()})
        print(json.dumps(rows[-1]), flush=True)

    for rate in RATES_HZ:
        for text in texts():
            add(figure="delay", mechanism=text, rate_hz=rate, value=delay_ms(text, rate), unit="ms")
    for rate in RATES_HZ:
        for text, (median, p99) in push_times_us(rate, given.pushes).items():
            add(figure="push", mechanism=text, rate_hz=rate, value=median, p99=p99, unit="us")
    said = ""
    data = (
        Path(
            os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent / ".." / "shared" / "data")
        )
        / "eyenavgs_nthu"
    )
    if data.is_dir():
        found, said = foveated(data, given.scenes)
        for text, shares in found.items():
            for (frames, radius), (mean, low, high) in shares.items():
                add(
                    figure="inside",
                    mechanism=text,
                    frames_hz=frames,
                    radius_deg=radius,
                    value=mean,
                    low=low,
                    high=high,
                    unit="share",
                    people=said,
                )
    else:
        print("no EyeNavGS recordings under GAZEVEIL_DATA: foveated rendering is left out")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    if given.page:
        given.page.parent.mkdir(parents=True, exist_ok=True)
        given.page.write_text(page(rows, said), encoding="utf-8")


if __name__ == "__main__":
    main()
