"""The page of a paper: its tables and figures in its own numbering with ours beside them, then what
became of its claims. As one HTML file of a run, or as tables for the manual.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gazeveil.evaluation.report.page import STYLE
from gazeveil.evaluation.results import Results
from gazeveil.pages import render
from gazeveil.papers.figures import CITATIONS, PublishedFigure, Row
from gazeveil.papers.grading import (
    SIMULATED,
    Line,
    Rows,
    draw,
    figures_of,
    is_absent,
    panels_of,
    summary,
    titled,
)
from gazeveil.papers.study_file import PARTS, folder_name, reason_lines

#: Most models that stand side by side; more become rows.
MOST_COLUMNS = 6

#: Most figures of a table with a row per setting. In longer tables, and beside a picture whose
#: values are not printed, a row is one mechanism.
MOST_FIGURES = 12


@dataclass(frozen=True)
class PageTable:
    """Texts of a table; stars around a text stand for simulated people."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """One place of a paper."""

    title: str
    tables: tuple[PageTable, ...]
    picture: Path | None = None


def sections(
    paper: str,
    rows: Sequence[Mapping[str, Any]],
    folder: Path | None = None,
    curves: Mapping[str, Any] | None = None,
) -> list[Section]:
    """The places of a paper that some rows of a comparison answer, then its claims.

    Parameters
    ----------
    paper : str
        Its key.
    rows : sequence of mappings
        As :func:`gazeveil.papers.grading.compare` gives them; those without a figure of ours are
        passed over.
    folder : Path, optional
        Where pictures are written; none without it.
    curves : mapping, optional
        Correlation curves by dataset, as a study keeps them.
    """
    found = {str(row["id"]): row for row in rows if row["ours"] is not None}
    figures = [f for f in figures_of(paper) if f.id in found and f.model != "chance"]
    places = []
    for location in dict.fromkeys(f.location for f in figures):
        here = [f for f in figures if f.location == location]
        picture = None
        if folder is not None and location.startswith("Fig"):
            title = titled(f"{_citation(paper)} {location}", [found[f.id] for f in here])
            path = folder / f"{paper}-{location.lower().replace(' ', '')}.png"
            picture = draw(panels_of(here, found), title, path)
        places.append(Section(location[:1].upper() + location[1:], _tables(here, found), picture))
    for dataset, kept in (curves or {}).items():
        places += _correlations(paper, dataset, kept, folder)
    ids = {f.id for f in figures_of(paper)}
    claims = tuple(
        (str(r["what"]), str(r["published"]), str(r["ours"]), _verdict(r))
        for r in found.values()
        if r["id"] not in ids
    )
    if claims:
        table = PageTable(("claim", "published", "ours", "verdict"), claims)
        places.append(Section("Orders and formulas", (table,)))
    return places


def markdown(places: Sequence[Section], folder: Path) -> list[str]:
    """Lines of the manual; pictures are linked from a folder."""
    lines = []
    for place in places:
        lines += [f"## {place.title}", ""]
        if place.picture is not None:
            where = place.picture.relative_to(folder).as_posix()
            lines += [f"![{place.title}]({where})", ""]
        for table in place.tables:
            head, *rows = (
                f"| {' | '.join(map(escaped, cells))} |" for cells in (table.header, *table.rows)
            )
            lines += [head, "|" + "---|" * len(table.header), *rows, ""]
    return lines


def write(results: Mapping[str, Results], folder: Path, whole: bool = False) -> Path:
    """Write the page of a study, or of the whole of a paper, and the pictures beside it; then
    studies `a/b` lie in the folder of that name. Returns the page.
    """
    studies = list(results.values())
    paper = str(studies[0].study.get("paper") or "")
    rows = {row["id"]: row for study in studies for row in published_rows(study)}
    held = [row for row in rows.values() if not is_absent(row)]
    curves: dict[str, Any] = {}
    for study in studies:
        kept: Any = study.study.get("curves")
        curves |= kept or {}
    places = sections(paper, held, folder / "figures", curves) if paper else []
    links, failures = [], []
    for name, study in results.items():
        base = f"{name}/" if whole else ""
        for part in study.study["parts"]:  # type: ignore[attr-defined]
            where = f"{base}{PARTS}/{folder_name(part['cohort'])}/report.html"
            links.append((f"{base}{part['cohort']}", where, _shape(part)))
        failures += [f"{base}{line}" for line in reason_lines(study)]
    title = CITATIONS[paper] if whole else str(studies[0].study.get("name", "Study"))
    page = folder / (f"{paper}.html" if whole else "report.html")
    html = render(
        "papers/page.html",
        name=title,
        style=STYLE,
        lead=summary(list(rows.values())) if rows else "",
        quick=any(study.study.get("quick") for study in studies),
        sections=[_for_html(place) for place in places],
        parts=links,
        failures=failures,
    )
    folder.mkdir(parents=True, exist_ok=True)
    page.write_text(html, encoding="utf-8")
    return page


def write_all(results: Mapping[str, Results], folder: Path) -> list[Path]:
    """Write one page per paper, and `record.json` with all rows by study."""
    pages = []
    for paper in CITATIONS:
        own = {name: r for name, r in results.items() if r.study.get("paper") == paper}
        if own:
            pages.append(write(own, folder, whole=True))
    record = {name: published_rows(study) for name, study in results.items()}
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, default=str)
    (folder / "record.json").write_text(text + "\n", encoding="utf-8")
    return pages


def published_rows(results: Results) -> list[Row]:
    """The published figures beside ours that a study carries."""
    rows: Any = results.study.get("published", [])
    return list(rows)


def _citation(paper: str) -> str:
    """Authors in short, and year."""
    return f"{CITATIONS[paper].partition(',')[0]} et al. {paper[-4:]}"


def _tables(figures: Sequence[PublishedFigure], found: Rows) -> tuple[PageTable, ...]:
    """One table per metric, a column per model where these are few."""
    groups: dict[tuple[str, str], list[PublishedFigure]] = {}
    for f in figures:
        groups.setdefault((f.metric, f.unit), []).append(f)
    return tuple(_table(metric, unit, group, found) for (metric, unit), group in groups.items())


def _table(metric: str, unit: str, figures: Sequence[PublishedFigure], found: Rows) -> PageTable:
    models = list(dict.fromkeys(f.model for f in figures))
    wide, alike = 1 < len(models) <= MOST_COLUMNS, len(models) == 1
    sets = {f.dataset for f in figures}
    joined = len(figures) > MOST_FIGURES or not any(f.value for f in figures)
    cells: dict[str, dict[str, list[PublishedFigure]]] = {}
    for f in figures:
        words = (f.mechanism.replace("none", "raw"), "" if joined else f.parameter)
        names = (f.dataset if len(sets) > 1 else "", " ".join(filter(None, words)))
        label = ", ".join(filter(None, (*names, "" if wide or alike else f.model)))
        column = f.model if wide else unit or "value"
        cells.setdefault(label, {}).setdefault(column, []).append(f)
    columns = models if wide else [unit or "value"]
    others = list(dict.fromkeys(n for f in figures for n in found[f.id].get("beside", {})))
    verdicts = any(found[f.id]["verdict"] for f in figures)
    alone = [*(models if alike else ()), *(sets if len(sets) == 1 else ())]
    title = ", ".join(filter(None, (metric, unit if wide else "", *alone)))
    rows = []
    for label, row in cells.items():
        here = [found[f.id] for group in row.values() for f in group]
        rows.append(
            (
                label,
                *(_cell(row[c], found) if c in row else "" for c in columns),
                *(_beside(here, name) for name in others),
                *(["; ".join(dict.fromkeys(map(_verdict, here)))] if verdicts else []),
            )
        )
    return PageTable(
        (title, *(c or "-" for c in columns), *others, *(["verdict"] if verdicts else [])),
        tuple(rows),
    )


def _cell(figures: Sequence[PublishedFigure], found: Rows) -> str:
    """Published values and ours, of one setting or over several."""
    rows = [found[f.id] for f in figures]
    ends = [(row["low"], row["high"]) for row in rows if None not in (row["low"], row["high"])]
    simulated = any(str(row["reason"]).startswith(SIMULATED) for row in rows)
    # What grades nothing stands without its interval, which is in the record.
    text = _range([row["ours"] for row in rows]) + (
        f" ({_interval(ends)})" if ends and not simulated else ""
    )
    printed = figures[0].value if len(figures) == 1 else _range([f.number for f in figures])
    return (f"{printed}/" if printed not in ("", "nan") else "") + (
        f"*{text}*" if simulated else text
    )


def _beside(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """What another attacker finds."""
    numbers = [row["beside"][name] for row in rows if name in row.get("beside", {})]
    if not numbers:
        return ""
    ends = [(low, high) for _, low, high in numbers if None not in (low, high)]
    return _range([n[0] for n in numbers]) + (f" ({_interval(ends)})" if ends else "")


def _interval(ends: Sequence[tuple[float, float]]) -> str:
    return f"{min(low for low, _ in ends):.3g}\N{EN DASH}{max(high for _, high in ends):.3g}"


def _range(values: Sequence[Any]) -> str:
    if not all(isinstance(v, int | float) for v in values):
        return ", ".join(map(str, values))
    ends = dict.fromkeys(f"{v:.3g}" for v in (min(values), max(values)))
    return "\N{EN DASH}".join(ends)


def _verdict(row: Mapping[str, Any]) -> str:
    return (
        ""  # italics say that people are simulated
        if str(row["reason"]).startswith(SIMULATED)
        else f"{row['verdict'] or 'not graded'}: {row['reason']}".removesuffix(": ")
    )


def _correlations(
    paper: str, dataset: str, kept: Mapping[str, Any], folder: Path | None
) -> list[Section]:
    """Figs 3 to 6 of Bozkir et al. 2021, as far as a study keeps curves."""
    if folder is None or not kept:
        return []
    panels = {
        (dataset, f"correlation, {kind} signals", "steps after the fifth"): {
            label: Line({str(i): (v, v, v) for i, v in enumerate(values, 1) if v is not None})
            for label, values in kept[kind].items()
        }
        for kind in ("raw", "difference")
    }
    place = "Figs 3 and 4" if dataset == "MPIIDPEye" else "Figs 5 and 6"
    title = f"{_citation(paper)} {place}: {kept['feature']} over people, {dataset}"
    return [Section(place, (), draw(panels, title, folder / f"{paper}-{dataset.lower()}.png"))]


def _shape(part: Mapping[str, Any]) -> str:
    return (
        f"{part['people']} people, {part['stimuli']} stimuli, {part.get('source', 'recordings')},"
        f" {part['repetitions']} repetitions"
    )


def _for_html(place: Section) -> dict[str, object]:
    """A section with its picture inside, and what is simulated in italics."""
    from markupsafe import Markup, escape

    picture = "" if place.picture is None else b64encode(place.picture.read_bytes()).decode("ascii")
    tables = [
        {
            "header": table.header,
            "rows": [
                [Markup(re.sub(r"\*(.+?)\*", r"<em>\1</em>", str(escape(cell)))) for cell in row]
                for row in table.rows
            ],
        }
        for table in place.tables
    ]
    return {"title": place.title, "picture": picture, "tables": tables}


def escaped(text: str) -> str:
    """A text in a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")
