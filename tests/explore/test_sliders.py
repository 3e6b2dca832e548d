"""Mechanisms whose parameter is moved."""

from __future__ import annotations

import pytest

from gazeveil.errors import GazeveilError
from gazeveil.explore.board import KINDS, parse_slider, sliders
from gazeveil.privacy.registry import mechanism


@pytest.mark.parametrize("rate_hz", [30.0, 1000.0])
def test_every_built_in_value_makes_a_mechanism_that_releases_recordings(rate_hz: float) -> None:
    made = sliders(rate_hz)
    assert len(made) > 5
    for slider in made:
        assert len(slider.texts) == len(slider.values) > 1
        for text, value in zip(slider.texts, slider.values, strict=True):
            assert mechanism(text).kind in KINDS
            assert f"{slider.parameter}={value}" in text


def test_windows_last_half_a_second_at_any_rate() -> None:
    texts = [t for rate_hz in (60.0, 1000.0) for s in sliders(rate_hz) for t in s.texts]
    assert "kaleido:epsilon=1,w=30,r_deg=2" in texts
    assert "kaleido:epsilon=1,w=500,r_deg=2" in texts


def test_a_text_without_choices_has_one_value() -> None:
    assert parse_slider("gaussian:sigma_deg=3").texts == ("gaussian:sigma_deg=3",)
    assert parse_slider("smoothing").texts == ("smoothing",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kaleido:epsilon=1|2,w=3|4,r_deg=2", "One parameter is moved"),
        ("lpa:epsilon=1|2", "releases are recordings"),
        ("gaussian:sigma_deg=1|-1", "sigma_deg"),
        ("nosuch:a=1|2", "nosuch"),
    ],
)
def test_what_cannot_be_moved_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(GazeveilError, match=sentence):
        parse_slider(text)
