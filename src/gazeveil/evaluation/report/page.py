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
from gazeveil.evaluation.report import charts, pictures
from gazeveil.evaluation.report import summary as words
from gazeveil.evaluation.report.canvas import drawing
from gazeveil.evaluation.report.findings import Digest, Release
from gazeveil.evaluation.report.labels import (
    attack_label,
    figure_text,
    interval,
    metric_label,
    percent,
)
from gazeveil.evaluation.report.markup import Markup, badge, join, people, picture, table, tag
from gazeveil.evaluation.report.sections import (
    attackers,
    cohort_words,
    failures,
    folded,
    guarantees,
    method,
    persons,
    published,
    utilities,
)
from gazeveil.evaluation.report.theme import STYLE

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results

# The page may show its own style and its own pictures, and ask nobody for anything: a browser holds
# it to that.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def headline(results: Results) -> tuple[str, ...]:
    """The summary of a study in a few plain sentences, for a terminal.

    Parameters
    ----------
    results : Results
        From a study.
    """
    return words.headline(Digest(results))


def write_report(results: Results, path: str | Path) -> Path:
    """Write the report of a study.

    Parameters
    ----------
    results : Results
        From a study.
    path : str or Path
        A folder, which gets `report.html` and the pictures as PNG; or the HTML file itself, and the
        pictures go beside it.

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
        target.write_text(_page(Digest(results), target.parent), encoding="utf-8")
    return target


def _page(digest: Digest, folder: Path) -> str:
    title = str(digest.study.get("title") or digest.study.get("name") or "Study")
    sections = [(name, heading, body) for name, heading, body in _sections(digest, folder) if body]
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
        _lead(digest),
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


def _lead(digest: Digest) -> Markup:
    text = cohort_words(digest)
    more = words.second(digest)
    return join(
        [
            tag("p", words.opening(digest), class_="lead"),
            tag("p", more) if more else "",
            tag("p", text, class_="small") if text else "",
        ]
    )


def _sections(digest: Digest, folder: Path) -> list[tuple[str, str, Markup]]:
    return [
        ("summary", "In short", _summary(digest)),
        ("identification", "Who is recognised", _identification(digest, folder)),
        ("utility", "What an analyst keeps", _utility(digest, folder)),
        ("adaptive", "When the attacker adapts", _adaptive(digest, folder)),
        ("gallery", "Among how many people", _one(charts.gallery(digest, folder))),
        ("confusion", "Who is taken for whom", _confusion(digest, folder)),
        ("data", "The data, before and after", _examples(digest, folder)),
        ("guarantees", "What is promised", guarantees(digest)),
        ("published", "Beside the published figures", published(digest)),
        ("further", "Further tables", _further(digest)),
        ("failures", "Failures", failures(digest)),
        ("method", "How it was measured", method(digest)),
    ]


def _summary(digest: Digest) -> Markup:
    cards = []
    for release, note in words.carded(digest):
        worst = release.worst
        if worst is None:
            continue
        between = interval(worst.low, worst.high)
        warned = words.trap(release)
        kept, more = _kept(digest, release), words.bound(release)
        cards.append(
            tag(
                "li",
                tag(
                    "h3",
                    f"{release.number}. {release.label}" if release.number else "No protection",
                ),
                tag(
                    "p",
                    worst.people,
                    " ",
                    tag(
                        "small",
                        f"recognised ({percent(worst.value)}{', ' + between if between else ''})",
                    ),
                    class_="figure",
                ),
                people(worst.found, worst.n, release.colour),
                tag(
                    "p",
                    "" if worst.above_chance else "No better than guessing. ",
                    f"Strongest attacker: {attack_label(worst.attack)} ({worst.scenario}).",
                ),
                tag("p", warned, class_="trap") if warned else "",
                tag("p", more) if more else "",
                tag("p", f"Kept: {kept}.") if kept else "",
                tag("p", badge(_status(release.guarantee))) if release.guarantee else "",
                tag("p", f"This is {note}.", class_="small") if note else "",
                class_="card",
            )
        )
    return join(
        [
            tag("ul", *(tag("li", s) for s in words.overview(digest))),
            tag("ul", *cards, class_="cards"),
        ]
    )


def _kept(digest: Digest, release: Release) -> str:
    """The first figure of two utilities, with the raw one in brackets."""
    said: list[str] = []
    for utility, metric in digest.drawn_metrics:
        m, raw = (
            release.measure(utility, metric),
            (digest.baseline.measure(utility, metric) if digest.baseline is not None else None),
        )
        if m is not None and math.isfinite(m.value) and len(said) < 2:
            beside = (
                f" (raw {figure_text(raw.value)})"
                if raw is not None and not release.baseline
                else ""
            )
            said.append(f"{metric_label(utility, metric)} {figure_text(m.value)}{beside}")
    return "; ".join(said)


def _status(guarantee: Mapping[str, str]) -> str:
    return "none" if guarantee.get("definition") == "none" else guarantee.get("status", "")


def _identification(digest: Digest, folder: Path) -> Markup:
    if not digest.attacked:
        return tag("p", "Nobody attacked these releases.")
    rows = []
    for release in digest.attacked:
        worst, rbfn = release.worst, release.rbfn
        if worst is None:
            continue
        alone = "-" if rbfn is None else rbfn.people + (" (would say safe)" if release.trap else "")
        rate = f"{percent(worst.value)} ({interval(worst.low, worst.high) or 'no interval'})"
        verdict = "above guessing" if worst.above_chance else "not above guessing"
        rows.append(
            (
                f"{release.number}. {release.label}",
                worst.people,
                rate,
                verdict,
                f"{attack_label(worst.attack)}, {worst.scenario}",
                alone,
            )
        )
    head = (
        "release",
        "recognised",
        "rate (95 %)",
        "verdict",
        "strongest attacker, scenario",
        "RBF network alone",
    )
    guess = ", ".join(
        sorted({percent(r.worst.chance) for r in digest.attacked if r.worst is not None})
    )
    return join(
        [
            picture(charts.identification(digest, folder), one=True),
            table(
                f"The strongest attacker on each release, over all scenarios. Guessing: {guess}.",
                head,
                rows,
            ),
            attackers(digest),
        ]
    )


def _utility(digest: Digest, folder: Path) -> Markup:
    if not digest.metrics:
        return Markup("")
    drawn = charts.fronts(digest, folder)
    key = tag(
        "ul",
        *(tag("li", tag("b", r.number), " ", r.label) for r in digest.attacked),
        class_="key",
        aria_label="Key of releases",
    )
    return join(
        [
            key if drawn else "",
            tag("div", *(picture(p) for p in drawn), class_="grid") if drawn else "",
            utilities(digest),
        ]
    )


def _adaptive(digest: Digest, folder: Path) -> Markup:
    found = digest.differences
    if not found:
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
            words.compared(d),
        )
        for d in found
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
    said = (
        "An attacker may clean the noise away, average several releases, or learn from releases"
        " made with the mechanism itself. Each is reported as itself."
    )
    return join(
        [
            tag("p", said),
            picture(charts.adaptive(found, folder), one=True),
            folded(
                "Adaptive attackers",
                table("Adaptive attackers beside the same attacker left as it is.", head, rows),
                len(rows),
                long=len(rows) > 12,
            ),
        ]
    )


def _one(drawn: object) -> Markup:
    from gazeveil.evaluation.report.canvas import Picture

    return picture(drawn, one=True) if isinstance(drawn, Picture) else Markup("")


def _confusion(digest: Digest, folder: Path) -> Markup:
    drawn = pictures.confusion(digest, folder)
    return join([picture(drawn, one=True), persons(digest)]) if drawn is not None else Markup("")


def _examples(digest: Digest, folder: Path) -> Markup:
    drawn = [
        p for p in (pictures.traces(digest, folder), pictures.maps(digest, folder)) if p is not None
    ]
    return tag("div", *(picture(p) for p in drawn), class_="grid") if drawn else Markup("")


def _further(digest: Digest) -> Markup:
    """Tables a study brings along: `tables`, a list of caption, columns and rows."""
    given = digest.study.get("tables")
    found = []
    for one in given if isinstance(given, list | tuple) else ():
        if isinstance(one, Mapping) and one.get("columns") and one.get("rows"):
            rows = [
                [c if isinstance(c, str) else json.dumps(c, ensure_ascii=False) for c in row]
                for row in one["rows"]
            ]
            found.append(table(str(one.get("caption", "")), [str(c) for c in one["columns"]], rows))
    return join(found)
