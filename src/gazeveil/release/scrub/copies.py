"""The lines of a copy: what rules of a format (:mod:`gazeveil.io.registry`) leave of a file.

What one run of `scrub` knows: the labels it has given, what the user keeps, and what it did.
"""

from __future__ import annotations

import csv
import io
import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from gazeveil import checks
from gazeveil.errors import FormatError
from gazeveil.io.registry import DocumentRules, LineRules, Rule, TableRules, bare
from gazeveil.io.source import find_separator
from gazeveil.release.inventory.finding import NUMBER, PLAIN, is_clock, name_pattern, spots

_SAFE = re.compile(r"[A-Za-z0-9#][\w .,+/()#%°²µ\[\]-]{0,60}")
_LABEL_BYTES = 4


class ScrubJob:
    """Labels, choices and counts of one run.

    Equal texts get equal labels in all files of a run, so that a person's files, a stimulus and a
    kind of message stay recognisable as such. Labels come from the operating system's randomness:
    they say nothing about the text, and a second run gives others.

    Parameters
    ----------
    keep_text : iterable of str
        Regular expressions; a text that one of them matches as a whole stays as it is.
    keep_fields : iterable of str
        Columns of people's tables that stay.
    identifiers : iterable of str
        Names and numbers that the inventory found: they may stand in no kept text.
    """

    def __init__(
        self,
        keep_text: Iterable[str] = (),
        keep_fields: Iterable[str] = (),
        identifiers: Iterable[str] = (),
    ) -> None:
        self._keep = []
        for text in keep_text:
            try:
                self._keep.append(re.compile(text))
            except re.error:
                checks.refuse("scrub", "keep_text", "a regular expression", text)
        self.keep_fields = frozenset(name.strip().lower() for name in keep_fields)
        self._known = name_pattern(i for i in identifiers if not self.keeps(i))
        #: Text -> label: who is who, for the holder of the raw files alone.
        self.labels: dict[str, str] = {}
        #: What was done -> how often.
        self.done: Counter[str] = Counter()
        #: Texts of the experiment that stay, because they name no person and look like nothing.
        self.kept: set[str] = set()

    def keeps(self, text: str) -> bool:
        """Whether the user has named this text to stay."""
        return any(pattern.fullmatch(text) for pattern in self._keep)

    def label(self, text: str) -> str:
        """The label that stands for a text; empty text stays empty. BIDS writes `sub-` before one
        of a person.
        """
        plain = text.strip()
        if plain.startswith("sub-"):
            return f"sub-{self.label(plain[4:])}"
        if not plain:
            return ""
        if self.keeps(plain):
            self.kept.add(plain)
            return plain
        while plain not in self.labels:
            word = f"id{secrets.token_hex(_LABEL_BYTES)}"
            # A label of digits alone would be taken for a date.
            if not word[2:].isdecimal() and word not in self.labels.values():
                self.labels[plain] = word
        self.done["texts replaced by labels"] += 1
        return self.labels[plain]

    def event(self, text: str, words: frozenset[str]) -> str:
        """A word that the vendor's software writes, or the label of any other text."""
        plain = text.strip()
        return plain if plain.lower() in words or plain.lower() in PLAIN else self.label(plain)

    def message(self, text: str) -> str:
        """A message of the experiment; readers parse what stands behind a semicolon."""
        plain = text.strip()
        if not plain or self.keeps(plain):
            return plain
        return f"{';' if ';' in plain else 'message_'}{self.label(plain)}"

    def word(self, text: str) -> str:
        """A term of a sidecar or of a name: it stays where it is short, holds no name and looks
        like no date, device number or path.
        """
        plain = text.strip()
        if _SAFE.fullmatch(plain) and not any(spots(plain)) and self.leak(plain) is None:
            self.kept.add(plain)
            return plain
        return self.label(plain)

    def leak(self, text: str) -> str | None:
        """An identifier that a text holds."""
        match = None if self._known is None else self._known.search(text)
        return None if match is None else match[0]


#: Gives the lines from the beginning, each time it is called.
Lines: TypeAlias = Callable[[], Iterable[str]]
#: Recording of a file, and a column or key of it -> when its clock begins, in the file's unit.
Clock: TypeAlias = Mapping[tuple[tuple[str, ...], int | str], Decimal]

# Most cells are such numbers; the rest is looked at more closely.
_SHORT_NUMBER = re.compile(r"-?\d{1,9}(?:\.\d+)?").fullmatch
_LONG = re.compile(r"^\s*[-+]?\d{10,}")
_POINT = re.compile(r"^\s*[(\[]([^()\[\]]{1,120})[)\]]\s*$")
#: How trackers write an eye that they did not see.
_LOST = (Decimal(0), Decimal(-1))
_BRACKET = re.compile(r"[\[(]([^\])]*)[\])]")
_UNIT = re.compile(
    r"(?:mm|cm|m|px|pix|pixels?|deg|degrees?|rad|s|ms|us|ns|hz|g|[µμ][st]|°|%|²|\^?2|100ns|dacs"
    r"|adcs|mcs|hucs|ucs|snorm|norm|normali[sz]ed|per|units?|[\s,._°/-])*",
    re.IGNORECASE,
)
_STRANGE = re.compile(r"[^ -~°²µμ]|[\"'`<>|\\]")
_LARGEST_WHOLE = 10**9


def copied(
    rule: Rule,
    lines: Lines,
    job: ScrubJob,
    clock: Clock | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[str]:
    """The lines of a copy.

    Parameters
    ----------
    rule : TableRules, LineRules or DocumentRules
        What happens to the file's content.
    lines : callable
        Gives its lines.
    job : ScrubJob
        Labels and counts.
    clock : mapping, optional
        Where the clock of each recording begins, for files that share one; by default each time
        column of the file begins at its own first moment.
    names : sequence of str, optional
        Column names of a table that has no line of them; none is written then.
    """
    clock = first_times(rule, lines, names) if clock is None else clock
    if isinstance(rule, DocumentRules):
        yield from _documents(rule, lines, job, clock)
        return
    table: _Table | None = None
    for kind, content in _walk(rule, lines, names):
        if isinstance(content, _Table):
            table = content
            if kind == "header":
                yield table.header(job)
        elif isinstance(content, list):
            assert table is not None
            yield table.row(content, job, clock)
        elif isinstance(rule, LineRules):
            line = _line(rule, content, job, clock)
            job.done["lines left out"] += line is None
            if line is not None:
                yield line


def first_times(rule: Rule, lines: Lines, names: Sequence[str] | None = None) -> Clock:
    """The earliest time of each recording, by column where these have clocks of their own."""
    found: dict[tuple[tuple[str, ...], int | str], Decimal] = {}
    for place, time in _times(rule, lines, names):
        if time is not None and (place not in found or time < found[place]):
            found[place] = time
    return found


def _times(
    rule: Rule, lines: Lines, names: Sequence[str] | None
) -> Iterator[tuple[tuple[tuple[str, ...], int | str], Decimal | None]]:
    if isinstance(rule, DocumentRules):
        shifted_keys = [k for k, treatment in rule.keys.items() if treatment == "shift"]
        for record in _records(lines()) if shifted_keys else ():
            yield from (((((), k)), decimal(str(record.get(k, "")))) for k in shifted_keys)
        return
    table: _Table | None = None
    for _, content in _walk(rule, lines, names):
        if isinstance(content, _Table):
            table = content
        elif isinstance(content, list):
            assert table is not None
            yield from table.times(content)
        elif isinstance(rule, LineRules):
            match, _ = _fitting(rule, content)
            if match is not None:
                for name in match.re.groupindex:
                    if name.startswith("shift"):
                        yield ((), 0), decimal(match[name] or "")


def _walk(
    rule: TableRules | LineRules, lines: Lines, names: Sequence[str] | None
) -> Iterator[tuple[str, str | list[str] | _Table]]:
    """The parts of a file: a line by itself, the table that begins, and its rows as cells."""
    rules = rule if isinstance(rule, TableRules) else rule.table
    source = iter(lines())
    if isinstance(rule, LineRules):
        for line in source:
            if rules is not None and re.match(rule.begins, line):
                break
            yield "line", line
        else:
            if rules is not None:
                raise FormatError("table", "it has no rows", "The file was cut.")
            return
        assert rules is not None
        if names is None:
            yield "header", (table := _Table(line, rules))
        else:
            yield "line", line
            yield "named", (table := _Table(",", rules, names))
        for line in source:
            fits = not line.strip() or _fitting(rule, line)[0] is not None
            yield ("line", line) if fits else ("row", table.cells(line))
        return
    whole = (line for line in source if line.strip())
    first = next(whole, "")
    table = _Table(first, rule, names)
    yield "header" if names is None else "named", table
    if names is not None and first:
        yield "row", table.cells(first)
    yield from (("row", cells) for cells in table.parsed(whole))


class _Table:
    """A table with its columns planned, from its first line or the names that it lacks."""

    def __init__(self, first: str, rules: TableRules, names: Sequence[str] | None = None) -> None:
        self.rules = rules
        self.separator = find_separator(first)
        self.quoted = rules.quoted or self.separator == ","
        self.names = self.cells(first) if names is None else list(names)
        keys = [bare(name) for name in self.names]
        at = {k: i for i, k in enumerate(keys)}
        #: Place, action, and place of the other eye's column.
        self.columns = [
            (i, action, at.get(_other_eye(keys[i]), -1))
            for i, name in enumerate(self.names)
            if (action := rules.action(name)) is not None
        ]
        self.groups = [i for i, k in enumerate(keys) if re.fullmatch(rules.group, k) and k]

    def parsed(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """The cells of each line, quoted ones over several lines too."""
        if not (self.quoted and self.separator):
            yield from (line.split(self.separator or None) for line in lines)
            return
        try:
            yield from csv.reader(lines, delimiter=self.separator)
        except csv.Error as error:
            raise FormatError("table", f"it cannot be parsed ({error})", "Mend it.") from error

    def cells(self, line: str) -> list[str]:
        """The cells of one line."""
        return [c.strip() for c in next(self.parsed([line]), [])]

    def line(self, cells: Sequence[str]) -> str:
        """Cells as one line."""
        quoted = self.quoted and self.separator
        return joined(cells, self.separator) if quoted else self.separator.join(cells)

    def header(self, job: ScrubJob) -> str:
        """The line of the names that stay: units in brackets, no strange signs."""
        shown = []
        for i, *_ in self.columns:
            name = _BRACKET.sub(lambda m: m[0] if _UNIT.fullmatch(m[1][:60]) else "", self.names[i])
            name = _STRANGE.sub("", name).strip()
            shown.append(name if job.leak(name) is None else job.label(name))
        return self.line(shown)

    def _place(self, cells: Sequence[str], column: int) -> tuple[tuple[str, ...], int]:
        group = tuple(cells[i] for i in self.groups if i < len(cells))
        return group, 0 if self.rules.one_clock else column

    def times(
        self, cells: Sequence[str]
    ) -> Iterator[tuple[tuple[tuple[str, ...], int], Decimal | None]]:
        """The times of a row, by the recording and the clock that they belong to."""
        for i, action, _ in self.columns:
            if action == "shift" and i < len(cells):
                yield self._place(cells, i), decimal(cells[i])

    def row(self, cells: Sequence[str], job: ScrubJob, clock: Clock) -> str:
        """A row of the copy."""
        return self.line([self._cell(cells, *column, job, clock) for column in self.columns])

    def _cell(
        self, cells: Sequence[str], i: int, action: str, other: int, job: ScrubJob, clock: Clock
    ) -> str:
        cell = cells[i] if i < len(cells) else ""
        value: str | None = None
        if action == "keep":
            value = cell if _SHORT_NUMBER(cell) else checked(cell, self.rules.words)
        elif action == "shift":
            # A table that does not say its recording goes by the first of those beside it.
            begin = clock.get(self._place(cells, i), min(clock.values(), default=Decimal(0)))
            value = shifted(cell, begin)
        elif action == "label":
            value = job.label(cell)
        elif action == "event":
            value = job.event(cell.strip("' "), self.rules.words)
        elif action == "midpoint":
            value = midpoint(cell, cells[other] if 0 <= other < len(cells) else "")
        job.done["cells emptied"] += value is None
        return self.rules.missing if value is None else value


def joined(cells: Sequence[str], separator: str) -> str:
    """Cells as one line, quoted where one holds the separator."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="", delimiter=separator).writerow(cells)
    return buffer.getvalue()


def _other_eye(plain: str) -> str:
    """The key of the other eye's column: left and right, L and R, eye 0 and eye 1."""
    for one, other in (("left", "right"), ("right", "left")):
        if one in plain:
            return plain.replace(one, other, 1)
    if plain[:1] in "lr":
        return ("r" if plain[:1] == "l" else "l") + plain[1:]
    return re.sub(r"([01])(?=3d)", lambda m: "1" if m[1] == "0" else "0", plain)


def decimal(cell: str) -> Decimal | None:
    """A number with every digit it has, or None."""
    if _SHORT_NUMBER(cell):
        return Decimal(cell)
    try:
        return Decimal(cell.strip().replace(",", ".")) if NUMBER.match(cell) else None
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
    known = not plain or plain.lower() in PLAIN or plain.lower() in words
    number = NUMBER.match(plain) and not _LONG.match(plain)
    return cell if known or number or numbers_in(plain) is not None else None


def shifted(cell: str, offset: Decimal) -> str | None:
    """A time from the offset on, with the digits it had; None for what is no number.

    Examples
    --------
    >>> shifted("1629390345036471431", Decimal("1629390345036471430")), shifted("", Decimal(1))
    ('1', '')
    """
    time = decimal(cell)
    if time is None:
        return cell if cell.strip().lower() in PLAIN or not cell.strip() else None
    text = f"{time - offset:f}"
    return text.replace(".", ",") if "," in cell else text


def midpoint(one: str, other: str) -> str:
    """One coordinate of both eyes as the place between them, so that their distance is not written
    down. Directions of both eyes and a gaze point in space still tell it.

    Where one eye was not seen, the other's own place would give half the distance away when the
    first comes back: then both count as not seen.
    """
    left, right = numbers_in(one), numbers_in(other)
    if left is not None and right is not None and len(left) == len(right):
        both = (midpoint(a, b) or "nan" for a, b in zip(left, right, strict=True))
        return f"({', '.join(both)})"
    values = decimal(one), decimal(other)
    if values[0] is None or values[1] is None:
        return ""
    if values[0] in _LOST or values[1] in _LOST:
        return one if values[0] in _LOST else other
    digits = max(len(cell.strip().replace(",", ".").partition(".")[2]) for cell in (one, other))
    text = f"{(values[0] + values[1]) / 2:.{digits}f}"
    return text.replace(".", ",") if "," in one else text


def _fitting(rule: LineRules, line: str) -> tuple[re.Match[str] | None, str | None]:
    """The first pattern that fits a line, and its template."""
    plain = line.rstrip()
    for fits, template in rule.compiled:
        match = fits(plain)
        if match is not None:
            return match, template
    return None, ""


def _line(rule: LineRules, line: str, job: ScrubJob, clock: Clock) -> str | None:
    match, template = _fitting(rule, line)
    if match is None or template is None:
        return line if rule.begins and re.match(rule.begins, line) else None
    words = frozenset[str]() if rule.table is None else rule.table.words
    if template:
        parts = {n: _part(n, match[n] or "", words, job, clock) for n in match.re.groupindex}
        return template.format(**parts).rstrip()
    text, end = "", 0
    for name in match.re.groupindex:
        start, stop = match.span(name)
        if start >= 0:
            text += match.string[end:start] + _part(name, match[name], words, job, clock)
            end = stop
    return text + match.string[end:]


def _part(name: str, text: str, words: frozenset[str], job: ScrubJob, clock: Clock) -> str:
    """A named group of a line."""
    if name.startswith("shift"):
        return shifted(text, clock.get(((), 0), _LOST[0])) or "" if text else ""
    treatment = name.rstrip("0123456789")
    if treatment == "events":
        found = (w.strip().strip("'\"") for w in text.split(","))
        return ",".join(job.event(w, words) for w in found if w)
    if treatment == "label":
        return job.label(text)
    return job.message(text) if treatment == "message" else text


def _records(lines: Iterable[str]) -> Iterator[dict[str, object]]:
    for line in lines:
        if line.strip():
            try:
                record = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise FormatError("file", "it is not whole JSON", "Copy it again.") from error
            if isinstance(record, dict):
                yield record


def _documents(rule: DocumentRules, lines: Lines, job: ScrubJob, clock: Clock) -> Iterator[str]:
    if not rule.lines:
        for record in _records(["\n".join(lines())]):
            about = {**rule.constants, **scrubbed_object(record, rule.keys, job, clock)}
            yield from json.dumps(about, indent=1, ensure_ascii=False).split("\n")
        return
    for record in _records(lines()):
        about = scrubbed_object(record, rule.keys, job, clock)
        if set(rule.need) < about.keys():
            yield json.dumps(about, separators=(",", ":"))
        else:
            job.done["lines left out"] += 1


def scrubbed_object(
    value: Mapping[str, object], rules: Mapping[str, object], job: ScrubJob, clock: Clock
) -> dict[str, object]:
    """The keys of an object that rules name, each as its rule says."""
    result: dict[str, object] = {}
    for name, inner in value.items():
        rule = rules.get(name)
        if rule is None and isinstance(inner, dict) and job.word(name) == name:
            rule = rules.get("*")
        if isinstance(rule, Mapping):
            result[name] = (
                scrubbed_object(inner, rule, job, clock) if isinstance(inner, dict) else {}
            )
        elif rule == "shift" and (time := decimal(str(inner))) is not None:
            elapsed = time - clock.get(((), name), Decimal(0))
            whole = elapsed == elapsed.to_integral_value() and isinstance(inner, int)
            result[name] = int(elapsed) if whole else float(elapsed)
        elif rule in ("removed", "zero"):
            result[name] = "removed" if rule == "removed" else 0
        elif rule == "label":
            result[name] = None if inner is None else job.label(str(inner))
        elif (
            (rule == "numbers" and _is_numeric(inner))
            or rule == "keep"
            or (isinstance(rule, frozenset) and str(inner) in rule)
        ):
            result[name] = _kept(inner, job)
        else:
            job.done["keys left out"] += 1
    return result


def _is_numeric(value: object) -> bool:
    if isinstance(value, list):
        return len(value) <= 3 and all(_is_numeric(v) and not isinstance(v, list) for v in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kept(value: object, job: ScrubJob) -> object:
    """Numbers as they are, harmless words, and lists of both; a clock becomes 0."""
    if isinstance(value, list):
        return [_kept(inner, job) for inner in value]
    if isinstance(value, str):
        return value if value == "" else job.word(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value if isinstance(value, bool) else None
    large = isinstance(value, int) and abs(value) > _LARGEST_WHOLE
    return 0 if large or is_clock(value) else value
