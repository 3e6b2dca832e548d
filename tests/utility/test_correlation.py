"""Correlation curves over participants: by hand, of differences, with ends and gaps, and the figure
Bozkir et al. 2021 draws.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gazeveil.errors import DataError, ParameterError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.utility.signal import correlation_curves


def table(signals: NDArray[np.float64], stimulus: str = "text") -> FeatureTable:
    """Signals of shape (people, steps, features)."""
    people, steps, features = signals.shape
    keys = Keys.of_recordings(
        [(f"p{p}", stimulus, "1", "") for p in range(people)], [np.arange(steps)] * people
    )
    return FeatureTable(
        signals.reshape(-1, features), tuple(f"f{i}" for i in range(features)), keys
    )


def test_curves_are_pearson_correlations_with_the_fifth_step() -> None:
    rng = np.random.default_rng(0)
    signals = rng.normal(0, 1, (12, 30, 2)).cumsum(axis=1)
    curves = correlation_curves(table(signals), last=30)
    assert curves.steps.tolist() == list(range(6, 31))
    assert curves.values.shape == (1, 2, 25)
    for f in range(2):
        for i, step in enumerate(curves.steps.tolist()):
            assert curves.values[0, f, i] == pytest.approx(
                np.corrcoef(signals[:, 4, f], signals[:, step - 1, f])[0, 1]
            )
    differences = np.diff(signals, axis=1, prepend=0.0)
    found = correlation_curves(table(signals), last=30, difference=True)
    assert found.values[0, 1, 7] == pytest.approx(
        np.corrcoef(differences[:, 4, 1], differences[:, 12, 1])[0, 1]
    )


def test_participants_who_stop_early_count_as_long_as_they_read() -> None:
    rng = np.random.default_rng(2)
    whole = table(rng.normal(0, 1, (6, 20, 1)))
    person = whole.keys.person.tolist()
    short = whole.where(
        [
            i
            for i in range(len(whole))
            if not (person[i] in ("p4", "p5") and whole.keys.index[i] >= 10)
        ]
    )
    curves = correlation_curves(short, last=25)
    assert curves.people[0].tolist() == [6] * 5 + [4] * 10 + [0] * 5
    v = short.values[:, 0].reshape(-1)
    first = {p: v[(short.keys.person == p)] for p in np.unique(short.keys.person).tolist()}
    four = np.array([first[f"p{i}"][[4, 14]] for i in range(4)])
    assert curves.values[0, 0, 9] == pytest.approx(np.corrcoef(four.T)[0, 1])
    assert np.isnan(curves.values[0, 0, 15:]).all()


def test_what_does_not_vary_or_is_missing_has_no_correlation(
    recwarn: pytest.WarningsRecorder,
) -> None:
    rng = np.random.default_rng(3)
    signals = rng.normal(0, 1, (7, 12, 3))
    signals[:, :, 0] = 0.1  # the mean of seven of these is not quite 0.1
    signals[:5, 8, 1] = np.nan
    signals[:, 4, 2] = 0.1
    curves = correlation_curves(table(signals), last=12)
    assert np.isnan(curves.values[0, [0, 2]]).all()
    assert np.isnan(curves.values[0, 1, 3])
    assert np.isfinite(curves.values[0, 1, 4])
    assert not recwarn.list
    with pytest.raises(DataError, match="rows"):
        correlation_curves(table(signals).where([]))
    with pytest.raises(ParameterError, match="at least 6"):
        correlation_curves(table(signals), last=5)
