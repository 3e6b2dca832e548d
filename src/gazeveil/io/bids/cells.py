"""Cells of a TSV file, which has no quotes: what would end a cell or a line is escaped.

BIDS knows no way to put a tab into a cell. Gazeveil writes it as a backslash and a letter, and says
so in the sidecar; other programs see the backslash.
"""

from __future__ import annotations

import io
import re

import polars as pl

#: What a sidecar says about a column whose cells are escaped.
ESCAPES = r"\t is a tab, \n and \r are ends of lines, \s is a blank at an end, \\ is a backslash"

_LETTER = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_CHARACTER = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r", "s": " ", "q": '"'}


def escaped(text: str) -> str:
    r"""A text that fits a cell.

    Examples
    --------
    >>> escaped("trial\t1 ")
    'trial\\t1\\s'
    """
    plain = "".join(_LETTER.get(c, c) for c in text)
    blank = re.compile(r"^ | $")
    return blank.sub(r"\\s", plain)


def unescaped(cell: str) -> str:
    """The text that :func:`escaped` made a cell of."""
    return re.sub(r"\\(.)", lambda at: _CHARACTER.get(at[1], at[0]), cell)


def unquoted(text: str) -> str:
    """A text that fits a cell of a file that some programs read with quotes."""
    return escaped(text).replace('"', "\\q")


def tsv(frame: pl.DataFrame, header: bool) -> bytes:
    """A table as TSV: `n/a` for what is missing, no quotes."""
    buffer = io.BytesIO()
    plain = frame.with_columns(
        pl.selectors.float().fill_nan(None), pl.selectors.string().replace("", None)
    )
    plain.write_csv(
        buffer, separator="\t", include_header=header, null_value="n/a", quote_style="never"
    )
    return buffer.getvalue()
