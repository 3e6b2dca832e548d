"""Tables of known layout: formats that a shipped `dataset.toml` describes.

Each `<format>.toml` beside this module has the keys of :mod:`gazeveil.io.dataset_file` and
`title`, `match` (columns that a file must have) or `magic` (its first bytes), optionally `table` (a
reader of :mod:`gazeveil.io.plain.text`), `usual_pattern` (of paths that fit it), `fixations` (names
of files that have the same columns and hold no samples) and `[dataset]` (a public dataset's
publisher, licence and citation). What a user says goes before it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path
from typing import Any

from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Doubt
from gazeveil.io.dataset_file import described
from gazeveil.io.parsing.naming import fits
from gazeveil.io.plain import reader
from gazeveil.io.plain.layout import chosen_columns
from gazeveil.io.plain.roles import spellings, squeezed
from gazeveil.io.registry import PUBLISHED, Dataset, Format, Guess, Scrub
from gazeveil.io.source import Head

_OWN = ("title", "match", "magic", "table", "usual_pattern", "fixations", "dataset")


def __getattr__(name: str) -> Format:
    """The format of a name."""
    table = known_table(name)
    own = table.own
    return Format(
        name,
        own["title"],
        table.sniff,
        table.scan,
        reader.FORMAT.options,
        dataset=Dataset(**own["dataset"]) if "dataset" in own else None,
        complete=table.complete,
        describe=table.describe,
        doubts=table.doubts,
        scrub=table.scrub,
    )


def known_table(name: str) -> KnownTable:
    """The shipped description of a name."""
    file = resources.files(__name__) / f"{name}.toml"
    if not file.is_file():
        raise AttributeError(name)
    content = tomllib.loads(file.read_text("utf-8"))
    own = {k: content.pop(k) for k in _OWN if k in content}
    options = described(Path(f"{name}.toml"), content).options
    return KnownTable(own, {**options, **({"table": own["table"]} if "table" in own else {})})


@dataclass(frozen=True)
class KnownTable:
    """A shipped description: its own keys, and options of the plain reader."""

    own: Mapping[str, Any]
    options: Mapping[str, object]

    @property
    def screen(self) -> Screen:
        """The screen that the description has."""
        screen = self.options["screen"]
        assert isinstance(screen, Screen)
        return screen

    @property
    def scrub(self) -> Scrub:
        """Rules for copies: columns that have a role stay, under the names of the description."""
        if "dataset" in self.own:
            return PUBLISHED
        if {"table", "rows"} & self.options.keys():
            return Scrub(instead="it is no plain table: export its tables as text and scrub these")
        columns = chosen_columns(self.options, "optional") | chosen_columns(self.options)
        return Scrub(columns=columns, pattern=self.own.get("usual_pattern", ""))

    def sniff(self, head: Head) -> bool:
        """Whether a file has the columns, or the first bytes, of the description."""
        if "magic" in self.own:
            return head.data.startswith(self.own["magic"].encode("latin-1"))
        wanted = {squeezed(c) for c in self.own["match"]}
        return wanted <= spellings(head.cells).keys() and not self._holds_fixations(head.path)

    def scan(self, path: Path, root: Path, **options: object) -> Iterable[Handle]:
        """Recordings of a file."""
        if self._holds_fixations(path):
            raise FormatError(path, "it holds fixations, not samples", "Read the file of samples.")
        pattern = self.own.get("usual_pattern")
        if pattern is not None and "pattern" not in options and fits(pattern, path, root):
            guessed = ("pattern", *options.get("guessed", ()))  # type: ignore[misc]
            options |= {"pattern": pattern, "guessed": guessed}
        return reader.scan(path, root, **self._with(options))

    def complete(self, files: Sequence[Path], options: Mapping[str, object]) -> Guess:
        """Options that the description leaves open."""
        return reader.complete(files, self._with(options))

    def describe(self, path: Path, options: Mapping[str, object]) -> dict[str, object]:
        """Columns and units of a file."""
        return reader.describe(path, self._with(options))

    def doubts(self, path: Path, options: Mapping[str, object]) -> list[Doubt]:
        """Doubts about a file."""
        return reader.doubts(path, self._with(options))

    def _holds_fixations(self, path: Path) -> bool:
        name = path.name.lower().removesuffix(".gz")
        return fnmatch(name, self.own.get("fixations", ""))

    def _with(self, options: Mapping[str, object]) -> dict[str, object]:
        """The options of the description, under those that were named."""
        columns = {**chosen_columns(self.options), **chosen_columns(options)}
        return {**self.options, **options, **({"columns": columns} if columns else {})}
