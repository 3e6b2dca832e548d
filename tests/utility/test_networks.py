"""The networks as analysts: they see the head, they beat what cannot, and nobody is trained on and
tested.
"""

from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, simulate
from gazeveil.errors import ParameterError
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.papers import protocols
from gazeveil.utility.base import UtilityResult
from gazeveil.utility.classify import windows_of
from gazeveil.utility.moments import LAGS
from gazeveil.utility.prediction import RATIOS, best_kalman, kalman_weights, line_weights
from gazeveil.utility.registry import utility
from tests.support import paper_files
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")


def led_by_the_head(person: str, seed: int, seconds: float = 12.0) -> Recording:
    """Gaze that jumps to where the head pointed 120 ms before."""
    rng = np.random.default_rng(seed)
    n = round(seconds * 50)
    place = np.repeat(rng.uniform(-8, 8, (n // 15 + 2, 2)), 15, axis=0)[: n + 6]
    head = np.column_stack((place[6:] + np.array([180.0, 90.0]), np.zeros(n)))
    gaze = place[:-6] + np.array([180.0, 90.0])
    t = np.arange(n) * 20_000_000
    return Recording(person, "s", t, gaze[:, 0], gaze[:, 1], rate_hz=50.0, head_deg=head)


def figures(results: tuple[UtilityResult, ...]) -> dict[str, float]:
    return {r.metric: r.value for r in results}


def test_the_predictor_sees_the_head_also_beside_a_release_that_has_none() -> None:
    raw = RecordingSet(Cohort([led_by_the_head(p, i) for i, p in enumerate("abcd")]))
    assert raw.cohort is not None
    noise = gazeveil.mechanism("gaussian:sigma_deg=0.5,reading=published")
    release = RecordingSet(noise.release(raw.cohort, seed=1).data)
    assert next(iter(release.cohort or ())).head_deg is None
    seeing, blind = (
        figures(utility(f"prediction:model=dgaze,steps=35,head={head}").measure(*sets, 0))
        for head, sets in (("recorded", (raw, raw, release)), ("none", (raw, raw, release)))
    )
    assert seeing["error_deg"] < 0.85 * blind["error_deg"]
    assert seeing["error_deg"] < 0.85 * seeing["hold_error_deg"]
    floors = ("hold_error_deg", "linear_error_deg", "kalman_error_deg")
    assert [seeing[f] for f in floors] == [blind[f] for f in floors]


def test_the_kalman_filter_is_exact_on_a_line_and_averages_noise() -> None:
    past = -np.arange(LAGS) * 0.01
    for ratio in RATIOS[3:]:
        weights = kalman_weights(ratio, 0.1, 0.5)
        assert weights.sum() == pytest.approx(1.0)
        assert 20.0 * past @ weights == pytest.approx(2.0, abs=0.05)
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 5, (4000, LAGS, 2))
    chosen = best_kalman([noise], [np.zeros((4000, 2))], 0.1, 0.5)
    spread = np.linalg.norm(np.einsum("nlk,l->nk", noise, chosen), axis=1).mean()
    line = np.linalg.norm(np.einsum("nlk,l->nk", noise, line_weights(0.1, 0.5)), axis=1).mean()
    assert spread < 0.5 * line


@pytest.fixture(scope="module")
def nodding() -> RecordingSet:
    """Two activities that only the head tells apart: gaze in the world is the same."""
    made = []
    for i, person in enumerate("abcdef"):
        for j, task in enumerate(("nods", "shakes")):
            r = next(iter(simulate(1, 1, 12.0, 50.0, seed=i)))
            swing = 8.0 * np.sin(np.arange(len(r)) / 10 + i)
            head = np.full((len(r), 3), [180.0, 90.0, 0.0])
            head[:, 1 - j] += swing
            made.append(
                r.with_(person=person, task=task, head_deg=head, eye_in_head_deg=None, truth=None)
            )
    return RecordingSet(Cohort(made), None, FeaturePipeline(window_s=4.0, step_s=2.0))


def test_the_recogniser_sees_the_head_and_without_it_is_at_chance(nodding: RecordingSet) -> None:
    asked = "activity:classifier=ehtask,steps=25,test_share=0.5,head="
    seeing = figures(utility(asked + "recorded").measure(nodding, nodding, nodding, 0))
    blind = figures(utility(asked + "none").measure(nodding, nodding, nodding, 0))
    assert seeing["accuracy"] > 0.9
    assert blind["accuracy"] == pytest.approx(0.5, abs=0.15)


def test_the_network_is_asked_about_the_windows_of_the_forest(nodding: RecordingSet) -> None:
    for recording in nodding.cohort or ():
        rows = nodding.windows.recordings()[recording.key]
        made = windows_of(recording, recording, nodding.pipeline, "corrected", "recorded")
        assert made.shape == (len(rows), 6, 100)
    network = utility("activity:classifier=ehtask,steps=1")
    assert network.needs == ("samples",)
    assert utility("activity").needs == ("window",)
    assert not network.can(RecordingSet(None, {"window": nodding.windows}))


def test_a_window_holds_what_was_released_and_loses_what_was_lost() -> None:
    t = np.arange(100) * 40_000_000
    x = np.where(np.arange(100) < 50, 350.0, 10.0)
    head = np.tile([0.0, 90.0, 0.0], (100, 1))
    r = Recording("a", "s", t, x, np.full(100, 90.0), rate_hz=25.0, head_deg=head)
    valid = np.ones(100, dtype=bool)
    valid[60:80] = False
    lossy = r.with_(valid=valid)
    pipeline = FeaturePipeline(window_s=4.0, step_s=4.0)
    window = windows_of(r, lossy, pipeline, "corrected", "recorded")[0]
    np.testing.assert_allclose(window[0, [0, 49, 50, 99]], [-10, -10, 10, 10], atol=1e-4)
    # The mean of a window that spans longitude 0 is at 0, not at 180.
    assert np.nanmax(np.abs(window[4])) < 25
    assert np.isnan(window[0, 63:80]).all()
    assert not np.isnan(window[0, 80:]).any()
    assert not np.isnan(window[2]).any()
    published = windows_of(r, r, pipeline, "published", "recorded")[0]
    np.testing.assert_allclose(published[4, [0, 99]], [170.0, -170.0], atol=1e-4)


def test_both_run_on_the_public_arrays(tmp_path: Path) -> None:
    paper_files.dgaze(tmp_path, rows=12)
    rows = gazeveil.read(tmp_path / "dgaze", format="dgaze", rows_as_people=True, with_target=True)
    raw = RecordingSet(rows)
    assert np.shape(next(iter(rows)).metadata["saliency"]) == (1152,)
    for reading in ("published", "corrected"):
        asked = f"prediction-of-rows:past_s=0.49,model=dgaze,steps=2,reading={reading}"
        got = protocols.utility(asked).measure(raw, raw, raw, 0)
        assert np.isfinite([r.value for r in got]).all()
        assert len(got[0].names) == 12
    paper_files.ehtask(tmp_path, rows=8)
    windows = RecordingSet(
        gazeveil.read(tmp_path / "ehtask", format="ehtask", rows_as_people=True),
        None,
        FeaturePipeline(window_s=10.0, step_s=5.0),
    )
    for reading in ("published", "corrected"):
        asked = f"activity-of-rows:classifier=ehtask,steps=2,reading={reading}"
        got = protocols.utility(asked).measure(windows, windows, windows, 0)
        assert 0 <= got[0].value <= 1
        assert len(got[0].names) == 8


@pytest.mark.parametrize(
    "text",
    [
        "prediction:reading=published",
        "prediction:model=dgaze,reading=improved",
        "prediction:model=dgaze,head=raw",
        "prediction:model=dgaze,steps=0",
        "activity:reading=published",
        "activity:classifier=ehtask,head=raw",
        "task:classifier=ehtask",
    ],
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        utility(text)
