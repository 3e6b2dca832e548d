"""The report itself: sections put together into one HTML file that asks nothing of the network and
runs no script.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gazeveil.errors import ParameterError
from gazeveil.evaluation.report import charts, pictures, summary
from gazeveil.evaluation.report.canvas import Markup, drawing, join, picture, table, tag
from gazeveil.evaluation.report.cards import release_card
from gazeveil.evaluation.report.charts import draw_gallery, tradeoffs
from gazeveil.evaluation.report.findings import Findings, Headline
from gazeveil.evaluation.report.labels import attack_label, interval, percent, points, probability
from gazeveil.evaluation.report.sections import (
    attackers,
    cohort_text,
    failures,
    folded,
    guarantees,
    inferences,
    method,
    persons,
    published,
    utilities,
)
from gazeveil.plot.canvas import INKS

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results

# The page may show its own style and its own pictures, and make no request. Browsers enforce that.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


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
    title = str(findings.study.get("title") or findings.study.get("name") or "Study")
    sections = [section for section in _sections(findings, folder, with_raw) if section[2]]
    links = tag(
        "ul", *(tag("li", tag("a", heading, href=f"#{name}")) for name, heading, _ in sections)
    )
    content = [
        tag(
            "section",
            tag("h2", heading, id=f"{name}-heading"),
            body,
            id=name,
            aria_labelledby=f"{name}-heading",
        )
        for name, heading, body in sections
    ]
    top = tag(
        "header",
        tag("p", "Gazeveil: what an attacker gets, what an analyst keeps", class_="kicker"),
        tag("h1", title),
        _lead(findings),
        tag("nav", links, aria_label="Sections"),
    )
    from gazeveil import __version__

    foot = tag(
        "footer",
        f"Written by gazeveil {__version__}. The page holds everything it shows; nothing is loaded"
        " from elsewhere.",
    )
    head = [
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", f"{title}: gazeveil report"),
        tag("style", Markup(STYLE)),
    ]
    return (
        "<!DOCTYPE html>\n"
        + tag("html", tag("head", *head), tag("body", top, tag("main", *content), foot), lang="en")
        + "\n"
    )


def _lead(findings: Findings) -> Markup:
    text = cohort_text(findings)
    more = summary.leading_example(findings)
    return join(
        [
            tag("p", summary.baseline_sentence(findings), class_="lead"),
            tag("p", more) if more else "",
            tag("p", text, class_="small") if text else "",
        ]
    )


def _sections(findings: Findings, folder: Path, with_raw: bool) -> list[tuple[str, str, Markup]]:
    return [
        ("summary", "In short", _summary(findings)),
        ("identification", "Who is recognised", _identification(findings, folder)),
        ("inference", "What else is inferred", inferences(findings)),
        ("utility", "What an analyst keeps", _utility(findings, folder)),
        ("adaptive", "When the attacker adapts", _adaptive(findings, folder)),
        ("gallery", "Among how many people", _gallery(findings, folder)),
        ("confusion", "Who is taken for whom", _confusion(findings, folder, with_raw)),
        ("data", "The data, before and after", _examples(findings, folder, with_raw)),
        ("guarantees", "What is promised", guarantees(findings)),
        ("published", "Beside the published figures", published(findings)),
        ("further", "Further tables", _further(findings)),
        ("failures", "Failures", failures(findings, with_raw)),
        ("method", "How it was measured", method(findings, with_raw)),
    ]


def _summary(findings: Findings) -> Markup:
    shown = [release_card(findings, r, note) for r, note in summary.cards(findings)]
    return join(
        [
            tag("ul", *(tag("li", s) for s in summary.overview(findings))),
            tag("ul", *shown, class_="cards"),
            tag("p", summary.FOOTNOTE, class_="small"),
        ]
    )


def _identification(findings: Findings, folder: Path) -> Markup:
    if not findings.attacked:
        return tag("p", "Nobody attacked these releases.")
    rows = []
    for release in findings.attacked:
        shown, worst, rbfn = release.shown, release.worst, release.rbfn
        if shown is None or worst is None:
            continue
        alone = (
            "-"
            if rbfn is None
            else rbfn.people + (" (would say safe)" if release.missed_by_rbfn else "")
        )
        rate = f"{percent(shown.value)} ({interval(shown.low, shown.high) or 'no interval'})"
        rows.append(
            (
                f"{release.number}. {release.label}",
                shown.people,
                rate,
                probability(shown.p_value),
                percent(worst.value),
                f"{attack_label(worst.attack)}, {worst.scenario}",
                alone,
                _points(release.headline),
            )
        )
    head = (
        "release",
        "recognised",
        "rate (95 %)",
        "p",
        "best of all",
        "who, scenario",
        "RBF network alone",
        "less network, points (95 %)",
    )
    guess = ", ".join(
        sorted({percent(r.worst.chance) for r in findings.attacked if r.worst is not None})
    )
    return join(
        [
            picture(charts.identification(findings, folder), one=True),
            table(
                f"The {findings.strongest} on each release, chosen on the other splits over all"
                f" scenarios, and the best of all. Guessing: {guess}.",
                head,
                rows,
            ),
            tag("p", summary.called_safe(findings)),
            attackers(findings),
        ]
    )


def _points(over: Headline | None) -> str:
    if over is None or not math.isfinite(over.difference):
        return "-"
    ends = points(over.difference_low), points(over.difference_high)
    return f"{points(over.difference)} ({ends[0]} to {ends[1]})"


def _utility(findings: Findings, folder: Path) -> Markup:
    if not findings.metrics:
        return Markup("")
    drawn = tradeoffs(findings, folder)
    key = tag(
        "ul",
        *(tag("li", tag("b", r.number), " ", r.label) for r in findings.attacked),
        class_="key",
        aria_label="Key of releases",
    )
    return join(
        [
            key if drawn else "",
            tag("div", *(picture(p) for p in drawn), class_="grid") if drawn else "",
            utilities(findings),
        ]
    )


def _adaptive(findings: Findings, folder: Path) -> Markup:
    differences = findings.differences
    if not differences:
        return Markup("")
    rows = [
        (
            f"{d.release.number}. {d.release.label}",
            d.scenario,
            attack_label(d.attack),
            percent(d.rate),
            percent(d.frozen_rate),
            (
                f"{100 * d.difference:+.0f} ({100 * d.low:+.0f} to {100 * d.high:+.0f})"
                if d.low == d.low
                else f"{100 * d.difference:+.0f}"
            ),
            summary.difference_verdict(d),
        )
        for d in differences
    ]
    head = (
        "release",
        "scenario",
        "attacker",
        "recognised",
        "frozen attacker",
        "difference, points (95 %)",
        "verdict",
    )
    intro = (
        "An attacker may clean the noise away, average several releases, or learn from releases"
        " made with the mechanism itself. Each is reported as itself."
    )
    return join(
        [
            tag("p", intro),
            picture(charts.adaptive(differences, folder), one=True),
            folded(
                "Adaptive attackers",
                table("Adaptive attackers beside the same attacker left as it is.", head, rows),
                len(rows),
                long=len(rows) > 12,
            ),
        ]
    )


def _gallery(findings: Findings, folder: Path) -> Markup:
    drawn = draw_gallery(findings, folder)
    return Markup("") if drawn is None else picture(drawn, one=True)


def _confusion(findings: Findings, folder: Path, with_raw: bool) -> Markup:
    drawn = pictures.confusion(findings, folder)
    if drawn is None:
        return Markup("")
    return join([picture(drawn, one=True), persons(findings, with_raw)])


def _examples(findings: Findings, folder: Path, with_raw: bool) -> Markup:
    shown = [pictures.maps(findings, folder, with_raw)]
    if with_raw:
        shown.insert(0, pictures.traces(findings, folder))
    else:
        (folder / "traces.png").unlink(missing_ok=True)  # of an earlier report in this folder
    drawn = [picture(p) for p in shown if p is not None]
    left_out = (
        "A recording before and after is left out: this page may be sent on. With --with-raw, or"
        " report(with_raw=True), it is shown, with the names of people."
    )
    traced = bool(findings.results.examples.get("traces"))
    mapped = bool(findings.results.examples.get("maps"))
    if mapped and pictures.few_viewers(findings):
        left_out += (
            f" So is the map: fewer than {pictures.LEAST_VIEWERS} people saw one stimulus, and a"
            " map of few is nearly a recording."
        )
    return join(
        [
            tag("div", *drawn, class_="grid") if drawn else "",
            tag("p", left_out, class_="small") if (traced or mapped) and not with_raw else "",
        ]
    )


def _further(findings: Findings) -> Markup:
    """Tables a study brings along: `tables`, a list of caption, columns and rows."""
    entries = findings.study.get("tables")
    tables = []
    for entry in entries if isinstance(entries, list | tuple) else ():
        if isinstance(entry, Mapping) and entry.get("columns") and entry.get("rows"):
            rows = [
                [c if isinstance(c, str) else json.dumps(c, ensure_ascii=False) for c in row]
                for row in entry["rows"]
            ]
            tables.append(table(str(entry.get("caption", "")), [*map(str, entry["columns"])], rows))
    return join(tables)


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
