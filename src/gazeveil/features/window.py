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
"""

from __future__ import annotations

import warnings

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.features.definitions import MINIMA, WINDOW, bounds_of, window_definitions
from gazeveil.features.event import EventsSource, events_of, recordings_of
from gazeveil.features.measure import jumps_of_events, pupil_in_events, variances_in_events
from gazeveil.features.saccade_ngrams import saccade_codes, window_rows
from gazeveil.features.table import EmptyTableWarning, FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.gaze.times import increasing


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
