"""The 52 features of sliding windows that the MPIIDPEye and MPIIPrivacEye files hold, in file
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

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError
from gazeveil.features.definitions import (
    MINIMA,
    SACCADE_CODES,
    WINDOW,
    bounds_of,
    window_definitions,
)
from gazeveil.features.event import EventsSource, events_of, recordings_of
from gazeveil.features.measure import jumps_of_events, pupil_in_events, variances_in_events
from gazeveil.features.table import EmptyTableWarning, FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, RecordingKey, increasing


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
