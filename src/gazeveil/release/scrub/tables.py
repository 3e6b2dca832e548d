"""Tables of the plain reader, by the roles of their columns, and tables of people.

Where a `dataset.toml` says the columns, they are called by their roles in the copy, files lie under
the labels of their person and stimulus, and the new `dataset.toml` has units, rate and screen: no
name of a column, no pattern and no other text of the old one stays.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gazeveil.errors import FormatError
from gazeveil.gaze.frames import FRAMES
from gazeveil.io.dataset_file import beside, dataset_toml, read_dataset_file
from gazeveil.io.parsing.assemble import WORDS
from gazeveil.io.parsing.naming import naming_options
from gazeveil.io.plain.layout import Layout, is_validation, plan_layout
from gazeveil.io.plain.roles import KEY_ROLES, ask_which, flag_role, recognise, split_unit
from gazeveil.io.plain.text import FirstRows
from gazeveil.io.registry import TableRules, bare
from gazeveil.io.source import find_separator, key, stem
from gazeveil.release.scrub.copies import Lines, ScrubJob, copied, joined

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
