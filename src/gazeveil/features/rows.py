"""The rows of feature tables: one for each event, or one for each window.

Features of fixations and saccades (George and Routray 2016): one row per event.

Names, units and public bounds are in :mod:`gazeveil.features.definitions`, the geometry in
:mod:`gazeveil.features.measure`. An event with fewer than 4 valid samples has no features and is
counted in `table.counts["short_events"]`; events of datasets without samples are counted in
`table.counts["events_without_samples"]`.

The 52 features of sliding windows that the MPIIDPEye and MPIIPrivacEye files hold, in file
order.

Window k of a recording covers [k step, k step + window) from its first sample; only whole windows
count, so a recording shorter than the window has no row and is counted in
`table.counts["short_recordings"]`. A fixation, saccade or blink belongs to every window it
overlaps, with its whole duration and amplitude. The amplitude runs from the sample before the
saccade to its last one, so that slow trackers, which see a saccade in one or two samples, have
amplitudes too. A saccade is large from twice the fixation radius on, and goes right if it ends
right of where it began (straight up counts as right, straight down as left). Variances have ddof 0.
What a window has none of is 0; so are the pupil features of a recording without pupil, counted in
`table.counts["recordings_without_pupil"]`.

N-grams (`wbN`, for the published files' word books): each saccade has a code, one of 16 directions
if large (sectors of 22.5 deg centred on multiples of 22.5 deg) and one of 8 if small (45 deg); runs
of 1, 2, 3 and 4 successive saccades of a window are counted over all 24^n possible n-grams. In the
published files the rarest one is sought among all n-grams and thus counts 0 always, which is why
studies on them use 48 of the 52 columns (:func:`without_minima`).

Saccades as codes, statistics of their n-grams, and the compiled loop over windows.

Codes (Hoppe et al. 2018): 16 directions of large saccades, in sectors of 22.5 deg centred on
multiples of 22.5 deg, and 8 of small ones in sectors of 45 deg. Direction 0 points right, 90 deg
up. Codes 0 to 15 are large, 16 to 23 small.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Texts, frozen
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.features.definitions import (
    EVENT_KINDS,
    MINIMA,
    SACCADE_CODES,
    STATISTICS,
    SUBSETS,
    WINDOW,
    bounds_of,
    window_definitions,
)
from gazeveil.features.measure import (
    LEAST_SAMPLES,
    SCALARS,
    SERIES,
    jumps_of_events,
    measure_events,
    pupil_in_events,
    variances_in_events,
)
from gazeveil.features.table import EmptyTableWarning, FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import KINDS, Events
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, RecordingKey, increasing

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
    by_name = {f.name: f for f in EVENT_KINDS[kind]}
    return FeatureTable(values, names, keys, bounds_of(tuple(by_name[n] for n in names)), counts)


def saccade_codes(jumps: Floats, large_deg: float) -> Ints:
    """The code of each saccade.

    Parameters
    ----------
    jumps : array, shape (saccades, 3)
        Amplitude, x and y (right and down) in degrees.
    large_deg : float
        From this amplitude on a saccade is large.
    """
    direction = np.degrees(np.arctan2(-jumps[:, 2], jumps[:, 1]))
    large = np.mod(np.floor(direction / 22.5 + 0.5), 16)
    small = np.mod(np.floor(direction / 45.0 + 0.5), 8) + 16
    return np.where(jumps[:, 0] >= large_deg, large, small).astype(np.int64)


@compiled
def _mean_var(v: Floats, a: int, b: int) -> tuple[float, float, int]:
    """Mean and variance (ddof 0) of the finite values of v[a:b], and how many they are; zeros where
    none is.
    """
    n, total = 0, 0.0
    for i in range(a, b):
        if not np.isnan(v[i]):
            n += 1
            total += v[i]
    if n == 0:
        return 0.0, 0.0, 0
    mean = total / n
    square = 0.0
    for i in range(a, b):
        if not np.isnan(v[i]):
            square += (v[i] - mean) ** 2
    return mean, square / n, n


@compiled
def _ngram_statistics(
    codes: Ints, a: int, b: int, n: int, scratch: Ints, min_over_all: bool, out: Floats
) -> None:
    """Statistics of the counts of n-grams in codes[a:b] into out[:6]: non-zero, max, min, range,
    mean, variance.
    """
    total = b - a - n + 1
    if total <= 0:
        return
    for i in range(total):
        number = 0
        for k in range(n):
            number = number * SACCADE_CODES + codes[a + i + k]
        scratch[i] = number
    ngrams = scratch[:total]
    ngrams.sort()
    most, least, different, squares, run = 0, total, 0, 0.0, 0
    for i in range(total):
        run += 1
        if i + 1 == total or ngrams[i + 1] != ngrams[i]:
            different += 1
            most, least = max(most, run), min(least, run)
            squares += float(run) * run
            run = 0
    size = float(SACCADE_CODES**n)
    if min_over_all and different < size:
        least = 0
    mean = total / size
    out[0] = different
    out[1] = most
    out[2] = least
    out[3] = most - least
    out[4] = mean
    out[5] = squares / size - mean * mean


@compiled
def window_rows(
    number: int,
    window_ns: int,
    step_ns: int,
    fix_start: Ints,
    fix_end: Ints,
    fix: Floats,
    sac_start: Ints,
    sac_end: Ints,
    amplitude: Floats,
    large: Bools,
    right: Bools,
    codes: Ints,
    blink_start: Ints,
    blink_end: Ints,
    blink_s: Floats,
    min_over_all: bool,
) -> Floats:
    """All windows of a recording, shape (number, 52), in file order.

    Times are nanoseconds from the first window's start, events in order of onset; an event is in a
    window it overlaps. `fix` holds duration, variance of x, variance of y, mean pupil and variance
    of the pupil of each fixation, NaN where unknown.
    """
    out = np.zeros((number, 52))
    seconds = window_ns / 1e9
    scratch = np.empty(len(codes) + 1, dtype=np.int64)
    durations, var_x, var_y = fix[:, 0].copy(), fix[:, 1].copy(), fix[:, 2].copy()
    pupil_mean, pupil_var = fix[:, 3].copy(), fix[:, 4].copy()
    fa = fb = sa = sb = ba = bb = 0
    for w in range(number):
        start = w * step_ns
        end = start + window_ns
        row = out[w]
        while fa < len(fix_end) and fix_end[fa] <= start:
            fa += 1
        while fb < len(fix_start) and fix_start[fb] < end:
            fb += 1
        while sa < len(sac_end) and sac_end[sa] <= start:
            sa += 1
        while sb < len(sac_start) and sac_start[sb] < end:
            sb += 1
        while ba < len(blink_end) and blink_end[ba] <= start:
            ba += 1
        while bb < len(blink_start) and blink_start[bb] < end:
            bb += 1
        fixations, saccades, blinks = fb - fa, sb - sa, bb - ba
        row[0] = fixations / seconds
        row[1] = saccades / seconds
        if fixations > 0:
            row[6] = saccades / fixations
        if saccades > 0:
            n_large = n_right = 0
            top = 0.0
            for i in range(sa, sb):
                n_large += large[i]
                n_right += right[i]
                top = max(top, amplitude[i])
            for k, n in enumerate((saccades - n_large, n_large, n_right, saccades - n_right)):
                row[2 + k] = n / seconds
                row[7 + k] = n / saccades
            row[11], row[12], _ = _mean_var(amplitude, sa, sb)
            row[13] = top
        if fixations > 0:
            row[14], row[15], _ = _mean_var(durations, fa, fb)
            row[16] = durations[fa:fb].max()
            row[17], row[19], _ = _mean_var(var_x, fa, fb)
            row[18], row[20], _ = _mean_var(var_y, fa, fb)
            row[21], row[22], _ = _mean_var(pupil_mean, fa, fb)
            row[23], row[24], _ = _mean_var(pupil_var, fa, fb)
        if blinks > 0:
            row[25], row[26], _ = _mean_var(blink_s, ba, bb)
            row[27] = blinks / seconds
        for n in range(1, 5):
            _ngram_statistics(codes, sa, sb, n, scratch, min_over_all, row[22 + 6 * n : 28 + 6 * n])
    return out


def window_features(
    cohort: Cohort | Recording,
    window_s: float = 30.0,
    step_s: float = 0.5,
    method: str = "auto",
    fixation_radius_deg: float = 1.0,
    minimum: str = "all",
    pupil_unit: str | None = None,
    events: EventsSource | None = None,
    **parameters: object,
) -> FeatureTable:
    """The 52 window features of a cohort or of one recording.

    Parameters
    ----------
    cohort : Cohort or Recording
        A lazy cohort is read one recording at a time.
    window_s, step_s : float
        Length of a window and distance between the starts of two, in seconds; MPIIDPEye has 30 and
        0.5, MPIIPrivacEye 30 and 1.
    method : str
        Detector, as for :func:`gazeveil.detect`. Pursuit and noise count as neither fixation nor
        saccade.
    fixation_radius_deg : float
        Saccades of at least twice this amplitude are large.
    minimum : {"all", "nonzero"}
        `wbN_min` over all n-grams, as in the published files, or over those that occur.
    pupil_unit : str, optional
        `mm`, `px` or another word, for the public bounds of the pupil; default what the recordings'
        metadata say, else `mm`.
    events : Events, mapping or callable, optional
        Use these instead of detecting, as in :func:`gazeveil.event_features`.
    **parameters
        Further parameters of the detector.

    Returns
    -------
    FeatureTable
        Rows in order of recording and time; `keys.index` is the number of the window, which starts
        `index * step_s` seconds after the recording's first sample.

    Raises
    ------
    ParameterError
        For a parameter that is not allowed.

    Warns
    -----
    EmptyTableWarning
        Where no recording is as long as a window, so that the table has no row.
    """
    window = checks.positive("window_features", "window_s", window_s)
    step = checks.positive("window_features", "step_s", step_s)
    radius = checks.positive("window_features", "fixation_radius_deg", fixation_radius_deg)
    rarest = checks.one_of("window_features", "minimum", minimum, ("all", "nonzero"))
    if pupil_unit is not None and not isinstance(pupil_unit, str):
        checks.refuse("window_features", "pupil_unit", "text such as 'mm'", pupil_unit)
    window_ns, step_ns = round(window * 1e9), max(1, round(step * 1e9))
    keys: list[RecordingKey] = []
    blocks: list[Floats] = []
    units: set[str] = set()
    counts = {"short_recordings": 0, "recordings_without_pupil": 0, "events_without_samples": 0}
    longest_s = 0.0
    for recording in recordings_of("window_features", cohort):
        longest_s = max(longest_s, recording.duration_s)
        described = events_of(recording, method, events, parameters)
        sampled = described.where(described.onset >= 0)
        counts["events_without_samples"] += len(described) - len(sampled)
        start, number = whole_windows(recording, window_ns, step_ns)
        if number == 0:
            counts["short_recordings"] += 1
        if recording.pupil is None:
            counts["recordings_without_pupil"] += 1
        else:
            units.add(str(recording.metadata.get("pupil_unit", "")))
        keys.append(recording.key)
        blocks.append(
            _recording(
                recording, sampled, start, number, window_ns, step_ns, 2 * radius, rarest == "all"
            )
        )
    unit = (
        pupil_unit
        if pupil_unit is not None
        else (units.pop() if len(units) == 1 else "mm" if not units else "")
    )
    table_keys = Keys.of_recordings(keys, [np.arange(len(b)) for b in blocks])
    if not len(table_keys):
        warnings.warn(_no_window(window, counts["short_recordings"], longest_s), stacklevel=2)
    values = np.concatenate([*blocks, np.empty((0, len(WINDOW)))])
    return FeatureTable(
        values, WINDOW, table_keys, bounds_of(window_definitions(window, unit, rarest)), counts
    )


def _no_window(window_s: float, short: int, longest_s: float) -> EmptyTableWarning:
    if not short:
        return EmptyTableWarning("The table of windows is empty: there is no recording.")
    who = f"all {short} recordings are" if short > 1 else "the recording is"
    return EmptyTableWarning(
        f"The table of windows is empty: {who} shorter than a window of {window_s:g} s, the longest"
        f" lasts {longest_s:.3g} s. Choose a smaller window_s."
    )


def without_minima(table: FeatureTable) -> FeatureTable:
    """The 48-feature view: the table without the four `wbN_min` columns."""
    return table.drop(MINIMA)


def whole_windows(recording: Recording, window_ns: int, step_ns: int) -> tuple[int, int]:
    """Start of the first window and how many whole ones there are; a single wild time stamp moves
    neither end.
    """
    if len(recording) == 0:
        return 0, 0
    t = recording.t_ns[increasing(recording.t_ns, np.ones(len(recording), dtype=np.bool_))]
    # The last sample lasts one step of the tracker's clock; a tenth of that is forgiven for jitter.
    sample_ns = 1e9 / recording.rate_hz if recording.rate_hz > 0 else 0.0
    room = float(t[-1] - t[0]) + 1.1 * sample_ns - window_ns
    return int(t[0]), int(room // step_ns) + 1 if room >= 0 else 0


def _recording(
    recording: Recording,
    events: Events,
    start: int,
    number: int,
    window_ns: int,
    step_ns: int,
    large_deg: float,
    min_over_all: bool,
) -> Floats:
    """The windows of one recording, shape (number, 52)."""
    if number == 0:
        return np.empty((0, len(WINDOW)))
    sphere, rate = isinstance(recording.space, Sphere), recording.rate_hz
    if len(events) and not rate > 0:
        raise DataError(
            f"The rate of {recording.title} is not known. Give it with"
            " recording.with_(rate_hz=...)."
        )
    fixations, saccades, blinks = events.of("fixation"), events.of("saccade"), events.of("blink")
    x, y, valid = recording.x_deg, recording.y_deg, recording.valid
    fix = np.empty((len(fixations), 5))
    fix[:, 0] = (fixations.offset - fixations.onset + 1) / rate
    fix[:, 1:3] = variances_in_events(x, y, valid, sphere, fixations.onset, fixations.offset)
    fix[:, 3:] = (
        np.nan
        if recording.pupil is None
        else pupil_in_events(recording.pupil, fixations.onset, fixations.offset)
    )
    jumps = jumps_of_events(x, y, valid, sphere, saccades.onset, saccades.offset)
    measured = ~np.isnan(jumps[:, 0])
    saccades, jumps = saccades.where(measured), jumps[measured]
    # An event lasts to the end of its last sample, as its duration (samples / rate) does.
    sample_ns = round(1e9 / rate) if rate > 0 else 0
    spans = [
        (e.onset_ns - start, e.offset_ns - start + sample_ns) for e in (fixations, saccades, blinks)
    ]
    right = (jumps[:, 1] > 0) | ((jumps[:, 1] == 0) & (jumps[:, 2] < 0))
    return window_rows(
        number,
        window_ns,
        step_ns,
        *spans[0],
        fix,
        *spans[1],
        jumps[:, 0].copy(),
        jumps[:, 0] >= large_deg,
        right,
        saccade_codes(jumps, large_deg),
        *spans[2],
        (blinks.offset - blinks.onset + 1) / rate,
        min_over_all,
    )
