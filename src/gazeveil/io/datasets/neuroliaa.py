"""Interiors (NeuroLIAA): people search a target in 134 pictures of rooms; scanpaths with the
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
from gazeveil.io.parsing.loaded import read_json
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head, stem

_WIDTH_MM, _HEIGHT_MM, _DISTANCE_MM = 365.0, 274.0, 650.0


def sniff(head: Head) -> bool:
    """JSON with target boxes and fixations."""
    text = head.text
    return (
        head.name.endswith(".json")
        and text.lstrip().startswith("{")
        and '"target_bbox"' in text
        and '"X"' in text
        and '"T"' in text
    )


def scan(path: Path, root: Path, screen: Screen | None = None) -> Iterator[Handle]:
    """One recording per image."""
    for image, entry in read_json(path).items():
        if not isinstance(entry, dict):
            raise FormatError(
                path, f"'{image}' holds no scanpath", "Check that this is a scanpath file."
            )
        person = str(entry.get("subject") or stem(path).removesuffix("_scanpaths"))
        yield Handle(
            person,
            image,
            partial(load, path, image, person, screen),
            task="search",
            source=str(path),
        )


def load(path: Path, image: str, person: str, screen: Screen | None = None) -> Recording:
    """The scanpath of one image."""
    entry = read_json(path)[image]
    assert isinstance(entry, dict)
    x_px, y_px, durations = (_numbers(path, image, entry, n) for n in "XYT")
    if len(x_px) != len(y_px) or len(durations) < len(x_px):
        raise FormatError(
            path,
            f"'{image}' has {len(x_px)} X, {len(y_px)} Y and {len(durations)} T",
            "Copy the file again from the publisher.",
        )
    width, height = (_numbers(path, image, entry, n) for n in ("image_width", "image_height"))
    if screen is None and not (len(width) and len(height) and min(width[0], height[0]) > 0):
        raise FormatError(
            path,
            f"'{image}' does not say how many pixels the image had",
            "Give screen=Screen(...).",
        )
    space = screen or Screen(float(width[0]), float(height[0]), _WIDTH_MM, _HEIGHT_MM, _DISTANCE_MM)
    x_deg, y_deg = space.from_px(x_px, y_px)
    onset, offset = cumulated_ns(durations[: len(x_px)])
    metadata: dict[str, object] = {
        "times": "durations added up",
        "durations_matched": len(durations) == len(x_px),
        "assumed_geometry": screen is None,
        "target_found": bool(entry.get("target_found", False)),
        "target_object": str(entry.get("target_object", "")),
    }
    if "target_bbox" in entry:
        box = _numbers(path, image, entry, "target_bbox")
        if len(box) != 4:
            raise FormatError(
                path,
                f"the target box of '{image}' has {len(box)} numbers instead of 4",
                "Copy the file again from the publisher.",
            )
        top, left, bottom, right = box.tolist()
        x_box, y_box = space.from_px([left, right], [top, bottom])
        metadata["target_box_px"] = (left, top, right, bottom)
        metadata["target_box_deg"] = (
            float(x_box[0]),
            float(y_box[0]),
            float(x_box[1]),
            float(y_box[1]),
        )
    return scanpath(
        path,
        person=person,
        stimulus=image,
        task="search",
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        onset_ns=onset,
        offset_ns=offset,
        source="neuroliaa",
        not_events={"durations without a place": len(durations) - len(x_px)},
        metadata=metadata,
    )


def _numbers(path: Path, image: str, entry: dict[str, object], name: str) -> Floats:
    try:
        return np.atleast_1d(np.array(entry[name], dtype=np.float64))
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(
            path, f"'{image}' has no numbers in '{name}'", "Copy the file again from the publisher."
        ) from error


FORMAT = Format(
    "neuroliaa",
    "Interiors: visual search scanpaths with target boxes (JSON)",
    sniff,
    scan,
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
)
