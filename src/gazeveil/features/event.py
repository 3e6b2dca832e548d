"""Features of fixations and saccades (George and Routray 2016): one row per event.

Names, units and public bounds are in :mod:`gazeveil.features.definitions`, the geometry in
:mod:`gazeveil.features.measure`. An event with fewer than 4 valid samples has no features and is
counted in `table.counts["short_events"]`; events of datasets without samples are counted in
`table.counts["events_without_samples"]`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints, Texts, frozen
from gazeveil.errors import DataError
from gazeveil.features.definitions import EVENT_KINDS, STATISTICS, SUBSETS, Feature, bounds_of
from gazeveil.features.measure import LEAST_SAMPLES, SCALARS, SERIES, measure_events
from gazeveil.features.table import EmptyTableWarning, FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import KINDS, Events
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, RecordingKey

#: Where events come from instead of a detector: of one recording, by recording key, or made by a
#: function.
EventsSource: TypeAlias = Events | Mapping[RecordingKey, Events] | Callable[[Recording], Events]

_PLACES = {
    name: i
    for i, name in enumerate(
        [*SCALARS, *(f"{series}_{s}" for series in SERIES for s in STATISTICS)]
    )
} | {"path_len_2": SCALARS.index("path_len")}

# Of one recording: its key, the places of its events, their measures.
_Rows: TypeAlias = list[tuple[RecordingKey, Ints, Floats]]


def event_features(
    cohort: Cohort | Recording,
    kind: str = "all",
    method: str = "auto",
    subset: str = "all",
    events: EventsSource | None = None,
    **parameters: object,
) -> FeatureTable:
    """Features of the fixations, the saccades, or both, of a cohort or of one recording.

    Parameters
    ----------
    cohort : Cohort or Recording
        A lazy cohort is read one recording at a time.
    kind : {"all", "fixation", "saccade"}
        `fixation`: 12 features; `saccade`: 46; `all`: both kinds of events in order of onset, each
        with the 52-entry vector.
    method : str
        Detector, as for :func:`gazeveil.detect`.
    subset : {"all", "published", "reading", "random-dot"}
        `published` leaves the saccade duration out (45 features); `reading` and `random-dot` are
        the paper's selections for these stimuli (fixation or saccade only).
    events : Events, mapping or callable, optional
        Use these instead of detecting: the events of one recording, a mapping from recording key to
        events, or a function that makes them from a recording.
    **parameters
        Further parameters of the detector.

    Returns
    -------
    FeatureTable
        Rows in order of recording and onset; `keys.index` is the event's place among all events of
        its recording.

    Raises
    ------
    ParameterError
        For a word that is not allowed.
    DataError
        For events that do not fit their recording, or a recording with samples but no known rate.

    Warns
    -----
    EmptyTableWarning
        Where no event has features, so that the table has no row.

    Examples
    --------
    >>> from gazeveil.gaze.recording import Recording, RecordingKey
    >>> t = np.arange(8) * 10_000_000
    >>> x_deg = 180.0 + np.array([0, 0.1, 0, 0.1, 0, 0.1, 0, 0.1])
    >>> gaze = Recording("a", "dot", t, x_deg, np.full(8, 90.0))
    >>> fixation = Events(["fixation"], [0], [7], [0], [70_000_000])
    >>> table = event_features(gaze, kind="fixation", events=fixation)
    >>> table.select(columns=["duration", "path_len"]).values.round(6).tolist()
    [[0.08, 0.7]]
    """
    kind = checks.one_of("event_features", "kind", kind, EVENT_KINDS)
    names = SUBSETS[kind][checks.one_of("event_features", "subset", subset, SUBSETS[kind])]
    kinds = ("fixation", "saccade") if kind == "all" else (kind,)
    rows, counts = _collect(cohort, {kind: kinds}, method, events, parameters)
    table = _table(kind, names, rows[kind], counts[kind])
    if not len(table):
        left_out = ", ".join(f"{n} {name}" for name, n in counts[kind].items() if n)
        warnings.warn(
            "The table of events is empty: no event of the kind"
            f" {' or '.join(kinds)} has enough samples"
            + (f" ({left_out.replace('_', ' ')})." if left_out else "; none was found."),
            EmptyTableWarning,
            stacklevel=2,
        )
    return table


def fixation_and_saccade_features(
    cohort: Cohort | Recording,
    method: str = "auto",
    subset: str = "all",
    events: EventsSource | None = None,
    **parameters: object,
) -> tuple[FeatureTable, FeatureTable]:
    """The table of fixations and the table of saccades from one pass over the recordings; arguments
    as :func:`event_features`.
    """
    checks.one_of("fixation_and_saccade_features", "subset", subset, SUBSETS["fixation"])
    rows, counts = _collect(
        cohort, {"fixation": ("fixation",), "saccade": ("saccade",)}, method, events, parameters
    )
    fixations, saccades = (
        _table(k, SUBSETS[k][subset], rows[k], counts[k]) for k in ("fixation", "saccade")
    )
    return fixations, saccades


def _collect(
    cohort: Cohort | Recording,
    tables: Mapping[str, tuple[str, ...]],
    method: str,
    events: EventsSource | None,
    parameters: Mapping[str, object],
) -> tuple[dict[str, _Rows], dict[str, dict[str, int]]]:
    """Measured rows and counts of left-out events, for each table and its kinds of events."""
    rows: dict[str, _Rows] = {name: [] for name in tables}
    counts: dict[str, dict[str, int]] = {
        name: {"short_events": 0, "events_without_samples": 0} for name in tables
    }
    for recording in recordings_of("event_features", cohort):
        described = events_of(recording, method, events, parameters)
        for name, kinds in tables.items():
            wanted = described.kind == kinds[0]
            for kind in kinds[1:]:
                wanted |= described.kind == kind
            picked = np.flatnonzero(wanted)
            measured = picked[described.onset[picked] >= 0]
            counts[name]["events_without_samples"] += len(picked) - len(measured)
            # Not as Events of their own, whose checks take as long as measuring them.
            values, samples = _measured(
                recording,
                described.kind[measured],
                frozen(described.onset[measured]),
                frozen(described.offset[measured]),
                with_series=name != "fixation",
            )
            enough = samples >= LEAST_SAMPLES
            counts[name]["short_events"] += int(np.count_nonzero(~enough))
            rows[name].append((recording.key, measured[enough], values[enough]))
    return rows, counts


def measure(recording: Recording, events: Events, with_series: bool = True) -> tuple[Floats, Ints]:
    """All measures of the events of a recording, and the number of valid samples of each.

    Returns
    -------
    values : array, shape (events, 51), or (events, 15) without series
        Columns `SCALARS`, then six statistics of each of `SERIES` (see
        :mod:`gazeveil.features.measure`).
    samples : array of int64, shape (events,)
        Valid samples; rows with fewer than 4 are 0.
    """
    return _measured(recording, events.kind, events.onset, events.offset, with_series)


def _measured(
    recording: Recording, kinds: Texts, onset: Ints, offset: Ints, with_series: bool
) -> tuple[Floats, Ints]:
    """As :func:`measure`, of events by their kinds, first and last samples."""
    if len(kinds) and not recording.rate_hz > 0:
        raise DataError(
            f"The rate of {recording.title} is not known, so its events have no velocities. Give it"
            " with recording.with_(rate_hz=...)."
        )
    codes = np.zeros(len(kinds), dtype=np.int64)
    if len(kinds) and not (kinds == kinds[0]).all():  # most tables have one kind
        for code, event_kind in enumerate(KINDS):
            codes[kinds == event_kind] = code
    scalars, statistics, samples = measure_events(
        recording.x_deg,
        recording.y_deg,
        recording.valid,
        isinstance(recording.space, Sphere),
        float(recording.rate_hz) if len(kinds) else 1.0,
        onset,
        offset,
        codes,
        with_series,
    )
    return np.concatenate((scalars, statistics), axis=1) if with_series else scalars, samples


def recordings_of(owner: str, data: object) -> Iterable[Recording]:
    """The recordings of a cohort, or the one recording."""
    if isinstance(data, Recording):
        return (data,)
    if not isinstance(data, Cohort):
        checks.refuse(owner, "cohort", "a Cohort or a Recording", data)
    return data


def events_of(
    recording: Recording, method: str, events: EventsSource | None, parameters: Mapping[str, object]
) -> Events:
    """The events to describe: those given, else those detected.

    Raises
    ------
    DataError
        For events outside the recording's samples, or a mapping that lacks this recording.
    """
    if events is None:
        if len(recording) == 0:
            return recording.events if recording.events is not None else Events.empty()
        from gazeveil.events import detect

        return detect(recording, method, **parameters)
    if parameters:
        checks.known_options("event_features with events=", parameters, ())
    if isinstance(events, Events):
        chosen = events
    elif isinstance(events, Mapping):
        if recording.key not in events:
            raise DataError(
                f"The events given have no entry for {recording.title}. Add one under the key"
                f" {recording.key}."
            )
        chosen = events[recording.key]
    elif callable(events):
        chosen = events(recording)
    else:
        checks.refuse(
            "event_features",
            "events",
            "Events, a mapping of recording key to Events, or a function that makes them",
            events,
        )
    if len(chosen) and int(chosen.offset.max()) >= len(recording):
        raise DataError(
            f"An event ends at sample {int(chosen.offset.max())}, but {recording.title} has"
            f" {len(recording)} samples. Are these its events?"
        )
    return chosen


def _table(kind: str, names: tuple[str, ...], rows: _Rows, counts: dict[str, int]) -> FeatureTable:
    places = [_PLACES[n] for n in names]
    values = np.concatenate([v[:, places] for _, _, v in rows] or [np.empty((0, len(places)))])
    keys = Keys.of_recordings([key for key, _, _ in rows], [index for _, index, _ in rows])
    return FeatureTable(values, names, keys, bounds_of(_chosen(kind, names)), counts)


def _chosen(kind: str, names: tuple[str, ...]) -> tuple[Feature, ...]:
    by_name = {f.name: f for f in EVENT_KINDS[kind]}
    return tuple(by_name[n] for n in names)
