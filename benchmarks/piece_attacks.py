"""What attackers of pieces find: each piece by itself, pieces joined again, known looks.

    PYTHONPATH=. python benchmarks/piece_attacks.py names gazecom/
    PYTHONPATH=. python benchmarks/piece_attacks.py names gazecom/ -m mosaic:epsilon=10,r_deg=2
    PYTHONPATH=. python benchmarks/piece_attacks.py gaps gazecom/
    PYTHONPATH=. python benchmarks/piece_attacks.py looks gazecom/

Without a mechanism the pieces are raw but for their names (the tests' own mechanism, the strongest
leak there is): an attack that does not find people there finds nobody anywhere. `names` is a study
with two independent releases in each split; `gaps` and `looks` take one release each.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tests.support.pieces import RawPieces

import gazeveil
from gazeveil.attacks.pieces.joining import KnownLooks
from gazeveil.attacks.pieces.relink import PieceRelinking
from gazeveil.attacks.result import AttackResult
from gazeveil.evaluation.releases import protect
from gazeveil.evaluation.run import evaluate
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from lines import markdown

NAMING = (
    "steps",
    "fusion",
    "relink:by=none",
    "relink:by=place",
    "relink:by=style",
    "relink",
    "relink:names=known",
)

_METRICS = ("identification_rate", "bound_rate", "flipped_rate", "dealt_rate")

#: Seconds between pieces; mosaic's are whole slots of a quarter of a second.
RAW_GAPS_S = (0.0, 0.25, 0.5, 1.0, 2.0)
MOSAIC_GAPS_S = ("1/4", "1", "2")

MOSAIC = "mosaic:epsilon=10,r_deg=2,paths="


def names(cohort: Cohort, mechanism: str, repetitions: int) -> list[tuple[str, ...]]:
    """Shares of pieces that get the right name, split by split."""
    made: Any = mechanism or RawPieces()
    results = evaluate(
        cohort,
        mechanisms=[made],
        attacks=list(NAMING),
        scenarios=["private/private"],
        repetitions=repetitions,
        executor=1,
    )
    for failure in results.failures:
        print(failure["sentence"])
    frame = results.frame.filter(mechanism=mechanism.partition(":")[0] or "raw-pieces")
    return [
        (f"`{r['attack']}` {r['metric']}", *_figure(r["value"], r["low"], r["high"], r["chance"]))
        for r in frame.iter_rows(named=True)
        if r["metric"] in _METRICS
    ]


def gaps(raw: RecordingSet) -> list[tuple[str, ...]]:
    """Shares of pieces that are joined rightly by place, by gap."""
    made: dict[str, Any] = {f"raw pieces, {g} s": RawPieces(gap_s=g) for g in RAW_GAPS_S}
    for paths in ("own", "stitch"):
        for gap in MOSAIC_GAPS_S:
            text = f"{MOSAIC}{paths},gap_s={gap}"
            made[f"`{text}`"] = gazeveil.mechanism(text)
    return [
        (name, *_said(PieceRelinking().run(raw, protect(raw, m, 1)).results[0]))
        for name, m in made.items()
    ]


def looks(raw: RecordingSet) -> list[tuple[str, ...]]:
    """Shares of pieces that known looks single out."""
    texts = (f"{MOSAIC}own", f"{MOSAIC}stitch", "clock-render:epsilon=10,r_deg=2,form=offline")
    made = {"raw pieces": RawPieces(), **{f"`{t}`": gazeveil.mechanism(t) for t in texts}}
    return [
        (f"{name} {result.metric}", *_said(result))
        for name, m in made.items()
        for result in KnownLooks().run(raw, protect(raw, m, 1)).results
    ]


def _said(result: AttackResult) -> tuple[str, str, str]:
    return _figure(result.value, result.low, result.high, result.chance)


def _figure(
    value: float, low: float | None, high: float | None, chance: float
) -> tuple[str, str, str]:
    interval = "" if low is None or high is None else f"{100 * low:.1f}\N{EN DASH}{100 * high:.1f}"
    return f"{100 * value:.1f}", interval, f"{100 * chance:.1f}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("names", "gaps", "looks"))
    parser.add_argument("source", type=Path)
    parser.add_argument("-m", "--mechanism", default="", help="for names; default raw pieces")
    parser.add_argument("-r", "--repetitions", type=int, default=3, help="splits, for names")
    given = parser.parse_args()
    cohort = gazeveil.read(given.source).load()
    if given.what == "names":
        rows = names(cohort, given.mechanism, given.repetitions)
    else:
        rows = (gaps if given.what == "gaps" else looks)(RecordingSet(cohort))
    print(markdown(("what", "%", "95 %", "guessing"), rows))


if __name__ == "__main__":
    main()
