"""clock-render beside Kaleido: speed in the same run, errors at the same promise, and the table of
a finished study.

    python benchmarks/clock_render.py [--json FILE] [--samples 1000000]          speed python
    benchmarks/clock_render.py --errors median errors on recordings under GAZEVEIL_DATA python
    benchmarks/clock_render.py --table results/clock-gazecom              the table of `gazeveil
    reproduce clock-gazecom --out ...`

**speed.** One long simulated stream in one block, noise from the operating system, seconds of the
processor (all threads together), the fastest of several turns; Kaleido's time over ours.

**errors.** Twelve recordings each of GazeCom and EyeNavGS: median angle between recorded and
released gaze, and the root of the mean square, averaged over recordings, at equal epsilon, window
and r.

**ablation.** GazeCom, offline, two independent releases, 75/25 by clip, four splits: people found
by linkage (summary and extended features) and the median error at several budgets, and with the
mean place of every recording replaced by the crowd's mean at that clip, which is post-processing.

**table.** People found by the best of the study's attackers (mean over repetitions), median error
in degrees, dwell times, divergence of saliency maps.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from time import process_time

import numpy as np

from gazeveil import Cohort, Recording, Screen, Sphere, read, simulate
from gazeveil.attacks.registry import attack
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.geometry import Space, distance_deg
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.stream.kaleido.mechanism import Kaleido, KaleidoUniform
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.synthesis.clock.render import ClockRender
from lines import Lines

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
TURNS = 9

#: What the ablation compares: label, mechanism, whether the mean place of recordings is replaced.
ABLATION = (
    ("epsilon 10", "clock-render:epsilon=10,r_deg=2,form=offline", False),
    ("epsilon 10, mean place of the crowd", "clock-render:epsilon=10,r_deg=2,form=offline", True),
    ("epsilon 10, no drift", "clock-render:epsilon=10,r_deg=2,form=offline,pursuit=False", False),
    ("epsilon 5", "clock-render:epsilon=5,r_deg=2,form=offline", False),
    ("epsilon 2.5", "clock-render:epsilon=2.5,r_deg=2,form=offline", False),
    (
        "epsilon 1, slots of half a second",
        "clock-render:epsilon=1,r_deg=2,form=offline,slot_s=0.5",
        False,
    ),
)


def gaze(samples: int, rate_hz: float, space: Space) -> tuple[np.ndarray, ...]:
    """One long simulated stream without losses."""
    recording = simulate(
        1, 1, min(samples, 200_000) / rate_hz, rate_hz, task="video", space=space, seed=1
    )[0]
    keep = recording.valid
    times = -(-samples // int(keep.sum()))
    x, y = (np.tile(a[keep], times)[:samples] for a in (recording.x_deg, recording.y_deg))
    return (
        (np.arange(samples) * (1e9 / rate_hz)).astype(np.int64),
        x,
        y,
        np.ones(samples, dtype=np.bool_),
    )


def bench_speed(lines: Lines, samples: int) -> None:
    for rate_hz in (120.0, 250.0):
        for space in (SCREEN, Sphere()):
            data = gaze(samples, rate_hz, space)
            mechanisms: dict[str, StreamMechanism] = {
                "kaleido": Kaleido(1, int(rate_hz / 2), 2),
                "clock-render": ClockRender(1, 2),
            }
            best = dict.fromkeys(mechanisms, float("inf"))
            for turn in range(
                TURNS + 1
            ):  # in turns, so that a busy moment of the machine hits both; the first compiles
                for name, one in mechanisms.items():
                    begin = process_time()
                    one.open(rate_hz, space).push(*data)
                    if turn:
                        best[name] = min(best[name], process_time() - begin)
            what = (
                f"clock-render on a {type(space).__name__.lower()} at {rate_hz:g} Hz, kaleido's"
                " processor time over ours"
            )
            ours = best["clock-render"]
            lines.add(
                what,
                0.8,
                best["kaleido"] / ours,
                "times",
                samples=samples,
                ours_msamples_per_s=round(samples / ours / 1e6, 1),
            )


def errors_deg(recordings: list[Recording], one: StreamMechanism) -> tuple[float, float]:
    """Median error, and root of the mean square, of each recording; means over recordings."""
    found = []
    for i, r in enumerate(recordings):
        out = one.release(r, seed=i).data
        both = r.valid & out.valid
        d = distance_deg(r.space, r.x_deg[both], r.y_deg[both], out.x_deg[both], out.y_deg[both])
        found.append((float(np.median(d)), float(np.sqrt(np.mean(d * d)))))
    return tuple(np.mean(found, axis=0).tolist())  # type: ignore[return-value]


def bench_errors(lines: Lines) -> None:
    root = Path(
        os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent.parent / "shared" / "data")
    )
    for name in ("gazecom", "eyenavgs_nthu"):
        if not (root / name).exists():
            print(f"{name} is not under GAZEVEIL_DATA: errors not measured", file=sys.stderr)
            continue
        cohort = read(root / name)
        some = [cohort[i] for i in range(0, len(cohort), max(1, len(cohort) // 12))][:12]
        for epsilon, slot_s in ((10, 0.25), (5, 0.25), (2.5, 0.25), (1, 0.5)):
            w = ClockRender(epsilon, 2).clock(some[0].rate_hz).window
            others = {
                cls.name: errors_deg(some, cls(epsilon, w, 2)) for cls in (Kaleido, KaleidoUniform)
            }
            nearest = min(others, key=lambda n: others[n][0])
            for form in ("offline", "stream"):
                ours = errors_deg(some, ClockRender(epsilon, 2, slot_s, form=form))
                what = (
                    f"clock-render ({form}) on {name}, smallest median error of Kaleido's family"
                    " over ours"
                )
                more = {n: [round(v, 2) for v in e] for n, e in others.items()}
                lines.add(
                    what,
                    1.0 if form == "offline" else 0.0,
                    others[nearest][0] / ours[0],
                    "times",
                    epsilon=epsilon,
                    slot_s=slot_s,
                    r_deg=2,
                    w=w,
                    median_deg=round(ours[0], 2),
                    rms_deg=round(ours[1], 2),
                    nearest=nearest,
                    others=more,
                )


def recentred(cohort: Cohort) -> Cohort:
    """Every recording moved so that its mean place is the crowd's at that stimulus; for screens."""
    found: dict[str, list[Recording]] = {}
    for r in cohort:
        found.setdefault(r.stimulus, []).append(r)
    out = []
    for recordings in found.values():
        means = np.array([[r.x_deg[r.valid].mean(), r.y_deg[r.valid].mean()] for r in recordings])
        for r, (x, y) in zip(recordings, means.mean(axis=0) - means, strict=True):
            wide, high = r.space.width_deg / 2, r.space.height_deg / 2
            out.append(
                r.with_(
                    x_deg=np.clip(r.x_deg + x, -wide, wide), y_deg=np.clip(r.y_deg + y, -high, high)
                )
            )
    return Cohort(out)


def bench_ablation(lines: Lines) -> None:
    root = Path(
        os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent.parent / "shared" / "data")
    )
    cohort = read(root / "gazecom").load()
    raw = {r.key: r for r in cohort}
    learnt = round(0.75 * len(cohort.stimuli))
    for label, text, change in ABLATION:
        releases = [mechanism(text).release(cohort, seed=s).data for s in (1, 2)]
        gallery, probe = (RecordingSet(recentred(d) if change else d) for d in releases)
        assert gallery.cohort is not None
        errors = []
        for out in gallery.cohort:
            r = raw[out.key]
            both = r.valid & out.valid
            errors.append(
                float(
                    np.median(
                        distance_deg(
                            r.space, r.x_deg[both], r.y_deg[both], out.x_deg[both], out.y_deg[both]
                        )
                    )
                )
            )
        shares = {}
        for name in ("linkage", "linkage:features=extended"):
            orders = [
                np.random.default_rng([7, n]).permutation(cohort.stimuli).tolist() for n in range(4)
            ]
            found = [
                attack(name)
                .identify(gallery.select(stimuli=o[:learnt]), probe.select(stimuli=o[learnt:]), n)
                .credit()
                .mean()
                for n, o in enumerate(orders)
            ]
            shares[name] = round(float(np.mean(found)), 3)
        lines.keep(
            {
                "figure": f"clock-render on gazecom, {label}",
                "median_deg": round(float(np.mean(errors)), 2),
                **shares,
                "people": len(cohort.people),
                "met": True,
            }
        )


def table(folder: Path) -> None:
    """Print the table of a finished study."""
    import polars as pl

    parts = sorted(folder.rglob("results.parquet"))
    if not parts:
        sys.exit(
            f"There is no results.parquet under {folder}. Run the study first: gazeveil reproduce"
            f" clock-gazecom --out {folder}"
        )
    frame = pl.concat([pl.read_parquet(p) for p in parts], how="diagonal_relaxed").unique(
        maintain_order=True
    )
    print(
        "| mechanism | found, best attacker | which | median error (deg) | dwell RMSE (s) |"
        " saliency KL | density JSD |\n|---|---|---|---|---|---|---|"
    )
    for (name, parameters), rows in frame.group_by(
        ["mechanism", "parameters"], maintain_order=True
    ):

        def figure(metric: str, rows: pl.DataFrame = rows) -> str:
            value = rows.filter(pl.col("metric") == metric)["value"].mean()
            return "" if value is None else f"{value:.3g}"

        rates = (
            rows.filter(pl.col("metric") == "identification_rate")
            .group_by("attack", maintain_order=True)
            .agg(pl.col("value").mean())
        )
        rates = rates.sort("value", descending=True)
        best = (f"{100 * rates['value'][0]:.0f} %", rates["attack"][0]) if len(rates) else ("", "")
        figures = (figure(m) for m in ("median_error_deg", "dwell_rmse_s", "kl", "jsd"))
        print(" | ".join((f"| {name} {parameters or ''}".rstrip(), *best, *figures)) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument(
        "--errors", action="store_true", help="errors on recordings instead of speed"
    )
    parser.add_argument(
        "--ablation", action="store_true", help="what is left of people, on GazeCom"
    )
    parser.add_argument(
        "--table", type=Path, help="folder of a finished study: print its table and nothing else"
    )
    arguments = parser.parse_args()
    if arguments.table is not None:
        table(arguments.table)
        return
    lines = Lines(arguments.json)
    if arguments.errors:
        bench_errors(lines)
    elif arguments.ablation:
        bench_ablation(lines)
    else:
        bench_speed(lines, arguments.samples)
    if not lines.close():
        sys.exit("a floor was missed")


if __name__ == "__main__":
    main()
