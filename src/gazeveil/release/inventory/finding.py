"""One finding, all findings of a folder, and how texts, fields and names are found out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from gazeveil.io.source import key

#: Kind -> (what a release does with it, what `scrub` does with it).
KINDS: dict[str, tuple[str, str]] = {
    "date": ("dropped", "replaced"),
    "clock": ("aligned", "aligned"),
    "serial": ("dropped", "replaced"),
    "name": ("replaced", "replaced"),
    "e-mail": ("dropped", "dropped"),
    "path": ("dropped", "dropped"),
    "free text": ("dropped", "replaced"),
    "rate": ("aligned", "a person should look"),
    "attribute": ("replaced", "dropped"),
    "eye distance": ("dropped", "dropped"),
    "height": ("dropped", "dropped"),
    "screen": ("a person should look", "a person should look"),
    "device model": ("dropped", "a person should look"),
    "file name": ("replaced", "replaced"),
    "file time": ("dropped", "replaced"),
}

#: What may be named in `keep` -> the kind that then goes out as it is.
KEPT_BY = {
    "person": "name",
    "times": "clock",
    "rate": "rate",
    "attributes": "attribute",
    "stimulus": "free text",
    "task": "free text",
    "messages": "free text",
}

_LONGEST = 60


@dataclass(frozen=True)
class Finding:
    """One thing in a file that says who, when, where or with what.

    Parameters
    ----------
    file : str
        Path below the folder that was asked for.
    field : str
        Where in the file: a column, a key of the header, `line 12`, `file name`.
    kind : str
        One of :data:`KINDS`.
    example : str
        The value, or the first of several; cut after 60 characters.
    count : int
        How often it was seen in the lines looked at.
    values : tuple of str
        Distinct values, uncut; the first 1,000 of them.
    kept : bool
        Whether the user has named it to go out as it is.
    """

    file: str
    field: str
    kind: str
    example: str
    count: int = 1
    values: tuple[str, ...] = ()
    kept: bool = False

    @property
    def in_release(self) -> str:
        """Treatment by `publish` and `protect`."""
        return "kept by name" if self.kept else KINDS[self.kind][0]

    @property
    def in_scrub(self) -> str:
        """Treatment by `scrub`."""
        return KINDS[self.kind][1]

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "file": self.file,
            "field": self.field,
            "kind": self.kind,
            "example": self.example,
            "count": self.count,
            "in_release": self.in_release,
            "in_scrub": self.in_scrub,
        }


@dataclass(frozen=True)
class Inventory:
    """All findings of a file or folder.

    Parameters
    ----------
    findings : tuple of Finding
        In the order of files and lines.
    files : int
        How many files were looked at.
    lines : int
        How many lines of text were looked at.
    all_text : bool
        Whether every line was; otherwise headers and samples of the bodies were.
    not_opened : tuple of str
        Files whose content could not be looked at.
    """

    findings: tuple[Finding, ...]
    files: int
    lines: int
    all_text: bool
    not_opened: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def of(self, *kinds: str) -> tuple[Finding, ...]:
        """The findings of some kinds."""
        return tuple(f for f in self.findings if f.kind in kinds)

    def keeping(self, keep: Iterable[str]) -> Inventory:
        """The same findings, where those that `keep` names go out as they are.

        Parameters
        ----------
        keep : iterable of str
            `person`, `times`, `rate`, `attributes`, `stimulus`, `task`, `messages`, or the name of
            one field.
        """
        names = set(keep)
        kinds = {KEPT_BY[name] for name in names if name in KEPT_BY}
        return replace(
            self,
            findings=tuple(
                replace(f, kept=f.kind in kinds or f.field in names) for f in self.findings
            ),
        )

    def summary(self) -> tuple[Finding, ...]:
        """One finding per field and kind, with the files counted: `12 files` stands for names."""
        groups: dict[tuple[str, str, bool], list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault((finding.field, finding.kind, finding.kept), []).append(finding)
        order = list(KINDS)
        rows = [
            replace(
                found[0],
                file=found[0].file if len(found) == 1 else f"{len(found)} files",
                count=sum(f.count for f in found),
            )
            for found in groups.values()
        ]
        return tuple(sorted(rows, key=lambda f: order.index(f.kind)))

    def sentence(self) -> str:
        """How much was looked at."""
        how = "all text" if self.all_text else "headers and samples of the bodies"
        return (
            f"{len(self.findings)} findings in {self.files} files ({self.lines:,} lines looked at:"
            f" {how})."
        )

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "files": self.files,
            "lines": self.lines,
            "all_text": self.all_text,
            "not_opened": list(self.not_opened),
            "findings": [f.to_dict() for f in self.findings],
        }


def shorten(text: str) -> str:
    """A value as an example: one line, at most 60 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


NUMBER = re.compile(r"^\s*[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?\s*$")

_MOST_VALUES = 1000
#: Words of trackers that say nothing about a person.
PLAIN = frozenset(
    """true false yes no valid invalid partial fixation saccade unclassified undefined blink noise
    eyesnotfound pursuit smoothpursuit left right both none null nan na n/a - . eye tracker unknown
    mouse gyro accelerometer ok cyclopean smp fix sacc stimulus world head pass removed gaze imu
    syncport in out recording.begin recording.end recording""".split()  # noqa: SIM905 - words
)


class FileNotes:
    """Findings in one file, named by its path below the given folder."""

    def __init__(self, file: str) -> None:
        self.file = file
        #: (field, kind) -> distinct values, of which the first ones are kept, and count.
        self.seen: dict[tuple[str, str], tuple[dict[str, None], int]] = {}
        #: Values that name people.
        self.names: set[str] = set()

    def add(self, field: str, kind: str, example: str) -> None:
        """Note one value."""
        values, count = self.seen.get((field, kind), ({}, 0))
        if len(values) < _MOST_VALUES:
            values[example.strip()] = None
        self.seen[field, kind] = (values, count + 1)
        if kind == "name":
            self.names.add(example.strip())

    def value(self, field: str, text: str, free: bool = True, name: str | None = None) -> None:
        """Note a value by its field's name, and by what it looks like.

        Parameters
        ----------
        field : str
            Column or key.
        text : str
            The value.
        free : bool
            Whether a text in a field of no known name is free text.
        name : str, optional
            What decides the kind, where that is not the whole field: the last key of a path.
        """
        plain = text.strip()
        if not plain or plain.lower() in PLAIN:
            return
        kind = kind_of(field if name is None else name)
        number = NUMBER.match(plain) is not None
        if number and kind != "clock" and _clock(plain):
            self.add(field, "clock", plain)
        if kind is not None:
            self.add(field, kind, plain)
        if number:
            return
        looks = self.text(field, plain, skip=kind)
        if kind is None and not looks and free:
            self.add(field, "free text", plain)

    def text(self, field: str, text: str, skip: str | None = None) -> bool:
        """Note what a text looks like, in whole or in part; False where it looks like nothing."""
        kinds = [(spot.kind, spot.text) for spot in spots(text)]
        for kind, found in kinds:
            if kind != skip:
                self.add(field, kind, found)
        return bool(kinds)

    def findings(self) -> list[Finding]:
        """All of them, in the order they were met."""
        return [
            Finding(self.file, field, kind, shorten(next(iter(values))), count, tuple(values))
            for (field, kind), (values, count) in self.seen.items()
        ]


def _clock(text: str) -> bool:
    try:
        return is_clock(float(text.replace(",", ".")))
    except ValueError:
        return False


_RULES: tuple[tuple[str, str], ...] = (
    ("eye distance", r"^ipd|ipd(mm|m|cm)?$|interpupil|interocular|(pupil(lary)?|eye)distance"),
    ("eye distance", r"(eye|gaze)origin|eyepos(ition)?(left|right|[xyz]|3d)|eyeball.*center"),
    ("eye distance", r"^[lr]eyepos|eyecenter\d?3d|basep(oin)?t|^gazepos[xyz]|convergencedistance"),
    (
        "attribute",
        r"^age(years)?$|(participant|subject|worker|user|variable)age$|years?old|gender|^sex$"
        r"|handed|dominan(t|ce)|birth|^dob$|ethnic",
    ),
    ("attribute", r"^race$|national|education|occupation|diagnos|medica|weight|^iq$|country|city$"),
    ("attribute", r"vision|acuity|glasses(worn)?$|lenses|lang(uage)?s?$|fluency|mothertongue"),
    ("screen", r"screen|display|monitor|resolution|stimulusdimension|calibrationarea|gazecoords"),
    ("screen", r"^(width|height)(px|mm)$|^distancemm$|headdistance|^fov\d"),
    ("height", r"^(body|standing|person|participant|user)?height(cm|m|mm)?$|stature"),
    ("height", r"(head|camera|hmd|torso)position\.?y|^positiony$|headpos(ition)?y"),
    ("serial", r"serial|uuid|guid$|androidid|deviceid|hardwareid|macaddress|licen[cs]e|^lid$"),
    ("serial", r"(recording|section|session|worker|phone|app|workspace|account)id$|cameraconfig"),
    ("serial", r"^sreb|systemid|ipaddress|hostname|computername|^imei"),
    ("e-mail", r"e?mail(address)?$"),
    ("path", r"path|folder|directory|(file|media)name$|convertedfrom|^file$|sourcefile|^url$"),
    (
        "name",
        r"participant(?!type|group)|subject|wearer|person|observer|^user|username|operator"
        r"|experimenter",
    ),
    ("name", r"recordedby|author|firstname|lastname|surname|fullname|researcher|moderator|owner"),
    ("name", r"institution|project(name)?$|contact|investigator|^name$|recordingname|worker"),
    ("date", r"date$|^date|created|modified|acqtime|exportdate|datetime"),
    ("clock", r"time|clock|utc|^timeline$|ticks|uptime|^t(s|ms|us|ns)?$|(^|oculo|unity)ts$|tstart"),
    ("rate", r"sampl(e|ing)(rate|frequency)|framerate|^rate$|^fps$|^hz$|frequency$|refreshrate"),
    ("device model", r"model|manufacturer|^device|tracker|^camera$|framename|firmware"),
    ("device model", r"hardware|software|version|^system|platform|^sensor$|^source$"),
    ("free text", r"note|comment|message|^msg$|annotation|description|remark|^tags?$|^text$"),
)
_COMPILED = tuple((kind, re.compile(rule)) for kind, rule in _RULES)


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str | None:
    """The kind of finding that a field of this name holds, or None.

    Examples
    --------
    >>> kind_of("Participant name"), kind_of("ipd_mm"), kind_of("Gaze point X (DACS px)")
    ('name', 'eye distance', None)
    """
    plain = key(name)
    return next((kind for kind, rule in _COMPILED if rule.search(plain)), None)


_MONTH = (
    r"(?:Jan|Feb|Mar|Mär|Mrz|Apr|May|Mai|Jun|Jul|Aug|Sep|Sept|Oct|Okt|Nov|Dec|Dez)[a-zä]{0,7}\.?"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?:19|20)\d\d"
_OF_DAY = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?"

_DATES = (
    # 2017-10-13-10-27, 2023/03/08 09:25:20, 2023-03-08T09:25:20.5Z, 2023_03_08
    rf"(?<!\d){_YEAR}([-/._])(?:0?[1-9]|1[0-2])\1{_DAY}(?!\d)"
    r"(?:[T_ -]\d\d?[-:h_]?\d\d?(?:[-:m_]?\d\d?)?(?:[.,]\d+)?Z?)?",
    # 08.03.2023, 3/8/2023
    rf"(?<![\d.]){_DAY}([./-])(?:0?[1-9]|[12]\d|3[01])\1{_YEAR}(?![\d.]\d)(?:\s+{_OF_DAY})?",
    # 20230308, 20230308T092520
    rf"(?<![\d.]){_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[T_-]\d{{4,6}})?(?![\d.])",
    # Wed Mar  8 09:25:20 2023, Mar 8, 2023, 8 March 2023
    rf"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s+)?\b{_MONTH}\s+{_DAY},?\s+"
    rf"(?:{_OF_DAY}\s+)?{_YEAR}\b",
    rf"\b{_DAY}\.?\s+{_MONTH}\s+{_YEAR}\b(?:\s+{_OF_DAY})?",
)

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("e-mail", re.compile(r"(?<![\w.%+-])[\w.%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")),
    (
        "path",
        re.compile(
            r"(?:https?|file)://[^\s\"'<>]+|\b[A-Za-z]:[\\/][^\s\"'<>|,;]+|\\\\[\w.-]+\\[^\s\"',;]+"
            r"|(?<![\w/.:<>\])])~?/(?:[\w.+@ -]+/)+[\w.+@-]*[\w]"
        ),
    ),
    *(("date", re.compile(shape)) for shape in _DATES),
    ("clock", re.compile(rf"(?<![\d:.]){_OF_DAY}(?![\d:])")),
    (
        "attribute",
        re.compile(
            r"(?<![a-z])aged?\W{1,3}\d{1,3}(?:\.\d+)?|\b\d{1,3}(?:\.\d+)?[- ]years?\b", re.I
        ),
    ),
    (
        "eye distance",
        re.compile(r"(?<![a-z])(?:ipd|interpupillary distance)\D{1,6}\d+(?:\.\d+)?", re.IGNORECASE),
    ),
    (
        "serial",
        re.compile(
            # UUID; MAC; CLU-DBC07, TG03B-080200004381; licence of Experiment Builder; 16 hex digits
            r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
            r"|\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"
            r"|\b(?=[A-Z0-9]*[A-Z])[A-Z0-9]{2,12}-(?=[A-Z0-9]*\d)[A-Z0-9]{4,}\b"
            r"|\bLID:\w+"
            r"|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b"
        ),
    ),
)

# A sign is no part of a clock; a dash between a word and a clock is no sign.
_DIGITS = re.compile(r"(?<![\w.])(?<!(?<!\w)-)\d{9,19}(?:\.\d+)?(?![\w])")
#: Digits before the point -> (from, to): the years 2000 to 2040 in seconds, ms, us and ns since
#: 1970; milliseconds and 100 ns since the year 1 (.NET, Unity); 100 ns since 1601 (Windows).
_CLOCKS = (
    (946_684_800, 2_208_988_800),
    (946_684_800_000, 2_208_988_800_000),
    (946_684_800_000_000, 2_208_988_800_000_000),
    (946_684_800_000_000_000, 2_208_988_800_000_000_000),
    (63_082_281_600_000, 64_344_585_600_000),
    (630_822_816_000_000_000, 643_445_856_000_000_000),
    (125_911_584_000_000_000, 138_534_624_000_000_000),
)


class Spot(NamedTuple):
    """A text of a kind, and where it stands."""

    kind: str
    text: str
    start: int
    end: int


def is_clock(number: float) -> bool:
    """Whether a number is a time of the years 2000 to 2040 in one of the usual clocks."""
    return any(low <= number < high for low, high in _CLOCKS)


def spots(text: str) -> Iterator[Spot]:
    """Find identifiers in a text, each character once: a date inside a path is part of the path.

    Examples
    --------
    >>> [(s.kind, s.text) for s in spots("anna@lab.org on 2023-03-08, 1629390345499163431")]
    [('e-mail', 'anna@lab.org'), ('date', '2023-03-08'), ('clock', '1629390345499163431')]
    """
    taken: list[Spot] = []
    for kind, shape in _SHAPES:
        for match in shape.finditer(text):
            if match[0].strip() and not _overlaps(taken, match.start(), match.end()):
                taken.append(Spot(kind, match[0], match.start(), match.end()))
    for match in _DIGITS.finditer(text):
        if is_clock(float(match[0])) and not _overlaps(taken, match.start(), match.end()):
            taken.append(Spot("clock", match[0], match.start(), match.end()))
    yield from sorted(taken, key=lambda s: s.start)


def _overlaps(taken: list[Spot], start: int, end: int) -> bool:
    return any(start < spot.end and spot.start < end for spot in taken)


_SHORTEST, _LONG_NUMBER = 3, 8
_LETTER = re.compile(r"[^\W\d_]")
_PART = re.compile(r"[^\W\d_]{4,}")
#: Two or three words with capitals: first name and surname.
_FULL_NAME = re.compile(r"[^\W\d_][\w.'-]*(?: [^\W\d_][\w.'-]*){1,2}")
_COMMON = frozenset({"recording", "study", "project", "test", "image", "gaze", "labor", "trial"})


def name_pattern(names: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that finds any of some names as a word of its own, or None without names.

    Names of fewer than three characters and numbers of fewer than eight would be found everywhere
    and are left out. Of a first name and a surname, each of at least four letters is looked for as
    well.

    Examples
    --------
    >>> pattern = name_pattern(["Anna Schmidt", "7"])
    >>> [m[0] for m in pattern.finditer("17 schmidt_run2, Anna Schmidt, Annalena")]
    ['schmidt', 'Anna Schmidt']
    """
    words: set[str] = set()
    for name in names:
        plain = name.strip()
        if len(plain) >= _LONG_NUMBER or (len(plain) >= _SHORTEST and _LETTER.search(plain)):
            words.add(plain)
            if _is_full_name(plain):
                words.update(_PART.findall(plain))
    if not words:
        return None
    longest_first = sorted(words, key=lambda w: (-len(w), w))
    # A blank of a name is often gone or another sign in file names.
    inside = "|".join(r"[\W_]{0,2}".join(map(re.escape, word.split())) for word in longest_first)
    return re.compile(rf"(?<![^\W_])(?:{inside})(?![^\W_])", re.IGNORECASE)


def _is_full_name(text: str) -> bool:
    words = text.split()
    return (
        _FULL_NAME.fullmatch(text) is not None
        and all(word[0].isupper() for word in words)
        and not any(word.lower() in _COMMON for word in words)
    )
