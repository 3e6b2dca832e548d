"""Gaze in media coordinates (MCS) of Tobii exports, moved to where the medium stood on the display.

MCS count from the top left corner of the picture, in its pixels or as fractions of its size. Pro
Lab says where that stood in `Presented Media position X/Y`, `Presented Media width/height`, and
Studio in `MediaPosX/Y`, `MediaWidth/Height`, for each row. Pixels of a medium that was shown larger
or smaller than it is are refused: exports do not say before or after which scaling they count.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError

if TYPE_CHECKING:
    from gazeveil.io.vendors.tobii.tsv import TobiiExport

#: Bare names of the columns that place a medium, and of its own size.
COLUMNS = (
    r"presented(media|stimulus)(width|height|position[xy])|media(width|height|pos[xy])|"
    r"original(media|stimulus)(width|height)"
)
_SHOWN = ("presentedmedia", "presentedstimulus", "media")
_REMEDY = (
    "Export the gaze point in display coordinates ('Gaze point X [DACS px]'), or 'Presented Media"
    " position X', 'position Y', 'width' and 'height' beside it; for glasses export 'Gaze direction"
    " left X [HUCS norm]' and its kind."
)


def points_on_display(path: Path, export: TobiiExport, side: str) -> Floats | None:
    """Pixels of the display, (n, 2), for the gaze point of one side ("" for both eyes together);
    None where there is none in media coordinates.

    Raises
    ------
    FormatError
        Where nothing says where the medium stood, or its pixels are not those of the display.
    """
    for bracket, is_share in ((r"MCS\s*px", False), (r"MCS\s*norm", True)):
        names = [export.column(f"gazepoint{side}{axis}", bracket=bracket) for axis in "xy"]
        if names[0] is None or names[1] is None:
            continue
        values = np.stack([export.frame[str(n)].to_numpy() for n in names], axis=1)
        corner = _pair(export, ("positionx", "posx"), ("positiony", "posy"))
        size = _pair(export, ("width",), ("height",))
        if corner is None or size is None:
            raise FormatError(
                path,
                f"'{names[0]}' counts from the corner of the picture, and nothing says where that"
                " stood on the display",
                _REMEDY,
            )
        if not is_share:
            _refuse_scaled(path, export, size)
        return corner + values * (size if is_share else 1.0)
    return None


def _pair(export: TobiiExport, *axes: tuple[str, ...]) -> Floats | None:
    """Two columns of the medium as it was shown, (n, 2)."""
    found = [
        export.floats(export.column(*(f"{who}{w}" for who in _SHOWN for w in words)))
        for words in axes
    ]
    return None if found[0] is None or found[1] is None else np.stack([found[0], found[1]], axis=1)


def _refuse_scaled(path: Path, export: TobiiExport, size: Floats) -> None:
    own = [
        export.floats(export.column(f"originalmedia{d}", f"originalstimulus{d}"))
        for d in ("width", "height")
    ]
    for axis, original in enumerate(own):
        if original is not None and (np.abs(original - size[:, axis]) > 1).any():
            raise FormatError(
                path,
                "gaze is in pixels of a picture that was shown larger or smaller than it is",
                "Export the gaze point in display coordinates ('Gaze point X [DACS px]').",
            )
