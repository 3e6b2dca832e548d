"""Networks to keep: the figures are those of training in place, people of the test are named where
they were trained on, and what does not fit is one sentence.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, simulate
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.models.headset.dgaze import dgaze_plan
from gazeveil.models.headset.ehtask import ehtask_plan
from gazeveil.models.headset.weights import load_dgaze
from gazeveil.models.marks import RecordingMarks
from gazeveil.models.resumable import TrainingRun
from gazeveil.papers import protocols
from gazeveil.utility.classification.activity import Activity
from gazeveil.utility.prediction.task import Prediction
from gazeveil.utility.registry import utility
from gazeveil.utility.trained_networks import (
    ActivityRows,
    held_out_figure,
    train_predictor,
    train_recogniser,
)
from gazeveil.utility.trained_weights import TRAINED_ON
from tests.support import paper_files
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")

TASKS = ("free-viewing", "tracking")


@pytest.fixture(scope="module")
def raw() -> RecordingSet:
    """Four people at two activities."""
    made = [r for task in TASKS for r in simulate(4, 1, 6.0, 50.0, task=task, seed=3)]
    return RecordingSet(Cohort(made), None, FeaturePipeline(window_s=2.0, step_s=2.0))


@pytest.fixture(scope="module")
def predictor(raw: RecordingSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights that learnt from the people whom `prediction` learns from with seed 5."""
    folder = tmp_path_factory.mktemp("dgaze")
    task = Prediction(model="dgaze", steps=4)
    learners, _ = task.split(raw, raw, raw, 5)
    run = TrainingRun(dgaze_plan("corrected", 4, 5, folder / "checkpoint.pt"))
    train_predictor(raw, task, learners, run)[0].save(folder / "weights.npz")
    return folder / "weights.npz"


@pytest.fixture(scope="module")
def recogniser(raw: RecordingSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights that learnt from the people whom `activity` learns from with seed 5."""
    folder = tmp_path_factory.mktemp("ehtask")
    task = Activity(classifier="ehtask", steps=3)
    tested = task.measure(raw, raw, raw, 5)[0].names
    rows = ActivityRows.of(raw, task, tuple(p for p in raw.persons if p not in tested))
    run = TrainingRun(ehtask_plan("corrected", 3, 5, folder / "checkpoint.pt"))
    train_recogniser(raw, task, rows, run)[0].save(folder / "weights.npz")
    return folder / "weights.npz"


def test_weights_predict_as_the_network_that_is_trained_in_place(
    raw: RecordingSet, predictor: Path
) -> None:
    here = utility("prediction:model=dgaze,steps=4").measure(raw, raw, raw, 5)
    asked = utility(f"prediction:model=dgaze,weights={predictor}")
    kept = asked.measure(raw, raw, raw, 5)
    assert [r.metric for r in kept] == [r.metric for r in here]
    for ours, theirs in zip(kept, here, strict=True):
        np.testing.assert_array_equal(ours.parts, theirs.parts)
    assert "not here; corrected" in kept[0].note
    assert "2 people who were trained on by these weights are left out" in kept[0].note
    # Where nobody else is at hand they are tested, and it is said, also beside a release.
    noise = gazeveil.mechanism("gaussian:sigma_deg=1,reading=published")
    alike = raw.select(people=tuple(p for p in raw.persons if p not in kept[0].names))
    assert alike.cohort is not None
    release = RecordingSet(noise.release(alike.cohort, seed=1).data)
    assert f"2 of 2 people tested {TRAINED_ON}" in asked.measure(alike, alike, release, 0)[0].note
    other = Cohort(list(simulate(1, 1, 6.0, 50.0, seed=8)))
    new = RecordingSet(other)
    assert "as far as its marks tell" in asked.measure(new, new, new, 0)[0].note


def test_a_study_says_that_people_were_trained_on(
    raw: RecordingSet, predictor: Path, tmp_path: Path
) -> None:
    assert raw.cohort is not None
    # Marks of everybody, because who is tested differs from draw to draw.
    everybody = RecordingMarks.of(raw.cohort, "salt")
    replace(load_dgaze(predictor), marks=everybody).save(tmp_path / "weights.npz")
    asked = f"prediction:model=dgaze,weights={tmp_path / 'weights.npz'}"
    with pytest.warns(UserWarning, match=f"people tested {TRAINED_ON}"):
        results = gazeveil.evaluate(
            raw.cohort, attacks="none", utilities=[asked], repetitions=1, seed=0
        )
    notes = results.study["notes"]
    assert isinstance(notes, list)
    assert any(asked in str(n) and TRAINED_ON in str(n) for n in notes)


def test_weights_look_at_saliency_maps_and_keep_the_published_split(tmp_path: Path) -> None:
    paper_files.dgaze(tmp_path, rows=12)
    rows = gazeveil.read(tmp_path / "dgaze", format="dgaze", rows_as_people=True, with_target=True)
    raw, text = RecordingSet(rows), "prediction-of-rows:past_s=0.49,model=dgaze"
    here = protocols.utility(f"{text},steps=2").measure(raw, raw, raw, 5)
    task = protocols.utility(f"{text},steps=2")
    assert isinstance(task, Prediction)
    run = TrainingRun(dgaze_plan("corrected", 2, 5, tmp_path / "checkpoint.pt"))
    model, _ = train_predictor(raw, task, task.split(raw, raw, raw, 5)[0], run)
    assert model.given.map_size == 1152
    model.save(tmp_path / "weights.npz")
    kept = protocols.utility(f"{text},weights={tmp_path / 'weights.npz'}").measure(raw, raw, raw, 5)
    for ours, theirs in zip(kept, here, strict=True):
        np.testing.assert_array_equal(ours.parts, theirs.parts)
    bare = RecordingSet(Cohort([r.with_(metadata={}) for r in rows]))
    asked = protocols.utility(f"{text},weights={tmp_path / 'weights.npz'}")
    with pytest.raises(DataError, match="saliency maps of 1152 numbers"):
        asked.measure(bare, bare, bare, 5)


def test_weights_recognise_as_the_network_that_is_trained_in_place(
    raw: RecordingSet, recogniser: Path
) -> None:
    here = utility("activity:classifier=ehtask,steps=3").measure(raw, raw, raw, 5)
    asked = utility(f"activity:classifier=ehtask,weights={recogniser}")
    kept = asked.measure(raw, raw, raw, 5)
    for ours, theirs in zip(kept, here, strict=True):
        np.testing.assert_array_equal(ours.parts, theirs.parts)
        assert ours.names == theirs.names
    assert "nobody trained on" not in kept[0].note
    assert "3 people who were trained on by these weights are left out" in kept[0].note
    # Windows are those of the weights, whatever the study's are; one person is enough.
    assert raw.cohort is not None
    trained = next(p for p in raw.persons if p not in here[0].names)
    one = Cohort([r.with_(person="new name") for r in raw.cohort if r.person == trained])
    alone = RecordingSet(one, None, FeaturePipeline(window_s=5.0, step_s=2.0))
    found = asked.measure(alone, alone, alone, 0)[0]
    assert f"1 of 1 people tested {TRAINED_ON}" in found.note
    assert "windows of 2 s" in found.note


def test_what_the_weights_do_not_know_is_one_sentence(
    raw: RecordingSet, predictor: Path, recogniser: Path
) -> None:
    told = "prediction:model=dgaze"
    for extra in ("horizon_s=0.2", "past_s=0.4", "head=none", "reading=published"):
        asked = utility(f"{told},{extra},weights={predictor}")
        with pytest.raises(ParameterError, match=f"trained with {extra.partition('=')[0]}="):
            asked.measure(raw, raw, raw, 0)
    assert raw.cohort is not None
    fast = RecordingSet(Cohort([r.with_(rate_hz=250.0) for r in raw.cohort]), None, raw.pipeline)
    for asked in (
        utility(f"{told},weights={predictor}"),
        utility(f"activity:classifier=ehtask,weights={recogniser}"),
    ):
        with pytest.raises(DataError, match=r"recordings of 50 Hz, and .* has 250 Hz"):
            asked.measure(fast, fast, fast, 0)
    others = [r.with_(task=f"t{i % 2}") for i, r in enumerate(raw.cohort)]
    strange = RecordingSet(Cohort(others), None, raw.pipeline)
    with pytest.raises(DataError, match="These weights name 'free-viewing', 'tracking'"):
        utility(f"activity:classifier=ehtask,weights={recogniser}").measure(*[strange] * 3, 0)


@pytest.mark.parametrize(
    "text",
    ["prediction:weights=w.npz", "activity:weights=w.npz", "prediction:model=kalman,weights=w.npz"],
)
def test_only_networks_take_weights(text: str) -> None:
    with pytest.raises(ParameterError, match="'weights' parameter"):
        utility(text)


def test_activities_to_learn_are_asked_for_before_training(raw: RecordingSet) -> None:
    task = Activity(classifier="ehtask")
    assert raw.cohort is not None
    alike = RecordingSet(Cohort([r.with_(task="x") for r in raw.cohort][:4]), None, raw.pipeline)
    with pytest.raises(DataError, match="only 'x'"):
        ActivityRows.of(alike, task, alike.persons)
    short = RecordingSet(raw.cohort, None, replace(raw.pipeline, window_s=60.0))
    with pytest.raises(DataError, match="no window at all"):
        ActivityRows.of(short, task, short.persons)


def test_figures_have_an_interval_only_where_people_differ() -> None:
    floor = held_out_figure("hold", [2.0, 3.0, 4.0], [1.0, 1.5, 2.5])
    assert (floor.value, floor.people) == (3.0, 3)
    # Student's t of two degrees of freedom is 4.303: half of the interval is 4.303 / sqrt(3).
    assert floor.high == pytest.approx(3.0 + 4.3027 / np.sqrt(3), abs=1e-3)
    assert floor.network_better_by == pytest.approx(4 / 3)
    assert held_out_figure("hold", [2.0, 3.0]).low is None
    assert held_out_figure("hold", [2.0, 2.0, 2.0]).low is None
    assert held_out_figure("forest", [0.2, 0.9, 0.9], higher=True).high == 1.0
    assert held_out_figure("hold", [np.nan]).value is None
