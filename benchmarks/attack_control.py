"""Two controls of the figures about people: false alarms of the battery, coverage of intervals.

    GAZEVEIL_DATA=... python benchmarks/attack_control.py [--studies 200] [--cohorts 100]
        [--workers 2] [--out FOLDER] [--page docs/results/attackers.md]

False alarms: in each null study the names of GazeCom's recordings are dealt anew within each
stimulus, so that clips of one name are of different people, and the whole strong battery attacks
the raw recordings three times. The share of studies whose p is at most 0.05 must lie between 1 and
8 %. Coverage: cohorts of simulated people are attacked one by one; the share of their intervals
that hold the mean rate of all cohorts must lie between 93 and 99 %.

Each study is a line of JSON in the folder of `--out`; a run that was stopped goes on there.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from scipy.stats import beta

import gazeveil
from gazeveil.gaze.cohort import Cohort
from lines import markdown, put_into

REPETITIONS = 3
RATE = "identification_rate"
#: Attackers and releases of the simulated cohorts.
ATTACKS = ("rbfn", "linkage", "steps")
RELEASES = ("gaussian:sigma_deg=3",)


def dealt(cohort: Cohort, seed: int) -> Cohort:
    """Return the recordings with names dealt anew within each stimulus."""
    rng = np.random.default_rng(seed)
    recordings = []
    for stimulus in sorted(cohort.stimuli):
        own = [r for r in cohort if r.stimulus == stimulus]
        names = rng.permutation([r.person for r in own])
        recordings += [r.with_(person=str(n)) for r, n in zip(own, names, strict=True)]
    return Cohort(recordings)


def null_study(data: str, seed: int) -> dict[str, object]:
    """Attack GazeCom under dealt names: the battery's p and the rate of each attacker."""
    cohort = dealt(gazeveil.read(Path(data) / "gazecom").load(), seed)
    results = gazeveil.evaluate(cohort, repetitions=REPETITIONS, seed=seed, executor=1)
    (row,) = results.strongest_against().iter_rows(named=True)
    rates = results.frame.filter(metric=RATE).select("attack", "value").rows()
    return {"seed": seed, "p": row["p_value"], "rates": dict(rates)}


def simulated_cohort(seed: int) -> dict[str, object]:
    """Attack 16 simulated people, raw and protected: each rate with its interval."""
    cohort = gazeveil.simulate(16, 8, 10.0, 60.0, seed=seed)
    results = gazeveil.evaluate(
        cohort, list(RELEASES), list(ATTACKS), repetitions=REPETITIONS, seed=seed, executor=1
    )
    rows = results.frame.filter(metric=RATE).sort("mechanism", "scenario", "attack")
    keys = ("mechanism", "scenario", "attack")
    return {
        "seed": seed,
        "cells": [
            [" ".join(str(row[k]) for k in keys), row["value"], row["low"], row["high"]]
            for row in rows.iter_rows(named=True)
        ],
    }


def studied(
    work: Callable[[int], dict[str, object]], count: int, path: Path, workers: int
) -> list[dict[str, object]]:
    """Run what is missing of `count` studies, each a line of the file, and return all of them."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    finished = {row["seed"]: row for row in map(json.loads, lines)}
    missing = [seed for seed in range(count) if seed not in finished]
    with ProcessPoolExecutor(workers) as pool, path.open("a", encoding="utf-8") as file:
        for row in pool.map(work, missing):
            file.write(json.dumps(row) + "\n")
            file.flush()
            finished[row["seed"]] = row
            print(f"{path.stem}: {len(finished)} of {count}", flush=True)
    return [finished[seed] for seed in range(count)]


def exact(hits: int, count: int) -> str:
    """Return a share in per cent with its Clopper-Pearson interval."""
    low = beta.ppf(0.025, hits, count - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, count - hits) if hits < count else 1.0
    return f"{100 * hits / count:.1f} % ({100 * low:.1f}\N{EN DASH}{100 * high:.1f})"


def coverage(cohorts: list[dict[str, object]]) -> tuple[list[list[str]], int, int]:
    """Rows of the table of coverage, and the intervals that hold the mean rate among all."""
    cells: dict[str, list[tuple[float, float, float]]] = {}
    for cohort in cohorts:
        for name, *figures in cohort["cells"]:  # type: ignore[attr-defined]
            cells.setdefault(name, []).append(tuple(figures))
    rows, held, asked = [], 0, 0
    for name, figures in cells.items():
        rate = float(np.mean([value for value, _, _ in figures]))
        holding = sum(low <= rate <= high for _, low, high in figures)
        rows.append([f"`{name}`", f"{100 * rate:.0f}", exact(holding, len(figures))])
        held, asked = held + holding, asked + len(figures)
    return rows, held, asked


def main() -> None:
    """Run both controls, print them, and write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--cohorts", type=int, default=100)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    out = given.out or Path(mkdtemp())
    out.mkdir(parents=True, exist_ok=True)
    data = partial(null_study, os.environ["GAZEVEIL_DATA"])
    nulls = studied(data, given.studies, out / "nulls.jsonl", given.workers)
    alarms = sum(float(n["p"]) <= 0.05 for n in nulls)  # type: ignore[arg-type]
    print(f"false alarms: {alarms} of {len(nulls)}, {exact(alarms, len(nulls))}")
    cohorts = studied(simulated_cohort, given.cohorts, out / "cohorts.jsonl", given.workers)
    rows, held, asked = coverage(cohorts)
    table = markdown(["attack on simulated people", "rate (%)", "intervals that hold it"], rows)
    print(table)
    shares = [float(row[2].split()[0]) for row in rows]
    if given.page:
        sentence = (
            f"{alarms} of {len(nulls)} null studies alarm at 5 %: {exact(alarms, len(nulls))}. "
            f"{held} of {asked} intervals of {len(cohorts)} simulated cohorts hold the mean rate: "
            f"{100 * held / asked:.1f} %. Single attacks on simulated people: {min(shares):.1f} to"
            f" {max(shares):.1f} %."
        )
        put_into(given.page, "control", sentence)


if __name__ == "__main__":
    main()
