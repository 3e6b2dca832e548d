"""Names, meanings, units and public bounds of every built-in feature.

Event features: George and Routray 2016, "A score level fusion method for eye movement biometrics",
Pattern Recognition Letters 82 (12 fixation and 46 saccade features, two published subsets each).
Window features: the 52 columns of the MPIIDPEye and MPIIPrivacEye files in file order (Steil et al.
2019; computed as in Hoppe et al. 2018).

The bounds come from physiology and tracker limits and are the same for every dataset: one fixation
lasts at most 5 s (a window's longest 10 s, where a detector without pursuit joins several), a
saccade lasts at most 0.5 s and spans at most 100 deg, eyes turn at most 1000 deg/s and accelerate
at most 200 000 deg/s^2 (peaks of large human saccades are about 700 deg/s and 40 000 deg/s^2; the
rest is room for tracker noise, which differences amplify). A whole window has at most 6 saccades or
fixations per second, and a blink of more than 2 s is a lost eye. A standard deviation lies within
half the largest value, a variance over events within the square of a quarter of the range. The
bounds do not follow a sample rate: noise of very fast trackers may pass them, and is clipped by the
mechanisms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats


@dataclass(frozen=True)
class Feature:
    """One built-in feature.

    Parameters
    ----------
    name : str
        Column name.
    meaning : str
        Definition in one line.
    unit : str
        Unit, "1" for plain numbers.
    low, high : float
        Public bounds.
    """

    name: str
    meaning: str
    unit: str
    low: float
    high: float


#: The statistics bundle M3S2K.
STATISTICS = ("mean", "median", "max", "std", "skew", "kurt")

#: The six series a saccade has statistics of, in column order: name, meaning, unit, largest mean,
#: largest value, signed.
_SERIES = (
    ("ang_vel", "angular velocity", "deg/s", 1000.0, 1000.0, False),
    ("ang_acc", "angular acceleration", "deg/s^2", 100_000.0, 200_000.0, True),
    ("vel_x", "horizontal velocity", "deg/s", 1000.0, 1000.0, True),
    ("vel_y", "vertical velocity", "deg/s", 1000.0, 1000.0, True),
    ("acc_x", "horizontal acceleration", "deg/s^2", 100_000.0, 200_000.0, True),
    ("acc_y", "vertical acceleration", "deg/s^2", 100_000.0, 200_000.0, True),
)

_SKEW, _KURT = (-5.0, 5.0), (-2.0, 30.0)

# Velocities in a fixation are mostly noise with rare jerks: their tails are heavier than those of
# any saccade.
_NOISE_SKEW, _NOISE_KURT = (-15.0, 15.0), (-2.0, 200.0)


def _bundle(
    series: tuple[str, str, str, float, float, bool],
    skew: tuple[float, float] = _SKEW,
    kurt: tuple[float, float] = _KURT,
) -> list[Feature]:
    name, meaning, unit, middle, most, signed = series
    sign = -1.0 if signed else 0.0
    return [
        Feature(f"{name}_mean", f"mean of the {meaning}", unit, sign * middle, middle),
        Feature(f"{name}_median", f"median of the {meaning}", unit, sign * middle, middle),
        Feature(f"{name}_max", f"maximum of the {meaning}", unit, sign * most, most),
        Feature(f"{name}_std", f"standard deviation of the {meaning}", unit, 0.0, most / 2),
        Feature(f"{name}_skew", f"skewness of the {meaning}", "1", *skew),
        Feature(f"{name}_kurt", f"excess kurtosis of the {meaning}", "1", *kurt),
    ]


_ANGLE_PREV = (
    "direction of first to last sample minus that of the previous event of this kind; 0 if none"
)
_DIST_PREV = "angle between the centroids of this and the previous event of this kind; 0 if none"

#: The 12 fixation features.
FIXATION: tuple[Feature, ...] = (
    Feature("duration", "samples / rate", "s", 0.0, 5.0),
    Feature("std_x", "standard deviation of x", "deg", 0.0, 5.0),
    Feature("std_y", "standard deviation of y", "deg", 0.0, 5.0),
    Feature("path_len", "sum of the angles between successive samples", "deg", 0.0, 100.0),
    Feature("angle_prev", _ANGLE_PREV, "deg", -360.0, 360.0),
    Feature("dist_prev", _DIST_PREV, "deg", 0.0, 100.0),
    Feature("skew_x", "skewness of x", "1", *_SKEW),
    Feature("skew_y", "skewness of y", "1", *_SKEW),
    Feature("kurt_x", "excess kurtosis of x", "1", *_KURT),
    Feature("kurt_y", "excess kurtosis of y", "1", *_KURT),
    Feature("dispersion", "(max x - min x) + (max y - min y)", "deg", 0.0, 20.0),
    Feature("avg_vel", "path_len / duration", "deg/s", 0.0, 200.0),
)

#: The 45 saccade features of the paper and, first, the duration.
SACCADE: tuple[Feature, ...] = (
    Feature("duration", "samples / rate", "s", 0.0, 0.5),
    Feature("dispersion", "(max x - min x) + (max y - min y)", "deg", 0.0, 150.0),
    *_bundle(_SERIES[0]),
    *_bundle(_SERIES[1]),
    Feature("std_x", "standard deviation of x", "deg", 0.0, 50.0),
    Feature("std_y", "standard deviation of y", "deg", 0.0, 50.0),
    Feature("path_len", "sum of the angles between successive samples", "deg", 0.0, 150.0),
    Feature("angle_prev", _ANGLE_PREV, "deg", -360.0, 360.0),
    Feature("dist_prev", _DIST_PREV, "deg", 0.0, 100.0),
    Feature(
        "saccadic_ratio", "maximum of the angular velocity / duration", "deg/s^2", 0.0, 50_000.0
    ),
    Feature(
        "saccade_angle", "direction of first to last sample, atan2(dx, dy)", "deg", -180.0, 180.0
    ),
    Feature("amplitude", "angle between first and last sample", "deg", 0.0, 100.0),
    *(f for series in _SERIES[2:] for f in _bundle(series)),
)


def _widest(name: str) -> Feature:
    defs = [f for f in (*FIXATION, *SACCADE) if f.name == name]
    return Feature(
        name, defs[0].meaning, defs[0].unit, min(f.low for f in defs), max(f.high for f in defs)
    )


_SACCADE_SCALARS = ("saccadic_ratio", "saccade_angle", "amplitude")

#: The 52 entries of the vector for one classifier over all events: 16 scalars (the path length
#: twice) and 36 statistics.
EVENT: tuple[Feature, ...] = (
    *(_widest(f.name) for f in FIXATION[:-1]),
    # The mean speed of a saccade is one, too.
    Feature("avg_vel", "path_len / duration", "deg/s", 0.0, 1000.0),
    *(_widest(name) for name in _SACCADE_SCALARS),
    Feature(
        "path_len_2",
        "path_len once more, as in the published vector",
        "deg",
        _widest("path_len").low,
        _widest("path_len").high,
    ),
    *(f for series in _SERIES for f in _bundle(series, _NOISE_SKEW, _NOISE_KURT)),
)

EVENT_KINDS: dict[str, tuple[Feature, ...]] = {
    "fixation": FIXATION,
    "saccade": SACCADE,
    "all": EVENT,
}


def _without(features: tuple[Feature, ...], *names: str) -> tuple[str, ...]:
    return tuple(f.name for f in features if f.name not in names)


#: Published subsets of feature names by kind; `published` is the paper's full set, which has no
#: saccade duration.
SUBSETS: dict[str, dict[str, tuple[str, ...]]] = {
    "fixation": {
        "all": _without(FIXATION),
        "published": _without(FIXATION),
        "reading": _without(FIXATION, "duration", "std_x", "kurt_x"),
        "random-dot": _without(FIXATION, "std_x", "std_y", "kurt_x"),
    },
    "saccade": {
        "all": _without(SACCADE),
        "published": _without(SACCADE, "duration"),
        "reading": _without(SACCADE, "duration", "ang_vel_mean", "ang_acc_kurt"),
        "random-dot": _without(
            SACCADE,
            "duration",
            "ang_vel_mean",
            "ang_vel_median",
            "ang_vel_max",
            "vel_y_skew",
            "acc_y_max",
        ),
    },
    "all": {"all": _without(EVENT), "published": _without(EVENT)},
}

# Window features
# --------------------------------------------------------------------------------------------------

#: Upper bound on fixations or saccades per second over a window.
MOST_PER_S = 6.0

#: Largest pupil by unit: a human pupil is below 10 mm; an eye camera shows it below 200 px;
#: anything else is a tracker's own unit.
PUPIL_LIMIT = {"mm": 10.0, "px": 200.0}
PUPIL_LIMIT_OTHER = 10_000.0

#: Codes of saccades: 16 directions of large ones, 8 of small ones.
SACCADE_CODES = 24

_AMPLITUDE_DEG, _FIXATION_S, _BLINK_S, _VARIANCE_DEG2 = 100.0, 10.0, 2.0, 9.0

#: Window features of fixations and saccades: name, meaning, unit, upper bound; the lower is 0.
_WINDOW_EVENTS = (
    ("fixation_rate", "fixations / window", "1/s", MOST_PER_S),
    ("saccade_rate", "saccades / window", "1/s", MOST_PER_S),
    ("small_saccade_rate", "small saccades / window", "1/s", MOST_PER_S),
    ("large_saccade_rate", "large saccades / window", "1/s", MOST_PER_S),
    ("right_saccade_rate", "saccades to the right / window", "1/s", MOST_PER_S),
    ("left_saccade_rate", "saccades to the left / window", "1/s", MOST_PER_S),
    ("saccades_per_fixation", "saccades / fixations", "1", 5.0),
    ("small_saccade_share", "small saccades / saccades", "1", 1.0),
    ("large_saccade_share", "large saccades / saccades", "1", 1.0),
    ("right_saccade_share", "rightward saccades / saccades", "1", 1.0),
    ("left_saccade_share", "leftward saccades / saccades", "1", 1.0),
    ("amplitude_mean", "mean saccade amplitude", "deg", _AMPLITUDE_DEG),
    ("amplitude_var", "variance of the saccade amplitude", "deg^2", (_AMPLITUDE_DEG / 4) ** 2),
    ("amplitude_max", "largest saccade amplitude", "deg", _AMPLITUDE_DEG),
    ("fixation_duration_mean", "mean fixation duration", "s", _FIXATION_S / 2),
    ("fixation_duration_var", "variance of the fixation duration", "s^2", (_FIXATION_S / 4) ** 2),
    ("fixation_duration_max", "longest fixation", "s", _FIXATION_S),
    ("var_x_mean", "mean over fixations of the variance of x", "deg^2", _VARIANCE_DEG2),
    ("var_y_mean", "mean over fixations of the variance of y", "deg^2", _VARIANCE_DEG2),
    (
        "var_x_var",
        "variance over fixations of the variance of x",
        "deg^4",
        (_VARIANCE_DEG2 / 4) ** 2,
    ),
    (
        "var_y_var",
        "variance over fixations of the variance of y",
        "deg^4",
        (_VARIANCE_DEG2 / 4) ** 2,
    ),
)

_WINDOW_BLINKS = (
    ("blink_duration_mean", "mean blink duration", "s", _BLINK_S),
    ("blink_duration_var", "variance of the blink duration", "s^2", (_BLINK_S / 4) ** 2),
    ("blink_rate", "blinks / window", "1/s", 2.0),
)


def window_definitions(
    window_s: float = 30.0, pupil_unit: str = "mm", minimum: str = "all"
) -> tuple[Feature, ...]:
    """The 52 window features in file order, with bounds for one window length.

    Parameters
    ----------
    window_s : float
        Window length: there cannot be more n-grams than saccades fit into the window.
    pupil_unit : str
        `mm`, `px`, or anything else for a tracker's own unit.
    minimum : {"all", "nonzero"}
        Whether the rarest n-gram is sought among all n-grams or among those that occur.
    """
    rows = [*_WINDOW_EVENTS, *_pupil_rows(pupil_unit), *_WINDOW_BLINKS]
    for n in (1, 2, 3, 4):
        rows += _ngram_rows(n, max(1.0, MOST_PER_S * window_s), minimum)
    return tuple(Feature(name, meaning, unit, 0.0, high) for name, meaning, unit, high in rows)


def _pupil_rows(pupil_unit: str) -> list[tuple[str, str, str, float]]:
    """Name, meaning, unit and upper bound of the features of the pupil's diameter."""
    # Readers may say which pixels: `eye-image px`.
    last = pupil_unit.split()[-1] if pupil_unit.split() else ""
    unit = last if last in PUPIL_LIMIT else "tracker unit"
    most = PUPIL_LIMIT.get(last, PUPIL_LIMIT_OTHER)
    variance = (most / 10) ** 2
    mean, var = "mean over fixations of the", "variance over fixations of the"
    return [
        ("pupil_mean_mean", f"{mean} mean pupil diameter", unit, most),
        ("pupil_mean_var", f"{var} mean pupil diameter", f"({unit})^2", (most / 4) ** 2),
        ("pupil_var_mean", f"{mean} variance of the pupil diameter", f"({unit})^2", variance),
        (
            "pupil_var_var",
            f"{var} variance of the pupil diameter",
            f"({unit})^4",
            (variance / 4) ** 2,
        ),
    ]


def _ngram_rows(n: int, most: float, minimum: str) -> list[tuple[str, str, str, float]]:
    """Name, meaning, unit and upper bound of the features of n-grams of saccades, of which a window
    holds at most `most`.
    """
    ngrams = float(SACCADE_CODES**n)
    rarest = max(1.0, most / ngrams) if minimum == "all" else most
    scope = "all n-grams" if minimum == "all" else "the n-grams that occur"
    counts = f"the count over all {SACCADE_CODES**n} n-grams"
    return [
        (f"wb{n}_nonzero", f"different {n}-grams of saccades that occur", "1", min(ngrams, most)),
        (f"wb{n}_max", "count of the most frequent n-gram", "1", most),
        (f"wb{n}_min", f"count of the rarest of {scope}", "1", rarest),
        (f"wb{n}_range", f"wb{n}_max - wb{n}_min", "1", most),
        (f"wb{n}_mean", f"mean of {counts}", "1", most / ngrams),
        (f"wb{n}_var", f"variance of {counts}", "1", most * most / ngrams),
    ]


#: Names of the 52 window features in file order.
WINDOW: tuple[str, ...] = tuple(f.name for f in window_definitions())

#: The four columns that are zero in the published files and that the 48-feature view leaves out.
MINIMA: tuple[str, ...] = tuple(f"wb{n}_min" for n in (1, 2, 3, 4))


def bounds_of(features: tuple[Feature, ...]) -> Floats:
    """Bounds as an array, shape (features, 2)."""
    return np.array([(f.low, f.high) for f in features], dtype=np.float64).reshape(-1, 2)
