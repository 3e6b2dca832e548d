"""What an EyeLink file holds once it is parsed, and the recordings made of it: shared by the text
(ASC) and the binary (EDF) form.

How far the screen was, from what an EyeLink ASC file says about its calibration.

An ASC file gives the screen in pixels and no millimetres. But calibration lines give each target's
angle as HREF (a plane 15000 units before the eye) and validation lines give the same targets in
pixels; the slope between the two is the viewing distance in pixels, which is all that degrees need.
Where they are missing, the resolution in pixels per degree that `END` lines state gives it too.
Files without all that get a documented assumption.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from glob import escape
from itertools import islice
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import WORD, Events
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing.assemble import assemble, has_pixels, pupil_of, refuse_other_pixels
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import MOST_NS, printable, stamp
from gazeveil.io.registry import Format, Scrub
from gazeveil.io.source import Head, stem

#: HREF units from the eye to its reference plane (EyeLink manual).
HREF_DISTANCE = 15000.0

# A 24 inch monitor at 700 mm, where the file leaves the scale or the distance open.
_ASSUMED_WIDTH_MM = 531.0
_ASSUMED_DISTANCE_MM = 700.0
_ASSUMED_PX = (0.0, 0.0, 1920.0, 1080.0)

_COORDS = re.compile(
    r"(?:GAZE|DISPLAY)_COORDS\s+(-?[\d.]+)[\s,]+(-?[\d.]+)[\s,]+(-?[\d.]+)[\s,]+(-?[\d.]+)"
)
_POINT = re.compile(r"^!CAL\s+-?[\d.]+,\s*-?[\d.]+\s+(-?[\d.]+),\s*(-?[\d.]+)\s*$")
# The right eye's lines say `4POINT` whatever the number of targets.
_TARGET = re.compile(
    r"VALIDATE\s+\S+\s+\d*POINT\s+(\d+)\s+(LEFT|RIGHT)\s+at\s+(-?[\d.]+),\s*(-?[\d.]+)"
)


@dataclass(frozen=True)
class Geometry:
    """The screen, its top-left corner in the file's pixels, and where the distance comes from."""

    screen: Screen
    left_px: float
    top_px: float
    source: str


def _boxes(texts: list[str]) -> Iterator[tuple[float, float, float, float]]:
    """Left, top, right and bottom pixels that the messages state."""
    for text in texts:
        if (found := _COORDS.search(text)) is not None:
            left, top, right, bottom = (float(v) for v in found.groups())
            yield left, top, right, bottom


def _given(path: Path, texts: list[str], screen: Screen) -> Geometry:
    """What the user says, where the file does not say other pixels. A tracker may state its own
    default before the experiment states the screen: one of the two is enough.
    """
    sizes = {(_extent(b[2] - b[0]), _extent(b[3] - b[1])): b for b in _boxes(texts)}
    stated = [size for size in sizes if min(size) > 0]
    refuse_other_pixels(path, screen, stated, "GAZE_COORDS or DISPLAY_COORDS")
    box = next((sizes[size] for size in stated if has_pixels(screen, size)), _ASSUMED_PX)
    return Geometry(screen, box[0], box[1], "given")


def from_messages(
    path: Path,
    texts: list[str],
    screen: Screen | None = None,
    resolution: tuple[float, float] | None = None,
) -> Geometry:
    """Screen of an EyeLink file.

    Parameters
    ----------
    path : Path
        The file.
    texts : list of str
        Its messages without their times.
    screen : Screen, optional
        What the user says; its pixels are those of the file where that says them.
    resolution : tuple of float, optional
        Pixels per degree of x and y in the middle of the screen, as the file states them.

    Returns
    -------
    Geometry
        `source` is `given`, `calibration`, `resolution` or `assumed`.

    Raises
    ------
    FormatError
        For a screen of other pixels than the file states.
    """
    if screen is not None:
        return _given(path, texts, screen)
    box = next(_boxes(texts), _ASSUMED_PX)
    left, top = box[0], box[1]
    width, height = (_extent(box[2] - box[0]), _extent(box[3] - box[1]))
    if width <= 0 or height <= 0:
        left, top, width, height = _ASSUMED_PX
    calibrated_px = _distance_px(texts)
    if calibrated_px is not None:
        (across_px, down_px), source = calibrated_px, "calibration"
    elif resolution is not None:
        across_px, down_px = (float(np.degrees(r)) for r in resolution)
        source = "resolution"
    else:
        across_px = down_px = _ASSUMED_DISTANCE_MM * width / _ASSUMED_WIDTH_MM
        source = "assumed"
    distance_mm = across_px * _ASSUMED_WIDTH_MM / width
    estimated = Screen(
        width, height, width * distance_mm / across_px, height * distance_mm / down_px, distance_mm
    )
    return Geometry(estimated, left, top, source)


def _extent(span: float) -> float:
    """Pixels between two corners: trackers write the last pixel (1919) or the size (1920)."""
    return span + 1 if round(span) % 2 else span


def _distance_px(texts: list[str]) -> tuple[float, float] | None:
    """Viewing distance in pixels across and down, from calibration and validation of the same
    targets; None where they do not agree.
    """
    points: list[tuple[float, float]] = []
    targets: dict[int, tuple[float, float]] = {}
    for text in texts:
        if "Calibration points" in text:
            points = []
        elif (match := _POINT.match(text)) is not None:
            points.append((float(match[1]), float(match[2])))
        elif (match := _TARGET.search(text)) is not None:
            targets[int(match[1])] = (float(match[3]), float(match[4]))
    count = len(targets)
    if count < 5 or len(points) < count or sorted(targets) != list(range(count)):
        return None
    href = np.array(points[:count])
    px = np.array([targets[i] for i in range(count)])
    found = [_slope(href, px, axis) for axis in (0, 1)]
    if found[0] is None or found[1] is None:
        return None
    across, down = found[0] * HREF_DISTANCE, found[1] * HREF_DISTANCE
    # Pixels are nearly square: both axes must tell nearly the same distance.
    plausible = min(across, down) > 0 and max(across, down) < 1.15 * min(across, down)
    return (across, down) if plausible else None


def _slope(href: Floats, px: Floats, axis: int) -> float | None:
    """Pixels per HREF unit along an axis, None where the targets do not lie on a line.

    The tracker shows the corner targets of a validation nearer to the centre than those of the
    calibration (`validation_corner_scaling`), so only targets in the row or column of the first
    one, the centre, are compared.
    """
    other = 1 - axis
    along = np.abs(px[:, other] - px[0, other]) <= 0.02 * np.ptp(px[:, other])
    if np.count_nonzero(along) < 3:
        along = np.ones(len(px), dtype=np.bool_)
    h, p = href[along, axis], px[along, axis]
    if np.ptp(h) == 0 or np.ptp(p) == 0:
        return None
    slope, offset = np.polyfit(h, p, 1)
    if np.abs(p - slope * h - offset).max() > 0.1 * np.ptp(p):
        return None
    return float(slope)


#: `parse(path, stamp, trials)`: a file; kept until the next one or another stamp.
Parse = Callable[[Path, tuple[int, int], str | None], "Parsed"]


@dataclass(frozen=True)
class Samples:
    """All samples of a file, in file order.

    Parameters
    ----------
    t_ns : array of int64, shape (n,)
        Time in nanoseconds.
    eyes : dict of str to array, shape (n, 3)
        x, y and pupil of each eye in the file's units, NaN where lost.
    recorded : dict of str to array of bool, shape (n,)
        Where each eye was recorded at all.
    has_pupil : bool
        Whether any pupil was measured.
    shared_times : int
        Rows whose time was that of the row before.
    """

    t_ns: Ints
    eyes: dict[str, Floats]
    recorded: dict[str, Bools]
    has_pupil: bool = True
    shared_times: int = 0


def drop_lost(eyes: Mapping[str, Floats]) -> bool:
    """Make samples with a pupil of 0 NaN, or the pupil alone where none was measured; returns
    whether one was.
    """
    has_pupil = any((values[:, 2] > 0).any() for values in eyes.values())
    for values in eyes.values():
        if has_pupil:
            values[values[:, 2] == 0] = np.nan
        else:
            values[:, 2] = np.nan
    return has_pupil


@dataclass(frozen=True)
class Parsed:
    """All samples of a file, in file order, its trials and its events.

    Parameters
    ----------
    samples : Samples
        Empty in a file of events only.
    labels : dict of str to array of str
        The tracker's word for each sample, by eye.
    rate_hz : array, shape (n,)
        The rate the file states for each sample, NaN where it does not.
    href : array of bool, shape (n,)
        Where x and y are HREF angles instead of pixels.
    block_of : array of int64, shape (n,)
        The START block of each sample.
    starts : array of int64
        The line each block begins on.
    trials : tuple of Trial
        Their rows are samples, or events in a file of events only.
    texts : list of str
        All messages without their times.
    metadata : dict
        What the header says.
    events : tuple of EventLine
        The tracker's own events, in file order.
    resolution : tuple of float, optional
        Pixels per degree of x and y that the file states.
    """

    samples: Samples
    labels: dict[str, Texts]
    rate_hz: Floats
    href: Bools
    block_of: Ints
    starts: Ints
    trials: tuple[Trial, ...]
    texts: list[str]
    metadata: dict[str, object]
    events: tuple[EventLine, ...]
    resolution: tuple[float, float] | None = None

    @property
    def has_samples(self) -> bool:
        """Whether the file holds more than events."""
        return len(self.samples.t_ns) > 0 or not self.events

    def geometry(self, path: Path, screen: Screen | None) -> Geometry:
        """The screen, from what the user and the file say; looked for once, because a file may have
        hundreds of trials and many messages.
        """
        if screen not in self._geometries:
            self._geometries[screen] = from_messages(path, self.texts, screen, self.resolution)
        return self._geometries[screen]

    @cached_property
    def _geometries(self) -> dict[Screen | None, Geometry]:
        return {}

    @cached_property
    def _ranges(self) -> dict[str, tuple[Ints, Ints]]:
        """Events of each eye by number, and their first and last samples, shape (n, 2)."""
        samples = self.samples
        found = event_ranges(self.events, samples.t_ns, self.block_of, self.starts)
        of_right = np.array([e.eye == "right" for e in self.events], dtype=np.bool_)
        numbers = {"left": np.flatnonzero(~of_right), "right": np.flatnonzero(of_right)}
        return {eye: (mine, found[mine]) for eye, mine in numbers.items()}

    def events_of(self, trial: Trial, eye: str, geometry: Geometry) -> Events | None:
        """The tracker's events of one trial, in order of onset: of one eye, cut at the ends of the
        trial, or those of the trial in a file of events only. A blink lies inside a saccade.
        """
        if not self.events:
            return None
        if not self.has_samples:
            order = sorted((self.events[i] for i in trial.rows), key=lambda e: e.onset_ns)
            none = np.full(len(order), -1, dtype=np.int64)
            onset_ns = np.array([e.onset_ns for e in order], dtype=np.int64)
            ends_ns = np.maximum([e.offset_ns for e in order], onset_ns)
            return _events(order, none, none, onset_ns, ends_ns, geometry)
        mine, ranges = self._ranges[eye]
        first = np.searchsorted(trial.rows, ranges[:, 0])
        last = np.searchsorted(trial.rows, ranges[:, 1], side="right") - 1
        inside = np.flatnonzero((ranges[:, 0] >= 0) & (first <= last))
        inside = inside[np.lexsort((-last[inside], first[inside]))]
        onset, offset = first[inside].astype(np.int64), last[inside].astype(np.int64)
        clock = self.samples.t_ns[trial.rows]
        ends_ns = np.maximum(clock[offset], clock[onset])
        chosen = [self.events[int(mine[i])] for i in inside]
        return _events(chosen, onset, offset, clock[onset], ends_ns, geometry) if chosen else None


def _events(
    lines: Sequence[EventLine],
    onset: Ints,
    offset: Ints,
    onset_ns: Ints,
    offset_ns: Ints,
    geometry: Geometry,
) -> Events:
    """Events with the place of fixations in degrees."""
    x, y = geometry.screen.from_px(
        np.array([e.x_px for e in lines], dtype=np.float64) - geometry.left_px,
        np.array([e.y_px for e in lines], dtype=np.float64) - geometry.top_px,
    )
    kinds = np.array([e.kind for e in lines], dtype=WORD)
    return Events(kinds, onset, offset, onset_ns, offset_ns, x, y, source="eyelink")


def recording_of(
    path: Path, names: Names, parsed: Parsed, index: int, screen: Screen | None
) -> Recording:
    """Trial number `index` of a file."""
    trial, samples = parsed.trials[index], parsed.samples
    geometry = parsed.geometry(path, screen)
    rows = trial.rows if parsed.has_samples else np.empty(0, dtype=np.int64)
    # Blocks of one eye and of both may share a file; an eye that this trial never recorded is no
    # channel of it.
    mine = [e for e in samples.eyes if samples.recorded[e][rows].any()] or list(samples.eyes)
    sides = {eye: _degrees(parsed, eye, rows, geometry) for eye in mine}
    rates = parsed.rate_hz[rows]
    sizes = [samples.eyes[eye][rows, 2] for eye in mine]
    labels = {
        "eyelink" if i == 0 else f"eyelink_{eye}": parsed.labels[eye][rows]
        for i, eye in enumerate(mine)
    }
    return assemble(
        path,
        **vars(names),
        t_ns=samples.t_ns[rows],
        space=geometry.screen,
        left_deg=sides.get("left"),
        right_deg=sides.get("right"),
        rate_hz=float(rates[0]) if len(rates) and np.isfinite(rates[0]) else None,
        pupil=pupil_of(sizes) if samples.has_pupil else None,
        labels=labels,
        events=parsed.events_of(trial, mine[0], geometry),
        messages=trial.messages,
        not_samples={"events": 0 if parsed.has_samples else len(trial.rows)},
        metadata=_metadata(parsed, geometry),
    )


def _degrees(parsed: Parsed, eye: str, rows: Ints, geometry: Geometry) -> Floats:
    x, y = parsed.samples.eyes[eye][rows, 0], parsed.samples.eyes[eye][rows, 1]
    on_screen = geometry.screen.from_px(x - geometry.left_px, y - geometry.top_px)
    href = parsed.href[rows]
    angles = [
        np.where(href, np.degrees(np.arctan(v / HREF_DISTANCE)), p)
        for v, p in zip((x, y), on_screen, strict=True)
    ]
    return np.stack(angles, axis=1)


def _metadata(parsed: Parsed, geometry: Geometry) -> dict[str, object]:
    said: dict[str, object] = {**parsed.metadata, "geometry": geometry.source}
    if geometry.source == "assumed":
        said["assumed_geometry"] = True
    if not parsed.samples.has_pupil:
        said.pop("pupil_unit", None)
    if parsed.samples.shared_times:
        said["shared_times"] = parsed.samples.shared_times
    return said


def _check_options(owner: str, screen: object, trials: object) -> None:
    """Refuse a screen or a pattern of trials that is none."""
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse(owner, "screen", "a Screen", screen)
    if trials is None:
        return
    try:
        re.compile(trials)  # type: ignore[call-overload]
    except (re.error, TypeError):
        checks.refuse(
            owner, "trials", "a regular expression for the messages that begin a trial", trials
        )


def refuse_unused_pattern(path: Path, trials: str | None, texts: list[str]) -> None:
    """Refuse a pattern of trials that no message fits."""
    if trials is not None and not any(re.search(trials, text) for text in texts):
        last = "; ".join(printable(text) for text in texts[-3:]) or "none"
        raise FormatError(
            path,
            f"no message fits trials='{trials}' (the last messages: {last})",
            "Mend the pattern, or leave it out.",
        )


def eyelink_format(
    name: str, title: str, sniff: Callable[[Head], bool], parse: Parse, scrub: Scrub
) -> Format:
    """A format of EyeLink files that `parse` understands."""
    scan = partial(_scan, f"Format {name}", parse)
    options = frozenset({"screen", "trials"}) | OPTIONS
    return Format(name, title, sniff, scan, options, scrub=scrub)


def _load(
    parse: Parse, path: Path, names: Names, index: int, screen: Screen | None, trials: str | None
) -> Recording:
    return recording_of(path, names, parse(path, stamp(path), trials), index, screen)


def _scan(
    owner: str,
    parse: Parse,
    path: Path,
    root: Path,
    screen: Screen | None = None,
    trials: str | None = None,
    **options: object,
) -> Iterator[Handle]:
    """One recording per trial, in file order, and one more for samples in no trial."""
    _check_options(owner, screen, trials)
    parsed = parse(path, stamp(path), trials)
    parsed.geometry(path, screen)  # refuses a screen of other pixels before anything is loaded
    naming = naming_options(**options)
    place = {"person": _person(path, root), "stimulus": stem(path)}
    for index, trial in enumerate(parsed.trials):
        names = naming.names(path, root, place, stimulus=trial.name)
        if trial.session > 1:
            before = "" if names.session == "1" else f"{names.session}."
            names = replace(names, session=f"{before}{trial.session}")
        yield names.handle(partial(_load, parse, path, names, index, screen, trials), path)


def _person(path: Path, root: Path) -> str:
    """The file name; or the folder, where folders beside it hold files of the same name."""
    alike = (
        path.parent != root
        and len(list(islice(path.parent.parent.glob(f"*/{escape(path.name)}"), 2))) > 1
    )
    return path.parent.name if alike else stem(path)


#: Stimulus of the samples that no trial claims.
NO_TRIAL = "no-trial"

_TRIALID = re.compile(r"^(?:-?\d+\s+)?TRIALID\b[\s:]*(.*)$")
_TRIAL_RESULT = re.compile(r"^(?:-?\d+\s+)?TRIAL_RESULT\b")


@dataclass(frozen=True)
class Trial:
    """A stretch of samples and messages with one name."""

    name: str
    rows: Ints
    messages: tuple[Message, ...]
    session: int = 1


def cut_trials(
    at: Ints, messages: list[tuple[int, int, str]], starts: Ints, trials: str | None
) -> tuple[tuple[Trial, ...], list[str]]:
    """Trials with samples, and the names of those without.

    Parameters
    ----------
    at : array of int64
        Line of each sample (of each event, in a file without samples).
    messages : list of (line, time in ns, text)
        In file order.
    starts : array of int64
        Lines of the START blocks.
    trials : str, optional
        Regular expression for the messages that begin a trial; default TRIALID.
    """
    marks = _marks(messages, starts, trials)
    lines = np.array([line for line, _ in marks])
    rows_of = _grouped(np.searchsorted(lines, at, side="right") - 1)
    sent = [Message(t, text) for _, t, text in messages]
    message_of = np.searchsorted(lines, [line for line, _, _ in messages], side="right") - 1
    said_of = _by_trial(sent, message_of, marks)
    result, empty, sessions = [], [], dict[str, int]()
    loose: list[Ints] = [rows_of[-1]] if -1 in rows_of else []
    for i, (_, name) in enumerate(marks):
        rows = rows_of.get(i)
        if name is None:
            loose += [rows] if rows is not None else []
        elif rows is None:
            empty.append(name)
        else:
            sessions[name] = sessions.get(name, 0) + 1
            result.append(Trial(name, rows, tuple(said_of.get(i, ())), sessions[name]))
    if loose:
        result.append(Trial(NO_TRIAL, np.sort(np.concatenate(loose)), tuple(said_of.get(-1, ()))))
    if not result:
        result.append(Trial("", np.empty(0, dtype=np.int64), tuple(sent)))
    return tuple(result), empty


def _marks(
    messages: list[tuple[int, int, str]], starts: Ints, trials: str | None
) -> list[tuple[int, str | None]]:
    """Lines, and the trial that begins on each; None where one ends."""
    marks: list[tuple[int, str | None]] = []
    pattern = re.compile(trials) if trials is not None else _TRIALID
    for line, _, text in messages:
        match = pattern.search(text)
        if match is not None:
            name = (match[1] if match.groups() else None) or match[0]
            marks.append((line, name.strip() or "trial"))
        elif trials is None and _TRIAL_RESULT.match(text):
            marks.append((line, None))
    if any(name is not None for _, name in marks):
        return marks
    return [
        (-1 if i == 0 else int(line), f"{i + 1}" if len(starts) > 1 else "")
        for i, line in enumerate(starts)
    ]


def _grouped(mark_of: Ints) -> dict[int, Ints]:
    """The rows that come after each mark; -1 are those before the first."""
    if not len(mark_of):
        return {}
    order = np.argsort(mark_of, kind="stable")
    values, first = np.unique(mark_of[order], return_index=True)
    return {int(v): rows for v, rows in zip(values, np.split(order, first[1:]), strict=True)}


def _by_trial(
    sent: list[Message], mark_of: Ints, marks: list[tuple[int, str | None]]
) -> dict[int, list[Message]]:
    """The messages of each trial, by its mark; -1 are those before the first trial."""
    begun = [-1, *(i if name is not None else -1 for i, (_, name) in enumerate(marks))]
    # What is sent after a trial's end (its result, its variables) still speaks of that trial.
    last_begun = np.maximum.accumulate(begun)
    found: dict[int, list[Message]] = {}
    for message, k in zip(sent, mark_of, strict=True):
        found.setdefault(int(last_begun[k + 1]), []).append(message)
    return found


_KINDS = {"EFIX": "fixation", "ESACC": "saccade", "EBLINK": "blink"}


@dataclass(frozen=True)
class EventLine:
    """One event: the line it stands on, its word and eye, its times, and for fixations its place in
    pixels.
    """

    line: int
    kind: str
    eye: str
    onset_ns: int
    offset_ns: int
    x_px: float
    y_px: float


def event_lines(path: Path, other: list[tuple[int, str]]) -> Iterator[EventLine]:
    """Events among the lines that are not samples, in file order.

    Raises
    ------
    FormatError
        For an event without times.
    """
    for number, line in other:
        tokens = line.split()
        if not tokens or tokens[0] not in _KINDS:
            continue
        try:
            onset, offset = (round(float(w) * 1e6) for w in tokens[2:4])
        except (ValueError, OverflowError):
            raise FormatError(
                path, f"the {tokens[0]} line has no times", "Mend or remove the line.", number + 1
            ) from None
        if max(abs(onset), abs(offset)) > MOST_NS:
            raise FormatError(
                path,
                f"the {tokens[0]} line has a time that is too large to be one",
                "Mend or remove the line.",
                number + 1,
            )
        place = [_number(w) for w in tokens[5:7]] if tokens[0] == "EFIX" else []
        x, y = place if len(place) == 2 else (float("nan"), float("nan"))
        eye = "right" if tokens[1] == "R" else "left"
        yield EventLine(number, _KINDS[tokens[0]], eye, onset, offset, x, y)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def words_of(
    events: Sequence[EventLine], eyes: list[str], t_ns: Ints, block_of: Ints, starts: Ints
) -> dict[str, Texts]:
    """One word per sample and eye; blinks last, because saccades enclose them.

    Parameters
    ----------
    events : sequence of EventLine
        In file order.
    eyes : list of str
        The eyes that were recorded.
    t_ns, block_of : array of int64, shape (n,)
        Time and START block of each sample.
    starts : array of int64
        Line of each block; an event belongs to the block its line stands in.
    """
    labels = {eye: np.full(len(t_ns), "undefined", dtype=WORD) for eye in eyes}
    placed = zip(events, event_ranges(events, t_ns, block_of, starts).tolist(), strict=True)
    for event, (first, last) in sorted(placed, key=lambda pair: pair[0].kind == "blink"):
        if event.eye in labels and first >= 0:
            labels[event.eye][first : last + 1] = event.kind
    return labels


def event_ranges(events: Sequence[EventLine], t_ns: Ints, block_of: Ints, starts: Ints) -> Ints:
    """First and last sample of each event among those of its block, shape (n, 2), -1 where there is
    none; parameters as in :func:`words_of`.
    """
    blocks = np.searchsorted(starts, [e.line for e in events], side="right") - 1
    spans = {int(b): np.searchsorted(block_of, [b, b + 1]) for b in np.unique(block_of)}
    # A clock may go back within a block, where a row has a wrong time.
    clocks = {b: np.maximum.accumulate(t_ns[slice(*span)]) for b, span in spans.items()}
    found = []
    for event, block in zip(events, np.maximum(blocks, 0).tolist(), strict=True):
        times = clocks.get(block, t_ns[:0])
        first, after = np.searchsorted(times, [event.onset_ns, event.offset_ns + 1])
        first, after = (int(at + spans[block][0]) if block in spans else 0 for at in (first, after))
        found.append((first, after - 1) if first < after else (-1, -1))
    return np.array(found, dtype=np.int64).reshape(-1, 2)
