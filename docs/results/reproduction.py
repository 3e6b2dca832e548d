"""Write one page per paper from reproduction.json and claims.toml, and the first sentence of
reproduction.md.

`python docs/results/reproduction.py` writes the pages. With `NAME=RUN ...`, folders that `gazeveil
reproduce NAME --out RUN` wrote, their figures enter the record first.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gazeveil.papers.figures import CITATIONS
from gazeveil.papers.grading import figures_of
from gazeveil.papers.page import escaped, markdown, sections

HERE = Path(__file__).parent
RECORD = HERE / "reproduction.json"
KEPT = ("id", "what", "published", "ours", "low", "high", "verdict", "reason", "beside")

#: The papers as the issue and the manual number them.
CODES = {
    "davidjohn2022": "S000",
    "davidjohn2021": "S001",
    "bozkir2021": "S002",
    "ren2024": "S003",
    "davidjohn2023": "S004",
}

#: What became of a claim.
STATUSES = ("held", "failed", "artefact", "untestable here")

Record = dict[str, list[dict[str, Any]]]


def add(record: Record, runs: Mapping[str, str]) -> None:
    """Replace the record's figures by those of some runs; what is real is not replaced by what is
    simulated.
    """
    for name, run in runs.items():
        rows = {row["id"]: row for row in record.get(name, [])}
        study = json.loads((Path(run) / "study.json").read_text(encoding="utf-8"))["study"]
        for row in study["published"]:
            if row["ours"] is not None:
                rows[row["id"]] = {key: row[key] for key in KEPT}
        record[name] = [rows[i] for i in sorted(rows)]
    lines = [f"{json.dumps(n)}: {json.dumps(rows)}" for n, rows in record.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def page(paper: str, record: Record, notes: Mapping[str, Any], folder: Path = HERE) -> str:
    """The page of a paper: what it means, its claims, its tables and figures in its numbering."""
    # A figure of two studies is that of the later one, beside the attackers of both.
    found: dict[str, dict[str, Any]] = {}
    for row in (row for rows in record.values() for row in rows):
        others = {**found.get(row["id"], {}).get("beside", {}), **row["beside"]}
        found[row["id"]] = {**row, "beside": others}
    for row in found.values():
        tried = [name for name in row["beside"] if name.startswith("strongest of ")]
        for name in sorted(tried, key=lambda name: int(name.rpartition(" ")[2])):
            row["beside"]["strongest"] = row["beside"].pop(name)
    places = {f.id for f in figures_of(paper)}
    figures = [f for f in figures_of(paper) if f.model != "chance"]
    printed = [f for f in figures if f.value]
    measured = [f for f in printed if f.id in found]
    studies = ", ".join(f"`{name}`" for name in record if name.startswith(f"{paper}/"))
    lines = [
        f"# {CITATIONS[paper].partition(':')[0]} ({CODES[paper]})",
        "",
        notes["meaning"][paper],
        "",
        CITATIONS[paper],
        "",
        f"{len(measured):,} of {len(printed):,} published figures have one of ours beside them"
        " ([how to read the tables](reproduction.md#how-to-read-the-tables)).",
        f"Ours come from `gazeveil reproduce` with {studies}.",
        notes["notes"][paper],
        "",
        "## Claims",
        "",
        "| claim | status | number | evidence |",
        "|---|---|---|---|",
        *(_claim(claim) for claim in notes["claim"] if claim["paper"] == paper),
        "",
    ]
    # Of orders those that are graded stand here; the others are in the record.
    graded = {i for i, row in found.items() if i.startswith(f"{paper}-") and row["verdict"]}
    rows = [row for i, row in found.items() if i in places | graded]
    lines += markdown(sections(paper, rows, folder), folder)
    left = Counter(f.location for f in figures if f.id not in found and f.metric != "participants")
    if left:
        counts = ", ".join(f"{location} ({n})" for location, n in left.items())
        lines += ["## Not measured", "", f"Figures, with their number: {counts}."]
    return "\n".join(lines).rstrip() + "\n"


def headline(claims: Sequence[Mapping[str, str]]) -> str:
    """The first sentence of reproduction.md: how many claims have which status."""
    counts = Counter(claim["status"] for claim in claims)
    held, failed, artefact, untestable = (counts[status] for status in STATUSES)
    return (
        f"**Of {counts.total()} main claims of the papers {held} hold, {failed} fail, {artefact}"
        f" are artefacts of the attacker or of the noise, and {untestable} need the papers' data.**"
    )


def _claim(claim: Mapping[str, str]) -> str:
    cells = (claim["what"], f"*{claim['status']}*", claim["number"])
    evidence = f"`{claim['test']}`" if "test" in claim else ""
    if "link" in claim:
        name = claim["link"].partition("#")[0].rpartition("/")[2]
        evidence = f"[{name}]({claim['link']})"
    return f"| {' | '.join(map(escaped, cells))} | {evidence} |"


def main() -> None:
    """Add the runs that are named, and write the pages."""
    record: Record = json.loads(RECORD.read_text(encoding="utf-8"))
    runs = dict(word.split("=", 1) for word in sys.argv[1:])
    if runs:
        add(record, runs)
    notes = tomllib.loads((HERE / "claims.toml").read_text(encoding="utf-8"))
    front = HERE / "reproduction.md"
    text = front.read_text(encoding="utf-8")
    sentence = headline(notes["claim"])
    front.write_text(re.sub(r"^\*\*.*?\*\*", sentence, text, flags=re.MULTILINE), encoding="utf-8")
    for paper in CITATIONS:
        (HERE / f"{paper}.md").write_text(page(paper, record, notes), encoding="utf-8")


if __name__ == "__main__":
    main()
