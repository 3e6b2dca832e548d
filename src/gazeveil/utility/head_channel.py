"""The head of a recording, beside gaze that may be protected.

A headset shows every app the head's pose, because pictures are drawn from it: the papers protect
the eyes alone, and an analyst sees protected gaze with the head as recorded (David-John et al.
2023). A release without a head channel therefore gets that of its recording here, and the eye in
the head is worked out again from released gaze and recorded head: the recorded one would give raw
gaze away.

Arrays without a head pose (EHTask's) say where the eye was in the head and how fast the head
turned. There the recorded eye is moved by as much as the mechanism moved gaze, right and down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Screen, Sphere, from_tangents, head_axes
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.times import increasing
from gazeveil.utility.prediction.moments import arrivals, to_plane

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
    t = recorded.t_ns[known]
    at = np.maximum(np.searchsorted(t, t_ns, side="right") - 1, 0)
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
