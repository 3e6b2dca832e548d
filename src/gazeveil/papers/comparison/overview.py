"""One page over the papers' studies: what each found beside its paper, with links to their pages,
and the same as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path

from gazeveil.evaluation.report.page import STYLE
from gazeveil.evaluation.results import Results
from gazeveil.papers.citations import CITATIONS
from gazeveil.papers.comparison.failures import reason_lines, reasons
from gazeveil.papers.comparison.grading import VERDICTS, summary
from gazeveil.papers.comparison.lookup import parts, published_rows


def write_overview(runs: Mapping[str, Results], failures: Mapping[str, str], folder: Path) -> Path:
    """Write `index.html` and `record.json`; returns the page. The page of study `a/b` is
    `a/b/report.html` below the folder; `failures` are the studies that could not be computed, with
    the reason.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        name: {
            "name": results.study.get("name"),
            "paper": results.study.get("paper"),
            "quick": results.study.get("quick"),
            "parts": results.study.get("parts"),
            "published": published_rows(results),
            "not_computed": {why: len(cells) for why, cells in reasons(results).items()},
        }
        for name, results in runs.items()
    }
    text = json.dumps({"studies": record, "failures": dict(failures)}, indent=1, default=str)
    (folder / "record.json").write_text(text + "\n", encoding="utf-8")
    page = folder / "index.html"
    page.write_text(_page(runs, failures), encoding="utf-8")
    return page


def _page(runs: Mapping[str, Results], failures: Mapping[str, str]) -> str:
    everything = [row for results in runs.values() for row in published_rows(results)]
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
    lines = [f"{name}: {why}" for name, why in failures.items()]
    lines += [f"{name}, {line}" for name, results in runs.items() for line in reason_lines(results)]
    if lines:
        body.append("<h2>What was cut or could not be computed</h2><ul>")
        body += [f"<li>{escape(line)}</li>" for line in lines]
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
    names = ("study", "recordings of the dataset", *VERDICTS, "not graded", "cells not computed")
    head = "".join(f"<th scope=col>{escape(n)}</th>" for n in names)
    lines = []
    for name, results in runs.items():
        rows = published_rows(results)
        counts = [sum(r["verdict"] == v for r in rows) for v in (*VERDICTS, "")]
        listed = list(parts(results).values())
        real = f"{sum(bool(p.get('real')) for p in listed)} of {len(listed)} parts"
        link = f'<a href="{escape(name)}/report.html">{escape(name)}</a>'
        cells = "".join(
            f"<td>{escape(str(c))}</td>" for c in (real, *counts, len(results.failures))
        )
        lines.append(f"<tr><th scope=row>{link}</th>{cells}</tr>")
    return (
        '<div class=box tabindex=0 role=region aria-label="studies"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
