"""What an EyeLink file holds once it is parsed, and the recordings made of it: shared by the text
(ASC) and the binary (EDF) form.
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
from gazeveil.io.parsing.assemble import assemble, pupil_of
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import MOST_NS, printable, stamp
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, stem
from gazeveil.io.vendors.eyelink.geometry import HREF_DISTANCE, Geometry, from_messages

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
    resolution : array, shape (n, 2), optional
        Pixels per degree of x and y at the place of gaze.
    distance_mm : array, shape (n,), optional
        From the camera to the target on the forehead, NaN where it was lost.
    has_pupil : bool
        Whether any pupil was measured.
    shared_times : int
        Rows whose time was that of the row before.
    """

    t_ns: Ints
    eyes: dict[str, Floats]
    recorded: dict[str, Bools]
    resolution: Floats | None = None
    distance_mm: Floats | None = None
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

    @cached_property
    def distance_mm(self) -> float | None:
        """The median distance of the head in remote mode, or None."""
        distances = self.samples.distance_mm
        return None if distances is None else float(np.nanmedian(distances))

    def geometry(self, path: Path, screen: Screen | None) -> Geometry:
        """The screen, from what the user and the file say; looked for once, because a file may have
        hundreds of trials and many messages.
        """
        if screen not in self._geometries:
            self._geometries[screen] = from_messages(
                path, self.texts, screen, self.resolution, self.distance_mm
            )
        return self._geometries[screen]

    @cached_property
    def _geometries(self) -> dict[Screen | None, Geometry]:
        return {}

    def events_of(self, eye: str) -> tuple[tuple[EventLine, ...], tuple[Ints, Ints]]:
        """The events of one eye, and their first and last samples."""
        if eye not in self._events_by_eye:
            mine = tuple(e for e in self.events if e.eye == eye)
            found = event_ranges(mine, self.samples.t_ns, self.block_of, self.starts)
            self._events_by_eye[eye] = mine, found
        return self._events_by_eye[eye]

    @cached_property
    def _events_by_eye(self) -> dict[str, tuple[tuple[EventLine, ...], tuple[Ints, Ints]]]:
        return {}


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
        events=_events(parsed, trial, mine[0], geometry),
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


def _events(parsed: Parsed, trial: Trial, eye: str, geometry: Geometry) -> Events | None:
    """The tracker's events of one trial; of the first eye where both were recorded."""
    if not parsed.events:
        return None
    if not parsed.has_samples:
        return as_events([parsed.events[i] for i in trial.rows], geometry)
    mine, ranges = parsed.events_of(eye)
    found = events_of_rows(mine, ranges, parsed.samples.t_ns, trial.rows, geometry)
    return found if len(found) else None


def _metadata(parsed: Parsed, geometry: Geometry) -> dict[str, object]:
    said: dict[str, object] = {**parsed.metadata, "geometry": geometry.source}
    if geometry.source in ("assumed", "distance"):
        said["assumed_geometry"] = True
    if not parsed.samples.has_pupil:
        said.pop("pupil_unit", None)
    if parsed.resolution is not None:
        said["resolution_px_per_deg"] = parsed.resolution
    if parsed.samples.distance_mm is not None:
        low, middle, high = np.nanpercentile(parsed.samples.distance_mm, [5, 50, 95])
        said["head_distance_mm"] = {"p5": low, "median": middle, "p95": high}
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


def eyelink_format(name: str, title: str, sniff: Callable[[Head], bool], parse: Parse) -> Format:
    """A format of EyeLink files that `parse` understands."""
    scan = partial(_scan, f"Format {name}", parse)
    return Format(name, title, sniff, scan, frozenset({"screen", "trials"}) | OPTIONS)


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
    known = [e for e in events if e.eye in labels]
    placed = zip(known, _samples_of(known, t_ns, block_of, starts), strict=True)
    for event, samples in sorted(placed, key=lambda pair: pair[0].kind == "blink"):
        labels[event.eye][samples] = event.kind
    return labels


def _samples_of(
    events: Sequence[EventLine], t_ns: Ints, block_of: Ints, starts: Ints
) -> Iterator[Ints]:
    """The samples of each event, among those of the block its line stands in."""
    in_order: dict[int, bool] = {}
    for event in events:
        block = max(int(np.searchsorted(starts, event.line, side="right")) - 1, 0)
        low, high = (int(v) for v in np.searchsorted(block_of, [block, block + 1]))
        times = t_ns[low:high]
        if block not in in_order:
            in_order[block] = bool((np.diff(times) >= 0).all())
        if in_order[block]:
            first, after = np.searchsorted(times, [event.onset_ns, event.offset_ns + 1])
            yield np.arange(low + first, low + after)
        else:
            yield low + np.flatnonzero((times >= event.onset_ns) & (times <= event.offset_ns))


def event_ranges(
    events: Sequence[EventLine], t_ns: Ints, block_of: Ints, starts: Ints
) -> tuple[Ints, Ints]:
    """First and last sample of each event, -1 where the file holds none of it; parameters as in
    :func:`words_of`.
    """
    ranges = [
        (int(samples[0]), int(samples[-1])) if len(samples) else (-1, -1)
        for samples in _samples_of(events, t_ns, block_of, starts)
    ]
    first, last = np.array(ranges, dtype=np.int64).reshape(-1, 2).T
    return first, last


def events_of_rows(
    events: Sequence[EventLine],
    ranges: tuple[Ints, Ints],
    t_ns: Ints,
    rows: Ints,
    geometry: Geometry,
) -> Events:
    """The events of one eye that lie in some rows of a file, in order of onset; what reaches beyond
    them is cut. A blink lies inside a saccade, as the tracker has it.

    Parameters
    ----------
    events : sequence of EventLine
        Those of the eye.
    ranges : tuple of array of int64
        Their first and last samples (:func:`event_ranges`).
    t_ns : array of int64, shape (n,)
        Times of all samples of the file.
    rows : array of int64
        Rows of the recording, increasing.
    geometry : Geometry
        For the place of fixations.
    """
    first = np.searchsorted(rows, ranges[0])
    last = np.searchsorted(rows, ranges[1], side="right") - 1
    inside = np.flatnonzero((ranges[0] >= 0) & (first <= last))
    inside = inside[np.lexsort((-last[inside], first[inside]))]
    onset, offset = first[inside].astype(np.int64), last[inside].astype(np.int64)
    kept = [events[int(i)] for i in inside]
    x, y = _places(kept, geometry)
    clock = t_ns[rows]
    return Events(
        np.array([e.kind for e in kept], dtype=WORD),
        onset,
        offset,
        clock[onset],
        np.maximum(clock[offset], clock[onset]),
        x,
        y,
        source="eyelink",
    )


def _places(events: Sequence[EventLine], geometry: Geometry) -> tuple[Floats, Floats]:
    """Where fixations were, in degrees; NaN for other events."""
    return geometry.screen.from_px(
        np.array([e.x_px for e in events], dtype=np.float64) - geometry.left_px,
        np.array([e.y_px for e in events], dtype=np.float64) - geometry.top_px,
    )


def as_events(lines: Sequence[EventLine], geometry: Geometry) -> Events:
    """Events without samples, in order of onset, with the place of fixations in degrees."""
    order = sorted(lines, key=lambda e: e.onset_ns)
    none = np.full(len(order), -1, dtype=np.int64)
    x, y = _places(order, geometry)
    onset = np.array([e.onset_ns for e in order], dtype=np.int64)
    offset = np.maximum(np.array([e.offset_ns for e in order], dtype=np.int64), onset)
    return Events(
        np.array([e.kind for e in order], dtype=WORD),
        none,
        none,
        onset,
        offset,
        x,
        y,
        source="eyelink",
    )
