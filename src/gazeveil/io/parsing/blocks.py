"""Large delimited files in blocks of whole lines, so that their text is never in memory at once.

A block is parsed as the whole file would be, with the header in front of it; errors name the line
of the file. Files in UTF-16, and those whose lines end in a lone carriage return, are not cut: they
are read whole, like small ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.io.parsing.delimited import KeyedTable, find_separator, open_sheet
from gazeveil.io.source import Head, byte_pieces

#: Size from which a file is read in blocks, as it is and zipped, and size of a block: bytes.
LARGE_BYTES, LARGE_ZIPPED_BYTES, BLOCK_BYTES = 32 << 20, 4 << 20, 4 << 20
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class BlockPlace:
    """Where a block lies in a file: its bytes when unzipped, and the one-based line on which it
    begins.
    """

    start: int
    length: int
    first_line: int


def is_cut(path: Path) -> bool:
    """Whether a file is large, and its lines can be told apart before it is decoded."""
    zipped = path.suffix.lower() == ".gz"
    if path.stat().st_size < (LARGE_ZIPPED_BYTES if zipped else LARGE_BYTES):
        return False
    head = Head.of(path)
    return not head.data.startswith(_UTF16) and b"\0" not in head.data and b"\n" in head.data


def blocks(path: Path) -> Iterator[tuple[BlockPlace, bytes]]:
    """The lines of a file, in blocks of about 4 MiB.

    Raises
    ------
    FormatError
        For a file that cannot be opened, or an archive that ends early or is damaged.
    """
    rest, start, line = b"", 0, 1
    for piece in byte_pieces(path, BLOCK_BYTES):
        data = rest + piece
        end = _whole_lines(data)
        rest = data[end:]
        if end:
            yield BlockPlace(start, end, line), data[:end]
            start, line = start + end, line + data.count(b"\n", 0, end)
    if rest:
        yield BlockPlace(start, len(rest), line), rest


def _blocks_at(path: Path, places: Sequence[BlockPlace]) -> Iterator[tuple[BlockPlace, bytes]]:
    """Some blocks of a file, in order; an archive has to be unzipped up to the last of them."""
    if not places:
        return
    if path.suffix.lower() == ".gz":
        wanted = set(places)
        yield from (found for found in blocks(path) if found[0] in wanted)
        return
    with path.open("rb") as file:
        for place in places:
            file.seek(place.start)
            yield place, file.read(place.length)


def _whole_lines(data: bytes) -> int:
    """Where the last line ends that is whole: a line break inside quotes ends none."""
    end = data.rfind(b"\n") + 1
    if data.count(b'"', 0, end) % 2:
        # The last quote opens a cell that goes on in the next piece.
        end = data.rfind(b"\n", 0, data.rfind(b'"', 0, end)) + 1
    return end


def sheets(
    path: Path,
    separator: str | None,
    decimal: str | None,
    comment: str,
    places: Sequence[BlockPlace] | None = None,
) -> Iterator[tuple[BlockPlace, KeyedTable]]:
    """The blocks of a file, or some of them, as tables. What is not given is found at the beginning
    of the file (:func:`gazeveil.io.parsing.delimited.open_sheet`).
    """
    header, header_lines, first_rows = _after_header(path, Head.of(path).text, comment)
    separator = find_separator(header) if separator is None else separator
    if decimal is None:
        whole = first_rows.rpartition("\n")[0]
        decimal = open_sheet(path, separator, None, comment, header + "\n" + whole).decimal
    for place, data in blocks(path) if places is None else _blocks_at(path, places):
        text, first_line = _decoded(data), place.first_line
        if place.start == 0:
            _, _, text = _after_header(path, text, comment)
            first_line += header_lines
        if text.strip():
            # The header takes the line before the first.
            text = header + "\n" + text
            yield place, open_sheet(path, separator, decimal, comment, text, first_line - 1)


def _decoded(data: bytes) -> str:
    data = data.removeprefix(_UTF8_MARK)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _after_header(path: Path, text: str, comment: str) -> tuple[str, int, str]:
    """The header line, the lines up to and with it, and the text after it."""
    start, lines = 0, 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line, lines = text[start:end], lines + 1
        if line.strip() and not (comment and line.startswith(comment)):
            return line, lines, text[end + 1 :]
        start = end + 1
    raise FormatError(
        path, "its first line is not a header with separated column names", "Check the file.", 1
    )
