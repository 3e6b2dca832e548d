"""Tables without a row say so."""

from __future__ import annotations

import warnings

import pytest

import gazeveil
from gazeveil.features.table import EmptyTableWarning


def test_windows_longer_than_every_recording_are_said() -> None:
    cohort = gazeveil.simulate(1, 2, 2.0, 120.0, seed=1)
    with pytest.warns(EmptyTableWarning, match="all 2 recordings are shorter than a window of 30"):
        assert len(gazeveil.window_features(cohort)) == 0
    with pytest.warns(EmptyTableWarning, match="there is no recording"):
        gazeveil.window_features(gazeveil.Cohort([]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", EmptyTableWarning)
        assert len(gazeveil.window_features(cohort, window_s=1.0)) > 0


def test_no_event_of_a_kind_is_said() -> None:
    gaze = gazeveil.simulate(1, 1, 2.0, 120.0, seed=1)[0]
    with pytest.warns(EmptyTableWarning, match="kind saccade has enough samples; none was found"):
        gazeveil.event_features(gaze, kind="saccade", events=gazeveil.Events.empty())
    short = gazeveil.Events.from_words(["fixation"] * 2, gaze.t_ns[:2])
    with pytest.warns(EmptyTableWarning, match="1 short events"):
        gazeveil.event_features(gaze, kind="fixation", events=short)
