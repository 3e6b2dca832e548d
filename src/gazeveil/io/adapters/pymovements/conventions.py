"""Conventions of pymovements 0.28 that matter here: times are milliseconds; `position` is a list
column in degrees from the screen's centre, x to the right and y downwards (as a Recording on a
Screen has it), of 2 components (one eye or a mean), 4 (left, right) or 6 (left, right, cyclopean);
`pixel` counts pixel centres, so that the middle of an `upper left` screen is at (resolution - 1) /
2, half a pixel off :class:`~gazeveil.gaze.geometry.Screen`, which counts from the corner; sizes are
centimetres; event onsets and offsets are the times of the first and the last sample. A lost sample
is NaN.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gazeveil.errors import MissingExtraError

#: How columns of labels begin.
LABEL = "label:"


def load_pymovements() -> Any:
    """The package `pymovements`.

    Raises
    ------
    MissingExtraError
        Where it is missing.
    """
    try:
        return import_module("pymovements")
    except ImportError as error:
        raise MissingExtraError("pymovements", "pymovements") from error
