"""Stream mechanisms as pymovements transforms, and whole gazes protected."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from gazeveil import Recording
from gazeveil.errors import DataError, MissingExtraError, ParameterError
from gazeveil.io.adapters.pymovements import from_pymovements, to_pymovements
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.stream.pymovements_transforms import protect, register
from tests.support.strategies import SCREEN


@pytest.fixture
def gaze() -> object:
    pytest.importorskip("pymovements")
    rng = np.random.default_rng(0)
    r = Recording(
        "p",
        "s",
        np.arange(500) * 10**7,
        rng.normal(0, 5, 500),
        rng.normal(0, 5, 500),
        rng.random(500) > 0.1,
        SCREEN,
        100.0,
        pupil=np.ones(500),
    )
    return to_pymovements(r)


def places(gaze: object) -> np.ndarray:
    recording = from_pymovements(gaze)
    assert isinstance(recording, Recording)
    return np.stack((recording.x_deg, recording.y_deg), axis=1)[recording.valid]


def test_elementwise_mechanisms_are_transforms(gaze: object) -> None:
    before = places(gaze)
    assert register() == ("gazeveil_gaussian", "gazeveil_spatial", "gazeveil_spatial_equal_area")
    gaze.transform("gazeveil_gaussian", sigma_deg=2, seed=1)  # type: ignore[attr-defined]
    noise = places(gaze) - before
    assert noise.std() == pytest.approx(2, rel=0.1)
    gaze.transform("gazeveil_spatial", L=64, reading="published")  # type: ignore[attr-defined]
    assert len(np.unique(places(gaze)[:, 0])) < 20
    assert np.all(np.mod(places(gaze)[:, 0], 6) == 0)
    with pytest.raises(ParameterError, match="sigma_deg"):
        gaze.transform("gazeveil_gaussian", sigma_deg=-1)  # type: ignore[attr-defined]
    with pytest.raises(ParameterError, match="space"):
        gaze.transform("gazeveil_spatial", L=2, space="moon")  # type: ignore[attr-defined]


def test_two_eyes_do_not_get_two_noisy_copies() -> None:
    pm = pytest.importorskip("pymovements")
    import polars as pl

    register()
    frame = pl.DataFrame(
        {"time": [0, 1], "lx": [1.0, 1.0], "ly": [1.0, 1.0], "rx": [1.0, 1.0], "ry": [1.0, 1.0]}
    )
    both = pm.Gaze(
        frame, time_column="time", time_unit="ms", position_columns=["lx", "ly", "rx", "ry"]
    )
    with pytest.raises(DataError, match="4 components"):
        both.transform("gazeveil_gaussian", sigma_deg=1)
    both.transform("gazeveil_spatial", L=64)
    assert both.samples["position"].to_list() == [[3.0, 8 / 3, 3.0, 8 / 3]] * 2


@pytest.mark.parametrize(
    "text", ["gaussian:sigma_deg=2", "temporal:K=5", "smoothing", "gaussian-fixation:sigma_deg=2"]
)
def test_any_stream_mechanism_protects_a_gaze(gaze: object, text: str) -> None:
    out = protect(gaze, text, seed=1)
    recording = from_pymovements(gaze)
    assert isinstance(recording, Recording)
    wanted = mechanism(text if ":" in text else text + ":").release(recording, seed=1)
    np.testing.assert_array_equal(
        places(out), np.stack((wanted.data.x_deg, wanted.data.y_deg), axis=1)[wanted.data.valid]
    )
    assert out.metadata["guarantee"] == str(wanted.guarantee)
    assert "pupil" not in out.samples.columns
    assert "pupil" in protect(gaze, text, keep=("pupil",)).samples.columns


def test_what_cannot_be_protected_is_refused(gaze: object) -> None:
    with pytest.raises(ParameterError, match="mechanism on streams"):
        protect(gaze, "lpa:epsilon=1")
    with pytest.raises(ParameterError, match="pymovements Gaze"):
        protect([1, 2], "temporal:K=2")


def test_without_pymovements_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymovements", None)
    for call in (register, lambda: protect(None, "temporal:K=2")):
        with pytest.raises(MissingExtraError, match=r"gazeveil\[pymovements\]"):
            call()
