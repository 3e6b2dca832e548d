"""Colours and style of the report: one set of named inks, light and dark, for the page and for the
pictures in it.

The hues are Okabe and Ito's, which colour-blind readers tell apart, made darker on white and
lighter on black until text in them has a contrast of at least 4.5 against the paper. Pictures are
drawn once in the light colours; in the page each colour stands as a CSS variable, so that they
follow the reader's light or dark mode. No two inks may share a value, or they could not be told
apart again.
"""

from __future__ import annotations

from pathlib import Path

#: Name -> (light, dark).
INKS: dict[str, tuple[str, str]] = {
    "paper": ("#fefefe", "#14181d"),
    "panel": ("#f3f5f7", "#1d2329"),
    "ink": ("#1b2127", "#e8ecf0"),
    "muted": ("#55606b", "#a3afba"),
    "rule": ("#d3dae0", "#38424c"),
    "faint": ("#b3bdc7", "#5c6873"),
    "blue": ("#00639c", "#5cb8ee"),
    "vermilion": ("#b04300", "#ff9457"),
    "green": ("#00714f", "#33c79a"),
    "purple": ("#99407a", "#e79fca"),
    "amber": ("#855a00", "#e8b547"),
    "sky": ("#2a6f97", "#8ccbf2"),
    "brown": ("#7a4a2b", "#d9a987"),
}

#: Inks of mechanisms, in the order they are given out; the baseline is drawn in `ink`.
SERIES = ("blue", "vermilion", "green", "purple", "amber", "brown", "sky")


def light(name: str) -> str:
    """The light value of an ink: what pictures are drawn in."""
    return INKS[name][0]


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
