"""EyeLink ASC: the `**` header and the messages."""

from __future__ import annotations

import re

from gazeveil.release.inventory.finding import FileNotes
from gazeveil.release.inventory.sampling import Sampled

_HEADER = re.compile(
    r"^\*\*\s*(CONVERTED FROM|RECORDED BY|SERIAL NUMBER|SREB[\d.]*|[A-Z_]+)(?::|\s)\s*(.*)$"
)
_MESSAGE = re.compile(r"^MSG\s+(\d+(?:\.\d+)?)\s?(.*)$")
_KINDS = {
    "DATE": "date",
    "SERIAL NUMBER": "serial",
    "CAMERA_CONFIG": "serial",
    "RECORDED BY": "name",
    "CONVERTED FROM": "path",
    "CAMERA": "device model",
    "EYELINK": "device model",
    "VERSION": "device model",
    "SOURCE": "device model",
}
#: Messages that the tracker and its software write themselves; the rest is text of the experiment.
TRACKER_MESSAGE = re.compile(
    r"^(?:!CAL\b|!MODE\s+RECORD\b|RECCFG\b|ELCLCFG\b|ELCL_|GAZE_COORDS\b|DISPLAY_COORDS\b"
    r"|THRESHOLDS\b|CAMERA_LENS_FOCAL_LENGTH\b|PUPIL_DATA_TYPE\b|VALIDATE\b|RETRACE_INTERVAL\b"
    r"|DRIFTCORRECT\b|SYNCTIME$|TRIAL OK$|TRIAL_RESULT\s+-?\d{1,4}$)"
)


def look(sampled: Sampled, notes: FileNotes) -> int:
    """Note the header's fields, the tracker's clock, the rate, and what messages say.

    Returns
    -------
    int
        The number of lines that were looked at.
    """
    clock, looked = False, 0
    for _, line in sampled.lines:
        looked += 1
        if line.startswith("**"):
            _header(line, notes)
        elif line.startswith("MSG"):
            _message(line, notes)
        elif line[:1].isdigit() and not clock:
            clock = True
            notes.add("sample time", "clock", line.split()[0])
        elif line.startswith(("SAMPLES", "EVENTS")):
            rate = re.search(r"RATE\s+([\d.]+)", line)
            if rate is not None:
                notes.add("RATE", "rate", rate[1])
    return looked


def _header(line: str, notes: FileNotes) -> None:
    match = _HEADER.match(line)
    if match is None:
        notes.text("header", line)
        return
    name, value = match[1].strip(), match[2].strip()
    if not value:
        return
    if name.startswith("SREB"):
        notes.add("SREB", "serial", value)
    elif name in _KINDS:
        kind = _KINDS[name]
        notes.add(name, kind, value if name != "CONVERTED FROM" else value.split(" using ")[0])
        notes.text(name, value, skip=kind)
        if kind == "path":
            notes.names.discard(value)
    elif name != "TYPE":
        notes.value(name, value)


def _message(line: str, notes: FileNotes) -> None:
    match = _MESSAGE.match(line)
    if match is None:
        return
    text = match[2].strip()
    if text.startswith("RECCFG"):
        rate = re.match(r"RECCFG\s+\w+\s+(\d+)", text)
        notes.add("RECCFG", "rate", rate[1] if rate else text)
    elif text.startswith(("GAZE_COORDS", "DISPLAY_COORDS")):
        notes.add(text.split()[0], "screen", text)
    elif text.startswith("TRACKER_TIME"):
        notes.add("MSG TRACKER_TIME", "clock", text)
    elif text and TRACKER_MESSAGE.match(text) is None:
        notes.add("MSG", "free text", text)
        notes.text("MSG", text)
