"""The measure of who was trained on: it finds networks that learnt their rows by heart, and stays
at chance for networks that were never trained.
"""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np
import pytest

from tests.support.places import ROOT
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

pytest.importorskip("torch", reason="the extra 'deep' is not installed")

#: People, rows of each, and pairs of networks.
PEOPLE, ROWS, PAIRS = 16, 6, 3


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        return importlib.import_module("weights_membership")


def answers_of(measure: ModuleType, steps: int) -> tuple[object, np.ndarray]:
    """What networks answer that were trained for so many steps, and who was trained on.

    Histories have no relation to where gaze went: what is learnt of them is learnt by heart.
    """
    from gazeveil.models.headset.dgaze import dgaze_plan, gaze_predictor, train_dgaze

    rng = np.random.default_rng(5)
    owner = np.repeat(np.arange(PEOPLE), ROWS)
    history, target = rng.normal(size=(len(owner), 2, 8)), rng.normal(size=(len(owner), 2))
    members = measure.halves(PEOPLE, PAIRS, seed=2)
    values = []
    for number, trained in enumerate(members):
        if steps:
            mine = trained[owner]
            plan = dgaze_plan("corrected", steps, number)
            network, _ = train_dgaze(history[mine], target[mine], plan, batch=32)
        else:
            # As published it begins at random: ours begins at the same answer for everybody.
            scale = np.ones(2, dtype=np.float32)
            network = gaze_predictor(scale, history.shape[2], 0, "published", number)
        values.append(-np.linalg.norm(network.predict(history) - target, axis=1))
    return measure.Answers(np.array(values), owner), members


@pytest.fixture(scope="module")
def by_heart(measure: ModuleType) -> tuple[object, np.ndarray]:
    return answers_of(measure, 60)


@pytest.fixture(scope="module")
def untrained(measure: ModuleType) -> tuple[object, np.ndarray]:
    return answers_of(measure, 0)


@pytest.mark.parametrize("attack", ["loss", "calibrated", "ratio"])
def test_networks_that_learnt_by_heart_are_found_and_untrained_ones_are_not(
    measure: ModuleType,
    by_heart: tuple[object, np.ndarray],
    untrained: tuple[object, np.ndarray],
    attack: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measure, "BOOTSTRAPS", 50)
    found = measure.judged(*by_heart, measure.ATTACKERS[attack], 1)
    assert found["auc"][1] > 0.8
    assert found["tpr_at_fpr_0.05"][0] > 0.5
    assert found["met"]
    nothing = measure.judged(*untrained, measure.ATTACKERS[attack], 1)
    low, high = nothing["control_auc"][1:]
    assert low <= nothing["auc"][0] <= high
    assert nothing["met"]


def test_an_attack_that_is_told_the_truth_is_caught_by_the_control(measure: ModuleType) -> None:
    rng = np.random.default_rng(0)
    members = measure.halves(PEOPLE, PAIRS, seed=0)
    given = measure.Answers(rng.normal(size=members.shape), np.arange(PEOPLE))
    told = measure.judged(given, members, lambda answers, who: who + 0.1 * answers.values, 1)
    assert not told["met"]
