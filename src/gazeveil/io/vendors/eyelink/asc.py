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
* Columns follow the `SAMPLES` line of each block: time, then x, y, pupil of each eye; what comes
  after (velocity, resolution, input, flags) is not read. `.` is a lost value, a pupil of 0 too.
  HREF samples are angles already; raw PUPIL samples are refused.
* `EFIX`, `ESACC` and `EBLINK` become `labels["eyelink"]` (of the right eye of two:
  `labels["eyelink_right"]`); an eye in a blink is lost. A file converted without samples gives
  recordings of events only (of the first eye).
* Lines of no known kind are not rows; `metadata["lines_not_understood"]` counts them, and a file of
  nothing else is refused.
* The screen in pixels comes from `GAZE_COORDS` or `DISPLAY_COORDS`, the rest from `screen=`, or
  from the calibration, or from an assumption with a warning and `metadata["assumed_geometry"]` (see
  :mod:`gazeveil.io.vendors.eyelink.geometry`).
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from glob import escape
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.delimited import stamp
from gazeveil.io.parsing.headset import mean_of_eyes
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import MOST_NS, printable
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, read_text, stem
from gazeveil.io.vendors.eyelink.events import EventLine, as_events, event_lines, words_of
from gazeveil.io.vendors.eyelink.geometry import HREF_DISTANCE, from_messages
from gazeveil.io.vendors.eyelink.trials import Trial, cut_trials

_MESSAGE = re.compile(r"^MSG\s+(\d{1,15}(?:\.\d+)?)\s?(.*)$")
# How the lines that edf2asc writes begin, samples excepted.
_KNOWN = re.compile(
    r"(?:MSG|START|END|SAMPLES|EVENTS|V?PRESCALER|PUPIL|INPUT|BUTTON|[SE](?:FIX|SACC|BLINK)|"
    r"CONFIG|>+)\s|\*\*"
)
_HEADER = {
    "DATE": "date",
    "SERIAL NUMBER": "serial_number",
    "CAMERA": "camera",
    "RECORDED BY": "recorded_by",
    "CONVERTED FROM": "converted_from",
}


@dataclass(frozen=True)
class Parsed:
    """All samples of a file, in file order, and its trials."""

    t_ns: Ints
    eyes: dict[str, Floats]
    recorded: dict[str, Bools]
    labels: dict[str, Texts]
    rate_hz: Floats
    href: Bools
    trials: tuple[Trial, ...]
    texts: list[str]
    metadata: dict[str, object]
    events: tuple[EventLine, ...]


@dataclass(frozen=True)
class _Block:
    """What a START block says about its samples."""

    line: int
    left: bool = True
    right: bool = False
    kind: str = "GAZE"
    rate_hz: float = float("nan")
    known: bool = False


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
            "Convert it with SR Research's edf2asc, then read the .asc file it writes.",
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
    blocks = _blocks(path, other)
    block_of = np.maximum(np.searchsorted([b.line for b in blocks], at, side="right") - 1, 0)
    t_ns, eyes, recorded = _samples(path, lines.gather(at), at, blocks, block_of)
    events = event_lines(path, other)
    starts = np.array([b.line for b in blocks])
    labels = words_of(events, list(eyes), t_ns, block_of, starts)
    for eye, eye_labels in labels.items():
        eyes[eye][eye_labels == "blink"] = np.nan
    messages = [(n, *m) for n, t in other if (m := _message(t)) is not None]
    metadata = _metadata(other)
    if strange:
        metadata["lines_not_understood"] = len(strange)
    _refuse_unused_pattern(path, trials, messages)
    # Converted without samples (edf2asc -e), the events are what there is, cut into trials as
    # samples would be.
    alone = () if len(at) else tuple(e for e in events if e.eye == events[0].eye)
    if alone and len(alone) < len(events):
        metadata["events_of_other_eye"] = len(events) - len(alone)
    rows = at if len(at) else np.array([e.line for e in alone], dtype=np.int64)
    cut, empty = cut_trials(rows, messages, starts, trials)
    if empty:
        metadata["empty_trials"] = tuple(empty)
    outside = len(messages) - sum(len(t.messages) for t in cut)
    if outside:
        # Calibration and set-up before the first trial; the geometry is read from them.
        metadata["messages_outside_trials"] = outside
    return Parsed(
        t_ns,
        eyes,
        recorded,
        labels,
        np.array([b.rate_hz for b in blocks])[block_of],
        np.array([b.kind == "HREF" for b in blocks])[block_of],
        cut,
        [text for _, _, text in messages],
        metadata,
        alone,
    )


def _metadata(other: list[tuple[int, str]]) -> dict[str, object]:
    """What the header says, and the unit of the pupil."""
    metadata: dict[str, object] = {
        k: v for _, t in other if t.startswith("**") for k, v in _header(t).items()
    }
    units = (t.split()[1].lower() for _, t in other if t.startswith("PUPIL") and len(t.split()) > 1)
    unit = next(units, None)
    return metadata if unit is None else {**metadata, "pupil_unit": unit}


def _refuse_unused_pattern(
    path: Path, trials: str | None, messages: list[tuple[int, int, str]]
) -> None:
    if trials is not None and not any(re.search(trials, text) for _, _, text in messages):
        last = "; ".join(printable(text) for _, _, text in messages[-3:]) or "none"
        raise FormatError(
            path,
            f"no message fits trials='{trials}' (the last messages: {last})",
            "Mend the pattern, or leave it out.",
        )


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


def _blocks(path: Path, other: list[tuple[int, str]]) -> list[_Block]:
    """Blocks in file order; a file without START has one that its samples must explain."""
    blocks: list[_Block] = []
    for number, line in other:
        tokens = line.split()
        if not tokens:
            continue
        if tokens[0] == "START":
            blocks.append(
                _Block(
                    number,
                    "LEFT" in tokens or "RIGHT" not in tokens,
                    "RIGHT" in tokens,
                    known="LEFT" in tokens or "RIGHT" in tokens,
                )
            )
        elif tokens[0] == "SAMPLES" and len(tokens) > 1:
            rate = next(
                (
                    float(b)
                    for a, b in pairwise(tokens)
                    if a == "RATE" and re.fullmatch(r"\d{1,6}(?:\.\d+)?", b)
                ),
                float("nan"),
            )
            rate = rate if rate > 0 else float("nan")
            if tokens[1] == "PUPIL":
                raise FormatError(
                    path,
                    "its samples are raw pupil positions, not gaze",
                    "Convert the EDF file again with edf2asc, with gaze (not -sp).",
                    number + 1,
                )
            block = _Block(
                number,
                "LEFT" in tokens or "RIGHT" not in tokens,
                "RIGHT" in tokens,
                tokens[1],
                rate,
                "LEFT" in tokens or "RIGHT" in tokens,
            )
            if blocks and not np.isfinite(blocks[-1].rate_hz):
                block = replace(block, line=blocks.pop().line)
            blocks.append(block)
    return blocks or [_Block(-1)]


def _samples(
    path: Path, lines: pl.Series, at: Ints, blocks: list[_Block], block_of: Ints
) -> tuple[Ints, dict[str, Floats], dict[str, Bools]]:
    """Times, (x, y, pupil) of each eye, and where each eye was recorded, of all sample lines."""
    n = len(at)
    t_ns = np.zeros(n, dtype=np.int64)
    eyes: dict[str, Floats] = {}
    recorded: dict[str, Bools] = {}
    layouts = {(b.left, b.right, b.known) for b in (blocks[i] for i in np.unique(block_of))}
    for layout in sorted(layouts):
        mine = np.flatnonzero(
            np.array([(b.left, b.right, b.known) == layout for b in blocks])[block_of]
        )
        left, right, known = layout
        text = lines.gather(mine)
        if not known:
            cells = len(
                [c for c in str(text[0]).split() if re.fullmatch(r"-?[\d.]+(?:e[-+]?\d+)?", c)]
            )
            right = cells >= 7
        names = [e for e, present in (("left", left), ("right", right)) if present]
        columns = _columns(path, text, at[mine], 1 + 3 * len(names))
        wild = np.flatnonzero(~(np.abs(columns[0]) * 1e6 < MOST_NS))
        if len(wild):
            line = int(at[mine][wild[0]]) + 1
            raise FormatError(
                path,
                f"'{str(text[int(wild[0])]).split()[0][:30]}' is too large for a time in ms",
                "Mend or remove the line.",
                line,
            )
        t_ns[mine] = np.round(columns[0] * 1e6).astype(np.int64)
        for k, eye in enumerate(names):
            whole = eyes.setdefault(eye, np.full((n, 3), np.nan))
            whole[mine] = columns[1 + 3 * k : 4 + 3 * k].T
            recorded.setdefault(eye, np.zeros(n, dtype=np.bool_))[mine] = True
    for values in eyes.values():
        values[values[:, 2] == 0] = np.nan
    if not eyes:
        eyes["left"], recorded["left"] = np.empty((0, 3)), np.empty(0, dtype=np.bool_)
    order = [e for e in ("left", "right") if e in eyes]
    return t_ns, {e: eyes[e] for e in order}, recorded


def _columns(path: Path, text: pl.Series, at: Ints, wanted: int) -> Floats:
    """The first columns of sample lines as numbers, shape (wanted, n)."""
    if "\t" not in str(text[0]):
        text = text.str.strip_chars().str.replace_all(r"\s+", "\t")
    source = io.BytesIO("\n".join(text.to_list()).encode())
    frame = pl.read_csv(
        source,
        separator="\t",
        has_header=False,
        infer_schema=False,
        quote_char=None,
        truncate_ragged_lines=True,
    )
    result = np.full((wanted, len(text)), np.nan)
    for i in range(wanted):
        column = (
            frame.to_series(i).str.strip_chars()
            if i < frame.width
            else pl.Series([None] * len(text), dtype=pl.String)
        )
        values = column.cast(pl.Float64, strict=False)
        wrong = (
            values.is_null() & (column.ne_missing(".") if i else pl.Series([True] * len(text)))
        ).arg_true()
        if len(wrong):
            row = int(wrong[0])
            problem = (
                f"'{printable(column[row])}' is not a number"
                if column[row] is not None
                else f"the sample has fewer than {wanted} values"
            )
            raise FormatError(
                path,
                f"{problem} (column {i + 1})",
                "The file was cut; convert the EDF file again or remove the line.",
                int(at[row]) + 1,
            )
        result[i] = values.to_numpy()
    return result


def load(
    path: Path, names: Names, index: int, screen: Screen | None, trials: str | None
) -> Recording:
    """Trial number `index` of a file."""
    parsed = parse(path, stamp(path), trials)
    trial = parsed.trials[index]
    geometry = from_messages(parsed.texts, screen)
    rows = trial.rows if not parsed.events else np.empty(0, dtype=np.int64)
    events = (
        None if not parsed.events else as_events([parsed.events[i] for i in trial.rows], geometry)
    )
    sides: dict[str, Floats] = {}
    # Blocks of one eye and of both may share a file; an eye that this trial never recorded is no
    # channel of it.
    mine = [eye for eye in parsed.eyes if parsed.recorded[eye][rows].any()] or list(parsed.eyes)
    for eye in mine:
        values = parsed.eyes[eye]
        x, y = values[rows, 0], values[rows, 1]
        px = geometry.screen.from_px(x - geometry.left_px, y - geometry.top_px)
        href = parsed.href[rows]
        angles = [
            np.where(href, np.degrees(np.arctan(v / HREF_DISTANCE)), p)
            for v, p in zip((x, y), px, strict=True)
        ]
        sides[eye] = np.stack(angles, axis=1)
    rates = parsed.rate_hz[rows]
    sizes = [parsed.eyes[eye][rows, 2] for eye in mine]
    metadata: dict[str, object] = {**parsed.metadata, "geometry": geometry.source}
    if geometry.source == "assumed":
        metadata["assumed_geometry"] = True
    labels = {
        "eyelink" if i == 0 else f"eyelink_{eye}": parsed.labels[eye][rows]
        for i, eye in enumerate(mine)
    }
    return assemble(
        path,
        **vars(names),
        t_ns=parsed.t_ns[rows],
        space=geometry.screen,
        left_deg=sides.get("left"),
        right_deg=sides.get("right"),
        rate_hz=float(rates[0]) if len(rates) and np.isfinite(rates[0]) else None,
        pupil=sizes[0] if len(sizes) == 1 else mean_of_eyes(sizes[0], sizes[1]),
        labels=labels,
        events=events,
        messages=trial.messages,
        not_samples={"events": len(trial.rows) if parsed.events else 0},
        metadata=metadata,
    )


def scan(
    path: Path,
    root: Path,
    screen: Screen | None = None,
    trials: str | None = None,
    **options: object,
) -> Iterable[Handle]:
    """One recording per trial, in file order, and one more for samples in no trial."""
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse("Format eyelink-asc", "screen", "a Screen", screen)
    if trials is not None:
        try:
            re.compile(trials)
        except (re.error, TypeError):
            checks.refuse(
                "Format eyelink-asc",
                "trials",
                "a regular expression for the messages that begin a trial",
                trials,
            )
    naming = naming_options(**options)
    parsed = parse(path, stamp(path), trials)
    if from_messages(parsed.texts, screen).source == "assumed":
        warnings.warn(
            "EyeLink ASC without screen size and calibration: a 531 mm wide screen at 700 mm is"
            " assumed. Give screen=Screen(...).",
            stacklevel=2,
        )
    handles = []
    place = {"person": _person(path, root), "stimulus": stem(path)}
    for index, trial in enumerate(parsed.trials):
        names = naming.names(path, root, place, stimulus=trial.name)
        if trial.session > 1:
            names = Names(
                names.person,
                names.stimulus,
                f"{trial.session}" if names.session == "1" else f"{names.session}.{trial.session}",
                names.task,
            )
        handles.append(names.handle(partial(load, path, names, index, screen, trials), path))
    return handles


def _person(path: Path, root: Path) -> str:
    """The file name; or the folder, where folders beside it hold files of the same name."""
    alike = (
        path.parent != root
        and len(list(islice(path.parent.parent.glob(f"*/{escape(path.name)}"), 2))) > 1
    )
    return path.parent.name if alike else stem(path)


FORMAT = Format(
    "eyelink-asc",
    "EyeLink ASC (edf2asc text)",
    sniff,
    scan,
    frozenset({"screen", "trials"}) | OPTIONS,
)
