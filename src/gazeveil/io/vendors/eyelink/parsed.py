"""What an EyeLink file holds once it is parsed, and the recordings made of it: shared by the text
(ASC) and the binary (EDF) form.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from glob import escape
from itertools import islice
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.delimited import stamp
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.pupil import pupil_of
from gazeveil.io.parsing.table import printable
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, stem
from gazeveil.io.vendors.eyelink.events import EventLine, as_events, event_ranges, events_of_rows
from gazeveil.io.vendors.eyelink.geometry import HREF_DISTANCE, Geometry, from_messages
from gazeveil.io.vendors.eyelink.samples import Samples
from gazeveil.io.vendors.eyelink.trials import Trial

#: `parse(path, stamp, trials)`: a file; kept until the next one or another stamp.
Parse = Callable[[Path, tuple[int, int], str | None], "Parsed"]


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
    pupil = pupil_of(sizes)
    return assemble(
        path,
        **vars(names),
        t_ns=samples.t_ns[rows],
        space=geometry.screen,
        left_deg=sides.get("left"),
        right_deg=sides.get("right"),
        rate_hz=float(rates[0]) if len(rates) and np.isfinite(rates[0]) else None,
        pupil=pupil if samples.has_pupil else None,
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
) -> list[Handle]:
    """One recording per trial, in file order, and one more for samples in no trial."""
    _check_options(owner, screen, trials)
    parsed = parse(path, stamp(path), trials)
    source = parsed.geometry(path, screen).source
    if source in ("assumed", "distance"):
        distance = "" if source == "distance" else " at 700 mm"
        warnings.warn(
            f"EyeLink file without screen size, calibration and resolution: a 531 mm wide screen"
            f"{distance} is assumed. Give screen=Screen(...).",
            stacklevel=3,
        )
    naming = naming_options(**options)
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
        handles.append(
            names.handle(partial(_load, parse, path, names, index, screen, trials), path)
        )
    return handles


def _person(path: Path, root: Path) -> str:
    """The file name; or the folder, where folders beside it hold files of the same name."""
    alike = (
        path.parent != root
        and len(list(islice(path.parent.parent.glob(f"*/{escape(path.name)}"), 2))) > 1
    )
    return path.parent.name if alike else stem(path)
