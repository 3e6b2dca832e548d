""":func:`inventory`: everything a file or folder says beside its gaze."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from gazeveil.errors import FormatError, GazeveilError
from gazeveil.io.reading import read
from gazeveil.io.source import Head
from gazeveil.release.inventory.finding import FileNotes, Finding, Inventory, name_pattern
from gazeveil.release.inventory.looks import look_at_binary, look_at_json, look_at_table, sampled

_PROSE = ("readme", "licen", "changes")
_LETTERS = re.compile(r"[^\W\d_]{2}").search


def inventory(
    path: str | os.PathLike[str],
    all_text: bool = False,
    people: Iterable[str] | None = None,
    progress: Callable[[list[Path]], Iterable[Path]] = lambda files: files,
) -> Inventory:
    """Find dates, clocks, serial numbers, names, paths, free text, rates, attributes, eye distance,
    height, screens and devices in a file or in all files of a folder.

    Parameters
    ----------
    path : path
        A file or a folder, of any format; gzip or not.
    all_text : bool
        Look at every line. Otherwise headers and samples of the bodies are looked at, and
        `lines` of the result says how many lines these were.
    people : iterable of str
        Names to look for beside those that the files' own fields give; the people that `read` finds
        there if not given.
    progress : callable
        Wraps the list of files, for a progress bar.

    Returns
    -------
    Inventory

    Raises
    ------
    FormatError
        Where there is no such file or folder.
    """
    place = Path(path)
    if not place.exists():
        raise FormatError(place, "there is no such file or folder", "Check the path.")
    root = place if place.is_dir() else place.parent
    files = files_below(place)
    notes, lines, unread = [], 0, []
    for file in progress(files):
        of_file = FileNotes(file.relative_to(root).as_posix())
        try:
            lines += _look(file, of_file, all_text)
        except (OSError, FormatError):
            unread.append(of_file.file)
        _place(file, of_file)
        notes.append(of_file)
    names = {name for of_file in notes for name in of_file.names}
    names |= set(_people(place) if people is None else people)
    _look_for_names(files, notes, names, all_text)
    findings = tuple(finding for of_file in notes for finding in of_file.findings())
    return Inventory(findings, len(files), lines, all_text, tuple(unread))


def _people(place: Path) -> tuple[str, ...]:
    """The people of recordings, as their reader names them; none where nothing can be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the reader's notes are for who reads
            return tuple(key[0] for key in read(place, clash="session").keys)
    except (GazeveilError, OSError):
        return ()


def files_below(place: Path) -> list[Path]:
    """The file itself, or all regular files of a folder in order; hidden ones too, because they
    would be uploaded. Links to folders are followed, each folder once, as `read` follows them.
    """
    if place.is_file():
        return [place]
    files, visited = [], set()
    for folder, folders, names in os.walk(place, followlinks=True):
        real = os.path.realpath(folder)
        if real in visited:  # a link back to a folder that was looked at
            folders.clear()
            continue
        visited.add(real)
        files += [p for name in names if (p := Path(folder, name)).is_file()]
    return sorted(files)


def _look(file: Path, notes: FileNotes, all_text: bool) -> int:
    """Note a file's content; the number of lines that were looked at."""
    text = sampled(file, all_text)
    if text is None:
        look_at_binary(file, notes)
        return 0
    if text.text.lstrip()[:1] in ("{", "["):
        return look_at_json(text, notes, all_text)
    name = Head(file, b"").name
    if not name.endswith((".md", ".rst", ".log")) and not name.startswith(_PROSE):
        return look_at_table(text, notes)
    looked = 0
    for number, line in text.lines:
        looked += 1
        notes.text(f"line {number}" if number else "a line", line)
    return looked


def _place(file: Path, notes: FileNotes) -> None:
    """The file's name and its time of change."""
    notes.add("file name", "file name", notes.file)
    notes.text("file name", notes.file)
    changed = datetime.fromtimestamp(file.stat().st_mtime, tz=UTC)
    notes.add("file time", "file time", f"{changed:%Y-%m-%d %H:%M:%S}")


def _look_for_names(
    files: list[Path], notes: list[FileNotes], names: set[str], all_text: bool
) -> None:
    """Known names in file names, and in the text of files outside the fields that gave them."""
    pattern = name_pattern(names)
    if pattern is None:
        return
    for file, of_file in zip(files, notes, strict=True):
        if (match := pattern.search(of_file.file)) is not None:
            of_file.add("file name", "name", match[0])
        try:
            text = sampled(file, all_text)
        except (OSError, FormatError):
            continue
        known = {
            v for (_, kind), (values, _) in of_file.seen.items() if kind == "name" for v in values
        }
        for number, line in text.lines if text is not None else ():
            # Rows of numbers hold no names.
            match = pattern.search(line) if _LETTERS(line) else None
            if match is not None and match[0] not in known:
                known.add(match[0])
                of_file.add(f"line {number}" if number else "a line", "name", match[0])


__all__ = ["Finding", "files_below", "inventory"]
