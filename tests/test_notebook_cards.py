"""What notebooks show: well-formed, escaped, small, and true to the value."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.evaluation.results import frame_of
from gazeveil.gaze.cards import bar_picture
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.recording import Recording

EVIL = "<script>alert(1)</script>&\"'"


def parsed(value: Any) -> tuple[str, ET.Element]:
    text = value._repr_html_()
    assert len(text) < 40_000
    return text, ET.fromstring(text)  # well-formed, or this raises


def recording(person: str = "p", **more: Any) -> Recording:
    n = 2000
    x = 180 + np.linspace(0, 5, n)
    x[100:200] = np.nan
    return Recording(person, EVIL, np.arange(n) * 10**7, x, np.full(n, 90.0), **more)


def test_a_recording_shows_a_line_with_gaps_and_its_numbers() -> None:
    text, root = parsed(recording(pupil=np.ones(2000)))
    assert "<script" not in text
    assert "2,000, 95.0 % valid" in text
    assert "100 Hz" in text
    assert "pupil" in text
    lines = [p.attrib["d"] for p in root.iter("path")]
    assert len(lines) == 2
    assert lines[0].count("M") == 2  # one gap


@pytest.mark.parametrize("valid", [[], [False], [True], [False, False, True]])
def test_recordings_with_nothing_to_draw_are_shown(valid: list[bool]) -> None:
    n = len(valid)
    some = np.full(n, 1.0)
    parsed(Recording("p", "s", np.arange(n) * 10**7, some, some, np.array(valid, dtype=bool)))


def test_a_cohort_shows_who_saw_what_without_reading_a_file() -> None:
    def load() -> Recording:
        raise AssertionError("a file was read")

    handles = [Handle(EVIL, "a", load), Handle(EVIL, "b", load), Handle("q", "b", load)]
    cohort = gazeveil.Cohort(handles, {"q": {"age": 30}}, name=EVIL)
    text, root = parsed(cohort)
    assert "<script" not in text
    assert next(root.iter("path")).attrib["d"].count("z") == 3
    assert "age" in text
    parsed(gazeveil.Cohort([]))


def test_a_large_cohort_stays_small() -> None:
    handles = [Handle(f"p{i}", f"s{j}", recording) for i in range(200) for j in range(80)]
    cohort = gazeveil.Cohort(handles)
    text, _ = parsed_large(cohort)
    assert "200" in text


def parsed_large(value: Any) -> tuple[str, ET.Element]:
    text = value._repr_html_()
    assert len(text) < 120_000
    return text, ET.fromstring(text)


def test_a_proved_epsilon_is_drawn_as_belief_and_an_unproved_one_is_not() -> None:
    table = gazeveil.event_features(gazeveil.simulate(2, 1, 5.0, 120.0, seed=1), kind="fixation")
    guarantee = gazeveil.protect(table, "lpa:epsilon=1,length=20").guarantee
    assert guarantee.epsilon == Fraction(1)
    text, _ = parsed(guarantee)
    assert "recording-feature: at most 73.1 %" in text
    assert "person: at most >99.9 %".replace(">", "&gt;") in text
    assert "Guarantee (proved)" in text
    seeded = gazeveil.protect(table, "lpa:epsilon=1", seed=1).guarantee
    text, _ = parsed(seeded)
    assert "at most 73" not in text
    assert "epsilon = 1<" not in text
    assert f"Guarantee ({seeded.status})" in text


def test_k_is_one_among_so_many() -> None:
    people = {name: {"age": 20, "gender": "f"} for name in "abcd"}
    text, root = parsed(gazeveil.protect(people, "demographics:k=4").guarantee)
    assert "One among 4" in text
    assert len(list(root.iter("circle"))) == 4


def test_results_show_the_strongest_attacker_of_each_release() -> None:
    common = {"cohort": EVIL, "metric": "identification_rate", "n": 10, "chance": 0.1}
    rows = [
        {**common, "mechanism": "none", "scenario": "raw/raw", "attack": "lda", "value": 0.9},
        {**common, "mechanism": EVIL, "scenario": "raw/private", "attack": EVIL, "value": 0.3},
    ]
    results = gazeveil.Results(frame_of(rows), study={"name": EVIL})
    text, root = parsed(results)
    assert "<script" not in text
    bars = [float(r.attrib["width"]) for r in root.iter("rect")]
    assert max(bars) / min(bars) == pytest.approx(3, rel=0.01)
    parsed(gazeveil.Results(frame_of([])))


def test_bars_stay_inside_and_intervals_that_are_not_known_are_left_out() -> None:
    text = bar_picture(["a", "b"], [1.7, -1.0], "t", [(float("nan"), 1.0), (0.0, 2.0)], 0.5)
    widths = [float(r.attrib["width"]) for r in ET.fromstring(text).iter("rect")]
    assert widths[1] == 0
    assert widths[0] <= 360
    assert text.count('stroke="currentColor"/>') == 1
