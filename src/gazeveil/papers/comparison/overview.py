"""One page over the papers' studies: what each found beside its paper, with links to their pages,
and the same as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path

from gazeveil.evaluation.report.theme import STYLE
from gazeveil.evaluation.results import Results
from gazeveil.papers.citations import CITATIONS
from gazeveil.papers.comparison.grading import VERDICTS, summary
from gazeveil.papers.figure import Row, parts


def write_overview(runs: Mapping[str, Results], failures: Mapping[str, str], folder: Path) -> Path:
    """Write `index.html` and `record.json`.

    Parameters
    ----------
    runs : mapping of study to Results
        What was computed; the page of study `a/b` is `a/b/report.html` below the folder.
    failures : mapping of study to str
        Studies that could not be computed, with the reason.
    folder : Path
        Where.

    Returns
    -------
    Path
        The page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        name: {
            "name": results.study.get("name"),
            "paper": results.study.get("paper"),
            "quick": results.study.get("quick"),
            "parts": results.study.get("parts"),
            "published": _rows(results),
        }
        for name, results in runs.items()
    }
    text = json.dumps({"studies": record, "failures": dict(failures)}, indent=1, default=str)
    (folder / "record.json").write_text(text + "\n", encoding="utf-8")
    page = folder / "index.html"
    page.write_text(_page(runs, failures), encoding="utf-8")
    return page


def _rows(results: Results) -> list[Row]:
    listed = results.study.get("published", [])
    return [dict(r) for r in listed if isinstance(r, Mapping)] if isinstance(listed, list) else []


def _page(runs: Mapping[str, Results], failures: Mapping[str, str]) -> str:
    everything = [row for results in runs.values() for row in _rows(results)]
    body = [
        "<header><p class=kicker>Gazeveil</p><h1>The papers' figures and ours</h1>"
        f"<p class=lead>{escape(summary(everything))}</p>",
        "<p><strong>Short form</strong>: it grades nothing.</p>"
        if any(results.study.get("quick") for results in runs.values())
        else "",
        "</header><main>",
    ]
    for paper, citation in CITATIONS.items():
        own = {n: r for n, r in runs.items() if r.study.get("paper") == paper}
        if own:
            body.append(f"<h2>{escape(citation)}</h2>{_table(own)}")
    if failures:
        body.append("<h2>What could not be computed</h2><ul>")
        body += [f"<li>{escape(name)}: {escape(why)}</li>" for name, why in failures.items()]
        body.append("</ul>")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,'
        f' initial-scale=1"><title>The papers and ours</title><style>{STYLE}</style>'
    )
    joined = "".join(body)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{joined}</main></body></html>\n'
    )


def _table(runs: Mapping[str, Results]) -> str:
    names = ("study", "recordings of the dataset", *VERDICTS, "not graded")
    head = "".join(f"<th scope=col>{escape(n)}</th>" for n in names)
    lines = []
    for name, results in runs.items():
        rows = _rows(results)
        counts = [sum(r["verdict"] == v for r in rows) for v in (*VERDICTS, "")]
        listed = list(parts(results).values())
        real = f"{sum(bool(p.get('real')) for p in listed)} of {len(listed)} parts"
        link = f'<a href="{escape(name)}/report.html">{escape(name)}</a>'
        cells = "".join(f"<td>{escape(str(c))}</td>" for c in (real, *counts))
        lines.append(f"<tr><th scope=row>{link}</th>{cells}</tr>")
    return (
        '<div class=box tabindex=0 role=region aria-label="studies"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
