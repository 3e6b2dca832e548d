"""HMR: pupil places of people with a head-mounted tracker, every sample labelled; Pupil Labs, 200
Hz.

`<person>/eye_0.csv[.gz]`, separated by tabs: `X_coord`, `Y_coord` (0..1 of the eye camera's image),
`Confidence`, `Pattern` (F fixation, S saccade, P pursuit, B blink), kept in `labels["pattern"]`.
The folder is the person, the file name the stimulus. There is no time column: rows are 5 ms apart.
Confidence 0 is not valid.

This is the pupil in the eye image, not calibrated gaze. It is put on the nominal Screen of
:mod:`gazeveil.io.datasets.mpiidpeye`, on which the whole eye image is 80 degrees wide and high:
speeds have the right order, places mean nothing. `metadata["calibrated"]` is False.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.recording import Recording
from gazeveil.io.datasets.layout import columns, folder_name
from gazeveil.io.datasets.mpiidpeye import EYE_IMAGE
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.table import read_table
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head, stem

#: Our words of the published letters.
PATTERNS = {"F": "fixation", "S": "saccade", "P": "pursuit", "B": "blink", "": "undefined"}

_RATE_HZ = 200.0


def _separator(line: str) -> str:
    return max("\t,;", key=line.count)


def sniff(head: Head) -> bool:
    """A table with pupil places and patterns."""
    return {"x_coord", "y_coord", "confidence", "pattern"} <= columns(head, _separator(head.first))


def scan(path: Path, root: Path) -> Iterable[Handle]:
    """One recording per file."""
    person, stimulus = folder_name(path), stem(path)
    return [Handle(person, stimulus, partial(load, path, person, stimulus), source=str(path))]


def load(path: Path, person: str, stimulus: str) -> Recording:
    """One file as a recording."""
    table = read_table(path, _separator(Head.of(path).first))
    labels = []
    for row, letter in enumerate(table.words("Pattern")):
        label = PATTERNS.get(letter.upper())
        if label is None:
            raise FormatError(
                path,
                f"the pattern '{letter}' is not one of F, S, P, B",
                "Mend the line.",
                table.line_of(row),
            )
        labels.append(label)
    confidence = table.floats("Confidence")
    x_deg, y_deg = EYE_IMAGE.from_px(table.floats("X_coord"), table.floats("Y_coord"))
    return assemble(
        path,
        person=person,
        stimulus=stimulus,
        t_ns=np.arange(len(table), dtype=np.int64) * round(1e9 / _RATE_HZ),
        space=EYE_IMAGE,
        x_deg=x_deg,
        y_deg=y_deg,
        valid=confidence > 0,
        rate_hz=_RATE_HZ,
        confidence=confidence,
        labels={"pattern": labels},
        metadata={"calibrated": False, "times": "rows 5 ms apart; the file has no times"},
    )


FORMAT = Format(
    "hmr",
    "HMR: labelled pupil places (tab-separated, 200 Hz)",
    sniff,
    scan,
    dataset=Dataset(
        title="HMR",
        publisher=(
            "Elmadjian, Gonzales, Costa, Morimoto (University of Sao Paulo),"
            " github.com/elmadjian/OEMC"
        ),
        licence="MIT",
        citation=(
            "Elmadjian et al. 2023, Online eye-movement classification with temporal convolutional"
            " networks, Behavior Research Methods"
        ),
        layout="<person>/eye_0.csv[.gz]",
    ),
)
