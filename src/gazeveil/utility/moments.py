"""Moments of a recording: what of the release is known at each, and where raw gaze was then.

Geometry. Everything is measured in the plane that touches the sphere of directions at the newest
released sample (angle and bearing kept), axes right and down, so that there is no seam and no pole;
a screen is a part of that sphere.

Rates. The past is read at 50 equally spaced moments, each holding the newest released sample of
that time: a stream of fewer samples per second is held, nothing is interpolated into it. Raw gaze
between two samples is interpolated. A moment counts if the newest released sample is at most 75 ms
old (or 1.5 samples, where that is more), there is a sample before the whole past, and raw gaze is
known on both sides of the target within the same limit. A released sample is known at the time of
the raw sample it stands for, whatever its own time says, as in a live stream; only where a release
has neither every sample nor every K-th of the recording do its own times count.

What a network sees at a moment: the past of gaze and head, objects and a saliency map where the
recording has them.

As published (DGaze): where gaze was on the headset's screen, how fast the head turned, the objects.
Ours: gaze relative to the newest sample, in the axes of the head now; where the head pointed,
relative to the same; how fast it turned; the objects. What a recording does not have is 0.

The head of a recording, beside gaze that may be protected.

A headset shows every app the head's pose, because pictures are drawn from it: the papers protect
the eyes alone, and an analyst sees protected gaze with the head as recorded (David-John et al.
2023). A release without a head channel therefore gets that of its recording here, and the eye in
the head is worked out again from released gaze and recorded head: the recorded one would give raw
gaze away.

Arrays without a head pose (EHTask's) say where the eye was in the head and how fast the head
turned. There the recorded eye is moved by as much as the mechanism moved gaze, right and down.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Floats, Ints, Singles
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Screen, Sphere, from_tangents, head_axes
from gazeveil.gaze.recording import Recording, increasing

#: Shortest time between two poses that a speed is taken of.
_SHORTEST_S = 1e-3


@dataclass(frozen=True, eq=False)
class HeadCourse:
    """Where a head was, over the time of a recording.

    Parameters
    ----------
    t_ns : array of int64, shape (poses,)
        When; strictly increasing.
    axes : array of float64, shape (poses, 3, 3), or None
        Right, up and forward; None where only the speed is known.
    velocity_deg_s : array of float64, shape (poses, 2)
        How fast it turned to the right and down, in its own axes.
    """

    t_ns: Ints
    axes: Floats | None
    velocity_deg_s: Floats

    def at(self, t_ns: Ints) -> Ints:
        """The newest pose at each time; the first one before it."""
        return np.maximum(np.searchsorted(self.t_ns, t_ns, side="right") - 1, 0)


def head_course(recorded: Recording) -> HeadCourse | None:
    """The head of a recording; None where nothing is known of it.

    A pose is known where its three angles are finite, also while the eyes are shut.
    """
    if recorded.head_deg is not None:
        known = increasing(recorded.t_ns, np.isfinite(recorded.head_deg).all(axis=1))
        if not known.any():
            return None
        t, axes = recorded.t_ns[known], head_axes(recorded.head_deg[known])
        return HeadCourse(t, axes, _velocity_deg_s(t, axes))
    published = recorded.metadata.get("head_velocity_deg_s")
    if published is None:
        return None
    upwards = np.asarray(published, dtype=np.float64).reshape(-1, 2)
    count = min(len(upwards), len(recorded))
    if count == 0:
        return None
    speed = np.nan_to_num(upwards[:count] * np.array([1.0, -1.0]))
    return HeadCourse(recorded.t_ns[:count], None, speed)


def _velocity_deg_s(t_ns: Ints, axes: Floats) -> Floats:
    """How the forward axis moved since the pose before, seen from that one; the first is 0."""
    speed = np.zeros((len(t_ns), 2))
    if len(t_ns) < 2:
        return speed
    ahead = np.einsum("nij,nj->ni", axes[:-1], axes[1:, 2])
    seconds = np.maximum(np.diff(t_ns) / 1e9, _SHORTEST_S)[:, None]
    turned = np.degrees(np.arctan2(ahead[:, :2], np.abs(ahead[:, 2:])))
    speed[1:] = turned * np.array([1.0, -1.0]) / seconds
    return speed


def eye_tangents(recorded: Recording, release: Recording) -> Floats:
    """Where the released eye was in its head, as tangent angles (right, down) in degrees; shape
    (released samples, 2), NaN where not known.

    On a screen, and on a sphere without any head, gaze itself stands for the eye: relative to the
    middle of the screen, or of the sphere.
    """
    vectors = release.space.vectors(release.x_deg, release.y_deg).reshape(-1, 3)
    eye = np.full((len(release), 2), np.nan)
    valid = release.valid
    if isinstance(release.space, Screen):
        eye[valid] = np.stack((release.x_deg[valid], release.y_deg[valid]), axis=1)
        return eye
    t_ns = arrivals(recorded, release)
    course = head_course(recorded)
    if course is not None and course.axes is not None:
        seen = np.einsum("nij,nj->ni", course.axes[course.at(t_ns)], vectors)
        eye[valid] = seen_as_tangents(seen[valid])
    elif recorded.eye_in_head_deg is not None:
        eye[valid] = _moved(recorded, vectors, t_ns)[valid]
    else:
        eye[valid] = seen_as_tangents(vectors[valid])
    return eye


def seen_as_tangents(vectors: Floats) -> Floats:
    """Tangent angles (right, down) in degrees, shape (..., 2); what is not in front counts as
    lost.
    """
    ahead = np.where(vectors[..., 2] > 0, vectors[..., 2], np.nan)
    across = vectors[..., :2] * np.array([1.0, -1.0])
    return np.asarray(np.degrees(np.arctan(across / ahead[..., None])))


def _moved(recorded: Recording, vectors: Floats, t_ns: Ints) -> Floats:
    """The recorded eye, moved as gaze was."""
    assert recorded.eye_in_head_deg is not None
    eye = recorded.eye_in_head_deg
    known = increasing(recorded.t_ns, recorded.valid & np.isfinite(eye).all(axis=1))
    if not known.any():
        return np.full((len(vectors), 2), np.nan)
    at = np.maximum(np.searchsorted(recorded.t_ns[known], t_ns, side="right") - 1, 0)
    gaze = recorded.space.vectors(recorded.x_deg[known], recorded.y_deg[known])[at]
    return np.asarray(eye[known][at] + to_plane(gaze, vectors[:, None, :])[:, 0])


def in_the_head(recorded: Recording, release: Recording) -> Recording:
    """A release with its gaze relative to the head: the middle of the sphere is straight ahead. On
    a screen it is so already.

    Raises
    ------
    DataError
        On a sphere where the recording does not say where the head or the eye in it was.
    """
    if isinstance(release.space, Screen):
        return release
    if recorded.head_deg is None and recorded.eye_in_head_deg is None:
        raise DataError(
            f"{recorded.title} does not say where the head was, and the network as published looks"
            " at gaze on a headset's screen. Use reading=corrected, or recordings with the head's"
            " direction."
        )
    eye = eye_tangents(recorded, release)
    x_deg, y_deg = Sphere().degrees(from_tangents(eye[:, 0], eye[:, 1]))
    return release.with_(
        x_deg=x_deg,
        y_deg=y_deg,
        valid=release.valid & np.isfinite(x_deg) & np.isfinite(y_deg),
        **dict.fromkeys(("head_deg", "eye_in_head_deg", "left_deg", "right_deg", "truth")),
    )


#: Moments at which the past is read.
LAGS = 50

#: How old the newest sample may be.
LONGEST_GAP_S = 0.075


@dataclass(frozen=True, eq=False)
class Moments:
    """What is known at some moments of one recording, and what came.

    Parameters
    ----------
    past_deg : array of float64, shape (moments, lags, 2)
        The released gaze, newest first, right and down of the newest one (which is therefore 0).
    now : array of float64, shape (moments, 3)
        The newest released gaze as unit vectors.
    truth : array of float64, shape (moments, 3)
        The raw gaze to be told, as unit vectors.
    now_ns : array of int64, shape (moments,)
        When they are, by the clock of the recording.
    """

    past_deg: Floats
    now: Floats
    truth: Floats
    now_ns: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.now)

    def where(self, rows: Ints) -> Moments:
        """Some of the moments."""
        return Moments(self.past_deg[rows], self.now[rows], self.truth[rows], self.now_ns[rows])

    def went_deg(self) -> Floats:
        """Where gaze went, in degrees right and down of the newest sample, shape (moments, 2)."""
        return to_plane(self.now, self.truth[:, None, :])[:, 0]


def moments_of(
    recorded: Recording, release: Recording, horizon_s: float, past_s: float, every_s: float
) -> Moments:
    """The moments of one recording at which something can be told and checked."""
    t, v = _known(recorded, recorded.t_ns)
    s, u = _known(release, arrivals(recorded, release))
    none = Moments(np.empty((0, LAGS, 2)), np.empty((0, 3)), np.empty((0, 3)))
    if len(t) < 2 or len(s) == 0:
        return none
    first, last = int(t[0]) + round(past_s * 1e9), int(t[-1]) - round(horizon_s * 1e9)
    if last < first:
        return none
    now = np.arange(first, last + 1, max(1, round(every_s * 1e9)))
    moments = lag_times_ns(now, past_s)
    held = np.searchsorted(s, moments, side="right") - 1
    ok = (held[:, -1] >= 0) & (now - s[np.maximum(held[:, 0], 0)] <= gap_ns(release))
    target = now + round(horizon_s * 1e9)
    after = np.minimum(np.searchsorted(t, target, side="left"), len(t) - 1)
    before = np.where(t[after] == target, after, np.maximum(after - 1, 0))
    ok &= t[after] - t[before] <= gap_ns(recorded)
    if not ok.any():
        return none
    held, target, after, before = held[ok], target[ok], after[ok], before[ok]
    share = ((target - t[before]) / np.maximum(t[after] - t[before], 1))[:, None]
    truth = v[before] * (1.0 - share) + v[after] * share
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    newest = u[held[:, 0]]
    return Moments(to_plane(newest, u[held]), newest, truth, now[ok])


def lag_times_ns(now_ns: Ints, past_s: float) -> Ints:
    """The times at which the past of some moments is read, newest first; shape (moments, lags)."""
    back_ns = np.round(np.arange(LAGS) * (past_s * 1e9 / LAGS)).astype(np.int64)
    return np.asarray(now_ns[:, None] - back_ns[None, :])


def _known(recording: Recording, t_ns: Ints) -> tuple[Ints, Floats]:
    """Times and unit vectors of the valid samples."""
    valid = recording.valid
    return t_ns[valid], recording.space.vectors(
        recording.x_deg[valid], recording.y_deg[valid]
    ).reshape(-1, 3)


def arrivals(recorded: Recording, release: Recording) -> Ints:
    """When each released sample is known, never decreasing."""
    stride = -(-len(recorded) // max(len(release), 1))
    if len(recorded) == 0 or -(-len(recorded) // stride) != len(release):
        # A release on a public clock begins at 0, whenever the recording did.
        on_clock = len(recorded) > 0 and len(release) > 0 and release.t_ns[0] == 0
        begin = recorded.t_ns[0] if on_clock else np.int64(0)
        return np.maximum.accumulate(release.t_ns + begin)
    t = recorded.t_ns
    if (np.diff(t) < 0).any():
        # Lost samples may carry wild times: they count as known when the next good one came, so
        # that nothing is known too early.
        t = np.minimum.accumulate(np.where(recorded.valid, t, np.iinfo(np.int64).max)[::-1])[::-1]
    return t[::stride]


def gap_ns(recording: Recording) -> float:
    """How old the newest sample may be, in nanoseconds."""
    return 1e9 * max(LONGEST_GAP_S, 1.5 / recording.rate_hz if recording.rate_hz > 0 else 0.0)


def _axes(centre: Floats) -> tuple[Floats, Floats]:
    """Right and down at each direction; at a pole right is x."""
    flat = np.hypot(centre[:, 0], centre[:, 2])
    pole = flat < 1e-12
    safe = np.where(pole, 1.0, flat)
    right = np.stack(
        (
            np.where(pole, 1.0, centre[:, 2] / safe),
            np.zeros(len(centre)),
            np.where(pole, 0.0, -centre[:, 0] / safe),
        ),
        axis=1,
    )
    return right, np.cross(right, centre)


def to_plane(centre: Floats, directions: Floats) -> Floats:
    """Directions (n, m, 3) as degrees right and down of centres (n, 3), shape (n, m, 2): angle and
    bearing are kept.
    """
    right, down = _axes(centre)
    across = np.stack(
        (np.einsum("nmk,nk->nm", directions, right), np.einsum("nmk,nk->nm", directions, down)),
        axis=2,
    )
    sine = np.linalg.norm(across, axis=2)
    angle = np.degrees(np.arctan2(sine, np.einsum("nmk,nk->nm", directions, centre)))
    # Near 0 the ratio is 180 / pi; a direction opposite the centre has no bearing and gets none.
    scale = np.where(sine > 1e-12, angle / np.where(sine > 1e-12, sine, 1.0), np.degrees(1.0))
    return across * scale[:, :, None]


def from_plane(centre: Floats, offsets_deg: Floats) -> Floats:
    """Unit vectors (n, 3) of offsets (n, 2) in degrees right and down of centres: the way back from
    :func:`to_plane`.
    """
    right, down = _axes(centre)
    angle = np.radians(np.linalg.norm(offsets_deg, axis=1))[:, None]
    heading = np.radians(offsets_deg[:, :1]) * right + np.radians(offsets_deg[:, 1:]) * down
    return np.cos(angle) * centre + np.sinc(angle / np.pi) * heading


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
