"""Plain tables (CSV, TSV, semicolons): the columns that the reader takes, under names it knows.

Plain tables whose columns, units or names a `dataset.toml` says: their copies, and its own.

Columns are called by their roles in the copy, files lie under the labels of their person and
stimulus, and the new `dataset.toml` has units, rate and screen: no name of a column, no pattern and
no other text of the old one stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from gazeveil.errors import FormatError
from gazeveil.gaze.frames import FRAMES
from gazeveil.io.dataset_file import FILE_NAME, beside, dataset_toml, read_dataset_file
from gazeveil.io.parsing.assemble import WORDS
from gazeveil.io.parsing.naming import naming_options
from gazeveil.io.plain.layout import Layout, is_validation, plan_layout
from gazeveil.io.plain.roles import KEY_ROLES, ask_which, flag_role, recognise, split_unit
from gazeveil.io.plain.text import FirstRows
from gazeveil.io.source import Head, find_separator, key, stem
from gazeveil.io.vendors.arff import CODES
from gazeveil.release.inventory.sampling import lines_of
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.tables import (
    NEVER,
    Lines,
    TableRules,
    column_names,
    joined,
    scrubbed_table,
)

_BRACKET = re.compile(r"[\[(]")
_PLAIN = re.compile(r"[A-Za-z0-9 _.\-\[\]()°µμ]*")
_LABEL_WORDS = frozenset([*WORDS, *WORDS.values(), *CODES, "saccade", "blink", "pso"])
# Validation data has targets beside gaze, and is known by their names.
_TARGETS = {"targetid": "target_id", "tarx": "tar_x", "tary": "tar_y"}


def scrubbed_csv(
    lines: Lines, job: ScrubJob, said: Mapping[str, str] | None = None, comment: str = "#"
) -> Iterator[str]:
    """The table with the columns that have a role; comments and every other column go.

    Parameters
    ----------
    lines : callable
        Gives the lines from the beginning, each time it is called.
    job : ScrubJob
        Labels and counts.
    said : mapping of role to column, optional
        Explicit mapping; columns are then called by their roles. Without it, names decide.
    comment : str
        What a line of comment begins with.
    """

    def body() -> Iterator[str]:
        yield from (line for line in lines() if not (comment and line.startswith(comment)))

    names = column_names(body, quoted=True)
    separator = find_separator(next((line for line in body() if line.strip()), ""))
    if not separator:
        raise FormatError("table", "its columns are not separated", "Export with commas.")
    by_name: dict[str, list[str]] = {}
    if said is None:
        ask_which("table", names, recognise(names), {})
    flags = {role: n for n in names if (role := flag_role(n)) is not None}
    for role, name in ({**flags, **recognise(names)} if said is None else said).items():
        by_name.setdefault(name.strip(), []).append(role)
    targets = _TARGETS if said is None and is_validation(names) else {}
    shown, actions = [], {}
    for i, name in enumerate(names):
        roles = by_name.pop(name.strip(), [])
        own = roles[0] if said is not None and roles else ""
        public = targets.get(key(name), "") or own
        public = public or (_public(name, roles[0]) if roles else f"_{i}")
        shown.append(public)
        actions[public] = roles[0] if roles else ("x" if key(name) in targets else "")

    def rows() -> Iterator[str]:
        source = (line for line in body() if line.strip())
        next(source, None)
        yield joined(shown, separator)
        yield from source

    return scrubbed_table(rows, _rules(actions), job)


def _public(name: str, role: str) -> str:
    """A name that holds a role and a unit and nothing else."""
    unit = split_unit(name)[1]
    if _PLAIN.fullmatch(name) and (unit or not _BRACKET.search(name)):
        return name
    return f"{role} [{unit}]" if unit else role


def _rules(actions: dict[str, str]) -> TableRules:
    """Build the rules for columns of these names, by role."""

    def of(*roles: str) -> str:
        return "|".join(key(n) + "$" for n, r in actions.items() if r in roles) or NEVER

    measured = set(actions.values()) - {"t", "label", "", *KEY_ROLES}
    return TableRules(
        keep=of(*measured),
        shift=of("t"),
        label=of(*KEY_ROLES),
        event=of("label"),
        group=of(*KEY_ROLES),
        words=_LABEL_WORDS,
        quoted=True,
    )


#: Options that stay where they are numbers or such words.
_STAY = ("y_axis", "missing", "space", "panorama", "decimal", "rate_hz", "clash", "frame")
_WORDS = frozenset({"up", "down", "screen", "sphere", ".", ",", "error", "session", *FRAMES})


@dataclass(frozen=True)
class DescribedTables:
    """The tables of a folder with a `dataset.toml`.

    Parameters
    ----------
    root : Path
        The folder.
    options : mapping
        What the file says, as options of :func:`gazeveil.read`.
    """

    root: Path
    options: Mapping[str, object]

    @classmethod
    def of(cls, root: Path) -> DescribedTables | None:
        """What the `dataset.toml` of a folder describes; None where it is not there, or about
        another format, or leaves names to an index.

        Raises
        ------
        FormatError
            For one that cannot be read.
        """
        path = beside(root)
        file = None if path is None else read_dataset_file(path)
        if file is None or file.format not in (None, "csv") or "index" in file.options:
            return None
        return cls(root, file.options)

    def layout(self, file: Path) -> Layout | None:
        """How a table is read; None for a file that is no table of gaze."""
        rows = FirstRows.of(Head.of(file), self.options)
        if not rows.is_headed:
            return None
        try:
            return plan_layout(rows, self.options)
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

    def table(self, file: Path, layout: Layout, job: ScrubJob) -> Iterable[str]:
        """The lines of a table's copy."""
        # What the options say goes before what a column says, and stands in the new path.
        roles = {r: name for r, name in layout.columns if r not in self.options}
        return scrubbed_csv(partial(lines_of, file), job, roles, layout.comment)

    def first(self, files: Sequence[Path]) -> Layout | None:
        """How the first table is read: all others must have its units, which one file says."""
        return next((found for f in files if (found := self.layout(f)) is not None), None)

    def description(self, layout: Layout, job: ScrubJob) -> list[str]:
        """The lines of the new `dataset.toml`."""
        options: dict[str, object] = {
            n: self.options[n]
            for n in _STAY
            if n in self.options and _says_nothing(self.options[n])
        }
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
    return isinstance(value, int | float) or value in _WORDS


def same_units(one: Layout, other: Layout) -> bool:
    """Whether one `dataset.toml` can say the units of both."""
    return (one.unit, one.time_unit) == (other.unit, other.time_unit)


def is_description(file: Path) -> bool:
    """Whether a file says how the recordings beside it are laid out."""
    return file.name == FILE_NAME
