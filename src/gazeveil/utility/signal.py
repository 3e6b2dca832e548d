"""How far released signals are from recorded ones: feature by feature for tables, in degrees for
samples.

Tables (Bozkir et al. 2021, equations 4 to 6). A signal is one feature of one recording, x as
recorded and y as released, on the rows both have:

* `nmse`: mean((x - y)**2) / (mean(x) mean(y)), absolute, as printed; its utility `nmse_utility` is
  one over it. The mean of y may be near 0, and then the figure is as large as you like: its
  expectation is infinite, and averages of it say little. `nmse_median` is its median over signals.
* `nmse_finite`: mean((x - y)**2) / mean over recordings of mean(x)**2, whose expectation is finite
  because nothing released is divided by; and `nmse_utility_finite`, mean(x)**2 / mean((x - y)**2).
* `rmse`: root of the mean of squares, and `rmse_published`: root of their sum, as Ren et al. 2024
  prints it (equation 15), in units of the feature's public range, or of its standard deviation as
  recorded where the table has no bounds.

All are taken per signal, averaged over a person's recordings, then over features, then over people.
Signals whose mean as recorded is 0 have no `nmse`, and signals released exactly no utility (it is
infinite); the note counts both. Exact is an error below :data:`EXACT` of the signal: where all
participants agree in a feature, the published Fourier methods add no noise, and what is left is the
rounding of the transform, one over which is a utility of 1e31 that says nothing.

Samples: the visual angle between each recorded sample and the released one that belongs to it
(:func:`gazeveil.utility.positions.partners`), where both are valid.

* Per recording, then the mean over a person's recordings, then over people: `rmse_deg`,
  `rmse_published_deg` (no division by the number of samples), `median_error_deg`, `p90_error_deg`
  (nine of ten samples are nearer), and `kept_share`, the share of valid samples that have such a
  partner.
* Of all samples together, so that long recordings count more: `pooled_rmse_deg`,
  `pooled_median_error_deg`, `pooled_p90_error_deg`. Their parts are those of each person's samples
  together, and the value is not the mean of the parts. Pooled quantiles come from a histogram of
  errors whose steps are half a per cent.

Each piece of a release of pieces is compared with the same seconds of its own recording. Only the
curator knows that recording. Each piece counts as a recording; `kept_share` also counts the gaps
between pieces as lost.

Correlation curves of Bozkir et al. 2021 (Figs 3 to 6): how much a feature at one step says about
the same feature later, over participants.

The correlation coefficient, over the people who read one document, between a feature at the fifth
window and at each later one; of the signals as they are, and of their differences from step to step
(d_1 = x_1, d_t = x_t - x_(t-1)), which DCFPA adds its noise to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.errors import DataError
from gazeveil.features.recording_set import TABLES, RecordingSet
from gazeveil.features.recordings import column_deviations, column_means
from gazeveil.features.table import FeatureTable
from gazeveil.utility.base import Utility, UtilityResult, over_people
from gazeveil.utility.positions import compare_samples


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
    n = both.sum(axis=0)
    least = np.maximum(n, 1)
    centred = []
    for v in (np.broadcast_to(x, both.shape), np.broadcast_to(y, both.shape)):
        mean = np.where(both, v, 0.0).sum(axis=0) / least
        centred.append(np.where(both, v - mean, 0.0))
    squares = [(c**2).sum(axis=0) for c in centred]
    # Rounding leaves equal values with tiny squares, and their ratio would be a correlation of
    # rounding errors.
    sizes = [(np.where(both, np.broadcast_to(v, both.shape), 0.0) ** 2).sum(axis=0) for v in (x, y)]
    varies = (squares[0] > 1e-24 * sizes[0]) & (squares[1] > 1e-24 * sizes[1]) & (n >= 3)
    scale = np.sqrt(squares[0] * squares[1])
    correlation: Floats = np.where(
        varies, (centred[0] * centred[1]).sum(axis=0) / np.where(varies, scale, 1.0), np.nan
    )
    return np.clip(correlation, -1.0, 1.0)


#: What may be compared; `auto` takes samples where the release has them, else the first table it
#: holds of window, fixation, saccade.
ON = ("auto", "samples", *TABLES)

_ORDER = ("window", "fixation", "saccade")

#: Errors below this part of a signal, as root mean squares, are rounding: the signal is exact.
EXACT = 1e-12


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


# --- tables
# --------------------------------------------------------------------------------------------------

_COLUMNS = (
    "nmse",
    "nmse_utility",
    "nmse_utility_finite",
    "rmse",
    "rmse_published",
    "square",
    "level",
)


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
    by = dict(zip(_COLUMNS, np.stack(signals, axis=1), strict=True))  # recordings x features each
    level = column_means(by["level"])
    by["nmse_finite"] = by["square"] / np.where(level > 0, level, np.nan)
    unit = "public range" if raw.bounds is not None else "recorded standard deviation"
    note = (
        f"{on} table, {len(columns)} features, {matched} of {len(raw)} recorded rows are in the"
        " release"
    )
    return _table_results(by, persons, note, f"in units of the {unit}")


def _matched_rows(raw: FeatureTable, test: FeatureTable) -> tuple[Texts, list[Floats], int]:
    """Person and measures of each recording of which rows were released, and how many rows."""
    size = _sizes(raw)
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


def _table_results(
    by: dict[str, Floats], persons: Texts, note: str, unit: str
) -> tuple[UtilityResult, ...]:
    """One result per measure, from arrays of shape (recordings, features)."""
    nmse = by["nmse"]
    undefined = f"{int(np.isnan(nmse).sum())} of {nmse.size} signals have a mean of 0 and no figure"
    exact = f"{int((by['square'] == 0).sum())} signals are exact and left out"
    names = np.unique(persons)
    medians = np.array([_median(nmse[persons == name]) for name in names.tolist()])[:, None]
    by_person = f"{note}; median over all signals, parts over those of a person"
    median = over_people("nmse_median", medians, names, by_person)
    rest = (
        ("nmse_finite", note, "lower"),
        ("nmse_utility", f"{note}; as published; {exact}", "higher"),
        ("nmse_utility_finite", f"{note}; {exact}", "higher"),
        ("rmse", f"{note}; {unit}", "lower"),
        ("rmse_published", f"{note}; {unit}, not divided by the number of rows", "lower"),
    )
    published = f"{note}; as published, its expectation is infinite; {undefined}"
    return (
        over_people("nmse", nmse, persons, published),
        replace(median, value=_median(nmse)),
        *(over_people(metric, by[metric], persons, text, better) for metric, text, better in rest),
    )


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
    array, shape (7, features)
        |NMSE|, its inverse, the finite inverse, root of mean and of sum of squares in units of
        `size`, mean of squares, squared mean of x; NaN where undefined.

    Examples
    --------
    >>> x, y = np.array([[1.0], [3.0]]), np.array([[2.0], [4.0]])
    >>> measures(x, y, np.array([2.0])).ravel().round(4).tolist()
    [0.1667, 6.0, 4.0, 0.5, 0.7071, 1.0, 4.0]
    """
    both = ~(np.isnan(x) | np.isnan(y))
    n = both.sum(axis=0)
    some = n > 0
    least = np.maximum(n, 1)
    total = (np.where(both, x - y, 0.0) ** 2).sum(axis=0)
    total = np.where(total <= EXACT**2 * (np.where(both, x, 0.0) ** 2).sum(axis=0), 0.0, total)
    square = np.where(some, total / least, np.nan)
    mean_x, mean_y = (
        np.where(some, np.where(both, v, 0.0).sum(axis=0) / least, np.nan) for v in (x, y)
    )
    product, level = np.abs(mean_x * mean_y), mean_x**2
    wrong = np.where(square > 0, square, np.nan)
    nmse = square / np.where(product > 0, product, np.nan)
    # A mean of 0 as recorded has no level to measure an error by; a mean of 0 as released has an
    # utility of 0.
    has_level = np.where(level > 0, 1.0, np.nan)
    return np.stack(
        (
            nmse,
            has_level * product / wrong,
            has_level * level / wrong,
            np.sqrt(square) / size,
            np.where(some, np.sqrt(total), np.nan) / size,
            square,
            level,
        )
    )


def _sizes(raw: FeatureTable) -> Floats:
    if raw.bounds is not None:
        return raw.bounds[:, 1] - raw.bounds[:, 0]
    deviation = column_deviations(raw.values)
    return np.where(deviation > 0, deviation, np.nan)


def _median(values: Floats) -> float:
    """Median of what is not NaN; NaN where nothing is."""
    seen = values[~np.isnan(values)]
    return float(np.median(seen)) if len(seen) else float("nan")
