"""Write one page per paper from reproduction.json and claims.toml.

`python docs/results/reproduction.py` writes the pages. With `NAME=RUN ...`, folders that `gazeveil
reproduce NAME --out RUN` wrote, their figures enter the record first.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gazeveil.papers.citations import CITATIONS, FORMER
from gazeveil.papers.figure import PublishedFigure, published_figures

HERE = Path(__file__).parent
RECORD = HERE / "reproduction.json"
KEPT = ("id", "published", "ours", "low", "high", "kind", "verdict", "reason")
#: Most models that stand side by side; more become rows.
MOST_COLUMNS = 6
#: Most figures of a table with a row per setting; in longer tables a row is one mechanism.
MOST_FIGURES = 12

Rows = Mapping[str, Mapping[str, Any]]


def study_of(run: str) -> dict[str, Any]:
    """The study that a run wrote."""
    written: dict[str, Any] = json.loads((Path(run) / "study.json").read_text(encoding="utf-8"))
    study: dict[str, Any] = written["study"]
    return study


def add(record: dict[str, list[dict[str, Any]]], runs: Mapping[str, str]) -> None:
    """Replace the record's figures by those of some runs."""
    for name, run in runs.items():
        rows = {row["id"]: row for row in record.get(name, [])}
        for row in study_of(run)["published"]:
            if row["ours"] is not None:
                rows[row["id"]] = {key: row[key] for key in KEPT}
        record[name] = [rows[i] for i in sorted(rows)]
    lines = [f"{json.dumps(n)}: {json.dumps(rows)}" for n, rows in record.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def page(
    paper: str, record: Mapping[str, Iterable[Mapping[str, Any]]], notes: Mapping[str, Any]
) -> str:
    """The page of a paper: its tables and figures in its numbering, then its claims."""
    # A figure of two studies is that of the later one.
    found = {row["id"]: row for rows in record.values() for row in rows}
    figures = [f for f in published_figures(paper) if f.model != "chance"]
    measured = [f for f in figures if f.id in found]
    code = next(old for old, key in FORMER.items() if key == paper)
    studies = ", ".join(f"`{name}`" for name in record if name.startswith(f"{paper}/"))
    lines = [
        f"# {CITATIONS[paper].partition(':')[0]} ({code})",
        "",
        CITATIONS[paper],
        "",
        f"{len(measured):,} of {len(figures):,} published figures have one of ours beside them.",
        f"Ours come from `gazeveil reproduce` with {studies}.",
        notes["notes"][paper],
        "",
        "Cells read *published / ours (95 % CI)*; the model named is the paper's. Ours in *italics*"
        " is of simulated participants and grades nothing. In long tables a row is one mechanism:"
        " lowest to highest value of its settings, and the outermost ends of their CIs. Each figure"
        " is in [reproduction.json](reproduction.json). Choices the paper leaves open:"
        " [readings](readings.md).",
        "",
    ]
    sizes = [f"{f.dataset} {f.value}" for f in figures if f.metric == "participants"]
    if sizes:
        lines += [f"Participants, as published and as simulated: {', '.join(sizes)}.", ""]
    lines += ["## Claims", "", "| claim | status | number | evidence |", "|---|---|---|---|"]
    lines += [_claim(claim) for claim in notes["claim"] if claim["paper"] == paper] + [""]
    for location in dict.fromkeys(f.location for f in measured):
        lines += [f"## {location[:1].upper()}{location[1:]}", ""]
        lines += _tables([f for f in measured if f.location == location], found)
    left = Counter(f.location for f in figures if f.id not in found and f.metric != "participants")
    if left:
        counts = ", ".join(f"{location} ({n})" for location, n in left.items())
        lines += ["## Not measured", "", f"Figures, with their number: {counts}."]
    return "\n".join(lines).rstrip() + "\n"


def _claim(claim: Mapping[str, str]) -> str:
    cells = (claim["what"], f"*{claim['status']}*", claim["number"])
    evidence = f"`{claim['test']}`" if "test" in claim else ""
    if "link" in claim:
        name = claim["link"].partition("#")[0].rpartition("/")[2]
        evidence = f"[{name}]({claim['link']})"
    return f"| {' | '.join(map(_text, cells))} | {evidence} |"


def _tables(figures: Sequence[PublishedFigure], found: Rows) -> list[str]:
    """One table per metric, a column per model where these are few."""
    lines = []
    groups: dict[tuple[str, str], list[PublishedFigure]] = {}
    for f in figures:
        groups.setdefault((f.metric, f.unit), []).append(f)
    for (metric, unit), group in groups.items():
        models = list(dict.fromkeys(f.model for f in group))
        wide, alike = 1 < len(models) <= MOST_COLUMNS, len(models) == 1
        joined = len(group) > MOST_FIGURES
        cells: dict[str, dict[str, list[PublishedFigure]]] = {}
        for f in group:
            words = (f.mechanism.replace("none", "raw"), "" if joined else f.parameter)
            setting = ", ".join(filter(None, (f.dataset, " ".join(filter(None, words)))))
            label = ", ".join(filter(None, (setting, "" if wide or alike else f.model)))
            column = f.model if wide else unit or "value"
            cells.setdefault(label, {}).setdefault(column, []).append(f)
        columns = models if wide else [unit or "value"]
        title = ", ".join(filter(None, (metric, unit if wide else "", models[0] if alike else "")))
        lines += [f"| {_text(title)} | " + " | ".join(_text(c) or "-" for c in columns) + " |"]
        lines += ["|---" * (len(columns) + 1) + "|"]
        for label, row in cells.items():
            texts = (_cell(row[c], found) if c in row else "" for c in columns)
            lines.append(f"| {_text(label)} | {' | '.join(texts)} |")
        lines.append("")
    return lines


def _cell(figures: Sequence[PublishedFigure], found: Rows) -> str:
    """Published values and ours, of one setting or over several."""
    rows = [found[f.id] for f in figures]
    text = _range([row["ours"] for row in rows])
    ends = [(row["low"], row["high"]) for row in rows if None not in (row["low"], row["high"])]
    if ends:
        text += f" ({min(low for low, _ in ends):.3g} to {max(high for _, high in ends):.3g})"
    simulated = any(str(row["reason"]).startswith("simulated") for row in rows)
    published = figures[0].value if len(figures) == 1 else _range([f.number for f in figures])
    return f"{_text(published)} / " + (f"*{text}*" if simulated else text)


def _range(values: Sequence[Any]) -> str:
    if not all(isinstance(v, int | float) for v in values):
        return ", ".join(map(str, values))
    ends = dict.fromkeys(f"{v:.3g}" for v in (min(values), max(values)))
    return " to ".join(ends)


def _text(text: str) -> str:
    return str(text).replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    """Add the runs that are named, and write the pages."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    runs = dict(word.split("=", 1) for word in sys.argv[1:])
    if runs:
        add(record, runs)
    notes = tomllib.loads((HERE / "claims.toml").read_text(encoding="utf-8"))
    for paper in CITATIONS:
        (HERE / f"{paper}.md").write_text(page(paper, record, notes), encoding="utf-8")


if __name__ == "__main__":
    main()
