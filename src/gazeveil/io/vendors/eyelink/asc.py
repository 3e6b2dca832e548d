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
* Columns follow the `SAMPLES` line of each block.
  `.` is a lost value; a pupil of 0 too, unless no pupil was measured. HREF samples are angles
  already; raw PUPIL samples are refused.
* `EFIX`, `ESACC` and `EBLINK` become the recording's events (of the first eye of two) and
  `labels["eyelink"]` (of the right eye of two: `labels["eyelink_right"]`); an eye in a blink is
  lost. A file converted without samples gives recordings of events only.
* Lines of no known kind are not rows; `metadata["lines_not_understood"]` counts them, and a file of
  nothing else is refused.
* The screen in pixels comes from `GAZE_COORDS` or `DISPLAY_COORDS` (a `screen=` of other pixels is
  refused; where the file states none, its are taken), the rest from `screen=`, or
  from the calibration, or from the resolution that `END` lines state, or from an assumption with a
  warning and `metadata["assumed_geometry"]` (see :mod:`gazeveil.io.vendors.eyelink.parsed`).

The `SAMPLES` line of a block says what its rows hold (EyeLink 1000 user manual, 4.9.2 and 4.9.4):
time; x, y and pupil of each eye; with `VEL` two velocities of each eye; with `RES` pixels per
degree of x and y; with `INPUT` the input port; with `HTARGET` (remote mode) x, y and distance of
the target on the forehead. Fields of letters and dots (`...`) are warnings and stand between them.

* A tracker that was told to record no pupil gives 0 in every row, or no such column. Pupils of 0
  mean a lost eye only in files where some pupil is not 0.
* edf2asc writes whole milliseconds unless asked for more, so that two rows of a 2000 Hz recording
  carry one time; the later row is put half a millisecond after the earlier one.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.io.parsing.table import MOST_NS, printable
from gazeveil.io.registry import LineRules, Scrub
from gazeveil.io.source import Head, read_text
from gazeveil.io.vendors.eyelink.parsed import (
    Parsed,
    Samples,
    cut_trials,
    drop_lost,
    event_lines,
    eyelink_format,
    refuse_unused_pattern,
    words_of,
)

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
        _stated_resolution(other, blocks),
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
    other: list[tuple[int, str]], blocks: list[SampleBlock]
) -> tuple[float, float] | None:
    """Pixels per degree of x and y, from the END lines of blocks. That of HREF blocks is not in
    pixels, and one that no screen has is not believed.
    """
    low, high = _RESOLUTIONS
    starts, stated = [b.line for b in blocks], []
    for number, line in other:
        block = blocks[max(int(np.searchsorted(starts, number, side="right")) - 1, 0)]
        found = _END_RESOLUTION.search(line) if line.startswith("END") else None
        if found is not None and block.kind != "HREF":
            pair = float(found[1]), float(found[2])
            stated += [pair] if low < min(pair) and max(pair) < high else []
    if not stated:
        return None
    x, y = np.median(np.array(stated), axis=0)
    return float(x), float(y)


_TIME = r"(?P<shift>\d+(?:\.\d+)?)"
_LINE_WORDS = (
    "LEFT|RIGHT|LR|L|R|SAMPLES|EVENTS|GAZE|HREF|RATE|TRACKING|CR|P-CR|FILTER|INPUT|VEL|RES|HTARGET"
    "|AREA|DIAMETER|PUPIL|STATUS|BUTTONS"
)
_CELLS = rf"(?:\s+(?:-?[\d.]+(?:[eE][-+]?\d+)?|{_LINE_WORDS}))*"
_HEADER_WORDS = (
    r"(?:\s+(?:edf_file|binary|events?|samples?|tagged|eyelink|ii|i|cl|gl|usbcam|version|revision"
    r"|\d{1,2}(?:\.\d{1,4})?))+"
)
#: Messages that the tracker and its software write themselves; the rest is text of the experiment.
TRACKER_MESSAGE = (
    r"(?:!CAL\b|!MODE\s+RECORD\b|RECCFG\b|ELCLCFG\b|ELCL_|GAZE_COORDS\b|DISPLAY_COORDS\b"
    r"|THRESHOLDS\b|CAMERA_LENS_FOCAL_LENGTH\b|PUPIL_DATA_TYPE\b|VALIDATE\b|RETRACE_INTERVAL\b"
    r"|DRIFTCORRECT\b|SYNCTIME$|TRIAL OK$|TRIAL_RESULT\s+-?\d{1,4}$)"
)
# Words of the tracker's own messages; one with any other word is text of the experiment.
_MESSAGE_WORDS = (
    "cal|calibration|points?|eye|check|box|href|range|coeff|goaly|ixx|jyy|prenormalize|offx|offy"
    "|quadrant|center|centx|centy|corner|correction|gains|resolution|upd|screen|gain|change"
    "|proportion|ratios?|cross|fixup|pcr|match|slip|rotation|off|left|right|good|fair|poor|failed"
    "|aborted|validation|error|avg|max|offset|deg|pix|validate|reccfg|elclcfg|mode|record"
    "|gaze_coords|display_coords|thresholds|elcl_proc|elcl_window_sizes|elcl_pcr_param"
    "|elcl_efit_params|ellipse|centroid|camera_lens_focal_length|pupil_data_type|raw_autoslip"
    "|retrace_interval|driftcorrect|drift|repeat|synctime|trial|trial_result|bad|mtabler|btabler"
    "|mremote|rtabler|btower|amtabler|artabler|tower|bremoter|mlremote|aremote|area|diameter|dxx"
    "|eyy|elcl_pupil_area"
)
_KNOWN_WORDS = rf"(?:(?i:{_MESSAGE_WORDS}|[^\W\d]{{1,2}})(?![^\W\d])|[\W\d])*"
_MSG = rf"MSG\s+{_TIME}\s?"

#: The earliest time becomes 0. The date stays a date, because readers parse it
#: (mne-tools/mne-python#12621: a blanked date line made a reader fail).
SCRUB = Scrub(
    LineRules(
        (
            (rf"{_TIME}[\s\d.+\-eE]*(?:\s[.ICRMANFTBLE]{{3,17}})*[\s\d.+\-eE]*", ""),
            (rf"{_MSG}\s*(?={TRACKER_MESSAGE}){_KNOWN_WORDS}", ""),
            (rf"{_MSG}\s*TRIALID\s+(?:\d{{1,3}}|(?P<label>.*))", ""),
            (rf"{_MSG}\s*TRIAL_RESULT\b.*", "MSG\t{shift} TRIAL_RESULT 0"),
            # Commands of SR Research's software are no messages, and readers skip them.
            (rf"{_MSG}\s*!(?:V|CMD) (?P<label>.*)", ""),
            (rf"{_MSG}(?P<message>.*)", ""),
            (rf"(?:START|END|INPUT|BUTTON)\s+{_TIME}{_CELLS}", ""),
            (rf"S(?:FIX|SACC|BLINK)\s+[LR]\s+{_TIME}", ""),
            (rf"E(?:FIX|SACC|BLINK)\s+[LR]\s+{_TIME}\s+(?P<shift2>\d+(?:\.\d+)?){_CELLS}", ""),
            (rf"(?:SAMPLES|EVENTS|V?PRESCALER|PUPIL){_CELLS}", ""),
            (r"[\s\d.,+\-eE]*|>+ CALIBRATION \([\w,-]+\) FOR (?:LEFT|RIGHT): <+", ""),
            (
                r"\*\* CONVERTED FROM.*edfapi\s+(?P<version>[\d.]+).*",
                "** CONVERTED FROM recording.edf using edfapi {version}",
            ),
            (r"\*\* CONVERTED FROM.*", "** CONVERTED FROM recording.edf using edfapi 0"),
            (r"\*\* DATE\b.*", "** DATE: Sat Jan  1 00:00:00 2000"),
            (r"\*\* SERIAL NUMBER\b.*", "** SERIAL NUMBER: removed"),
            (r"\*\* RECORDED BY\b.*", "** RECORDED BY removed"),
            (rf"\*\* (?:TYPE|VERSION|SOURCE|CAMERA):(?i:{_HEADER_WORDS})", ""),
            (r"\*\* (?P<name>TYPE|VERSION|SOURCE|CAMERA)\b.*", "** {name}: removed"),
            (
                r"\*\*\s+(?P<name>EYELINK (?:II |I )?(?:CL )?v[\d.]+)(?:.*(?P<model>\(EyeLink"
                r" (?:1000(?: Plus)?|Portable Duo|II|3|Duo)\)))?.*",
                "** {name} {model}",
            ),
            (r"\*\*.*", "**"),
        )
    )
)
FORMAT = eyelink_format("eyelink-asc", "EyeLink ASC (edf2asc text)", sniff, parse, SCRUB)


_WARNINGS = re.compile(r"[A-Z.]{3,}")
_LOST = (".", "MISSING_DATA", "-32768", "-32768.0")
_OPTIONS = ("VEL", "RES", "INPUT", "HTARGET")
_FEW_VALUES = 16


@dataclass(frozen=True)
class SampleBlock:
    """What a START block says about its samples."""

    line: int
    left: bool = True
    right: bool = False
    kind: str = "GAZE"
    rate_hz: float = float("nan")
    known: bool = False
    options: tuple[str, ...] = ()

    @property
    def layout(self) -> tuple[bool, bool, bool, tuple[str, ...]]:
        """What blocks must share for their rows to have the same columns."""
        return self.left, self.right, self.known, self.options


def find_blocks(path: Path, other: list[tuple[int, str]]) -> list[SampleBlock]:
    """Blocks in file order; a file without START has one that its samples must explain.

    Raises
    ------
    FormatError
        For raw pupil positions.
    """
    blocks: list[SampleBlock] = []
    for number, line in other:
        tokens = line.split()
        if not tokens or tokens[0] not in ("START", "SAMPLES"):
            continue
        eyes = ("LEFT" in tokens or "RIGHT" not in tokens, "RIGHT" in tokens)
        known = "LEFT" in tokens or "RIGHT" in tokens
        if tokens[0] == "START":
            blocks.append(SampleBlock(number, *eyes, known=known))
        elif len(tokens) > 1:
            if tokens[1] == "PUPIL":
                raise FormatError(
                    path,
                    "its samples are raw pupil positions, not gaze",
                    "Convert the EDF file again with edf2asc, with gaze (not -sp).",
                    number + 1,
                )
            rate = next(
                (
                    float(b)
                    for a, b in pairwise(tokens)
                    if a == "RATE" and re.fullmatch(r"\d{1,6}(?:\.\d+)?", b)
                ),
                float("nan"),
            )
            rate = rate if rate > 0 else float("nan")
            options = tuple(o for o in _OPTIONS if o in tokens)
            if blocks and not np.isfinite(blocks[-1].rate_hz):
                number = blocks.pop().line
            blocks.append(SampleBlock(number, *eyes, tokens[1], rate, known, options))
    return blocks or [SampleBlock(-1)]


def read_samples(
    path: Path, lines: pl.Series, at: Ints, blocks: list[SampleBlock], block_of: Ints
) -> Samples:
    """Columns of all sample lines.

    Parameters
    ----------
    path : Path
        The file, for messages.
    lines : polars.Series of str
        The sample lines.
    at : array of int64
        Their line numbers in the file, from 0.
    blocks, block_of
        The blocks, and the block of each line.
    """
    n = len(at)
    columns: dict[str, Floats] = {}
    recorded: dict[str, Bools] = {}
    t_ns = np.zeros(n, dtype=np.int64)
    for layout in sorted({blocks[i].layout for i in np.unique(block_of)} if n else set()):
        mine = np.flatnonzero(np.array([b.layout == layout for b in blocks])[block_of])
        text = lines.gather(mine)
        numbers = _columns(path, text, at[mine], _names(text, layout))
        t_ns[mine] = _times(path, text, at[mine], numbers["time"])
        for name, values in numbers.items():
            columns.setdefault(name, np.full(n, np.nan))[mine] = values
        for eye in ("left", "right"):
            if f"{eye} x" in numbers:
                recorded.setdefault(eye, np.zeros(n, dtype=np.bool_))[mine] = True
    if not recorded:
        recorded["left"] = np.zeros(n, dtype=np.bool_)
    nothing = np.full(n, np.nan)
    eyes: dict[str, Floats] = {
        e: np.stack([columns.get(f"{e} {c}", nothing) for c in ("x", "y", "pupil")], axis=1)
        for e in ("left", "right")
        if e in recorded
    }
    has_pupil = drop_lost(eyes)
    t_ns, shared = _apart(t_ns, block_of, np.array([b.rate_hz for b in blocks]))
    return Samples(t_ns, eyes, recorded, has_pupil, shared)


def _names(text: pl.Series, layout: tuple[bool, bool, bool, tuple[str, ...]]) -> list[str]:
    """Name of each field of a row; empty for a field that is not used."""
    left, right, known, options = layout
    fields = max([str(t).split() for t in text.head(20).to_list()], key=len)
    warned = [bool(_WARNINGS.fullmatch(f)) for f in fields]
    count = warned.count(False)
    if not known:
        right = count >= 7
    eyes = [e for e, there in (("left", left), ("right", right)) if there]
    extra: list[str] = []
    if "VEL" in options:
        extra += [f"{e} velocity {a}" for e in eyes for a in "xy"]
    if "RES" in options:
        extra += ["resolution x", "resolution y"]
    inputs = ["input"] if "INPUT" in options else []
    target = ["target x", "target y", "distance"] if "HTARGET" in options else []
    whole = 1 + 3 * len(eyes) + len(extra) + len(inputs) + len(target)
    parts = ["x", "y", "pupil"]
    if known and count == whole - len(eyes):
        place = 1 + 2 * len(eyes)
        if len(eyes) == 2 or not inputs or _has_few_values(text, place + len(extra)):
            parts = ["x", "y"]
        else:
            inputs = []
    expected = ["time", *(f"{e} {p}" for e in eyes for p in parts), *extra, *inputs, *target]
    if count != len(expected):
        # Columns that no option explains: only those that every file has are certain.
        expected = expected[: 1 + len(parts) * len(eyes)]
    following = iter(expected)
    return ["" if w else next(following, "") for w in warned] + list(following)


def _has_few_values(text: pl.Series, place: int) -> bool:
    """Whether a field looks like an input port, which changes seldom, rather than like a pupil."""
    cells = [str(t).split() for t in text.to_list()]
    return len({c[place] for c in cells if len(c) > place}) <= min(_FEW_VALUES, len(cells) // 4)


def _columns(path: Path, text: pl.Series, at: Ints, names: list[str]) -> dict[str, Floats]:
    """The named fields of sample lines as numbers."""
    if "\t" not in str(text[0]):
        text = text.str.strip_chars().str.replace_all(r"\s+", "\t")
    frame = pl.read_csv(
        io.BytesIO("\n".join(text.to_list()).encode()),
        separator="\t",
        has_header=False,
        infer_schema=False,
        quote_char=None,
        truncate_ragged_lines=True,
    )
    certain = sum(n in ("time", *_EYE_FIELDS) for n in names)
    result = {}
    for i, name in enumerate(names):
        if not name:
            continue
        column = (
            frame.to_series(i).str.strip_chars()
            if i < frame.width
            else pl.Series([None] * len(text), dtype=pl.String)
        )
        values = column.cast(pl.Float64, strict=False)
        lost = column.is_in(_LOST).fill_null(False) if i else pl.Series([False] * len(text))
        wrong = (values.is_null() & ~lost).arg_true()
        if len(wrong):
            row = int(wrong[0])
            problem = (
                f"'{printable(column[row])}' is not a number"
                if column[row] is not None
                else f"the sample has fewer than {certain} values"
            )
            raise FormatError(
                path,
                f"{problem} (column {i + 1})",
                "The file was cut; convert the EDF file again or remove the line.",
                int(at[row]) + 1,
            )
        result[name] = np.where(lost.to_numpy(), np.nan, values.to_numpy())
    return result


_EYE_FIELDS = tuple(f"{e} {p}" for e in ("left", "right") for p in ("x", "y", "pupil"))


def _times(path: Path, text: pl.Series, at: Ints, milliseconds: Floats) -> Ints:
    wild = np.flatnonzero(~(np.abs(milliseconds) * 1e6 < MOST_NS))
    if len(wild):
        raise FormatError(
            path,
            f"'{str(text[int(wild[0])]).split()[0][:30]}' is too large for a time in ms",
            "Mend or remove the line.",
            int(at[wild[0]]) + 1,
        )
    return np.round(milliseconds * 1e6).astype(np.int64)


def _apart(t_ns: Ints, block_of: Ints, rates_hz: Floats) -> tuple[Ints, int]:
    """Times of rows that share one because the file has whole milliseconds, and how many rows that
    were.
    """
    rate = rates_hz[block_of] if len(t_ns) else np.empty(0)
    fast = np.nan_to_num(rate) > 1000
    same = np.zeros(len(t_ns), dtype=np.bool_)
    same[1:] = (np.diff(t_ns) == 0) & (np.diff(block_of) == 0)
    # Place of a row in its run of equal times; more rows than a millisecond holds are faults.
    starts = np.flatnonzero(~same)
    place = np.arange(len(t_ns)) - np.repeat(starts, np.diff(np.append(starts, len(t_ns))))
    with np.errstate(invalid="ignore"):
        moved = fast & (place > 0) & (place < rate / 1000) & (t_ns % 1_000_000 == 0)
    result = t_ns.copy()
    result[moved] += np.round(place[moved] * (1e9 / rate[moved])).astype(np.int64)
    return result, int(np.count_nonzero(moved))
