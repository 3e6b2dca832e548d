"""Formats of text: CSV, ARFF and BIDS.

`--to csv`: text that every program reads, with a dictionary of its columns.

::

    recordings/000001.csv ...   t_s, x_deg, y_deg, valid, and what was kept
    recordings/000001.events.csv, 000001.messages.csv   where events or messages were kept
    recordings.csv              file, person, stimulus, session, task, samples, rate, screen
    people.csv                  what is published about people, where anything is
    data_dictionary.json        every file and column, for programs
    DATA.md                     the same for people
    dataset.toml                how Gazeveil reads the folder

Numbers have as many digits as bring the same number back.

ARFF files: times in microseconds and pixels of the screen, whose geometry stands in the header.

`<person>/<stimulus>.arff`, or as GazeCom has them `<stimulus>/<person>_<stimulus>.arff`, with a
column for the final label that says 0, unknown.

`--to bids`: a derivative dataset of BIDS 1.11, with the promise in its description.

The files of a recording are those of :mod:`gazeveil.io.bids.write`. Labels are the published names
where these are letters and digits, else what is left of them and six digits of their hash, so that
recordings need not know of one another. `.bidsignore` names the certificate, which BIDS does not
know.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gazeveil import __version__
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import SCREEN_SIZES, Screen
from gazeveil.gaze.recording import KEY_NAMES, Recording
from gazeveil.io.bids.write import VERSION, write_json, write_participants, write_run
from gazeveil.io.known import FILE_NAME, dataset_toml
from gazeveil.io.tables_file import GazeTable, write_people
from gazeveil.pages import render

if TYPE_CHECKING:
    from gazeveil.privacy.publication.certificate import Description
    from gazeveil.privacy.publication.outputs import PublicPeople, Row


INDEX, PEOPLE, DICTIONARY, PAGE = "recordings.csv", "people.csv", "data_dictionary.json", "DATA.md"

_TEMPLATE = "privacy/publication/outputs/DATA.md.jinja"

_INDEX_COLUMNS: Mapping[str, tuple[str, str]] = {
    "file": ("the file of the recording", ""),
    "person": ("pseudonym of who looked", ""),
    "stimulus": ("what was looked at", ""),
    "session": ("number of the session, in no order", ""),
    "task": ("what the person was asked to do; empty where nothing is known", ""),
    "samples": ("rows of the file", ""),
    "rate_hz": ("samples per second", "Hz"),
    "space": ("screen, or sphere for directions around the head", ""),
    "width_px": ("width of the screen", "px"),
    "height_px": ("height of the screen", "px"),
    "width_mm": ("width of the screen", "mm"),
    "height_mm": ("height of the screen", "mm"),
    "distance_mm": ("distance of the eye from the centre of the screen", "mm"),
}
_EVENTS = {
    "kind": ("kind of the event", ""),
    "onset": ("first row of the event, from 0", ""),
    "offset": ("last row of the event, from 0", ""),
    "onset_s": ("time of the first row", "s"),
    "offset_s": ("time of the last row", "s"),
}
_MESSAGES = {"t_s": ("time of the message", "s"), "text": ("what the experiment wrote", "")}


class CsvOutput:
    """One CSV file for each recording, an index, the people and a dictionary; with the columns and
    units of the input, where its options are given.
    """

    name = "csv"

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        self.table = GazeTable() if options is None else GazeTable.of(options)

    def write_recording(self, folder: Path, number: int, recording: Recording) -> dict[str, object]:
        """See :class:`~gazeveil.privacy.publication.outputs.Output`."""
        file = f"recordings/{number:06d}.csv"
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        columns = self.table.write(recording, folder / file)
        _write_events(recording, folder / f"recordings/{number:06d}.events.csv")
        _write_messages(recording, folder / f"recordings/{number:06d}.messages.csv")
        keys = dict(zip(KEY_NAMES, recording.key, strict=True))
        space = recording.space
        on_screen = isinstance(space, Screen)
        return {
            "file": file,
            **keys,
            "samples": len(recording),
            "rate_hz": recording.rate_hz if recording.rate_hz > 0 else None,
            "space": "screen" if on_screen else "sphere",
            **{n: getattr(space, n) if on_screen else None for n in SCREEN_SIZES},
            "columns": columns,
            "events": recording.events is not None,
            "messages": bool(recording.messages),
        }

    def finish(
        self, folder: Path, rows: Sequence[Row], people: PublicPeople, description: Description
    ) -> None:
        """See :class:`~gazeveil.privacy.publication.outputs.Output`."""
        with (folder / INDEX).open("w", encoding="utf-8", newline="") as file:
            index = csv.DictWriter(file, list(_INDEX_COLUMNS), extrasaction="ignore")
            index.writeheader()
            index.writerows(_plain(row) for row in rows)
        options = {"index": INDEX, **self.table.options()}
        if any(people.values()):
            write_people(people, folder / PEOPLE)
            options["people"] = PEOPLE
        dictionary = self._dictionary(rows, people)
        (folder / DICTIONARY).write_text(
            json.dumps(dictionary, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        page = render(_TEMPLATE, contents=description.contents, **dictionary)
        (folder / PAGE).write_text(page, encoding="utf-8")
        (folder / FILE_NAME).write_text(dataset_toml("csv", options, ()), encoding="utf-8")

    def _dictionary(self, rows: Sequence[Row], people: PublicPeople) -> dict[str, object]:
        """File -> columns -> description and unit."""
        gaze: dict[str, object] = {}
        for row in rows:
            columns = row["columns"]
            assert isinstance(columns, Mapping)
            gaze |= columns
        attributes = dict.fromkeys(n for a in people.values() for n in a)
        files: dict[str, object] = {"recordings/*.csv": gaze, INDEX: _described(_INDEX_COLUMNS)}
        if attributes:
            words = {n: (f"{n} of the person", "") for n in attributes}
            files[PEOPLE] = _described({"person": ("pseudonym, as in recordings.csv", ""), **words})
        if any(row["events"] for row in rows):
            files["recordings/*.events.csv"] = _described(_EVENTS)
        if any(row["messages"] for row in rows):
            files["recordings/*.messages.csv"] = _described(_MESSAGES)
        return {
            "separator": self.table.separator,
            "encoding": "UTF-8",
            "missing": "" if self.table.missing is None else self.table.missing,
            "files": files,
        }


def _described(columns: Mapping[str, tuple[str, str]]) -> dict[str, object]:
    return {n: {"description": words, "unit": unit} for n, (words, unit) in columns.items()}


def _plain(row: Row) -> dict[str, object]:
    """Whole numbers without a point."""
    return {
        k: int(v) if isinstance(v, float) and v.is_integer() else v
        for k, v in row.items()
        if k in _INDEX_COLUMNS
    }


def _write_events(recording: Recording, path: Path) -> None:
    events = recording.events
    if events is None:
        return
    columns = (
        events.kind.tolist(),
        events.onset.tolist(),
        events.offset.tolist(),
        (events.onset_ns / 1e9).tolist(),
        (events.offset_ns / 1e9).tolist(),
    )
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(_EVENTS)
        table.writerows(zip(*columns, strict=True))


def _write_messages(recording: Recording, path: Path) -> None:
    if not recording.messages:
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(_MESSAGES)
        table.writerows((m.t_ns / 1e9, m.text) for m in recording.messages)


_HEADER = """\
@RELATION gaze

%@METADATA width_px {width_px!r}
%@METADATA height_px {height_px!r}
%@METADATA width_mm {width_mm!r}
%@METADATA height_mm {height_mm!r}
%@METADATA distance_mm {distance_mm!r}

@ATTRIBUTE time NUMERIC
@ATTRIBUTE x NUMERIC
@ATTRIBUTE y NUMERIC
@ATTRIBUTE confidence NUMERIC
{more}
@DATA
"""


class ArffOutput:
    """One ARFF file for each recording on a screen; confidence is 1, or 0 where gaze is lost. With
    `gazecom` folders and columns are GazeCom's.
    """

    def __init__(self, gazecom: bool = False) -> None:
        self.name = "gazecom" if gazecom else "arff"
        self._gazecom = gazecom

    def write_recording(self, folder: Path, number: int, recording: Recording) -> dict[str, object]:
        """See :class:`~gazeveil.privacy.publication.outputs.Output`."""
        space = recording.space
        if not isinstance(space, Screen):
            raise DataError(
                "ARFF files are written for recordings on a screen alone. Choose csv, parquet or"
                " bids."
            )
        stimulus, person = _part(recording.stimulus), _part(recording.person)
        extra = "" if recording.session == "1" else f"_{_part(recording.session)}"
        extra += f"_{_part(recording.task)}" if recording.task else ""
        file = f"{person}/{stimulus}{extra}.arff"
        if self._gazecom:
            file = f"{stimulus}{extra}/{person}_{stimulus}{extra}.arff"
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        x_px, y_px = space.to_px(recording.x_deg, recording.y_deg)
        lost = ~recording.valid
        columns = (
            recording.t_ns / 1000,
            np.where(lost, 0.0, x_px),
            np.where(lost, 0.0, y_px),
            recording.valid.astype(np.int64),
        )
        rows = zip(*(c.tolist() for c in columns), strict=True)
        more, label = (
            ("@ATTRIBUTE handlabeller_final NUMERIC\n", ",0") if self._gazecom else ("", "")
        )
        text = "".join(f"{t:.3f},{x!r},{y!r},{c}{label}\n" for t, x, y, c in rows)
        header = _HEADER.format(**vars(space), more=more)
        (folder / file).write_text(header + text, encoding="utf-8")
        return {"file": file}

    def finish(
        self, folder: Path, rows: Sequence[Row], people: PublicPeople, description: Description
    ) -> None:
        """See :class:`~gazeveil.privacy.publication.outputs.Output`."""
        files = [str(row["file"]).lower() for row in rows]
        if len(set(files)) < len(files):
            raise DataError("Two recordings would share an ARFF file. Choose csv, parquet or bids.")
        if any(people.values()):
            write_people(people, folder / "people.csv")


def _part(text: str) -> str:
    """A part of a path."""
    return re.sub(r"[^\w.-]", "-", text).strip(".") or "none"


_README = """\
# Protected gaze recordings

This dataset was made from recordings of people by Gazeveil, so that it can be published. It is a
derivative: the recordings it was made from are not part of it, and the gaze in it is not theirs
sample by sample.

Each recording has its line of sight as `recording-eye3` (cyclopean): `timestamp` in nanoseconds
from its first sample, `x_coordinate` and `y_coordinate` in degrees, `valid`.

`PRIVACY.md` says on one page what is promised to the people in it and what is not; `PRIVACY.json`
says it for programs and lists the hash of every file. `gazeveil verify` checks both.
"""

# Columns of participants.tsv that BIDS gives values of its own; generalised ones get another name.
_RESERVED = frozenset(
    {"age", "sex", "handedness", "species", "strain", "strain_rrid", "name", "participant_id"}
)

#: Letters and digits of a label that are a text's own.
_MOST_LABEL = 36


class BidsOutput:
    """A BIDS derivative."""

    name = "bids"

    def write_recording(self, folder: Path, number: int, recording: Recording) -> dict[str, object]:
        """See :class:`~gazeveil.privacy.publication.outputs.Output`."""
        names = {
            "person": bids_label(recording.person, "person"),
            "session": bids_label(recording.session, "none"),
            "task": bids_label(recording.task, "gaze"),
            "stimulus": bids_label(recording.stimulus, "stimulus"),
        }
        # BIDS has no place for a recording without samples; the person stays in the table.
        file = write_run(recording, folder, **names) if len(recording) else ""
        return {"file": file, "participant": recording.person, **names}

    def finish(
        self, folder: Path, rows: Sequence[Row], people: PublicPeople, description: Description
    ) -> None:
        """See :class:`~gazeveil.privacy.publication.outputs.Output`."""
        _refuse_same_labels(rows)
        write_json(folder / "dataset_description.json", _described_fields(description))
        (folder / "README").write_text(_README, encoding="utf-8")
        (folder / ".bidsignore").write_text("PRIVACY.*\n", encoding="utf-8")
        renamed = {p: {_column(n): v for n, v in a.items()} for p, a in people.items()}
        about = {_column(n): f"{n} of the person" for a in people.values() for n in a}
        rows_of = {bids_label(p, "person"): a for p, a in renamed.items()}
        write_participants(folder, rows_of, about)


def bids_label(text: str, empty: str) -> str:
    """Letters and digits that stand for a text, the same wherever it is met.

    Examples
    --------
    >>> bids_label("p04c1", "person"), bids_label("", "gaze"), bids_label("clip 1", "stimulus")
    ('p04c1', 'gaze', 'clip1x95f954')
    """
    # Four labels make the name of a file, which has at most 255 bytes.
    plain = re.sub(r"[^A-Za-z0-9]", "", text)[:_MOST_LABEL]
    if plain == text:
        return plain or empty
    return f"{plain or empty}x{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _column(name: str) -> str:
    return f"{name}_published" if name.lower() in _RESERVED else name


def _refuse_same_labels(rows: Sequence[Row]) -> None:
    """File systems that forget case would mix two recordings."""
    first: dict[str, str] = {}
    for file in (str(row["file"]) for row in rows if row["file"]):
        if first.setdefault(file.lower(), file) != file:
            raise DataError(
                f"Two files differ in capital letters alone ({first[file.lower()]} and {file})."
                " Rename a stimulus or a task, or choose another format."
            )


def _described_fields(description: Description) -> Mapping[str, object]:
    """The content of `dataset_description.json`."""
    origin = description.origin
    versions = {"Gazeveil": __version__, **origin.versions}
    return {
        "Name": "Protected gaze recordings",
        "BIDSVersion": VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [
            {
                "Name": "Gazeveil",
                "Version": __version__,
                "Description": f"gaze protected by {origin.mechanism}",
            }
        ],
        "Privacy": {
            "Promise": str(description.guarantee),
            "Mechanism": origin.mechanism,
            "Reading": origin.reading,
            "Parameters": dict(origin.parameters),
            "Seeded": origin.seeded,
            "Kept": list(description.kept),
            "Versions": versions,
            "Certificate": "PRIVACY.json",
        },
    }
