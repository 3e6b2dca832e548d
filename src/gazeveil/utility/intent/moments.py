"""What is known of a stream of gaze at moments before the eye moves, and where it went.

The truth is the raw recording's: its fixations, each in the area that holds it. What is known is
the release's: the newest sample, the areas it has been in, and the features of
:mod:`gazeveil.features.time_to_event`. A moment counts where raw gaze rests in a fixation (the
saccade has not begun), in an area, the horizon is within the recording, and the newest released
sample is fresh.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.features.time_to_event import COLUMNS, SHORT_S, moment_features, offsets_deg
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.areas import Boxes
from gazeveil.utility.areas.scanpaths import Scanpath
from gazeveil.utility.prediction.moments import arrivals, gap_ns

#: No area.
NOWHERE = -1


@dataclass(frozen=True, eq=False)
class IntentMoments:
    """Moments of one recording.

    Parameters
    ----------
    timing : array of float64, shape (moments, features)
        Features of the release, as :data:`gazeveil.features.time_to_event.COLUMNS` has them.
    x_deg, y_deg : array of float64, shape (moments,)
        Where released gaze is: its mean of the last 0.1 s.
    newest : array of int64, shape (moments,)
        Area of the newest released sample; -1 for none.
    here, before : array of int64, shape (moments,)
        Area of the mean place, and the area before that one, as released; -1 for none.
    since_area_s : array of float64, shape (moments,)
        How long released gaze has been `here`.
    now, then : array of int64, shape (moments,)
        Area of raw gaze now and at the horizon.
    """

    timing: Floats
    x_deg: Floats
    y_deg: Floats
    newest: Ints
    here: Ints
    before: Ints
    since_area_s: Floats
    now: Ints
    then: Ints

    def __len__(self) -> int:
        return len(self.now)

    def where(self, rows: Ints | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> IntentMoments:
        """Some of the moments."""
        return IntentMoments(*(getattr(self, f.name)[rows] for f in fields(self)))

    @classmethod
    def none(cls) -> IntentMoments:
        """No moment."""
        empty, nobody = np.empty(0), np.empty(0, dtype=np.int64)
        none = np.empty((0, len(COLUMNS)))
        return cls(none, empty, empty, nobody, nobody, nobody, empty, nobody, nobody)


def intent_moments(
    recorded: Recording,
    release: Recording,
    path: Scanpath,
    boxes: Boxes,
    horizon_s: float,
    every_s: float,
) -> IntentMoments:
    """The moments of one recording at which an intent can be told and checked.

    Parameters
    ----------
    recorded, release : Recording
        As recorded and as released.
    path : Scanpath
        Fixations as recorded.
    boxes : Boxes
        The areas.
    horizon_s, every_s : float
        How far ahead, and seconds between moments.
    """
    if len(recorded) == 0 or not release.valid.any():
        return IntentMoments.none()
    area = area_of(boxes, path.x_deg, path.y_deg)
    seen = area != NOWHERE
    onset_s, offset_s, area = path.onset_s[seen], (path.onset_s + path.duration_s)[seen], area[seen]
    if not len(area):
        return IntentMoments.none()
    last_s = float((recorded.t_ns.max() - recorded.t_ns[0]) / 1e9) - horizon_s
    at_s = np.arange(float(onset_s[0]), last_s, every_s)
    place = np.searchsorted(onset_s, at_s, side="right") - 1
    resting = at_s < offset_s[place]
    at_s, place = at_s[resting], place[resting]
    later = np.searchsorted(onset_s, at_s + horizon_s, side="right") - 1
    now_ns = recorded.t_ns[0] + np.round(at_s * 1e9).astype(np.int64)
    known_ns = arrivals(recorded, release)
    clock = known_ns[release.valid]
    newest = np.searchsorted(clock, now_ns, side="right") - 1
    fresh = (newest >= 0) & (now_ns - clock[np.maximum(newest, 0)] <= gap_ns(release))
    now_ns, newest = now_ns[fresh], newest[fresh]
    if not len(now_ns):
        return IntentMoments.none()
    x, y = smoothed(release, clock, SHORT_S)
    visits = area_of(boxes, x, y)
    before, since_ns = _visits(visits, clock)
    raw_x, raw_y = release.x_deg[release.valid], release.y_deg[release.valid]
    return IntentMoments(
        moment_features(release, now_ns, known_ns),
        x[newest],
        y[newest],
        area_of(boxes, raw_x[newest], raw_y[newest]),
        visits[newest],
        before[newest],
        (now_ns - since_ns[newest]) / 1e9,
        area[place[fresh]],
        area[later[fresh]],
    )


def area_of(boxes: Boxes, x_deg: Floats, y_deg: Floats) -> Ints:
    """The first area that holds each place; -1 where none does."""
    inside = boxes.hold(x_deg, y_deg)
    if inside.shape[1] == 0:
        return np.full(len(x_deg), NOWHERE, dtype=np.int64)
    return np.where(inside.any(axis=1), inside.argmax(axis=1), NOWHERE).astype(np.int64)


def smoothed(recording: Recording, clock: Ints, seconds: float) -> tuple[Floats, Floats]:
    """Mean places of the last seconds at each valid sample, in degrees.

    Parameters
    ----------
    recording : Recording
        The stream.
    clock : array of int64, shape (valid samples,)
        When each valid sample is known.
    seconds : float
        How much of the past is averaged.
    """
    x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
    sphere = isinstance(recording.space, Sphere)
    places = recording.space.vectors(x, y) if sphere else np.stack((x, y), axis=1)
    sums = np.concatenate((np.zeros((1, places.shape[1])), np.cumsum(places, axis=0)))
    last = np.arange(1, len(x) + 1)
    first = np.minimum(np.searchsorted(clock, clock - round(seconds * 1e9), "right"), last - 1)
    mean = (sums[last] - sums[first]) / (last - first)[:, None]
    if isinstance(recording.space, Sphere):
        return recording.space.degrees(mean)
    return mean[:, 0], mean[:, 1]


def _visits(areas: Ints, clock: Ints) -> tuple[Ints, Ints]:
    """At each sample the area before the present one, and since when gaze is in the present one."""
    change = np.flatnonzero(np.append(True, areas[1:] != areas[:-1]))
    begun = np.searchsorted(change, np.arange(len(areas)), side="right") - 1
    earlier = np.append(NOWHERE, areas[change][:-1])
    # Between two areas lies nothing often: the area before that is the one that counts.
    for i in range(1, len(earlier)):
        if earlier[i] == NOWHERE:
            earlier[i] = earlier[i - 1]
    return earlier[begun], clock[change][begun]


def to_areas_deg(boxes: Boxes, x_deg: Floats, y_deg: Floats) -> Floats:
    """From places to the middles of areas, degrees right and down; shape (places, areas, 2)."""
    middle_x = (boxes.left_deg + boxes.right_deg) / 2
    middle_y = (boxes.top_deg + boxes.bottom_deg) / 2
    n, m = len(x_deg), len(boxes)
    flat = offsets_deg(
        boxes.space,
        np.repeat(x_deg, m),
        np.repeat(y_deg, m),
        np.tile(middle_x, n),
        np.tile(middle_y, n),
    )
    return flat.reshape(n, m, 2)
