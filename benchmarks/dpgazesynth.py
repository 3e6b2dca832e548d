"""DPGazeSynth: speed of a release and of the curator, and with flags what it is worth: one JSON line per figure.

    python benchmarks/dpgazesynth.py [--json FILE] [--density] [--population]

Without flags: a simulated cohort the size of EHTask (30 people x 30 min at 100 Hz, 5.4 million samples), and messages added up by the curator. Noise comes
from the operating system, as in production. `--density` measures on recordings under GAZEVEIL_DATA (gazecom and eyenavgs) the density error of S003's
Table 4 against Kaleido at equal epsilon, w and r. `--population` measures on 10 to 10,000 simulated people what
`dpgazesynth-one-report` learns beside `dpgazesynth`.
"""

from __future__ import annotations

import argparse
import os
import sys
from fractions import Fraction
from pathlib import Path
from time import perf_counter

import numpy as np

from gazeveil import Cohort, Screen, mechanism, read, simulate
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.noise.local import OUE
from gazeveil.privacy.noise.rng import Words, source
from gazeveil.privacy.synthesis.dpgazesynth.curator import Curator
from gazeveil.privacy.synthesis.dpgazesynth.device import message
from gazeveil.privacy.synthesis.dpgazesynth.grid import Grid
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import DPGazeSynth, DPGazeSynthOneReport, _private, collect
from gazeveil.privacy.synthesis.dpgazesynth.packing import pack, tally, width
from gazeveil.privacy.synthesis.dpgazesynth.scheme import Streams
from gazeveil.privacy.synthesis.dpgazesynth.windows import windows_of
from gazeveil.utility.density import jensen_shannon
from gazeveil.utility.saliency import cells
from lines import Lines, best_s

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
EHTASK = {"people": 30, "stimuli": 12, "seconds": 150.0, "rate_hz": 100.0}
BITS = float(np.log(2.0))

#: What must have the smaller density error, and what the larger.
PAIRS = (("dpgazesynth", "kaleido"), ("dpgazesynth (published)", "kaleido (published)"), ("dpgazesynth-one-report", "dpgazesynth"))


def bench_release(lines: Lines) -> None:
    cohort = simulate(**EHTASK, task="video", seed=1).load()  # type: ignore[arg-type]
    samples = sum(len(r) for r in cohort)
    for text in ("dpgazesynth:epsilon=1", "dpgazesynth:epsilon=1,reading=published", "dpgazesynth-one-report:epsilon=1"):
        chosen = mechanism(text)
        chosen.release(cohort[:2])
        seconds = best_s(lambda chosen=chosen: chosen.release(cohort), runs=1)  # type: ignore[misc]
        lines.add(f"{chosen.title}, a cohort of EHTask's size, 20 s over its time", 1.0, 20.0 / seconds, "times", samples=samples, seconds=round(seconds, 2))


def bench_curator(lines: Lines) -> None:
    for zones, count in ((1, 4_000_000), (4, 2_000_000)):
        scheme = DPGazeSynthOneReport(1, zones=zones).scheme()
        oracle = scheme.questions(scheme.plan(SCREEN, 100.0))["steps"]
        some = pack(oracle, oracle.report(np.arange(20_000) % oracle.categories, Words(source(1))))
        packed = np.tile(some, (count // len(some), 1))
        tally(oracle, some)
        seconds = best_s(lambda packed=packed, oracle=oracle: tally(oracle, packed))  # type: ignore[misc]
        what = f"one-report answers of {width(oracle)} bytes ({oracle.name}, {oracle.categories} categories)"
        lines.add(f"curator, {what} added", 5.0, len(packed) / seconds / 1e6, "million reports per second")
    cohort = simulate(1, 1, 20 * 3600.0, 10.0, space=SCREEN, seed=1)
    chosen = DPGazeSynthOneReport(1)
    scheme, parameters = chosen.settled(None).scheme(), str(chosen)
    whole = message(scheme, parameters, cohort[0], Streams(None))

    def add() -> None:
        curator = Curator(scheme, parameters)
        assert curator.add(whole) == 1

    seconds = best_s(add)
    windows = int(cohort[0].duration_s * 2)
    lines.add("curator, whole one-report messages read, checked and added", 5.0, 2 * windows / seconds / 1e6, "million reports per second", bytes=len(whole))
    oue = OUE(Fraction(1, 25), Grid(SCREEN, 60, False).transitions + 1)
    rows = np.tile(pack(oue, oue.report(np.arange(50), Words(source(1)))), (40, 1))
    tally(oue, rows[:2])
    seconds = best_s(lambda: tally(oue, rows))
    bits = len(rows) * oue.categories / seconds / 1e9
    lines.add("curator, unary answers of 28,085 bits added", 1.0, bits, "billion bits per second", reports_per_s=round(len(rows) / seconds))


def histograms(cohort: Cohort) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for r in cohort:
        counts = np.bincount(cells(r.space, 60, 60, r.x_deg[r.valid], r.y_deg[r.valid]), minlength=3600).astype(float)
        found[r.stimulus] = found[r.stimulus] + counts if r.stimulus in found else counts
    return found


def density(raw: dict[str, np.ndarray], released: Cohort) -> tuple[float, float]:
    """Divergence in bits: mean over stimuli, and of all gaze together (S003)."""
    other, nothing = histograms(released), np.zeros(3600)
    each = [jensen_shannon(raw[s], other.get(s, nothing)) for s in raw]
    return float(np.nanmean(each)) / BITS, jensen_shannon(sum(raw.values(), nothing), sum(other.values(), nothing)) / BITS


def bench_density(lines: Lines, seeds: int = 3) -> None:
    if not os.environ.get("GAZEVEIL_DATA"):
        print("GAZEVEIL_DATA is not set: densities not measured", file=sys.stderr)
        return
    for name in ("gazecom", "eyenavgs_nthu"):
        cohort = read(Path(os.environ["GAZEVEIL_DATA"]) / name).load()
        raw, space = histograms(cohort), cohort[0].space
        w = round(0.5 * cohort[0].rate_hz)
        for epsilon in (3, 2, 1):
            for size in (60, 30):
                r = f"{3 * min(space.width_deg, space.height_deg) / size:.6f}"
                texts = {
                    "kaleido": f"kaleido:epsilon={epsilon},w={w},r_deg={r}",
                    "kaleido (published)": f"kaleido:epsilon={epsilon},w={w},r_deg={r},reading=published",
                    "kaleido-uniform": f"kaleido-uniform:epsilon={epsilon},w={w},r_deg={r}",
                    "dpgazesynth (published)": f"dpgazesynth:epsilon={epsilon},G={size},reading=published",
                    "dpgazesynth": f"dpgazesynth:epsilon={epsilon},G={size}",
                    "dpgazesynth-one-report": f"dpgazesynth-one-report:epsilon={epsilon},G={size}",
                }
                found = {}
                for key, text in texts.items():
                    runs = [density(raw, mechanism(text).release(cohort, seed=s).data) for s in range(seeds)]
                    found[key] = tuple(float(v) for v in np.mean(runs, axis=0))
                figures = {k: [round(v, 4) for v in f] for k, f in found.items()}
                for better, worse in (
                    ("dpgazesynth", "kaleido"),
                    ("dpgazesynth (published)", "kaleido (published)"),
                    ("dpgazesynth-one-report", "dpgazesynth"),
                ):
                    least = min(found[worse][i] / found[better][i] for i in (0, 1))
                    lines.add(f"{name}, density error of {worse} over that of {better}", 1.0, least, "times", epsilon=epsilon, G=size, r_deg=float(r), w=w,
                              jsd_mean_and_pooled=figures)  # fmt: skip


def total_variation(rows: np.ndarray, truth: np.ndarray) -> float:
    """Mean over transitions of half the absolute difference of the rows of two chains, shape (cells, 8)."""
    often = truth.sum(axis=1)
    return float(np.sum(often / often.sum() * np.abs(rows - truth / np.maximum(often, 1)[:, None]).sum(axis=1) / 2))


def bench_population(lines: Lines, most: int) -> None:
    people = simulate(most, 1, 20.0, 30.0, task="video", space=SCREEN, seed=7)
    grid = Grid(SCREEN, 60, isinstance(SCREEN, Sphere))
    count = 10
    while count <= most:
        cohort = people[:count].load()
        truth = np.zeros(grid.transitions)
        for r in cohort:
            _, _, left, direction = windows_of(r, grid, 15).moves(grid)
            truth += np.bincount(grid.number[left, direction], minlength=grid.transitions)
        table = np.where(grid.number >= 0, truth[np.maximum(grid.number, 0)], 0.0)
        raw = histograms(cohort)
        for epsilon in (1, 3):
            rows: dict[str, dict[str, float]] = {}
            for base in (DPGazeSynth(epsilon), DPGazeSynthOneReport(epsilon)):
                private = list(_private(base.scheme(), cohort))
                chosen = base.settled(sum(len(w) for _, _, w in private))
                model = collect(chosen.scheme(), "", private, Streams(3, "population")).learn()
                released = chosen.release(cohort, seed=3).data
                rows[base.name] = {"tv": round(total_variation(model.transitions.rows, table), 4), "jsd": round(density(raw, released)[1], 4), **model.learned}
            even = (grid.number >= 0) / (grid.number >= 0).sum(axis=1, keepdims=True)
            split, one = rows["dpgazesynth"], rows["dpgazesynth-one-report"]
            least = min(split["tv"] / one["tv"], split["jsd"] / one["jsd"])
            lines.add("one-report beside dpgazesynth: the smaller of the ratios of total variation and of density error", 1.0, least, "times", people=count,
                      windows=40 * count, epsilon=epsilon, tv_of_even_steps=round(total_variation(even, table), 4), **rows)  # fmt: skip
        count *= 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--density", action="store_true")
    parser.add_argument("--population", action="store_true")
    parser.add_argument("--people", type=int, default=10_000)
    given = parser.parse_args()
    lines = Lines(given.json)
    begin = perf_counter()
    if given.density:
        bench_density(lines)
    if given.population:
        bench_population(lines, given.people)
    if not (given.density or given.population):
        bench_release(lines)
        bench_curator(lines)
    print(f"{perf_counter() - begin:.0f} s", file=sys.stderr)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
