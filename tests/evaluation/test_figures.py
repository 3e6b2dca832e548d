"""Figures that a referee accepts: who counts as recognised, intervals of real people's rates, both
anchors of an analysis, and what the certificate says of them.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import gazeveil
from gazeveil.attacks.result import DealtNames, _deals, best_above
from gazeveil.evaluation.report.findings import Findings
from gazeveil.evaluation.report.sections import inferences
from gazeveil.evaluation.report.summary import baseline_sentence, verdict
from gazeveil.evaluation.results import Results, frame_of
from gazeveil.evaluation.study import BETWEEN, RATE
from gazeveil.privacy.publication.page import analysis_in_words, attack_in_words
from gazeveil.release.publishing import measure
from tests.support.recordings import real_cohort

#: Fewer prototypes than the papers' network has: what is asked does not hang on them.
NETWORK = "rbfn:prototypes=8"


@pytest.fixture(scope="module")
def study() -> Results:
    """24 people of GazeCom whose tables are averaged over four, in four of the ten films."""
    people = real_cohort("gazecom")
    people = people.select(stimuli=people.stimuli[:4])
    return gazeveil.evaluate(people, ["k-same-select:k=4"], ["linkage", NETWORK], repetitions=3)


def asked(results: Results, mechanism: str) -> pl.DataFrame:
    return results.outcomes.filter(
        (pl.col("metric") == RATE)
        & (pl.col("mechanism") == mechanism)
        & pl.col("part").is_not_null()
    )


def test_averages_of_four_are_called_recognised(study: Results) -> None:
    """The rounded mean of three splits was tested as one binomial, and called this guessing."""
    row = study.strongest_against().filter(mechanism="k-same-select").row(0, named=True)
    assert row["p_value"] <= 0.001
    release = Findings(study).protected[0]
    assert release.recognised
    assert "of 24" in verdict(release)
    assert "p < 0.001" in verdict(release)


def test_names_dealt_anew_alarm_one_time_in_twenty(
    study: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of real attackers about people whose names are dealt: 200 null studies, seeded; 399
    deals tell one time in twenty as well as 3,999 do.
    """
    monkeypatch.setattr("gazeveil.attacks.result.DEALS", 399)
    monkeypatch.setattr("gazeveil.attacks.result._deals", _deals.__wrapped__)
    outcomes = asked(study, "k-same-select")
    cells = outcomes.select(pl.struct("attack", "scenario").rank("dense")).to_series() - 1
    people = sorted(set(outcomes["part"].to_list()))
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(200):
        dealt = dict(zip(people, rng.permutation(people).tolist(), strict=True))
        part = [dealt[p] for p in outcomes["part"].to_list()]
        said = outcomes["tied"].fill_null(outcomes["answer"]).fill_null("").to_list()
        answers = [s.split(BETWEEN) if s else () for s in said]
        when, credit = outcomes["repetition"].to_list(), outcomes["value"].to_list()
        names = DealtNames(cells.to_list(), when, part, answers, credit)
        alarms += names.p_value() <= 0.05
    assert 0.01 <= alarms / 200 <= 0.08


def test_the_best_of_attackers_of_pieces_alarms_falsely_in_at_most_8_of_100_studies() -> None:
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(100):
        # 24 people, 40 pieces each; attackers prefer some names and agree in half of their answers.
        liked = rng.dirichlet(np.full(24, 2.0))
        common = rng.choice(24, (24, 40), p=liked)
        shares = []
        for _ in range(12):
            own = np.where(rng.random((24, 40)) < 0.5, common, rng.choice(24, (24, 40), p=liked))
            shares.append((own == np.arange(24)[:, None]).mean(axis=1))
        alarms += best_above(shares, 1 / 24) <= 0.05
    assert alarms <= 8
    assert best_above(list(rng.binomial(40, 0.08, (12, 24)) / 40), 1 / 24) < 0.01


def test_both_anchors_stand_beside_an_analysis() -> None:
    people = gazeveil.simulate(6, 4, 8.0, 120.0, seed=3)
    results = gazeveil.evaluate(
        people, ["gaussian:sigma_deg=1"], [], ["density", "events", "signal"], repetitions=1
    )
    raw = results.frame.filter(mechanism="none")
    # The same samples have no other half: raw against raw is 0 there, the middle is no data.
    (place,) = raw.filter(metric="rmse_deg").select("value", "chance").rows()
    assert place[0] == 0 < 10 < place[1]
    for metric in ("jsd", "fixation_duration_wasserstein_s"):
        row = raw.filter(metric=metric).row(0, named=True)
        assert row["value"] > 0, metric  # halves of the recordings differ
        assert row["chance"] > row["value"], metric  # and less than from a textbook
        assert row["low"] < row["value"] < row["high"]


def test_the_certificate_says_how_many_tests_what_chance_is_and_what_so_few_people_show() -> None:
    people = gazeveil.simulate(6, 3, 6.0, 100.0, seed=2)
    noise = gazeveil.mechanism("gaussian", sigma_deg=4)
    files = gazeveil.protect(people, noise, seed=1).data
    found = measure(people, noise, "quick", ("events",), 2, executor=1, files=files)
    sentences = list(attack_in_words(found["attack"], "participants"))
    assert sentences[0].startswith("In 2 test releases made like this one, the strongest of 2")
    assert "of 6 participants (95 % CI " in sentences[0]
    assert "; chance 1 of 6)" in sentences[0]
    assert sentences[1].startswith("With 6 participants fewer than ")
    assert sentences[2].startswith("In the published files themselves it recognised")
    words = [analysis_in_words(row) for row in found["utility"]["analyses"]]
    assert all("raw against raw" in w and "without the data" in w for w in words)
    once = measure(people, noise, "quick", (), 1, executor=1)
    assert "no verdict" in list(attack_in_words(once["attack"]))[1]


def test_one_repetition_gives_no_verdict_and_one_sitting_is_said() -> None:
    people = gazeveil.simulate(6, 3, 6.0, 100.0, seed=2)
    found = Findings(gazeveil.evaluate(people, ["temporal:K=2"], ["linkage"], repetitions=1))
    assert found.protected[0].undecided
    assert not found.protected[0].recognised
    assert "one repetition gives no verdict" in verdict(found.protected[0])
    assert "in the same sitting" in baseline_sentence(found)


def test_an_interval_that_begins_at_nothing_is_shown() -> None:
    cell = {"mechanism": "gaussian", "scenario": "raw/private", "attack": "attributes"}
    row = {**cell, "metric": "r2", "value": 0.1, "low": 0.0, "high": 0.3}
    assert "0.1 (0 to 0.3)" in inferences(Findings(Results(frame_of([row]))))[0]
