"""From a matplotlib figure to two things: a PNG beside the report, and an inline SVG whose colours
follow the reader's light or dark mode.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazeveil.plot.canvas import INKS, light

if TYPE_CHECKING:
    from markupsafe import Markup
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
    svg : Markup
        For the page, without size and with variables for colours, and in words what it shows.
    caption : str
        How to read it; plain text.
    """

    name: str
    svg: Markup
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
    """Write the PNG and make the SVG; `alt` says in words what the picture shows."""
    import matplotlib as mpl
    from markupsafe import Markup

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
    words = f'<svg role="img" aria-label="{escape(alt, quote=True)}"'
    svg = themed(stream.getvalue(), name).replace("<svg", words, 1)
    return Picture(name, Markup(svg), caption)


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
