"""How far released signals are from recorded ones: feature by feature for tables, in degrees for
samples.

Tables (Bozkir et al. 2021, equation 4). A signal is one feature of one recording, x as recorded and
y as released, on the rows both have:

* `nmse`: mean((x - y)**2) / (mean(x) mean(y)), absolute, as printed. The mean of y may be near 0,
  and then the figure is as large as you like: its expectation is infinite, and averages of it say
  little. `nmse_median` is its median over signals.
* `rmse`: root of the mean of squares, and `rmse_published`: root of their sum, as Ren et al. 2024
  prints it (equation 15), in units of the feature's public range, or of its standard deviation as
  recorded where the table has no bounds.

All are taken per signal, averaged over a person's recordings, then over features, then over people.
Signals whose mean as recorded is 0 have no `nmse`; the note counts them.

Samples: the visual angle between each recorded sample and the released one that belongs to it
(:func:`partners`), where both are valid. Per recording, then the mean over a person's recordings,
then over people: `rmse_deg`, `rmse_published_deg` (no division by the number of samples),
`median_error_deg`, `p90_error_deg` (nine of ten samples are nearer), and `kept_share`, the share of
valid samples that have such a partner.

Each piece of a release of pieces is compared with the same seconds of its own recording. Only the
curator knows that recording. Each piece counts as a recording; `kept_share` also counts the gaps
between pieces as lost.

Correlation curves of Bozkir et al. 2021 (Figs 3 to 6): how much a feature at one step says about
the same feature later, over participants: the correlation coefficient, over the people who read one
document, between a feature at the fifth window and at each later one; of the signals as they are,
and of their differences from step to step (d_1 = x_1, d_t = x_t - x_(t-1)), which DCFPA adds its
noise to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.errors import DataError
from gazeveil.features.recording_set import TABLES, RecordingSet
from gazeveil.features.recordings import column_deviations, column_means
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere, distance_deg
from gazeveil.gaze.recording import Recording
from gazeveil.utility.base import (
    Utility,
    UtilityResult,
    holds_pieces,
    over_people,
    pieces,
    side_by_side,
)


@dataclass(frozen=True, eq=False)
class Curves:
    """Correlation curves.

    Parameters
    ----------
    stimuli, columns : tuple of str
        What the first two axes are.
    steps : array of int64, shape (steps,)
        Time steps, counted from 1 as in the paper.
    values : array of float64, shape (stimuli, features, steps)
        Correlation with the reference step; NaN where fewer than three people have both, or one
        side does not vary.
    people : array of int64, shape (stimuli, steps)
        Recordings that reach the step.
    """

    stimuli: tuple[str, ...]
    columns: tuple[str, ...]
    steps: Ints
    values: Floats
    people: Ints


def correlation_curves(
    table: FeatureTable, reference: int = 5, last: int = 200, difference: bool = False
) -> Curves:
    """Correlation over participants between a feature at one step and at the later ones.

    Parameters
    ----------
    table : FeatureTable
        Windows in order of time; each recording of a stimulus is one participant's signal.
    reference : int
        The step to compare with, from 1.
    last : int
        The last step, above the reference; steps that no signal reaches are NaN.
    difference : bool
        Of the differences from step to step instead of the signals.

    Raises
    ------
    DataError
        For a table without rows.

    Examples
    --------
    >>> from gazeveil.features.table import Keys
    >>> who = np.repeat(["a", "b", "c", "d"], 3)
    >>> keys = Keys(who, ["text"] * 12, ["1"] * 12, [""] * 12, np.tile([0, 1, 2], 4))
    >>> level = np.repeat([1.0, 2.0, 3.0, 4.0], 3)
    >>> table = FeatureTable((level * np.tile([1, 2, -1], 4))[:, None], ("f",), keys)
    >>> curves = correlation_curves(table, reference=1, last=3)
    >>> curves.steps.tolist(), curves.values.round(6).tolist()
    ([2, 3], [[[1.0, -1.0]]])
    """
    reference = checks.count("correlation_curves", "reference", reference)
    last = checks.count("correlation_curves", "last", last, least=reference + 1)
    if len(table) == 0:
        raise DataError("correlation_curves needs a table with rows. Got an empty one.")
    recordings = table.recordings()
    stimuli = tuple(dict.fromkeys(key[1] for key in recordings))
    steps = np.arange(reference + 1, last + 1)
    values = np.full((len(stimuli), len(table.columns), len(steps)), np.nan)
    people = np.zeros((len(stimuli), len(steps)), dtype=np.int64)
    for s, stimulus in enumerate(stimuli):
        viewings = [rows for key, rows in recordings.items() if key[1] == stimulus]
        signals = np.full((len(viewings), last, len(table.columns)), np.nan)
        for i, rows in enumerate(viewings):
            place = table.keys.index[rows]
            signals[i, place[place < last]] = table.values[rows[place < last]]
        if difference:
            signals[:, 1:] = np.diff(signals, axis=1)
        later = signals[:, reference:]
        values[s] = _correlation(signals[:, reference - 1][:, None], later).T
        people[s] = (~np.isnan(later).all(axis=2)).sum(axis=0)
    return Curves(stimuli, table.columns, steps, values, people)


def _correlation(x: Floats, y: Floats) -> Floats:
    """Pearson correlation over the first axis of what both have; shapes broadcast."""
    both = ~(np.isnan(x) | np.isnan(y))
    a, b = (np.where(both, v, np.nan) for v in (x, y))
    u, v = (side - column_means(side) for side in (a, b))
    aa, bb, uu, vv, uv = (np.nansum(p, axis=0) for p in (a * a, b * b, u * u, v * v, u * v))
    # Rounding leaves equal values with tiny squares, and their ratio would be a correlation of
    # rounding errors.
    varies = (uu > 1e-24 * aa) & (vv > 1e-24 * bb) & (both.sum(axis=0) >= 3)
    scale = np.sqrt(np.where(varies, uu * vv, 1.0))
    return np.clip(np.where(varies, uv / scale, np.nan), -1.0, 1.0)


#: What may be compared; `auto` takes samples where the release has them, else the first table it
#: holds of window, fixation, saccade.
ON = ("auto", "samples", *TABLES)

_ORDER = ("window", "fixation", "saccade")


@dataclass(frozen=True)
class Signal(Utility):
    """Error of released signals.

    Parameters
    ----------
    on : str
        One of :data:`ON`. Rows of a table are matched by person, stimulus, session, task and index,
        so tables of events are compared as released; events that were found again on released
        samples have other indices, and `events` compares those.
    """

    on: str = "auto"

    name: ClassVar[str] = "signal"
    needs: ClassVar[tuple[str, ...]] = ()

    def check(self) -> None:
        """Check the word; what is needed follows from it."""
        checks.one_of(self.name, "on", self.on, ON)
        self.store("needs", () if self.on == "auto" else (self.on,))

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """The errors; see the module and :class:`Utility`."""
        on = self.on
        if on == "auto":
            on = (
                "samples"
                if test.cohort is not None and raw.cohort is not None
                else next(t for t in _ORDER if test.has(t))
            )
        if on == "samples":
            if raw.cohort is None or test.cohort is None:
                raise DataError(
                    "signal:on=samples needs samples on both sides, and one of them holds tables"
                    " only. Use signal:on=window."
                )
            return compare_samples(raw, test)
        return _tables(raw.table(on), test.table(on), on)


def _tables(raw: FeatureTable, test: FeatureTable, on: str) -> tuple[UtilityResult, ...]:
    """The measures of rows that recorded and released table share."""
    columns = [name for name in raw.columns if name in test.columns]
    if not columns:
        raise DataError(
            f"The recorded and the released {on} table have no feature in common. Release the same"
            " features."
        )
    raw, test = raw.select(columns=columns), test.select(columns=columns)
    persons, signals, matched = _matched_rows(raw, test)
    if not signals:
        raise DataError(
            f"No row of the released {on} table has the person, stimulus, session, task and index"
            " of a recorded one, so there is nothing to compare. A release under fresh pseudonyms"
            " cannot be compared row by row; use document, task or events instead."
        )
    nmse, rmse, published = np.stack(signals, axis=1)  # recordings x features each
    note = (
        f"{on} table, {len(columns)} features, {matched} of {len(raw)} recorded rows are in the"
        " release"
    )
    unit = f"in units of the {'public range' if raw.bounds is not None else _DEVIATION}"
    names = np.unique(persons)
    medians = np.array([_median(nmse[persons == name]) for name in names.tolist()])[:, None]
    by_person = f"{note}; median over all signals, parts over those of a person"
    median = over_people("nmse_median", medians, names, by_person)
    undefined = f"{int(np.isnan(nmse).sum())} of {nmse.size} signals have a mean of 0 and no figure"
    printed = f"{note}; as published, its expectation is infinite; {undefined}"
    whole = f"{note}; {unit}, not divided by the number of rows"
    return (
        over_people("nmse", nmse, persons, printed),
        replace(median, value=_median(nmse)),
        over_people("rmse", rmse, persons, f"{note}; {unit}"),
        over_people("rmse_published", published, persons, whole),
    )


_DEVIATION = "recorded standard deviation"


def _matched_rows(raw: FeatureTable, test: FeatureTable) -> tuple[Texts, list[Floats], int]:
    """Person and measures of each recording of which rows were released, and how many rows."""
    if raw.bounds is not None:
        size = raw.bounds[:, 1] - raw.bounds[:, 0]
    else:
        deviation = column_deviations(raw.values)
        size = np.where(deviation > 0, deviation, np.nan)
    released = test.recordings()
    persons: list[str] = []
    signals: list[Floats] = []
    matched = 0
    for key, rows in raw.recordings().items():
        theirs = released.get(key)
        if theirs is None:
            continue
        _, mine, other = np.intersect1d(
            raw.keys.index[rows], test.keys.index[theirs], return_indices=True
        )
        if len(mine):
            persons.append(key[0])
            signals.append(measures(raw.values[rows[mine]], test.values[theirs[other]], size))
            matched += len(mine)
    return np.array(persons), signals, matched


def measures(x: Floats, y: Floats, size: Floats) -> Floats:
    """The measures of one recording.

    Parameters
    ----------
    x, y : array, shape (rows, features)
        Recorded and released; rows in which either is NaN do not count.
    size : array, shape (features,)
        Unit of the root mean squares; NaN where a feature has none.

    Returns
    -------
    array, shape (3, features)
        |NMSE|, and root of mean and of sum of squares in units of `size`; NaN where undefined.

    Examples
    --------
    >>> x, y = np.array([[1.0], [3.0]]), np.array([[2.0], [4.0]])
    >>> measures(x, y, np.array([2.0])).ravel().round(4).tolist()
    [0.1667, 0.5, 0.7071]
    """
    both = ~(np.isnan(x) | np.isnan(y))
    square = column_means(np.where(both, x - y, np.nan) ** 2)
    mean_x, mean_y = (column_means(np.where(both, v, np.nan)) for v in (x, y))
    product = np.abs(mean_x * mean_y)
    nmse = square / np.where(product > 0, product, np.nan)
    return np.stack((nmse, np.sqrt(square) / size, np.sqrt(square * both.sum(axis=0)) / size))


def _median(values: Floats) -> float:
    """Median of what is not NaN; NaN where nothing is."""
    seen = values[~np.isnan(values)]
    return float(np.median(seen)) if len(seen) else float("nan")


def compare_samples(raw: RecordingSet, test: RecordingSet) -> tuple[UtilityResult, ...]:
    """Errors of samples; see the module."""
    persons: list[str] = []
    rows: list[Floats] = []
    compared = 0
    for recorded, released, samples in _both_sides(raw, test):
        mine, theirs = partners(recorded, released, holds_pieces(test))
        errors_deg = distance_deg(
            recorded.space,
            recorded.x_deg[mine],
            recorded.y_deg[mine],
            released.x_deg[theirs],
            released.y_deg[theirs],
        )
        persons.append(recorded.person)
        rows.append(summary_of(errors_deg, samples))
        compared += len(errors_deg)
    if not rows:
        raise DataError(
            "No recording of the release has the person, stimulus, session and task of a recorded"
            " one, so there is nothing to compare."
        )
    values, who = np.stack(rows), np.array(persons)
    unit = "pieces" if holds_pieces(test) else "recordings"
    note = f"{compared} samples of {len(rows)} {unit}"
    published = f"{note}; not divided by the number of samples"
    kept = "share of valid samples that a valid released one belongs to"
    each = f"{note}; per {unit[:-1]}, then the mean over people"
    assert raw.cohort is not None
    rmse, _, median, p90 = middle_errors_deg(raw.cohort)
    return (
        over_people("rmse_deg", values[:, :1], who, each, chance=rmse),
        over_people("rmse_published_deg", values[:, 1:2], who, published),
        over_people("median_error_deg", values[:, 2:3], who, each, chance=median),
        over_people("p90_error_deg", values[:, 3:4], who, each, chance=p90),
        over_people("kept_share", values[:, 4:], who, kept, "higher"),
    )


def middle_errors_deg(cohort: Cohort) -> Floats:
    """Errors of an analyst who has no data and says "the middle": as :func:`summary_of` has them,
    per recording, then over people.

    On a sphere no direction is the middle, and another zero of the headset would give another
    figure: there it is the mean direction of everybody's gaze at the stimulus, which does not turn
    with the zero and is about as good as a constant can be.
    """
    means = _mean_directions(cohort)
    own: dict[str, list[Floats]] = {}
    for recording in cohort:
        x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
        if not len(x):
            continue
        sphere = isinstance(recording.space, Sphere)
        at = means[recording.stimulus] if sphere else (0.0, 0.0)
        angles = distance_deg(recording.space, x, y, np.full(len(x), at[0]), np.full(len(x), at[1]))
        own.setdefault(recording.person, []).append(summary_of(angles, float(len(x)))[:4])
    people = [np.mean(rows, axis=0) for rows in own.values()]
    return np.mean(people, axis=0) if people else np.full(4, np.nan)


def _mean_directions(cohort: Cohort) -> dict[str, tuple[float, float]]:
    """Stimulus on a sphere -> the mean of its recordings' mean directions, in degrees."""
    sums: dict[str, Floats] = {}
    for recording in cohort:
        if isinstance(recording.space, Sphere) and recording.valid.any():
            x, y = recording.x_deg[recording.valid], recording.y_deg[recording.valid]
            mean = recording.space.vectors(x, y).mean(axis=0)
            sums[recording.stimulus] = sums.get(recording.stimulus, np.zeros(3)) + mean
    found = {}
    for stimulus, vector in sums.items():
        x, y = Sphere().degrees(vector[np.newaxis])
        found[stimulus] = (float(x[0]), float(y[0]))
    return found


def _both_sides(
    raw: RecordingSet, test: RecordingSet
) -> Iterator[tuple[Recording, Recording, float]]:
    """Recordings as recorded and as released, or pieces, with the number of valid samples that each
    might have kept: a piece has its share of all of its recording.
    """
    if not holds_pieces(test):
        for recorded, released in side_by_side(raw, test):
            if recorded is not None and released is not None:
                yield recorded, released, float(recorded.valid.sum())
        return
    assert raw.cohort is not None
    at = {key: i for i, key in enumerate(raw.cohort.keys)}
    for viewer, group in groupby(pieces(raw, test), key=lambda stretch: stretch.viewer):
        cut = list(group)
        samples = float(raw.cohort[at[viewer]].valid.sum()) / len(cut)
        for stretch in cut:
            yield stretch.recorded, stretch.released, samples


def partners(raw: Recording, released: Recording, by_time: bool = False) -> tuple[Ints, Ints]:
    """Places of the samples that belong together, on both sides.

    A release with as many samples is compared sample by sample, because mechanisms that drop the
    tracker's own timing release a regular clock. In any other (or `by_time`, where both sides have
    one clock), a recorded and a released sample belong together that are nearest in time to one
    another and at most half a recorded sample apart.
    """
    if len(raw) == len(released) and not by_time:
        both = np.flatnonzero(raw.valid & released.valid)
        return both, both
    mine, theirs = (np.flatnonzero(r.valid) for r in (raw, released))
    if not (len(mine) and len(theirs)):
        return mine[:0], theirs[:0]
    # A release on a public clock begins at 0, whenever the recording did.
    begin = raw.t_ns[0] if released.t_ns[0] == 0 and not by_time else np.int64(0)
    t, clock = raw.t_ns[mine] - begin, released.t_ns[theirs]
    there = _nearest(t, clock)
    near = np.abs(clock[there] - t) <= (0.5e9 / raw.rate_hz if raw.rate_hz > 0 else 0.0)
    # Both ways, so that no released sample stands for two; of two that are equally near the one
    # that the other side chooses too.
    near &= _nearest(clock, t, later=True)[there] == np.arange(len(t))
    return mine[near], theirs[there[near]]


def summary_of(errors_deg: Floats, samples: float) -> Floats:
    """Root mean square, root of the sum of squares, median and 90 % quantile of visual angles, and
    the share of so many samples that was kept; NaN where there are none.
    """
    figures = np.full(5, np.nan)
    if samples > 0:
        figures[4] = len(errors_deg) / samples
    if len(errors_deg):
        squares = errors_deg**2
        figures[:2] = np.sqrt(squares.mean()), np.sqrt(squares.sum())
        figures[2:4] = np.quantile(errors_deg, (0.5, 0.9))
    return figures


def _nearest(t_ns: Ints, clock_ns: Ints, later: bool = False) -> Ints:
    """Place in an increasing clock of the time nearest to each of some times; of two that are
    equally near the earlier one, or the later one.
    """
    after = np.minimum(np.searchsorted(clock_ns, t_ns), len(clock_ns) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.abs(clock_ns[after] - t_ns) - np.abs(t_ns - clock_ns[before])
    return np.where(nearer <= 0 if later else nearer < 0, after, before)
