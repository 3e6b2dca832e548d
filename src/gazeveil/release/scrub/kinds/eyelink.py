"""EyeLink ASC: header, times and messages; samples and events stay but for their clock.

The date stays a date, because readers parse it (mne-tools/mne-python#12621: a blanked date line
made a reader fail): every file has `Sat Jan  1 00:00:00 2000`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from gazeveil.release.inventory.looks import TRACKER_MESSAGE
from gazeveil.release.scrub.job import ScrubJob, shifted
from gazeveil.release.scrub.tables import Lines

NEUTRAL_DATE = "Sat Jan  1 00:00:00 2000"

_HEADER = re.compile(r"^\*\*\s*(CONVERTED FROM|RECORDED BY|SERIAL NUMBER|[A-Z_]+)(?::|\s)\s*(.*)$")
_VERSION = re.compile(r"edfapi\s+([\d.]+)")
_TRACKER = re.compile(
    r"^\*\*\s+(EYELINK (?:II |I )?(?:CL )?v[\d.]+)"
    r".*?(\(EyeLink (?:1000(?: Plus)?|Portable Duo|II|3|Duo)\))?\s*$"
)
_HEADER_WORD = re.compile(
    r"(?:edf_file|binary|events?|samples?|tagged|eyelink|i|ii|cl|gl|usbcam|version|revision)"
    r"|\d{1,2}(?:\.\d{1,4})?",
    re.IGNORECASE,
)
_TIME = re.compile(r"^(\d+(?:\.\d+)?)")
_MESSAGE = re.compile(r"^(MSG\s+)(\d+(?:\.\d+)?)(\s?)(.*)$")
_SAMPLE_REST = re.compile(r"^[\s\d.+\-eE]*(?:\s[.ICRMANFTBLE]{3,17})*[\s\d.+\-eE]*$")
_CALIBRATION = re.compile(r"^(?:[\s\d.,+\-eE]*|>+ CALIBRATION \([\w,-]+\) FOR (?:LEFT|RIGHT): <+)$")
# Line -> positions of the words that are times.
_TIMES = {
    "START": (1,),
    "END": (1,),
    "INPUT": (1,),
    "BUTTON": (1,),
    "SFIX": (2,),
    "SSACC": (2,),
    "SBLINK": (2,),
    "EFIX": (2, 3),
    "ESACC": (2, 3),
    "EBLINK": (2, 3),
    "SAMPLES": (),
    "EVENTS": (),
    "PRESCALER": (),
    "VPRESCALER": (),
    "PUPIL": (),
}
_LINE_WORDS = frozenset(
    """L R LEFT RIGHT SAMPLES EVENTS GAZE HREF RATE TRACKING CR P-CR FILTER INPUT VEL RES HTARGET
    AREA DIAMETER PUPIL STATUS BUTTONS LR""".split()  # noqa: SIM905 - a list of words
)
#: Words of the tracker's own messages; one with any other word is text of the experiment.
_MESSAGE_WORDS = frozenset(
    """cal calibration points eye check box href range coeff goaly ixx jyy prenormalize offx offy
    quadrant center centx centy corner correction gains resolution upd screen gain change
    proportion ratio cross ratios fixup pcr match slip rotation off left right good fair poor failed
    aborted validation error avg max offset deg pix validate point reccfg elclcfg mode record
    gaze_coords display_coords thresholds elcl_proc elcl_window_sizes elcl_pcr_param
    elcl_efit_params ellipse centroid camera_lens_focal_length pupil_data_type raw_autoslip
    retrace_interval driftcorrect drift repeat synctime trial trial_result bad mtabler btabler
    mremote rtabler btower amtabler artabler tower bremoter mlremote aremote area diameter dxx eyy
    elcl_pupil_area""".split()  # noqa: SIM905 - a list of words
)


def scrubbed_asc(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """The lines of an ASC file without identifiers; the earliest time of the file becomes 0."""
    offset = min(_times(lines()), default=Decimal(0))
    for line in lines():
        text = line.rstrip()
        if text.startswith("**"):
            yield _header(text, job)
        elif text[:1].isdigit():
            yield from _sample(text, offset, job)
        elif text.startswith("MSG"):
            yield from _message(text, offset, job)
        elif not text or _CALIBRATION.match(text):
            yield text
        else:
            yield from _event(text, offset, job)


def _times(lines: Iterable[str]) -> Iterator[Decimal]:
    for line in lines:
        if line[:1].isdigit():
            match = _TIME.match(line)
            if match is not None and _SAMPLE_REST.match(line[match.end() :]):
                yield Decimal(match[1])
        elif line.startswith("MSG"):
            match = _MESSAGE.match(line)
            if match is not None:
                yield Decimal(match[2])
        else:
            words = line.split()
            for at in _TIMES.get(words[0], ()) if words else ():
                if at < len(words) and _TIME.fullmatch(words[at]):
                    yield Decimal(words[at])


def _header(line: str, job: ScrubJob) -> str:
    tracker = _TRACKER.match(line)
    if tracker is not None:
        # The firmware's date is no date of a person, but dates one after another do tell labs
        # apart.
        return f"** {tracker[1]}{' ' + tracker[2] if tracker[2] else ''}"
    match = _HEADER.match(line + " ")
    if match is None:
        return "**"
    name, value = match[1], match[2].strip()
    job.done["header lines replaced"] += 1
    if name == "CONVERTED FROM":
        version = _VERSION.search(value)
        return f"** CONVERTED FROM recording.edf using edfapi {version[1] if version else '0'}"
    if name == "DATE":
        return f"** DATE: {NEUTRAL_DATE}"
    if name == "SERIAL NUMBER":
        return "** SERIAL NUMBER: removed"
    if name in ("TYPE", "VERSION", "SOURCE", "CAMERA"):
        words = [word for word in value.split() if _HEADER_WORD.fullmatch(word)]
        return f"** {name}: {' '.join(words) or 'removed'}"
    return "** RECORDED BY removed" if name == "RECORDED BY" else "**"


def _sample(line: str, offset: Decimal, job: ScrubJob) -> Iterator[str]:
    match = _TIME.match(line)
    assert match is not None
    if _SAMPLE_REST.match(line[match.end() :]):
        yield (shifted(match[1], offset) or "") + line[match.end() :]
    else:
        job.done["lines left out"] += 1


def _message(line: str, offset: Decimal, job: ScrubJob) -> Iterator[str]:
    match = _MESSAGE.match(line)
    if match is None:
        job.done["lines left out"] += 1
        return
    yield f"{match[1]}{shifted(match[2], offset)}{match[3]}{_text(match[4].strip(), job)}"


def _text(text: str, job: ScrubJob) -> str:
    """A message: the tracker's own stays, the experiment's becomes a label."""
    if not text or job.keeps(text):
        return text
    words = re.findall(r"[^\W\d]{3,}", text)
    if TRACKER_MESSAGE.match(text) and all(w.lower() in _MESSAGE_WORDS for w in words):
        return text
    trial = re.fullmatch(r"TRIALID\s+(.*)", text)
    if trial is not None:
        number = re.fullmatch(r"\d{1,3}", trial[1])
        return f"TRIALID {trial[1] if number else job.label(trial[1])}"
    if re.match(r"TRIAL_RESULT\b", text):
        return "TRIAL_RESULT 0"
    # Commands of SR Research's software are no messages of the experiment, and readers skip them.
    command = re.match(r"!(?:V|CMD) ", text)
    before = command[0] if command else (";" if ";" in text else "message_")
    return f"{before}{job.label(text)}"


def _event(line: str, offset: Decimal, job: ScrubJob) -> Iterator[str]:
    """Lines of events and blocks, with the spacing they had."""
    words = line.split()
    if words[0] not in _TIMES:
        job.done["lines left out"] += 1
        return
    parts = re.split(r"(\s+)", line)
    at = 0
    for i, part in enumerate(parts):
        if not part or part.isspace():
            continue
        if at in _TIMES[words[0]] and _TIME.fullmatch(part):
            parts[i] = shifted(part, offset) or ""
        elif (
            at and part not in _LINE_WORDS and not re.fullmatch(r"-?[\d.]+(?:[eE][-+]?\d+)?", part)
        ):
            parts[i] = "."
            job.done["cells emptied"] += 1
        at += 1
    yield "".join(parts)
