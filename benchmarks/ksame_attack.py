"""How often people are found again in a k-same release, by the number of tasks: groups redrawn per
task, and one partition.

    python benchmarks/ksame_attack.py [--json FILE] [--repetitions 50]

The model: 20 people have a trait of 12 numbers, standard normal; each of their recordings is the
trait plus normal noise of 0.3. The attacker averages the release over tasks, one average per name,
and gives a new raw recording of each person the nearest name; names that are equally near are
chosen among at random. Every figure is over repetitions x people guesses. `published` must exceed
1/k where there are many tasks and `corrected` must not, within three standard errors.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.tables.ksame import KSameSelect

PEOPLE, TRAITS, NOISE = 20, 12, 0.3


def cohort(tasks: int, rng: np.random.Generator) -> tuple[FeatureTable, np.ndarray]:
    """A table with one vector per person and task, and one further raw vector of each person."""
    trait = rng.normal(size=(PEOPLE, TRAITS))
    raw = trait[:, None] + NOISE * rng.normal(size=(PEOPLE, tasks, TRAITS))
    keys = Keys.of_recordings(
        [(f"{p:02}", f"task {t:02}", "", "") for p in range(PEOPLE) for t in range(tasks)],
        [np.arange(1)] * (PEOPLE * tasks),
    )
    table = FeatureTable(raw.reshape(-1, TRAITS), tuple(f"trait {i}" for i in range(TRAITS)), keys)
    return table, trait + NOISE * rng.normal(size=trait.shape)


def found(release: FeatureTable, test: np.ndarray, rng: np.random.Generator) -> int:
    """How many people the attacker names rightly."""
    templates = np.stack(
        [release.values[release.keys.person == f"{p:02}"].mean(axis=0) for p in range(PEOPLE)]
    )
    apart = ((test[:, None] - templates) ** 2).sum(axis=-1)
    near = apart <= apart.min(axis=1, keepdims=True) * (1 + 1e-12)
    return sum(int(rng.choice(np.flatnonzero(row)) == person) for person, row in enumerate(near))


def rate(k: int, tasks: int, reading: str, repetitions: int, seed: int = 1) -> tuple[float, int]:
    """Share of right guesses and number of guesses."""
    rng = np.random.default_rng([seed, k, tasks])
    mechanism = KSameSelect(k, reading=reading)
    hits = 0
    for repetition in range(repetitions):
        table, test = cohort(tasks, rng)
        hits += found(mechanism.release(table, seed=repetition).data, test, rng)
    return hits / (repetitions * PEOPLE), repetitions * PEOPLE


def bound(k: int, guesses: int) -> float:
    """1/k and three standard errors."""
    return 1 / k + 3 * float(np.sqrt((1 - 1 / k) / k / guesses))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    parser.add_argument("--repetitions", type=int, default=50)
    arguments = parser.parse_args()
    rows = []
    for k in (4, 8):
        for reading in ("published", "corrected"):
            for tasks in (1, 3, 10, 50):
                value, guesses = rate(k, tasks, reading, arguments.repetitions)
                limit = bound(k, guesses)
                # Few tasks leave little to combine: there published need not fail.
                met = value <= limit if reading == "corrected" else value > limit or tasks < 10
                row = {
                    "figure": f"k-same, k={k}, {reading}, {tasks} tasks: people found",
                    "value": round(value, 3),
                    "unit": "fraction",
                    "floor": round(limit, 3),
                    "wanted": "at most" if reading == "corrected" else "above, from 10 tasks on",
                    "met": met,
                    "guesses": guesses,
                    "one_over_k": 1 / k,
                }
                rows.append(row)
                print(json.dumps(row), flush=True)
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    if not all(r["met"] for r in rows):
        sys.exit("a bound was missed")


if __name__ == "__main__":
    main()
