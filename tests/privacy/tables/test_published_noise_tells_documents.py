"""What the published scale of noise tells: the document, however little epsilon is."""

from __future__ import annotations

import numpy as np
import pytest

import gazeveil
from gazeveil.arrays import Floats
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.features.table import FeatureTable

PEOPLE, DOCUMENTS, SECONDS, RATE_HZ = 8, 3, 120.0, 30.0


@pytest.fixture(scope="module")
def windows() -> FeatureTable:
    """Window features of simulated readers of three documents."""
    cohort = gazeveil.simulate(
        PEOPLE, DOCUMENTS, SECONDS, RATE_HZ, task="reading", alike=0.6, seed=21
    )
    return RecordingSet(cohort.load(), None, FeaturePipeline(window_s=10.0)).table("window")


def documents_named(released: FeatureTable, values: Floats) -> float:
    """Share of the recordings whose document has the nearest mean of log |value| among the other
    people's: a reader of scales, and of nothing else.
    """
    loud = np.log(np.abs(np.nan_to_num(values)) + 1e-9)
    person, document = released.keys.person, released.keys.stimulus
    scales = {
        (p, d): loud[(person == p) & (document == d)].mean(axis=0)
        for p in np.unique(person)
        for d in np.unique(document)
    }
    right = []
    for (p, d), own in scales.items():
        others = {
            e: np.mean([s for (q, f), s in scales.items() if q != p and f == e], axis=0)
            for e in np.unique(document)
        }
        right.append(d == min(others, key=lambda e: float(np.linalg.norm(own - others[e]))))
    return float(np.mean(right))


def released_by(reading: str, windows: FeatureTable) -> FeatureTable:
    mechanism = gazeveil.mechanism("lpa", epsilon="1/100", reading=reading)
    return mechanism.release(windows, seed=5).data


def test_the_published_scale_names_the_document_where_noise_hides_everything_else(
    windows: FeatureTable,
) -> None:
    released = released_by("published", windows)
    noise = np.nanstd(released.values, axis=0) / np.maximum(np.nanstd(windows.values, axis=0), 1e-9)
    assert np.median(noise) > 1e3
    assert documents_named(released, released.values) > 0.9


def test_the_corrected_scale_is_public_and_names_no_document(windows: FeatureTable) -> None:
    released = released_by("corrected", windows)
    assert documents_named(released, released.values) < 17 / 24
