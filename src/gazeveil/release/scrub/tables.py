"""Delimited tables, column by column: what no rule names is left out."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from gazeveil.errors import FormatError
from gazeveil.io.source import find_separator, key
from gazeveil.release.scrub.job import (
    ScrubJob,
    checked,
    decimal,
    midpoint,
    presence,
    public_name,
    readable_rest,
    shifted,
)

Lines = Callable[[], Iterable[str]]
#: Recording of a table -> when its clock begins, in the file's unit.
Beginnings = Mapping[tuple[str, ...], Decimal]

#: A pattern that fits nothing, not even an empty name.
NEVER = r"(?!)"
# Most cells are such numbers; the rest is looked at more closely.
_SHORT_NUMBER = re.compile(r"-?\d{1,9}(?:\.\d+)?").fullmatch


@dataclass(frozen=True)
class TableRules:
    """What happens to the columns of one kind of table; patterns are matched against the key of the
    name, from its beginning.

    Parameters
    ----------
    keep : str
        Measured numbers and words of the tracker.
    shift : str
        Times, which begin at zero.
    label : str
        Texts that get a label.
    event : str
        Texts that stay where they are among `words`, and else get a label.
    midpoint : str
        Places of the left and of the right eye.
    presence : str
        Numbers of which only whether they are zero stays.
    empty : str
        Columns that stay in place without their values.
    group : str
        Columns that tell recordings of one table apart: each has a clock that begins at zero.
    words : frozenset of str
        Words that may stay, in lower case.
    missing : str
        What stands for a value that is taken out.
    quoted : bool
        Whether cells may be quoted where the separator is not a comma.
    """

    keep: str
    shift: str = NEVER
    label: str = NEVER
    event: str = NEVER
    midpoint: str = NEVER
    presence: str = NEVER
    empty: str = NEVER
    group: str = NEVER
    words: frozenset[str] = field(default=frozenset())
    missing: str = ""
    quoted: bool = False

    def action(self, name: str) -> str | None:
        """Return the treatment of a column, or None if it is left out."""
        plain = key(name)
        for action in ("empty", "shift", "label", "event", "midpoint", "presence", "keep"):
            match = re.match(getattr(self, action), plain)
            if match is not None:
                return action if readable_rest(plain[match.end() :], name) else None
        return None


@dataclass(frozen=True)
class _Column:
    index: int
    name: str
    action: str
    partner: int = -1


class _Sheet:
    """A table with its columns planned.

    Parameters
    ----------
    lines : callable
        Gives the lines from the beginning, each time it is called.
    rules : TableRules
        What happens to the columns.
    names : sequence of str or None
        Column names of a table that has no line of them.
    """

    def __init__(self, lines: Lines, rules: TableRules, names: Sequence[str] | None) -> None:
        first = next((line for line in lines() if line.strip()), "")
        self._lines, self._named = lines, names is None
        self.separator = find_separator(first)
        self.quoted = rules.quoted or self.separator == ","
        own = list(names) if names is not None else _cells(first, self.separator, self.quoted)
        self.columns = _planned(own, rules)
        self.times = [c.index for c in self.columns if c.action == "shift"]
        self._groups = [i for i, n in enumerate(own) if re.match(rules.group, key(n))]

    def rows(self) -> Iterator[tuple[tuple[str, ...], list[str]]]:
        """Recording and cells of each row."""
        source = (line for line in self._lines() if line.strip())
        if self._named:
            next(source, None)
        for cells in _parsed(source, self.separator, self.quoted):
            yield tuple(cells[i] for i in self._groups if i < len(cells)), cells

    def beginnings(self) -> dict[tuple[tuple[str, ...], int], Decimal]:
        """Recording and column -> earliest time."""
        found: dict[tuple[tuple[str, ...], int], Decimal] = {}
        for group, cells in self.rows() if self.times else ():
            for i in self.times:
                time = decimal(cells[i]) if i < len(cells) else None
                if time is not None and ((group, i) not in found or time < found[group, i]):
                    found[group, i] = time
        return found


def scrubbed_table(
    lines: Lines,
    rules: TableRules,
    job: ScrubJob,
    shared: Beginnings | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[str]:
    """The table without the columns and cells that no rule keeps.

    Parameters
    ----------
    lines : callable
        Gives the lines from the beginning, each time it is called.
    rules : TableRules
        What happens to the columns.
    job : ScrubJob
        Labels and counts.
    shared : mapping, optional
        Where the clock of each recording begins, for tables that share one; without it each time
        column begins at its own first moment.
    names : sequence of str, optional
        Column names of a table that has no line of them; none is written then.
    """
    sheet = _Sheet(lines, rules, names)
    own = sheet.beginnings() if shared is None else {}
    first = min(shared.values(), default=Decimal(0)) if shared is not None else Decimal(0)
    if names is None:
        known = [public_name(c.name, job) for c in sheet.columns]
        yield _line(known, sheet.separator, sheet.quoted)
    for group, cells in sheet.rows():
        if shared is not None:
            begin = shared.get(group, first) if group else first
            offsets = dict.fromkeys(sheet.times, begin)
        else:
            offsets = {i: own.get((group, i), Decimal(0)) for i in sheet.times}
        shown = _row(cells, sheet.columns, rules, offsets, job)
        yield _line(shown, sheet.separator, sheet.quoted)


def beginnings(
    lines: Lines, rules: TableRules, names: Sequence[str] | None = None
) -> dict[tuple[str, ...], Decimal]:
    """The earliest time of each recording in any time column."""
    found: dict[tuple[str, ...], Decimal] = {}
    for (group, _), time in _Sheet(lines, rules, names).beginnings().items():
        found[group] = min(time, found.get(group, time))
    return found


def earliest(clocks: Iterable[Beginnings]) -> dict[tuple[str, ...], Decimal] | None:
    """The earliest time of each recording in several tables; None without any."""
    merged: dict[tuple[str, ...], Decimal] = {}
    for clock in clocks:
        for group, time in clock.items():
            merged[group] = min(time, merged.get(group, time))
    return merged or None


def column_names(lines: Lines, quoted: bool = False) -> list[str]:
    """The names in the first line that is not empty."""
    first = next((line for line in lines() if line.strip()), "")
    return _cells(first, find_separator(first), quoted)


def joined(cells: Sequence[str], separator: str) -> str:
    """Cells as one line, quoted where one holds the separator."""
    return _line(cells, separator, True)


def _planned(names: Sequence[str], rules: TableRules) -> list[_Column]:
    at = {key(name): i for i, name in enumerate(names)}
    columns = []
    for i, name in enumerate(names):
        action = rules.action(name)
        partner = at.get(_other_eye(key(name)), -1) if action == "midpoint" else -1
        if action is not None and (action != "midpoint" or partner >= 0):
            columns.append(_Column(i, name, action, partner))
    return columns


def _other_eye(plain: str) -> str:
    """The key of the other eye's column: left and right, L and R, eye 0 and eye 1."""
    for one, other in (("left", "right"), ("right", "left")):
        if one in plain:
            return plain.replace(one, other, 1)
    if plain[:1] in "lr":
        return ("r" if plain[0] == "l" else "l") + plain[1:]
    return re.sub(r"([01])(?=3d)", lambda m: "1" if m[1] == "0" else "0", plain)


def _row(
    cells: list[str],
    columns: list[_Column],
    rules: TableRules,
    offsets: Mapping[int, Decimal],
    job: ScrubJob,
) -> list[str]:
    result = []
    for column in columns:
        cell = cells[column.index] if column.index < len(cells) else ""
        value: str | None
        if column.action == "keep":
            value = cell if _SHORT_NUMBER(cell) else checked(cell, rules.words)
        elif column.action == "shift":
            value = shifted(cell, offsets.get(column.index, Decimal(0)))
        elif column.action == "label":
            value = job.label(cell)
        elif column.action == "event":
            value = job.event(cell, rules.words)
        elif column.action == "midpoint":
            other = cells[column.partner] if column.partner < len(cells) else ""
            value = midpoint(cell, other)[0]
        elif column.action == "presence":
            value = presence(cell)
        else:
            value = None
        if value is None:
            job.done["cells emptied"] += 1
            value = rules.missing
        result.append(value)
    return result


def _parsed(lines: Iterable[str], separator: str, quoted: bool) -> Iterator[list[str]]:
    if quoted and separator:
        try:
            yield from csv.reader(lines, delimiter=separator)
        except csv.Error as error:
            raise FormatError("table", f"it cannot be parsed ({error})", "Mend it.") from error
    else:
        for line in lines:
            yield _cells(line, separator)


def _cells(line: str, separator: str, quoted: bool = False) -> list[str]:
    if separator == "," or (quoted and separator):
        return [c.strip() for c in next(_parsed([line], separator, True), [])]
    return line.split(separator) if separator else [line]


def _line(cells: Sequence[str], separator: str, quoted: bool) -> str:
    if not quoted or not separator:
        return separator.join(cells)
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="", delimiter=separator).writerow(cells)
    return buffer.getvalue()


#: Columns that name people, as :func:`gazeveil.io.tables_file.read_people` finds them.
PERSON = (
    "person",
    "participantid",
    "participant",
    "subjectid",
    "subject",
    "userid",
    "user",
    "observer",
    "id",
)
_GAZE = ("timestamp", "gaze", "por", "pupil", "onset")


def is_people_table(lines: Lines, stem: str) -> bool:
    """Whether a table has a column of people and none of gaze or times.

    A column `id` alone may count anything: it counts people in a file that is called so.
    """
    names = [key(name) for name in column_names(lines)]
    known = PERSON if is_people_file(stem) else PERSON[:-1]
    return any(p in names for p in known) and not any(word in n for n in names for word in _GAZE)


def is_people_file(stem: str) -> bool:
    """Whether a file is called after people."""
    return stem.lower() in ("participants", "people", "subjects", "demographics")


def scrubbed_people(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """The column of people as labels, and the columns that the user keeps."""
    names = column_names(lines)
    separator = find_separator(next((line for line in lines() if line.strip()), "")) or ","
    keys = [key(name) for name in names]
    person = next((keys.index(p) for p in PERSON if p in keys), 0)
    kept = [i for i, n in enumerate(names) if n.strip().lower() in job.keep_fields and i != person]
    job.done["attributes left out"] += len(names) - 1 - len(kept)
    rows = csv.reader((line for line in lines() if line.strip()), delimiter=separator)
    yield _line([names[person], *(names[i] for i in kept)], separator, True)
    next(rows, None)
    for cells in rows:
        if person < len(cells):
            values = [cells[i] if i < len(cells) else "" for i in kept]
            yield _line([label_of_person(cells[person], job), *values], separator, True)


def label_of_person(text: str, job: ScrubJob) -> str:
    """A label; BIDS has `sub-` before it, in file names too."""
    plain = text.strip()
    return f"sub-{job.label(plain[4:])}" if plain.startswith("sub-") else job.label(plain)
