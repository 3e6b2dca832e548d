"""A control of the strong battery: people of whom nothing can be learnt must not be found.

    GAZEVEIL_DATA=... python benchmarks/attack_control.py [--page docs/results/attackers.md]
    [--repetitions 10] [--workers 2]

The names of GazeCom's recordings are dealt anew within each stimulus, differently in each of
several deals, so that clips of one name are of different people. The whole battery then guesses:
the mean over deals must hold the rate of guessing in its interval over deals and people.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

import gazeveil
from gazeveil.attacks.result import rate_result
from gazeveil.gaze.cohort import Cohort
from lines import markdown, put_into

DEALS = 5


def dealt(cohort: Cohort, seed: int) -> Cohort:
    """The names dealt anew within each stimulus."""
    rng = np.random.default_rng(seed)
    recordings = []
    for stimulus in sorted(cohort.stimuli):
        own = [r for r in cohort if r.stimulus == stimulus]
        names = rng.permutation([r.person for r in own])
        recordings += [r.with_(person=str(n)) for r, n in zip(own, names, strict=True)]
    return Cohort(recordings)


def main() -> None:
    """Attack, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    cohort = gazeveil.read(Path(os.environ["GAZEVEIL_DATA"]) / "gazecom").load()
    rates: dict[str, list[float]] = {}
    for deal in range(DEALS):
        results = gazeveil.evaluate(
            dealt(cohort, deal), repetitions=given.repetitions, seed=deal, executor=given.workers
        )
        for row in results.frame.filter(metric="identification_rate").iter_rows(named=True):
            rates.setdefault(row["attack"], []).append(row["value"])
    people = len(cohort.people)
    rows = []
    for name, values in rates.items():
        # Deals are different worlds: as many guesses as people in each of them.
        result = rate_result("control", float(np.mean(values)), people * DEALS, 1 / people)
        holds = "yes" if result.low <= 1 / people <= result.high else "no"
        ends = f"{100 * result.low:.1f} to {100 * result.high:.1f}"
        rows.append([f"`{name}`", f"{100 * result.value:.1f}", ends, holds])
    text = markdown(["attacker", "found (%)", "95 % interval", "holds guessing"], rows)
    print(text)
    if given.page:
        put_into(given.page, "control", text)


if __name__ == "__main__":
    main()
