"""SMI text exports: raw data with a header of `##` lines, as BeGaze and the IDF converter of iView
X write it.

A header of `## ` lines (`Sample Rate`, `Subject`, `Calibration Area` in pixels, `Stimulus Dimension
[mm]`, `Head Distance [mm]`), then a table: `Time` (us), `Type` (`SMP` or `MSG`), `Trial`, `L POR X
[px]`, ... Older files separate by commas or blanks around tabs, and write numbers with a comma. A
point of regard of exactly (0, 0) is a lost sample; a pupil of 0 too.

* One recording per trial, or per trial and stimulus where the table has a `Stimulus` column. The
  stimulus is that column's word, or the picture that a message of the trial names (`# Message:
  picture.jpg`), or the trial's number.
* `MSG` rows are not samples: they are counted, and become messages.
* `L/R Event Info` (`Fixation`, `Saccade`, `Blink`) become `labels["smi"]` (the right eye of two:
  `labels["smi_right"]`); blinks are invalid.
* Pixels are those of `Calibration Area`; a `screen=` of others is refused.
* Without millimetres in the header or `screen=`, a 474 x 297 mm screen at 700 mm is assumed
  (`metadata["assumed_geometry"]`).

Raw data of BeGaze 3.7 has no `##` lines (`RecordingTime [ms]`, `Point of Regard Right X [px]`): it
is read as `csv`, whose guesses are said; say `missing=0`. Event exports of BeGaze (`Table Header
for Fixations`) have no samples and are not read: export the raw data.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import WORD
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing.assemble import assemble, pupil_of, refuse_other_pixels
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import Table, stamp
from gazeveil.io.registry import Format, LineRules, Scrub, TableRules
from gazeveil.io.source import Head, find_separator, key, read_text, stem

_HEADER = re.compile(r"^##\s*([^:\[]+?(?:\s*\[mm\])?)\s*:\s*(.*)$")
_MESSAGE = re.compile(r"^#\s*Message:\s*", re.IGNORECASE)
_PICTURE = re.compile(r"\S+\.(?:bmp|jpe?g|png|gif|tiff?|avi|mp4|wmv|mov)\b", re.IGNORECASE)
_EVENTS = {"fixation": "fixation", "saccade": "saccade", "blink": "blink"}
_ASSUMED = (474.0, 297.0, 700.0)


@dataclass(frozen=True)
class SmiExport:
    """Header, sample rows as a table, messages and trials of a file."""

    header: dict[str, str]
    sheet: Table
    messages: tuple[tuple[str, Message], ...]
    parts: dict[tuple[str, ...], Ints]


def sniff(head: Head) -> bool:
    """`##` lines and a table with a type and a point of regard."""
    return (
        head.text.lstrip().startswith("##")
        and re.search(r"^Time\W+Type\W+Trial\b", head.text, re.MULTILINE) is not None
    )


@lru_cache(maxsize=1)
def parse(path: Path, _stamp: tuple[int, int]) -> SmiExport:
    """Parse a file; kept until the next one, so that its trials do not parse it again.

    Raises
    ------
    FormatError
        Without the line of column names, or for a row that does not fit it.
    """
    lines = read_text(path).split("\n")
    header, start = _header(path, lines)
    separator = find_separator(lines[start])
    if not separator:
        raise FormatError(
            path, "its column names are not separated", "Export with tabs.", start + 1
        )
    names = [n.strip() for n in lines[start].split(separator)]
    column = {key(n): i for i, n in enumerate(names)}
    if not {"time", "type"} <= column.keys():
        raise FormatError(
            path,
            "the columns Time and Type are missing",
            "Export the raw data from BeGaze as text.",
            start + 1,
        )
    body = pl.Series("line", lines[start + 1 :], dtype=pl.String)
    is_row = body.str.contains(r"^[^#]") & body.str.strip_chars().ne("")
    is_message = is_row & body.str.contains(
        rf"^(?:[^{separator}]*{separator}){{{column['type']}}}\s*MSG\s*(?:{separator}|$)"
    )
    messages = [
        _message(path, str(line), int(number) + start + 2, separator, column)
        for number, line in zip(is_message.arg_true(), body.filter(is_message), strict=True)
    ]
    is_sample = is_row & ~is_message
    at = is_sample.arg_true().to_numpy().astype(np.int64) + start + 2
    samples = body.filter(is_sample)
    needed = max([i for k, i in column.items() if k.endswith(("porxpx", "porypx"))], default=0) + 1
    cells = samples.str.count_matches(separator, literal=True) + 1
    short = (cells < needed).arg_true()
    if len(short):
        row_at = int(short[0])
        raise FormatError(
            path,
            f"the row has {cells[row_at]} cells, gaze needs {needed}",
            "The file was cut; export it again or remove the line.",
            int(at[row_at]),
        )
    sheet = _Rows(path, _frame(names, samples, separator), "", 1, "", at=at)
    return SmiExport(
        header,
        sheet,
        tuple(messages),
        dict(sheet.groups(sheet.name("Trial"), sheet.name("Stimulus"))),
    )


def _header(path: Path, lines: list[str]) -> tuple[dict[str, str], int]:
    """What the commented lines say, and the index of the line of column names."""
    header: dict[str, str] = {}
    for number, line in enumerate(lines):
        if line.startswith("#"):
            entry = _HEADER.match(line)
            if entry is not None:
                header[entry[1].strip().lower()] = entry[2].strip()
        elif re.match(r"^Time\W", line):
            return header, number
    raise FormatError(
        path,
        "there is no line of column names that begins with Time",
        "Export the raw data from BeGaze as text.",
    )


def _message(
    path: Path, line: str, number: int, separator: str, column: Mapping[str, int]
) -> tuple[str, Message]:
    """The trial and the message of a line."""
    cells = [c.strip() for c in line.split(separator)]
    trial_at = column.get("trial")
    trial = cells[trial_at] if trial_at is not None and len(cells) > trial_at else ""
    last = column["type"] if trial_at is None else trial_at
    text = separator.join(cells[last + 1 :]).strip()
    return trial, Message(_time_ns(path, cells[column["time"]], number), _MESSAGE.sub("", text))


def _frame(names: list[str], samples: pl.Series, separator: str) -> pl.DataFrame:
    """The rows of samples as texts, with a point for the decimal comma."""
    unique = [n if names.index(n) == i else f"{n} {i}" for i, n in enumerate(names)]
    text = separator.join(unique) + "\n" + "\n".join(samples.to_list())
    frame = pl.read_csv(
        io.BytesIO(text.encode()),
        separator=separator,
        infer_schema=False,
        quote_char=None,
        truncate_ragged_lines=True,
    ).with_columns(pl.all().str.strip_chars())
    if separator != "," and "," in text:
        return frame.with_columns(pl.all().str.replace(r"^([-+]?\d*),(\d+)$", "${1}.${2}"))
    return frame


@dataclass(frozen=True)
class _Rows(Table):
    """A table that knows the line of each row, because rows of messages lay between them."""

    at: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def line_of(self, row: int) -> int:
        """One-based line of the file that holds a row."""
        return int(self.at[row])


def _time_ns(path: Path, cell: str, line: int) -> int:
    try:
        return round(float(cell) * 1000)
    except (ValueError, OverflowError):
        raise FormatError(
            path, f"'{cell}' is not a time", "Mend or remove the line.", line
        ) from None


def _screen(header: dict[str, str]) -> tuple[Screen, bool]:
    """The screen of the header, and whether its millimetres are assumed."""
    px = _numbers(header.get("calibration area", "")) or [1680.0, 1050.0]
    mm = _numbers(header.get("stimulus dimension [mm]", ""))
    away = _numbers(header.get("head distance [mm]", ""))
    known = len(mm) == 2 and len(away) >= 1 and min(*mm, away[0]) > 0
    width, height, distance = (*mm, away[0]) if known else _ASSUMED
    return (
        Screen(px[0], px[1] if len(px) > 1 else px[0] * 0.625, width, height, distance),
        not known,
    )


def _numbers(text: str) -> list[float]:
    return [float(n.replace(",", ".")) for n in re.findall(r"\d+(?:[.,]\d+)?", text)]


def _labels(sheet: Table, column: str, rows: Ints) -> Texts:
    cells = sheet.words(column)
    return np.array([_EVENTS.get(cells[i].lower(), "undefined") for i in rows], dtype=WORD)


def load(path: Path, names: Names, part: tuple[str, ...], screen: Screen | None) -> Recording:
    """One trial of a file."""
    export = parse(path, stamp(path))
    sheet, rows = export.sheet, export.parts[part]
    header_screen, assumed = _screen(export.header)
    if screen is not None and _numbers(export.header.get("calibration area", "")):
        refuse_other_pixels(
            path, screen, [(header_screen.width_px, header_screen.height_px)], "Calibration Area"
        )
    space = screen or header_screen
    eyes: dict[str, Floats] = {}
    labels: dict[str, Texts] = {}
    for letter, side in (("L", "left"), ("R", "right")):
        columns = [sheet.name(f"{letter} POR {axis} [px]") for axis in "XY"]
        if None in columns:
            continue
        x, y = (sheet.floats(str(c))[rows] for c in columns)
        lost = (x == 0) & (y == 0)
        eyes[side] = np.stack(
            space.from_px(np.where(lost, np.nan, x), np.where(lost, np.nan, y)), axis=1
        )
        info = sheet.name(f"{letter} Event Info")
        if info is not None:
            side_labels = _labels(sheet, info, rows)
            labels["smi" if not labels else f"smi_{side}"] = side_labels
            eyes[side][side_labels == "blink"] = np.nan
    if not eyes:
        raise FormatError(
            path,
            "there is no point of regard (L POR X [px] or R POR X [px])",
            "Export it from BeGaze.",
        )
    sizes = [_size(sheet, letter) for letter in "LR"]
    pupils = [s[rows] for s in sizes if s is not None]
    messages = tuple(m for trial, m in export.messages if trial == part[0])
    rate = _numbers(export.header.get("sample rate", ""))
    metadata: dict[str, object] = {
        n: export.header[w]
        for w, n in (("date", "date"), ("version", "version"), ("converted from", "converted_from"))
        if export.header.get(w)
    }
    if screen is None and assumed:
        metadata["assumed_geometry"] = True
    first_of_trial = next(p for p in export.parts if p[0] == part[0]) == part
    return assemble(
        path,
        **vars(names),
        t_ns=sheet.times_ns("Time", unit="us")[rows],
        space=space,
        left_deg=eyes.get("left"),
        right_deg=eyes.get("right"),
        rate_hz=rate[0] if rate and rate[0] > 0 else None,
        pupil=pupil_of(pupils),
        labels=labels,
        messages=messages,
        # A trial's messages are counted once, where the trial has several stimuli.
        not_samples={"messages": len(messages) if first_of_trial else 0},
        metadata=metadata,
    )


def _size(sheet: Table, letter: str) -> Floats | None:
    names = (
        f"{letter} Pupil Diameter [mm]",
        f"{letter} Mapped Diameter [mm]",
        f"{letter} Dia X [px]",
        f"{letter} Dia [px]",
        f"{letter} Area [px²]",
    )
    size = sheet.maybe_floats(*names)
    return None if size is None else np.where(size > 0, size, np.nan)


def scan(
    path: Path, root: Path, screen: Screen | None = None, **options: object
) -> Iterator[Handle]:
    """One recording per trial (and stimulus), in file order; the person is the header's subject, or
    the file.
    """
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse("Format smi", "screen", "a Screen", screen)
    naming = naming_options(**options)
    export = parse(path, stamp(path))
    sessions: dict[str, int] = {}
    for part in export.parts:
        trial, stimulus = part
        if not stimulus:
            texts = [m.text for t, m in export.messages if t == trial]
            stimulus = next(
                (p[0] for t in texts if (p := _PICTURE.search(t))),
                trial if len(export.parts) > 1 else "",
            )
        sessions[stimulus] = sessions.get(stimulus, 0) + 1
        names = naming.names(
            path,
            root,
            {"person": stem(path), "stimulus": stem(path)},
            person=export.header.get("subject"),
            stimulus=stimulus,
            session=f"{sessions[stimulus]}" if sessions[stimulus] > 1 else None,
        )
        yield names.handle(partial(load, path, names, part, screen), path)


_WITH_NUMBERS = (
    r"sample ?rate|calibration ?area|calibration point \d+|stimulus dimension|head distance"
    r"|number of samples|reversed|heuristic(?: ?stage)?|number of points|trial ?count"
    r"|use ?plane ?file|bilateral|gaze ?cursor ?filter|saccade length|filter depth|idf version"
    r"|iview ?x version"
)
_HEADER_WORD = (
    r"(?:begaze|converter|iview|x|idf|left|right|raw|diameter|cr|por|gvec|epos|quality|plane"
    r"|trigger|msg|user|framecounter|area|event|none|\d+-point|point|\d{1,4}(?:\.\d{1,4}){0,3})"
)
_SHIFT = r"(?P<shift>\d+(?:\.\d+)?)"
#: The earliest time becomes 0.
SCRUB = Scrub(
    LineRules(
        (
            (r"##\s*\[[A-Za-z ]{1,30}\]|\s*", ""),
            (r"(?P<head>##\s*(?i:date)\s*:\s*).*", "{head}01.01.2000 00:00:00"),
            (r"##\s*(?i:subject)\s*:\s*(?P<label>.*)", ""),
            (
                rf"##\s*(?i:{_WITH_NUMBERS})\s*(?:\[\w+\])?\s*:\s*"
                r"(?:[\d\s.,;()+-]*|Position\([\d;.,-]+\)|True|False|none)",
                "",
            ),
            (
                r"##\s*(?i:format|version|calibration ?type|separator ?type)\s*:"
                rf"(?i:[\s,;]+{_HEADER_WORD})*[\s,;]*",
                "",
            ),
            (r"#.*", "##"),
            (
                rf"{_SHIFT}\s*[\t,;]\s*MSG\s*[\t,;]\s*(?:\d+\s*[\t,;]\s*)?#\s*Message:\s*"
                r"(?P<label>.*?)(?i:\.(?:bmp|jpe?g|png|gif|tiff?|avi|mp4|wmv|mov))?",
                "",
            ),
            (
                rf"{_SHIFT}(?P<joint>\s*[\t,;]\s*)MSG\b(?P<label>.*)",
                "{shift}{joint}MSG{joint}1{joint}# Message: {label}",
            ),
        ),
        TableRules(
            keep=(
                r"type|trial|[lr]?(?:por|raw|dia|gvec|cr\d)[xyz]|[lr](?:dia|mappeddiameter|area"
                r"|pupildiameter|pupilconfidence|validity|plane|eventinfo)|timing|latency|frame"
            ),
            shift="time",
            label="stimulus",
            midpoint="[lr]epos[xyz]",
            words=frozenset({"smp", "user event", "l", "r", "lr", "ue"}),
            one_clock=True,
        ),
        begins=r"Time\W",
    )
)
FORMAT = Format(
    "smi",
    "SMI BeGaze or iView X text export",
    sniff,
    scan,
    frozenset({"screen"}) | OPTIONS,
    scrub=SCRUB,
)
