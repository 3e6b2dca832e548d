"""Rules by which files of a format are copied without identifiers; each format declares its own.

Rules are values: columns, keys and lines that stay, are shifted in time, get a label or go. What no
rule names goes. :mod:`gazeveil.release.scrub` walks over files and applies them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from gazeveil.io.source import key

_BRACKETS = re.compile(r"[\[(][^\])]*[\])]")


def bare(name: str) -> str:
    """A column name's key without what stands in brackets."""
    return key(_BRACKETS.sub("", name))


@dataclass(frozen=True)
class TableRules:
    """What happens to the columns of a table; each pattern fits the whole :func:`bare` name.

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
    group : str
        Columns that tell recordings of one table apart: each has a clock that begins at zero.
    words : frozenset of str
        Words that may stay, in lower case.
    missing : str
        What stands for a value that is taken out.
    quoted : bool
        Whether cells may be quoted where the separator is not a comma.
    one_clock : bool
        Whether all times count by one clock, also those of files beside the table.
    whole : bool
        Whether columns that no pattern fits stay in place, emptied.
    """

    keep: str
    shift: str = ""
    label: str = ""
    event: str = ""
    midpoint: str = ""
    group: str = ""
    words: frozenset[str] = frozenset()
    missing: str = ""
    quoted: bool = False
    one_clock: bool = False
    whole: bool = False

    def action(self, name: str) -> str | None:
        """Name of the field whose pattern a column fits; None where it goes."""
        plain = bare(name)
        names = ("shift", "label", "event", "midpoint", "keep")
        found = (n for n in names if plain and re.fullmatch(getattr(self, n), plain))
        return next(found, "empty" if self.whole else None)


@dataclass(frozen=True)
class LineRules:
    """What happens to lines: the first pattern that fits a whole line decides.

    Groups called `shift`, `label`, `message` and `events` (with or without a number) are treated as
    their name says; the rest of the line stays, or `template` takes its place, with the groups by
    name. A line that no pattern fits goes.

    Parameters
    ----------
    rules : sequence of (pattern, template)
        An empty template keeps the line, None drops it.
    table : TableRules, optional
        For the lines behind the one that `begins` fits, unless a pattern fits them.
    begins : str
        The line of column names, or the last before the rows where `Scrub.names` gives them.
    """

    rules: Sequence[tuple[str, str | None]]
    table: TableRules | None = None
    begins: str = ""

    @cached_property
    def compiled(self) -> list[tuple[Callable[[str], re.Match[str] | None], str | None]]:
        """The rules, each pattern as a function that fits a whole line."""
        return [(re.compile(pattern).fullmatch, template) for pattern, template in self.rules]


@dataclass(frozen=True)
class DocumentRules:
    """What happens to the keys of a JSON document.

    Parameters
    ----------
    keys : mapping of str to treatment
        `keep` (numbers and harmless words), `numbers`, `label`, `shift`, `removed` (writes that
        word), `zero`, a set of words that may stay, or a mapping for an object; the key `*` stands
        for all other objects.
    lines : bool
        Whether each line is a document.
    need : tuple of str
        Keys without which a line goes.
    constants : mapping
        Entries that are written anew.
    """

    keys: Mapping[str, object]
    lines: bool = False
    need: tuple[str, ...] = ()
    constants: Mapping[str, object] = field(default_factory=dict)


Rule: TypeAlias = TableRules | LineRules | DocumentRules


@dataclass(frozen=True)
class Scrub:
    """How files of a format are copied.

    Parameters
    ----------
    rule : TableRules, LineRules or DocumentRules, optional
        For a file that is one recording, or several, by itself.
    files : mapping of pattern to rule
        For files of a folder that the format owns, by lower-case name without `.gz`. A group in the
        pattern is a part of the name that gets a label.
    anywhere : mapping of str to rule
        For files of such a name wherever they lie: they stand beside recordings.
    names : callable
        `names(file, root) -> column names` of a table that has no line of them; None of another.
    pattern : str
        How readers find people and stimuli in the path: its fields get labels of their own.
    entities : str
        Pattern of the parts of path names that get a label (group `label`) or stay where they are
        harmless (group `word`); without it every part gets one.
    aside : frozenset of str
        Folders below one that the format owns of which nothing is copied.
    run : str
        What is taken off the name of a file that shares its clock with those of the same rest.
    columns : mapping of role to name, optional
        For tables of the plain reader, of which the columns stay that have a role: how they are
        called in the copy where that is not their own name.
    instead : str
        Why files are not copied, and what to do instead.
    """

    rule: Rule | None = None
    files: Mapping[str, Rule] = field(default_factory=dict)
    anywhere: Mapping[str, Rule] = field(default_factory=dict)
    names: Callable[[Path, Path], Sequence[str] | None] = lambda file, root: None
    pattern: str = ""
    entities: str = ""
    aside: frozenset[str] = frozenset()
    run: str = ".*"
    columns: Mapping[str, str] | None = None
    instead: str = ""


_AS_CSV = "read it, write it with `Cohort.write` or as CSV, and scrub that, or use `publish`"
#: Formats whose files are not copied.
PUBLISHED = Scrub(instead="it is of a public dataset, which is published already: cite it")
NUMPY = Scrub(instead=f"NumPy files are binary: {_AS_CSV}")
MATLAB = Scrub(instead=f"MATLAB files are binary: {_AS_CSV}")
