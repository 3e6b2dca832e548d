"""`clock-render` at its edges: what is not gaze, recordings of any length and rate, copies, bad
parameters, and the conformance kit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil import Recording, Sphere
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.privacy.synthesis.clock.render import ClockRender
from tests.support.clock_gaze import gaze, recorded
from tests.support.strategies import SCREEN

# --- bad input and sessions
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["stream", "offline"])
@pytest.mark.parametrize("n", [0, 1, 10, 24, 25, 26])
def test_recordings_of_no_sample_one_sample_and_less_than_a_slot(form: str, n: int) -> None:
    for space in (SCREEN, Sphere()):
        r = recorded(n, space).with_(rate_hz=100.0)
        out = ClockRender(10, 2, form=form).release(r, seed=1).data
        assert len(out) == n
        # as a stream the first slot shows nothing; offline a slot that is not whole is read too
        assert out.valid.sum() == (n if form == "offline" else max(n - 25, 0))
        lost = (
            ClockRender(10, 2, form=form)
            .release(r.with_(valid=np.zeros(n, dtype=np.bool_)), seed=1)
            .data
        )
        assert not lost.valid.any()
        assert np.isnan(lost.x_deg).all()


def test_times_that_go_back_are_lost_and_the_released_ones_never_do() -> None:
    t, x, y, ok = gaze(500, SCREEN, 1)
    back = t.copy()
    back[200:400] = back[0:200]
    session = ClockRender(10, 2).open(100.0, SCREEN, seed=1)
    out = session.push(back, x, y, ok)
    assert (np.diff(out[0]) > 0).all()
    # a second of the last place, then nothing until time goes on
    assert out[3][250:300].all()
    assert not out[3][350:400].any()
    assert out[3][460:].all()


def test_a_recording_of_unknown_rate_is_refused_in_words() -> None:
    with pytest.raises(GazeveilError, match="rate"):
        ClockRender(10, 2).release(
            Recording("p", "s", np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros(1))
        )


def test_a_reset_begins_a_new_slot_and_keeps_the_account_of_the_window() -> None:
    mechanism = ClockRender(10, 2, slot_s=0.1, window_s=0.2)
    session = mechanism.open(100.0, SCREEN, seed=1)
    t, x, y, ok = gaze(400, SCREEN, 1)
    shown = []
    for i in range(0, 400, 14):
        shown.append(session.push(t[i : i + 14], x[i : i + 14], y[i : i + 14], ok[i : i + 14])[3])
        session.reset()
    found = np.concatenate(shown)
    assert found.any()
    assert all(not s[:10].any() for s in shown)
    state = session._stage.slots.states  # type: ignore[attr-defined]
    assert (state[0, 4:] >= 400 - 60).all()


def test_the_offline_form_has_no_session() -> None:
    for verb in ("open", "open_many"):
        with pytest.raises(ParameterError, match="looks at whole recordings"):
            getattr(ClockRender(10, 2, form="offline"), verb)(
                *([100.0] if verb == "open" else [2, 100.0])
            )


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": 5000}, "at most 1024"),
        ({"r_deg": 0}, "r_deg"),
        ({"r_deg": 400}, "at most 360"),
        ({"slot_s": 0}, "slot_s"),
        ({"window_s": -1}, "window_s"),
        ({"fill_s": -1}, "fill_s"),
        ({"form": "offlin"}, "Did you mean 'offline'"),
        ({"pursuit": "yes"}, "True or False"),
        ({"reading": "published"}, "reading"),
    ],
)
def test_bad_parameters_are_refused_in_words(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(GazeveilError, match=words):
        ClockRender(**{"epsilon": 1, "r_deg": 2, **parameters})


def test_a_window_of_too_many_samples_is_refused_in_words() -> None:
    with pytest.raises(GazeveilError, match="samples long"):
        ClockRender(1, 2, window_s=3600).open(1000.0)
    with pytest.raises(GazeveilError, match="rate_hz"):
        ClockRender(1, 2).open(float("nan"))


@pytest.mark.parametrize(
    ("epsilon", "r", "window_s"),
    [("1/1000000", 1, 0.5), (1024, 360, 0.01), (1, "1/1024", 0.5), (1, 2, 1000)],
)
def test_the_limits_of_parameters_work(epsilon: Any, r: Any, window_s: Any) -> None:
    for space in (SCREEN, Sphere()):
        for form in ("stream", "offline"):
            out = (
                ClockRender(epsilon, r, window_s=window_s, form=form)
                .release(recorded(300, space), seed=1)
                .data
            )
            assert np.isfinite(out.x_deg[out.valid]).all()
            assert out.valid[-1]


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 1.0, 7.3, 2e6])
def test_any_rate_works(rate: float) -> None:
    t = np.arange(400, dtype=np.int64) * 1000
    for space, middle in ((SCREEN, 0.0), (Sphere(), 90.0)):
        for form in ("stream", "offline"):
            out = (
                ClockRender(10, 2, form=form)
                .release(
                    Recording(
                        "p",
                        "s",
                        t,
                        np.full(400, middle),
                        np.full(400, middle),
                        space=space,
                        rate_hz=rate,
                    ),
                    seed=1,
                )
                .data
            )
            assert np.isfinite(out.x_deg[out.valid]).all()
            assert out.valid[-1] == (form == "offline" or rate < 100)


def test_the_guarantee_says_what_it_promises() -> None:
    g = ClockRender(10, 2).open(250.0).guarantee
    assert g.status == "proved"
    assert dict(g.numbers) == {
        "epsilon": Fraction(10),
        "w_samples": Fraction(125),
        "r_deg": Fraction(2),
    }
    assert "great circle" in str(g)
    assert "in which slots nothing was seen" in str(g)
    assert ClockRender(10, 2).open(250.0, seed=1).guarantee.status == "claimed"


def test_the_offline_form_is_no_stage_of_a_chain() -> None:
    gazeveil.mechanism("chain:stages=clock-render(epsilon=10;r_deg=2)+temporal(K=3)")
    with pytest.raises(ParameterError, match="whole recordings"):
        gazeveil.mechanism(
            "chain:stages=clock-render(epsilon=10;r_deg=2;form=offline)+temporal(K=3)"
        )
