"""What notebooks show: well-formed, escaped, and true to the value."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np

import gazeveil
from gazeveil.gaze.recording import Recording

EVIL = "<script>alert(1)</script>&\"'"


def parsed(value: Any) -> str:
    text: str = value._repr_html_()
    assert len(text) < 40_000
    assert "<script" not in text
    ET.fromstring(text)  # well-formed, or this raises
    return text


def recording(person: str = "p", **more: Any) -> Recording:
    n = 2000
    x = 180 + np.linspace(0, 5, n)
    x[100:200] = np.nan
    return Recording(person, EVIL, np.arange(n) * 10**7, x, np.full(n, 90.0), **more)


def test_a_recording_shows_its_numbers() -> None:
    text = parsed(recording(pupil=np.ones(2000)))
    for words in ("2,000, 95.0% valid", "100 Hz", "19.99 s", "sphere", "pupil"):
        assert words in text
    parsed(Recording("p", "s", np.empty(0, dtype=np.int64), np.empty(0), np.empty(0)))


def test_a_proved_guarantee_shows_its_numbers_and_an_unproved_one_does_not() -> None:
    table = gazeveil.event_features(gazeveil.simulate(2, 1, 5.0, 120.0, seed=1), kind="fixation")
    text = parsed(gazeveil.protect(table, "lpa:epsilon=1,length=20").guarantee)
    assert "Guarantee (proved)" in text
    assert ">epsilon = 1<" in text
    seeded = parsed(gazeveil.protect(table, "lpa:epsilon=1", seed=1).guarantee)
    assert "Guarantee (claimed)" in seeded
    assert "epsilon = 1<" not in seeded
