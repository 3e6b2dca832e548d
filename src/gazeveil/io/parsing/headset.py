"""Eye trackers in headsets and glasses: from a head's rotation and the eyes' directions to gaze in
the world.

Unity counts x right, y up, z forward, which are the axes of :mod:`gazeveil.gaze.geometry`, so its
quaternions are used as they stand; its Euler angles turn about z first, then x, then y. Trackers
with other axes (SRanipal and Tobii count x to the left) are turned before they come here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.geometry import Sphere, combine_eyes, quaternion_multiply, rotate, to_tangents


@dataclass(frozen=True)
class HeadsetGaze:
    """Channels of a recording on the sphere, each with n rows."""

    x_deg: Floats
    y_deg: Floats
    left_deg: Floats | None
    right_deg: Floats | None
    eye_in_head_deg: Floats
    head_deg: Floats | None


def unity_euler(x_deg: Floats, y_deg: Floats, z_deg: Floats) -> Floats:
    """Quaternions (n, 4) of Unity's Euler angles in degrees."""
    turns = []
    for axis, angle in enumerate((x_deg, y_deg, z_deg)):
        half = np.radians(angle) / 2
        q = np.zeros((len(half), 4))
        q[:, axis], q[:, 3] = np.sin(half), np.cos(half)
        turns.append(q)
    return quaternion_multiply(turns[1], quaternion_multiply(turns[0], turns[2]))


def head_degrees(rotation: Floats) -> Floats:
    """Heads as (x_deg, y_deg, roll_deg), shape (n, 3); roll is positive where the head leans to its
    right.
    """
    forward = rotate(rotation, np.array([0.0, 0.0, 1.0]))
    right = rotate(rotation, np.array([1.0, 0.0, 0.0]))
    x, y = Sphere().degrees(forward)
    lon = np.radians(x - 180.0)
    level = np.stack((np.cos(lon), np.zeros_like(lon), -np.sin(lon)), axis=1)
    up = np.cross(forward, level)
    roll = np.degrees(np.arctan2(-np.sum(right * up, axis=1), np.sum(right * level, axis=1)))
    return np.stack((x, y, roll), axis=1)


def unit(vectors: Floats, seen: Bools | None = None) -> Floats:
    """Vectors of length one; NaN where they have no length, or where `seen` is false."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        result = np.where(length > 1e-6, vectors / length, np.nan)
    if seen is not None:
        result[~seen] = np.nan
    return result


def gaze(
    left: Floats | None,
    right: Floats | None,
    rotation: Floats | None = None,
    combined: Floats | None = None,
) -> HeadsetGaze:
    """Gaze on the sphere from directions in the head.

    Parameters
    ----------
    left, right, combined : array, shape (n, 3), optional
        Directions in the head (x right, y up, z forward), NaN where lost. Without `combined` the
        mean of both eyes is used, or the one that is there.
    rotation : array, shape (n, 4), optional
        Head rotation as quaternions (x, y, z, w), NaN where lost. Without it the head is the world.
    """
    sphere = Sphere()

    def placed(directions: Floats | None) -> Floats | None:
        if directions is None:
            return None
        turned = directions if rotation is None else rotate(rotation, directions)
        return np.stack(sphere.degrees(turned), axis=1)

    left_deg, right_deg = placed(left), placed(right)
    if combined is None:
        x, y, _ = combine_eyes(left_deg, right_deg, sphere)
        combined = _mean(left, right)
    else:
        both = placed(combined)
        assert both is not None
        x, y = both[:, 0], both[:, 1]
    eye = np.stack(to_tangents(combined), axis=1)
    return HeadsetGaze(
        x, y, left_deg, right_deg, eye, None if rotation is None else head_degrees(rotation)
    )


def _mean(left: Floats | None, right: Floats | None) -> Floats:
    if left is None or right is None:
        only = left if right is None else right
        assert only is not None
        return only
    # A lost eye adds nothing; where both are lost the sum has no length and becomes NaN.
    return unit(np.nan_to_num(left) + np.nan_to_num(right))
