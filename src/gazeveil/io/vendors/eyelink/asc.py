"""EyeLink ASC, the text that SR Research's edf2asc writes: samples, events and messages of one or
both eyes at up to 2 kHz.

* One file with many trials gives one recording per trial. A trial begins at a `TRIALID` message
  (which may stand before `START` or in the middle of a block) and ends at the next one or at
  `TRIAL_RESULT`; without `TRIALID`, every `START` block is a trial. Other messages by `trials=`, a
  regular expression whose first group names the stimulus; a file without such a message is refused.
  A message belongs where its line stands, because messages may carry times from before or after.
  Sample rows in no trial are a recording of their own, with the stimulus `no-trial`; so the rows of
  all recordings add up to the sample lines of the file. A trial name that comes again gets the next
  session number. Trials without samples are named in `metadata["empty_trials"]`.
* The person is the file name (the folder, where folders side by side hold files of one name),
  unless `person=` or `pattern=` says otherwise.
* Columns follow the `SAMPLES` line of each block (:mod:`gazeveil.io.vendors.eyelink.samples`).
  `.` is a lost value; a pupil of 0 too, unless no pupil was measured. HREF samples are angles
  already; raw PUPIL samples are refused.
* `EFIX`, `ESACC` and `EBLINK` become the recording's events (of the first eye of two) and
  `labels["eyelink"]` (of the right eye of two: `labels["eyelink_right"]`); an eye in a blink is
  lost. A file converted without samples gives recordings of events only.
* Lines of no known kind are not rows; `metadata["lines_not_understood"]` counts them, and a file of
  nothing else is refused.
* The screen in pixels comes from `GAZE_COORDS` or `DISPLAY_COORDS` (a `screen=` of other pixels is
  refused; where the file states none, its are taken), the rest from `screen=`, or
  from the calibration, or from the resolution that the file states
  (`metadata["resolution_px_per_deg"]`), or from the head's distance in remote mode
  (`metadata["head_distance_mm"]`), or from an assumption with a warning and
  `metadata["assumed_geometry"]` (see :mod:`gazeveil.io.vendors.eyelink.geometry`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil.arrays import Bools, Ints
from gazeveil.errors import FormatError
from gazeveil.io.source import Head, read_text
from gazeveil.io.vendors.eyelink.geometry import screen_box
from gazeveil.io.vendors.eyelink.parsed import (
    Parsed,
    cut_trials,
    event_lines,
    eyelink_format,
    refuse_unused_pattern,
    words_of,
)
from gazeveil.io.vendors.eyelink.samples import SampleBlock, Samples, find_blocks, read_samples

_MESSAGE = re.compile(r"^MSG\s+(\d{1,15}(?:\.\d+)?)\s?(.*)$")
# How the lines that edf2asc writes begin, samples excepted.
_KNOWN = re.compile(
    r"(?:MSG|START|END|SAMPLES|EVENTS|V?PRESCALER|PUPIL|INPUT|BUTTON|[SE](?:FIX|SACC|BLINK)|"
    r"CONFIG|>+)\s|\*\*"
)
_END_RESOLUTION = re.compile(r"\bRES\s+(\d+(?:\.\d+)?)\s+(\d+(?:\.\d+)?)")
# Pixels per degree between which any screen lies: a phone at 10 cm, a wall of 8K at 5 m.
_RESOLUTIONS = (3.0, 800.0)
_HEADER = {
    "DATE": "date",
    "SERIAL NUMBER": "serial_number",
    "CAMERA": "camera",
    "RECORDED BY": "recorded_by",
    "CONVERTED FROM": "converted_from",
}


def sniff(head: Head) -> bool:
    """An .asc file with EyeLink lines, or any text that says edf2asc converted it."""
    if head.data.startswith(b"SR_RESEARCH"):
        return False
    if re.search(r"^\*\* CONVERTED FROM .*using edfapi", head.text, re.MULTILINE):
        return True
    return (
        head.name.endswith(".asc")
        and re.search(
            r"^(?:\*\*|MSG\s+\d|START\s+\d|SAMPLES\s|\d+(?:\.\d)?\s+[-.\d]+\s+[-.\d]+\s)",
            head.text,
            re.MULTILINE,
        )
        is not None
    )


def _refuse_edf(path: Path) -> None:
    head = Head.of(path)
    if head.data.startswith(b"SR_RESEARCH") or (
        head.name.endswith(".edf") and b"\0" in head.data[:4096]
    ):
        raise FormatError(
            path,
            "EyeLink EDF is a closed binary format",
            "Read it as eyelink-edf (pip install 'gazeveil[edf]'), or convert it with SR Research's"
            " edf2asc and read the .asc file it writes.",
        )


@lru_cache(maxsize=1)
def parse(path: Path, _stamp: tuple[int, int], trials: str | None = None) -> Parsed:
    """Parse a file; kept until the next one, so that its trials do not parse it again.

    Raises
    ------
    FormatError
        For a file that is empty, cut, EDF, not EyeLink at all, or holds raw pupil samples.
    """
    _refuse_edf(path)
    lines = pl.Series("line", read_text(path).split("\n"), dtype=pl.String)
    is_sample = lines.str.contains(r"^[0-9]")
    at = is_sample.arg_true().to_numpy().astype(np.int64)
    other = [
        (int(n), str(t))
        for n, t in zip((~is_sample).arg_true(), lines.filter(~is_sample), strict=True)
        if t
    ]
    # Calibration messages run over several lines, which begin with a number or a sign.
    strange = [
        n for n, t in other if not _KNOWN.match(t + " ") and not t.startswith(("-", " ", "\t"))
    ]
    if not len(at) and len(strange) == len(other):
        raise FormatError(
            path, "it holds no EyeLink lines", "Check that this is the text edf2asc wrote.", 1
        )
    blocks = find_blocks(path, other)
    starts = np.array([b.line for b in blocks])
    block_of = np.maximum(np.searchsorted(starts, at, side="right") - 1, 0)
    samples = read_samples(path, lines.gather(at), at, blocks, block_of)
    events = tuple(event_lines(path, other))
    labels = words_of(events, list(samples.eyes), samples.t_ns, block_of, starts)
    for eye, eye_labels in labels.items():
        samples.eyes[eye][eye_labels == "blink"] = np.nan
    messages = [(n, *m) for n, t in other if (m := _message(t)) is not None]
    texts = [text for _, _, text in messages]
    refuse_unused_pattern(path, trials, texts)
    metadata = _metadata(other)
    if strange:
        metadata["lines_not_understood"] = len(strange)
    rows = at
    if not len(at) and events:
        # Converted without samples (edf2asc -e), the events are what there is, cut into trials as
        # samples would be.
        alone = tuple(e for e in events if e.eye == events[0].eye)
        if len(alone) < len(events):
            metadata["events_of_other_eye"] = len(events) - len(alone)
        events, rows = alone, np.array([e.line for e in alone], dtype=np.int64)
    cut, empty = cut_trials(rows, messages, starts, trials)
    if empty:
        metadata["empty_trials"] = tuple(empty)
    outside = len(messages) - sum(len(t.messages) for t in cut)
    if outside:
        # Calibration and set-up before the first trial; the geometry is read from them.
        metadata["messages_outside_trials"] = outside
    return Parsed(
        samples,
        labels,
        np.array([b.rate_hz for b in blocks])[block_of],
        np.array([b.kind == "HREF" for b in blocks])[block_of],
        block_of,
        starts,
        cut,
        texts,
        metadata,
        events,
        _stated_resolution(samples, other, blocks, block_of, screen_box(texts)),
    )


def _metadata(other: list[tuple[int, str]]) -> dict[str, object]:
    """What the header says, and the unit of the pupil."""
    metadata: dict[str, object] = {
        k: v for _, t in other if t.startswith("**") for k, v in _header(t).items()
    }
    units = (t.split()[1].lower() for _, t in other if t.startswith("PUPIL") and len(t.split()) > 1)
    unit = next(units, None)
    return metadata if unit is None else {**metadata, "pupil_unit": unit}


def _message(line: str) -> tuple[int, str] | None:
    """Time in nanoseconds and text of a MSG, INPUT or BUTTON line."""
    match = _MESSAGE.match(line)
    if match is not None:
        return round(float(match[1]) * 1e6), match[2].strip()
    tokens = line.split()
    if (
        tokens
        and tokens[0] in ("INPUT", "BUTTON")
        and len(tokens) >= 3
        and re.fullmatch(r"\d{1,15}(?:\.\d+)?", tokens[1])
    ):
        return round(float(tokens[1]) * 1e6), " ".join((tokens[0], *tokens[2:]))
    return None


def _header(line: str) -> dict[str, object]:
    """Key and value of a `** KEY: value` line; blanked values are left out."""
    for keyword, name in _HEADER.items():
        match = re.match(rf"\*\*\s+{keyword}(?::|\s)\s*(.*)$", line)
        if match is not None and match[1].strip():
            return {name: match[1].strip()}
    return {}


def _stated_resolution(
    samples: Samples,
    other: list[tuple[int, str]],
    blocks: list[SampleBlock],
    block_of: Ints,
    box: tuple[float, float, float, float] | None,
) -> tuple[float, float] | None:
    """Pixels per degree of x and y: from the rows that say it, else from the END lines of blocks.

    Resolution grows with the distance from the centre of a flat screen, so rows of gaze in its
    middle third go before others. That of HREF blocks is not in pixels, and one that no screen has
    is not believed.
    """
    in_pixels = np.array([b.kind != "HREF" for b in blocks])
    low, high = _RESOLUTIONS
    if samples.resolution is not None:
        known: Bools = np.all((samples.resolution > low) & (samples.resolution < high), axis=1)
        known &= in_pixels[block_of]
        chosen = known & _is_central(samples, box)
        chosen = chosen if chosen.any() else known
        if chosen.any():
            x, y = np.median(samples.resolution[chosen], axis=0)
            return float(x), float(y)
    starts = [b.line for b in blocks]
    stated = [
        (float(m[1]), float(m[2]))
        for n, line in other
        if line.startswith("END")
        and in_pixels[max(int(np.searchsorted(starts, n, side="right")) - 1, 0)]
        and (m := _END_RESOLUTION.search(line)) is not None
    ]
    stated = [pair for pair in stated if low < min(pair) and max(pair) < high]
    if not stated:
        return None
    x, y = np.median(np.array(stated), axis=0)
    return float(x), float(y)


def _is_central(samples: Samples, box: tuple[float, float, float, float] | None) -> Bools:
    """Rows of gaze in the middle third of the screen."""
    left, top, right, bottom = box or (-np.inf, -np.inf, np.inf, np.inf)
    inside = np.zeros(len(samples.t_ns), dtype=np.bool_)
    if box is None:
        return ~inside
    for eye in samples.eyes.values():
        inside |= (np.abs(eye[:, 0] - (left + right) / 2) < (right - left) / 6) & (
            np.abs(eye[:, 1] - (top + bottom) / 2) < (bottom - top) / 6
        )
    return inside


FORMAT = eyelink_format("eyelink-asc", "EyeLink ASC (edf2asc text)", sniff, parse)
