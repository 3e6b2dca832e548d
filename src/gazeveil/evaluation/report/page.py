"""The report itself: one HTML file that asks nothing of the network and runs no script.

Its template is `report.html`; here is what that shows: headings, pictures and the rows of tables.
Measurement and promise of a release stand in two lines with different words. A proof is then not
mistaken for a re-identification rate of zero.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazeveil.errors import ParameterError
from gazeveil.evaluation.report import charts, labels, pictures, sections, summary
from gazeveil.evaluation.report.charts import drawing
from gazeveil.evaluation.report.findings import Findings
from gazeveil.pages import render
from gazeveil.plot.paths import INKS

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results

#: Sections of the page in order; one that has nothing to show is left out.
HEADINGS = {
    "summary": "In short",
    "identification": "Who is recognised",
    "inference": "What else is inferred",
    "utility": "What an analyst keeps",
    "adaptive": "When the attacker adapts",
    "gallery": "Among how many people",
    "persons": "Who is taken for whom",
    "data": "The data, before and after",
    "guarantees": "What is promised",
    "published": "Beside the published figures",
    "further": "Further tables",
    "failures": "Failures",
    "method": "How it was measured",
}


def headline(results: Results) -> tuple[str, ...]:
    """The summary of a study in a few plain sentences, for a terminal.

    Parameters
    ----------
    results : Results
        From a study.
    """
    return summary.headline(Findings(results))


def write_report(results: Results, path: str | Path, with_raw: bool = False) -> Path:
    """Write the report of a study.

    Parameters
    ----------
    results : Results
        From a study.
    path : str or Path
        A folder, which gets `report.html` and the pictures as PNG; or the HTML file itself, and the
        pictures go beside it.
    with_raw : bool
        Show a raw trace and the names of people. Left out by default, because the page is made to
        be sent on; nor is a released trace shown then, whose noise follows from the seed that the
        page names.

    Returns
    -------
    Path
        The HTML file. It holds its style and its pictures: it can be sent alone.
    """
    target = Path(path)
    if target.suffix.lower() not in {".html", ".htm"}:
        target = target / "report.html"
    if target.is_dir() or target.parent.is_file():
        raise ParameterError(
            f"The report needs a folder or an HTML file to write. Got '{path}' instead.",
            name="path",
            got=str(path),
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with drawing():
        target.write_text(_page(Findings(results), target.parent, with_raw), encoding="utf-8")
    return target


def _page(findings: Findings, folder: Path, with_raw: bool) -> str:
    from markupsafe import Markup

    from gazeveil import __version__

    drawn = _pictures(findings, folder, with_raw)
    examples = findings.results.examples
    tables = {
        "inferences": sections.inferences(findings),
        "adaptive": sections.adaptive(findings),
        "guarantees": sections.guarantees(findings),
        "published": sections.published(findings),
        "further": _further(findings),
        "failures": sections.failures(findings, with_raw),
    }
    persons = sections.persons(findings, with_raw)
    shown = {
        **tables,
        **drawn,
        "persons": persons["rows"],
        "summary": True,
        "identification": True,
        "inference": tables["inferences"],
        "utility": findings.metrics,
        "method": True,
        "data": drawn["data"]
        or (not with_raw and (examples.get("traces") or examples.get("maps"))),
    }
    few = bool(examples.get("maps")) and pictures.few_viewers(findings)
    return render(
        "evaluation/report/report.html",
        style=Markup(STYLE),
        version=__version__,
        name=str(findings.study.get("title") or findings.study.get("name") or "Study"),
        headings={name: words for name, words in HEADINGS.items() if shown[name]},
        findings=findings,
        study=findings.study,
        labels=labels,
        summary=summary,
        pictures=drawn,
        cohort=sections.cohort_text(findings),
        kept=lambda release: sections.kept(findings, release),
        ticked=sections.ticked,
        guess=sections.guess(findings),
        strongest=sections.strongest(findings),
        attackers=sections.attackers(findings),
        utilities=sections.utilities(findings),
        persons=persons,
        method=sections.method(findings, with_raw),
        with_raw=with_raw,
        few_viewers=pictures.LEAST_VIEWERS if few else 0,
        **tables,
    )


def _pictures(findings: Findings, folder: Path, with_raw: bool) -> dict[str, Any]:
    """Pictures by their section; None where there is nothing to draw."""
    if not with_raw:
        (folder / "traces.png").unlink(missing_ok=True)  # of an earlier report in this folder
    traces = pictures.traces(findings, folder) if with_raw else None
    data = [traces, pictures.maps(findings, folder, with_raw)]
    differences = findings.differences
    return {
        "identification": charts.identification(findings, folder) if findings.attacked else None,
        "fronts": charts.tradeoffs(findings, folder),
        "adaptive": charts.adaptive(differences, folder) if differences else None,
        "gallery": charts.draw_gallery(findings, folder),
        "data": [picture for picture in data if picture is not None],
    }


def _further(findings: Findings) -> list[dict[str, Any]]:
    """Tables a study brings along: `tables`, a list of caption, columns and rows."""
    entries = findings.study.get("tables")
    return [
        {
            "caption": str(entry.get("caption", "")),
            "columns": [str(column) for column in entry["columns"]],
            "rows": [
                [c if isinstance(c, str) else json.dumps(c, ensure_ascii=False) for c in row]
                for row in entry["rows"]
            ],
        }
        for entry in (entries if isinstance(entries, list | tuple) else ())
        if isinstance(entry, Mapping) and entry.get("columns") and entry.get("rows")
    ]


def _variables(side: int) -> str:
    return "".join(f"--{name}:{pair[side]};" for name, pair in INKS.items())


#: Paper is white on paper, whatever the screen is.
_COLOURS = (
    f":root{{color-scheme:light dark;{_variables(0)}}}\n"
    f"@media (prefers-color-scheme:dark){{:root{{{_variables(1)}}}}}\n"
    f"@media print{{:root{{{_variables(0)}}}}}\n"
)

#: The style sheet of every page.
STYLE = _COLOURS + Path(__file__).with_name("style.css").read_text(encoding="utf-8")
