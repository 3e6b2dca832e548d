"""What DPGazeSynth is worth: density against Kaleido, and one report against every slot, as one
JSON line per figure.

    python benchmarks/dpgazesynth.py [--json FILE] [--only density population] [--repetitions 3]
    [--people 10000] [--page docs/explain/synthesis.md]

**density.** Recordings under GAZEVEIL_DATA (gazecom, eyenavgs_nthu): the density error of Ren et
al.'s (2024) Table 4 at equal epsilon, w and r, beside Kaleido and beside the published figures of
360_em and GazeBaseVR (base of the logarithm not stated there, bits here).

**population.** What `dpgazesynth-one-report` learns beside `dpgazesynth` under the same promise:
total variation of the transition model from the true one, and density error, for the real people
and for 10 to 10,000 simulated ones who watch 20 s at 30 Hz. Sums of unary answers are drawn with
their own law, as releases do, category by category instead of bit by bit. Total variation is
measured where transitions begin: the mean over true transitions of half the absolute difference of
the rows.

How fast it is: `benchmarks/synthesis.py`. `--pages` writes the tables into the pages of the two
mechanisms.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

import numpy as np

from gazeveil import Cohort, Screen, mechanism, read, simulate
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.synthesis.dpgazesynth.curator import collect, private_windows
from gazeveil.privacy.synthesis.dpgazesynth.grid import CellGrid, window_samples, windows_of
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import (
    DPGazeSynth,
    DPGazeSynthOneReport,
    Synthesis,
)
from gazeveil.privacy.synthesis.dpgazesynth.scheme import Streams
from gazeveil.utility.maps import cells, jensen_shannon
from lines import Lines, markdown, put_into

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
RECORDINGS = ("gazecom", "eyenavgs_nthu")
SETTINGS = tuple((epsilon, size) for size in (60, 30) for epsilon in (3, 1))
BITS = float(np.log(2.0))

#: Ren et al. 2024, Table 4: (epsilon, G) -> Kaleido and DPGazeSynth on 360_em, Kaleido and
#: DPGazeSynth on GazeBaseVR.
PUBLISHED = {
    (3, 60): (0.358, 0.120, 0.310, 0.009),
    (1, 60): (0.295, 0.122, 0.125, 0.011),
    (3, 30): (0.375, 0.130, 0.255, 0.016),
    (1, 30): (0.319, 0.136, 0.051, 0.017),
}

#: What must have the smaller density error, and what the larger.
PAIRS = (
    ("dpgazesynth", "kaleido"),
    ("dpgazesynth (published)", "kaleido (published)"),
    ("dpgazesynth-one-report", "dpgazesynth"),
)


def data_folder() -> Path | None:
    """Where the real recordings are."""
    path = Path(
        os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent.parent / "shared" / "data")
    )
    return path if path.exists() else None


def histograms(cohort: Cohort) -> dict[str, np.ndarray]:
    """Samples on 60 x 60 cells, by stimulus."""
    found: dict[str, np.ndarray] = {}
    for r in cohort:
        counts = np.bincount(
            cells(r.space, 60, 60, r.x_deg[r.valid], r.y_deg[r.valid]), minlength=3600
        ).astype(float)
        found[r.stimulus] = found[r.stimulus] + counts if r.stimulus in found else counts
    return found


def density(raw: Mapping[str, np.ndarray], released: Cohort) -> tuple[float, float]:
    """Divergence in bits: mean over stimuli, and of all gaze together (Ren et al. 2024)."""
    other, nothing = histograms(released), np.zeros(3600)
    each = [jensen_shannon(raw[s], other.get(s, nothing)) for s in raw]
    return (
        float(np.nanmean(each)) / BITS,
        jensen_shannon(sum(raw.values(), nothing), sum(other.values(), nothing)) / BITS,
    )


def texts(cohort: Cohort, epsilon: int, size: int) -> dict[str, str]:
    """The mechanisms of one line of Table 4 at equal epsilon, w and r."""
    space, w = cohort[0].space, window_samples(cohort[0].rate_hz, 0.5)
    r = f"{3 * min(space.width_deg, space.height_deg) / size:.6f}"
    return {
        "kaleido (published)": f"kaleido:epsilon={epsilon},w={w},r_deg={r},reading=published",
        "kaleido": f"kaleido:epsilon={epsilon},w={w},r_deg={r}",
        "kaleido-uniform": f"kaleido-uniform:epsilon={epsilon},w={w},r_deg={r}",
        "dpgazesynth (published)": (
            f"dpgazesynth:epsilon={epsilon},G={size},r_deg=table,reading=published"
        ),
        "dpgazesynth": f"dpgazesynth:epsilon={epsilon},G={size}",
        "dpgazesynth-one-report": f"dpgazesynth-one-report:epsilon={epsilon},G={size}",
    }


def density_errors(
    cohort: Cohort, epsilon: int, size: int, repetitions: int
) -> dict[str, tuple[float, float]]:
    """Density errors of every mechanism, means over repetitions: by stimulus, and of all gaze
    together.
    """
    raw, found = histograms(cohort), {}
    for name, text in texts(cohort, epsilon, size).items():
        runs = [
            density(raw, mechanism(text).release(cohort, seed=s).data) for s in range(repetitions)
        ]
        found[name] = (float(np.mean([r[0] for r in runs])), float(np.mean([r[1] for r in runs])))
    return found


def bench_density(lines: Lines, repetitions: int) -> str:
    """Table 4 on real recordings; the ratios must be above 1 by stimulus and in all."""
    folder, rows = data_folder(), []
    if folder is None:
        print("GAZEVEIL_DATA names no folder: densities not measured", file=sys.stderr)
        return ""
    for name in RECORDINGS:
        cohort = read(folder / name).load()
        for epsilon, size in SETTINGS:
            found = density_errors(cohort, epsilon, size, repetitions)
            theirs = dict(
                zip(
                    (
                        "kaleido, 360_em",
                        "dpgazesynth, 360_em",
                        "kaleido, GazeBaseVR",
                        "dpgazesynth, GazeBaseVR",
                    ),
                    PUBLISHED[epsilon, size],
                    strict=True,
                )
            )
            for better, worse in PAIRS:
                least = min(w / b for w, b in zip(found[worse], found[better], strict=True))
                lines.add(
                    f"{name}, density error of {worse} over that of {better}",
                    1.0,
                    least,
                    "times",
                    epsilon=epsilon,
                    G=size,
                    repetitions=repetitions,
                    jsd_by_stimulus_and_in_all={
                        k: [round(v, 4) for v in f] for k, f in found.items()
                    },
                    ren2024_table_4=theirs,
                )
            rows.append(
                [
                    name,
                    str(epsilon),
                    f"{size} ({300 / size:.0f} %)",
                    *(f"{found[k][1]:.3f}" for k in texts(cohort, epsilon, size)),
                ]
            )
    columns = (
        "recordings",
        "epsilon",
        "G (r)",
        "Kaleido published",
        "Kaleido",
        "Kaleido-uniform",
        "published",
        "corrected",
        "one report",
    )
    return markdown(columns, rows)


def true_steps(cohort: Cohort, grid: CellGrid) -> np.ndarray:
    """How often each step of the grid is taken, shape (cells, 8)."""
    truth = np.zeros(grid.transitions)
    for r in cohort:
        _, _, left, direction = windows_of(r, grid, window_samples(r.rate_hz, 0.5)).moves(grid)
        truth += np.bincount(grid.number[left, direction], minlength=grid.transitions)
    return np.where(grid.number >= 0, truth[np.maximum(grid.number, 0)], 0.0)


def total_variation(rows: np.ndarray, truth: np.ndarray) -> float:
    """Mean over true transitions of half the absolute difference of the rows of two chains, shape
    (cells, 8).
    """
    often = truth.sum(axis=1)
    return float(
        np.sum(
            often
            / often.sum()
            * np.abs(rows - truth / np.maximum(often, 1)[:, None]).sum(axis=1)
            / 2
        )
    )


def learned(
    base: Synthesis, cohort: Cohort, truth: np.ndarray, raw: Mapping[str, np.ndarray], seed: int
) -> dict[str, float]:
    """Total variation, density error of all gaze and what was learned."""
    private = list(private_windows(base.scheme(), cohort))
    model = collect(base.scheme(), "", private, Streams(seed, "population")).learn()
    released = base.release(cohort, seed=seed).data
    return {
        "windows": sum(len(w) for _, _, w in private),
        "tv": total_variation(model.transitions.rows, truth),
        "jsd": density(raw, released)[1],
        **model.learned,
    }


def compare(name: str, cohort: Cohort, epsilon: int, repetitions: int, lines: Lines) -> list[str]:
    """One line of the table of populations."""
    space = cohort[0].space
    grid = CellGrid(space, 60, isinstance(space, Sphere))
    truth, raw = true_steps(cohort, grid), histograms(cohort)
    even = total_variation(
        (grid.number >= 0) / (grid.number >= 0).sum(axis=1, keepdims=True), truth
    )
    runs = [
        [learned(m, cohort, truth, raw, seed) for seed in range(repetitions)]
        for m in (DPGazeSynth(epsilon), DPGazeSynthOneReport(epsilon))
    ]
    split, one = ({k: float(np.mean([r[k] for r in mine])) for k in mine[0]} for mine in runs)
    least = min(split["tv"] / one["tv"], split["jsd"] / one["jsd"])
    people = len({key[0] for key in cohort.keys})
    rounded = [{k: round(v, 4) for k, v in d.items()} for d in (split, one)]
    lines.add(
        "one-report beside dpgazesynth: the smaller of the ratios of total variation and of density"
        " error",
        1.0,
        least,
        "times",
        recordings=name,
        people=people,
        epsilon=epsilon,
        repetitions=repetitions,
        tv_of_even_steps=round(even, 4),
        dpgazesynth=rounded[0],
        one_report=rounded[1],
    )
    return [
        name,
        f"{people:,}",
        str(epsilon),
        f"{split['tv']:.2f}",
        f"{one['tv']:.2f}",
        f"{split['jsd']:.3f}",
        f"{one['jsd']:.3f}",
        f"{one['directions']:.0%}",
        f"{one['counts']:.0%}",
    ]


def bench_population(lines: Lines, repetitions: int, most: int) -> str:
    """Real people first, then 10, 100... simulated ones."""
    folder, rows = data_folder(), []
    for name in RECORDINGS if folder is not None else ():
        assert folder is not None
        cohort = read(folder / name).load()
        rows += [compare(name, cohort, epsilon, repetitions, lines) for epsilon in (1, 3)]
    people = simulate(most, 1, 20.0, 30.0, task="video", space=SCREEN, seed=7)
    count = 10
    while count <= most:
        cohort = people[:count].load()
        rows += [
            compare("simulated", cohort, epsilon, repetitions if count <= 100 else 1, lines)
            for epsilon in (1, 3)
        ]
        count *= 10
    columns = (
        "recordings",
        "people",
        "epsilon",
        "dpgazesynth, TV",
        "one report, TV",
        "dpgazesynth, JSD",
        "one report, JSD",
        "directions learned",
        "numbers of runs learned",
    )
    return markdown(columns, rows)


def main() -> None:
    """Run the sections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--only", nargs="+", choices=("density", "population"), default=["density", "population"]
    )
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    lines, begin = Lines(given.json), perf_counter()
    tables = {}
    if "density" in given.only:
        tables["density"] = bench_density(lines, given.repetitions)
    if "population" in given.only:
        tables["population"] = bench_population(lines, given.repetitions, given.people)
    for name, table in tables.items():
        if given.page is not None and table:
            put_into(given.page, name, table)
        else:
            print(table)
    print(f"{perf_counter() - begin:.0f} s", file=sys.stderr)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
