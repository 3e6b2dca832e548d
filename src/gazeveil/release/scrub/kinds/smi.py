"""SMI text exports: the `##` header, messages, and the columns that hold gaze."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from gazeveil.errors import FormatError
from gazeveil.io.source import find_separator, key
from gazeveil.release.scrub.job import ScrubJob, decimal, shifted
from gazeveil.release.scrub.tables import Lines, TableRules, scrubbed_table

NEUTRAL_DATE = "01.01.2000 00:00:00"

_ENTRY = re.compile(r"^##(\s*)([^:\[]+?(?:\s*\[\w+\])?)\s*:(\s*)(.*)$")
_SECTION = re.compile(r"^##\s*\[[A-Za-z ]{1,30}\]\s*$")
_NUMBERS = re.compile(r"^(?:[\d\s.,;()+-]*|Position\([\d;.,-]+\)|True|False|none)$")
_PICTURE = re.compile(r"\.(?:bmp|jpe?g|png|gif|tiff?|avi|mp4|wmv|mov)$", re.IGNORECASE)
_WITH_NUMBERS = re.compile(
    r"^(?:samplerate|calibrationarea|calibrationpoint\d+|stimulusdimensionmm|headdistancemm"
    r"|numberofsamples|reversed|heuristic(s|sstage|stage)?|numberofpoints|trialcount|usesplanefile"
    r"|bilateral|gazecursorfilter|saccadelengthpx|filterdepthms|idfversion|iviewxversion)$"
)
_WITH_WORDS = re.compile(r"^(?:format|version|calibrationtype|separatortype)$")
_HEADER_WORD = re.compile(
    r"(?:begaze|converter|iview|x|idf|left|right|raw|diameter|cr|por|gvec|epos|quality|plane"
    r"|trigger|msg|user"
    r"|framecounter|area|event|none|point|\d+-point|\d{1,4}(?:\.\d{1,4}){0,3})",
    re.IGNORECASE,
)

#: Columns of BeGaze and iView X.
RULES = TableRules(
    keep=(
        r"type$|trial$|[lr]?(por|raw|dia|mappeddiameter|pupildiameter|area|cr\d|validity|plane|gvec"
        r"|eventinfo|pupilconfidence|plane|pupil|mapped)|timing|latency|frame$|info$"
    ),
    shift=r"time$",
    label=r"stimulus$",
    midpoint=r"[lr]epos",
    words=frozenset(
        ["smp", "msg", "fixation", "saccade", "blink", "user event", "l", "r", "lr", "ue"]
    ),
)


def scrubbed_smi(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """The lines of an export without identifiers; the earliest time becomes 0."""
    start = 0
    for number, line in enumerate(lines()):
        if line.startswith("#") or not line.strip():
            yield _header(line, job)
        else:
            start = number
            break
    names = _names(lines, start)
    separator = find_separator(names)
    if not separator:
        raise FormatError("export", "its column names are not separated", "Export with tabs.")
    column = {key(n): i for i, n in enumerate(names.split(separator))}
    offset = _beginning(lines, start, separator, column.get("time", 0))

    def body(wanted: bool) -> Iterator[str]:
        for number, line in enumerate(lines()):
            if number > start and line.strip() and not line.startswith("#"):
                cells = line.split(separator)
                at = column.get("type", 1)
                is_message = len(cells) > at and cells[at].strip() == "MSG"
                if is_message is wanted:
                    yield line

    def samples() -> Iterator[str]:
        yield names
        yield from body(False)

    table = scrubbed_table(samples, RULES, job, {(): offset})
    yield next(table)
    # Samples and messages in the order they have in the file.
    messages = body(True)
    for number, line in enumerate(lines()):
        if number > start and line.strip() and not line.startswith("#"):
            cells = line.split(separator)
            at = column.get("type", 1)
            if len(cells) > at and cells[at].strip() == "MSG":
                yield _message(next(messages), separator, column, offset, job)
            else:
                yield next(table)


def _names(lines: Lines, start: int) -> str:
    return next((line for number, line in enumerate(lines()) if number == start), "")


def _beginning(lines: Lines, start: int, separator: str, at: int) -> Decimal:
    times = (
        decimal(line.split(separator)[at])
        for number, line in enumerate(lines())
        if number > start and line.count(separator) >= at and not line.startswith("#")
    )
    return min((t for t in times if t is not None), default=Decimal(0))


def _header(line: str, job: ScrubJob) -> str:
    if not line.strip() or _SECTION.match(line):
        return line
    entry = _ENTRY.match(line)
    if entry is None:
        return "##"
    plain, value = key(entry[2]), entry[4].strip()
    if plain == "date":
        return f"##{entry[1]}{entry[2]}:{entry[3]}{NEUTRAL_DATE}"
    if plain == "subject":
        return f"##{entry[1]}{entry[2]}:{entry[3]}{job.label(value)}"
    if _WITH_NUMBERS.match(plain) and _NUMBERS.match(value):
        return line
    words = re.split(r"[\s,;]+", value.strip(" ,;"))
    if _WITH_WORDS.match(plain) and all(_HEADER_WORD.fullmatch(word) for word in words):
        return line
    job.done["header lines replaced"] += 1
    return "##"


def _message(
    line: str, separator: str, column: dict[str, int], offset: Decimal, job: ScrubJob
) -> str:
    """A message: time, `MSG`, trial and the label of its text; pictures keep their suffix."""
    cells = line.split(separator)
    time = shifted(cells[column.get("time", 0)], offset) or "0"
    at = column.get("trial", column.get("type", 1))
    trial = cells[at].strip() if at < len(cells) and at != column.get("type", 1) else ""
    text = re.sub(r"^#\s*Message:\s*", "", separator.join(cells[at + 1 :]).strip())
    suffix = _PICTURE.search(text)
    if job.keeps(text):
        told = text
    else:
        told = job.label(text[: suffix.start()] if suffix else text)
        told += suffix[0].lower() if suffix else ""
    parts = [time, "MSG", *([trial if trial.isdigit() else "1"] if trial else [])]
    return separator.join([*parts, f"# Message: {told}"])
