"""Verification of people the network never saw: equal error rate and d-prime by seconds of gaze, by
rate, by size of the gallery and by age of the template.

    python benchmarks/ekyt_training.py export velocities.npz
    python benchmarks/verification.py velocities.npz [--steps 600] [--json FILE]

Simulated people: one network a rate, trained on 140 and judged on 60 others. GazeCom and EyeNavGS:
four folds over people. Needs torch; uses a GPU where there is one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from ekyt_training import PAPER, RATES, TRAINED, Bag
from gazeveil.attacks.identify.verification import (
    by_age,
    by_duration,
    by_gallery,
    enrolled_and_asked,
    verification_scores,
)
from gazeveil.models.ekyt.weights import train_ekyt
from gazeveil.models.ekyt.windows import WindowSet
from gazeveil.models.training import StepPlan, best_device
from lines import Lines


def verify(bag: Bag, lines: Lines, steps: int) -> None:
    for rate in RATES:
        windows = bag.get(f"simulated/{rate:g}")
        names = sorted(set(windows.persons))
        inside, held_out = _by_people(windows, set(names[:TRAINED]))
        model, _ = train_ekyt(inside, StepPlan(steps), PAPER, best_device())
        results = [*by_duration(model, held_out, (5.0, 10.0, 20.0))]
        if rate == RATES[0]:
            scores = verification_scores(model, *enrolled_and_asked(held_out), 20.0)
            results += by_gallery(scores, (5, 10, 20, 40, 60), 0)
            results += by_age(model, held_out, 20.0)
        for result in results:
            lines.keep({"figure": f"simulated {rate:g} Hz", **result.to_dict()})
    for name in ("gazecom", "eyenavgs"):
        _folds(bag.get(f"{name}/raw"), name, lines, steps)


def _by_people(windows: WindowSet, names: set[str]) -> tuple[WindowSet, WindowSet]:
    """Windows of these people, and of all others."""
    return windows.where(lambda k: k[0] in names), windows.where(lambda k: k[0] not in names)


def _folds(windows: WindowSet, name: str, lines: Lines, steps: int, folds: int = 4) -> None:
    """People-disjoint: each quarter of the people is judged by a network of the others; the mean
    over quarters.
    """
    names = sorted(set(windows.persons))
    order = np.random.default_rng(0).permutation(len(names))
    found: dict[float, list[Any]] = {}
    for fold in range(folds):
        out, inside = _by_people(windows, {names[i] for i in order[fold::folds]})
        model, _ = train_ekyt(inside, StepPlan(steps, seed=fold), PAPER, best_device())
        for result in by_duration(model, out, (5.0, 10.0, 20.0, 60.0)):
            found.setdefault(result.value, []).append(result)
    for duration, results in found.items():
        means = {
            n: float(np.mean([getattr(r, n) for r in results])) for n in ("eer", "d_prime", "rank1")
        }
        lines.keep(
            {
                "figure": f"{name} {windows.setting.rate_hz:g} Hz",
                "condition": "duration_s",
                "value": duration,
                **means,
                "people": sum(r.people for r in results),
                "probes": sum(r.probes for r in results),
            }
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="See the docstring.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--steps", type=int, default=600)
    given = parser.parse_args()
    lines = Lines(None)
    verify(Bag.read(given.file), lines, given.steps)
    if given.json is not None:
        given.json.write_text("".join(json.dumps(r) + "\n" for r in lines.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
