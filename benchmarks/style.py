"""`style` by its weight: how many people are found, and how far gaze is from where it was.

    python benchmarks/style.py [--data gazecom] [--weights 0,2,4,8,16] [--splits 4]
        [--attacks steps+fusion] [--scenario private/private] [--out FOLDER]
        [--page docs/reference/mechanisms/style.md]

Real people under GAZEVEIL_DATA, split by stimulus, two independent releases a split
(`private/private`), so donors are dealt anew in each of them; mean over splits, interval over
people. Errors are angles between recorded and released gaze, maps those of all viewers of a
stimulus, as the utilities `signal` and `saliency` say.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import gazeveil
from gazeveil import Cohort
from gazeveil.privacy.registry import mechanism
from lines import markdown, put_into

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
            told[row["attack"]] = f"{100 * row['value']:.0f} ({low:.0f} to {high:.0f})"
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
    parser.add_argument("--data", default="gazecom")
    parser.add_argument("--weights", default="0,2,4,8,16")
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--attacks", default="steps+fusion")
    parser.add_argument("--scenario", default="private/private")
    parser.add_argument("--out", type=Path, help="folder to go on from if interrupted")
    parser.add_argument("--page", type=Path)
    chosen = parser.parse_args()
    data = Path(os.environ.get("GAZEVEIL_DATA", "../shared/data")) / chosen.data
    raw, attacks = gazeveil.read(data).load(), chosen.attacks.split("+")
    weights = chosen.weights.split(",")
    names = {w: str(mechanism(f"style:epsilon=10,r_deg=2,weight={w}")) for w in weights}
    figures = measured(
        raw, list(names.values()), attacks, chosen.splits, chosen.out, chosen.scenario
    )
    rows = [[weight, *told(figures[name], attacks)] for weight, name in names.items()]
    table = markdown(headings("weight", attacks), rows)
    print(table)
    if chosen.page is not None:
        put_into(chosen.page, chosen.data, table)


if __name__ == "__main__":
    main()
