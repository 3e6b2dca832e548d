"""What every utility is: a frozen value of parameters that measures what released material is still
good for.

Averages of figures of recordings over people.

What an analyst reads from one recording: where the eye rested, when and how long, and where its
jumps led.

Places. A fixation lies at the mean of its valid samples: their mean direction on a sphere, the mean
of the degrees on a screen. Its duration is the time from its first to its last sample plus one
sample. A saccade leads from the sample before it to its last valid sample.

Whose events. Where events are detected again, the release's own samples decide. Where labels are
carried as David-John et al.'s (2021) stream of (x, y, t, e) does, the events with their times and
durations are those of the raw recording and only the places move, since the samples are the
released ones: this holds for releases whose labels are the raw ones, sample by sample or every
K-th. A release with other labels speaks for itself.

Stretches of looking, as recorded beside as released: whole recordings where names last, pieces
where each piece has a name of its own.

A release of pieces has its own public windows, and an analyst of it knows no more than them. To
compare like with like the recording that a piece was made for is cut at the same times, counted
from its first sample. Only here is it looked up whose a piece is: to compare it with the truth.
Where names last, both sides can be cut into windows of a public length, so that a figure about
windows means the same for every mechanism.

The conformance kit of utilities: raw against raw is perfect, and noise makes it worse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import PurePath
from typing import ClassVar

import numpy as np

from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.conformance import CheckResult, run_kit
from gazeveil.errors import DataError
from gazeveil.features.recording_set import CARRIED, FeaturePipeline, RecordingSet
from gazeveil.features.recordings import column_means
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.gaze.scratch import set_aside
from gazeveil.gaze.simulate import simulate

#: What a note says where a release has no fixation at all, so that its map is an even one.
NO_FIXATION = "no fixation was found in the release"


@dataclass(frozen=True, eq=False)
class UtilityResult:
    """One figure of a utility.

    Parameters
    ----------
    metric : str
        What it is, with its unit where it has one: `accuracy`, `dwell_rmse_s`, `kl`...
    value : float
        The figure; NaN where it could not be measured, and then `note` says why.
    parts : array of float64
        Its parts, over which an interval can be drawn: one per person or per stimulus (as `of`
        says). The value is their mean unless `note` says otherwise.
    of : str
        What the parts are: `person`, `stimulus`, `recording`.
    names : tuple of str
        Names of the parts.
    chance : float
        What knowing nothing would give; NaN where there is no such thing.
    better : {"higher", "lower"}
        Which way is better.
    note : str
        Protocol, in a few words.
    """

    metric: str
    value: float
    parts: Floats
    of: str
    names: tuple[str, ...]
    chance: float = float("nan")
    better: str = "lower"
    note: str = ""


@dataclass(frozen=True)
class Utility(ABC):
    """Base of all utilities.

    Class attributes
    ----------------
    name : str
        As in `gazeveil evaluate --utility name`.
    needs : tuple of str
        What it looks at: `fixation`, `saccade`, `window` (tables) or `samples`.
    trains : bool
        Whether it learns on one recording set and is tested on another, and so depends on the
        scenario.
    files : tuple of str
        Parameters that name a file.
    halves : {"", "people", "recordings"}
        What raw recordings are compared with where nothing is protected, so that a reader sees how
        far apart two halves are that are equally good: every second person's with the others', or
        every second recording of each person with the others; empty where a figure needs the same
        ones.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    trains: ClassVar[bool] = False
    files: ClassVar[tuple[str, ...]] = ()
    halves: ClassVar[str] = ""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:  # noqa: B027 a hook, not a duty
        """Check the parameters; subclasses extend this."""

    @abstractmethod
    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Measure.

        Parameters
        ----------
        raw : RecordingSet
            As recorded: the truth.
        train : RecordingSet
            What an analyst trains on; a utility that does not train ignores it.
        test : RecordingSet
            What the analyst uses in the end: the release in question.
        seed : int
            For the analyst's own randomness.

        Raises
        ------
        DataError
            If the recording set cannot be measured this way, with the reason.
        """

    def can(self, recording_set: RecordingSet) -> bool:
        """Whether a release holds what this utility looks at."""
        return all(
            recording_set.cohort is not None if need == "samples" else recording_set.has(need)
            for need in self.needs
        )

    def halved(self, raw: RecordingSet) -> tuple[RecordingSet, RecordingSet]:
        """The halves of raw recordings; all of them twice where there are none."""
        keys = sorted(raw.keys)
        if self.halves == "people":
            place = {person: i for i, person in enumerate(dict.fromkeys(k[0] for k in keys))}
            first = {key for key in keys if place[key[0]] % 2 == 0}
        else:
            own = groupby(keys, key=itemgetter(0))
            first = {key for _, recordings in own for key in list(recordings)[::2]}
        if not self.halves or len(first) == len(raw.keys):
            return raw, raw
        return raw.where(first.__contains__), raw.where(lambda key: key not in first)

    def store(self, name: str, value: object) -> None:
        """Put the checked form of a parameter in its place; only for :meth:`check`."""
        object.__setattr__(self, name, value)

    def __str__(self) -> str:
        """The command line's form: the name, and the parameters that are not the defaults."""
        return self._written(lambda _, value: value)

    @property
    def public_text(self) -> str:
        """The command line's form as it may be published: `str`, with the names of files instead of
        where they lie.
        """
        return self._written(
            lambda name, value: PurePath(str(value)).name if name in self.files else value
        )

    def _written(self, shown: Callable[[str, object], object]) -> str:
        parts = [
            f"{f.name}={shown(f.name, getattr(self, f.name))}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return self.name + (":" + ",".join(parts) if parts else "")


def over_people(
    metric: str,
    values: Floats,
    persons: Texts,
    note: str,
    better: str = "lower",
    chance: float = np.nan,
) -> UtilityResult:
    """Average over a person's recordings, then over features, then over people; people without a
    figure are left out of the value.
    """
    names = np.unique(persons).tolist()
    parts = np.array([float(column_means(column_means(values[persons == name]))) for name in names])
    lost = int(np.isnan(parts).sum())
    if lost:
        note += f"; {lost} of {len(parts)} people have no figure"
        names = [n for n, p in zip(names, parts.tolist(), strict=True) if not np.isnan(p)]
        parts = parts[~np.isnan(parts)]
    value = float(parts.mean()) if len(parts) else float("nan")
    return UtilityResult(metric, value, parts, "person", tuple(names), chance, better, note)


@dataclass(frozen=True, eq=False)
class Scanpath:
    """Fixations and saccades of one recording, in order; NaN where a place is not known.

    Parameters
    ----------
    x_deg, y_deg : array of float64, shape (fixations,)
        Where each fixation lies.
    onset_s, duration_s : array of float64, shape (fixations,)
        When it began, counted from the first sample of the recording (the first event, where there
        are no samples), and how long it lasted.
    from_x_deg, from_y_deg, to_x_deg, to_y_deg : array of float64, shape (saccades,)
        Where each saccade leads.
    saccade_s : array of float64, shape (saccades,)
        When it began.
    """

    x_deg: Floats
    y_deg: Floats
    onset_s: Floats
    duration_s: Floats
    from_x_deg: Floats
    from_y_deg: Floats
    to_x_deg: Floats
    to_y_deg: Floats
    saccade_s: Floats

    @classmethod
    def empty(cls) -> Scanpath:
        """Nothing seen at all."""
        return cls(*(np.empty(0) for _ in range(9)))


def need_samples(owner: str, *recording_sets: RecordingSet) -> None:
    """Refuse material without recordings.

    Raises
    ------
    DataError
        For a release of tables, or a cohort without recordings.
    """
    for recording_set in recording_sets:
        if recording_set.cohort is None:
            raise DataError(
                f"The utility {owner} looks at samples, and this release holds tables only. Leave"
                " it out for this mechanism."
            )
        if len(recording_set.cohort) == 0:
            raise DataError(f"The utility {owner} needs recordings and the cohort has none.")


def side_by_side(
    raw: RecordingSet, released: RecordingSet
) -> Iterator[tuple[Recording | None, Recording | None]]:
    """Each recording as recorded and as released, one pair at a time; None where one side does not
    have it.
    """
    if raw.cohort is None or released.cohort is None:
        return
    same = released.cohort is raw.cohort
    at = {key: i for i, key in enumerate(released.cohort.keys)}
    for i, key in enumerate(raw.cohort.keys):
        recording = raw.cohort[i]
        place = at.pop(key, None)
        yield recording, recording if same else None if place is None else released.cohort[place]
    for place in at.values():
        yield None, released.cohort[place]


def scanpath_as_recorded(recording_set: RecordingSet, recording: Recording) -> Scanpath:
    """The scanpath of a raw recording: by its own labels where it has carried ones, else as
    detected.
    """
    return _measured(recording, recording, _raw_events(recording_set.pipeline, recording), 1)


def scanpath_as_released(
    recording_set: RecordingSet, recording: Recording, raw: RecordingSet, recorded: Recording | None
) -> Scanpath:
    """The scanpath of a released recording; see the top of the page for whose events count.

    Parameters
    ----------
    recording_set : RecordingSet
        The release.
    recording : Recording
        One of its recordings.
    raw : RecordingSet
        What was recorded.
    recorded : Recording, optional
        The same recording there.
    """
    pipeline = recording_set.pipeline
    if len(recording) and recorded is not None and pipeline.events == "carried":
        stride = -(-len(recorded) // len(recording))
        events = _raw_events(raw.pipeline, recorded)
        if np.array_equal(
            recording.labels.get(CARRIED, np.empty(0, dtype=np.str_)),
            events.words(len(recorded))[::stride],
        ):
            return _measured(recorded, recording, events, stride)
    return _measured(recording, recording, _events(pipeline, recording), 1)


def _raw_events(pipeline: FeaturePipeline, recording: Recording) -> Events:
    if CARRIED not in recording.labels:
        pipeline = FeaturePipeline(pipeline.method, pipeline.parameters)
    return _events(pipeline, recording)


def _events(pipeline: FeaturePipeline, recording: Recording) -> Events:
    if len(recording) == 0:
        return recording.events if recording.events is not None else Events.empty()
    return pipeline.events_of(recording)


def _measured(clock: Recording, samples: Recording, events: Events, stride: int) -> Scanpath:
    """The scanpath of events of `clock` whose places are those of `samples`, which has every
    stride-th sample of it.
    """
    fixations, saccades = events.of("fixation"), events.of("saccade")
    origin = int(clock.t_ns[0]) if len(clock) else int(events.onset_ns.min()) if len(events) else 0
    step_s = 1.0 / clock.rate_hz if len(clock) and clock.rate_hz > 0 else 0.0
    if len(clock) == 0:
        known = fixations.x_deg is not None and fixations.y_deg is not None
        nowhere = np.full(len(fixations), np.nan)
        x, y = (fixations.x_deg, fixations.y_deg) if known else (nowhere, nowhere)
        ways = np.full((4, len(saccades)), np.nan)
    else:
        x, y = _means(samples, -(-fixations.onset // stride), fixations.offset // stride)
        ways = _ways(samples, -(-saccades.onset // stride), saccades.offset // stride)
    assert x is not None
    assert y is not None
    onset_s, saccade_s = ((e.onset_ns - origin) / 1e9 for e in (fixations, saccades))
    from_x, from_y, to_x, to_y = ways
    duration_s = fixations.duration_s + step_s
    return Scanpath(x, y, onset_s, duration_s, from_x, from_y, to_x, to_y, saccade_s)


def _means(recording: Recording, first: Ints, last: Ints) -> tuple[Floats, Floats]:
    """Mean places of runs of samples (inclusive); NaN where no sample is valid."""
    space: Space = recording.space
    valid = recording.valid
    x, y = recording.x_deg[valid], recording.y_deg[valid]
    places = space.vectors(x, y) if isinstance(space, Sphere) else np.stack((x, y), axis=1)
    sums = np.zeros((len(valid) + 1, places.shape[1]))
    sums[1:][valid] = places
    sums = np.cumsum(sums, axis=0)
    counts = np.concatenate(([0], np.cumsum(valid)))
    a, b = np.minimum(first, len(valid)), np.minimum(last, len(valid) - 1) + 1
    b = np.maximum(a, b)
    n = counts[b] - counts[a]
    total = np.where((n > 0)[:, None], sums[b] - sums[a], np.nan)
    if isinstance(space, Sphere):
        return space.degrees(total)
    mean = total / np.maximum(n, 1)[:, None]
    return mean[:, 0], mean[:, 1]


def _ways(recording: Recording, first: Ints, last: Ints) -> Floats:
    """Places (x, y) before each run of samples and at its last valid one, shape (4, runs)."""
    n = len(recording)
    x, y = (np.where(recording.valid, v, np.nan) for v in (recording.x_deg, recording.y_deg))
    # The last valid sample up to each one.
    before = np.maximum.accumulate(np.where(recording.valid, np.arange(n), -1))
    a, b = np.clip(first, 0, n - 1), np.clip(last, 0, n - 1)
    start = np.where(a > 0, a - 1, a)
    start = np.where(recording.valid[start], start, a)
    end = before[b]
    there = (end >= a) & (first <= last)
    end = np.where(there, end, 0)
    ways = np.stack((x[start], y[start], x[end], y[end]))
    return np.where(there, ways, np.nan)


@dataclass(frozen=True, eq=False)
class Stretch:
    """Some seconds of one viewer's looking at one stimulus, on both sides.

    Parameters
    ----------
    viewer : tuple of str
        Key of the recording they belong to.
    begin_ns : int
        When they begin, in nanoseconds from the beginning of the stimulus.
    recorded : Recording
        As recorded, times from the beginning of the stimulus.
    released : Recording
        As released, under the name it was released with.
    """

    viewer: RecordingKey
    begin_ns: int
    recorded: Recording
    released: Recording


def holds_pieces(recording_set: RecordingSet) -> bool:
    """Whether a recording set is a release of pieces, each under a name of its own."""
    return recording_set.origins is not None


def need_lasting_names(owner: str, *recording_sets: RecordingSet) -> None:
    """Refuse releases of pieces.

    Raises
    ------
    DataError
        For a release of pieces.
    """
    if any(holds_pieces(s) for s in recording_sets):
        raise DataError(
            f"The utility {owner} follows a person through whole recordings, and a release of"
            " pieces, each under a name of its own, does not allow that. Leave it out for this"
            " mechanism."
        )


def seconds_of(recording: Recording, begin_ns: int, end_ns: int) -> Recording:
    """The samples of some time, with times from the first sample of the recording.

    Parameters
    ----------
    begin_ns, end_ns : int
        From the first sample of the recording; the end is not included.
    """
    since = recording.t_ns - (recording.t_ns[0] if len(recording) else 0)
    # Lost samples may carry wild times; the valid ones increase.
    clock = np.maximum.accumulate(since) if len(since) else since
    first, last = np.searchsorted(clock, (begin_ns, end_ns), side="left")
    part = recording.slice(int(first), int(last))
    return part.with_(t_ns=since[first:last], rate_hz=recording.rate_hz)


def stretches(
    raw: RecordingSet, released: RecordingSet, window_s: float = 5.0, gap_s: float = 1.0
) -> Iterator[Stretch]:
    """Stretches of both sides, one at a time.

    Parameters
    ----------
    raw, released : RecordingSet
        As recorded and as released.
    window_s, gap_s : float
        Length of a window and of the gap after it in seconds, where names last. Pieces have their
        own windows.
    """
    if holds_pieces(released):
        yield from pieces(raw, released)
        return
    assert raw.cohort is not None
    assert released.cohort is not None
    at = {key: i for i, key in enumerate(released.cohort.keys)}
    length, step = round(window_s * 1e9), round((window_s + gap_s) * 1e9)
    for i, key in enumerate(raw.cohort.keys):
        if key not in at:
            continue
        recorded = raw.cohort[i]
        release = recorded if released.cohort is raw.cohort else released.cohort[at[key]]
        sample_ns = 1e9 / recorded.rate_hz if recorded.rate_hz > 0 else 0.0
        whole = round(recorded.duration_s * 1e9 + sample_ns)
        # A recording shorter than a window is a stretch as it is.
        for begin in range(0, max(whole - length, 0) + 1, step):
            both = (seconds_of(r, begin, begin + length) for r in (recorded, release))
            yield Stretch(key, begin, *both)


def pieces(raw: RecordingSet, released: RecordingSet) -> Iterator[Stretch]:
    """Each piece of a release with the same time of the recording it was made for.

    Raises
    ------
    DataError
        For a piece that was made for no recording at hand.
    """
    cohort, origins = released.cohort, released.origins
    assert raw.cohort is not None
    assert cohort is not None
    assert origins is not None
    at = {key: i for i, key in enumerate(raw.cohort.keys)}
    names = [key[0] for key in cohort.keys]
    stranger = next((n for n in names if origins.get(n) not in at), None)
    if stranger is not None:
        raise DataError(
            f"The piece '{stranger}' was made for a recording that is not among the raw ones."
            " Compare a release with the recordings it was made from."
        )
    kept: tuple[RecordingKey, Recording] | None = None
    for i in sorted(range(len(names)), key=lambda i: origins[names[i]]):
        piece, key = cohort[i], origins[names[i]]
        # The pieces of a recording follow one another, so it is loaded once.
        if kept is None or kept[0] != key:
            kept = key, raw.cohort[at[key]]
        if len(piece) == 0:
            continue
        begin, end = int(piece.t_ns[0]), _end_ns(piece)
        yield Stretch(key, begin, seconds_of(kept[1], begin, end), piece)


def _end_ns(piece: Recording) -> int:
    """The end of a piece's last sample."""
    sample_ns = 1e9 / piece.rate_hz if piece.rate_hz > 0 else 1.0
    return int(piece.t_ns[-1]) + round(sample_ns)


def viewer_by_viewer(
    raw: RecordingSet, released: RecordingSet
) -> Iterator[tuple[Recording | None, Recording | None]]:
    """Each recording as recorded and as released, as
    :func:`gazeveil.utility.base.side_by_side` has it, or each piece.
    """
    if holds_pieces(released):
        yield from ((s.recorded, s.released) for s in pieces(raw, released))
    else:
        yield from side_by_side(raw, released)


def as_recorded(raw: RecordingSet, released: RecordingSet) -> RecordingSet:
    """The raw recordings as a release of pieces shows them: everybody who saw a stimulus, cut at
    its windows, under the true names. Itself, where names last.
    """
    if not holds_pieces(released):
        return raw
    cut = (
        recording.with_(session=f"{recording.session} {begin}")
        for begin, recording in cut_at_windows(raw, released)
    )
    return RecordingSet(set_aside(cut, raw.people), None, raw.pipeline, raw.people)


def cut_at_windows(raw: RecordingSet, released: RecordingSet) -> Iterator[tuple[int, Recording]]:
    """The seconds of everybody who saw a stimulus that a release of pieces shows of it: when they
    begin, in nanoseconds from its beginning, and what was recorded then.
    """
    assert raw.cohort is not None
    windows = windows_of(released)
    for recording in raw.cohort:
        for begin, end in windows.get(recording.stimulus, ()):
            yield begin, seconds_of(recording, begin, end)


def windows_of(released: RecordingSet) -> dict[str, list[tuple[int, int]]]:
    """When the pieces of each stimulus begin and end, in nanoseconds from its beginning, in
    order.
    """
    assert released.cohort is not None
    found: dict[str, set[tuple[int, int]]] = {}
    for piece in released.cohort:
        if len(piece):
            found.setdefault(piece.stimulus, set()).add((int(piece.t_ns[0]), _end_ns(piece)))
    return {stimulus: sorted(windows) for stimulus, windows in found.items()}


_NOISE_DEG = (0.0, 1.0, 8.0)


def check_utility(utility: Utility) -> list[CheckResult]:
    """Run the kit on a utility."""
    return run_kit(_KIT, utility)


def _measures(utility: Utility, noise_deg: float, seed: int = 1) -> tuple[UtilityResult, ...]:
    raw, test = _recordings(0.0), _recordings(noise_deg)
    return utility.measure(raw, raw, test, seed)


def _gives_figures_with_parts(utility: Utility) -> Iterator[str]:
    results = _measures(utility, 0.0)
    if not results:
        yield "it gives no figure"
    for result in results:
        if len(result.parts) != len(result.names):
            yield f"{result.metric}: it has {len(result.parts)} parts and {len(result.names)} names"
        if result.better not in ("higher", "lower"):
            yield f"{result.metric}: 'better' must be higher or lower"


def _is_perfect_for_raw_against_raw(utility: Utility) -> Iterator[str]:
    if utility.trains:
        return
    for clean, noisy in zip(_measures(utility, 0.0), _measures(utility, 8.0), strict=True):
        sign = 1 if clean.better == "lower" else -1
        if np.isfinite(clean.value) and sign * (clean.value - noisy.value) > 1e-9:
            yield f"{clean.metric}: raw data scores {clean.value:g}, noise scores {noisy.value:g}"
        if clean.better == "lower" and np.isfinite(clean.value) and abs(clean.value) > 1e-6:
            yield f"{clean.metric}: raw against raw has the error {clean.value:g}"


def _gets_worse_with_noise(utility: Utility) -> Iterator[str]:
    if utility.trains:
        return
    worse = False
    for series in zip(*(_measures(utility, noise) for noise in _NOISE_DEG), strict=True):
        sign = 1 if series[0].better == "lower" else -1
        values = [sign * r.value for r in series]
        if np.isfinite(values).all() and values[0] < values[-1]:
            worse = True
    if not worse:
        yield f"no figure is worse with noise of {_NOISE_DEG[-1]:g} degrees than without"


def _repeats_under_a_seed(utility: Utility) -> Iterator[str]:
    for first, second in zip(_measures(utility, 1.0), _measures(utility, 1.0), strict=True):
        if not np.array_equal(first.parts, second.parts, equal_nan=True):
            yield f"{first.metric}: the same seed gives another figure"


_KIT: tuple[Callable[[Utility], Iterator[str]], ...] = (
    _gives_figures_with_parts,
    _is_perfect_for_raw_against_raw,
    _gets_worse_with_noise,
    _repeats_under_a_seed,
)


@cache
def _recordings(noise_deg: float) -> RecordingSet:
    rng = np.random.default_rng(5)
    recordings = []
    for recording in simulate(4, 3, 10.0, 120.0, seed=1):
        x_deg = recording.x_deg + rng.normal(0.0, noise_deg, len(recording))
        y_deg = recording.y_deg + rng.normal(0.0, noise_deg, len(recording))
        recordings.append(
            recording
            if noise_deg == 0
            else recording.with_(x_deg=np.mod(x_deg, 360), y_deg=np.clip(y_deg, 0.0, 179.9))
        )
    return RecordingSet(Cohort(recordings))
