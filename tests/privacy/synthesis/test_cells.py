"""Cells that people share: groups on the VR-EyeTracking files, and cells with one contributor."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from tests.support.recordings import real

STIMULI = ("073", "074", "109")


@pytest.fixture(scope="module")
def headset() -> Cohort:
    """Twelve people who saw the same three videos."""
    cohort = gazeveil.read(real("vr_eyetracking"), format="vr-eyetracking")
    seen = Counter(key[0] for key in cohort.keys if key[1] in STIMULI)
    people = sorted(p for p, count in seen.items() if count == len(STIMULI))[:12]
    return cohort.select(people=people, stimuli=STIMULI).load()


def test_published_k_same_select_averages_the_people_of_a_headset(headset: Cohort) -> None:
    table = gazeveil.event_features(headset, kind="fixation", method="is5t")
    release = gazeveil.mechanism("k-same-select:k=4,reading=published").release(table, seed=1)
    assert release.curator_notes["fewest_sharing"] == 4
    assert not np.isin(release.data.values[:, 0], table.values[:, 0]).all()
    first = {
        (k[0], k[1]): release.data.values[i].tobytes()
        for i, k in enumerate(
            zip(release.data.keys.person, release.data.keys.stimulus, strict=True)
        )
        if release.data.keys.index[i] == 0
    }
    groups = {
        stimulus: frozenset(
            frozenset(p for (p, s), row in first.items() if s == stimulus and row == one)
            for (_, s), one in first.items()
            if s == stimulus
        )
        for stimulus in STIMULI
    }
    # S000: the same groupings are used for each stimulus of a task.
    assert len(set(groups.values())) == 1
    assert {len(g) for g in groups["073"]} == {4}


@pytest.mark.parametrize(
    "text",
    [
        "k-same-synth:k=4",
        "k-same-synth:k=4,reading=published",
        "event-synth-pd:k=4,gamma=4",
        "event-synth-pd:k=4,gamma=4,attempts=2,reading=published",
    ],
)
def test_group_mechanisms_release_the_files_of_a_headset(headset: Cohort, text: str) -> None:
    release = gazeveil.mechanism(text).release(headset, seed=1)
    assert {r.stimulus for r in release.data} == set(STIMULI)
    assert isinstance(release.data[0].space, Sphere)
    raw = {r.key: r.x_deg for r in headset}
    for r in release.data:
        assert r.valid.any()
        assert not np.array_equal(r.x_deg, raw[r.key], equal_nan=True)


@pytest.mark.parametrize("reading", ["corrected", "published"])
@pytest.mark.parametrize(
    "text", ["k-same-select:k=3", "k-same-synth:k=3", "event-synth-pd:k=3,gamma=2"]
)
def test_a_cell_with_one_contributor_is_refused_in_every_reading(
    headset: Cohort, text: str, reading: str
) -> None:
    apart = Cohort([r.with_(session=r.person) for r in headset])
    mechanism = gazeveil.mechanism(f"{text},reading={reading}")
    data = (
        gazeveil.event_features(apart, kind="fixation", method="ivt")
        if mechanism.kind == "table"
        else apart
    )
    with pytest.raises(DataError, match="Nothing was released"):
        mechanism.release(data, seed=1)


def test_the_published_defaults_are_the_letter_of_the_papers() -> None:
    synth = gazeveil.mechanism("k-same-synth:k=4,reading=published")
    assert synth.parameters()["detector"] == "is5t"
    assert gazeveil.mechanism("k-same-synth:k=4").parameters()["detector"] == "ivt"
    published = gazeveil.mechanism("event-synth-pd:k=4,gamma=2,reading=published").parameters()
    assert [published[n] for n in ("generator", "probability", "detector", "failed")] == [
        "cvae",
        "latent",
        "is5t",
        "release",
    ]
    window = gazeveil.mechanism("dpgazesynth:epsilon=3,G=30,reading=published")
    layout = window.scheme().plan(Sphere(), 100.0)
    assert float(layout.r_deg) == pytest.approx(180 / (6 * 30))
    corrected = gazeveil.mechanism("dpgazesynth:epsilon=3,G=30")
    assert float(corrected.scheme().plan(Sphere(), 100.0).r_deg) == pytest.approx(3 * 180 / 30)
