"""What the page draws of recordings: a trace and a map, as plain numbers.

Pictures are thinned for the screen; nothing here is a release of its own.

The page as one text: markup, style, script and, where it is saved, its figures.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.evaluation.report.page import STYLE
from gazeveil.gaze.geometry import Sphere, smooth_map
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.heatmaps import viewer_weights

#: Longest trace, in seconds, and most points of it.
TRACE_S, POINTS = 10.0, 500

#: Cells of a map from top to bottom, and steps of its shades.
MAP_ROWS, SHADES = 36, 99

_BLUR_DEG = 1.0


def trace_line(
    recordings: Iterable[Recording], begin_ns: int | None = None
) -> dict[str, list[float | None]]:
    """The first seconds of a recording, or of the pieces that were made for it one after the other:
    `t` in seconds since its (or its stimulus') beginning, `x` and `y` in degrees, None where lost.

    Parameters
    ----------
    recordings : iterable of Recording
        One, or pieces of one, whose times count from one beginning.
    begin_ns : int, optional
        Time zero; the first sample where it is not given.
    """
    parts = sorted((r for r in recordings if len(r)), key=lambda r: int(r.t_ns[0]))
    if not parts:
        return {"t": [], "x": [], "y": []}
    zero = int(parts[0].t_ns[0]) if begin_ns is None else begin_ns
    t = np.concatenate([(r.t_ns - zero) / 1e9 for r in parts])
    x, y = (
        np.concatenate([np.where(r.valid, getattr(r, name), np.nan) for r in parts])
        for name in ("x_deg", "y_deg")
    )
    rows = np.flatnonzero(t <= TRACE_S)
    rows = rows[:: max(1, -(-len(rows) // POINTS))]
    return {"t": np.round(t[rows], 3).tolist(), "x": _numbers(x[rows]), "y": _numbers(y[rows])}


def map_shades(recordings: Iterable[Recording], like: Recording) -> list[list[int]]:
    """Where all viewers of a stimulus looked, each of the same weight: shades from 0 to
    :data:`SHADES` of the darkest cell. The map covers the space of `like`.
    """
    space = like.space
    columns = max(1, round(MAP_ROWS * space.width_deg / space.height_deg))
    total = np.zeros((MAP_ROWS, columns))
    for recording in recordings:
        total += viewer_weights(recording, MAP_ROWS, columns)
    blur = 2 * _BLUR_DEG if isinstance(space, Sphere) else _BLUR_DEG
    blurred = smooth_map(total, space, blur)
    top = float(blurred.max())
    shades: list[list[int]] = (
        np.round(SHADES * blurred / top if top else blurred).astype(int).tolist()
    )
    return shades


def extent(recording: Recording) -> list[float]:
    """x0, x1, y0, y1 of the recording's space, in degrees; y grows downwards."""
    wide, high = recording.space.width_deg, recording.space.height_deg
    sides = (
        (0.0, wide, 0.0, high)
        if isinstance(recording.space, Sphere)
        else (-wide / 2, wide / 2, -high / 2, high / 2)
    )
    return [round(side, 3) for side in sides]


def _numbers(values: Floats) -> list[float | None]:
    return [None if v != v else round(v, 2) for v in values.tolist()]


_WEB = Path(__file__).with_name("web")

#: Where figures stand in the page; the script finds them by this id.
_DATA = '<script type="application/json" id="figures">{}</script>'


def page(figures: object = None) -> str:
    """The whole page. `figures` is everything a saved page shows, as JSON has it; without them the
    page asks its server.
    """
    text = (_WEB / "explore.html").read_text(encoding="utf-8")
    # Data must not end the element that holds it, nor begin a comment in it.
    held = json.dumps(figures, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "POLICY": policy(live=figures is None),
        "STYLE": _style(),
        "SCRIPT": _script(),
        "FIGURES": "" if figures is None else _DATA.format(held),
    }
    for name, part in parts.items():
        text = text.replace(f"<!--{name}-->", part)
    return text


def policy(live: bool) -> str:
    """Content security policy of the page: its own script only, and requests to its own server or
    to none.
    """
    return (
        f"default-src 'none'; script-src '{_hash(_script())}'; style-src '{_hash(_style())}';"
        f" connect-src {chr(39)}{'self' if live else 'none'}{chr(39)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


@cache
def _script() -> str:
    return (_WEB / "explore.js").read_text(encoding="utf-8")


@cache
def _style() -> str:
    return STYLE + (_WEB / "explore.css").read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
