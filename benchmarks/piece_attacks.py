"""What attackers of pieces find: each piece by itself, and pieces joined again.

    PYTHONPATH=. python benchmarks/piece_attacks.py gazecom/ --gap 1
    PYTHONPATH=. python benchmarks/piece_attacks.py gazecom/ -m mosaic:epsilon=10,r_deg=2,paths=own
        [--page docs/results/mosaic_attacks.md --name own]

Without a mechanism the pieces are raw but for their names (the tests' own mechanism, the strongest
leak there is): an attack that does not find people there finds nobody anywhere.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tests.support.pieces import RawPieces

import gazeveil
from gazeveil.evaluation.api import evaluate
from lines import markdown, put_into

NAMING = (
    "steps",
    "fusion",
    "relink:by=none",
    "relink:by=place",
    "relink:by=style",
    "relink",
    "relink:names=known",
)
JOINING = ("relinking", "relinking:by=style", "relinking:by=both", "relinking:by=label")
LOOKS = ("known-looks",)

_METRICS = (
    *("identification_rate", "matching_rate", "bound_rate", "flipped_rate", "dealt_rate"),
    *("relinked_share", "found_by_1_look", "found_by_3_looks", "found_by_10_looks"),
)


def rows_of(
    source: Path, mechanism: str, gap_s: float, repetitions: int, who: tuple[str, ...]
) -> Any:
    """Figures of one release."""
    made: object = mechanism or RawPieces(gap_s=gap_s)
    results = evaluate(
        gazeveil.read(source).load(),
        mechanisms=[made],
        attacks=list(who),
        scenarios=["private/private"],
        repetitions=repetitions,
        executor=1,
    )
    for failure in results.failures:
        print(failure)
    frame = results.frame.filter(mechanism=mechanism.partition(":")[0] or "raw-pieces")
    return [r for r in frame.iter_rows(named=True) if r["metric"] in _METRICS]


def main() -> None:
    """Print a table, and put it into a page where one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("-m", "--mechanism", default="")
    parser.add_argument("--gap", type=float, default=1.0)
    parser.add_argument("-r", "--repetitions", type=int, default=3)
    parser.add_argument("--who", choices=("all", "joining", "looks"), default="all")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--name", default="raw")
    given = parser.parse_args()
    who = {"all": (*NAMING, *JOINING, *LOOKS), "joining": JOINING, "looks": LOOKS}[given.who]
    rows = rows_of(given.source, given.mechanism, given.gap, given.repetitions, who)
    table = [
        (
            f"`{r['attack']}`",
            r["metric"].replace("_", " "),
            f"{100 * r['value']:.1f}",
            "" if r["low"] is None else f"{100 * r['low']:.0f} to {100 * r['high']:.0f}",
            f"{100 * r['chance']:.1f}",
            "" if r["p_value"] is None else f"{r['p_value']:.2g}",
        )
        for r in rows
    ]
    text = markdown(("attack", "figure", "%", "95 %", "guessing", "p"), table)
    print(text)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1, default=str))
    if given.page:
        put_into(given.page, given.name, text)


if __name__ == "__main__":
    main()
