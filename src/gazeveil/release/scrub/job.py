"""What one run of `scrub` knows: the labels it has given, what the user keeps, and what it did.

Cells of tables: numbers that stay, clocks that begin at zero, eyes that share one place.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import BinaryIO, cast

from gazeveil import checks
from gazeveil.errors import FormatError
from gazeveil.io.source import key, read_text
from gazeveil.release.inventory.finding import NUMBER, PLAIN, is_clock, name_pattern, spots

_SAFE = re.compile(r"[A-Za-z0-9#][\w .,+/()#%°²µ\[\]-]{0,60}")
_LABEL_BYTES = 4


class ScrubJob:
    """Labels, choices and counts of one run.

    Equal texts get equal labels in all files of a run, so that a person's files, a stimulus and a
    kind of message stay recognisable as such. Labels come from the operating system's randomness:
    they say nothing about the text, and a second run gives others.

    Parameters
    ----------
    keep_text : iterable of str
        Regular expressions; a text that one of them matches as a whole stays as it is.
    keep_fields : iterable of str
        Columns of people's tables that stay.
    identifiers : iterable of str
        Names and numbers that the inventory found: they may stand in no kept text.
    """

    def __init__(
        self,
        keep_text: Iterable[str] = (),
        keep_fields: Iterable[str] = (),
        identifiers: Iterable[str] = (),
    ) -> None:
        self._keep = []
        for text in keep_text:
            try:
                self._keep.append(re.compile(text))
            except re.error:
                checks.refuse("scrub", "keep_text", "a regular expression", text)
        self.keep_fields = frozenset(name.strip().lower() for name in keep_fields)
        self.identifiers = frozenset(i for i in identifiers if not self.keeps(i))
        self._known = name_pattern(self.identifiers)
        self._labels: dict[str, str] = {}
        self._used: set[str] = set()
        #: What was done -> how often.
        self.done: Counter[str] = Counter()
        #: Texts of the experiment that stay, because they name no person and look like nothing.
        self.kept: set[str] = set()

    def keeps(self, text: str) -> bool:
        """Whether the user has named this text to stay."""
        return any(pattern.fullmatch(text) for pattern in self._keep)

    def label(self, text: str) -> str:
        """The label that stands for a text; empty text stays empty."""
        plain = text.strip()
        if not plain:
            return ""
        if self.keeps(plain):
            self.kept.add(plain)
            return plain
        if plain not in self._labels:
            self._labels[plain] = self._fresh()
        self.done["texts replaced by labels"] += 1
        return self._labels[plain]

    def number(self, text: str) -> str:
        """A label of digits alone, for formats whose file names count people."""
        name = f"number of {text.strip()}"
        if name not in self._labels:
            while (label := str(10**5 + secrets.randbelow(9 * 10**5))) in self._used:
                pass
            self._used.add(label)
            self._labels[name] = label
        self.done["texts replaced by labels"] += 1
        return self._labels[name]

    def _fresh(self) -> str:
        """A label that no other text has, and that is not taken for a date by its digits."""
        while (word := secrets.token_hex(_LABEL_BYTES)).isdecimal() or f"id{word}" in self._used:
            pass
        self._used.add(f"id{word}")
        return f"id{word}"

    def event(self, text: str, words: frozenset[str]) -> str:
        """A word that the vendor's software writes, or the label of any other text."""
        plain = text.strip()
        return plain if plain.lower() in words or plain.lower() in PLAIN else self.label(plain)

    def is_harmless(self, text: str) -> bool:
        """Whether a short text holds no name and looks like no date, device number or path."""
        if not _SAFE.fullmatch(text) or next(spots(text), None) is not None:
            return False
        return self._known is None or self._known.search(text) is None

    def word(self, text: str) -> str:
        """A term of a sidecar or of a column: it stays where it is harmless."""
        plain = text.strip()
        if self.is_harmless(plain):
            self.kept.add(plain)
            return plain
        return self.label(plain)

    def leak(self, text: str) -> str | None:
        """An identifier that a finished text still holds."""
        match = None if self._known is None else self._known.search(text)
        return None if match is None else match[0]

    @property
    def key(self) -> dict[str, str]:
        """Text -> label: who is who, for the holder of the raw files alone."""
        return dict(self._labels)


#: 2000-01-01 00:00:00 UTC: the time that every file of a copy has.
NEUTRAL_S = 946_684_800


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, zipped where the name ends in `.gz`; neither the archive nor the file says
    when.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as archive:
                _write(cast(BinaryIO, archive), lines)
        else:
            _write(raw, lines)


def _write(file: BinaryIO, lines: Iterable[str]) -> None:
    for line in lines:
        file.write(line.encode("utf-8") + b"\n")


def forget_times(folder: Path) -> None:
    """Give every file and folder the same time of change and of access."""
    for place in sorted(folder.rglob("*"), reverse=True):
        os.utime(place, (NEUTRAL_S, NEUTRAL_S))
    os.utime(folder, (NEUTRAL_S, NEUTRAL_S))


_LONG = re.compile(r"^\s*[-+]?\d{10,}")
_POINT = re.compile(r"^\s*[(\[]([^()\[\]]{1,120})[)\]]\s*$")
#: How trackers write an eye that they did not see.
_LOST = (Decimal(0), Decimal(-1))


def decimal(cell: str) -> Decimal | None:
    """A number with every digit it has, or None."""
    if not NUMBER.match(cell):
        return None
    try:
        return Decimal(cell.strip().replace(",", "."))
    except InvalidOperation:
        return None


def numbers_in(cell: str) -> list[str] | None:
    """The numbers of a point that stands in one cell, as `(0.5, 0.25)`; None for anything else.

    Examples
    --------
    >>> numbers_in("(0.5, 0.25)"), numbers_in("0.5"), numbers_in("(0.5, Anna)")
    (['0.5', '0.25'], None, None)
    """
    point = _POINT.match(cell)
    parts = [] if point is None else [part.strip() for part in point[1].split(",")]
    whole = 2 <= len(parts) <= 3 and all(
        p.lower() == "nan" or (NUMBER.match(p) and not _LONG.match(p)) for p in parts
    )
    return parts if whole else None


def checked(cell: str, words: frozenset[str] = frozenset()) -> str | None:
    """A measured number or a word of the tracker; None for anything else.

    A whole number of ten digits or more is a clock or an identifier, never gaze.
    """
    plain = cell.strip()
    if not plain or plain.lower() in PLAIN or plain.lower() in words:
        return cell
    if NUMBER.match(plain) and not _LONG.match(plain):
        return cell
    return cell if numbers_in(plain) is not None else None


def presence(cell: str) -> str | None:
    """0 for a number that is zero, 1 for every other one; None for what is no number."""
    if not cell.strip():
        return cell
    number = decimal(cell)
    return None if number is None else str(int(number != 0))


def shifted(cell: str, offset: Decimal) -> str | None:
    """A time from the offset on, with the digits it had; None for what is no number.

    Examples
    --------
    >>> shifted("1629390345036471431", Decimal("1629390345036471430")), shifted("", Decimal(1))
    ('1', '')
    """
    if cell.strip().lower() in PLAIN or not cell.strip():
        return cell
    time = decimal(cell)
    if time is None:
        return None
    text = f"{time - offset:f}"
    return text.replace(".", ",") if "," in cell else text


def midpoint(left: str, right: str) -> tuple[str, str]:
    """One coordinate of both eyes as the place between them, so that their distance is not written
    down. Directions of both eyes and a gaze point in space still tell it.

    Where one eye was not seen, the other's own place would give half the distance away when the
    first comes back: then both count as not seen.
    """
    one, other = numbers_in(left), numbers_in(right)
    if one is not None and other is not None and len(one) == len(other):
        middle = [midpoint(a, b)[0] or "nan" for a, b in zip(one, other, strict=True)]
        text = f"({', '.join(middle)})"
        return text, text
    values = decimal(left), decimal(right)
    if values[0] is None or values[1] is None:
        return "", ""
    if values[0] in _LOST or values[1] in _LOST:
        lost = left if values[0] in _LOST else right
        return lost, lost
    digits = max(len(cell.strip().replace(",", ".").partition(".")[2]) for cell in (left, right))
    text = f"{(values[0] + values[1]) / 2:.{digits}f}"
    text = text.replace(".", ",") if "," in left else text
    return text, text


_BRACKET = re.compile(r"([\[(])([^\[\]()]*)([\])])")
#: Characters of the longest part that is looked at: no vendor writes more.
_LONGEST = 60
_STRANGE = re.compile(r"[^ -~°²µμ]|[\"'`<>|\\]")

#: What may follow the part of a name that a rule knows, as `left`, `x` and `mm` do.
_WORDS = frozenset(
    """quaternion timestamps timestamp duration diameter position rotation velocity amplitude
    direction magnitude horizontal vertical normalized normalised confidence filtered original
    validity average elevation azimuth absolute relative mapped scaled quality openness tracking
    eyeball center centre origin height length angle index event frame start value width point
    pupil gaze left right coord norm normal mean peak size type data time valid area hit surface
    surf srf world axis eye eyes end first last min max avg std raw deg rad dacs adcs mcs hucs ucs
    snorm pos mm px ms us ns hz id no on 2d 3d major minor ratio lid aperture top bottom upper
    lower method response camera model circle ellipse sphere projected theta phi rel dm
    glasses""".split()  # noqa: SIM905 - a list of words
)
_WORD = f"(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})"
# One number and one letter at most, because a name could be spelled from letters.
_REST = re.compile(rf"{_WORD}*(?:\d{{1,2}})?[xyzwablr]?{_WORD}*")
_UNIT = re.compile(
    r"(?:mm|cm|m|px|pix|pixels?|deg|degrees?|rad|s|ms|us|ns|hz|g|[µμ][st]|°|%|²|\^?2|100ns|dacs"
    r"|adcs|mcs|hucs|ucs|snorm|norm|normali[sz]ed|per|hh:mm:ss|arbitrary|units?|eye|image|left"
    r"|right|x|y|z|f=10000000|[\s,._°/-])*",
    re.IGNORECASE,
)


def readable_rest(rest: str, name: str) -> bool:
    """Whether the part of a column's key that a rule does not name is made of vendors' words.

    Parameters
    ----------
    rest : str
        What follows the part that the rule knows, in the key of the name.
    name : str
        The name itself; brackets in it are looked at by :func:`public_name`.

    Examples
    --------
    >>> readable_rest("leftx", "Gaze point left X"), readable_rest("ofanna", "Saccade of Anna")
    (True, False)
    """
    inside = "".join(key(match[2]) for match in _BRACKET.finditer(name))
    outside = rest[: len(rest) - len(inside)] if inside and rest.endswith(inside) else rest
    return len(outside) <= _LONGEST and _REST.fullmatch(outside) is not None


def public_name(name: str, job: ScrubJob) -> str:
    """A name whose column stays: brackets that hold no unit get a label, strange signs go.

    Examples
    --------
    >>> public_name("Gaze point left X [DACS px]", ScrubJob())
    'Gaze point left X [DACS px]'
    """

    def bracket(match: re.Match[str]) -> str:
        unit = _UNIT.fullmatch(match[2]) if len(match[2]) <= _LONGEST else None
        return match[0] if unit else f"{match[1]}{job.label(match[2])}{match[3]}"

    plain = _STRANGE.sub("", _BRACKET.sub(bracket, name)).strip()
    # The rules know what is left; only one that also holds an identifier becomes a label.
    base = _BRACKET.sub("", plain).strip()
    return plain if not base or job.is_harmless(base) else job.label(plain)


#: `keep` numbers and harmless words; `label` a text; `removed` writes that word; `zero` the number.
Rules = Mapping[str, object]

_LARGEST_WHOLE = 10**9


def load_json(path: Path) -> object:
    """The document of a file.

    Raises
    ------
    FormatError
        For a file that is no JSON.
    """
    try:
        return json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise FormatError(path, "it is not whole JSON", "Copy it again.") from error


def dump_json(value: object) -> list[str]:
    """The lines of a document."""
    return json.dumps(value, indent=1, ensure_ascii=False).split("\n")


def scrubbed_document(value: object, rules: Rules, job: ScrubJob) -> dict[str, object]:
    """The keys of an object that rules name, each as its rule says."""
    result: dict[str, object] = {}
    for name, inner in value.items() if isinstance(value, dict) else ():
        rule = rules.get(name)
        if rule is None:
            job.done["keys left out"] += 1
        elif isinstance(rule, Mapping):
            result[name] = scrubbed_document(inner, rule, job)
        elif rule == "keep":
            result[name] = kept(inner, job)
        elif rule == "label":
            result[name] = job.label(str(inner)) if inner is not None else None
        else:
            result[name] = 0 if rule == "zero" else "removed"
    return result


def kept(value: object, job: ScrubJob) -> object:
    """Numbers as they are, harmless words, and lists of both; a clock becomes 0."""
    if isinstance(value, list):
        return [kept(inner, job) for inner in value]
    if isinstance(value, str):
        return value if value == "" else job.word(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        whole_number = isinstance(value, int) and abs(value) > _LARGEST_WHOLE
        return 0 if whole_number or is_clock(value) else value
    return None
