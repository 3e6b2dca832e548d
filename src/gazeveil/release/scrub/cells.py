"""Cells of tables: numbers that stay, clocks that begin at zero, eyes that share one place."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from gazeveil.release.inventory.notes import NUMBER, PLAIN

_LONG = re.compile(r"^\s*[-+]?\d{10,}")
_POINT = re.compile(r"^\s*[(\[]([^()\[\]]{1,120})[)\]]\s*$")
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


def numbers_in(cell: str) -> list[str] | None:
    """The numbers of a point that stands in one cell, as `(0.5, 0.25)`; None for anything else.

    Examples
    --------
    >>> numbers_in("(0.5, 0.25)"), numbers_in("0.5"), numbers_in("(0.5, Anna)")
    (['0.5', '0.25'], None, None)
    """
    point = _POINT.match(cell)
    parts = [] if point is None else [part.strip() for part in point[1].split(",")]
    whole = 2 <= len(parts) <= 3 and all(
        p.lower() == "nan" or (NUMBER.match(p) and not _LONG.match(p)) for p in parts
    )
    return parts if whole else None


def checked(cell: str, words: frozenset[str] = frozenset()) -> str | None:
    """A measured number or a word of the tracker; None for anything else.

    A whole number of ten digits or more is a clock or an identifier, never gaze.
    """
    plain = cell.strip()
    if not plain or plain.lower() in PLAIN or plain.lower() in words:
        return cell
    if NUMBER.match(plain) and not _LONG.match(plain):
        return cell
    return cell if numbers_in(plain) is not None else None


def presence(cell: str) -> str | None:
    """0 for a number that is zero, 1 for every other one; None for what is no number."""
    if not cell.strip():
        return cell
    number = decimal(cell)
    return None if number is None else str(int(number != 0))


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
    """One coordinate of both eyes as the place between them, so that their distance is not written
    down. Directions of both eyes and a gaze point in space still tell it.

    Where one eye was not seen, the other's own place would give half the distance away when the
    first comes back: then both count as not seen.
    """
    one, other = numbers_in(left), numbers_in(right)
    if one is not None and other is not None and len(one) == len(other):
        middle = [midpoint(a, b)[0] or "nan" for a, b in zip(one, other, strict=True)]
        text = f"({', '.join(middle)})"
        return text, text
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
