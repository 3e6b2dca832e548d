"""Datasets of fixations without samples: OSIE, Interiors, Salient360!.

osie
----
OSIE: 15 people look at 700 images for 3 s each; fixations with durations, one MATLAB file.

`fixations.mat` holds a cell per image with `img` (the file name, which is the stimulus) and a cell
per person with `fix_x`, `fix_y` (px of the 800 x 600 image) and `fix_duration` (ms). People have no
name in the file: the person is the place in the list, "1" to "15". Only durations are known, so
times are durations added up, and `metadata["times"]` says so.

The publisher gives 57 cm and pictures of about 38.8 x 29.1 degrees that fill the height of a
22-inch screen; from this the Screen is 395 x 296 mm. It is a reading of the paper, not of the file:
`metadata["assumed_geometry"]` is True. `screen=` replaces it.

neuroliaa
---------
Interiors (NeuroLIAA): people search a target in 134 pictures of rooms; scanpaths with the
target's box.

`<person>_scanpaths.json[.gz]`: an object of image to scanpath. The person is the `subject` in the
file (the part of the file name before `_scanpaths` where it is missing), the image name the
stimulus, the task `search`. `X`, `Y` are px of the picture (`image_width` x `image_height`), `T`
durations in ms; times are durations added up, and `metadata["times"]` says so.

The publisher joins fixations and cuts scanpaths at the target, but leaves `T` as it was, so `T` may
be longer than `X`. Then the first durations are used, `metadata["durations_matched"]` is False and
`counts["durations without a place"]` has the rest.

`metadata` has `target_box_px` (left, top, right, bottom; the file has top, left, bottom, right),
`target_box_deg` in degrees of the Screen, `target_found`, and `target_object`. The Screen is the
picture on a 19-inch monitor (365 x 274 mm) at 650 mm, which is assumed:
`metadata["assumed_geometry"]` is True. `screen=` replaces it.

salient360
----------
Salient360!: 85 panoramas, 63 observers, 25 s each; published as scanpaths and saliency maps.

A scanpath text has one line per fixation: index, longitude 0..1, latitude 0..1, start time in
seconds, separated by commas or blanks, with or without a header. The index falls back to 0 where
the next observer begins. The stimulus is the file name. Observers are not linked between files, so
the person is `<stimulus>/<number of the observer in the file>`: nothing here can be used to
recognise people across images.

The dataset has one file for each of three things of every image or video: `HE/Scanpaths/L` and
`HE/Scanpaths/R` hold the fixations of the left and the right eye, `H/Scanpaths` the head alone (the
centre of the view, 100 places for each observer, no fixations). They are recordings of their own:
the session is `left`, `right` or `head`, so that none is taken for another, and
`metadata["tracked"]` says it too. Files outside such folders have session 1. Samples are not
published with these; logs of the same experiment are read as `unity-hmd`.

Places are fractions of the equirectangular picture from its upper left corner. Only starts are
published: a fixation is taken to last until the next one begins, the last one has no duration, and
`metadata["times"]` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen, Sphere, wrap_x
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import (
    cumulated_ns,
    has_variable,
    numbers,
    read_json,
    read_variable,
    scanpath,
)
from gazeveil.io.parsing.naming import Names
from gazeveil.io.registry import MATLAB, PUBLISHED, Dataset, Format
from gazeveil.io.source import Head, kept, read_text, stem

SCREEN = Screen(800, 600, 395.0, 296.0, 570.0)

_FIELDS = ("fix_x", "fix_y", "fix_duration")
_NOT_OSIE = "Check that this is OSIE's fixations.mat."
_AGAIN = "Copy the file again from the publisher."


def _on_screen(
    path: Path,
    names: Names,
    px: tuple[Floats, Floats],
    durations_ms: Floats,
    space: Screen,
    source: str,
    left_over: int = 0,
    **metadata: object,
) -> Recording:
    """Fixations in pixels of a screen, of which only the durations are known."""
    x_deg, y_deg = space.from_px(*px)
    onset, offset = cumulated_ns(durations_ms)
    return scanpath(
        path,
        **vars(names),
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        onset_ns=onset,
        offset_ns=offset,
        source=source,
        not_events={"durations without a place": left_over},
        metadata={"times": "durations added up", **metadata},
    )


def _scan_osie(path: Path, root: Path, screen: Screen | None = None) -> Iterator[Handle]:
    """One recording per image and person."""
    for i, (image, people) in enumerate(_images(path)):
        for j in range(len(people)):
            names = Names(str(j + 1), image, task="free-viewing")
            yield names.handle(partial(_load_osie, path, names, i, j, screen), path)


def _load_osie(
    path: Path, names: Names, image: int, person: int, screen: Screen | None
) -> Recording:
    """The fixations of one person on one image, both counted from 0."""
    x_px, y_px, durations = _images(path)[image][1][person]
    if not len(x_px) == len(y_px) == len(durations):
        raise FormatError(
            path,
            f"image '{names.stimulus}', person {names.person}: fix_x, fix_y and fix_duration have"
            f" lengths {len(x_px)}, {len(y_px)}, {len(durations)}",
            _AGAIN,
        )
    assumed = screen is None
    space, px = screen or SCREEN, (x_px, y_px)
    return _on_screen(path, names, px, durations, space, "osie", assumed_geometry=assumed)


@kept(2)
def _images(path: Path) -> list[tuple[str, list[tuple[Floats, ...]]]]:
    images = []
    for i, entry in enumerate(np.atleast_1d(read_variable(path, "fixations", _NOT_OSIE)), 1):
        if not hasattr(entry, "img") or not hasattr(entry, "subjects"):
            raise FormatError(path, f"entry {i} has no 'img' and 'subjects'", _NOT_OSIE)
        people = []
        for gaze in np.atleast_1d(entry.subjects):
            if not all(hasattr(gaze, n) for n in _FIELDS):
                without = f"entry {i} has a person without {', '.join(_FIELDS)}"
                raise FormatError(path, without, _NOT_OSIE)
            columns = (np.atleast_1d(getattr(gaze, n)) for n in _FIELDS)
            people.append(tuple(c.astype(np.float64).ravel() for c in columns))
        images.append((str(entry.img), people))
    return images


OSIE = Format(
    "osie",
    "OSIE fixations (MATLAB)",
    lambda head: has_variable(head, "fixations"),
    _scan_osie,
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
    scrub=MATLAB,
)

_WIDTH_MM, _HEIGHT_MM, _DISTANCE_MM = 365.0, 274.0, 650.0


def _sniff_neuroliaa(head: Head) -> bool:
    """JSON with target boxes and fixations."""
    words = ('"target_bbox"', '"X"', '"T"')
    begins = head.name.endswith(".json") and head.text.lstrip().startswith("{")
    return begins and all(word in head.text for word in words)


def _scan_neuroliaa(path: Path, root: Path, screen: Screen | None = None) -> Iterator[Handle]:
    """One recording per image."""
    for image, entry in read_json(path).items():
        if not isinstance(entry, dict):
            raise FormatError(
                path, f"'{image}' holds no scanpath", "Check that this is a scanpath file."
            )
        person = str(entry.get("subject") or stem(path).removesuffix("_scanpaths"))
        names = Names(person, image, task="search")
        yield names.handle(partial(_load_neuroliaa, path, names, screen), path)


def _load_neuroliaa(path: Path, names: Names, screen: Screen | None = None) -> Recording:
    """The scanpath of one image."""
    image = names.stimulus
    entry = read_json(path)[image]
    assert isinstance(entry, dict)
    x_px, y_px, durations = (_numbers(path, image, entry, n) for n in "XYT")
    if len(x_px) != len(y_px) or len(durations) < len(x_px):
        lengths = f"'{image}' has {len(x_px)} X, {len(y_px)} Y and {len(durations)} T"
        raise FormatError(path, lengths, _AGAIN)
    width, height = (_numbers(path, image, entry, n) for n in ("image_width", "image_height"))
    if screen is None and not (len(width) and len(height) and min(width[0], height[0]) > 0):
        raise FormatError(
            path,
            f"'{image}' does not say how many pixels the image had",
            "Give screen=Screen(...).",
        )
    space = screen or Screen(float(width[0]), float(height[0]), _WIDTH_MM, _HEIGHT_MM, _DISTANCE_MM)
    left_over = len(durations) - len(x_px)
    metadata: dict[str, object] = {
        "durations_matched": not left_over,
        "assumed_geometry": screen is None,
        "target_found": bool(entry.get("target_found", False)),
        "target_object": str(entry.get("target_object", "")),
    }
    if "target_bbox" in entry:
        box = _numbers(path, image, entry, "target_bbox").tolist()
        if len(box) != 4:
            numbers_of = f"the target box of '{image}' has {len(box)} numbers instead of 4"
            raise FormatError(path, numbers_of, _AGAIN)
        top, left, bottom, right = box
        x_box, y_box = (v.tolist() for v in space.from_px([left, right], [top, bottom]))
        metadata["target_box_px"] = (left, top, right, bottom)
        metadata["target_box_deg"] = (x_box[0], y_box[0], x_box[1], y_box[1])
    used = durations[: len(x_px)]
    return _on_screen(path, names, (x_px, y_px), used, space, "neuroliaa", left_over, **metadata)


def _numbers(path: Path, image: str, entry: Mapping[str, object], name: str) -> Floats:
    try:
        return np.atleast_1d(np.array(entry[name], dtype=np.float64))
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(path, f"'{image}' has no numbers in '{name}'", _AGAIN) from error


NEUROLIAA = Format(
    "neuroliaa",
    "Interiors: visual search scanpaths with target boxes (JSON)",
    _sniff_neuroliaa,
    _scan_neuroliaa,
    frozenset({"screen"}),
    dataset=Dataset(
        title="Interiors (visions benchmark)",
        publisher=(
            "Travi, Ruarte, Bujia, Kamienkowski (NeuroLIAA, Buenos Aires),"
            " github.com/NeuroLIAA/visions"
        ),
        licence="MIT (repository)",
        citation=(
            "Bujia, Sclar, Vita, Solovey, Kamienkowski 2022, Modeling human visual search in"
            " natural scenes, Frontiers in Systems Neuroscience"
        ),
        layout="<person>_scanpaths.json[.gz]",
    ),
    scrub=PUBLISHED,
)

_SPLIT = re.compile(r"\s*[,;\t]\s*|\s+")
_HEADER = re.compile(r"^\W*(idx|index)\b.*lon.*lat", re.IGNORECASE)


def _cells(line: str) -> list[float] | None:
    return numbers(_SPLIT.sub(",", line.strip().rstrip(",; ")))


def _sniff_salient(head: Head) -> bool:
    """Lines of an index that counts up from 0 and places within 0 and 1."""
    lines = head.lines if head.name.endswith((".txt", ".csv")) else []
    if lines and _HEADER.match(lines[0]):
        return True
    # The last line of a head may be cut.
    rows = [_cells(line) for line in lines[:50] if line.strip()]
    rows = rows[:-1] if len(rows) > 2 else rows
    if not rows or any(r is None or len(r) != 4 for r in rows):
        return False
    table = np.array(rows, dtype=np.float64)
    steps = zip(table[:-1, 0], table[1:, 0], strict=True)
    counts = table[0, 0] == 0 and all(b in (a + 1, 0) for a, b in steps)
    inside = ((table[:, 1:3] >= 0) & (table[:, 1:3] <= 1)).all()
    return bool(counts and inside and (table[:, 3] >= 0).all())


def _scan_salient(path: Path, root: Path) -> Iterator[Handle]:
    """One recording per observer; the file is read once to see how many there are."""
    folder, above = path.parent.name, path.parent.parent.name
    # What a file holds by its folders: the head, or an eye.
    tracked = {"L": "left", "R": "right"}.get(folder, "") if above == "Scanpaths" else ""
    tracked = "head" if (above, folder) == ("H", "Scanpaths") else tracked
    for k in range(len(_observers(path))):
        names = Names(f"{stem(path)}/{k + 1}", stem(path), tracked or "1", "free-viewing")
        yield names.handle(partial(_load_salient, path, names, k, tracked), path)


def _load_salient(path: Path, names: Names, observer: int, tracked: str) -> Recording:
    """The fixations of one observer, counted from 0."""
    rows = _observers(path)[observer]
    onset = np.round(rows[:, 3] * 1e9).astype(np.int64)
    offset = np.maximum(np.concatenate((onset[1:], onset[-1:])), onset)
    times = "start times as published; each fixation is taken to last until the next begins"
    if rows.shape[1] > 4:
        offset = onset + np.round(np.maximum(np.nan_to_num(rows[:, 4]), 0.0) * 1e9).astype(np.int64)
        times = "start times and durations as published"
    return scanpath(
        path,
        **vars(names),
        space=Sphere(),
        x_deg=wrap_x(360.0 * rows[:, 1]),
        y_deg=np.minimum(180.0 * rows[:, 2], np.nextafter(180.0, 0.0)),
        onset_ns=onset,
        offset_ns=offset,
        source="salient360",
        metadata={"times": times, "observer": observer + 1, "tracked": tracked},
    )


@kept(4)
def _observers(path: Path) -> list[Floats]:
    rows: list[list[float]] = []
    has_duration = False
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if number == 1 and _HEADER.match(line):
            # Video scanpaths add the duration as their fifth column.
            has_duration = "duration" in "".join(line.lower().split(",")[4:5])
        elif line.strip():
            cells = _cells(line) or []
            if len(cells) < 4 or not np.isfinite([cells[0], cells[3]]).all():
                raise FormatError(
                    path,
                    "the line does not hold index, longitude, latitude and start time",
                    "The file was cut; copy it again or remove the line.",
                    number,
                )
            if not (0 <= cells[1] <= 1 and 0 <= cells[2] <= 1):
                raise FormatError(
                    path,
                    f"the place ({cells[1]:g}, {cells[2]:g}) is not within 0 and 1",
                    "Longitude and latitude must be fractions.",
                    number,
                )
            rows.append([*cells[:5], float("nan")][:5] if has_duration else cells[:4])
    if not rows:
        raise FormatError(path, "there is no fixation in it", "Copy the file again.")
    table = np.array(rows, dtype=np.float64)
    return np.split(table, np.flatnonzero(np.diff(table[:, 0]) <= 0) + 1)


SALIENT360 = Format(
    "salient360",
    "Salient360! scanpaths (text, fixations only)",
    _sniff_salient,
    _scan_salient,
    dataset=Dataset(
        title="Salient360!",
        publisher="Rai, Gutierrez, David, Le Callet (University of Nantes), salient360.ls2n.fr",
        licence="for research; see the publisher's page",
        citation=(
            "Rai, Gutierrez, Le Callet 2017, A dataset of head and eye movements for 360 degree"
            " images, ACM MMSys"
        ),
        layout=(
            "HE/Scanpaths/{L,R}/<image>.txt, H/Scanpaths/<image>.txt: index, longitude, latitude,"
            " start time"
        ),
    ),
    scrub=PUBLISHED,
)
