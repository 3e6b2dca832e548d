"""WebQAmGaze: people read texts and answer questions at home; webcam gaze, 8 to 30 samples a
second.

One JSON file per person and set of texts: `worker_id` is the person, `worker_age`, `worker_lang`,
`worker_fluency` and `vision` go into the people's table, and `samples_x_y_ms` maps each text or
question to rows of x (px), y (px), ms. Each is a recording; the task is the text's `condition`
(`nr` normal reading, `is` information seeking), also for the questions about it. The set's name is
in `metadata["set_name"]`.

The size and distance of the screens are unknown. A pixel is taken as 1/96 inch, as in browsers, and
the distance as 600 mm. `metadata["assumed_geometry"]` is True. `screen=` replaces the assumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Attributes, Handle
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble, read_json
from gazeveil.io.registry import PUBLISHED, Dataset, Format
from gazeveil.io.source import Head, stem

_PX_MM = 25.4 / 96
_DISTANCE_MM = 600.0
_ATTRIBUTES = {
    "age": "worker_age",
    "language": "worker_lang",
    "fluency": "worker_fluency",
    "vision": "vision",
}


def sniff(head: Head) -> bool:
    """JSON of one worker with webcam samples."""
    text = head.text
    return (
        head.name.endswith(".json")
        and text.lstrip().startswith("{")
        and ('"samples_x_y_ms"' in text or ('"worker_id"' in text and '"set_name"' in text))
    )


def scan(path: Path, root: Path, screen: Screen | None = None) -> Iterator[Handle]:
    """One recording per text and question."""
    content = read_json(path)
    person = str(content.get("worker_id") or stem(path))
    for text in _samples(path, content):
        task = _condition(content, text)
        yield Handle(
            person,
            text,
            partial(load, path, text, person, task, screen),
            task=task,
            source=str(path),
        )


def _samples(path: Path, content: Mapping[str, object]) -> Mapping[str, object]:
    samples = content.get("samples_x_y_ms")
    if not isinstance(samples, Mapping):
        raise FormatError(
            path,
            "there are no 'samples_x_y_ms' in it",
            "Check that this is a WebQAmGaze file with samples.",
        )
    return samples


def _condition(content: Mapping[str, object], text: str) -> str:
    """The condition of the longest trial name that the key holds: questions are named after their
    text.
    """
    trials = content.get("trials")
    if not isinstance(trials, Mapping):
        return ""
    entry = trials.get(max((t for t in trials if t in text), key=len, default=None))
    return str(entry.get("condition", "")) if isinstance(entry, Mapping) else ""


def load(path: Path, text: str, person: str, task: str, screen: Screen | None = None) -> Recording:
    """The samples of one text."""
    content = read_json(path)
    try:
        rows = np.array(_samples(path, content)[text], dtype=np.float64).reshape(-1, 3)
    except (TypeError, ValueError) as error:
        raise FormatError(
            path,
            f"'{text}' does not hold rows of x, y and ms",
            "Copy the file again from the publisher.",
        ) from error
    if not np.isfinite(rows[:, 2]).all():
        raise FormatError(path, f"'{text}' has a row without time", "Mend or remove the row.")
    space = screen or _screen(path, content)
    x_deg, y_deg = space.from_px(rows[:, 0], rows[:, 1])
    return assemble(
        path,
        person=person,
        stimulus=text,
        task=task,
        t_ns=np.round(rows[:, 2] * 1e6).astype(np.int64),
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        metadata={"assumed_geometry": screen is None, "set_name": str(content.get("set_name", ""))},
    )


def _screen(path: Path, content: Mapping[str, object]) -> Screen:
    try:
        width, height = float(str(content["screen_x"])), float(str(content["screen_y"]))
        return Screen(width, height, width * _PX_MM, height * _PX_MM, _DISTANCE_MM)
    except (KeyError, ValueError) as error:
        raise FormatError(
            path,
            "it does not say how many pixels the screen had (screen_x, screen_y)",
            "Give screen=Screen(...).",
        ) from error


def people(root: Path, files: Iterable[Path]) -> Mapping[str, Attributes]:
    """Age, language, fluency and vision of the people whose files these are."""
    by_person: dict[str, Attributes] = {}
    for path in files:
        content = read_json(path)
        by_person[str(content.get("worker_id") or stem(path))] = {
            ours: content[theirs]
            for ours, theirs in _ATTRIBUTES.items()
            if content.get(theirs) is not None
        }
    return by_person


FORMAT = Format(
    "webqamgaze",
    "WebQAmGaze: webcam gaze while reading (JSON)",
    sniff,
    scan,
    frozenset({"screen"}),
    dataset=Dataset(
        title="WebQAmGaze",
        publisher=(
            "Ribeiro, Brandl, Sogaard, Hollenstein (University of Copenhagen),"
            " github.com/tfnribeiro/WebQAmGaze"
        ),
        licence="CC BY 4.0",
        citation=(
            "Ribeiro et al. 2023, WebQAmGaze: a multilingual webcam eye-tracking-while-reading"
            " dataset, arXiv:2303.17876"
        ),
        layout="<any name>.json[.gz], one per person and set of texts",
    ),
    people=people,
    scrub=PUBLISHED,
)
