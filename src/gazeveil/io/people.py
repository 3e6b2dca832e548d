"""A table of people: age, gender and whatever else is known, one row each.

CSV, TSV or semicolons; the people's column is `person`, `participant_id` (as BIDS has it),
`participant`, `subject` or `id`. Cells that say nothing (`n/a`, empty) are left out, numbers become
numbers, everything else stays text.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.io.parsing.table import MISSING, key, listed, open_sheet
from gazeveil.registry import number_or_text

_PERSON = (
    "person",
    "participant_id",
    "participant",
    "subject_id",
    "subject",
    "user_id",
    "user",
    "observer",
    "id",
)


def read_people(path: Path) -> dict[str, dict[str, object]]:
    """Person -> attributes.

    Raises
    ------
    FormatError
        Without a column that names people, or where one person has two rows.
    """
    table = open_sheet(path, comment="#")
    names = {key(n): n for n in reversed(table.names)}
    column = next((names[key(p)] for p in _PERSON if key(p) in names), None)
    if column is None:
        raise FormatError(
            path,
            f"no column names the people (columns: {listed(table.names)})",
            "Call one 'person' or 'participant_id'.",
            1,
        )
    people: dict[str, dict[str, object]] = {}
    for row, record in enumerate(table.frame.iter_rows(named=True)):
        person = (record[column] or "").strip()
        if not person:
            raise FormatError(
                path,
                "a row does not say whose it is",
                "Fill in the person or remove the line.",
                table.line_of(row),
            )
        if person in people:
            raise FormatError(
                path, f"person '{person}' has two rows", "Remove one of them.", table.line_of(row)
            )
        cells = {n: (c or "").strip() for n, c in record.items() if n != column}
        people[person] = {
            n.strip(): number_or_text(c) for n, c in cells.items() if c.lower() not in MISSING
        }
    return people


def people_suffix(path: Path) -> str:
    """`.csv` or `.tsv`; any other suffix is a FormatError."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".tsv"):
        raise FormatError(
            path, f"a table of people cannot be a '{path.suffix}' file", "Use .csv or .tsv."
        )
    return suffix


def write_people(people: Mapping[str, Mapping[str, object]], path: Path) -> Path:
    """Write attributes of people as CSV, or TSV where the suffix says so.

    Raises
    ------
    FormatError
        For a suffix that is neither.
    """
    separator = "\t" if people_suffix(path) == ".tsv" else ","
    names = list(dict.fromkeys(name for attributes in people.values() for name in attributes))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, ["person", *names], delimiter=separator)
        table.writeheader()
        table.writerows({"person": person, **people[person]} for person in people)
    return path
