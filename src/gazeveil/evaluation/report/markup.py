"""Pieces of HTML: everything that comes from data is escaped here, and nowhere is it put into a
page in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from gazeveil.evaluation.report.canvas import Picture
from gazeveil.evaluation.report.labels import STATUSES


class Markup(str):
    """Text that is HTML already; all other text is escaped on its way into a page."""

    __slots__ = ()


def html(value: object) -> str:
    """A value as HTML: escaped, unless it is :class:`Markup`."""
    return str(value) if isinstance(value, Markup) else escape(str(value), quote=True)


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """An element; `class_` stands for class, a dash in a name is written as an underscore."""
    shown = "".join(
        f' {k.rstrip("_").replace("_", "-")}="{escape(str(v), quote=True)}"'
        for k, v in attributes.items()
        if v is not None
    )
    return Markup(f"<{name}{shown}>" + "".join(html(c) for c in content) + f"</{name}>")


def join(parts: Iterable[object]) -> Markup:
    """Pieces, one after the other."""
    return Markup("".join(html(p) for p in parts))


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    worst: Iterable[bool] | None = None,
) -> Markup:
    """A table that scrolls inside its box; the first cell of a row is its heading."""
    marks = list(worst) if worst is not None else None
    body = []
    for i, row in enumerate(rows):
        cells = [
            tag("th", row[0], scope="row"),
            *(
                tag("td", c, class_="n" if len(str(c)) < 22 and not isinstance(c, Markup) else "t")
                for c in row[1:]
            ),
        ]
        body.append(tag("tr", *cells, class_="worst" if marks is not None and marks[i] else None))
    inner = tag(
        "table",
        tag("caption", tag("span", caption)),
        tag("thead", tag("tr", *(tag("th", h, scope="col") for h in head))),
        tag("tbody", *body),
    )
    return tag("div", inner, class_="box", tabindex="0", role="region", aria_label=caption)


def picture(drawn: Picture, *, one: bool = False) -> Markup:
    """A picture with its caption and a link to the PNG beside the page."""
    svg = Markup(
        drawn.svg.replace(
            "<svg", f'<svg role="img" aria-label="{escape(drawn.alt, quote=True)}"', 1
        )
    )
    link = tag(
        "a",
        "PNG",
        href=f"{drawn.name}.png",
        class_="png",
        aria_label=f"This picture as PNG: {drawn.name}.png",
    )
    return tag(
        "figure", svg, tag("figcaption", drawn.caption + " ", link), class_="one" if one else None
    )


def badge(status: str, recognised: bool = False) -> Markup:
    """The status of a guarantee: a sign and words, so that it is not told by colour alone. Beside a
    release whose people are recognised a proof has no tick and no colour, because a reader takes
    them for safety.
    """
    if recognised and status == "proved":
        return tag("span", "promise proved, people recognised", class_="badge none")
    sign, label = STATUSES.get(status, ("", status))
    return tag(
        "span",
        f"{sign} {label}".strip(),
        class_=f"badge {status}" if status in STATUSES else "badge",
    )


def people(found: int, n: int, ink: str) -> Markup:
    """A row of people, those who are recognised filled: a picture of a count."""
    label = f"{found} of {n} people recognised"
    if n > 100:
        wide = 200 * found / n
        bars = (
            '<rect width="200" height="12" rx="3" fill="none" stroke="var(--faint)"/><rect'
            f' width="{wide:.1f}" height="12" rx="3" fill="var(--{ink})"/>'
        )
        return Markup(
            f'<svg class="people" role="img" aria-label="{escape(label)}" viewBox="-1 -1 202'
            f' 14">{bars}</svg>'
        )
    columns = min(n, 12 if n <= 36 else 20)
    rows = -(-n // columns)
    dots = []
    for i in range(n):
        x, y = 10 * (i % columns) + 5, 10 * (i // columns) + 5
        look = (
            f'fill="var(--{ink})"'
            if i < found
            else 'fill="none" stroke="var(--faint)" stroke-width="1.2"'
        )
        dots.append(f'<circle cx="{x}" cy="{y}" r="3.6" {look}/>')
    return Markup(
        f'<svg class="people" role="img" aria-label="{escape(label)}" viewBox="0 0 {10 * columns}'
        f' {10 * rows}">{"".join(dots)}</svg>'
    )
