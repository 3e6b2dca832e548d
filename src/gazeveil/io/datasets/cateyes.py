"""cateyes: example recordings of a VR tracker in spherical angles, about 120 Hz.

`<person>.csv[.gz]` with `Timestamp` (s), `Theta`, `Phi` (radians right of and above straight
ahead): the file name is the person, the folder the stimulus. Gaze is put on a Sphere around the
head with x_deg = 180 + theta and y_deg = 90 - phi. `<name>_events.csv` beside `<name>_data.csv`
(`Timestamp`, `Name`) gives the messages; so does a column `Event_Name`, at each row where it
changes. The clock of the example goes back after the first row: such rows are kept and marked
invalid.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.datasets.layout import columns, folder_name
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.table import read_table
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head, stem


def sniff(head: Head) -> bool:
    """A CSV file with a time and two spherical angles."""
    return {"timestamp", "theta", "phi"} <= columns(head)


def scan(path: Path, root: Path) -> Iterable[Handle]:
    """One recording per file."""
    person, stimulus = stem(path), folder_name(path)
    return [Handle(person, stimulus, partial(load, path, person, stimulus), source=str(path))]


def load(path: Path, person: str, stimulus: str) -> Recording:
    """One file as a recording."""
    table = read_table(path, ",")
    t_ns = table.times_ns("Timestamp", "s")
    messages = _messages(path)
    if table.has("Event_Name"):
        names = np.array(table.words("Event_Name"), dtype=object)
        starts = np.flatnonzero(
            np.concatenate((np.ones(min(1, len(names)), dtype=np.bool_), names[1:] != names[:-1]))
        )
        messages += tuple(Message(int(t_ns[i]), str(names[i])) for i in starts if names[i])
    return assemble(
        path,
        person=person,
        stimulus=stimulus,
        t_ns=t_ns,
        space=Sphere(),
        x_deg=180.0 + np.degrees(table.floats("Theta")),
        y_deg=90.0 - np.degrees(table.floats("Phi")),
        messages=messages,
    )


def _messages(path: Path) -> tuple[Message, ...]:
    name = stem(path)
    if not name.endswith("_data"):
        return ()
    base = name.removesuffix("_data") + "_events.csv"
    place = next(
        (p for p in (path.with_name(base), path.with_name(base + ".gz")) if p.is_file()), None
    )
    if place is None:
        return ()
    table = read_table(place, ",")
    return tuple(
        Message(int(t), text)
        for t, text in zip(table.times_ns("Timestamp", "s"), table.words("Name"), strict=True)
    )


FORMAT = Format(
    "cateyes",
    "cateyes examples: spherical angles (CSV)",
    sniff,
    scan,
    dataset=Dataset(
        title="cateyes examples",
        publisher="Gütlin, github.com/DiGyt/cateyes",
        licence="BSD-3-Clause",
        citation="Gütlin 2021, CatEyes (software), version 0.0.3",
        layout="<person>.csv[.gz], <name>_events.csv beside <name>_data.csv",
    ),
)
