"""From a matplotlib figure to two things: a PNG beside the report, and an inline SVG whose colours
follow the reader's light or dark mode.

Pieces of HTML: everything that comes from data is escaped here, and nowhere is it put into a
page in another way.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazeveil.evaluation.report.labels import STATUSES
from gazeveil.plot.canvas import INKS, light

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Width of every picture in inches. At 72 units to the inch, type of 10 units is about 10 CSS
#: pixels on a phone and 15 in a column.
WIDTH_IN = 5.0

_DPI = 200


@dataclass(frozen=True)
class Picture:
    """A picture of the report.

    Parameters
    ----------
    name : str
        File name of the PNG, without its ending.
    svg : str
        For the page, without size and with variables for colours.
    alt : str
        What it shows, in words, for those who do not see it; plain text.
    caption : str
        How to read it; plain text.
    """

    name: str
    svg: str
    alt: str
    caption: str


@contextmanager
def drawing() -> Iterator[None]:
    """Settings of every picture. Names from data are shown as they are: a dollar sign begins no
    formula.
    """
    import matplotlib as mpl

    settings: dict[Any, Any] = {
        "font.size": 10,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": 10,
        "xtick.labelsize": 9.5,
        "ytick.labelsize": 9.5,
        "legend.fontsize": 9.5,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": light("rule"),
        "grid.linewidth": 0.7,
        "axes.edgecolor": light("faint"),
        "xtick.color": light("muted"),
        "ytick.color": light("muted"),
        "text.color": light("ink"),
        "axes.labelcolor": light("ink"),
        "axes.titlecolor": light("ink"),
        "figure.facecolor": light("paper"),
        "axes.facecolor": light("paper"),
        "text.parse_math": False,
        "svg.fonttype": "none",
        "axes.unicode_minus": False,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        # A name in a script the font lacks shows as boxes in the PNG; the page shows it with the
        # reader's fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def figure(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """An empty figure that no window and no global state knows of."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_in, height_in), layout="constrained")


def finish(drawn: Figure, folder: Path, name: str, alt: str, caption: str) -> Picture:
    """Write the PNG and make the SVG."""
    import matplotlib as mpl

    drawn.savefig(folder / f"{name}.png", dpi=_DPI, metadata={"Software": "gazeveil"})
    # The layout is found once: both forms show the same picture.
    drawn.set_layout_engine("none")
    stream = io.StringIO()
    # Names inside the SVG are made from its content and this salt: the same bytes every time, and
    # no two pictures share a name.
    with mpl.rc_context({"svg.hashsalt": name}):
        drawn.savefig(
            stream,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    return Picture(name, themed(stream.getvalue(), name), alt, caption)


def themed(svg: str, name: str) -> str:
    """The `<svg>` element for a page: no prolog, no size of its own, names of its own, colours as
    variables.
    """
    body = svg[svg.index("<svg") :]
    head, rest = body.split(">", 1)
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
    # Groups are numbered from 1 in every figure: prefixed, so that no two elements of the page have
    # one name.
    rest = re.sub(r'\bid="', f'id="{name}-', rest)
    rest = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", rest)
    marks = {pair[0].lower(): f"var(--{ink})" for ink, pair in INKS.items()}
    return (
        head
        + ">"
        + re.sub(
            r"(?<=[\s:])#[0-9a-f]{6}(?=[;\"\s])", lambda m: marks.get(m.group(0), m.group(0)), rest
        )
    )


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


def people(n_found: int, n: int, ink: str) -> Markup:
    """A row of people, those who are recognised filled: a picture of a count."""
    label = f"{n_found} of {n} people recognised"
    if n > 100:
        wide = 200 * n_found / n
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
            if i < n_found
            else 'fill="none" stroke="var(--faint)" stroke-width="1.2"'
        )
        dots.append(f'<circle cx="{x}" cy="{y}" r="3.6" {look}/>')
    return Markup(
        f'<svg class="people" role="img" aria-label="{escape(label)}" viewBox="0 0 {10 * columns}'
        f' {10 * rows}">{"".join(dots)}</svg>'
    )
