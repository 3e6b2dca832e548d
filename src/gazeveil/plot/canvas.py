"""What the pictures share: axes to draw on, and gaze as lines that do not cross the seam of a
sphere.

Colours of every picture: one set of named inks, light and dark.

The hues are Okabe and Ito's, which colour-blind readers tell apart, made darker on white and
lighter on black until text in them has a contrast of at least 4.5 against the paper. Pictures are
drawn once in the light colours. No two inks may share a value, or they could not be told apart
again where a page puts variables in their place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


# More points than this cannot be seen in one picture.
_MOST_POINTS = 20_000


def axes_or_new(owner: str, ax: Axes | None, width_in: float = 7.0, height_in: float = 3.5) -> Axes:
    """The axes that were given, or new ones in a figure of pyplot."""
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots(figsize=(width_in, height_in), layout="constrained")[1]
    if not hasattr(ax, "plot") or not hasattr(ax, "figure"):
        checks.refuse(owner, "ax", "matplotlib axes", ax, "One call draws on one pair of axes.")
    return ax


def titled(ax: Axes, text: str, place: Literal["left"] | None = None) -> None:
    """A title as it is: a dollar sign in a name begins no formula."""
    ax.set_title(text, loc=place, parse_math=False)


@dataclass(frozen=True, eq=False)
class DrawnPath:
    """Gaze as lines: lost samples are NaN.

    Parameters
    ----------
    t_s, x_deg, y_deg : array of float64, shape (n,)
        Seconds and degrees.
    sphere : bool
        Whether x goes round.
    """

    t_s: Floats
    x_deg: Floats
    y_deg: Floats
    sphere: bool = False

    @classmethod
    def of(cls, recording: Recording, origin_ns: int | None = None) -> DrawnPath:
        """The path of a recording; seconds from `origin_ns`, else from its first time."""
        if not isinstance(recording, Recording):
            checks.refuse("plot", "recording", "a Recording", recording)
        if not recording.valid.any():
            raise DataError(f"{recording.title} has no valid sample, so there is nothing to draw.")
        origin = int(recording.t_ns.min()) if origin_ns is None else origin_ns
        x, y = (np.where(recording.valid, v, np.nan) for v in (recording.x_deg, recording.y_deg))
        t_s = (recording.t_ns - origin) / 1e9
        return cls(t_s, x, y, isinstance(recording.space, Sphere))

    def between(self, start_s: float, stop_s: float) -> DrawnPath:
        """The samples from one time to another, thinned to what a picture can show."""
        shown: Bools = (self.t_s >= start_s) & (self.t_s <= stop_s)
        step = max(1, math.ceil(np.count_nonzero(shown) / _MOST_POINTS))
        t, x, y = (v[shown][::step] for v in (self.t_s, self.x_deg, self.y_deg))
        return DrawnPath(t, x, y, self.sphere)

    @property
    def first_s(self) -> float:
        """Time of the first valid sample; 0 without one."""
        valid = np.flatnonzero(np.isfinite(self.x_deg))
        return float(self.t_s[valid[0]]) if len(valid) else 0.0

    @property
    def centre_deg(self) -> float | None:
        """Mean longitude on a sphere, None on a screen: pictures are cut open opposite to it."""
        if not self.sphere:
            return None
        x = np.radians(self.x_deg[np.isfinite(self.x_deg)])
        if not len(x):
            return 180.0
        return float(np.degrees(np.arctan2(np.sin(x).sum(), np.cos(x).sum()))) % 360

    def around(self, centre_deg: float | None) -> DrawnPath:
        """The same path with x within half a turn of the centre, and no line over the seam."""
        if centre_deg is None:
            return self
        x = (self.x_deg - centre_deg + 180) % 360 - 180 + centre_deg
        x[1:][np.abs(np.diff(x)) > 180] = np.nan
        return DrawnPath(self.t_s, x, self.y_deg, self.sphere)


def image_array(owner: str, image: Any) -> Any:
    """A picture as an array, from an array or a file."""
    if isinstance(image, str | Path):
        from matplotlib.image import imread

        try:
            return imread(image)
        except FileNotFoundError as error:
            raise DataError(f"{image}: there is no such file.") from error
        except (OSError, SyntaxError, ValueError) as error:
            raise DataError(f"{image}: this is not a picture that can be read.") from error
    array = np.asarray(image)
    if array.ndim not in (2, 3) or array.dtype.kind not in "uifb":
        checks.refuse(owner, "image", "a file of a picture, or an array of pixels", array.shape)
    return array
