"""Bytes and text of files: gzip or not, any usual encoding, with errors that name the file.

No reader opens a file itself: they all come through here, so a truncated archive, a UTF-16 export
or an archive that unzips to far more than a recording can be is met once. Limits: a text file that
is parsed in memory holds at most 4 GiB, unzipped (large CSV files are not, see
:mod:`gazeveil.io.plain.text`); and an archive that has given more than 256
MiB may not be more than 200 times its own size (tables of gaze shrink 3 to 20 times).

Folders that are written whole or not at all.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from pathlib import Path
from typing import ClassVar, TypeVar
from uuid import uuid4

from gazeveil.errors import DataError, FormatError

_GZIP = b"\x1f\x8b"
_PIECE_BYTES = 1 << 24
_SEPARATORS = "\t;,|"

#: Most bytes of a file that is read whole, unzipped.
MOST_BYTES = 4 << 30
#: Unzipped bytes from which an archive's ratio is looked at, and the largest ratio it may have
#: then.
RATIO_FROM_BYTES, MOST_RATIO = 256 << 20, 200
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True)
class Head:
    """A file's path and first bytes, unzipped: what sniffing may look at."""

    path: Path
    data: bytes
    #: Most bytes of a head.
    BYTES: ClassVar[int] = 1 << 16

    @classmethod
    def of(cls, path: Path) -> Head:
        """Read the head; a broken archive gives as much as could be read."""
        _refuse_special(path)
        try:
            with path.open("rb") as file:
                data = file.read(cls.BYTES)
        except OSError as error:
            raise cannot_open(path, error) from error
        if data.startswith(_GZIP):
            # Decompress only what is at hand; an early end is not an error for a head.
            try:
                data = zlib.decompressobj(wbits=31).decompress(data, cls.BYTES)
            except zlib.error:
                data = b""
        return cls(path, data)

    @cached_property
    def name(self) -> str:
        """Lower-case file name without `.gz`."""
        lower = self.path.name.lower()
        return lower[:-3] if lower.endswith(".gz") else lower

    @cached_property
    def text(self) -> str:
        """The head as text; undecodable bytes become replacement characters."""
        return decode(self.data, errors="replace")

    @cached_property
    def lines(self) -> list[str]:
        """Lines of the head; the last may be cut."""
        return self.text.splitlines()

    @property
    def first(self) -> str:
        """The first line, or an empty one."""
        return self.lines[0] if self.lines else ""

    @cached_property
    def cells(self) -> list[str]:
        """Column names in the first line that is neither blank nor a comment, unquoted; empty where
        there is no separator.
        """
        line = next((t for t in self.lines if t.strip() and not t.startswith("#")), "")
        separator = find_separator(line)
        return [c.strip().strip('"') for c in line.split(separator)] if separator else []

    @cached_property
    def keys(self) -> frozenset[str]:
        """Keys of the column names, for sniffing."""
        return frozenset(map(key, self.cells))


def key(name: str) -> str:
    """A column name without case, blanks and punctuation."""
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def find_separator(header: str) -> str:
    """The separator a header line uses most, or an empty text where it uses none."""
    best = max(_SEPARATORS, key=header.count)
    return best if best in header else ""


def stem(path: Path) -> str:
    """File name without `.gz` and without its last suffix."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return name.rsplit(".", 1)[0] if "." in name.lstrip(".") else name


def read_bytes(path: Path) -> bytes:
    """All bytes of a file, unzipped if it is a gzip archive.

    Raises
    ------
    FormatError
        For a missing file, an empty one, one beyond the limits above, or an archive that ends early
        or is damaged.
    """
    pieces, total = [], 0
    for piece in byte_pieces(path, _PIECE_BYTES):
        total += len(piece)
        if max(total, path.stat().st_size) > MOST_BYTES:
            raise FormatError(
                path,
                f"it holds more than {MOST_BYTES >> 30} GiB",
                "Split it by person or stimulus, or convert it to Parquet.",
            )
        pieces.append(piece)
    data = b"".join(pieces)
    if not data.strip():
        raise FormatError(
            path, "the file is empty", "Copy it again from the tracker or the archive."
        )
    return data


def byte_pieces(path: Path, size: int) -> Iterator[bytes]:
    """The bytes of a file one piece after another, unzipped if it is a gzip archive; never more
    than two pieces are in memory.

    Raises
    ------
    FormatError
        For a missing file, or an archive that ends early, is damaged or unzips to far more than a
        recording can be.
    """
    _refuse_special(path)
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == _GZIP
            file.seek(0)
            if not zipped:
                while piece := file.read(size):
                    yield piece
                return
            most, total = MOST_RATIO * path.stat().st_size, 0
            with gzip.GzipFile(fileobj=file) as archive:
                while piece := archive.read(size):
                    total += len(piece)
                    if total > RATIO_FROM_BYTES and total > most:
                        raise FormatError(
                            path,
                            f"it unzips to more than {MOST_RATIO} times its size, which no"
                            " recording does",
                            "Check where the file comes from.",
                        )
                    yield piece
    except EOFError as error:
        raise FormatError(
            path, "the gzip archive ends early", "Copy the file again; it was cut in transfer."
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(
            path, "the gzip archive is damaged", "Copy the file again and compare checksums."
        ) from error
    except OSError as error:
        raise cannot_open(path, error) from error


def cannot_open(path: Path, error: OSError) -> FormatError:
    """What is raised where the system does not open a file."""
    return FormatError(
        path, f"cannot be opened ({error.strerror})", "Check the path and the permissions."
    )


def _refuse_special(path: Path) -> None:
    """A pipe or a device would be waited for without end."""
    if path.exists() and not path.is_file():
        raise FormatError(
            path, "it is not a regular file", "Save its content to a file and read that."
        )


def read_text(path: Path) -> str:
    """All text of a file: UTF-8, UTF-16 with a byte-order mark, or Latin-1; line ends become
    newlines.
    """
    return unix(decode(read_bytes(path)))


def unix(text: str) -> str:
    """Text whose lines end in newlines."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def decode(data: bytes, errors: str = "strict") -> str:
    """Bytes as text: UTF-8, UTF-16 with a byte-order mark, or Latin-1."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            # A head may be cut in the middle of a character.
            return data.decode(encoding, errors=errors if encoding != "utf-16" else "replace")
    if len(data) >= 4 and data[1::2][:200].count(0) > 0.4 * len(data[1::2][:200]):
        return data.decode("utf-16-le", errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return (
            data.decode("utf-8", errors="replace")
            if errors == "replace"
            else data.decode("latin-1")
        )


try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]


def free(path: str | Path) -> Path:
    """The path, if a cohort can be written there: for callers who have long work to do before they
    write.

    Raises
    ------
    DataError
        If it exists and is not an empty folder: releases are never mixed.
    """
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(
            f"{target} exists and is not an empty folder. Choose another name or remove it first."
        )
    return target


@contextmanager
def plain_os_errors(path: str | Path) -> Iterator[None]:
    """Raise what the operating system refused as an OSError about `path`, also where a library says
    it in words of its own, as polars does of a full disk.
    """
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        found = re.search(r"\(os error (\d+)\)", str(error))
        if found is None:
            raise
        number = int(found[1])
        raise OSError(number, os.strerror(number), str(path)) from error


@contextmanager
def staged(path: str | Path) -> Iterator[Path]:
    """A new folder that takes the place of `path` at the end, and is removed on an error.

    What a killed process left of an earlier attempt is removed first.
    """
    target = free(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(target)
    staging = target.parent / f".{target.name}.{uuid4().hex[:8]}"
    staging.mkdir()
    try:
        with _held(staging):
            yield staging
            if target.exists():
                target.rmdir()
            staging.rename(target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def remove_abandoned(path: str | Path) -> int:
    """Remove folders that killed processes left beside `path`; how many there were.

    A folder whose process is alive is held by it, and stays.
    """
    target = Path(path)
    if fcntl is None or not target.parent.is_dir():
        return 0
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}")
    removed = 0
    for folder in target.parent.iterdir():
        if name.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
            try:
                with _held(folder):
                    shutil.rmtree(folder)
                    removed += 1
            except OSError:  # held, or not ours to remove
                continue
    return removed


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a folder as long as this process lives.

    Raises
    ------
    OSError
        If another process holds it.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


T = TypeVar("T")


def kept(most: int) -> Callable[[Callable[[Path], T]], Callable[[Path], T]]:
    """Keep what the last `most` files gave, by path and change time."""

    def wrap(read: Callable[[Path], T]) -> Callable[[Path], T]:
        @lru_cache(maxsize=most)
        def once(path: str, changed_ns: int) -> T:
            return read(Path(path))

        @wraps(read)
        def keeping(path: Path) -> T:
            return once(str(path), path.stat().st_mtime_ns if path.exists() else 0)

        return keeping

    return wrap
