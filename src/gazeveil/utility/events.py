"""Whether events are still those of the people: durations, amplitudes, rates and the main sequence,
as recorded against as released.

Per person, over all recordings both sides have, or per stimulus (`by=stimulus`), over all its
viewers:

* `fixation_duration_wasserstein_s`, `saccade_amplitude_wasserstein_deg`: Wasserstein distance of
  the two distributions. A release that left a person no event counts as one whose events all have
  size 0, so that losing everything is never a good figure.
* `fixation_duration_median_error`, `saccade_amplitude_median_error`: difference of the medians, as
  a share of the recorded one; 1 where no event is left.
* `fixation_rate_error_hz`, `saccade_rate_error_hz`: difference of the events per second; on both
  sides the seconds are those of the recorded fixations and saccades.
* `main_sequence_slope_error`: difference of the slope of log peak velocity on log amplitude, by
  least squares; and `peak_velocity_error_deg_s`: difference of the two lines at the person's median
  recorded amplitude. People for whom one side has fewer than ten saccades, or amplitudes without
  spread, are left out and counted in the note.

A release of pieces is compared stimulus by stimulus with the same seconds of the recordings, cut at
the same times, because an event that a cut shortens is shortened on both sides. Any other release
under fresh pseudonyms has no person to compare: then everybody is taken together, as one part named
`everybody`. `chance` is the figure of an analyst who has no data but a textbook's distributions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.recording import RecordingKey
from gazeveil.utility.base import (
    Utility,
    UtilityResult,
    as_recorded,
    holds_pieces,
    need_lasting_names,
)

#: Name of the one part where people cannot be compared one by one.
EVERYBODY = "everybody"

_PLURAL = {"person": "people", "stimulus": "stimuli"}

#: Saccades that a main sequence is fitted to at least.
LEAST_SACCADES = 10

_METRICS = {
    "fixation_duration_wasserstein_s": "distance of fixation durations",
    "saccade_amplitude_wasserstein_deg": "distance of saccade amplitudes",
    "fixation_rate_error_hz": "fixations per second",
    "saccade_rate_error_hz": "saccades per second",
    "main_sequence_slope_error": "slope of log peak velocity on log amplitude",
    "peak_velocity_error_deg_s": "peak velocity at the median recorded amplitude",
    "fixation_duration_median_error": "median fixation duration, as a share of raw",
    "saccade_amplitude_median_error": "median saccade amplitude, as a share of raw",
}

#: What is compared one by one; `auto` takes people where names last, else stimuli.
BY = ("auto", "person", "stimulus")


@dataclass(frozen=True)
class EventFidelity(Utility):
    """How close released events are to recorded ones.

    Parameters
    ----------
    by : str
        One of :data:`BY`. Figures by person also lose what mixes people, figures by stimulus do
        not: compare mechanisms by the same.
    """

    by: str = "auto"

    name: ClassVar[str] = "events"
    halves: ClassVar[str] = "recordings"
    needs: ClassVar[tuple[str, ...]] = ("fixation", "saccade")

    def check(self) -> None:
        """A word."""
        checks.one_of(self.name, "by", self.by, BY)

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """The differences; see the module and :class:`Utility`."""
        pieces = holds_pieces(test)
        if pieces and self.by == "person":
            need_lasting_names("events:by=person", test)
        raw = as_recorded(raw, test)
        keys = set(raw.keys)
        common = keys & set(test.keys)
        by_stimulus = pieces or self.by == "stimulus"
        same = bool({k[0] for k in keys} & {k[0] for k in test.keys})

        def group(key: RecordingKey) -> str:
            return key[1] if by_stimulus else key[0] if same else EVERYBODY

        sides = [_movements(m, common or None, group) for m in (raw, test)]
        # A person whom the release left no event is compared too, with nothing.
        names = sorted({group(k) for k in (common or keys)})
        rows = np.array(
            [_compare(sides[0].get(n, _Movements()), sides[1].get(n, _Movements())) for n in names]
        ).reshape(len(names), len(_METRICS))
        without = np.array([_compare(s, _textbook(s)) for n in names if (s := sides[0].get(n))])
        seen = ~np.isnan(rows[:, 0])
        if not seen.any():
            raise DataError(
                "events needs people with recorded fixations and saccades, and nobody has both."
                " Choose another detector."
            )
        scope = (
            f"{len(common)} of {len(keys)} recordings"
            if common
            else f"{len(keys)} pieces, all viewers of a stimulus together"
            if pieces
            else f"{len(keys)} recordings against others of the same people"
            if same
            else "everybody together, because the release has other names"
        )
        kind = "stimulus" if by_stimulus else "person"
        results = []
        for i, (metric, meaning) in enumerate(_METRICS.items()):
            good = ~np.isnan(rows[:, i])
            lost = int((seen & ~good).sum())
            note = f"{meaning}; {scope}"
            if lost:
                some = f"{lost} of {int(seen.sum())} {_PLURAL[kind]}"
                note += f"; {some} have too few saccades on one side"
            parts, people = (
                rows[good, i],
                tuple(n for n, g in zip(names, good.tolist(), strict=True) if g),
            )
            value = float(parts.mean()) if len(parts) else float("nan")
            guesses = without[:, i][~np.isnan(without[:, i])]
            guess = float(guesses.mean()) if len(guesses) else float("nan")
            results.append(UtilityResult(metric, value, parts, kind, people, guess, note=note))
        return tuple(results)


@dataclass(frozen=True, eq=False)
class _Movements:
    """Fixation durations (s), saccade amplitudes (deg), peak velocities (deg/s) and durations (s)
    of one person, or on one stimulus.
    """

    fixations: Floats = field(default_factory=lambda: np.empty(0))
    saccades: Floats = field(default_factory=lambda: np.empty((0, 3)))


def _movements(
    recording_set: RecordingSet,
    wanted: set[RecordingKey] | None,
    group: Callable[[RecordingKey], str],
) -> dict[str, _Movements]:
    """The movements in some recordings (None: in all), by the group of a recording's key."""
    movements: dict[str, list[list[Floats]]] = {}
    for place, (kind, names) in enumerate(
        (("fixation", ("duration",)), ("saccade", ("amplitude", "ang_vel_max", "duration")))
    ):
        table = recording_set.table(kind)
        missing = [n for n in names if n not in table.columns]
        if missing:
            raise DataError(
                f"events looks at the feature '{missing[0]}', and a {kind} table has none. Release"
                " tables with it."
            )
        values = table.values[:, [table.columns.index(n) for n in names]]
        for key, rows in table.recordings().items():
            if wanted is None or key in wanted:
                movements.setdefault(group(key), [[], []])[place].append(values[rows])
    return {
        name: _Movements(
            np.concatenate([*f, np.empty((0, 1))])[:, 0], np.concatenate([*s, np.empty((0, 3))])
        )
        for name, (f, s) in movements.items()
    }


def _textbook(raw: _Movements) -> _Movements:
    """Draw the events of an analyst without the data, for the same duration. Three fixations and
    saccades a second; fixation durations are log-normal around 0.25 s. Amplitudes are around 4
    degrees, on the main sequence of Bahill et al. 1975.
    """
    from scipy.special import ndtri

    time_s = float(np.nansum(raw.fixations) + np.nansum(raw.saccades[:, 2]))
    count = max(1, round(3 * time_s))
    normal = ndtri((np.arange(count) + 0.5) / count)
    amplitude = 4.0 * np.exp(0.8 * normal)
    saccades = (amplitude, 551.0 * (1 - np.exp(-amplitude / 14.0)), 0.021 + 0.0022 * amplitude)
    return _Movements(0.25 * np.exp(0.5 * normal), np.stack(saccades, axis=1))


def _compare(raw: _Movements, released: _Movements) -> list[float]:
    """The figures of one person or stimulus; NaN where they cannot be measured."""
    time_s = float(np.nansum(raw.fixations) + np.nansum(raw.saccades[:, 2]))
    amplitudes = raw.saccades[:, 0]
    if not time_s > 0 or np.isnan(raw.fixations).all() or np.isnan(amplitudes).all():
        return [float("nan")] * len(_METRICS)
    lines = [main_sequence(side.saccades[:, 0], side.saccades[:, 1]) for side in (raw, released)]
    at = (
        float(np.log(np.median(amplitudes[amplitudes > 0])))
        if (amplitudes > 0).any()
        else float("nan")
    )
    peaks = [float(np.exp(intercept + slope * at)) for slope, intercept in lines]
    return [
        distance(raw.fixations, released.fixations),
        distance(amplitudes, released.saccades[:, 0]),
        abs(len(raw.fixations) - len(released.fixations)) / time_s,
        abs(len(amplitudes) - len(released.saccades)) / time_s,
        abs(lines[0][0] - lines[1][0]),
        abs(peaks[0] - peaks[1]),
        _median_error(raw.fixations, released.fixations),
        _median_error(amplitudes, released.saccades[:, 0]),
    ]


def _median_error(first: Floats, second: Floats) -> float:
    """Difference of two medians as a share of the first; an empty second set has the median 0."""
    a, b = first[~np.isnan(first)], second[~np.isnan(second)]
    recorded = float(np.median(a))
    if not recorded > 0:
        return float("nan")
    return abs(recorded - (float(np.median(b)) if len(b) else 0.0)) / recorded


def distance(first: Floats, second: Floats) -> float:
    """Wasserstein distance of two sets of values without NaN; an empty second set counts as a
    single 0, an empty first one gives NaN.

    Examples
    --------
    >>> recorded = np.array([1.0, 3.0])
    >>> distance(recorded, np.array([2.0, 4.0])), distance(recorded, np.empty(0))
    (1.0, 2.0)
    """
    from scipy.stats import wasserstein_distance

    a, b = first[~np.isnan(first)], second[~np.isnan(second)]
    if len(a) == 0:
        return float("nan")
    return float(wasserstein_distance(a, b if len(b) else np.zeros(1)))


def main_sequence(amplitudes_deg: Floats, velocities_deg_s: Floats) -> tuple[float, float]:
    """Slope and intercept of log peak velocity on log amplitude (natural logarithms), over saccades
    where both are above 0.

    (NaN, NaN) for fewer than ten saccades, or amplitudes without spread.

    Examples
    --------
    >>> amplitude = np.linspace(1, 20, 30)
    >>> slope, intercept = main_sequence(amplitude, 80 * amplitude**0.6)
    >>> round(slope, 6), round(float(np.exp(intercept)), 6)
    (0.6, 80.0)
    """
    good = (amplitudes_deg > 0) & (velocities_deg_s > 0)  # NaN is not above 0
    if int(good.sum()) < LEAST_SACCADES:
        return float("nan"), float("nan")
    x, y = np.log(amplitudes_deg[good]), np.log(velocities_deg_s[good])
    spread = float(x.var())
    if spread < 1e-12:
        return float("nan"), float("nan")
    slope = float(((x - x.mean()) * (y - y.mean())).mean()) / spread
    return slope, float(y.mean()) - slope * float(x.mean())
