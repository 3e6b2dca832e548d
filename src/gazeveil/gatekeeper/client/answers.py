"""What the client gives and takes besides the core's own values, and how answers become values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from gazeveil.gatekeeper.core.areas import RegisteredArea
from gazeveil.gatekeeper.core.events.log import PublicEvent


@dataclass(frozen=True)
class Rect:
    """A rectangle in degrees of the device's space, x to the right and y down, by its left upper
    corner.
    """

    x_deg: float
    y_deg: float
    width_deg: float
    height_deg: float


@dataclass(frozen=True)
class CountAnswer:
    """A noisy count of fixations.

    Parameters
    ----------
    fixations : int
        The count.
    epsilon : Fraction
        What it promises.
    guarantee : mapping
        The promise as the Gatekeeper words it.
    """

    fixations: int
    epsilon: Fraction
    guarantee: Mapping[str, object]


def area_of(answer: Mapping[str, Any]) -> RegisteredArea:
    """An area from an answer."""
    names = ("id", "name", "x_deg", "y_deg", "width_deg", "height_deg")
    return RegisteredArea(**{name: answer[name] for name in names})


def event_of(answer: Mapping[str, Any]) -> PublicEvent:
    """An event from an answer."""
    return PublicEvent(**{field.name: answer[field.name] for field in fields(PublicEvent)})
