"""The learnt denoiser beside filters: how near to raw gaze each brings a release, and what an
attacker behind it recognises.

    python benchmarks/unet_denoiser.py [--mechanism gaussian:sigma_deg=10] [--splits 1]
        [--attack linkage:features=trajectory]

GazeCom (24 people x 10 clips) under GAZEVEIL_DATA, 8 clips against 2, private against private. The
U-Net is learnt from releases of the raw gallery that are made for this alone; errors are of the
probe's clips, which it never saw.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

import gazeveil
from gazeveil.attacks.base import DENOISERS
from gazeveil.attacks.denoiser import identify
from gazeveil.attacks.registry import attack
from gazeveil.evaluation.releases import ReleaseCache
from gazeveil.evaluation.study import Study
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import angle_deg
from lines import Lines


def error_deg(
    made: RecordingSet, raw: dict[tuple[str, str, str, str], gazeveil.Recording]
) -> float:
    """Root mean square angle to raw gaze at the times both have a sample."""
    squares = []
    for recording in made.cohort or ():
        truth = raw[recording.key]
        _, here, there = np.intersect1d(recording.t_ns, truth.t_ns, return_indices=True)
        squares.append(angle_deg(recording.vectors[here], truth.vectors[there]) ** 2)
    return float(np.sqrt(np.nanmean(np.concatenate(squares))))


def main() -> None:
    parser = argparse.ArgumentParser(description="See the docstring.")
    parser.add_argument("--mechanism", default="gaussian:sigma_deg=10")
    parser.add_argument("--attack", default="linkage:features=trajectory")
    parser.add_argument("--splits", type=int, default=1)
    given = parser.parse_args()
    lines = Lines(None)
    cohort = Cohort(list(gazeveil.read(Path(os.environ["GAZEVEIL_DATA"]) / "gazecom")))
    raw = {r.key: r for r in cohort}
    mechanism = gazeveil.mechanism(given.mechanism)
    mark = "," if ":" in given.attack else ":"
    attackers = {d: attack(f"{given.attack}{mark}denoiser={d}") for d in DENOISERS}
    study = Study(cohort, (mechanism,), tuple(attackers.values()), repetitions=given.splits)
    found: dict[str, list[tuple[float, float, float]]] = {d: [] for d in DENOISERS}
    for split in range(given.splits):
        cache = ReleaseCache(study, RecordingSet(cohort), mechanism, split)
        for denoiser, who in attackers.items():
            began = time.perf_counter()
            gallery, probe = cache.sides(who, "private/private")
            rate = float(identify(who, gallery, probe, split).credit().mean())
            seconds = time.perf_counter() - began
            found[denoiser].append((error_deg(probe, raw), rate, seconds))
    for denoiser, rows in found.items():
        error, rate, seconds = np.mean(rows, axis=0).tolist()
        lines.keep(
            {
                "figure": denoiser,
                "mechanism": given.mechanism,
                "attack": given.attack,
                "error_deg": round(error, 2),
                "identification_rate": round(rate, 3),
                "seconds": round(seconds, 1),
            }
        )


if __name__ == "__main__":
    main()
