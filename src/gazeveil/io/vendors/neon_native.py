"""Pupil Labs Neon recordings as the phone writes them (native format), through
`pupil-labs-neon-recording` (extra `neon`): the folder with `info.json`, `gaze ps1.raw` and its
times, or with the gaze at 200 Hz that Pupil Cloud adds to it.

Gaze is in pixels of the scene picture. Where the folder holds the camera's calibration, directions
come from it, with the lens distortion taken out; else from the nominal focal length
(`metadata["assumed_geometry"]`). The head is the world, as in
:mod:`gazeveil.io.vendors.pupil`. Samples with the glasses off, or in a blink, are invalid.
Fixations, saccades and blinks that the phone found are the labels `pupil-labs`; pupil diameters are
in mm. Videos, motion and eyelids stay behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints, Texts
from gazeveil.errors import FormatError, MissingExtraError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import WORD
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, mark, mean_of_eyes, nearest, read_json
from gazeveil.io.parsing.naming import OPTIONS, Names, by_folders, naming_options
from gazeveil.io.registry import Format, Scrub
from gazeveil.io.vendors.pupil import NEON

_PACKAGE = "pupil_labs.neon_recording"
_GAZE_FILES = ("gaze_200hz.raw", "gaze ps1.raw")
_SAME_SAMPLE_NS = 5_000_000
_KINDS = (("saccade", "saccades"), ("fixation", "fixations"), ("blink", "blinks"))
_ROUNDS = 20


def is_native(folder: Path) -> bool:
    """Whether a folder holds a native recording."""
    return (folder / "info.json").is_file() and any(
        (folder / name).is_file() for name in _GAZE_FILES
    )


def _open(folder: Path) -> Any:
    """The recording as the package has it.

    Raises
    ------
    MissingExtraError
        Without the package.
    """
    try:
        module = import_module(_PACKAGE)
    except ImportError as error:
        raise MissingExtraError("pupil-labs-neon-recording", "neon") from error
    return module.NeonRecording(folder)


def _part(recording: Any, name: str) -> Any:
    """One series of a recording; None where the phone wrote none."""
    try:
        return getattr(recording, name)
    except Exception as error:
        # the package wraps whatever happened; a series without files is an AttributeError inside
        if isinstance(error.__cause__, AttributeError):
            return None
        raise


def load(folder: Path, names: Names) -> Recording:
    """One recording."""
    try:
        with _open(folder) as recording:
            return _assemble(folder, names, recording)
    except (MissingExtraError, FormatError):
        raise
    except Exception as error:
        # files that are cut off or hold other numbers fail anywhere in the package
        raise FormatError(
            folder,
            f"pupil-labs-neon-recording cannot read it ({type(error).__name__})",
            "Copy the recording from the phone again.",
        ) from error


def _assemble(folder: Path, names: Names, recording: Any) -> Recording:
    gaze = _part(recording, "gaze")
    if gaze is None or not len(gaze):
        raise FormatError(
            folder, "it holds no gaze", "Check that the recording was copied as a whole."
        )
    t_ns = np.asarray(gaze.time, dtype=np.int64)
    metadata: dict[str, object] = {"frame": "head", "pupil_unit": "mm"}
    x, y = _degrees(np.asarray(gaze.point, dtype=np.float64), recording.calibration, metadata)
    labels = _labels(recording, t_ns)
    return assemble(
        folder,
        **vars(names),
        t_ns=t_ns,
        space=Sphere(),
        x_deg=x,
        y_deg=y,
        valid=_worn(recording, len(t_ns)) & (labels != "blink"),
        eye_in_head_deg=headset.gaze(None, None, combined=Sphere().vectors(x, y)).eye_in_head_deg,
        pupil=_pupil(recording, t_ns),
        labels={"pupil-labs": labels},
        messages=_messages(recording),
        metadata=metadata,
    )


def _degrees(px: Floats, calibration: Any, metadata: dict[str, object]) -> tuple[Floats, Floats]:
    """Degrees of places in the scene picture."""
    if calibration is None:
        metadata["assumed_geometry"] = True
        return NEON.degrees(px)
    right, down = undistort(
        px,
        np.asarray(calibration.scene_camera_matrix, dtype=np.float64),
        np.asarray(calibration.scene_distortion_coefficients, dtype=np.float64),
    )
    return Sphere().degrees(np.stack((right, -down, np.ones(len(px))), axis=1))


def undistort(px: Floats, matrix: Floats, coefficients: Floats) -> tuple[Floats, Floats]:
    """Where the rays of pixels meet the plane at distance 1, without the distortion of the lens.

    Parameters
    ----------
    px : array, shape (n, 2)
        Pixels from the top-left corner.
    matrix : array, shape (3, 3)
        Of the camera.
    coefficients : array, shape (8,)
        k1, k2, p1, p2, k3, k4, k5, k6 of OpenCV's rational model, which is turned round by
        repeating its correction.
    """
    k1, k2, p1, p2, k3, k4, k5, k6 = coefficients
    seen_x = (px[:, 0] - matrix[0, 2]) / matrix[0, 0]
    seen_y = (px[:, 1] - matrix[1, 2]) / matrix[1, 1]
    x, y = seen_x.copy(), seen_y.copy()
    for _ in range(_ROUNDS):
        r2 = x * x + y * y
        grown = (1 + r2 * (k1 + r2 * (k2 + r2 * k3))) / (1 + r2 * (k4 + r2 * (k5 + r2 * k6)))
        moved_x = 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
        moved_y = p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
        x, y = (seen_x - moved_x) / grown, (seen_y - moved_y) / grown
    return x, y


def _worn(recording: Any, count: int) -> Bools:
    """Whether the glasses are worn, for each sample of gaze, with which it shares its times."""
    worn = _part(recording, "worn")
    flags = np.ones(count, dtype=np.bool_)
    if worn is not None:
        said = np.asarray(worn.worn)[:count] != 0
        flags[: len(said)] = said
    return flags


def _labels(recording: Any, t_ns: Ints) -> Texts:
    labels = np.full(len(t_ns), "undefined", dtype=WORD)
    for kind, name in _KINDS:
        events = _part(recording, name)
        if events is not None and len(events):
            mark(labels, t_ns, events.start_time, events.stop_time, kind)
    return labels


def _pupil(recording: Any, t_ns: Ints) -> Floats | None:
    sizes = _part(recording, "pupil")
    if sizes is None or not len(sizes):
        return None
    left, right = (
        np.asarray(side, dtype=np.float64).reshape(-1)
        for side in (sizes.diameter_left, sizes.diameter_right)
    )
    size = mean_of_eyes(np.where(left > 0, left, np.nan), np.where(right > 0, right, np.nan))
    return nearest(t_ns, np.asarray(sizes.time, dtype=np.int64), size, _SAME_SAMPLE_NS)


def _messages(recording: Any) -> tuple[Message, ...]:
    events = _part(recording, "events")
    if events is None:
        return ()
    return tuple(
        Message(int(t), str(text)) for t, text in zip(events.time, events.event, strict=True)
    )


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per folder: the person is the wearer, or the folder above; the stimulus is the
    folder.
    """
    folder = path if path.is_dir() else path.parent
    if not is_native(folder):
        raise FormatError(
            path,
            "there is no info.json with gaze beside it in this folder",
            "Point to the folder of one recording, as the phone wrote it.",
        )
    wearer = folder / "wearer.json"
    name = read_json(wearer).get("name") if wearer.is_file() else None
    names = naming_options(**options).names(
        folder, root, by_folders(folder, root), person=name if isinstance(name, str) else None
    )
    return [names.handle(partial(load, folder, names), folder)]


FORMAT = Format(
    "pupil-neon-native",
    "Pupil Labs Neon native recording (needs pupil-labs-neon-recording)",
    lambda head: False,  # no file alone is a recording
    scan,
    OPTIONS,
    is_native,
    scrub=Scrub(
        instead="a native Neon recording is binary: export it with Pupil Cloud or Neon Player and"
        " scrub the export"
    ),
)
