"""What a place in a picture means in degrees: fractions and pixels of a scene camera's picture, or
of a screen.

A fraction is (0, 0) at the bottom-left corner of the picture and (1, 1) at its top-right, as
Pupil's `norm_pos` is; a pixel counts from the top-left corner. By default the picture is that of
the scene camera: a pinhole with the nominal focal length of Pupil Core's camera at 1280 x 720, or
the one you name. A pinhole's picture is a Screen whose distance is the focal length (all lengths in
pixels; only their ratios matter), so degrees are those of a Screen and mechanisms keep to its
edges. A real screen of known size and distance that fills the picture is named as such. With
`sphere` the scene camera's directions are those of a Sphere around the head instead, straight ahead
at (180, 90); protected directions behind the camera are then lost. Positions outside the picture
are allowed, as Pupil allows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Screen, Space, Sphere

#: Samples that Pupil is less sure of are lost, as in Pupil Player's own plugins.
MIN_CONFIDENCE = 0.6


@dataclass(frozen=True)
class ScenePicture:
    """The picture of a scene camera without distortion, as directions on a sphere.

    Parameters
    ----------
    width_px, height_px : float
        Resolution.
    focal_px : float
        Focal length.

    Examples
    --------
    >>> x, y = ScenePicture().degrees([0.5], [0.5])
    >>> float(x[0]), float(y[0])
    (180.0, 90.0)
    """

    width_px: float = 1280.0
    height_px: float = 720.0
    focal_px: float = 829.0

    @property
    def space(self) -> Space:
        """A sphere around the head."""
        return Sphere()

    @property
    def size_px(self) -> tuple[float, float]:
        """Width and height of the picture in pixels."""
        return self.width_px, self.height_px

    def degrees(self, norm_x: ArrayLike, norm_y: ArrayLike) -> tuple[Floats, Floats]:
        """Degrees of fractions of the picture."""
        x, y = np.asarray(norm_x, dtype=np.float64), np.asarray(norm_y, dtype=np.float64)
        right, down = (x - 0.5) * self.width_px, (y - 0.5) * self.height_px
        return Sphere().degrees(np.stack((right, down, np.full(x.shape, self.focal_px)), axis=-1))

    def norm(self, x_deg: ArrayLike, y_deg: ArrayLike) -> tuple[Floats, Floats]:
        """Fractions of the picture of degrees; NaN behind the camera."""
        v = Sphere().vectors(x_deg, y_deg)
        ahead = np.where(v[..., 2] > 1e-9, v[..., 2], np.nan)
        x = 0.5 + v[..., 0] / ahead * (self.focal_px / self.width_px)
        return x, 0.5 + v[..., 1] / ahead * (self.focal_px / self.height_px)


@dataclass(frozen=True)
class ScreenPicture:
    """A screen that fills the picture."""

    screen: Screen

    @property
    def space(self) -> Space:
        """The screen."""
        return self.screen

    @property
    def size_px(self) -> tuple[float, float]:
        """Width and height of the screen in pixels."""
        return self.screen.width_px, self.screen.height_px

    def degrees(self, norm_x: ArrayLike, norm_y: ArrayLike) -> tuple[Floats, Floats]:
        """Degrees of fractions of the screen."""
        x, y = np.asarray(norm_x, dtype=np.float64), np.asarray(norm_y, dtype=np.float64)
        return self.screen.from_px(x * self.screen.width_px, (1.0 - y) * self.screen.height_px)

    def norm(self, x_deg: ArrayLike, y_deg: ArrayLike) -> tuple[Floats, Floats]:
        """Fractions of the screen of degrees."""
        x, y = self.screen.to_px(x_deg, y_deg)
        return x / self.screen.width_px, 1.0 - y / self.screen.height_px


#: What a fraction of the picture means in degrees.
ImagePlane: TypeAlias = ScenePicture | ScreenPicture


def pinhole(width_px: float = 1280.0, height_px: float = 720.0, focal_px: float = 829.0) -> Screen:
    """The picture of a camera without distortion as a screen; lengths in pixels stand for
    millimetres.

    Examples
    --------
    >>> round(pinhole().width_deg, 1)
    75.3
    """
    return Screen(width_px, height_px, width_px, height_px, focal_px)


def picture_of(tracker: Any) -> ImagePlane:
    """The picture of a tracker: its own, its screen, or that of the nominal scene camera."""
    screen = tracker.space if isinstance(tracker.space, Screen) else None
    found: ImagePlane = getattr(tracker, "picture", None) or picture_for(screen, True)
    return found


def picture_for(screen: Screen | None, sphere: bool, *camera: float) -> ImagePlane:
    """The picture of a tracker: a known screen, or that of a camera, on a sphere or as a screen."""
    if screen is None and sphere:
        return ScenePicture(*camera)
    return ScreenPicture(screen or pinhole(*camera))


def screen_of(owner: str, value: object) -> Screen | None:
    """A screen: itself, five numbers (width and height in px, in mm, distance in mm), or None."""
    if value is None or isinstance(value, Screen):
        return value
    if not isinstance(value, list | tuple) or len(value) != 5:
        checks.refuse(
            owner,
            "screen",
            "a Screen, or five numbers: width and height in px, the same in mm, distance in mm",
            value,
        )
    return Screen(*value)
