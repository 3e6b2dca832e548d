"""Write a `dataset.toml` for recordings: what was said and guessed, or a form to fill in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gazeveil.errors import DataError, FormatError
from gazeveil.io.dataset_file import FILE_NAME, HEADING, dataset_toml
from gazeveil.io.folder import Found, scan_file, scan_folder
from gazeveil.io.plain.roles import GAZE_ROLES
from gazeveil.io.plain.text import FirstRows
from gazeveil.io.registry import Format, get
from gazeveil.io.source import Head
from gazeveil.io.tables_file import read_people

#: Options of `read` itself that the file keeps.
_COMMON = ("people", "clash", "frame", "stimuli", "confirmed")

_FORM = """\
{heading}
# Not all of it could be guessed: take the # away and fill in.
# {problem}
format = "csv"
# pattern = "{{person}}/{{stimulus}}.csv"   # where the path says who looked at what
# rate_hz = 250                            # where no column has times
# people = "people.csv"                    # a table with a column 'person'

[columns]                                  # columns of {file}:
{columns}
# t = ""
# x = ""
# y = ""

[units]
# time = "ms"                              # s, ms, us, ns, 100ns or frame
# gaze = "px"                              # deg, rad, lonlat, px, px-centred, fraction, equirect

# [screen]                                 # for px, px-centred and fraction
# width_px = 1920
# height_px = 1080
# width_mm = 531
# height_mm = 299
# distance_mm = 650
"""


def write_dataset_file(
    path: str | os.PathLike[str],
    format: str | Format | None = None,  # noqa: A002 - as read has it
    **options: object,
) -> Path:
    """Write the `dataset.toml` of a folder, or of the folder a file lies in; returns its path. The
    arguments are those of :func:`gazeveil.read`.

    Raises
    ------
    DataError
        If there is one already, which a person may have written.
    FormatError
        Where the layout cannot be guessed: a form to fill in is written.
    """
    place = Path(path)
    if not place.exists():
        raise FormatError(place, "there is no such file or folder", "Check the path.")
    root = place if place.is_dir() else place.parent
    target = root / FILE_NAME
    if target.exists():
        raise DataError(f"{target} exists already. Edit it, or remove it to have it written anew.")
    chosen = get(format) if isinstance(format, str) else format
    reading = {k: v for k, v in options.items() if k not in (*_COMMON, "dataset")}
    try:
        found = (scan_folder if place.is_dir() else scan_file)(place, chosen, reading)
    except FormatError as error:
        if not _write_form(place, target, error):
            raise
        raise FormatError(
            target, f"a form to fill in was written ({error.problem})", "Fill it in and try again."
        ) from error
    common = {k: v for k, v in options.items() if k in _COMMON}
    target.write_text(_text(found, root, common), encoding="utf-8")
    return target


def _text(found: Found, root: Path, common: Mapping[str, object]) -> str:
    options = {k: v for k, v in {**common, **found.options}.items() if k != "guessed"}
    notes = list(found.guesses)
    files = [Path(h.source) for h in found.handles if h.source]
    for doubt in found.doubts:
        # Patterns stay comments: which of them is right only a person can say.
        notes += [doubt.sentence] + doubt.remedy.splitlines() * (doubt.topic == "person")
    if found.format.describe is not None and files:
        described = found.format.describe(files[0], options)
        options["columns"] = _columns(described, options.get("columns"))
        options.setdefault("y_axis", described["y_axis"])
    if "people" not in options and (table := _people_table(found)) is not None:
        options["people"] = table.relative_to(root).as_posix()
        notes.append(f"{options['people']} names some of the people: it is taken for their table.")
    return dataset_toml(found.format.name, options, tuple(notes))


def _columns(described: Mapping[str, object], said: object) -> dict[str, object]:
    """The columns that every file must have, by name: time, gaze, and what was said."""
    found = described.get("columns")
    roles = {str(k): v for k, v in found.items()} if isinstance(found, Mapping) else {}
    gaze = ("x", "y") if {"x", "y"} <= roles.keys() else GAZE_ROLES
    return {
        **{r: roles[r] for r in ("t", *gaze) if r in roles},
        **(dict(said) if isinstance(said, Mapping) else {}),
    }


def _people_table(found: Found) -> Path | None:
    """A table of people among the files that are no recordings; None where there is none."""
    recorded = {h.person for h in found.handles} | found.names
    for skipped in found.skipped:
        path = Path(skipped.path)
        if path.suffix.lower() not in (".csv", ".tsv") or not path.is_file():
            continue
        try:
            people = read_people(path)
        except FormatError:
            continue
        if recorded & people.keys():
            return path
    return None


def _write_form(place: Path, target: Path, error: FormatError) -> bool:
    """Write a form for the first table of a place; False where there is none."""
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
    first = next((t for p in files if (t := FirstRows.of(Head.of(p), {})).is_headed), None)
    if first is None:
        return False
    columns = "\n".join(f"#   {name}" for name in first.names)
    target.write_text(
        _FORM.format(
            heading=HEADING,
            problem=" ".join(error.problem.split()),
            file=first.path.name,
            columns=columns,
        ),
        encoding="utf-8",
    )
    return True
