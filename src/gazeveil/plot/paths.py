"""Gaze over time, and gaze as recorded beside gaze as released.

Events over time, as a ribbon of colours.

The main sequence: how fast saccades of each size are.

What the pictures share: axes to draw on, and gaze as lines that do not cross the seam of a
sphere.

Colours of every picture: one set of named inks, light and dark.

The hues are Okabe and Ito's, which colour-blind readers tell apart, made darker on white and
lighter on black until text in them has a contrast of at least 4.5 against the paper. Pictures are
drawn once in the light colours. No two inks may share a value, or they could not be told apart
again where a page puts variables in their place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats
from gazeveil.errors import DataError, GazeveilError
from gazeveil.events import detect
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Sphere, distance_deg
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


def events_ribbon(
    events: Events,
    recording: Recording | None = None,
    ax: Axes | None = None,
    *,
    below: bool = False,
    legend: bool = True,
) -> Axes:
    """Events as a ribbon of colours over time.

    Parameters
    ----------
    events : Events
        Of one recording.
    recording : Recording, optional
        Whose they are: seconds count from its first time, else from the first event; an event lasts
        until the sample after its last one.
    ax : Axes, optional
        Where to draw; new axes if not given.
    below : bool
        Put the ribbon under what the axes show already, such as a trace.
    legend : bool
        Name the colours.

    Returns
    -------
    Axes
        The axes.
    """
    if not isinstance(events, Events):
        checks.refuse("plot.events_ribbon", "events", "Events", events, "detect() finds them.")
    axes = axes_or_new("plot.events_ribbon", ax, height_in=1.4)
    low, high = (0.0, 1.0)
    if below:
        bottom, top = axes.get_ylim()
        up = 1 if top >= bottom else -1
        low, high = bottom - up * 0.09 * abs(top - bottom), bottom - up * 0.03 * abs(top - bottom)
    origin_ns = int(events.onset_ns.min()) if len(events) else 0
    more_s = 1e-3
    if recording is not None:
        origin_ns = int(recording.t_ns.min()) if len(recording) else origin_ns
        more_s = 1 / recording.rate_hz if recording.rate_hz > 0 else more_s
    for kind, colour in KIND_COLOURS.items():
        some = events.of(kind)
        if len(some) == 0:
            continue
        onset_s = (some.onset_ns - origin_ns) / 1e9
        spans = list(zip(onset_s.tolist(), (some.duration_s + more_s).tolist(), strict=True))
        axes.broken_barh(spans, (low, high - low), facecolors=colour, label=kind)
    axes.set_xlabel("time (s)")
    if not below:
        axes.set(ylim=(0.0, 1.0), yticks=[])
        said_by = f" ({events.source})" if events.source else ""
        titled(axes, f"{len(events)} events{said_by}", "left")
    if legend and len(events):
        place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
        if below:
            place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13)}
        axes.legend(**place, ncols=9, fontsize=7, frameon=False)
    return axes


#: What :func:`before_after` can show.
VIEWS = ("x", "y", "path")


def trace(
    recording: Recording,
    ax: Axes | None = None,
    *,
    events: Events | None = None,
    start_s: float | None = None,
    seconds: float = 10.0,
) -> Axes:
    """Gaze over time: x and y in degrees, lost samples as gaps, events as a ribbon below.

    Parameters
    ----------
    recording : Recording
        What to draw.
    ax : Axes, optional
        Where to draw; new axes if not given.
    events : Events, optional
        Drawn below, as :func:`~gazeveil.plot.events_ribbon` draws them.
    start_s : float, optional
        First second, from the recording's first time; default the first valid sample.
    seconds : float
        How much is shown.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    DataError
        For a recording without a valid sample.
    """
    length_s = checks.positive("plot.trace", "seconds", seconds)
    path = DrawnPath.of(recording)
    begin = path.first_s if start_s is None else checks.number("plot.trace", "start_s", start_s)
    shown = path.between(begin, begin + length_s)
    shown = shown.around(shown.centre_deg)
    axes = axes_or_new("plot.trace", ax)
    axes.plot(shown.t_s, shown.x_deg, color=light("ink"), lw=0.9, label="x")
    axes.plot(shown.t_s, shown.y_deg, color="#56B4E9", lw=0.9, label="y")
    end = min(begin + length_s, float(path.t_s.max()))
    if events is not None:
        inside = (events.offset_ns - recording.t_ns.min() >= begin * 1e9) & (
            events.onset_ns - recording.t_ns.min() <= end * 1e9
        )
        events_ribbon(events.where(inside), recording, axes, below=True)
    else:
        axes.legend(loc="upper right", fontsize=7, frameon=False)
    axes.set(xlabel="time (s)", ylabel="gaze (deg)")
    if end > begin:
        axes.set_xlim(begin, end)
    titled(axes, f"{recording.person}, {recording.stimulus}")
    return axes


def before_after(
    raw: Recording | DrawnPath,
    released: Recording | DrawnPath,
    ax: Axes | None = None,
    *,
    view: str = "x",
    seconds: float = 10.0,
    colour: str | None = None,
    label: str = "released",
    legend: bool = True,
) -> Axes:
    """One recording as it was (a thin line) on what a mechanism made of it (a broad one).

    Parameters
    ----------
    raw, released : Recording
        As recorded, and as released.
    ax : Axes, optional
        Where to draw; new axes if not given.
    view : {"x", "y", "path"}
        One coordinate over time, or the path in the plane.
    seconds : float
        How much is shown, from the first valid sample of the recording.
    colour : str, optional
        Of the release.
    label : str
        Of the release.
    legend : bool
        Say which line is which.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    DataError
        For a recording without a valid sample.
    """
    checks.one_of("plot.before_after", "view", view, VIEWS)
    length_s = checks.positive("plot.before_after", "seconds", seconds)
    origin = int(raw.t_ns.min()) if isinstance(raw, Recording) and len(raw) else None
    before = raw if isinstance(raw, DrawnPath) else DrawnPath.of(raw)
    after = released if isinstance(released, DrawnPath) else _after(released, origin)
    begin = before.first_s
    centre = before.between(begin, begin + length_s).centre_deg
    axes = axes_or_new("plot.before_after", ax, *((4.0, 4.0) if view == "path" else (7.0, 3.5)))
    lines = (
        (after, colour or light("vermilion"), 2.0 if view != "path" else 1.2, 0.55, label),
        (before, light("ink"), 0.8, 1.0, "as recorded"),
    )
    for path, ink, width, alpha, name in lines:
        shown = path.between(begin, begin + length_s).around(centre)
        across = shown.x_deg if view == "path" else shown.t_s
        up = shown.x_deg if view == "x" else shown.y_deg
        axes.plot(across, up, "-", color=ink, lw=width, alpha=alpha, label=name)
    axes.set(
        xlabel="x (deg)" if view == "path" else "time (s)",
        ylabel="x (deg)" if view == "x" else "y (deg)",
    )
    if view != "x" and not axes.yaxis_inverted():
        axes.invert_yaxis()  # y grows downwards
    if legend:
        axes.legend(loc="upper right", fontsize=8)
    return axes


def _after(released: Recording, origin_ns: int | None) -> DrawnPath:
    """The release on the clock of the recording; where that was changed, from its own start."""
    if not isinstance(released, Recording):
        checks.refuse("plot.before_after", "released", "a Recording", released)
    if origin_ns is not None and len(released):
        start = (int(released.t_ns.min()) - origin_ns) / 1e9
        if not math.isfinite(start) or abs(start) > max(1.0, released.duration_s):
            return DrawnPath.of(released)
    if not np.any(released.valid):
        return DrawnPath(np.empty(0), np.empty(0), np.empty(0))  # all of it is lost: no line
    return DrawnPath.of(released, origin_ns)


# Smaller or slower is noise of the tracker.
_LEAST_DEG, _LEAST_DEG_S = 0.05, 1.0


def main_sequence(
    data: Recording | Cohort | Iterable[Recording],
    ax: Axes | None = None,
    *,
    events: Events | None = None,
    most: int = 40,
) -> Axes:
    """Peak speed of saccades against their amplitude, both logarithmic.

    Parameters
    ----------
    data : Recording, Cohort or iterable of recordings
        Whose saccades; of a cohort at most `most` recordings, spread over it.
    ax : Axes, optional
        Where to draw; new axes if not given.
    events : Events, optional
        Of one recording; detected if not given.
    most : int
        Recordings that are looked at.

    Returns
    -------
    Axes
        The axes; the title says how many saccades of how many recordings are drawn. A recording
        too short to detect anything in counts as one without saccades.
    """
    checks.count("plot.main_sequence", "most", most)
    if events is not None and not isinstance(data, Recording):
        checks.refuse("plot.main_sequence", "events", "left out, but for one recording", events)
    sizes: list[tuple[Floats, Floats]] = []
    recordings = 0
    for recording in _spread(data, most):
        recordings += 1
        try:
            found = events if events is not None else detect(recording)
        except GazeveilError:
            continue
        sizes.append(saccade_sizes(recording, found))
    amplitude, peak = (np.concatenate([s[i] for s in sizes] or [np.empty(0)]) for i in (0, 1))
    shown = (amplitude > _LEAST_DEG) & (peak > _LEAST_DEG_S)
    axes = axes_or_new("plot.main_sequence", ax, 5.0, 4.0)
    axes.loglog(
        amplitude[shown], peak[shown], ".", ms=2.5, alpha=0.4, color=KIND_COLOURS["saccade"]
    )
    axes.set(xlabel="saccade amplitude (deg)", ylabel="peak speed (deg/s)")
    of_all = f" of {recordings} recordings" if not isinstance(data, Recording) else ""
    titled(axes, f"Main sequence: {int(shown.sum())} saccades{of_all}")
    axes.grid(alpha=0.3)
    return axes


def _spread(data: Recording | Cohort | Iterable[Recording], most: int) -> Iterable[Recording]:
    if isinstance(data, Recording):
        return (data,)
    if not isinstance(data, Cohort):
        if not isinstance(data, Iterable):
            checks.refuse("plot.main_sequence", "data", "recordings", data)
        return data
    places = np.unique(np.linspace(0, len(data) - 1, most).astype(int)) if len(data) else ()
    return (data[int(i)] for i in places)


def saccade_sizes(recording: Recording, events: Events) -> tuple[Floats, Floats]:
    """Amplitude (deg) and peak speed (deg/s) of each saccade with valid ends."""
    saccades = events.of("saccade")
    saccades = saccades.where(saccades.onset >= 0)
    if len(saccades) == 0:
        return np.empty(0), np.empty(0)
    a, b = saccades.onset, saccades.offset
    x, y = recording.x_deg, recording.y_deg
    amplitude = distance_deg(recording.space, x[a], y[a], x[b], y[b])
    steps = (
        np.concatenate(([0.0], distance_deg(recording.space, x[:-1], y[:-1], x[1:], y[1:])))
        * recording.rate_hz
    )
    steps[~recording.valid] = 0.0
    steps[1:][~recording.valid[:-1]] = 0.0
    # A saccade's first step leads into its first sample, so one more than its samples is looked at.
    ends = np.minimum(b + 1, len(steps) - 1)
    peak = np.maximum.reduceat(np.append(steps, 0.0), np.stack((a, ends + 1), axis=1).ravel())[::2]
    good = recording.valid[a] & recording.valid[b]
    return amplitude[good], peak[good]
