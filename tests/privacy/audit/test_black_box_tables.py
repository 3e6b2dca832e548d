"""Releases of tables as a stranger sees them: what one person's data change of everybody else's
rows, and the games that attack them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import gazeveil
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.audit.run import black_box_games, judge
from gazeveil.privacy.promise.loss import Change

TABLES = [
    "lpa:epsilon=1",
    "fpa:epsilon=1,k=2",
    "cfpa:epsilon=1,chunk=4,k=1",
    "dcfpa:epsilon=1,chunk=4",
    "dct-knorm:epsilon=1",
    "exponential-dp:epsilon=1",
]

# A game is lost by chance with a probability of at most one in a million.
SURE = 1 - 1e-6


def table(first: float, rows: int = 8) -> FeatureTable:
    """Somebody with two recordings, one of which is full of one value, and others whose recordings
    are short.
    """
    keys = [("a", "s", "1", ""), ("a", "s", "2", ""), *((name, "s", "1", "") for name in "bcd")]
    parts = [
        np.full((rows, 2), first),
        np.full((8, 2), 0.5),
        *(np.full((n, 2), 0.25) for n in (1, 2, 5)),
    ]
    indices = [np.arange(len(p), dtype=np.int64) for p in parts]
    return FeatureTable(
        np.concatenate(parts),
        ("x", "y"),
        Keys.of_recordings(keys, indices),
        np.array([[0.0, 1.0]] * 2),
    )


@pytest.mark.parametrize("text", TABLES)
@pytest.mark.parametrize("rows", [8, 3])
def test_what_others_get_does_not_depend_on_one_person(text: str, rows: int) -> None:
    # The same test stream draws the same noise, so whatever differs comes from the data; with
    # little noise it is seen.
    quiet, loud = (
        gazeveil.mechanism(text.replace("epsilon=1", "epsilon=500")).release(one, seed=1).data
        for one in (table(0.0), table(1.0, rows))
    )
    assert quiet.values.shape == loud.values.shape
    for name in ("b", "c", "d"):
        np.testing.assert_array_equal(
            quiet.select(people=name).values, loud.select(people=name).values
        )
    assert (quiet.select(people="a").values != loud.select(people="a").values).any()


@pytest.mark.parametrize("text", TABLES)
def test_the_length_of_a_recording_is_not_told(text: str) -> None:
    released = [gazeveil.mechanism(text).release(one).data for one in (table(0.0), table(0.0, 1))]
    assert [len(r) for r in released] == [5 * 8, 5 * 8]
    for name in ("person", "stimulus", "session", "task", "index"):
        np.testing.assert_array_equal(released[0].keys[name], released[1].keys[name])


@pytest.mark.parametrize("text", TABLES)
def test_a_person_loses_the_sum_over_all_their_recordings(text: str) -> None:
    promised = gazeveil.mechanism(f"{text},length=8").release(table(0.0)).guarantee
    feature = promised.map(Change.recording_feature()).epsilon
    assert feature == Fraction(1)
    assert promised.map(Change.recording()).epsilon == 2
    assert promised.map(Change.person()).epsilon == 4


@pytest.mark.parametrize(
    "text",
    [
        "lpa:epsilon=1",
        "cfpa:epsilon=1/2,chunk=2,k=1,per=chunk",
        "dp-k-same:k=3,epsilon=1",
        "marginals:k=3,epsilon=1",
    ],
)
def test_honest_tables_lose_no_black_box_game(text: str) -> None:
    mechanism = gazeveil.mechanism(text)
    verdicts = [judge(text, game, 1000, SURE) for game in black_box_games(mechanism)]
    assert len(verdicts) >= 3
    assert {"user"} < {v.unit for v in verdicts}
    assert not [str(v) for v in verdicts if v.refuted]


@pytest.mark.parametrize(
    "text", ["k-same-synth:k=2", "clock-render-k-same:k=2", "heatmap-laplace:epsilon=1"]
)
def test_honest_releases_about_people_lose_no_black_box_game(text: str) -> None:
    mechanism = gazeveil.mechanism(text)
    verdicts = [judge(text, game, 300, SURE) for game in black_box_games(mechanism)]
    assert verdicts
    assert not [str(v) for v in verdicts if v.refuted]


def test_all_maps_of_a_person_share_one_budget() -> None:
    def spread(text: str, stimuli: int) -> float:
        t = np.arange(4) * 10_000_000
        seen = [
            gazeveil.Recording("p", f"s{i}", t, np.full(4, 90.0), np.full(4, 90.0), rate_hz=100.0)
            for i in range(stimuli)
        ]
        maps = gazeveil.mechanism(text).release(gazeveil.Cohort(seen), seed=1).data
        return float(np.mean([one.noisy.std() for one in maps.values()]))

    # Nine maps: Laplace noise of nine times the scale, Gaussian noise of three times.
    assert spread("heatmap-laplace:epsilon=1", 9) == pytest.approx(
        9 * spread("heatmap-laplace:epsilon=1", 1), rel=0.1
    )
    assert spread("heatmap-gaussian:rho=1", 9) == pytest.approx(
        3 * spread("heatmap-gaussian:rho=1", 1), rel=0.1
    )
