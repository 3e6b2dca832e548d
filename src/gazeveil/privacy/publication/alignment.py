"""Times from zero, one public rate, public lengths and one public screen: what a recording's clock
and geometry would tell is taken away before gaze is protected.

Step k of the public clock is at k / rate seconds. Where the tracker has about the same rate,
samples take steps one after the other, as :mod:`gazeveil.privacy.stream.losses.public_clock` says:
jitter moves nothing, a pause becomes lost samples, and where the rates differ a step that is left
over between two samples repeats the earlier one. Where it has another rate, a step takes the last
sample that comes before the middle to the next step, and is lost where that is old or a loss came
after it. So a regular recording of the public rate passes bit for bit, and one sample of the
tracker reaches only the steps before the next one (proofs/publication.md).

One public screen for all recordings of one resolution.

Where a file does not state millimetres, readers compute them from gaze points, calibration or
resolution in degrees. Such a size has thirteen digits, identifies a person and changes with every
sample. So only sizes that several people share pass unchanged. All other screens of one resolution
become one, of median size and distance in whole centimetres. Degrees stay unchanged.

The public rate, lengths and screens are chosen after a look at the recordings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Doubt, Fact, Message, Recording, RecordingKey
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.privacy.stream.losses.public_clock import MOST_STEPS, steps_of

#: Width and height in pixels.
Resolution: TypeAlias = tuple[float, float]

#: Width and height in pixels and in millimetres: what makes screens the same, wherever heads are.
ScreenSize: TypeAlias = tuple[float, float, float, float]

_CENTIMETRE_MM = 10.0
_UNKNOWN_DISTANCE_MM = 100.0  # the distance of a screen that was not looked at is rounded to this


@dataclass(frozen=True)
class PublicScreens:
    """The screens of a release.

    Parameters
    ----------
    shared : mapping of screen size to Screen
        Sizes that several people share, with one viewing distance for each.
    others : mapping of resolution to Screen
        The one screen of all other recordings of a resolution.
    alone : int
        How many people are the only ones at their public screen, which tells them from all others.
    """

    shared: Mapping[ScreenSize, Screen] = field(default_factory=dict)
    others: Mapping[Resolution, Screen] = field(default_factory=dict)
    alone: int = 0

    def __len__(self) -> int:
        return len({*self.shared.values(), *self.others.values()})

    def of(self, screen: Screen) -> Screen:
        """The public screen of a recording's own."""
        size = screen_size(screen)
        known = self.shared.get(size) or self.others.get(size[:2])
        if known is not None:
            return known
        return replace(
            screen,
            width_mm=_rounded(screen.width_mm),
            height_mm=_rounded(screen.height_mm),
            distance_mm=_rounded(screen.distance_mm, far=True),
        )


def screen_size(screen: Screen) -> ScreenSize:
    """What makes two screens the same."""
    return screen.width_px, screen.height_px, screen.width_mm, screen.height_mm


def public_screens(own: Iterable[tuple[str, Screen]]) -> PublicScreens:
    """The public screens of people and the screens they sat at.

    Examples
    --------
    >>> a, b = Screen(1920, 1080, 513.81, 289.94, 633.2), Screen(1920, 1080, 510.02, 288.1, 671.0)
    >>> public_screens([("ann", a), ("bob", b)]).of(a)
    Screen(width_px=1920.0, height_px=1080.0, width_mm=510.0, height_mm=290.0, distance_mm=650.0)
    """
    by_size: dict[ScreenSize, list[tuple[str, Screen]]] = {}
    for person, screen in own:
        by_size.setdefault(screen_size(screen), []).append((person, screen))
    shared: dict[ScreenSize, Screen] = {}
    others: dict[Resolution, list[tuple[str, Screen]]] = {}
    for size, seen in by_size.items():
        if len({person for person, _ in seen}) > 1:
            shared[size] = replace(seen[0][1], distance_mm=_distance(seen))
        else:
            others.setdefault(size[:2], []).extend(seen)
    alone = sum(len({person for person, _ in seen}) == 1 for seen in others.values())
    return PublicScreens(shared, {px: _middle(seen) for px, seen in others.items()}, alone)


def _distance(seen: list[tuple[str, Screen]]) -> float:
    """That of all people where they agree, else the median of people in whole centimetres."""
    distances = {screen.distance_mm for _, screen in seen}
    if len(distances) == 1:
        return distances.pop()
    return _rounded(median({person: screen.distance_mm for person, screen in seen}.values()))


def _middle(seen: list[tuple[str, Screen]]) -> Screen:
    """The median screen of people, in whole centimetres."""
    screens = dict(seen).values()
    return replace(
        seen[0][1],
        width_mm=_rounded(median(screen.width_mm for screen in screens)),
        height_mm=_rounded(median(screen.height_mm for screen in screens)),
        distance_mm=_rounded(median(screen.distance_mm for screen in screens)),
    )


def _rounded(mm: float, far: bool = False) -> float:
    """Millimetres in whole centimetres, or decimetres, and at least one."""
    step_mm = _UNKNOWN_DISTANCE_MM if far else _CENTIMETRE_MM
    return step_mm * max(1, round(mm / step_mm))


#: Longest step between two samples of the tracker that is no pause, in its own periods.
LONGEST_STEP = 1.5

#: Rates that differ by at most this share go step by step.
SAME_RATE = 0.02

_CHANNELS = ("left_deg", "right_deg", "head_deg", "eye_in_head_deg", "pupil", "confidence")

#: The label of an unlabelled sample.
UNLABELLED = "undefined"


@dataclass(frozen=True)
class Alignment:
    """What every recording of a release has in common.

    Parameters
    ----------
    rate_hz : Fraction, optional
        The public rate; None where each recording keeps its own.
    times_kept : bool
        Whether the tracker's own times pass as they are; then nothing else is aligned but screens.
    lengths_s : mapping of stimulus to seconds
        Public lengths; recordings of other stimuli keep their own.
    screens : PublicScreens
        The public screens; the eyes' own distance, and a size that was worked out from a recording,
        tell people apart.
    slowest_hz : float
        The lowest rate of a recording that was looked at, in Hz; NaN where that is not known.
    in_head : bool
        Whether degrees are relative to the head in every recording that was looked at.
    """

    rate_hz: Fraction | None = None
    times_kept: bool = False
    lengths_s: Mapping[str, Fraction] = field(default_factory=dict)
    screens: PublicScreens = field(default_factory=PublicScreens)
    slowest_hz: float = math.nan
    in_head: bool = False

    def applied(self, recording: Recording) -> Recording:
        """A recording on the public clock, with every channel it has.

        Raises
        ------
        DataError
            Where its rate is not known, or its times need more steps than a recording may have.
        """
        space = self.public_space(recording.space)
        if not len(recording) and self.rate_hz is not None and math.isnan(recording.rate_hz):
            # A file without a row must not stop a folder; nothing of it needs a clock.
            recording = recording.with_(rate_hz=float(self.rate_hz))
        if self.times_kept or not len(recording):
            return recording.with_(space=space)
        if math.isnan(recording.rate_hz):
            raise DataError(
                f"The rate of {recording.title} is not known, so it cannot be put on a public"
                " clock. Say it: recording.with_(rate_hz=...), or keep its times."
            )
        rate_hz = recording.rate_hz if self.rate_hz is None else float(self.rate_hz)
        length = self.lengths_s.get(recording.stimulus)
        steps = None if length is None else math.ceil(length * Fraction(repr(rate_hz)))
        if _is_aligned(recording, rate_hz, steps):
            return recording.with_(space=space, counts={}, truth=None)
        sources = sources_of_steps(recording, rate_hz)
        if steps is not None:
            # Cut, or filled up with lost samples.
            lost = np.full(max(0, steps - len(sources)), -1, dtype=np.int64)
            sources = np.concatenate((sources[:steps], lost))
        return _gathered(recording, sources, rate_hz).with_(space=space)

    def public_space(self, space: Space) -> Space:
        """The sphere as it is, or the public screen."""
        return space if isinstance(space, Sphere) else self.screens.of(space)

    @property
    def most_steps(self) -> int:
        """How many steps one sample of the tracker reaches at most."""
        if self.rate_hz is None or math.isnan(self.slowest_hz):
            return 1
        ratio = float(self.rate_hz) / self.slowest_hz
        if ratio == 1.0:
            return 1
        return 3 if abs(ratio - 1.0) <= SAME_RATE else math.floor(LONGEST_STEP * ratio + 0.5) + 1

    def to_dict(self) -> dict[str, object]:
        """The alignment as a certificate has it."""
        durations = "kept" if not self.lengths_s else "public"
        return {
            "time_zero": not self.times_kept,
            "rate_hz": None if self.rate_hz is None else str(self.rate_hz),
            "durations": durations,
            **({"frame": "head"} if self.in_head else {}),
        }


def aligned(cohort: Cohort, alignment: Alignment) -> Cohort:
    """Every recording of a cohort on the public clock; files are aligned when they are loaded."""
    items: list[Recording | Handle] = []
    for item in cohort.items:
        if isinstance(item, Recording):
            items.append(alignment.applied(item))
        else:
            items.append(replace(item, load=partial(_load, item.load, alignment), chunks=None))
    return Cohort(items, cohort.people, cohort.skipped, cohort.name, cohort.read_as)


def _load(load: Any, alignment: Alignment) -> Recording:
    return alignment.applied(load())


def _is_aligned(recording: Recording, rate_hz: float, steps: int | None) -> bool:
    """Whether a recording is gaze and nothing else, at every step of the clock and no other time:
    most releases are, and putting them on the clock again would take as long as the first time.
    """
    if recording.rate_hz != rate_hz or (steps is not None and steps != len(recording)):
        return False
    others = (recording.labels, recording.messages, recording.metadata)
    if (
        any(others)
        or recording.events is not None
        or any(getattr(recording, n) is not None for n in _CHANNELS)
    ):
        return False
    clock_ns = np.rint(np.arange(len(recording)) * (1e9 / rate_hz)).astype(np.int64)
    return bool(recording.valid.all()) and np.array_equal(recording.t_ns, clock_ns)


def sources_of_steps(recording: Recording, rate_hz: float) -> Ints:
    """The sample that each step of the public clock takes, -1 where there is no gaze."""
    rows = np.flatnonzero(recording.valid)
    ratio = rate_hz / recording.rate_hz
    if not len(rows):
        return np.full(max(1, round(len(recording) * ratio)), -1, dtype=np.int64)
    seconds = float(recording.t_ns[rows[-1]] - recording.t_ns[rows[0]]) / 1e9
    if seconds * rate_hz > MOST_STEPS:
        raise DataError(
            f"The times of {recording.title} take more than {MOST_STEPS} samples at"
            f" {rate_hz:g} Hz, because of a pause or of a wrong time. Cut it, or keep its times."
        )
    return (
        _in_turn(recording, rate_hz)
        if abs(ratio - 1) <= SAME_RATE
        else _latest(recording, rate_hz, rows)
    )


def _in_turn(recording: Recording, rate_hz: float) -> Ints:
    """Samples step by step."""
    steps, count = steps_of(recording, rate_hz, None)
    taken = np.flatnonzero(steps >= 0)
    sources = np.full(count, -1, dtype=np.int64)
    sources[steps[taken]] = taken
    if rate_hz == recording.rate_hz:
        return sources  # no step is left over but by a pause
    longest_ns = LONGEST_STEP * 1e9 / recording.rate_hz
    # Neighbours without a pause, whose steps are apart: the earlier one is repeated.
    near = (np.diff(taken) == 1) & (np.diff(recording.t_ns[taken]) <= longest_ns)
    for i in np.flatnonzero(near & (np.diff(steps[taken]) > 1)):
        sources[steps[taken[i]] + 1 : steps[taken[i + 1]]] = taken[i]
    return sources


def _latest(recording: Recording, rate_hz: float, rows: Ints) -> Ints:
    """For each step the last good sample before the middle to the next step.

    Parameters
    ----------
    recording : Recording
        Raw gaze.
    rate_hz : float
        Of the clock.
    rows : array of int
        Samples with gaze.
    """
    own_s, period_s = 1 / recording.rate_hz, 1 / rate_hz
    t_s = (recording.t_ns - recording.t_ns[rows[0]]).astype(np.float64) / 1e9
    before_s = int(rows[0]) * own_s  # lost samples at the beginning and at the end have time too
    after_s = (len(recording) - 1 - int(rows[-1])) * own_s
    last_s = float(t_s[rows[-1]])
    count = math.floor((before_s + last_s + after_s) * rate_hz + 0.5) + 1
    at_s = np.arange(count) * period_s - before_s
    middle_s = at_s + period_s / 2
    latest = np.searchsorted(t_s[rows], middle_s, side="right") - 1
    source = rows[np.maximum(latest, 0)]
    following = np.minimum(source + 1, len(recording) - 1)
    lost_s = np.where(t_s[following] > t_s[source], t_s[following], t_s[source] + own_s)
    cut_off = (following != source) & ~recording.valid[following] & (middle_s >= lost_s)
    old = at_s - t_s[source] > LONGEST_STEP * own_s
    beyond = at_s > last_s + own_s / 2 + period_s / 2
    return np.where((latest < 0) | cut_off | old | beyond, -1, source)


def _gathered(recording: Recording, sources: Ints, rate_hz: float) -> Recording:
    """A recording whose samples are those of the steps."""
    lost = sources < 0
    at = np.where(lost, 0, sources)

    def floats(values: NDArray[np.float64]) -> NDArray[np.float64]:
        taken: NDArray[np.float64] = values[at].astype(np.float64)
        taken[lost] = np.nan
        return taken

    channels: dict[str, Any] = {
        n: floats(getattr(recording, n)) for n in _CHANNELS if getattr(recording, n) is not None
    }
    same = len(sources) == len(recording) and bool((lost | (sources == np.arange(len(at)))).all())
    events = recording.events
    origin_ns = int(recording.t_ns[0])
    if events is not None and same:
        moved = {n: getattr(events, n) - origin_ns for n in ("onset_ns", "offset_ns")}
        events = replace(events, **moved)
    elif events is not None:
        events = None
    return recording.with_(
        t_ns=np.rint(np.arange(len(sources)) * (1e9 / rate_hz)).astype(np.int64),
        x_deg=floats(recording.x_deg),
        y_deg=floats(recording.y_deg),
        valid=~lost & recording.valid[at],
        rate_hz=rate_hz,
        labels={k: np.where(lost, UNLABELLED, v[at]) for k, v in recording.labels.items()},
        events=events,
        messages=tuple(Message(m.t_ns - origin_ns, m.text) for m in recording.messages),
        metadata=_metadata(recording, at),
        counts={},
        truth=None,
        **channels,
    )


def _metadata(recording: Recording, at: Ints) -> dict[str, object]:
    """The metadata; what has a value for each sample goes with the samples."""
    return {
        k: v[at] if isinstance(v, np.ndarray) and len(v) == len(recording) else v
        for k, v in recording.metadata.items()
        if not isinstance(v, np.ndarray) or v.ndim
    }


# --- a look at recordings
# --------------------------------------------------------------------------------------------------


#: Rates that trackers are sold with, in Hz: to have one of them tells nothing.
USUAL_RATES_HZ = (
    *(25, 30, 50, 60, 72, 75, 90, 100, 120, 125, 150, 200, 240, 250, 300),
    *(500, 600, 1000, 1200, 1250, 2000),
)

#: How many recordings are looked at where lengths do not matter.
ENOUGH = 24

#: Wraps a loop, for a progress bar.
Progress = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True)
class Look:
    """What is seen of a recording; `faults` are samples that reading marked as lost, because their
    times go back or no eye can look there.
    """

    key: RecordingKey
    rate_hz: float
    samples: int
    valid: int
    duration_s: float
    space: Space
    events: int = 0
    in_head: bool = False
    faults: int = 0
    doubts: tuple[Doubt, ...] = ()
    screen: Fact | None = None


def look_at(
    cohort: Cohort,
    every: bool,
    progress: Progress = lambda numbers: numbers,
    also: Callable[[Recording], object] = lambda recording: None,
) -> tuple[Look, ...]:
    """Look at recordings, one in memory at a time.

    Parameters
    ----------
    cohort : Cohort
        Recordings or files.
    every : bool
        Whether all files are read, or :data:`ENOUGH` of them, spread over the cohort. What is in
        memory is always looked at.
    progress : callable
        Wraps the loop over files.
    also : callable
        Shown every recording that is looked at, while it is in memory.
    """
    files = [i for i, item in enumerate(cohort.items) if not isinstance(item, Recording)]
    stride = 1 if every else max(1, math.ceil(len(files) / ENOUGH))
    chosen = [i for i, item in enumerate(cohort.items) if isinstance(item, Recording)]
    looks = []
    for i in progress(sorted([*chosen, *files[::stride]])):
        recording = cohort[i]
        also(recording)
        looks.append(_look(recording))
    return tuple(looks)


def _look(recording: Recording) -> Look:
    return Look(
        recording.key,
        recording.rate_hz,
        len(recording),
        int(recording.valid.sum()),
        recording.duration_s,
        recording.space,
        0 if recording.events is None else len(recording.events),
        recording.metadata.get("frame") == "head",
        sum(int(str(recording.metadata.get(n, 0))) for n in ("time_faults", "impossible")),
        recording.doubts,
        recording.facts.get("screen"),
    )


def needs_every(choices: PublicationChoices) -> bool:
    """Whether public choices depend on all recordings."""
    return choices.durations == "common"


def public_alignment(looks: Sequence[Look], choices: PublicationChoices) -> Alignment:
    """The alignment of recordings that were looked at.

    Raises
    ------
    DataError
        Where no recording has a rate.
    ParameterError
        For the length of an unknown stimulus.
    """
    screens = public_screens(
        (look.key[0], look.space) for look in looks if isinstance(look.space, Screen)
    )
    in_head = bool(looks) and all(look.in_head for look in looks)
    if "times" in choices.keep:
        return Alignment(times_kept=True, screens=screens, in_head=in_head)
    rates = [look.rate_hz for look in looks if not math.isnan(look.rate_hz)]
    if not rates:
        raise DataError(
            "None of these recordings says its rate, so there is no public clock for them. Say it"
            " when they are read, or keep their times."
        )
    rate = choices.public_rate_hz
    if rate is None and "rate" not in choices.keep:
        rate = Fraction(usual_rate_hz(median(rates)))
    lengths = _lengths(looks, choices)
    return Alignment(rate, False, lengths, screens, min(rates), in_head)


def usual_rate_hz(rate_hz: float) -> int:
    """The usual rate nearest to a rate, by their ratio.

    Examples
    --------
    >>> usual_rate_hz(71.93), usual_rate_hz(254.0)
    (72, 250)
    """
    return min(USUAL_RATES_HZ, key=lambda usual: abs(math.log(rate_hz / usual)))


def _lengths(looks: Sequence[Look], choices: PublicationChoices) -> Mapping[str, Fraction]:
    if isinstance(choices.durations, Mapping):
        known = {look.key[1] for look in looks}
        for stimulus in choices.durations:
            checks.one_of("publication", "durations", stimulus, known)
        return {s: Fraction(d) for s, d in choices.durations.items()}
    if choices.durations == "keep":
        return {}
    lengths: dict[str, list[float]] = {}
    for look in looks:
        period = 0.0 if math.isnan(look.rate_hz) else 1.0 / look.rate_hz
        lengths.setdefault(look.key[1], []).append(look.duration_s + period)
    # Tenths of a second: a median to the nanosecond is one person's own length.
    return {s: Fraction(max(1, round(10 * median(own))), 10) for s, own in lengths.items()}
