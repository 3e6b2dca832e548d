"""Features of the time to the next event: what a stream of gaze says, moment by moment, about when
the eye will move and where to.

David-John et al. (2022) name intent prediction as further work, after David-John et al. (2021,
"Towards gaze-based prediction of the intent to interact in virtual reality"): a window of gaze
before an event, described by fixations, saccades, speed and dispersion, and the time to the event
as what is to be told. A moment is described by what is known at it and no more: events come from
the online detector (:class:`gazeveil.events.online.detector.OnlineDetector`), and one counts from
the sample at which it was decided. Features of the same moment are the same whether the recording
goes on or ends there.

=========================== ========================================================================
`since_saccade_s`           since the last saccade ended; since the first sample before that; 0
                            while one is under way
`saccade_now`               1 while a saccade is under way
`last_fixation_s`           duration of the last fixation that has ended
`mean_fixation_s`           mean duration of the fixations that ended in the last 2 s
`saccades_hz`               saccades that ended in the last 2 s, per second
`last_amplitude_deg`        size of the last saccade that has ended
`last_right`, `last_down`   its direction, as a unit vector
`speed_deg_s`               length of the path of the last 0.1 s, per second
`drift_right_deg`,          from the mean place of the last 0.3 s to that of the last 0.1 s
`drift_down_deg`
`dispersion_deg`            root mean square distance from the mean place of the last 0.3 s
=========================== ========================================================================

What is not there yet (no saccade so far) is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.events import detect
from gazeveil.events.online.detector import Edge, OnlineDetector
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording

#: Public bounds of the features, in their order; from physiology and trackers' limits.
BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "since_saccade_s": (0.0, 10.0),
        "saccade_now": (0.0, 1.0),
        "last_fixation_s": (0.0, 10.0),
        "mean_fixation_s": (0.0, 10.0),
        "saccades_hz": (0.0, 20.0),
        "last_amplitude_deg": (0.0, 180.0),
        "last_right": (-1.0, 1.0),
        "last_down": (-1.0, 1.0),
        "speed_deg_s": (0.0, 1000.0),
        "drift_right_deg": (-180.0, 180.0),
        "drift_down_deg": (-180.0, 180.0),
        "dispersion_deg": (0.0, 180.0),
    }
)
COLUMNS = tuple(BOUNDS)

#: How far back events are counted, and samples are looked at, in seconds.
EVENTS_S = 2.0
SHORT_S, LONG_S = 0.1, 0.3


def moment_features(recording: Recording, now_ns: Ints, known_ns: Ints | None = None) -> Floats:
    """The features of some moments of one recording.

    Parameters
    ----------
    recording : Recording
        The stream, raw or released.
    now_ns : array of int64, shape (moments,)
        When, increasing.
    known_ns : array of int64, shape (samples,), optional
        When each sample is known, never decreasing; default its own time.

    Returns
    -------
    array of float64, shape (moments, features)
        In the order of :data:`COLUMNS`.
    """
    clock = np.maximum.accumulate(recording.t_ns) if known_ns is None else known_ns
    now = np.asarray(now_ns, dtype=np.int64)
    values = np.zeros((len(now), len(COLUMNS)))
    if len(recording) == 0:
        return values
    values[:, :8] = _of_events(recording, clock, now)
    values[:, 8:] = _of_samples(recording, clock, now)
    return values


def _of_events(recording: Recording, clock: Ints, now: Ints) -> Floats:
    """The first eight features."""
    detector = OnlineDetector(recording.rate_hz or 60.0, recording.space)
    edges = detector.push(recording.t_ns, recording.x_deg, recording.y_deg, recording.valid)
    saccades = _ended(edges, "saccade", clock)
    fixations = _ended(edges, "fixation", clock)
    values = np.zeros((len(now), 8))
    begun = np.array([clock[e.decided] for e in edges if _is(e, "saccade", "onset")], np.int64)
    done = np.searchsorted(saccades[:, 2], now, side="right")
    under_way = np.searchsorted(begun, now, side="right") > done
    last = np.maximum(done - 1, 0)
    any_yet = done > 0
    since = np.where(any_yet, saccades[last, 1] if len(saccades) else 0, clock[0])
    values[:, 0] = np.where(under_way, 0.0, np.maximum(now - since, 0) / 1e9)
    values[:, 1] = under_way
    fixed = np.searchsorted(fixations[:, 2], now, side="right")
    if len(fixations):
        seconds = (fixations[:, 1] - fixations[:, 0]) / 1e9
        sums = np.concatenate(([0.0], np.cumsum(seconds)))
        first = np.minimum(
            np.searchsorted(fixations[:, 2], now - round(EVENTS_S * 1e9), side="right"), fixed
        )
        values[:, 2] = np.where(fixed > 0, seconds[np.maximum(fixed - 1, 0)], 0.0)
        values[:, 3] = (sums[fixed] - sums[first]) / np.maximum(fixed - first, 1)
    if len(saccades):
        early = np.searchsorted(saccades[:, 2], now - round(EVENTS_S * 1e9), side="right")
        values[:, 4] = (done - np.minimum(early, done)) / EVENTS_S
        way = _ways(recording, saccades)
        size = np.hypot(way[:, 0], way[:, 1])
        values[:, 5] = np.where(any_yet, size[last], 0.0)
        unit = way / np.maximum(size, 1e-9)[:, None]
        values[:, 6:8] = np.where(any_yet[:, None], unit[last], 0.0)
    return values


def _is(edge: Edge, kind: str, which: str) -> bool:
    return edge.kind == kind and edge.edge == which


def _ended(edges: tuple[Edge, ...], kind: str, clock: Ints) -> Ints:
    """Events of one kind that have ended: begin and end in nanoseconds, when that was known, first
    and last sample; shape (events, 5).
    """
    rows: list[tuple[int, int, int, int, int]] = []
    begin: Edge | None = None
    for edge in edges:
        if _is(edge, kind, "onset"):
            begin = edge
        elif _is(edge, kind, "offset") and begin is not None:
            first, last = begin.index, edge.index
            rows.append(
                (int(clock[first]), int(clock[last]), int(clock[edge.decided]), first, last)
            )
            begin = None
    return np.array(rows, dtype=np.int64).reshape(-1, 5)


def _ways(recording: Recording, saccades: Ints) -> Floats:
    """How far saccades lead to the right and down, in degrees; 0 where an end is lost."""
    first, last = np.maximum(saccades[:, 3] - 1, 0), saccades[:, 4]
    x, y = recording.x_deg, recording.y_deg
    return np.nan_to_num(offsets_deg(recording.space, x[first], y[first], x[last], y[last]))


def _of_samples(recording: Recording, clock: Ints, now: Ints) -> Floats:
    """The last four features."""
    valid = recording.valid
    t, x, y = clock[valid], recording.x_deg[valid], recording.y_deg[valid]
    if len(t) == 0:
        return np.zeros((len(now), 4))
    # Places as paths of steps, so that there is no seam at 0/360.
    steps = offsets_deg(recording.space, x[:-1], y[:-1], x[1:], y[1:])
    place = np.concatenate((np.zeros((1, 2)), np.cumsum(steps, axis=0)))
    length = np.concatenate(([0.0], np.cumsum(np.hypot(steps[:, 0], steps[:, 1]))))
    sums = np.concatenate((np.zeros((1, 2)), np.cumsum(place, axis=0)))
    squares = np.concatenate(([0.0], np.cumsum((place**2).sum(axis=1))))
    end = np.searchsorted(t, now, side="right")
    means, firsts = [], []
    for seconds in (SHORT_S, LONG_S):
        first = np.searchsorted(t, now - round(seconds * 1e9), side="right")
        first = np.minimum(first, np.maximum(end - 1, 0))
        n = np.maximum(end - first, 1)[:, None]
        means.append((sums[end] - sums[first]) / n)
        firsts.append(first)
    short, long = firsts
    path = length[np.maximum(end - 1, 0)] - length[short]
    took_s = np.maximum((t[np.maximum(end - 1, 0)] - t[short]) / 1e9, 1e-3)
    n = np.maximum(end - long, 1)
    spread = (squares[end] - squares[long]) / n - (means[1] ** 2).sum(axis=1)
    drift = means[0] - means[1]
    seen = end > 0
    out = np.stack((path / took_s, drift[:, 0], drift[:, 1], np.sqrt(np.maximum(spread, 0))), 1)
    return np.where(seen[:, None], out, 0.0)


def offsets_deg(space: Space, x0: Floats, y0: Floats, x1: Floats, y1: Floats) -> Floats:
    """How far second places lie to the right and down of first ones, in degrees, shape (n, 2). On a
    sphere along the circle of latitude and the meridian, which is exact for small distances.
    """
    dx, dy = x1 - x0, y1 - y0
    if isinstance(space, Sphere):
        # The middle of both latitudes, so that a way and its way back are equally long.
        dx = (np.mod(dx + 180.0, 360.0) - 180.0) * np.sin(np.radians((y0 + y1) / 2))
    return np.stack((dx, dy), axis=1)


def time_to_next_s(events: Events, now_ns: Ints, kind: str = "saccade") -> Floats:
    """Seconds from moments to the onset of the next event of a kind; NaN where none follows."""
    onsets = np.sort(events.of(kind).onset_ns)
    after = np.searchsorted(onsets, now_ns, side="right")
    there = after < len(onsets)
    if not len(onsets):
        return np.full(len(now_ns), np.nan)
    ahead = onsets[np.minimum(after, len(onsets) - 1)] - now_ns
    return np.where(there, ahead / 1e9, np.nan)


def time_to_event_features(
    cohort: Cohort, every_s: float = 0.1, kind: str = "saccade", method: str = "auto"
) -> FeatureTable:
    """A table of moments of all recordings, and the time to the next event of each.

    Parameters
    ----------
    cohort : Cohort
        The recordings.
    every_s : float
        Seconds between moments.
    kind : str
        The event that is waited for.
    method : str
        Detector that says when it came, as in :func:`gazeveil.detect`; it may look at everything.

    Returns
    -------
    FeatureTable
        One row per moment; the annotation `time_to_event_s` is what is to be told, NaN where no
        such event follows.

    Examples
    --------
    >>> from gazeveil.gaze.simulate import simulate
    >>> table = time_to_event_features(simulate(1, 1, 2.0, 120.0, seed=1))
    >>> len(table), table.columns[0]
    (20, 'since_saccade_s')
    """
    step_ns = round(checks.positive("time_to_event_features", "every_s", every_s) * 1e9)
    rows, waits, names, indices = [], [], [], []
    for recording in cohort:
        begin, end = (recording.t_ns[0], recording.t_ns.max()) if len(recording) else (0, -1)
        now = np.arange(begin, end + 1, step_ns, dtype=np.int64)
        rows.append(moment_features(recording, now))
        waits.append(time_to_next_s(detect(recording, method), now, kind))
        names.append(recording.key)
        indices.append(np.arange(len(now)))
    return FeatureTable(
        np.concatenate([*rows, np.empty((0, len(COLUMNS)))]),
        COLUMNS,
        Keys.of_recordings(names, indices),
        np.array(list(BOUNDS.values())),
        annotations={"time_to_event_s": np.concatenate([*waits, np.empty(0)])},
    )
