"""The RBF network against a plain one, and the attacker built on it.

The RBF network of large galleries: few units for many people, beside the exact one.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gazeveil.attacks.identify import radial_network
from gazeveil.attacks.identify.classic import parse_weights, subsample
from gazeveil.attacks.identify.radial_network import RBFN, RadialNetwork, find_prototypes, radial
from gazeveil.attacks.registry import attack
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.models.classifiers import Scaler
from tests.support.attack_tables import recording_set, shuffled, sides, table, without
from tests.support.recordings import real_cohort


def blobs(
    classes: int = 5, rows: int = 40, features: int = 6, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Overlapping classes of different sizes, on different scales."""
    rng = np.random.default_rng(seed)
    y = np.repeat([f"c{i}" for i in range(classes)], [rows + 10 * i for i in range(classes)])
    x = 10.0 ** np.arange(-2, features - 2) * (
        rng.normal(size=(classes, features))[[int(c[1:]) for c in y]]
        + rng.normal(size=(len(y), features))
    )
    order = rng.permutation(len(y))
    return x[order], y[order]


def plain_scores(
    network: RadialNetwork,
    x: NDArray[np.float64],
    y: NDArray[np.str_],
    asked: NDArray[np.float64],
    balance: bool = False,
) -> NDArray[np.float64]:
    """The network as the papers write it, event by event, given the centres alone."""
    mean, sd = x.mean(axis=0), x.std(axis=0)
    members: list[list[float]] = [[] for _ in network.centres_]
    for row, name in zip(x, y, strict=True):
        z = (row - mean) / sd
        own = [i for i, code in enumerate(network.centre_class_) if network.classes_[code] == name]
        far = [float(np.linalg.norm(z - network.centres_[i])) for i in own]
        members[own[int(np.argmin(far))]].append(min(far))
    sigma = np.array([np.mean(m) for m in members])
    for code in range(len(network.classes_)):
        mine = network.centre_class_ == code
        sigma[mine] = np.maximum(sigma[mine], 0.01 * np.median(sigma[mine]))
    beta = 1 / (2 * (sigma + 1e-5) ** 2)

    def phi(row: NDArray[np.float64]) -> list[float]:
        z = (row - mean) / sd
        return [
            float(np.exp(-b * np.sum((z - c) ** 2)))
            for b, c in zip(beta, network.centres_, strict=True)
        ]

    a = np.array([phi(row) for row in x])
    target = np.array([[float(name == c) for c in network.classes_] for name in y])
    if balance:
        w = np.array([[1 / np.sqrt(np.count_nonzero(y == name))] for name in y])
        a, target = a * w, target * w
    return np.array([phi(row) for row in asked]) @ (np.linalg.pinv(a) @ target)


@pytest.mark.parametrize("balance", [False, True])
def test_the_network_scores_as_the_plain_one_does(balance: bool) -> None:
    x, y = blobs()
    asked, _ = blobs(seed=1)
    network = RadialNetwork(8, balance=balance, random_state=3).fit(x, y)
    assert network.solved_by_ == "cholesky"
    np.testing.assert_allclose(
        network.scores(asked), plain_scores(network, x, y, asked, balance), atol=1e-8
    )


def test_clusters_of_one_have_a_floor_and_the_plain_network_agrees() -> None:
    x, y = blobs(classes=3, rows=20)
    network = RadialNetwork(8, random_state=0).fit(x, y)
    alone = network.sigma_ < 0.02 * np.median(network.sigma_)
    assert alone.any()
    assert (network.sigma_ > 0).all()
    asked = np.concatenate([x, blobs(seed=2)[0]])
    np.testing.assert_allclose(network.scores(asked), plain_scores(network, x, y, asked), atol=1e-7)


def test_a_class_of_single_events_takes_the_spread_of_the_others() -> None:
    x = np.concatenate([np.random.default_rng(0).normal(size=(30, 2)), [[9.0, 9.0], [9.5, 9.0]]])
    y = np.array(["many"] * 30 + ["few"] * 2)
    network = RadialNetwork(4, random_state=0).fit(x, y)
    few = network.centre_class_ == 0
    assert few.sum() == 2
    np.testing.assert_allclose(network.sigma_[few], np.median(network.sigma_[~few]))
    assert network.classes_[network.scores([[8.0, 8.0]]).argmax()] == "few"
    lone = RadialNetwork(4).fit([[0.0, 0.0], [1.0, 3.0]], ["a", "b"])
    np.testing.assert_allclose(lone.sigma_, 2**0.5)
    assert lone.scores([[0.2, 0.9], [0.9, 2.0]]).argmax(axis=1).tolist() == [0, 1]


def test_dependent_activations_are_solved_by_the_least_norm_as_pinv_does() -> None:
    # The same event under two names: both classes have the same prototype, so the columns of A are
    # equal.
    x = np.array([[0.0], [0.0], [1.0], [3.0], [5.0], [6.0]])
    y = np.array(["a", "b", "a", "b", "a", "b"])
    network = RadialNetwork(3, random_state=0).fit(x, y)
    assert network.solved_by_ == "svd"
    phi = radial(Scaler.fit(x).apply(x), network.centres_, network.beta_)
    wanted = np.linalg.pinv(phi, rcond=6 * np.finfo(float).eps) @ (y[:, None] == network.classes_)
    np.testing.assert_allclose(network.weights_, wanted, atol=1e-8)


def test_blocks_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = blobs()
    asked, _ = blobs(seed=1)
    whole = RadialNetwork(8, random_state=3).fit(x, y)
    monkeypatch.setattr(radial_network, "_BLOCK_BYTES", 8 * len(whole.centres_) * 50)
    monkeypatch.setattr(radial_network, "_KEPT_BYTES", 0)
    np.testing.assert_allclose(
        RadialNetwork(8, random_state=3).fit(x, y).scores(asked), whole.scores(asked), atol=1e-9
    )
    monkeypatch.setattr(radial_network, "_LARGEST_CONDITION", 1.0)
    careful = RadialNetwork(8, random_state=3).fit(x, y)
    assert careful.solved_by_ == "svd"
    np.testing.assert_allclose(careful.scores(asked), whole.scores(asked), atol=1e-9)


def test_equal_events_make_one_prototype() -> None:
    z = np.repeat([[0.0, 1.0], [2.0, 3.0]], 10, axis=0)
    centres, sigma, _ = find_prototypes(
        z, np.array([20]), np.array([8]), np.random.default_rng(0).random(8)
    )
    assert sorted(centres.tolist()) == [[0.0, 1.0], [2.0, 3.0]]
    assert sigma.tolist() == [0.0, 0.0]


def test_rows_a_rounding_apart_leave_no_prototype_without_members() -> None:
    rng = np.random.default_rng(0)
    rows = 10.0 * rng.normal(size=(10, 3))
    z = np.concatenate([rows, np.nextafter(rows, np.inf)])
    centres, sigma, _ = find_prototypes(z, np.array([20]), np.array([20]), rng.random(20))
    assert 10 <= len(centres) < 20
    assert np.isfinite(centres).all()
    assert (sigma < 1e-9).all()


def test_people_with_the_same_events_tie_exactly() -> None:
    gallery, probe = sides(recording_set(people=6, events=40))
    # Each second person has the events of the one before, as k-same leaves them.
    tables = {}
    for name, t in gallery.tables.items():
        people = np.unique(t.keys.person)
        own = [t.where(t.keys.person == p) for p in people.tolist()]
        values = np.concatenate([own[i // 2 * 2].values for i in range(len(own))])
        keys = FeatureTable.concat(own).keys
        tables[name] = FeatureTable(values, t.columns, keys)
    scores = RBFN(prototypes=4).identify(RecordingSet(None, tables), probe, seed=1)
    assert np.array_equal(scores.values[:, ::2], scores.values[:, 1::2])
    assert scores.credit().max() == 0.5


def test_what_is_not_a_number_is_not_active_and_what_is_missing_is_average() -> None:
    x, y = blobs()
    network = RadialNetwork(8, random_state=3).fit(x, y)
    with np.errstate(all="raise"):
        assert radial(np.full((1, 6), np.inf), network.centres_, network.beta_).tolist() == [
            [0.0] * len(network.beta_)
        ]
    hole = x[:1].copy()
    hole[0, 2] = np.nan
    filled = hole.copy()
    filled[0, 2] = x[:, 2].mean()
    np.testing.assert_allclose(network.scores(hole), network.scores(filled), atol=1e-12)
    empty = np.concatenate([x, np.full((len(x), 1), np.nan)], axis=1)
    np.testing.assert_allclose(
        RadialNetwork(8, random_state=3).fit(empty, y).scores(empty), network.scores(x), atol=1e-9
    )


def test_the_seed_decides_everything() -> None:
    x, y = blobs()
    first, again, other = (
        RadialNetwork(8, random_state=seed).fit(x, y).scores(x) for seed in (3, 3, 4)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_people_who_differ_are_found_and_shuffled_ones_are_not() -> None:
    whole = recording_set(people=10, stimuli=6, events=15, apart=0.7)
    scores = RBFN(prototypes=6).identify(*sides(whole, 2), seed=1)
    assert scores.known == scores.probes == whole.persons
    assert scores.credit().mean() > 0.8
    null = [
        RBFN(prototypes=6).identify(*sides(shuffled(whole, s), 2), seed=s).credit().mean()
        for s in range(12)
    ]
    # 120 guesses at 1 in 10: three standard errors are 0.08.
    assert abs(np.mean(null) - 0.1) < 0.09


def test_scores_are_means_over_events_fused_by_weights() -> None:
    gallery, probe = sides(recording_set(people=4, events=12))
    parts = {}
    for kind, weights in (("fixation", "1/0"), ("saccade", "0/1")):
        who = RBFN(prototypes=3, weights=weights, train_events=0, test_events=0)
        parts[kind] = who.identify(gallery, probe, seed=7).values
    fused_scores = RBFN(prototypes=3, weights="0.4/0.6", train_events=0, test_events=0).identify(
        gallery, probe, seed=7
    )
    np.testing.assert_allclose(
        fused_scores.values, 0.4 * parts["fixation"] + 0.6 * parts["saccade"], atol=1e-8
    )


@pytest.mark.parametrize(
    ("balance", "solver"), [(False, "pinv"), (True, "pinv"), (True, "reduced")]
)
def test_one_network_is_the_network(balance: bool, solver: str) -> None:
    gallery, probe = sides(recording_set(people=4, events=12))
    gallery = RecordingSet(
        None, {"fixation": gallery.fixations.where(np.arange(len(gallery.fixations)) > 10)}
    )  # p0 has fewer events than the others
    found = RBFN(prototypes=3, weights="1/0", balance=balance, solver=solver).identify(
        gallery, probe, seed=7
    )
    train, test = gallery.fixations, probe.fixations
    seed = int(np.random.default_rng(np.random.SeedSequence([7, 0])).integers(2**31))
    scores = (
        RadialNetwork(3, balance=balance, solver=solver, random_state=seed)
        .fit(train.values, train.keys.person)
        .scores(test.values)
    )
    np.testing.assert_allclose(
        found.values, [scores[test.keys.person == p].mean(axis=0) for p in found.probes], atol=1e-9
    )


def test_who_lacks_a_kind_of_events_is_judged_by_the_other() -> None:
    gallery, probe = sides(recording_set(people=5, apart=2.0))
    halved = without(probe, "fixation", "p2")
    scores = RBFN(prototypes=4).identify(gallery, halved, seed=1)
    only = RBFN(prototypes=4, weights="0/1").identify(gallery, probe, seed=1)
    np.testing.assert_allclose(scores.values[2], only.values[2], atol=1e-12)
    learned = RBFN(prototypes=4).identify(without(gallery, "saccade", "p1"), probe, seed=1)
    assert learned.credit().mean() == 1.0


def test_who_has_nothing_gets_zeros_and_is_a_guess() -> None:
    gallery, probe = sides(recording_set(people=5, apart=2.0))
    # A row that was never measured is no event.
    bare = FeatureTable(
        np.full((1, 4), np.nan), probe.fixations.columns, Keys(["p9"], ["s3"], [""], [""], [0])
    )  # type: ignore[arg-type]
    asked = RecordingSet(
        None, {"fixation": FeatureTable.concat([probe.fixations, bare]), "saccade": probe.saccades}
    )
    scores = RBFN(prototypes=4).identify(gallery, asked, seed=1)
    assert scores.probes[-1] == "p9"
    assert scores.values[-1].tolist() == [0.0] * 5
    assert scores.credit()[-1] == 0.0
    assert scores.credit()[:-1].mean() == 1.0


def test_a_gallery_of_nothing_is_refused_and_one_of_one_person_is_no_choice() -> None:
    gallery, probe = sides(recording_set(people=3))
    nobody = RecordingSet(
        None, {name: t.where(np.zeros(len(t), dtype=bool)) for name, t in gallery.tables.items()}
    )
    with pytest.raises(DataError, match="nothing to learn from"):
        RBFN().identify(nobody, probe, seed=1)
    alone = RBFN().identify(gallery.select(people=["p1"]), probe, seed=1)
    assert alone.known == ("p1",)
    assert np.ptp(alone.values) == 0.0
    empty = RBFN().identify(gallery, nobody, seed=1)
    assert empty.probes == ()
    assert empty.values.shape == (0, 3)


def test_tables_without_a_common_feature_are_refused() -> None:
    gallery, probe = sides(recording_set(people=3))
    other = RecordingSet(
        None,
        {
            "fixation": FeatureTable(
                probe.fixations.values, ("a", "b", "c", "d"), probe.fixations.keys
            )
        },
    )
    with pytest.raises(DataError, match="share no feature"):
        RBFN().identify(gallery, other, seed=1)


def test_features_are_matched_by_name_not_by_place() -> None:
    gallery, probe = sides(recording_set(people=5, apart=2.0))
    turned = RecordingSet(
        None, {n: t.select(columns=t.columns[::-1]) for n, t in probe.tables.items()}
    )
    straight, mixed = (
        RBFN(prototypes=4).identify(gallery, p, seed=1).values for p in (probe, turned)
    )
    np.testing.assert_allclose(mixed, straight, atol=1e-12)


def test_windows_are_one_table() -> None:
    people, clips = [f"p{i}" for i in range(5)], ["s0", "s1", "s2"]
    whole = RecordingSet(None, {"window": table(people, clips, 10, apart=2.0)})
    windows = RBFN(prototypes=4, table="windows")
    assert windows.needs == ("window",)
    assert RBFN().needs == RBFN.needs == ("fixation", "saccade")
    assert windows.can(whole)
    assert not RBFN().can(whole)
    assert windows.identify(*sides(whole), seed=1).credit().mean() == 1.0
    fixations = RecordingSet(None, {"fixation": whole.windows})
    assert RBFN().can(fixations)
    assert RBFN(prototypes=4).identify(*sides(fixations), seed=1).credit().mean() == 1.0


def test_at_most_so_many_events_per_person_are_drawn() -> None:
    people = np.array(["b"] * 5 + ["a"] * 2 + ["b"] * 20 + ["c"])
    rows = subsample(people, 3, np.random.default_rng(0))
    assert (np.diff(rows) > 0).all()
    assert dict(zip(*np.unique(people[rows], return_counts=True), strict=True)) == {
        "a": 2,
        "b": 3,
        "c": 1,
    }
    assert not np.array_equal(rows, subsample(people, 3, np.random.default_rng(1)))
    assert len(subsample(people, 0, np.random.default_rng(0))) == len(people)
    drawn = np.concatenate([subsample(people, 3, np.random.default_rng(s)) for s in range(200)])
    assert set(drawn.tolist()) == set(range(len(people)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rbfn:weights=0.5", "weights"),
        ("rbfn:weights=0.5/x", "weights"),
        ("rbfn:weights=0/0", "weights"),
        ("rbfn:weights=-1/2", "weights"),
        ("rbfn:weights=nan/2", "weights"),
        ("rbfn:prototypes=0", "prototypes"),
        ("rbfn:table=window", "Did you mean 'windows'"),
        ("rbfn:train_events=-1", "train_events"),
        ("rbfn:balance=maybe", "balance"),
        ("rbfn:prototype=3", "Did you mean 'prototypes'"),
    ],
)
def test_wrong_parameters_are_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        attack(text)


def test_weights_are_fixations_then_saccades() -> None:
    assert parse_weights("rbfn", "0.4/0.6") == (0.4, 0.6)
    assert str(attack("rbfn:weights=0.4/0.6,prototypes=8")) == "rbfn:weights=0.4/0.6,prototypes=8"
    assert attack(str(attack("rbfn:weights=0.4/0.6,prototypes=8"))) == RBFN(
        weights="0.4/0.6", prototypes=8
    )


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("text", "reference"),
    [("rbfn", 0.95), ("rbfn:weights=1/0", 0.72), ("rbfn:weights=0/1", 0.86), ("lda", 0.95)],
)
def test_attackers_find_real_people_as_often_as_a_reference_does(
    text: str, reference: float
) -> None:
    whole = RecordingSet(real_cohort("gazecom").load()).prepared(("fixation", "saccade"))
    rng = np.random.default_rng(3)
    found = []
    for repetition in range(10):
        test = rng.permutation(whole.stimuli)[:2]
        gallery = whole.select(stimuli=[s for s in whole.stimuli if s not in test])
        found.append(
            attack(text).identify(gallery, whole.select(stimuli=test), repetition).credit().mean()
        )
    assert np.mean(found) > reference - 0.08


PEOPLE = 40


def crowd(seed: int = 0, rows: int = 60) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of 40 overlapping people."""
    places = np.random.default_rng(99).normal(size=(PEOPLE, 8))
    people = np.repeat(np.arange(PEOPLE), rows)
    return places[people] + np.random.default_rng(seed).normal(size=(len(people), 8)), people


def of_people(network: RadialNetwork) -> NDArray[np.float64]:
    asked, people = crowd(seed=1)
    return network.mean_scores(asked, people, PEOPLE)


def alike(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """Share of equal decisions, and correlation of scores."""
    same = np.mean(a.argmax(axis=1) == b.argmax(axis=1))
    return float(same), float(np.corrcoef(a.ravel(), b.ravel())[0, 1])


def test_the_switch_is_at_the_stated_number_and_changes_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = crowd()
    monkeypatch.setattr(radial_network, "MOST_UNITS", 8 * PEOPLE)
    exact = RadialNetwork(8, random_state=0).fit(x, y)
    assert exact.solved_by_ == "cholesky"
    assert len(exact.centres_) == 8 * PEOPLE
    # The same units, in single precision and with the ridge.
    same_units = RadialNetwork(8, solver="reduced", random_state=0).fit(x, y)
    same, correlation = alike(of_people(exact), of_people(same_units))
    assert same == 1.0
    assert correlation > 0.999
    # One prototype more per person is above the number: the units stay as many as they were.
    above = RadialNetwork(9, random_state=0).fit(x, y)
    assert above.solved_by_ == "reduced"
    assert len(above.centres_) == 8 * PEOPLE
    same, correlation = alike(
        of_people(RadialNetwork(9, solver="pinv").fit(x, y)), of_people(above)
    )
    assert same > 0.9
    assert correlation > 0.97


def test_units_are_bounded_and_everybody_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = crowd(rows=10)
    monkeypatch.setattr(radial_network, "MOST_UNITS", 100)
    network = RadialNetwork(32, random_state=0).fit(x, y)
    assert np.bincount(network.centre_class_).tolist() == [2] * PEOPLE
    monkeypatch.setattr(radial_network, "MOST_UNITS", 10)
    assert np.bincount(RadialNetwork(32).fit(x, y).centre_class_).tolist() == [1] * PEOPLE


def test_an_exact_network_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = crowd(rows=10)
    monkeypatch.setattr(radial_network, "LARGEST_UNITS", 100)
    with pytest.raises(DataError, match=r"at most 100 units .* there are 320.*solver=reduced"):
        RadialNetwork(8, solver="pinv").fit(x, y)
    assert RadialNetwork(8, solver="reduced").fit(x, y).solved_by_ == "reduced"


def test_rows_that_repeat_do_not_break_the_reduced_network() -> None:
    x = np.tile([[0.0, 1.0], [2.0, 3.0], [2.0, 3.0], [5.0, 1.0]], (30, 1))
    y = np.tile(["a", "b", "a", "c"], 30)
    network = RadialNetwork(4, solver="reduced", random_state=0).fit(x, y)
    assert np.isfinite(network.weights_).all()
    best = network.scores([[0.0, 1.0], [5.0, 1.0]]).argmax(axis=1)
    assert network.classes_[best].tolist() == ["a", "c"]


@pytest.mark.parametrize("solver", ["pinv", "reduced"])
def test_mean_scores_are_the_means_of_scores(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = crowd(rows=20)
    network = RadialNetwork(4, solver=solver, random_state=0).fit(x, y)
    asked, people = crowd(seed=2, rows=7)
    order = np.random.default_rng(0).permutation(len(people))
    wanted = network.scores(asked).reshape(PEOPLE, 7, PEOPLE).mean(axis=1)
    monkeypatch.setattr(radial_network, "_BLOCK_BYTES", 8 * len(network.centres_) * 11)
    found = network.mean_scores(asked[order], people[order], PEOPLE + 1)
    np.testing.assert_allclose(found[:PEOPLE], wanted, atol=1e-5 if solver == "reduced" else 1e-9)
    assert np.isnan(found[PEOPLE]).all()
