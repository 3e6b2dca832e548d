"""One public screen for all recordings of one resolution.

Readers work the millimetres out where a file does not say them: from the gaze points themselves,
from the calibration, from the resolution in degrees. Such a size has thirteen digits and is
somebody's own, as good as a name; it also moves with every sample. So only sizes that several
people share pass as they are. All other screens of one resolution become one, of median size and
distance in whole centimetres. Degrees stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TypeAlias

from gazeveil.gaze.geometry import Screen

#: Width and height in pixels.
Resolution: TypeAlias = tuple[float, float]

#: Width and height in pixels and in millimetres: what makes screens the same, wherever heads are.
ScreenSize: TypeAlias = tuple[float, float, float, float]

_CENTIMETRE_MM = 10.0
_UNKNOWN_DISTANCE_MM = 100.0  # the distance of a screen that was not looked at is rounded to this


@dataclass(frozen=True)
class PublicScreens:
    """The screens of a release.

    Parameters
    ----------
    shared : mapping of screen size to Screen
        Sizes that several people share, with one viewing distance for each.
    others : mapping of resolution to Screen
        The one screen of all other recordings of a resolution.
    alone : int
        How many people are the only ones at their public screen, which tells them from all others.
    """

    shared: Mapping[ScreenSize, Screen] = field(default_factory=dict)
    others: Mapping[Resolution, Screen] = field(default_factory=dict)
    alone: int = 0

    def __len__(self) -> int:
        return len({*self.shared.values(), *self.others.values()})

    def of(self, screen: Screen) -> Screen:
        """The public screen of a recording's own."""
        size = screen_size(screen)
        known = self.shared.get(size) or self.others.get(size[:2])
        if known is not None:
            return known
        return replace(
            screen,
            width_mm=_rounded(screen.width_mm),
            height_mm=_rounded(screen.height_mm),
            distance_mm=_rounded(screen.distance_mm, far=True),
        )


def screen_size(screen: Screen) -> ScreenSize:
    """What makes two screens the same."""
    return screen.width_px, screen.height_px, screen.width_mm, screen.height_mm


def public_screens(own: Iterable[tuple[str, Screen]]) -> PublicScreens:
    """The public screens of people and the screens they sat at.

    Examples
    --------
    >>> a, b = Screen(1920, 1080, 513.81, 289.94, 633.2), Screen(1920, 1080, 510.02, 288.1, 671.0)
    >>> public_screens([("ann", a), ("bob", b)]).of(a)
    Screen(width_px=1920.0, height_px=1080.0, width_mm=510.0, height_mm=290.0, distance_mm=650.0)
    """
    by_size: dict[ScreenSize, list[tuple[str, Screen]]] = {}
    for person, screen in own:
        by_size.setdefault(screen_size(screen), []).append((person, screen))
    shared: dict[ScreenSize, Screen] = {}
    others: dict[Resolution, list[tuple[str, Screen]]] = {}
    for size, seen in by_size.items():
        if len({person for person, _ in seen}) > 1:
            shared[size] = replace(seen[0][1], distance_mm=_distance(seen))
        else:
            others.setdefault(size[:2], []).extend(seen)
    alone = sum(len({person for person, _ in seen}) == 1 for seen in others.values())
    return PublicScreens(shared, {px: _middle(seen) for px, seen in others.items()}, alone)


def _distance(seen: list[tuple[str, Screen]]) -> float:
    """That of all people where they agree, else the median of people in whole centimetres."""
    distances = {screen.distance_mm for _, screen in seen}
    if len(distances) == 1:
        return distances.pop()
    return _rounded(median({person: screen.distance_mm for person, screen in seen}.values()))


def _middle(seen: list[tuple[str, Screen]]) -> Screen:
    """The median screen of people, in whole centimetres."""
    screens = dict(seen).values()
    return replace(
        seen[0][1],
        width_mm=_rounded(median(screen.width_mm for screen in screens)),
        height_mm=_rounded(median(screen.height_mm for screen in screens)),
        distance_mm=_rounded(median(screen.distance_mm for screen in screens)),
    )


def _rounded(mm: float, far: bool = False) -> float:
    """Millimetres in whole centimetres, or decimetres, and at least one."""
    step_mm = _UNKNOWN_DISTANCE_MM if far else _CENTIMETRE_MM
    return step_mm * max(1, round(mm / step_mm))
