"""Colours of every picture: one set of named inks, light and dark.

The hues are Okabe and Ito's, which colour-blind readers tell apart, made darker on white and
lighter on black until text in them has a contrast of at least 4.5 against the paper. Pictures are
drawn once in the light colours. No two inks may share a value, or they could not be told apart
again where a page puts variables in their place.
"""

from __future__ import annotations

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

#: One colour per kind of event, readable for the colour-blind (Okabe and Ito).
KIND_COLOURS = {
    "fixation": "#0072B2",
    "saccade": "#D55E00",
    "pursuit": "#009E73",
    "pso": "#CC79A7",
    "blink": "#999999",
    "noise": "#F0E442",
    "undefined": "#DDDDDD",
}

#: Guessing looks the same in every chart, and like no mechanism.
GUESS_DASHES = (0, (2, 2))


def light(name: str) -> str:
    """The light value of an ink: what pictures are drawn in."""
    return INKS[name][0]
