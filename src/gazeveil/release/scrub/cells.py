"""Cells of tables: numbers that stay, clocks that begin at zero, eyes that share one place."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from gazeveil.release.inventory.notes import NUMBER, PLAIN

_LONG = re.compile(r"^\s*[-+]?\d{10,}")
#: How trackers write an eye that they did not see.
_LOST = (Decimal(0), Decimal(-1))


def decimal(cell: str) -> Decimal | None:
    """A number with every digit it has, or None."""
    if not NUMBER.match(cell):
        return None
    try:
        return Decimal(cell.strip().replace(",", "."))
    except InvalidOperation:
        return None


def checked(cell: str, words: frozenset[str] = frozenset()) -> str | None:
    """A measured number or a word of the tracker; None for anything else.

    A whole number of ten digits or more is a clock or an identifier, never gaze.
    """
    plain = cell.strip()
    if not plain or plain.lower() in PLAIN or plain.lower() in words:
        return cell
    return cell if NUMBER.match(plain) and not _LONG.match(plain) else None


def shifted(cell: str, offset: Decimal) -> str | None:
    """A time from the offset on, with the digits it had; None for what is no number.

    Examples
    --------
    >>> shifted("1629390345036471431", Decimal("1629390345036471430")), shifted("", Decimal(1))
    ('1', '')
    """
    if cell.strip().lower() in PLAIN or not cell.strip():
        return cell
    time = decimal(cell)
    if time is None:
        return None
    text = f"{time - offset:f}"
    return text.replace(".", ",") if "," in cell else text


def midpoint(left: str, right: str) -> tuple[str, str]:
    """One coordinate of both eyes as the place between them, so that their distance is gone.

    Where one eye was not seen, the other's own place would give half the distance away when the
    first comes back: then both count as not seen.
    """
    values = decimal(left), decimal(right)
    if values[0] is None or values[1] is None:
        return "", ""
    if values[0] in _LOST or values[1] in _LOST:
        lost = left if values[0] in _LOST else right
        return lost, lost
    digits = max(len(cell.strip().replace(",", ".").partition(".")[2]) for cell in (left, right))
    text = f"{(values[0] + values[1]) / 2:.{digits}f}"
    text = text.replace(".", ",") if "," in left else text
    return text, text
