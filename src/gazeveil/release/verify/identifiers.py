"""Names, dates, serial numbers and free text of the recordings, looked for in every byte, file name
and time stamp of a release.

A name that is too short or too common to be looked for in bytes ("1", "gaze") is compared with the
released names alone, and counted in the note.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.io.plain.text import FirstRows, sheets
from gazeveil.io.source import Head
from gazeveil.release.verify.byte_search import finds
from gazeveil.release.verify.files import VerifyCheck

_LONGEST = 200
_SHORTEST, _FEWEST_DIGITS = 3, 6
_WORDS = re.compile(r"[^\W\d_]{2,}")

_SHORTEST_MESSAGE = 8

#: From this time on a clock counts from a date, not from the start of a recording (2001).
_CLOCK_NS = 10**18

#: Kinds of findings of the inventory whose values identify by themselves.
KINDS = ("name", "date", "serial", "e-mail", "path", "free text", "file name")

#: Names of `keep` -> kinds that are then released on request.
_KEPT_KINDS = {
    "person": {"name"},
    "session": {"session"},
    "times": {"date", "clock"},
    "rate": {"rate"},
    "messages": {"message", "free text"},
    "metadata": {"metadata"},
    "stimulus": {"free text"},
    "task": {"free text"},
    "attributes": {"attribute"},
}

#: Names of files that every release of some format has.
_OUR_NAMES = re.compile(
    r"(recordings/)?\d+(\.events)?(\.parquet|\.[ct]sv(\.gz)?)?|cohort\.json|people\.[ct]sv"
    r"|participants\.(tsv|json)|dataset_description\.json|dataset\.toml|README(\.md)?"
)

#: Words of the files that every release of some format has, whoever was recorded.
FORMAT_WORDS = """
acq ahead angle around as asked attack attacker attackers axis battery beh between bidsignore
bidsversion blink both bytes can cell cells centre cohort column columns coordinate counts csv
cyclopean dataset datasettype degrees derivative description dictionary directions distance do
down downwards duration empty encoding event events eyetrack first fixation full
gazeveilrecording generatedby gz hash height id index keep kind known label laid last levels
line lists longitude looked looking lost map maps missing mm nanoseconds noise none ns number
onset origin parquet participant participants people person physio physiotype programs protect
protected pseudonym publication publish pursuit px readme recordedeye recording recordings
repetitions row rows saccade sample samplecoordinatesystem samplecoordinateunits samples
samplingfrequency says screen separator ses session share sight space sphere starttime stimulus
stimuluspresentation straight strong sub table task taskname test text theirs timestamp toml
tracker train trial tsv type undefined units unknown utf valid value verb visioncorrection weak
where width world zenith
"""


def identifiers(
    raw: Cohort, path: Path | None, findings: Iterable[tuple[str, str]] = ()
) -> dict[str, str]:
    """Texts of the recordings that nobody may find in a release -> what each is: people, sessions
    of many digits, attributes, every part of `path` and of the paths below it, every text in a
    column of a table there, and the (kind, value) findings of an inventory.
    """
    found: dict[str, str] = {}
    for kind, value in findings:
        if kind in KINDS and (kind != "free text" or (len(value) >= 20 and " " in value)):
            found.setdefault(value, kind)
    for item in raw.items:
        found.setdefault(item.person, "name")
        if sum(c.isdigit() for c in item.session) >= _FEWEST_DIGITS:
            found.setdefault(item.session, "session")
    for attributes in raw.people.values():
        for value in _strings(attributes):
            found.setdefault(value, "attribute")
    if path is not None:
        for part in _parts(path):
            found.setdefault(part, "part of a path")
        for cell in _cells(path):
            found.setdefault(cell, "cell")
    return {t: k for t, k in found.items() if not _OUR_NAMES.fullmatch(t)}


def _parts(path: Path) -> Iterator[str]:
    """Names of folders and files, whole and word by word."""
    below = () if path.is_file() else (p.relative_to(path) for p in path.rglob("*"))
    for name in {part for place in (path, *below) for part in place.parts}:
        yield name.split(".")[0]
        yield from _WORDS.findall(name)


def _cells(path: Path) -> Iterator[str]:
    """Texts in the tables of a folder, whole and word by word."""
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        try:
            first = FirstRows.of(Head.of(file), {}) if file.is_file() else None
            if first is None or not first.is_headed:
                continue
            for block in sheets(file):
                for name in block.names:
                    for cell in set(block.words(name)):
                        if len(cell) <= _LONGEST and any(c.isalpha() for c in cell):
                            yield cell
                            yield from _WORDS.findall(cell)
        except (FormatError, OSError):
            continue  # no table after all; the inventory looks at other texts


def texts_of(recording: Recording) -> Iterator[tuple[str, str]]:
    """Clock values, messages and metadata of one recording, as (text, kind)."""
    if len(recording) and recording.t_ns[0] >= _CLOCK_NS:
        first = int(recording.t_ns[0])
        for ticks in (1, 1_000, 1_000_000, 1_000_000_000):
            yield str(first // ticks), "clock"
    if math.isfinite(recording.rate_hz):
        yield repr(float(recording.rate_hz)), "rate"  # of many digits alone, see `searchable`
    for message in recording.messages:
        if len(message.text) >= _SHORTEST_MESSAGE:
            yield message.text, "message"
    for value in _strings(recording.metadata):
        if len(value) >= _FEWEST_DIGITS and any(c.isdigit() for c in value):
            yield value, "metadata"


def _strings(value: object) -> Iterator[str]:
    """Texts inside metadata, and numbers as they are written (an eye distance, a height)."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, float):
        yield repr(value)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)


def searchable(text: str) -> bool:
    """Whether a text is long and particular enough that finding it in bytes means something."""
    letters = sum(c.isalpha() for c in text)
    digits = sum(c.isdigit() for c in text)
    return _SHORTEST <= len(text.strip()) <= _LONGEST and (letters >= 3 or digits >= _FEWEST_DIGITS)


def check_identifiers(
    folder: Path,
    wanted: Mapping[str, str],
    kept: Collection[str],
    public: str,
    released_names: Collection[str],
) -> VerifyCheck:
    """Look for identifiers in names and bytes.

    Parameters
    ----------
    folder : Path
        The release.
    wanted : mapping of text to kind
        What must not be found.
    kept : collection of str
        Fields that were kept by name.
    public : str
        Text that every release of this mechanism holds, and names that may be public; words of it
        are no identifiers.
    released_names : collection of str
        People, stimuli, sessions and tasks of the release.
    """
    excused = set().union(*(_KEPT_KINDS.get(name, set()) for name in kept))
    common = {*re.findall(r"\w+", public.lower()), *_WORDS.findall(public.lower())}
    asked = {t: k for t, k in wanted.items() if k not in excused and t.lower() not in common}
    looked = {t: k for t, k in asked.items() if searchable(t)}
    unread: list[str] = []
    failures = [
        f"The {looked[text]} '{text}' of the recordings is in {place}."
        for text, place in finds(folder, looked, unread)
    ]
    failures += [f"What is in {file} cannot be looked at." for file in unread]
    words = {w for name in released_names for w in (name, *_WORDS.findall(name))}
    if "person" not in kept:
        same = sorted(t for t in asked if t in words and any(c.isalpha() for c in t))
        same += sorted(t for t, k in asked.items() if k == "name" and t in released_names)
        failures += [
            f"The release has the name '{name}', as the recordings do."
            for name in dict.fromkeys(same)
        ]
    note = f"none of {len(looked)} identifiers is in any file name or byte"
    left = len(wanted) - len(looked)
    if left:
        note += f"; {left} too short or too common to be looked for in bytes"
    return VerifyCheck("identifiers", tuple(failures), note)


def check_file_times(folder: Path, path: Path) -> VerifyCheck:
    """No file of the release has the time stamp of a recording's file."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    stamps = {p.stat().st_mtime_ns for p in files}
    failures = tuple(
        f"{p.name} has the time stamp of a file of the recordings."
        for p in ([folder] if folder.is_file() else sorted(folder.rglob("*")))
        if p.is_file() and p.stat().st_mtime_ns in stamps
    )
    return VerifyCheck("time stamps", failures, "no file has that of a recording")
