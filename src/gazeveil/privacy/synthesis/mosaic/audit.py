"""The game of `mosaic`: that of the readings it is computed from.

Stitching, dealing names and rendering look at nothing but the readings, so they cannot tell more
than these do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.synthesis.clock.audit import clock_render

if TYPE_CHECKING:
    from gazeveil.privacy.synthesis.mosaic.mechanism import Mosaic


def mosaic(mechanism: Mosaic, unit: str | None) -> Game:
    """The joint outcome of the readings of one window."""
    return clock_render(mechanism.reader, unit)
