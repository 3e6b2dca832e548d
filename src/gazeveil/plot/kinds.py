"""Events over time, as a ribbon of colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gazeveil import checks
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording
from gazeveil.plot.canvas import axes_or_new, titled
from gazeveil.plot.inks import KIND_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
