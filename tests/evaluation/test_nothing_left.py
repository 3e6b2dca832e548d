"""A release that leaves nothing to learn from: attackers guess, and the study says so."""

from __future__ import annotations

import polars as pl
import pytest

import gazeveil
from gazeveil.errors import DataError

#: The published test passes hardly an event, and what fails is dropped.
MECHANISM = (
    "event-synth-pd:k=4,gamma=1.0,attempts=1,generator=ppca,probability=histogram,"
    "failed=drop,reading=published"
)


def test_who_has_nothing_to_learn_from_guesses() -> None:
    results = gazeveil.evaluate(
        gazeveil.simulate(4, 4, 3, 60, seed=1),
        mechanisms=[MECHANISM],
        attacks=["rbfn"],
        utilities=[],
        scenarios=["private/raw"],
        repetitions=1,
        seed=1,
        executor=1,
    )
    assert not results.failures
    row = results.frame.filter(
        (pl.col("mechanism") == "event-synth-pd") & (pl.col("metric") == "identification_rate")
    ).row(0, named=True)
    assert row["value"] == pytest.approx(row["chance"]) == pytest.approx(1 / 4)
    assert "a guess: the release left nothing to learn from" in row["note"]


def test_without_a_mechanism_it_is_a_failure() -> None:
    with pytest.raises(DataError, match="nothing to learn from"):
        # Too short for a fixation.
        gazeveil.evaluate(
            gazeveil.simulate(3, 4, 0.05, 60, seed=1),
            mechanisms=[],
            attacks=["rbfn"],
            utilities=[],
            repetitions=1,
            seed=1,
            executor=1,
        )
