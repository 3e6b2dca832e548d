"""Classic classifiers as attackers, at the levels of events, windows and recordings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.identify.classic import LDA, SVM, Classic, Forest, within_covariance
from gazeveil.attacks.registry import attack
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.models.classifiers import Scaler
from tests.support.attack_tables import recording_set, shuffled, sides, table, without

#: Every attacker, small.
SMALL = ("forest:trees=20", "svm", "knn:k=5", "tree", "lda:level=event", "boosting:rounds=5")


def classic(text: str, **parameters: object) -> Classic:
    found = attack(text, **parameters)
    assert isinstance(found, Classic)
    return found


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("text", SMALL)
def test_people_who_differ_are_found_and_shuffled_ones_are_not(text: str) -> None:
    whole = recording_set(people=6, stimuli=5, events=15, apart=1.0)
    assert classic(text).identify(*sides(whole), seed=1).credit().mean() > 0.8
    null = [
        classic(text).identify(*sides(shuffled(whole, s)), seed=s).credit().mean() for s in range(8)
    ]
    # 48 guesses at 1 in 6: three standard errors are 0.16.
    assert abs(np.mean(null) - 1 / 6) < 0.17


@pytest.mark.parametrize(
    "text",
    [
        *SMALL,
        "lda",
        "forest:trees=20,level=recording",
        "svm:level=recording",
        "knn:level=recording",
        "tree:level=recording",
    ],
)
def test_every_attacker_takes_poor_material(text: str) -> None:
    gallery, probe = sides(recording_set(people=4, events=6, apart=2.0))
    who = classic(text)
    # One stimulus each, two people, one person, somebody without fixations, and features that were
    # not measured.
    for known in (
        gallery.select(stimuli=["s0"]),
        gallery.select(people=["p0", "p2"]),
        gallery.select(people=["p1"]),
        without(gallery, "fixation", "p1"),
    ):
        scores = who.identify(known, without(probe, "saccade", "p3"), seed=1)
        assert scores.known == known.persons
        assert scores.probes == probe.persons
        assert np.isfinite(scores.values).all()
    holes = {}
    for name, t in gallery.tables.items():
        values = t.values.copy()
        values[::3, 0] = np.nan
        values[:, 1] = np.nan
        holes[name] = FeatureTable(values, t.columns, t.keys)
    assert np.isfinite(who.identify(RecordingSet(None, holes), probe, seed=1).values).all()
    nobody = RecordingSet(
        None, {name: t.where(np.zeros(len(t), dtype=bool)) for name, t in gallery.tables.items()}
    )
    with pytest.raises(DataError, match="nothing to learn from"):
        who.identify(nobody, probe, seed=1)
    assert who.identify(gallery, nobody, seed=1).values.shape == (0, 4)


@pytest.mark.parametrize("text", SMALL)
def test_the_seed_decides_everything(text: str) -> None:
    gallery, probe = sides(recording_set(people=4, events=30))
    first, again = (
        classic(text, train_events=40, test_events=20).identify(gallery, probe, seed=5).values
        for _ in range(2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(
        first,
        classic(text, train_events=40, test_events=20).identify(gallery, probe, seed=6).values,
    )


@pytest.mark.parametrize(
    "text", ["forest:trees=20", "svm", "knn", "lda:level=event", "boosting:rounds=5"]
)
def test_balance_takes_away_the_advantage_of_who_has_most_events(text: str) -> None:
    # All people are the same; one has ten times the events.
    rng = np.random.default_rng(0)
    people = ["p0"] * 200 + ["p1"] * 20 + ["p2"] * 20
    none = [""] * 240
    keys = Keys(people, ["s"] * 240, none, none, np.arange(240))  # type: ignore[arg-type]
    whole = RecordingSet(
        None, {"fixation": FeatureTable(rng.normal(size=(240, 3)), ("a", "b", "c"), keys)}
    )
    share = {
        b: votes(classic(text, train_events=0, balance=b), whole, _fresh(100))
        for b in (False, True)
    }
    assert share[False] > 0.8
    assert share[True] < share[False] - 0.1


def votes(who: Classic, gallery: RecordingSet, probe: RecordingSet) -> float:
    """Share of the probe's rows that are named as the first person."""
    table = gallery.fixations
    scaler = Scaler.fit(table.values)
    _, scores = who.classifier(scaler.apply(table.values), table.keys.person, 1)
    named = scores(scaler.apply(probe.fixations.values)).argmax(axis=1)
    return float(np.mean(named == 0))


def _fresh(events: int) -> RecordingSet:
    return RecordingSet(
        None,
        {
            "fixation": FeatureTable(
                np.random.default_rng(1).normal(size=(events, 3)),
                ("a", "b", "c"),
                Keys.of_recordings([("p1", "t", "", "")], [np.arange(events)]),
            )
        },
    )


def test_windows_are_classified_at_their_level() -> None:
    whole = RecordingSet(
        None, {"window": table([f"p{i}" for i in range(4)], ["s0", "s1", "s2"], 8, apart=2.0)}
    )
    who = Forest(level="window", trees=20)
    assert who.needs == ("window",)
    assert who.can(whole)
    assert not Forest().can(whole)
    assert who.identify(*sides(whole), seed=1).credit().mean() == 1.0


def test_recordings_are_classified_by_their_vectors() -> None:
    cohort = gazeveil.simulate(4, 3, 8.0, 120.0, task="video", seed=1)
    whole = RecordingSet(cohort)
    gallery, probe = sides(whole)
    # Scores are log probabilities of single recordings; here each person has one.
    values = LDA().identify(gallery, probe, seed=1).values
    np.testing.assert_allclose(np.exp(values).sum(axis=1), 1.0)


def test_lda_is_that_of_scikit_learn() -> None:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    gallery, probe = sides(recording_set(people=4, stimuli=4, events=10))
    train, test = gallery.fixations, probe.fixations
    scaler = Scaler.fit(train.values)
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=np.full(4, 0.25)).fit(
        scaler.apply(train.values), train.keys.person
    )
    wanted = peer.predict_log_proba(scaler.apply(test.values))
    found = LDA(level="event", weights="1/0", train_events=0).identify(gallery, probe, seed=1)
    np.testing.assert_allclose(
        found.values, [wanted[test.keys.person == p].mean(axis=0) for p in found.probes], atol=1e-6
    )


def test_people_with_one_row_say_nothing_of_the_covariance() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(30, 3)) for _ in range(4)]
    rows = [r - r.mean(axis=0) for r in rows]
    assert np.array_equal(within_covariance(rows), within_covariance([*rows, np.zeros((1, 3))]))
    assert np.array_equal(within_covariance([np.zeros((1, 3))] * 4), np.eye(3))
    # Nobody has two rows: LDA is then the nearest mean.
    one = recording_set(people=5, stimuli=2, events=1, apart=4.0)
    scores = LDA(level="event", weights="1/0").identify(*sides(one), seed=1)
    scaler = Scaler.fit(one.select(stimuli=["s0"]).fixations.values)
    near = [scaler.apply(one.select(stimuli=[s]).fixations.values) for s in ("s0", "s1")]
    apart = ((near[1][:, None] - near[0]) ** 2).sum(axis=-1)
    assert scores.values.argmax(axis=1).tolist() == apart.argmin(axis=1).tolist()


def test_two_people_are_told_apart_by_the_svm() -> None:
    gallery, probe = sides(recording_set(people=2, apart=2.0))
    scores = SVM().identify(gallery, probe, seed=1)
    assert scores.credit().tolist() == [1.0, 1.0]
    np.testing.assert_allclose(scores.values.sum(axis=1), 0.0, atol=1e-12)


def test_standardising_survives_constants_gaps_and_large_numbers() -> None:
    values = np.array(
        [[1.0, 5.0, np.nan, 1e300], [3.0, 5.0, np.nan, -1e300], [np.nan, 5.0, np.nan, 1e300]]
    )
    with np.errstate(all="raise"):
        scaler = Scaler.fit(values)
        z = scaler.apply(values)
    assert scaler.scale.tolist()[:3] == [1.0, 1.0, 1.0]
    assert z[:, :3].tolist() == [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(z[:, 3], [2**-0.5, -(2**0.5), 2**-0.5])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("forest:trees=0", "trees"),
        ("svm:C=-1", "C"),
        ("svm:gamma=scales", "Did you mean 'scale'"),
        ("knn:k=1.5", "'k'"),
        ("boosting:rounds=0", "rounds"),
        ("lda:level=recordings", "Did you mean 'recording'"),
        ("lda:features=trajectory", "features"),
    ],
)
def test_wrong_parameters_are_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        attack(text)
