"""What identifies people in a headset, and what is left of it when places are made coarser, put in
the head, or cut into pieces.

    python benchmarks/vr_places.py [--splits 4] [--attacks steps+fusion] [--out FOLDER]
        [--page docs/howto/vr.md]

EyeNavGS (12 people x 12 scenes) under GAZEVEIL_DATA, split by scene, two independent releases a
split; the first line of each frame is gaze as recorded. Errors are angles to the recorded gaze in
the same frame.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import gazeveil
from gazeveil import Cohort
from gazeveil.privacy.registry import mechanism
from lines import markdown, put_into

#: What is measured in each frame.
MECHANISMS = (
    "clock-render:epsilon=10,r_deg=2,form=offline",
    "clock-render:epsilon=10,r_deg=8,form=offline",
    "clock-render:epsilon=10,r_deg=30,form=offline",
    "mosaic:epsilon=10,r_deg=2,paths=own",
    "mosaic:epsilon=10,r_deg=2,paths=stitch",
    "mosaic:epsilon=10,r_deg=8,paths=stitch",
)

COLUMNS = ("median error (deg)", "90 % below (deg)", "RMS error (deg)", "KL of maps")

_MEASURES = (
    ("signal", "median_error_deg"),
    ("signal", "p90_error_deg"),
    ("signal", "rmse_deg"),
    ("saliency", "kl"),
)


def measured(
    cohort: Cohort,
    mechanisms: list[str],
    attacks: list[str],
    splits: int,
    out: Path | None,
    scenario: str = "private/private",
) -> dict[str, dict[str, str]]:
    """For each mechanism, in its full text, what attackers find, in per cent, and what is kept."""
    results = gazeveil.evaluate(
        cohort, mechanisms, attacks, ("signal", "saliency"), (scenario,), splits, out=out
    )
    for failure in results.failures:
        print("not computed:", failure["sentence"], flush=True)
    rows = results.frame.to_dicts()
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        name = row["mechanism"]
        if row["parameters"]:
            name += f":{row['parameters']},reading={row['reading']}"
        told = found.setdefault(name, {})
        asked = row["scenario"] in (scenario, "raw/raw")
        if row["attack"] is not None and asked and row["metric"] == "identification_rate":
            low, high = 100 * row["low"], 100 * row["high"]
            told[row["attack"]] = f"{100 * row['value']:.0f} ({low:.0f}\N{EN DASH}{high:.0f})"
        if (row["utility"], row["metric"]) in _MEASURES:
            told[row["metric"]] = f"{row['value']:.2g}"
    return found


def told(figures: dict[str, str], attacks: list[str]) -> list[str]:
    """The cells of one line of a table."""
    return [figures.get(name, "") for name in (*attacks, *(metric for _, metric in _MEASURES))]


def headings(first: str, attacks: list[str]) -> list[str]:
    """The columns of a table."""
    return [first, *(f"found by {name} (%)" for name in attacks), *COLUMNS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--attacks", default="steps+fusion")
    parser.add_argument("--out", type=Path, help="folder to go on from if interrupted")
    parser.add_argument("--page", type=Path)
    chosen = parser.parse_args()
    data = Path(os.environ.get("GAZEVEIL_DATA", "../shared/data")) / "eyenavgs_nthu"
    attacks, rows = chosen.attacks.split("+"), []
    for frame in ("world", "head"):
        raw = gazeveil.read(data, frame=frame).load()
        names = {f"`{text}`": str(mechanism(text)) for text in MECHANISMS}
        out = None if chosen.out is None else chosen.out / frame
        figures = measured(raw, list(names.values()), attacks, chosen.splits, out)
        for label, name in {"as recorded": "none", **names}.items():
            rows.append([frame, label, *told(figures[name], attacks)])
            print(*rows[-1], sep=" | ", flush=True)
    table = markdown(["gaze in the", *headings("release", attacks)], rows)
    print(table)
    if chosen.page is not None:
        put_into(chosen.page, "eyenavgs", table)


if __name__ == "__main__":
    main()
