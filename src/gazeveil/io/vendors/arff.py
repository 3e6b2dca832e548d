"""ARFF as the eye-movement datasets of Munich write it: `%@METADATA` comments, `@ATTRIBUTE` lines,
then comma-separated rows.

Comment lines may stand anywhere, after `@DATA` too. Columns go by attribute name: `time`
(microseconds), `x`, `y` (pixels), `confidence`, optional `x_head`, `y_head`, `angle_deg_head`;
every further attribute that is nominal, or whose name begins with `handlabeller` or `labeller` or
ends in `label`, is a label column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen, Sphere, eye_in_head
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import WORDS, assemble
from gazeveil.io.parsing.naming import OPTIONS, naming_options
from gazeveil.io.parsing.table import Table, parse_table
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, read_text

#: Integer label codes of the GazeCom hand labels.
CODES = ("undefined", "fixation", "saccade", "pursuit", "noise")

_LABEL = re.compile(r"^(hand)?labeller|label$|^em_type$", re.IGNORECASE)


@dataclass(frozen=True)
class Arff:
    """A parsed file: metadata, nominal attributes, rows."""

    metadata: dict[str, float]
    nominal: frozenset[str]
    table: Table


def parse(path: Path) -> Arff:
    """Parse header and rows.

    Raises
    ------
    FormatError
        Without `@DATA`, without attributes, or for a row that does not fit.
    """
    text = read_text(path)
    data_line = re.search(r"^@DATA\s*$", text, re.IGNORECASE | re.MULTILINE)
    if data_line is None:
        raise FormatError(path, "there is no @DATA line", "The file was cut, or it is not ARFF.")
    header, rows = text[: data_line.start()], text[data_line.end() + 1 :]
    metadata: dict[str, float] = {}
    names: list[str] = []
    nominal: list[str] = []
    for number, line in enumerate(header.split("\n"), start=1):
        tokens = line.split()
        if line.upper().startswith("%@METADATA") and len(tokens) >= 3:
            try:
                metadata[tokens[1]] = float(tokens[2])
            except ValueError:
                continue  # metadata may be any text; only numbers matter here
        elif line.upper().startswith("@ATTRIBUTE"):
            match = re.match(
                r"@ATTRIBUTE\s+(?:'([^']+)'|(\S+))\s+(.+)$", line.strip(), re.IGNORECASE
            )
            if match is None:
                raise FormatError(
                    path, "the @ATTRIBUTE line has no type", "Mend the header.", number
                )
            names.append(match[1] or match[2])
            if match[3].lstrip().startswith("{"):
                nominal.append(names[-1].lower())
    if not names:
        raise FormatError(
            path, "the header has no @ATTRIBUTE line", "The file was cut, or it is not ARFF."
        )
    table = parse_table(
        path, rows, ",", first_line=header.count("\n") + 2, header=names, comment="%"
    )
    return Arff(metadata, frozenset(nominal), table)


def load(
    path: Path,
    person: str,
    stimulus: str,
    screen: Screen | None = None,
    session: str = "1",
    task: str = "",
) -> Recording:
    """One ARFF file as a recording; on a screen where the metadata has one, else on the sphere."""
    arff = parse(path)
    table, meta = arff.table, arff.metadata
    width_px, height_px = meta.get("width_px", 0.0), meta.get("height_px", 0.0)
    has_screen = all(meta.get(k, 0.0) > 0 for k in ("width_mm", "height_mm", "distance_mm"))
    if screen is None and has_screen:
        screen = Screen(
            width_px, height_px, meta["width_mm"], meta["height_mm"], meta["distance_mm"]
        )
    if screen is None and not (width_px > 0 and height_px > 0):
        raise FormatError(
            path,
            "the header does not say how wide and high the picture is",
            "Give screen=Screen(...), or add %@METADATA lines.",
        )
    x_px, y_px = table.floats("x"), table.floats("y")
    confidence = table.floats("confidence") if table.has("confidence") else None
    head = eye = None
    if screen is not None:
        space: Screen | Sphere = screen
        x_deg, y_deg = screen.from_px(x_px, y_px)
    else:
        space = Sphere()
        x_deg, y_deg = 360.0 * x_px / width_px, 180.0 * y_px / height_px
        if table.has("x_head", "y_head"):
            roll = (
                table.floats("angle_deg_head")
                if table.has("angle_deg_head")
                else np.zeros(len(table))
            )
            head = np.stack(
                (
                    np.mod(360.0 * table.floats("x_head") / width_px, 360.0),
                    180.0 * table.floats("y_head") / height_px,
                    roll,
                ),
                axis=1,
            )
            eye = np.stack(eye_in_head(space.vectors(x_deg, y_deg), head), axis=1)
    return assemble(
        path,
        person=person,
        stimulus=stimulus,
        session=session,
        task=task,
        t_ns=table.times_ns("time", unit="us"),
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        # Zero confidence is how these trackers say "no eye here".
        valid=None if confidence is None else confidence > 0,
        head_deg=head,
        eye_in_head_deg=eye,
        confidence=confidence,
        labels={
            n: _texts(arff, n) for n in table.names if n.lower() in arff.nominal or _LABEL.search(n)
        },
        metadata={f"arff_{k}": v for k, v in meta.items()},
    )


def _texts(arff: Arff, name: str) -> Texts:
    """A label column in our words: nominal text, or integer codes."""
    if name.lower() in arff.nominal:
        column = (
            arff.table.column(name)
            .str.strip_chars()
            .str.strip_chars("'\"")
            .str.to_lowercase()
            .fill_null("undefined")
        )
        return column.replace(WORDS).to_numpy().astype(np.str_)
    codes = arff.table.floats(name)
    known = (codes >= 0) & (codes < len(CODES))
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise FormatError(
            arff.table.path,
            f"label {codes[row]:g} in column '{name}' is not one of 0 to 4",
            "Mend the line.",
            arff.table.line_of(row),
        )
    return np.array(CODES)[codes.astype(np.int64)]


def is_arff(head: Head) -> bool:
    """Whether a file is ARFF, by its suffix and its first lines."""
    return head.name.endswith(".arff") and "@relation" in head.text.lower()


def scan(path: Path, root: Path, screen: Screen | None = None, **options: object) -> list[Handle]:
    """One recording per file: the person is the folder, the stimulus the file name, unless said
    otherwise.
    """
    names = naming_options(**options).names(path, root)
    keys = names.person, names.stimulus, screen, names.session, names.task
    return [names.handle(partial(load, path, *keys), path)]


FORMAT = Format(
    "arff", "ARFF with %@METADATA lines", is_arff, scan, frozenset({"screen", *OPTIONS})
)
