"""`--to csv`: text that every program reads, with a dictionary of its columns.

::

    recordings/000001.csv ...   t_s, x_deg, y_deg, valid, and what was kept
    recordings/000001.events.csv, 000001.messages.csv   where events or messages were kept
    recordings.csv              file, person, stimulus, session, task, samples, rate, screen
    people.csv                  what is published about people, where anything is
    data_dictionary.json        every file and column, for programs
    DATA.md                     the same for people
    dataset.toml                how Gazeveil reads the folder

Numbers have as many digits as bring the same number back.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gazeveil.gaze.geometry import SCREEN_SIZES, Screen
from gazeveil.gaze.recording import KEY_NAMES, Recording
from gazeveil.io.dataset_file import FILE_NAME, dataset_toml
from gazeveil.io.gaze_table import GazeTable
from gazeveil.io.tables_file import write_people
from gazeveil.privacy.publication.outputs.output import PublicPeople, Row

if TYPE_CHECKING:
    from gazeveil.privacy.publication.certificate import Description

INDEX, PEOPLE, DICTIONARY, PAGE = "recordings.csv", "people.csv", "data_dictionary.json", "DATA.md"

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
    """One CSV file for each recording, an index, the people and a dictionary."""

    name = "csv"

    def __init__(self, table: GazeTable | None = None) -> None:
        self.table = GazeTable() if table is None else table

    def write_recording(self, folder: Path, number: int, recording: Recording) -> dict[str, object]:
        """See :class:`~gazeveil.privacy.publication.outputs.output.Output`."""
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
        """See :class:`~gazeveil.privacy.publication.outputs.output.Output`."""
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
        (folder / PAGE).write_text(_page(dictionary, description.contents), encoding="utf-8")
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


def _page(dictionary: Mapping[str, object], contents: Mapping[str, object]) -> str:
    """The dictionary as a page."""
    files = dictionary["files"]
    assert isinstance(files, Mapping)
    counts = ", ".join(
        f"{contents[n]} {n}"
        for n in ("people", "stimuli", "recordings", "samples")
        if n in contents
    )
    missing = dictionary["missing"]
    lines = [
        "# What is in this folder",
        "",
        f"{counts}." if counts else "",
        "What is promised to the people in it, and what is not, is in `PRIVACY.md`.",
        "",
        f"Text files are UTF-8 with '{dictionary['separator']}' between cells; where a value is"
        f" lost the cell is {'empty' if missing == '' else f'`{missing}`'}.",
    ]
    for name, columns in files.items():
        lines += ["", f"## `{name}`", "", "| column | what it holds | unit |", "|---|---|---|"]
        lines += [f"| `{c}` | {a['description']} | {a['unit']} |" for c, a in columns.items()]
    return "\n".join(lines) + "\n"
