"""Texts looked for in every byte of a folder: names of files, contents, packed contents and the
columns and metadata of Parquet files.

Packed bytes are as good as random, and hold any short word where there are enough of them: "anna"
is in every gigabyte. There a find must lie in readable text, so long that chance does not make it;
contents that are unpacked have no such rule.

Names, dates, serial numbers and free text of the recordings, looked for in every byte, file name
and time stamp of a release.

A name that is too short or too common to be looked for in bytes ("1", "gaze") is compared with the
released names alone, and counted in the note.

Whether samples of the recordings are in the release as they were recorded.

Released samples are looked up among the recorded ones by both coordinates, within the precision
that the release is written with. Two kinds of find are red:

* three different recorded samples in a row that are released in a row;
* more single samples than chance gives. Chance is known twice: from how densely gaze lies, and from
  looking up the recordings moved by a degree, where nothing of them can be found but by chance.

Samples in the middle and in the corners, where gaze is clipped, do not count. Where released gaze
lies on few places (rounding to cells), single samples are no evidence, and five in a row are
required. Samples that were resampled or rounded to another grid are found by their rows alone. A
small change of every sample is not detected here; the attackers test that.
"""

from __future__ import annotations

import gzip
import json
import lzma
import math
import re
import unicodedata
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import poisson

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.io.plain.text import FirstRows, sheets
from gazeveil.io.source import Head
from gazeveil.release.verify.files import VerifyCheck

_CHUNK = 1 << 23

#: Longest text that is looked for, in bytes; pieces of a file overlap by as much.
LONGEST = 800

#: Files whose bytes are packed, and whose contents are looked at unpacked.
_PACKED = (".gz", ".zip", ".parquet")
_BYTES = "the bytes of"

#: Packed contents of more than both, in bytes and as a multiple of the file, are not read on: a
#: file of a megabyte can hold a week of reading.
_MOST_BYTES, _MOST_TIMES = 1 << 30, 200

#: How often chance may make a find in packed bytes.
_FALSE_ALARM = 1e-9

_LONG_ENOUGH = 5
_READABLE = re.compile(r"[\t\n\r -~]*")
_READABLE_SHARE = 98 / 256


class _Bytes(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes: ...


class _PackedError(Exception):
    """Why packed contents cannot be looked at."""


def finds(
    folder: Path, texts: Iterable[str], unread: list[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Texts that are in a folder as words of their own, whatever their case, each with the first
    place where it is found. Files whose packed contents cannot be looked at are added to `unread`,
    with the reason: a text could hide there.
    """
    wanted = {k: t for t in texts for k in _written(t.strip()) if len(k) <= LONGEST}
    root = folder.parent if folder.is_file() else folder
    # Beside one file lie its certificate and page, which begin with its name.
    pattern = f"{folder.name}*" if folder.is_file() else "**/*"
    for path in sorted(root.glob(pattern)) if wanted else ():
        name = path.relative_to(root).as_posix()
        packed = path.stat().st_size if path.suffix in _PACKED else 0
        try:
            for place, piece in _pieces(path, name):
                hits = _hits(piece, list(wanted), packed if place == _BYTES else 0)
                found = list(dict.fromkeys(wanted[key] for key in hits))
                yield from ((text, f"{place} {name}") for text in found)
                wanted = {k: t for k, t in wanted.items() if t not in found} if found else wanted
                if not wanted:
                    return
        except _PackedError as error:
            if unread is not None:
                unread.append(f"{name} ({error})")


def _written(text: str) -> set[str]:
    """A text as files may hold it: in UTF-8, Latin-1 and UTF-16, with accents composed or not, as
    JSON, HTML and addresses escape it, in hexadecimal digits and in base64.
    """
    forms = {unicodedata.normalize(form, text) for form in ("NFC", "NFD")}
    forms |= {form.lower() for form in forms} | {form.upper() for form in forms if form.islower()}
    encoded = {t.encode(code, "ignore") for t in forms for code in ("utf-8", "utf-16-le")}
    encoded |= {t.encode("latin-1") for t in forms if all(ord(c) < 256 for c in t)}
    escaped = {json.dumps(t)[1:-1] for t in forms} | {quote(t) for t in forms}
    escaped |= {t.encode("ascii", "xmlcharrefreplace").decode() for t in forms}
    # Digits and letters of a short word are in any number.
    packed = {t.encode("utf-8", "ignore") for t in forms if len(t) >= _LONG_ENOUGH}
    escaped |= {p.hex() for p in packed} | {b64encode(p).decode().rstrip("=") for p in packed}
    # A zero byte at an end belongs to the letter before, in one order of UTF-16 alone.
    return {_plain(e.strip(b"\0")) for e in encoded} | escaped


def _plain(data: bytes) -> str:
    # One character for each byte: bytes of any kind become a text that can be searched.
    return data.decode("latin-1")


def by_chance(word: str, readable: int, size: int) -> float:
    """How often random bytes hold a word, whatever its case, within readable text.

    Parameters
    ----------
    word : str
        With no letter or digit before and after it.
    readable : int
        Length of the readable text around it, with the word itself.
    size : int
        How many random bytes there are.

    Examples
    --------
    >>> by_chance("anna", 4, 10**9) > 0.5, by_chance("anna", 40, 10**9) < 1e-9
    (True, True)
    """
    same = math.prod((2 if c.lower() != c.upper() else 1) / 256 for c in word)
    around = readable - len(word)
    # Half of all bytes part words; the word may lie anywhere in the text.
    return size * same / 4 * (around + 1) * _READABLE_SHARE**around


def _readable(text: str, begin: int, end: int) -> int:
    """Length of the readable text around a part of a text."""
    before = _READABLE.match(text[max(0, begin - LONGEST) : begin][::-1])
    after = _READABLE.match(text, end, end + LONGEST)
    return sum(len(m.group()) for m in (before, after) if m is not None) + end - begin


def _hits(piece: bytes, wanted: list[str], packed: int) -> Iterator[str]:
    """Words that are in a piece; `packed` is the size of a file whose bytes are packed, else 0."""
    text = _plain(piece)
    found = pl.Series([text]).str.extract_many(
        wanted, ascii_case_insensitive=True, overlapping=True
    )
    lowered, lower = {w.lower(): w for w in wanted}, text.lower()
    for hit in {h.lower() for h in found[0]}:
        # "anna" is no find in "joanna1"; "_" and "-" part words.
        whole = rf"(?<![^\W_]){re.escape(hit)}(?![^\W_])"
        if hit in lowered and any(
            (readable := _readable(lower, *m.span())) == len(lower)
            or by_chance(hit, readable, packed) < _FALSE_ALARM
            for m in re.finditer(whole, lower)
        ):
            yield lowered[hit]


def _pieces(path: Path, name: str) -> Iterator[tuple[str, bytes]]:
    yield "the name of", name.encode("utf-8", "surrogateescape")
    if not path.is_file():
        return
    with path.open("rb") as file:
        yield from ((_BYTES, p) for p in _overlapping(file))
    if path.suffix == ".gz" and _begins(path, b"\x1f\x8b"):  # else it is no gzip file
        with gzip.open(path) as unpacked:
            yield from _unpacked("the packed bytes of", unpacked, path)
    elif path.suffix == ".zip" and zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist():
                    yield "a member's name in", member.filename.encode("utf-8", "surrogateescape")
                    with archive.open(member) as unpacked_member:
                        yield from _unpacked("a member of", unpacked_member, path)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, ValueError) as error:
            raise _PackedError("damaged, encrypted or packed in an unusual way") from error
    elif path.suffix == ".parquet":
        yield from (("the columns of", p) for p in _columns(path))


def _begins(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def _unpacked(place: str, file: _Bytes, path: Path) -> Iterator[tuple[str, bytes]]:
    """The pieces of packed contents."""
    most, size = max(_MOST_BYTES, _MOST_TIMES * path.stat().st_size), 0
    try:
        for piece in _overlapping(file):
            yield place, piece
            size += len(piece)
            if size > most:
                raise _PackedError(f"it unpacks to more than {_MOST_TIMES} times its size")
    except (zlib.error, lzma.LZMAError, zipfile.BadZipFile, OSError, EOFError) as error:
        raise _PackedError("its packed contents are damaged") from error


def _overlapping(file: _Bytes) -> Iterator[bytes]:
    rest = b""
    while data := file.read(_CHUNK):
        yield rest + data
        rest = (rest + data)[-LONGEST:]


def _columns(path: Path) -> Iterator[bytes]:
    """Texts in the columns and the metadata of a Parquet file, which its bytes hold packed."""
    try:
        stored = pl.read_parquet_metadata(path)
        frame = pl.scan_parquet(path)
        kinds = frame.collect_schema()
        texts = [n for n, kind in kinds.items() if kind in (pl.String, pl.Categorical)]
        values = [
            str(v) for n in texts for v in frame.select(pl.col(n).unique()).collect()[n].to_list()
        ]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return  # a damaged file; its hash says so
    yield "\n".join([*kinds, *stored.keys(), *stored.values(), *values]).encode("utf-8")


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

#: Words in the files of every release of some format, for any participants.
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
    """Map each text of the recordings that a release must not contain to its kind.

    They are people, sessions of many digits, attributes, and every part of `path` and of the paths
    below it. Texts in columns of tables there, and the (kind, value) findings of an inventory, are
    included.
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
    identifiers: Mapping[str, str],
    kept_fields: Collection[str],
    public: str,
    released_names: Collection[str],
) -> VerifyCheck:
    """Look for identifiers in names and bytes.

    Parameters
    ----------
    folder : Path
        The release.
    identifiers : mapping of text to kind
        What must not be found.
    kept_fields : collection of str
        Fields that were kept by name.
    public : str
        Text that every release of this mechanism holds, and names that may be public; words of it
        are no identifiers.
    released_names : collection of str
        People, stimuli, sessions and tasks of the release.
    """
    excused = set().union(*(_KEPT_KINDS.get(name, set()) for name in kept_fields))
    common = {*re.findall(r"\w+", public.lower()), *_WORDS.findall(public.lower())}
    asked = {t: k for t, k in identifiers.items() if k not in excused and t.lower() not in common}
    looked = {t: k for t, k in asked.items() if searchable(t)}
    unread: list[str] = []
    failures = [
        f"The {looked[text]} '{text}' of the recordings is in {place}."
        for text, place in finds(folder, looked, unread)
    ]
    failures += [f"What is in {file} cannot be looked at." for file in unread]
    words = {w for name in released_names for w in (name, *_WORDS.findall(name))}
    if "person" not in kept_fields:
        same = sorted(t for t in asked if t in words and any(c.isalpha() for c in t))
        same += sorted(t for t, k in asked.items() if k == "name" and t in released_names)
        failures += [
            f"The release has the name '{name}', as the recordings do."
            for name in dict.fromkeys(same)
        ]
    note = f"none of {len(looked)} identifiers is in any file name or byte"
    left = len(identifiers) - len(looked)
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


Keys = NDArray[np.uint64]
Progress = Callable[[Iterable[Recording]], Iterable[Recording]]

#: How near two samples are that count as one, in degrees: of doubles that went through a file as
#: they are, and of text in pixels or rounded degrees.
BINARY_DEG, TEXT_DEG = 1e-9, 5e-4

_RUN, _RUN_ON_CELLS = 3, 5
_NEAR = 64  # released samples between two that count as following one another
_FALSE_ALARM_OF_ROWS = 1e-6
_CONTROL_DEG = 1.0
_BATCH = 20_000_000
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class _Released:
    """Samples of a release, sorted by their keys."""

    keys: Keys
    places: NDArray[np.int64]
    cells: bool
    area_deg2: float


@dataclass
class _Found:
    """What was found so far; `shifted` is what chance finds."""

    single: int = 0
    shifted: int = 0
    expected: float = 0.0
    runs: int = 0
    longest: int = 0


def check_raw_rows(
    released: Cohort, raw: Cohort, precision_deg: float, progress: Progress = lambda r: r
) -> VerifyCheck:
    """Look every recorded sample up among the released ones."""
    found = _Found()
    for number, batch in enumerate(_batches(released)):
        sorted_batch = _sorted(batch, precision_deg)
        recordings: Iterable[Recording] = progress(raw) if number == 0 else raw
        for recording in recordings:
            _look_up(sorted_batch, recording, precision_deg, found)
    failures = []
    if found.runs:
        failures.append(
            f"{found.runs} runs of recorded samples are in the release, the longest of"
            f" {found.longest} samples."
        )
    chance = max(found.expected, found.shifted)
    if found.single and poisson.sf(found.single - 1, chance) < _FALSE_ALARM_OF_ROWS:
        failures.append(
            f"{found.single} recorded samples are in the release, where chance gives {chance:.2g}."
        )
    return VerifyCheck("raw rows", tuple(failures), "no recorded sample is in the release")


def _batches(cohort: Cohort) -> Iterator[list[tuple[Floats, Floats]]]:
    batch: list[tuple[Floats, Floats]] = []
    size = 0
    for recording in cohort:
        kept = recording.valid
        batch.append((recording.x_deg[kept], recording.y_deg[kept]))
        size += len(batch[-1][0])
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if size:
        yield batch


def _sorted(batch: list[tuple[Floats, Floats]], precision_deg: float) -> _Released:
    x, y = (np.concatenate([part[i] for part in batch]) for i in (0, 1))
    telling = ~_public(x, y)
    x, y = x[telling], y[telling]
    if not len(x):
        return _Released(np.empty(0, np.uint64), np.empty(0, np.int64), False, 1.0)
    keys = _keys(x, y, precision_deg, 0.0, 0.0)
    order = np.argsort(keys, kind="stable")
    distinct = len(np.unique(keys))
    # Gaze lies densest in the middle half of each axis: chance is reckoned with that.
    spans = [max(float(np.subtract(*np.quantile(v, (0.75, 0.25)))), 1e-3) for v in (x, y)]
    return _Released(keys[order], order, distinct < len(keys) / 20, 4 * math.prod(spans))


def _public(x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Mark samples that do not count: in the middle, and in the corners where gaze is clipped."""
    corner = ((x == x.min()) | (x == x.max())) & ((y == y.min()) | (y == y.max()))
    middle = ((x == 0) & (y == 0)) | ((x == 180) & (y == 90))
    found: NDArray[np.bool_] = corner | middle
    return found


def _keys(x: Floats, y: Floats, precision_deg: float, dx: float, dy: float) -> Keys:
    """One number for the cell of four precisions that a sample lies in."""
    side = 4 * precision_deg
    with np.errstate(over="ignore"):
        across = np.floor((x + dx) / side).astype(np.int64).view(np.uint64)
        down = np.floor((y + dy) / side).astype(np.int64).view(np.uint64)
        return across * _MIX + down


def _look_up(released: _Released, raw: Recording, precision_deg: float, found: _Found) -> None:
    x, y = raw.x_deg[raw.valid], raw.y_deg[raw.valid]
    if not len(x) or not len(released.keys):
        return
    # A gaze that stands still is one sample: repeats of it prove nothing.
    moved = np.flatnonzero(np.concatenate(([True], (np.diff(x) != 0) | (np.diff(y) != 0))))
    x, y = x[moved], y[moved]
    places = _places(released, x, y, precision_deg)
    runs = _runs(places)
    long = runs[runs >= (_RUN_ON_CELLS if released.cells else _RUN)]
    found.runs += len(long)
    found.longest = max(found.longest, *long.tolist(), 0)
    if released.cells:
        return
    found.single += int((places >= 0).sum())
    found.shifted += int((_places(released, x + _CONTROL_DEG, y, precision_deg) >= 0).sum())
    window = (6 * precision_deg) ** 2
    found.expected += len(released.keys) * len(x) * window / released.area_deg2


def _places(released: _Released, x: Floats, y: Floats, precision_deg: float) -> NDArray[np.int64]:
    """Where in the release each sample is found; -1 for nowhere."""
    places = np.full(len(x), -1, dtype=np.int64)
    for dx in (-precision_deg, precision_deg):
        for dy in (-precision_deg, precision_deg):
            keys = _keys(x, y, precision_deg, dx, dy)
            at = np.searchsorted(released.keys, keys)
            at[at == len(released.keys)] = 0
            hit = released.keys[at] == keys
            places[hit] = released.places[at[hit]]
    return places


def _runs(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lengths of runs of found samples that follow one another in the release too."""
    hits = np.flatnonzero(places >= 0)
    step = np.diff(places[hits])
    follows = (np.diff(hits) == 1) & (step > 0) & (step <= _NEAR)
    return np.diff(np.concatenate(([-1], np.flatnonzero(~follows), [len(follows)])))
