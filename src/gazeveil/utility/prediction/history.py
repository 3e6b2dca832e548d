"""What a network sees at a moment: the past of gaze and head, objects and a saliency map where the
recording has them.

As published (DGaze): where gaze was on the headset's screen, how fast the head turned, the objects.
Ours: gaze relative to the newest sample, in the axes of the head now; where the head pointed,
relative to the same; how fast it turned; the objects. What a recording does not have is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints, Singles
from gazeveil.gaze.recording import Recording
from gazeveil.utility.head_channel import head_course, seen_as_tangents
from gazeveil.utility.prediction.moments import LAGS, Moments, from_plane, lag_times_ns, to_plane

#: Channels of a history: gaze, head direction, head velocity, three objects.
GAZE, HEAD, SPEED, OBJECTS = slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 15)
CHANNELS = 15

#: Degrees right and down beyond which a place on the screen is cut off.
_WIDEST_DEG = 85.0


@dataclass(frozen=True, eq=False)
class Histories:
    """Moments as a network sees them.

    Parameters
    ----------
    values : array of float32, shape (moments, channels, lags)
        Newest first; degrees, degrees per second, and objects as published.
    centre : array of float64, shape (moments, 3)
        The newest gaze, in `axes`.
    axes : array of float64, shape (moments, 3, 3), or None
        The head's axes now, in the frame of the moments; None for those of the frame.
    saliency : array of float64, shape (moments, numbers), or None
        Maps.
    """

    values: Singles
    centre: Floats
    axes: Floats | None
    saliency: Floats | None

    def inside(self, directions: Floats) -> Floats:
        """Directions (moments, ..., 3) of the frame, in the axes."""
        if self.axes is None:
            return directions
        return np.einsum("nij,n...j->n...i", self.axes, directions)

    def outside(self, directions: Floats) -> Floats:
        """Directions (moments, 3) in the axes, in the frame."""
        if self.axes is None:
            return directions
        return np.einsum("nij,ni->nj", self.axes, directions)

    def offsets_deg(self, directions: Floats) -> Floats:
        """Directions (moments, 3) as degrees right and down of the newest gaze."""
        return to_plane(self.centre, self.inside(directions)[:, None, :])[:, 0]


def histories(
    recorded: Recording, moments: Moments, past_s: float, head: str, reading: str
) -> Histories:
    """What a network sees at the moments of one recording.

    Parameters
    ----------
    recorded : Recording
        Whose head and objects are known.
    moments : Moments
        Of the release; relative to the head for `published`.
    past_s : float
        How much of the past is known, in seconds.
    head : {"recorded", "none"}
        Whether the head is looked at.
    reading : {"published", "corrected"}
        See the top of the page.
    """
    values = np.zeros((len(moments), LAGS, CHANNELS), dtype=np.float32)
    times = lag_times_ns(moments.now_ns, past_s)
    course = head_course(recorded) if head == "recorded" else None
    known = np.repeat(moments.now, LAGS, axis=0)
    past = from_plane(known, moments.past_deg.reshape(-1, 2)).reshape(len(moments), LAGS, 3)
    axes = None
    if course is not None:
        at = course.at(times)
        values[:, :, SPEED] = course.velocity_deg_s[at]
        if course.axes is not None and reading == "corrected":
            axes = course.axes[at[:, 0]]
    made = Histories(values, moments.now, axes, _maps(recorded, len(moments)))
    if reading == "published":
        places = np.nan_to_num(seen_as_tangents(past))
        values[:, :, GAZE] = np.clip(places, -_WIDEST_DEG, _WIDEST_DEG)
    else:
        made = Histories(values, made.inside(moments.now), axes, made.saliency)
        values[:, :, GAZE] = to_plane(made.centre, made.inside(past))
        if course is not None and course.axes is not None:
            values[:, :, HEAD] = to_plane(made.centre, made.inside(course.axes[at][:, :, 2]))
    _fill_objects(values, recorded, times)
    return Histories(
        np.ascontiguousarray(values.transpose(0, 2, 1)), made.centre, made.axes, made.saliency
    )


def _fill_objects(values: Singles, recorded: Recording, times_ns: Ints) -> None:
    """Objects of the newest sample of each time, where the recording lists them."""
    listed = recorded.metadata.get("objects")
    if listed is None:
        return
    objects = np.nan_to_num(np.asarray(listed, dtype=np.float64))
    count = min(len(objects), len(recorded))
    if count == 0 or objects.shape[1:] != (9,):
        return
    at = np.searchsorted(recorded.t_ns[:count], times_ns, side="right") - 1
    values[:, :, OBJECTS] = objects[np.maximum(at, 0)]


def _maps(recorded: Recording, count: int) -> Floats | None:
    """The recording's saliency map for each moment, or None."""
    given = recorded.metadata.get("saliency")
    if given is None:
        return None
    flat = np.nan_to_num(np.asarray(given, dtype=np.float64).ravel())
    return np.broadcast_to(flat, (count, len(flat)))
