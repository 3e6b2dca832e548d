"""What stands on events: identification and utilities with `auto` and with `ivt` as the detector.

    python benchmarks/events_downstream.py [--json FILE] [--repetitions 3]

GazeCom and EyeNavGS under GAZEVEIL_DATA, 75/25 by stimulus, as recorded and under Gaussian noise of
1 deg, events found again on the release. A new detector is compared with an old one by running this
with each of the two trees on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import warnings
from pathlib import Path

import polars as pl

import gazeveil
from gazeveil.features.recording_set import FeaturePipeline

COHORTS = {"gazecom": "gazecom", "eyenavgs": "eyenavgs_nthu"}
PIPELINES = {"auto": FeaturePipeline("auto", {}), "ivt": FeaturePipeline()}
ATTACKS = ("linkage", "rbfn", "forest")
UTILITIES = ("events",)


def main() -> None:
    """Print the figures, and write JSON lines if asked."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--json", type=Path, help="write one JSON line per figure")
    arguments.add_argument("--repetitions", type=int, default=3)
    given = arguments.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    data = Path(
        os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent / ".." / "shared" / "data")
    )
    rows = []
    for name, folder in COHORTS.items():
        for detector, pipeline in PIPELINES.items():
            results = gazeveil.evaluate(
                gazeveil.read(data / folder),
                ("gaussian:sigma_deg=1",),
                ATTACKS,
                UTILITIES,
                repetitions=given.repetitions,
                seed=1,
                executor=2,
                preparation=pipeline,
            )
            kept = results.frame.filter(
                pl.col("attack").is_null() | (pl.col("metric") == "identification_rate")
            )
            for row in kept.to_dicts():
                row = {
                    "cohort": name,
                    "detector": detector,
                    "mechanism": row["mechanism"],
                    "scenario": row["scenario"],
                    "task": row["attack"] or row["utility"],
                    "metric": row["metric"],
                    "value": row["value"],
                }
                rows.append(row)
                print(json.dumps(row), flush=True)
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
