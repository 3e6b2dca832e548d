"""r from the regions of interest of a stimulus: public boxes, never gaze.

What a wearer may want to hide is where inside a region they look. That is covered where r is at
least as large as the region is wide: the largest distance between two of its places, along a
straight line of a screen's two angles or along a great circle.

One r for each stimulus is a public number. The r of the region that gaze lies in (Li et al. 2021
speak of the current region's radius) is not, and is not offered: noise would then have a scale that
depends on where gaze is, and two places on either side of a border would be told apart by it, by at
least 2 ln(r_2 / r_1) however small epsilon is (proofs/kaleido.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.io.areas import EVERY, Boxes, boxes_on, read_areas
from gazeveil.privacy.promise.loss import Loss
from gazeveil.privacy.rational import format_exact

#: One r for each stimulus: that of its widest region, or of the one in the middle by width (of
#: an even number, the narrower of the two).
RULES = ("largest", "median")

_RADIUS = "a stimulus whose r is "

#: Widths are rounded up to a multiple of one over this, in degrees.
_PARTS = 1024


@dataclass(frozen=True, eq=False)
class StimulusRegions:
    """The regions of one stimulus.

    Parameters
    ----------
    boxes : Boxes
        Where they lie.
    widths_deg : tuple of Fraction
        The largest distance between two places of each, rounded up to a 1024th.
    """

    boxes: Boxes = field(repr=False)
    widths_deg: tuple[Fraction, ...]

    def r_deg(self, rule: str) -> Fraction:
        """The r of the stimulus by a rule."""
        ranked = sorted(self.widths_deg)
        return ranked[-1] if rule == "largest" else ranked[(len(ranked) - 1) // 2]

    def wider_than(self, r_deg: Fraction) -> tuple[str, ...]:
        """Names of regions that r does not span."""
        pairs = zip(self.boxes.names, self.widths_deg, strict=True)
        return tuple(name for name, width in pairs if width > r_deg)


def regions_on(owner: str, path: str, stimulus: str, space: Space) -> StimulusRegions:
    """The regions of a stimulus.

    Raises
    ------
    DataError
        Where the file has none on it.
    """
    boxes = boxes_on(path, stimulus, space)
    if boxes is None:
        raise DataError(
            f"No region of '{path}' lies on the stimulus '{stimulus}', so {owner} has no r there."
            f" Add one, or one with the stimulus '{EVERY}', or give r_deg in degrees."
        )
    return StimulusRegions(boxes, tuple(_widths_deg(boxes)))


def by_radius(w: int, radii_deg: Iterable[Fraction], budget: Loss) -> tuple[tuple[str, Loss], ...]:
    """What is promised on stimuli of each r, in words: by r and not by name, because a release may
    have withheld names of stimuli and regions.

    Parameters
    ----------
    w : int
        Samples of a window.
    radii_deg : iterable of Fraction
        The r of each stimulus, in degrees.
    budget : Loss
        Of a window that moves by at most r.
    """
    ranked = [format_exact(r, down=True) for r in sorted(set(radii_deg))]
    return tuple(
        (f"{w} samples in a row on {_RADIUS}{r} degrees, moved by at most that", budget)
        for r in ranked
    )


def radius_in(words: str) -> Fraction | None:
    """The r of a line of :func:`by_radius`, in degrees; None for any other line."""
    number = "[0-9]{1,20}(?:[.][0-9]{1,20}|/[1-9][0-9]{0,20})?"
    found = re.search(f"{_RADIUS}({number}) ", words)
    return None if found is None else Fraction(found[1])


def named_stimuli(path: str) -> tuple[str, ...]:
    """The stimuli that a file names; :data:`EVERY` stands for those that it does not."""
    return tuple(dict.fromkeys(area.stimulus for area in read_areas(path)))


def _widths_deg(boxes: Boxes) -> list[Fraction]:
    """On a sphere the way that is straight in longitude and polar angle, at the box's widest
    parallel: no great circle between two of its places is longer.
    """
    widths = []
    sphere = isinstance(boxes.space, Sphere)
    edges = zip(boxes.left_deg, boxes.top_deg, boxes.right_deg, boxes.bottom_deg, strict=True)
    for left, top, right, bottom in (map(float, box) for box in edges):
        across, down = (Fraction(b) - Fraction(a) for a, b in ((left, right), (top, bottom)))
        if sphere:
            widest = math.sin(math.radians(min(max(90.0, top), bottom)))
            across *= min(Fraction(1), Fraction(widest) * (1 + Fraction(1, 1 << 40)))
        width = _root(across**2 + down**2)
        widths.append(min(width, Fraction(180)) if sphere else width)
    return widths


def _root(square: Fraction) -> Fraction:
    """The square root, rounded up to a multiple of 1 / _PARTS."""
    whole = math.isqrt(math.ceil(square * _PARTS**2))
    return Fraction(whole if Fraction(whole, _PARTS) ** 2 >= square else whole + 1, _PARTS)
