"""How many people can be told apart: identification and equal error rate against the size of the
gallery, for simulated people as recorded and behind each mechanism.

    python benchmarks/gallery.py [--page docs/results/gallery.md] [--people 1000] [--workers 2]

Simulated people watch six clips of 20 s at 120 Hz; four clips are learnt from, two are asked about;
attackers are retrained on a release of their own (two independent releases). The strongest of
`steps`, `rocket` and `fusion` counts, in each line for itself. Sizes are the first people of one
cohort, so that a larger gallery holds the smaller ones.
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

import gazeveil
from gazeveil.attacks.registry import attack
from gazeveil.attacks.result import eer
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from lines import put_into

#: As recorded, and the setting of each mechanism that the README shows.
MECHANISMS = (
    "",
    "temporal:K=3",
    "spatial:L=64",
    "gaussian:sigma_deg=10",
    "kaleido:epsilon=10,w=60,r_deg=2",
    "clock-render:epsilon=10,r_deg=2,form=offline",
    "clock-render:epsilon=1,r_deg=2,slot_s=0.5,form=offline",
    "k-same-synth:k=4,match=crowd",
)
SIZES = (10, 30, 100, 300, 1000)
ATTACKS = ("steps", "rocket", "fusion")
CLIPS, LEARNT, SECONDS, RATE_HZ = 6, 4, 20.0, 120.0


@cache
def people(count: int) -> Cohort:
    """The simulated cohort."""
    return gazeveil.simulate(count, CLIPS, SECONDS, RATE_HZ, seed=7)


def line(mechanism: str, size: int, everybody: int) -> dict[str, object]:
    """Rates of all attackers among the first people."""
    cohort = people(everybody)
    first = set(sorted(cohort.people)[:size])
    cohort = Cohort([r for r in cohort if r.person in first])
    learnt = set(sorted(cohort.stimuli)[:LEARNT])
    raw = RecordingSet(cohort)
    made = gazeveil.mechanism(mechanism) if mechanism else None
    sides = [raw, raw] if made is None else [protect(raw, made, seed) for seed in (1, 2)]
    gallery = sides[0].where(lambda key: key[1] in learnt)
    probe = sides[1].where(lambda key: key[1] not in learnt)
    rates = {}
    for name in ATTACKS:
        scores = attack(name).identify(gallery, probe, 1)
        rates[name] = (float(np.mean(scores.credit())), eer(scores))
    best = max(rates, key=lambda name: rates[name][0])
    return {
        "mechanism": mechanism or "as recorded",
        "people": size,
        "attacker": best,
        "rate": rates[best][0],
        "eer": min(error for _, error in rates.values()),
    }


def table(rows: list[dict[str, object]]) -> str:
    """Identification and equal error rate, a column for each size."""
    sizes = sorted({int(str(r["people"])) for r in rows})
    head = "| release | " + " | ".join(f"{n:,} people" for n in sizes) + " |"
    lines = [head, "|" + "---|" * (len(sizes) + 1)]
    for mechanism in dict.fromkeys(str(r["mechanism"]) for r in rows):
        cells = []
        for size in sizes:
            row = next(r for r in rows if (r["mechanism"], r["people"]) == (mechanism, size))
            rate, error = 100 * float(str(row["rate"])), 100 * float(str(row["eer"]))
            cells.append(f"{rate:.1f} / {error:.0f} ({row['attacker']})")
        lines.append(f"| {mechanism} | " + " | ".join(cells) + " |")
    chance = " | ".join(f"{100 / n:.1f} / 50" for n in sizes)
    return "\n".join([*lines, f"| guessing | {chance} |"])


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--page", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    sizes = [n for n in SIZES if n <= given.people]
    jobs = [(m, n) for n in reversed(sizes) for m in MECHANISMS]
    with ProcessPoolExecutor(given.workers) as pool:
        futures = [pool.submit(line, m, n, given.people) for m, n in jobs]
        rows = []
        for future in futures:
            rows.append(future.result())
            print(json.dumps(rows[-1]), flush=True)
    order = {m or "as recorded": i for i, m in enumerate(MECHANISMS)}
    rows.sort(key=lambda r: (order[str(r["mechanism"])], int(str(r["people"]))))
    if given.json:
        given.json.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    print(table(rows))
    if given.page:
        put_into(given.page, "gallery", table(rows))


if __name__ == "__main__":
    main()
