"""The published reading of the RBF network against a plain one that is written here from the text
of David-John et al. 2021, section 5.4, and shares no code with ours.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gazeveil.attacks.identify.radial_network import RBFN
from gazeveil.attacks.registry import attack
from gazeveil.errors import ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys

Rows = NDArray[np.float64]

PEOPLE = ("ann", "bob", "cid", "dora")
CLUSTERS = 3


def lloyd(rows: Rows) -> tuple[Rows, NDArray[np.int64]]:
    """Centres and members of clusters so far apart that every k-means finds the same."""
    centres = rows[:1]
    while len(centres) < CLUSTERS:
        far = np.linalg.norm(rows[:, None] - centres[None], axis=2).min(axis=1)
        centres = np.vstack([centres, rows[far.argmax()]])
    for _ in range(100):
        nearest = np.linalg.norm(rows[:, None] - centres[None], axis=2).argmin(axis=1)
        centres = np.stack([rows[nearest == i].mean(axis=0) for i in range(CLUSTERS)])
    return centres, nearest


def plain_scores(train: dict[str, Rows], test: dict[str, Rows]) -> Rows:
    """Mean scores of everybody asked about against everybody known, all events of all people."""
    everything = np.concatenate(list(train.values()))
    mean, sd = everything.mean(axis=0), everything.std(axis=0)
    mu, beta = [], []
    for person in PEOPLE:
        z = (train[person] - mean) / sd
        centres, nearest = lloyd(z)
        for i, centre in enumerate(centres):
            sigma = np.linalg.norm(z[nearest == i] - centre, axis=1).mean()
            mu.append(centre)
            beta.append(1 / (2 * (sigma + 1e-5) ** 2))

    def activations(rows: Rows) -> Rows:
        z = (rows - mean) / sd
        return np.array(
            [[np.exp(-b * ((x - m) ** 2).sum()) for m, b in zip(mu, beta, strict=True)] for x in z]
        )

    truth = np.repeat(np.eye(len(PEOPLE)), [len(train[p]) for p in PEOPLE], axis=0)
    weights = np.linalg.pinv(activations(everything)) @ truth
    return np.array([(activations(test[p]) @ weights).mean(axis=0) for p in PEOPLE])


def events(events_of: tuple[int, ...], features: int, seed: int) -> dict[str, Rows]:
    """Events in three far clusters, almost the same for everybody; one cluster of the first person
    has one event alone, whose sigma is 0.
    """
    rng = np.random.default_rng(seed)
    places = 100.0 * np.random.default_rng(features).normal(size=(CLUSTERS, features))
    rows = {}
    for i, (person, count) in enumerate(zip(PEOPLE, events_of, strict=True)):
        which = np.arange(count) % CLUSTERS
        if i == 0:
            which = np.where(np.arange(count) < count - 1, which % 2, 2)
        own = np.random.default_rng(100 * features + i).normal(size=(CLUSTERS, features))
        rows[person] = places[which] + own[which] + rng.normal(size=(count, features))
    return rows


def as_table(rows: dict[str, Rows], prefix: str) -> FeatureTable:
    people = [p for p, values in rows.items() for _ in values]
    n = len(people)
    values = np.concatenate(list(rows.values()))
    # Ours takes features in the order of their names.
    columns = tuple(f"{prefix}{i}" for i in range(values.shape[1]))
    return FeatureTable(values, columns, Keys(people, ["s"] * n, ["1"] * n, [""] * n, range(n)))


TRAIN, TEST = (20, 700, 90, 1300), (30, 1100, 60, 40)


@pytest.mark.parametrize(("fixations", "saccades"), [(0.5, 0.5), (0.4, 0.6)])
def test_the_published_network_is_the_plain_one_of_the_text(
    fixations: float, saccades: float
) -> None:
    sides = [
        {kind: events(counts, width, seed + width) for kind, width in KINDS.items()}
        for counts, seed in ((TRAIN, 1), (TEST, 2))
    ]
    wanted = sum(
        weight * plain_scores(sides[0][kind], sides[1][kind])
        for kind, weight in zip(KINDS, (fixations, saccades), strict=True)
    )
    gallery, probe = (
        RecordingSet(None, {kind: as_table(rows, kind[0]) for kind, rows in side.items()})
        for side in sides
    )
    text = f"rbfn:prototypes={CLUSTERS},weights={fixations}/{saccades},reading=published"
    found = attack(text).identify(gallery, probe, seed=3)
    assert found.known == found.probes == PEOPLE
    np.testing.assert_allclose(found.values, wanted, atol=1e-6)
    # Ours draws events and balances people: the comparison above must be able to fail.
    ours = attack(text.replace("published", "corrected")).identify(gallery, probe, seed=3)
    assert np.abs(ours.values - wanted).max() > 0.05


KINDS = {"fixation": 4, "saccade": 6}


def test_the_published_reading_says_what_it_sets_and_nothing_else() -> None:
    network = RBFN(reading="published", weights="0.4/0.6")
    assert (network.train_events, network.test_events) == (0, 0)
    assert (network.balance, network.solver) == (False, "pinv")
    assert str(network) == "rbfn:weights=0.4/0.6,reading=published"
    assert attack(str(network)) == network
    assert attack("rbfn:reading=published,balance=False,train_events=0") == RBFN(
        reading="published"
    )
    assert str(RBFN()) == "rbfn"


@pytest.mark.parametrize("text", ["train_events=7", "test_events=9", "solver=reduced"])
def test_what_contradicts_the_published_reading_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=r"reading is 'published'.*Leave it out"):
        attack(f"rbfn:reading=published,{text}")
    with pytest.raises(ParameterError, match="Did you mean 'published'"):
        attack("rbfn:reading=publishd")
