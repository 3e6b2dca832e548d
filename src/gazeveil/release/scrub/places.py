"""Which file is what, what it is called in the copy, and why some are not copied.

Of a path only the names that vendors' software gives (`gaze.csv`, `exports`, `recording.g3`) and
known suffixes stay; every other part becomes a label, the same one wherever it stands.

Tables of the plain reader, by the roles of their columns, and tables of people.

Where a `dataset.toml` says the columns, they are called by their roles in the copy, files lie under
the labels of their person and stimulus, and the new `dataset.toml` has units, rate and screen: no
name of a column, no pattern and no other text of the old one stays.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import FRAMES
from gazeveil.io.known import FILE_NAME, beside, dataset_toml, read_dataset_file
from gazeveil.io.parsing.assemble import WORDS
from gazeveil.io.parsing.naming import NamingOptions, fits, naming_options
from gazeveil.io.plain.layout import Layout, is_validation, plan_layout
from gazeveil.io.plain.roles import KEY_ROLES, ask_which, flag_role, recognise, split_unit
from gazeveil.io.plain.text import FirstRows
from gazeveil.io.registry import (
    DocumentRules,
    Format,
    Rule,
    Scrub,
    TableRules,
    bare,
    get,
    names,
    sniff,
)
from gazeveil.io.source import Head, find_separator, key, stem
from gazeveil.release.inventory.looks import lines_of
from gazeveil.release.scrub.copies import Clock, Lines, ScrubJob, copied, first_times, joined

_BRACKET = re.compile(r"[\[(]")
_PLAIN = re.compile(r"[A-Za-z0-9 _.\-\[\]()°µμ]*")
_LABEL_WORDS = frozenset([*WORDS, *WORDS.values(), "saccade", "blink", "pso"])
# Validation data has targets beside gaze, and is known by their names.
_TARGETS = {"targetid": "target_id", "tarx": "tar_x", "tary": "tar_y"}
_PERSON = (
    *("person", "participantid", "participant", "subjectid", "subject", "userid", "user"),
    "observer",
)
_GAZE = ("timestamp", "gaze", "por", "pupil", "onset")
#: Options of a `dataset.toml` that stay where they are numbers or such words.
_STAY = ("y_axis", "x_axis", "missing", "space", "panorama", "decimal", "rate_hz", "clash", "frame")
_OPTION_WORDS = frozenset(
    {"up", "down", "left", "right", "screen", "sphere", ".", ",", "error", "session", *FRAMES}
)


def _header(lines: Lines, separator: str = "") -> tuple[list[str], str]:
    """The names in the first line that is not empty, and what separates them."""
    first = next((line for line in lines() if line.strip()), "")
    separator = separator or find_separator(first)
    cells = next(csv.reader([first], delimiter=separator or ","), [])
    return [c.strip() for c in cells], separator


def table_lines(
    lines: Lines, job: ScrubJob, roles: Mapping[str, str] | None, new_names: Mapping[str, str]
) -> Iterator[str]:
    """The table with the columns that have a role; comments and every other column go.

    Parameters
    ----------
    lines : callable
        Gives the lines from the beginning, each time it is called.
    job : ScrubJob
        Labels and counts.
    roles : mapping of role to column, optional
        Which columns have a role; names decide where it is not given.
    new_names : mapping of role to name
        What columns are called in the copy; by default their own name, or the role.
    """
    names, separator = _header(lines)
    if not separator:
        raise FormatError("table", "its columns are not separated", "Export with commas.")
    targets = dict[str, str]()
    if roles is None:
        roles = {role: n for n in names if (role := flag_role(n)) is not None} | recognise(names)
        ask_which("table", names, recognise(names), {})
        targets = _TARGETS if is_validation(names) else {}
    by_name = {name.strip(): role for role, name in reversed(list(roles.items()))}
    by_name |= {n: f"target {key(n)}" for n in names if key(n) in targets}
    public = [
        targets.get(key(n)) or new_names.get(r) or _public(n, r) if (r := by_name.get(n)) else ""
        for n in names
    ]

    def of(*wanted: str, but: Sequence[str] = ()) -> str:
        found = (
            bare(p)
            for n, p in zip(names, public, strict=True)
            if p and (by_name[n] in wanted or (but and by_name[n] not in but))
        )
        return "|".join(found)

    rules = TableRules(
        of(but=("t", "label", *KEY_ROLES)),
        shift=of("t"),
        label=of(*KEY_ROLES),
        event=of("label"),
        group=of(*KEY_ROLES),
        words=_LABEL_WORDS,
        quoted=True,
    )

    def rows() -> Iterator[str]:
        source = (line for line in lines() if line.strip())
        next(source, None)
        yield separator.join(public)
        yield from source

    return copied(rules, rows, job)


def _public(name: str, role: str) -> str:
    """A name that holds a role and a unit and nothing else."""
    unit = split_unit(name)[1]
    if _PLAIN.fullmatch(name) and (unit or not _BRACKET.search(name)):
        return name
    return f"{role} [{unit}]" if unit else role


def is_people(lines: Lines) -> bool:
    """Whether a table has a column of people and none of gaze or times. A column `id` alone may
    count anything.
    """
    keys = [key(n) for n in _header(lines)[0]]
    return any(p in keys for p in _PERSON) and not any(word in k for k in keys for word in _GAZE)


def is_people_name(name: str) -> bool:
    """Whether a file is called after people."""
    return name.lower() in ("participants", "people", "subjects", "demographics")


def people_lines(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """The column of people as labels, and the columns that the user keeps."""
    names, separator = _header(lines)
    keys = [key(name) for name in names]
    person = next((keys.index(p) for p in (*_PERSON, "id") if p in keys), 0)
    kept = [i for i, n in enumerate(names) if n.lower() in job.keep_fields and i != person]
    job.done["attributes left out"] += len(names) - 1 - len(kept)
    source = csv.reader((line for line in lines() if line.strip()), delimiter=separator or ",")
    for number, cells in enumerate(source):
        cells += [""] * (len(names) - len(cells))
        who = cells[person] if number == 0 else job.label(cells[person])
        yield joined([who, *(cells[i] for i in kept)], separator or ",")


@dataclass(frozen=True)
class Described:
    """The tables of a folder with a `dataset.toml`, and what that says as options of
    :func:`gazeveil.read`.
    """

    root: Path
    options: Mapping[str, object]

    @classmethod
    def of(cls, root: Path) -> Described | None:
        """What the `dataset.toml` of a folder describes; None where it is not there, or about
        another format, or leaves names to an index.
        """
        path = beside(root)
        file = None if path is None else read_dataset_file(path)
        if file is None or file.format not in (None, "csv") or "index" in file.options:
            return None
        return cls(root, file.options)

    def layout(self, file: Path) -> Layout | None:
        """How a table is read; None for a file that is no table of gaze."""
        rows = FirstRows.at(file, self.options)
        try:
            return plan_layout(rows, self.options) if rows.is_headed else None
        except FormatError:
            return None

    @property
    def _fields(self) -> tuple[str, ...]:
        """What the new path says: person and stimulus, and the rest where the old one does."""
        pattern = str(self.options.get("pattern", ""))
        more = (n for n in ("session", "task") if f"{{{n}}}" in pattern or n in self.options)
        return ("person", "stimulus", *more)

    def target(self, file: Path, suffix: str, job: ScrubJob) -> PurePosixPath:
        """The new place of a table.

        Raises
        ------
        FormatError
            Where its path does not fit the pattern.
        """
        names = naming_options(**self.options).names(file, self.root)
        folders = (job.label(getattr(names, field)) for field in self._fields)
        return PurePosixPath(*folders, job.label(stem(file)) + suffix)

    def lines(self, lines: Lines, layout: Layout, job: ScrubJob) -> Iterable[str]:
        """The lines of a table's copy."""
        # What the options say goes before what a column says, and stands in the new path.
        roles = {r: name for r, name in layout.columns if r not in self.options}
        return table_lines(lines, job, roles, {role: role for role in roles})

    def description(self, layout: Layout, job: ScrubJob) -> list[str]:
        """The lines of the new `dataset.toml`."""
        said = {n: self.options[n] for n in _STAY if n in self.options}
        options: dict[str, object] = {n: v for n, v in said.items() if _says_nothing(v)}
        options["pattern"] = "/".join(f"{{{field}}}" for field in self._fields) + "/{}"
        options["unit"] = layout.unit
        if layout.column("t") is not None:
            options["time_unit"] = layout.time_unit
        if layout.screen is not None:
            options |= {"screen": layout.screen, **({"assumed": True} if layout.assumed else {})}
        interval_s = layout.frame_interval_s
        if isinstance(interval_s, tuple):
            options["frame_interval_s"] = {job.label(name): s for name, s in interval_s}
        elif interval_s is not None:
            options["frame_interval_s"] = interval_s
        return dataset_toml("csv", options, ()).splitlines()


def _says_nothing(value: object) -> bool:
    """Whether an option is a number, several of them, or a word that is no text of a person's."""
    if isinstance(value, list | tuple):
        return all(_says_nothing(v) for v in value)
    return isinstance(value, int | float) or value in _OPTION_WORDS


_BINARY = "a binary file may hold anything: export its tables as text and scrub these"
_BY_SUFFIX = (
    (r"\.(?:mp4|avi|mov|mkv|wmv|mjpeg|jpe?g|png|bmp|tiff?)$", "pictures may show people"),
    (r"\.(?:pkl|pickle|p|joblib)$", "a Python pickle may hold anything: write its samples as CSV"),
    (r"\.idf$", "SMI's IDF is binary: convert it to text with the IDF Converter and scrub that"),
    (r"\.(?:feather|arrow|xdf|hdf5?|h5|sqlite3?|db|raw|zip|7z|tar|xlsx?)(?:\.gz)?$", _BINARY),
)
#: Formats of files with such suffixes, whole or not.
_FORMATS = {".edf": "eyelink-edf", ".npy": "irf", ".mat": "osie", ".parquet": "parquet"}
_UNKNOWN = (
    "scrub does not know this kind of file, or not the names of its columns, which a dataset.toml"
    " may say"
)
_SUFFIX = re.compile(r"(?:\.(?:asc|txt|tsv|csv|json|arff))?(?:\.gz)?$", re.IGNORECASE)
#: Folders that vendors' software makes, and those in which it makes numbered ones.
_COUNTED = frozenset({"exports", "segments"})
_FOLDERS = _COUNTED | {"meta", "surfaces", "projects", "recordings"}
_FOLDERS |= {"beh", "eeg", "meg", "func", "ieeg", "nirs"}


@dataclass(frozen=True)
class FileCopy:
    """A file that is copied: its format, its new place, and what makes its lines."""

    source: Path
    target: PurePosixPath
    format: str
    lines: Callable[[], Iterable[str]]


@dataclass(frozen=True)
class LeftOut:
    """A file that is not copied, why, and whether that says what to do instead."""

    source: Path
    reason: str
    is_way_out: bool = False


class Recogniser:
    """Finds out what the files below a folder are.

    Parameters
    ----------
    root : Path
        The folder that was asked for.
    files : iterable of Path
        The files below it.
    job : ScrubJob
        Labels and counts.
    """

    def __init__(self, root: Path, files: Iterable[Path], job: ScrubJob) -> None:
        self.root, self.files, self.job = root, list(files), job
        self._formats = [get(name) for name in names()]
        self._described = Described.of(root)
        self._owners: dict[Path, Format | None] = {}
        self._clocks: dict[tuple[Path, str], Clock] = {}

    def recognise(self, file: Path) -> FileCopy | LeftOut:
        """What a file is."""
        if file.stat().st_size == 0:
            return LeftOut(file, "the file is empty")
        try:
            named = file.suffix in (".csv", ".tsv") and is_people_name(stem(file))
            ways = (self._people,) if named else (self._owned, self._of_description, self._alone)
            return next(copy for way in ways if (copy := way(file)) is not None)
        except FormatError as error:
            return LeftOut(file, error.problem)

    def _owner(self, file: Path) -> tuple[Format, Path] | None:
        """The format that owns the folder of a file, and that folder."""
        for folder in [p for p in file.parents if p == self.root or self.root in p.parents]:
            if folder not in self._owners:
                owners = (f for f in self._formats if f.scrub and f.knows(folder))
                self._owners[folder] = next(owners, None)
            owner = self._owners[folder]
            if owner is not None:
                return owner, folder
        return None

    def _owned(self, file: Path) -> FileCopy | LeftOut | None:
        """A file of a folder that is one recording, or a dataset."""
        found = self._owner(file)
        if found is None or (scrub := found[0].scrub) is None:
            return None
        if scrub.instead:
            return LeftOut(file, scrub.instead, is_way_out=True)
        if scrub.aside.intersection(file.relative_to(found[1]).parts):
            return LeftOut(file, "it lies beside the recordings of the dataset")
        rule, match = _rule_of(scrub, file)
        if rule is None or match is None:
            other = "free text or a kind of file that scrub does not know"
            return LeftOut(file, other) if scrub.entities else None
        part = slice(*match.span(1)) if match.groups() else slice(0, 0)
        name = file.name[: part.start] + self.job.label(file.name[part]) + file.name[part.stop :]
        columns = scrub.names(file, found[1])
        clock = self._clock(file, scrub, found[1]) if _shares(rule) else None
        make = partial(copied, rule, partial(lines_of, file), self.job, clock, columns)
        return FileCopy(file, self._target(file, name, scrub.entities), found[0].name, make)

    def _clock(self, file: Path, scrub: Scrub, folder: Path) -> Clock:
        """Where the clock begins that a file shares with those beside it."""
        run = re.sub(scrub.run, "", file.name)
        if (file.parent, run) not in self._clocks:
            earliest: dict[tuple[tuple[str, ...], int | str], Decimal] = {}
            for other in (f for f in self.files if f.parent == file.parent):
                rule, _ = _rule_of(scrub, other)
                if rule is not None and _shares(rule) and re.sub(scrub.run, "", other.name) == run:
                    columns = scrub.names(other, folder)
                    for place, time in first_times(rule, partial(lines_of, other), columns).items():
                        earliest[place] = min(time, earliest.get(place, time))
            self._clocks[file.parent, run] = earliest
        return self._clocks[file.parent, run]

    def _of_description(self, file: Path) -> FileCopy | LeftOut | None:
        """A table that a `dataset.toml` describes, or that file itself."""
        if self._described is None:
            return None
        mine = file.name == FILE_NAME and file.parent == self.root
        layout = self._described.layout(file) if _suffix(file) else None
        if layout is None and not mine:
            return None
        tables = (self._described.layout(f) for f in self.files if _suffix(f))
        first = next((found for found in tables if found is not None), None)
        if first is None:
            return LeftOut(file, "it describes tables, and none of them is here")
        if layout is None:
            make = partial(self._described.description, first, self.job)
            return FileCopy(file, PurePosixPath(file.name), file.name, make)
        if (layout.unit, layout.time_unit) != (first.unit, first.time_unit):
            return LeftOut(file, "its units differ from those of the first table")
        target = self._described.target(file, _suffix(file), self.job)
        lines = partial(_without_comments, file, layout.comment)
        return FileCopy(
            file, target, "csv", partial(self._described.lines, lines, layout, self.job)
        )

    def _alone(self, file: Path) -> FileCopy | LeftOut:
        """A file that is a recording or a table of people by itself, or stands beside one."""
        name, lines = Head(file, b"").name, partial(lines_of, file)
        for form in self._formats:
            if form.scrub is not None and name in form.scrub.anywhere:
                make = partial(copied, form.scrub.anywhere[name], lines, self.job)
                return FileCopy(file, self._target(file, file.name), form.name, make)
        found = sniff(file)
        scrub = None if found is None else found.scrub
        if scrub is not None and scrub.instead:
            return LeftOut(file, scrub.instead, is_way_out=True)
        plain = name.endswith((".csv", ".tsv")) and (scrub is None or scrub.columns is not None)
        if plain and is_people(lines):
            return self._people(file)
        if found is None or scrub is None:
            return _left_out(file)
        target = self._target(file, _by_pattern(file, scrub.pattern, self.root, self.job))
        if scrub.columns is not None:
            about: Mapping[str, Any] = {}
            if scrub.columns and found.describe is not None and found.complete is not None:
                about = found.describe(file, found.complete([file], {}).options)
            roles = about.get("columns")
            rows = partial(_without_comments, file, "#")
            make = partial(table_lines, rows, self.job, roles, scrub.columns)
            return FileCopy(file, target, found.name, make)
        if scrub.rule is None:
            return _left_out(file)
        columns = scrub.names(file, self.root)
        make = partial(copied, scrub.rule, lines, self.job, None, columns)
        return FileCopy(file, target, found.name, make)

    def _people(self, file: Path) -> FileCopy:
        """A table of people, which keeps its name where that says so."""
        target = self._target(file, file.name if is_people_name(stem(file)) else "")
        make = partial(people_lines, partial(lines_of, file), self.job)
        return FileCopy(file, target, "people", make)

    def _target(self, file: Path, name: str = "", entities: str = "") -> PurePosixPath:
        """The new path of a file, with a label for its name where none is given."""
        inside = file.parent.relative_to(self.root).parts
        folders = [
            part
            if part in _FOLDERS or (i and inside[i - 1] in _COUNTED and part.isdecimal())
            else _relabelled(part, entities if re.search(entities, part) else "", self.job)
            for i, part in enumerate(inside)
        ]
        if not name:
            suffix = _suffix(file)
            name = self.job.label(file.name[: len(file.name) - len(suffix)]) + suffix
        return PurePosixPath(*folders, _relabelled(name, entities, self.job) if entities else name)


def _relabelled(part: str, entities: str, job: ScrubJob) -> str:
    """A label for a part of a path, or for the entities in it."""

    def treated(match: re.Match[str]) -> str:
        value = match[str(match.lastgroup)]
        treat = job.label if match.lastgroup == "label" else job.word
        return match[0].removesuffix(value) + treat(value)

    return re.sub(entities, treated, part) if entities else job.label(part)


def _by_pattern(file: Path, pattern: str, root: Path, job: ScrubJob) -> str:
    """The new name of a file in whose name readers find people and stimuli; empty without."""
    if not pattern or not fits(pattern, file, root):
        return ""
    found = NamingOptions(pattern=pattern).names(file, root)
    base = pattern.rpartition(".")[0]
    base = re.sub(r"\{(\w+)\}", lambda field: job.label(getattr(found, field[1])), base)
    return base + _suffix(file)


def _suffix(file: Path) -> str:
    """Suffix of a text format, in lower case; empty for another."""
    match = _SUFFIX.search(file.name)
    return match[0].lower() if match is not None else ""


def _without_comments(file: Path, comment: str) -> Iterator[str]:
    yield from (line for line in lines_of(file) if not (comment and line.startswith(comment)))


def _rule_of(scrub: Scrub, file: Path) -> tuple[Rule | None, re.Match[str] | None]:
    """The rule for a file of a folder, by its name."""
    name = Head(file, b"").name
    found = ((rule, re.fullmatch(pattern, name)) for pattern, rule in scrub.files.items())
    return next(((rule, match) for rule, match in found if match is not None), (None, None))


def _shares(rule: Rule) -> bool:
    """Whether a file shares its clock with those beside it."""
    return rule.one_clock if isinstance(rule, TableRules) else isinstance(rule, DocumentRules)


def _left_out(file: Path) -> LeftOut:
    """Why a file of no format that is copied is not."""
    name = Head(file, b"").name
    form = next((get(n) for suffix, n in _FORMATS.items() if name.endswith(suffix)), None)
    if form is not None and form.scrub is not None:
        return LeftOut(file, form.scrub.instead, is_way_out=True)
    why = next((why for suffix, why in _BY_SUFFIX if re.search(suffix, name)), "")
    return LeftOut(file, why or _UNKNOWN, is_way_out=bool(why))
