"""OSIE: 15 people look at 700 images for 3 s each; fixations with durations, one MATLAB file.

`fixations.mat` holds a cell per image with `img` (the file name, which is the stimulus) and a cell
per person with `fix_x`, `fix_y` (px of the 800 x 600 image) and `fix_duration` (ms). People have no
name in the file: the person is the place in the list, "1" to "15". Only durations are known, so
times are durations added up, and `metadata["times"]` says so.

The publisher gives 57 cm and pictures of about 38.8 x 29.1 degrees that fill the height of a
22-inch screen; from this the Screen is 395 x 296 mm. It is a reading of the paper, not of the file:
`metadata["assumed_geometry"]` is True. `screen=` replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import cumulated_ns, scanpath
from gazeveil.io.parsing.loaded import has_variable, kept, read_variable
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head

SCREEN = Screen(800, 600, 395.0, 296.0, 570.0)

_FIELDS = ("fix_x", "fix_y", "fix_duration")


def sniff(head: Head) -> bool:
    """A MATLAB 5 file with the variable `fixations`."""
    return has_variable(head, "fixations")


def scan(path: Path, root: Path, screen: Screen | None = None) -> Iterator[Handle]:
    """One recording per image and person."""
    for i, (image, people) in enumerate(_images(path)):
        for j in range(len(people)):
            yield Handle(
                str(j + 1),
                image,
                partial(load, path, i, j, screen),
                task="free-viewing",
                source=str(path),
            )


def load(path: Path, image: int, person: int, screen: Screen | None = None) -> Recording:
    """The fixations of one person on one image, both counted from 0."""
    name, people = _images(path)[image]
    x_px, y_px, durations = people[person]
    if not len(x_px) == len(y_px) == len(durations):
        raise FormatError(
            path,
            f"image '{name}', person {person + 1}: fix_x, fix_y and fix_duration have lengths"
            f" {len(x_px)}, {len(y_px)}, {len(durations)}",
            "Copy the file again from the publisher.",
        )
    space = screen or SCREEN
    x_deg, y_deg = space.from_px(x_px, y_px)
    onset, offset = cumulated_ns(durations)
    return scanpath(
        path,
        person=str(person + 1),
        stimulus=name,
        task="free-viewing",
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        onset_ns=onset,
        offset_ns=offset,
        source="osie",
        metadata={"times": "durations added up", "assumed_geometry": screen is None},
    )


@kept(2)
def _images(path: Path) -> list[tuple[str, list[tuple[Floats, ...]]]]:
    fixations = read_variable(path, "fixations", "Check that this is OSIE's fixations.mat.")
    images = []
    for i, entry in enumerate(np.atleast_1d(fixations)):
        if not hasattr(entry, "img") or not hasattr(entry, "subjects"):
            raise FormatError(
                path,
                f"entry {i + 1} has no 'img' and 'subjects'",
                "Check that this is OSIE's fixations.mat.",
            )
        people = []
        for gaze in np.atleast_1d(entry.subjects):
            if not all(hasattr(gaze, n) for n in _FIELDS):
                raise FormatError(
                    path,
                    f"entry {i + 1} has a person without {', '.join(_FIELDS)}",
                    "Check that this is OSIE's fixations.mat.",
                )
            people.append(
                tuple(np.atleast_1d(getattr(gaze, n)).astype(np.float64).ravel() for n in _FIELDS)
            )
        images.append((str(entry.img), people))
    return images


FORMAT = Format(
    "osie",
    "OSIE fixations (MATLAB)",
    sniff,
    scan,
    frozenset({"screen"}),
    dataset=Dataset(
        title="OSIE",
        publisher=(
            "Xu, Jiang, Wang, Kankanhalli, Zhao (NUS),"
            " github.com/NUS-VIP/predicting-human-gaze-beyond-pixels"
        ),
        licence="MIT",
        citation="Xu et al. 2014, Predicting human gaze beyond pixels, Journal of Vision 14(1):28",
        layout="fixations.mat",
    ),
)
