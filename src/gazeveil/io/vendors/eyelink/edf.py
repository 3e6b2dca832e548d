"""EyeLink EDF, the binary file the tracker writes, through `eyelinkio` (extra `edf`).

eyelinkio brings SR Research's own library for Linux and Windows on x86_64 and for macOS; elsewhere
the file must be converted with edf2asc and read as `eyelink-asc`.

What eyelinkio 0.3 gives, and what it does not:

* Gaze in pixels and pupil of each eye, blinks, saccades, fixations and messages. Columns of
  resolution, velocity, input and head distance stay behind.
* Times in seconds from the first sample, in steps of the rate: a pause between two blocks is not in
  them, and messages from before the first sample carry its time. `metadata["times"]` says so. Where
  pauses matter, convert with edf2asc.
* Letters outside ASCII are missing from messages, and a message ends after 260 characters.

Trials, labels, events, names and the screen are as in :mod:`gazeveil.io.vendors.eyelink.asc`; a
message belongs where its time points.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import FormatError, MissingExtraError
from gazeveil.io.registry import Scrub
from gazeveil.io.source import Head
from gazeveil.io.vendors.eyelink.parsed import (
    EventLine,
    Parsed,
    Samples,
    cut_trials,
    drop_lost,
    eyelink_format,
    refuse_unused_pattern,
    words_of,
)

_MAGIC = b"SR_RESEARCH"
_KINDS = {"fixations": "fixation", "saccades": "saccade", "blinks": "blink"}
_ONE_EYE = {"LEFT_EYE": "left", "RIGHT_EYE": "right"}
# What the tracker writes for a lost place.
_MISSING_PX = -32768.0


def sniff(head: Head) -> bool:
    """By the name of the maker, which every EDF file begins with.

    Without eyelinkio no file is known, so that EDF files beside the text made of them are left out
    instead of ending the reading of their folder.
    """
    return head.data.startswith(_MAGIC) and find_spec("eyelinkio") is not None


def _read(path: Path) -> Any:
    """The file as eyelinkio has it.

    Raises
    ------
    MissingExtraError
        Without eyelinkio.
    FormatError
        Where its library does not run on this machine, or the file is not whole.
    """
    if not Head.of(path).data.startswith(_MAGIC):
        raise FormatError(
            path, "it does not begin as EyeLink EDF files do", "Check that this is the EDF file."
        )
    if path.name.lower().endswith(".gz"):
        raise FormatError(
            path,
            "EyeLink EDF files are read unzipped alone",
            "Unzip it, or convert it with SR Research's edf2asc.",
        )
    try:
        eyelinkio = import_module("eyelinkio")
    except ImportError as error:
        raise MissingExtraError("eyelinkio", "edf") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eyelinkio.read_edf(path)
    except OSError as error:
        if "EDF api" not in str(error):
            raise _damaged(path) from error
        raise FormatError(
            path,
            "the library that eyelinkio brings for EDF files does not run on this machine",
            "Convert the file with SR Research's edf2asc, then read the .asc file it writes.",
        ) from error
    except Exception as error:
        # The library's own checks are assertions and look-ups in tables, so anything may come.
        raise _damaged(path) from error


def _damaged(path: Path) -> FormatError:
    return FormatError(
        path,
        "the tracker's library cannot read it",
        "Copy the file again; convert it with edf2asc if that fails too.",
    )


@lru_cache(maxsize=1)
def parse(path: Path, _stamp: tuple[int, int], trials: str | None = None) -> Parsed:
    """Parse a file; kept until the next one, so that its trials do not parse it again."""
    edf = _read(path)
    info: Mapping[str, Any] = edf["info"]
    discrete: Mapping[str, Any] = edf["discrete"]
    t_ns = _nanoseconds(edf["times"])
    rate = float(info["sfreq"])
    eyes = _eyes(path, info, edf["samples"])
    has_pupil = drop_lost(eyes)
    for values in eyes.values():
        values[(values[:, :2] == _MISSING_PX).any(axis=1)] = np.nan
    n = len(t_ns)
    samples = Samples(
        t_ns, eyes, {eye: np.ones(n, dtype=np.bool_) for eye in eyes}, has_pupil=has_pupil
    )
    block_of, starts = np.zeros(n, dtype=np.int64), np.array([-1])
    events = tuple(sorted(_events(discrete, list(eyes), t_ns), key=lambda e: e.onset_ns))
    labels = words_of(events, list(eyes), t_ns, block_of, starts)
    for eye, words in labels.items():
        eyes[eye][words == "blink"] = np.nan
    said = discrete.get("messages", ())
    times = _nanoseconds(np.array([m["stime"] for m in said], dtype=np.float64))
    places = 2 * np.searchsorted(t_ns, times)
    texts = [_text(m["msg"]) for m in said]
    refuse_unused_pattern(path, trials, texts)
    messages = [(int(p), int(t), text) for p, t, text in zip(places, times, texts, strict=True)]
    # Samples stand on the odd lines and messages on the even ones before them.
    cut, empty = cut_trials(2 * np.arange(n) + 1, messages, starts, trials)
    metadata: dict[str, object] = {
        "pupil_unit": str(info.get("ps_units", "")).removeprefix("PUPIL_").lower(),
        "times": "counted from the first sample; pauses between blocks are not in them",
        **({"date": str(info["meas_date"])} if "meas_date" in info else {}),
        **({"camera": str(info["camera"])} if "camera" in info else {}),
        **({"serial_number": str(info["serial"])} if "serial" in info else {}),
        **({"empty_trials": tuple(empty)} if empty else {}),
    }
    return Parsed(
        samples,
        labels,
        np.full(n, rate),
        np.zeros(n, dtype=np.bool_),
        block_of,
        starts,
        cut,
        texts,
        metadata,
        events,
    )


def _nanoseconds(seconds: Floats) -> Ints:
    return np.round(np.asarray(seconds, dtype=np.float64) * 1e9).astype(np.int64)


def _text(message: object) -> str:
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    return text.rstrip("\0").strip()


def _eyes(path: Path, info: Mapping[str, Any], samples: Floats) -> dict[str, Floats]:
    """x, y in pixels and pupil of each eye, shape (n, 3)."""
    rows = {str(name): samples[i] for i, name in enumerate(info["sample_fields"])}
    one = _ONE_EYE.get(str(info["eye"]))
    sides = {one: ""} if one is not None else {"left": "_left", "right": "_right"}
    result = {}
    for eye, suffix in sides.items():
        if not {f"xpos{suffix}", f"ypos{suffix}"} <= rows.keys():
            raise FormatError(
                path,
                "its samples hold no gaze in pixels",
                "Record GAZE (file_sample_data), or convert the file with edf2asc.",
            )
        nothing = np.full(samples.shape[1], np.nan)
        columns = [rows.get(f"{name}{suffix}", nothing) for name in ("xpos", "ypos", "ps")]
        result[eye] = np.stack(columns, axis=1).astype(np.float64)
    return result


def _events(discrete: Mapping[str, Any], eyes: list[str], t_ns: Ints) -> Iterator[EventLine]:
    """Events, kind by kind."""
    for name, kind in _KINDS.items():
        for row in discrete.get(name, ()):
            onset, offset = (int(v) for v in _nanoseconds(np.array([row["stime"], row["etime"]])))
            x, y = (
                (float(row["axp"]), float(row["ayp"]))
                if kind == "fixation"
                else (float("nan"), float("nan"))
            )
            # 0 is the left eye and 1 the right.
            eye = ("left", "right")[int(row["eye"] == 1)] if len(eyes) == 2 else eyes[0]
            line = 2 * int(np.searchsorted(t_ns, onset))
            yield EventLine(line, kind, eye, onset, max(onset, offset), x, y)


FORMAT = eyelink_format(
    "eyelink-edf",
    "EyeLink EDF (through eyelinkio, extra edf)",
    sniff,
    parse,
    Scrub(instead="EyeLink EDF is binary: convert it with edf2asc and scrub the ASC file"),
)
