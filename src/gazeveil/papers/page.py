"""The page of a study of several parts: the paper's pictures, ours beside the published figures,
and a report of each part.

One HTML file that works offline, pictures included; the parts' reports stand beside it and are
linked.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from gazeveil.evaluation.report.page import STYLE
from gazeveil.evaluation.results import Results
from gazeveil.papers.comparison.failures import reason_lines
from gazeveil.papers.comparison.grading import is_absent, summary
from gazeveil.papers.comparison.lookup import published_rows
from gazeveil.papers.figure import Row
from gazeveil.papers.published import row_texts
from gazeveil.papers.series import PARTS, draw, folder_name, of_part


def write(results: Results, folder: str | Path) -> Path:
    """Write `report.html`, the paper's pictures as PNG and a report of each part.

    Returns
    -------
    Path
        The HTML file.
    """
    place = Path(folder)
    pictures = draw(results, place / "figures")
    listed = results.study.get("parts", [])
    parts = [p for p in listed if isinstance(p, Mapping)] if isinstance(listed, list) else []
    links = []
    for part in parts:
        label = str(part["cohort"])
        where = of_part(results, label).report(place / PARTS / folder_name(label))
        links.append((label, where.relative_to(place).as_posix(), part))
    place.mkdir(parents=True, exist_ok=True)
    target = place / "report.html"
    target.write_text(_page(results, pictures, links), encoding="utf-8")
    return target


def _page(
    results: Results,
    pictures: Sequence[Path],
    links: Sequence[tuple[str, str, Mapping[str, object]]],
) -> str:
    name = escape(str(results.study.get("name", "Study")))
    rows = [r for r in published_rows(results) if not is_absent(r)]
    body = [f"<header><p class=kicker>Gazeveil, a study of several parts</p><h1>{name}</h1>"]
    if rows:
        body.append(f"<p class=lead>{escape(summary(published_rows(results)))}</p>")
    if results.study.get("quick"):
        body.append(
            "<p><strong>Short form</strong>: few people and repetitions, to see that everything"
            " works. It grades nothing.</p>"
        )
    body.append("</header><main>")
    if pictures:
        body.append(
            "<h2 id=figures>The paper's figures and tables, ours and the published values</h2>"
        )
        body += [_picture(p) for p in pictures]
    if rows:
        claims = [r for r in rows if not str(r["id"]).startswith("PF")]
        body.append("<h2 id=orders>Orders and formulas</h2>" + _table(claims) if claims else "")
        body.append(
            "<h2 id=published>Beside the published figures</h2>"
            + _table([r for r in rows if str(r["id"]).startswith("PF")])
        )
    body.append("<h2 id=parts>Parts</h2><ul>" + "".join(_part(*link) for link in links) + "</ul>")
    failures = reason_lines(results)
    if failures:
        body.append("<h2 id=failures>What could not be computed</h2><ul>")
        body += [f"<li>{escape(line)}</li>" for line in failures]
        body.append("</ul>")
    body.append("</main>")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,'
        f' initial-scale=1"><title>{name}</title><style>{STYLE}</style>'
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'
    )


def _picture(path: Path) -> str:
    data = b64encode(path.read_bytes()).decode("ascii")
    caption = escape(path.stem.replace("-", " "))
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{caption}"'
        f' style="max-width:100%;height:auto"><figcaption>{caption}</figcaption></figure>'
    )


def _table(rows: Sequence[Row]) -> str:
    head = "".join(
        f"<th scope=col>{h}</th>"
        for h in ("published figure", "published", "ours", "95 % interval", "comparison", "verdict")
    )
    lines = []
    for label, *rest in row_texts(rows):
        lines.append(
            f"<tr><th scope=row>{escape(label)}</th>"
            + "".join(f"<td>{escape(c)}</td>" for c in rest)
            + "</tr>"
        )
    return (
        '<div class=box tabindex=0 role=region aria-label="comparison"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _part(label: str, where: str, part: Mapping[str, object]) -> str:
    source = "recordings of the dataset" if part.get("real") else "simulated people"
    shape = (
        f"{part.get('people')} people, {part.get('stimuli')} stimuli, {source},"
        f" {part.get('repetitions')} repetitions"
    )
    return f'<li><a href="{escape(where)}">{escape(label)}</a>: {escape(shape)}</li>'
