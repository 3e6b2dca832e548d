"""Tables of known layout: formats that a shipped `dataset.toml` describes.

Each `<format>.toml` beside this module has the keys of :mod:`gazeveil.io.known` and
`title`, `match` (columns that a file must have) or `magic` (its first bytes), optionally `table` (a
reader of :mod:`gazeveil.io.plain.text`), `usual_pattern` (of paths that fit it), `fixations` (names
of files that have the same columns and hold no samples) and `[dataset]` (a public dataset's
publisher, licence and citation). What a user says goes before it.

`dataset.toml`: how the recordings beside it are laid out, said once for every verb.

::

    format = "csv"
    pattern = "{person}/{stimulus}.csv"
    rate_hz = 250
    people = "people.csv"

    [columns]
    t = "Clock"
    x = "GX"
    y = "GY"

    [units]
    time = "ms"
    gaze = "px"

    [screen]
    width_px = 1280
    height_px = 720
    width_mm = 400
    height_mm = 225
    distance_mm = 450

Every key is optional. Options of a call go before the file. An unknown key is an error, never
ignored. `ignore = ["note"]` names columns that are not to be used, `valid = [0, 1]` the codes
that mean valid in columns of validity; `stimuli = ["clip 1"]` names of stimuli and tasks that may
be published, `confirmed = ["person"]` what was guessed and is right, where a release asks for it
(:mod:`gazeveil.release.stop_sign`); `[optional]` has columns that a file need not have, `[rows]`
the word that a column holds in rows that are samples, `[metadata]` what recordings say of
themselves.

`index = "recordings.csv"` names a table that says whose each file is: columns `file` (relative to
the table), `person` and `stimulus`; `session`, `task`, `rate_hz`, `space` (`screen` or `sphere`)
and the five numbers of a screen where they are known. Files that it does not list are left out.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path
from typing import Any

from gazeveil import checks
from gazeveil.errors import FormatError, ParameterError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import SCREEN_SIZES, Screen
from gazeveil.gaze.recording import KEY_NAMES, Doubt
from gazeveil.io.parsing.naming import fits
from gazeveil.io.plain import reader
from gazeveil.io.plain.layout import chosen_columns
from gazeveil.io.plain.roles import spellings, squeezed
from gazeveil.io.registry import PUBLISHED, Dataset, Format, Guess, Scrub
from gazeveil.io.source import Head, cannot_open

#: Name of the file that is looked for beside the recordings.
FILE_NAME = "dataset.toml"

#: Its first line.
HEADING = (
    "# How the recordings in this folder are laid out; every verb of Gazeveil reads this file."
)

#: Key of `[units]` -> option of the reader.
_UNITS = {"time": "time_unit", "gaze": "unit"}
_UNITS |= {name: name for name in ("x_axis", "y_axis", "missing")}
#: Keys of the file that are options of the reader under the same name.
_SAME = (
    "ignore",
    "valid",
    "pattern",
    "person",
    "stimulus",
    "session",
    "task",
    "rate_hz",
    "space",
    "panorama",
    "separator",
    "decimal",
    "comment",
    "clash",
    "frame",
    "stimuli",
    "confirmed",
)
_PATHS = ("people", "index", "frame_interval_s")
_TABLES = ("columns", "optional", "rows", "metadata")
_KEYS = ("format", *_PATHS, *_TABLES, "units", "screen", "options", *_SAME)


@dataclass(frozen=True)
class DatasetFile:
    """What a `dataset.toml` says: a name from `gazeveil list formats`, and options of
    :func:`gazeveil.read`.
    """

    path: Path
    format: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)


def beside(place: Path) -> Path | None:
    """The `dataset.toml` of a folder, or of the folder a file lies in; None where there is none."""
    path = (place if place.is_dir() else place.parent) / FILE_NAME
    return path if path.is_file() else None


def read_dataset_file(path: Path) -> DatasetFile:
    """Read a `dataset.toml`.

    Raises
    ------
    FormatError
        For text that is not TOML, an unknown key, or a value of the wrong kind.
    """
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise cannot_open(path, error) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(
            path, f"it is not TOML ({error})", "Mend the line; text stands in quotes."
        ) from error
    try:
        return described(path, content)
    except ParameterError as error:
        raise FormatError(path, str(error).rstrip("."), "Mend the file.") from error


def described(path: Path, content: Mapping[str, object]) -> DatasetFile:
    """What the content of a `dataset.toml` at `path` says.

    Raises
    ------
    ParameterError
        For an unknown key, or a value of the wrong kind.
    """
    checks.known_options(FILE_NAME, content, _KEYS)
    options: dict[str, object] = {k: content[k] for k in _SAME if k in content}
    options |= {name: _section(content, name) for name in _TABLES if name in content}
    units = _section(content, "units")
    checks.known_options(f"[units] of {FILE_NAME}", units, _UNITS)
    options |= {_UNITS[k]: v for k, v in units.items()}
    if "screen" in content:
        options |= _screen(_section(content, "screen"))
    for key in _PATHS:
        if key in content:
            value = content[key]
            # A path is relative to the file that names it, wherever the program runs.
            options[key] = str(path.parent / value) if isinstance(value, str) else value
    options |= _section(content, "options")
    name = content.get("format")
    if name is not None and not isinstance(name, str):
        checks.refuse(FILE_NAME, "format", "the name of a format", name)
    return DatasetFile(path, name, options)


def _section(content: Mapping[str, object], name: str) -> dict[str, object]:
    section = content.get(name, {})
    if not isinstance(section, Mapping):
        checks.refuse(FILE_NAME, name, f"a table, as in [{name}]", section)
    return dict(section)


def _screen(section: Mapping[str, object]) -> dict[str, object]:
    checks.known_options(f"[screen] of {FILE_NAME}", section, (*SCREEN_SIZES, "assumed"))
    if not set(SCREEN_SIZES) <= section.keys():
        checks.refuse(
            FILE_NAME, "screen", f"a table with {', '.join(SCREEN_SIZES)}", sorted(section)
        )
    screen = Screen(*(checks.positive(FILE_NAME, k, section[k]) for k in SCREEN_SIZES))
    return {"screen": screen, **({"assumed": True} if section.get("assumed") else {})}


def dataset_toml(format_name: str, options: Mapping[str, object], notes: tuple[str, ...]) -> str:
    """The text of a `dataset.toml`. An option is a Screen, a mapping, a list, a number or a text;
    notes stand above as comments: what was guessed, and what should be checked.
    """
    lines = [
        HEADING,
        *(f"# {line}" for note in notes for line in note.splitlines()),
        f"format = {_value(format_name)}",
        *option_lines(options),
    ]
    return "\n".join(lines) + "\n"


def option_lines(options: Mapping[str, object]) -> list[str]:
    """The lines of a `dataset.toml` that say these options of :func:`gazeveil.read`."""
    lines = [f"{k} = {_value(options[k])}" for k in ("people", "index", *_SAME) if k in options]
    interval = options.get("frame_interval_s")
    if interval is not None and not isinstance(interval, Mapping):
        lines.append(f"frame_interval_s = {_value(interval)}")
    sections: dict[str, Mapping[str, object]] = {
        **{name: _mapping(options.get(name)) for name in _TABLES},
        "units": {k: options[o] for k, o in _UNITS.items() if o in options},
        "screen": _screen_out(options),
        "frame_interval_s": _mapping(interval),
        "options": {
            k: v
            for k, v in options.items()
            if k not in (*_KEYS, *_UNITS.values(), "assumed", "screen")
        },
    }
    for name, section in sections.items():
        if section:
            lines += ["", f"[{name}]", *(f"{_key(k)} = {_value(v)}" for k, v in section.items())]
    return lines


def _mapping(value: object) -> Mapping[str, object]:
    return {str(k): v for k, v in value.items()} if isinstance(value, Mapping) else {}


def _screen_out(options: Mapping[str, object]) -> dict[str, object]:
    screen = options.get("screen")
    if not isinstance(screen, Screen):
        return {}
    assumed = {"assumed": True} if options.get("assumed") else {}
    return {**{k: getattr(screen, k) for k in SCREEN_SIZES}, **assumed}


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _value(name)


def _value(value: object) -> str:
    """A value as TOML writes it; JSON's texts are TOML's basic strings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(k))} = {_value(v)}" for k, v in value.items()) + "}"
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_index(path: Path) -> dict[Path, dict[str, object]]:
    """File -> options of the reader that are its own.

    Raises
    ------
    FormatError
        Without the columns file, person and stimulus, for a file that is listed twice, is not
        there or lies outside the folder, or for a number that is none.
    """
    # Only here: tables need polars, which other formats do without.
    from gazeveil.io.parsing.table import open_sheet

    table = open_sheet(path, comment="")
    missing = [n for n in ("file", "person", "stimulus") if not table.has(n)]
    if missing:
        raise FormatError(
            path,
            f"there is no column '{missing[0]}' (columns: {', '.join(table.names)})",
            "An index has file, person and stimulus.",
            1,
        )
    known = (*KEY_NAMES, "rate_hz", "space", *SCREEN_SIZES)
    cells = {n: table.words(n) for n in known if table.has(n)}
    root = path.parent.resolve()
    result: dict[Path, dict[str, object]] = {}
    for row, name in enumerate(table.words("file")):
        file = path.parent / name
        line = table.line_of(row)
        if root not in file.resolve().parents:
            raise FormatError(path, f"'{name}' lies outside the folder", "Mend the line.", line)
        if not file.is_file():
            raise FormatError(path, f"there is no file '{name}'", "Mend the line.", line)
        if file in result:
            raise FormatError(path, f"'{name}' is listed twice", "Remove one line.", line)
        result[file] = _options({n: c[row] for n, c in cells.items()}, path, line)
    return result


def _options(cells: Mapping[str, str], path: Path, line: int) -> dict[str, object]:
    options: dict[str, object] = {n: cells[n] for n in KEY_NAMES if cells.get(n)}
    try:
        if cells.get("rate_hz"):
            options["rate_hz"] = float(cells["rate_hz"])
        if all(cells.get(n) for n in SCREEN_SIZES):
            options["screen"] = Screen(*(float(cells[n]) for n in SCREEN_SIZES))
        elif cells.get("space"):
            options["space"] = cells["space"]
    except ValueError as error:
        raise FormatError(path, "a number of this line is none", "Mend the line.", line) from error
    return options


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
