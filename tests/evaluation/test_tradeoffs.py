"""Which releases another one beats, with and without the luck of people and stimuli, and the
picture of all utilities.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.front_pictures import Dominated, dominated, fronts

from gazeveil.evaluation.report.charts import drawing
from gazeveil.evaluation.report.findings import Findings
from gazeveil.evaluation.results import Results, frame_of, outcomes_of

PEOPLE, STIMULI = 20, 8


def found(
    releases: dict[str, tuple[float, float, float]], metric: str = "kl", better: str = "lower"
) -> Findings:
    """Releases with a rate of recognition, a figure of a utility, and how much its parts differ."""
    rows, outcomes = [], []
    for i, (parameters, (rate, value, spread)) in enumerate(releases.items()):
        cell = {
            "mechanism": "gaussian",
            "reading": "corrected",
            "parameters": parameters,
            "events": "redetected",
        }
        common = {**cell, "cohort": "made", "repetitions": 1, "seed": 1}
        attack = {"scenario": "private/private", "attack": "steps", "metric": "identification_rate"}
        use = {"scenario": "raw/private", "utility": "saliency", "metric": metric}
        rows += [
            {
                **common,
                **attack,
                "value": rate,
                "low": 0.0,
                "high": 1.0,
                "n": PEOPLE,
                "chance": 0.1,
            },
            {**common, **use, "value": value, "low": value, "high": value, "better": better},
        ]
        parts = value + spread * np.random.default_rng(i).normal(size=STIMULI)
        outcomes += [
            {
                **cell,
                **attack,
                "repetition": 0,
                "part": f"p{k:02}",
                "value": float(k < rate * PEOPLE),
            }
            for k in range(PEOPLE)
        ]
        outcomes += [
            {**cell, **use, "repetition": 0, "part": f"s{k}", "value": float(v)}
            for k, v in enumerate(parts)
        ]
    return Findings(Results(frame_of(rows), outcomes_of(outcomes)))


def by_name(beaten: tuple[Dominated, ...]) -> dict[str, tuple[str, bool]]:
    return {d.release.key[2]: (d.by.key[2], d.clearly) for d in beaten}


def test_a_release_is_beaten_only_where_another_is_no_worse_in_both() -> None:
    findings = found(
        {
            "sigma_deg=1": (0.9, 0.1, 0.0),
            "sigma_deg=2": (0.5, 0.2, 0.0),
            "sigma_deg=3": (0.8, 0.3, 0.0),
            "sigma_deg=4": (0.1, 0.9, 0.0),
        }
    )
    assert by_name(dominated(findings, "saliency", "kl")) == {"sigma_deg=3": ("sigma_deg=2", True)}


def test_where_higher_is_better_the_other_end_is_the_front() -> None:
    findings = found(
        {"sigma_deg=1": (0.9, 0.1, 0.0), "sigma_deg=2": (0.5, 0.2, 0.0)}, "cc", "higher"
    )
    assert by_name(dominated(findings, "saliency", "cc")) == {"sigma_deg=1": ("sigma_deg=2", True)}


def test_equal_releases_beat_nobody() -> None:
    findings = found({"sigma_deg=1": (0.5, 0.1, 0.0), "sigma_deg=2": (0.5, 0.1, 0.0)})
    assert dominated(findings, "saliency", "kl") == ()


@pytest.mark.parametrize(
    ("rates", "spread", "clearly"),
    [((0.9, 0.2), 0.001, True), ((0.9, 0.2), 1.0, False), ((0.5, 0.45), 0.001, False)],
    ids=["far apart", "stimuli differ", "one person more"],
)
def test_what_may_be_luck_is_not_called_clear(
    rates: tuple[float, float], spread: float, clearly: bool
) -> None:
    findings = found(
        {"sigma_deg=1": (rates[0], 0.3, spread), "sigma_deg=2": (rates[1], 0.1, spread)}
    )
    assert by_name(dominated(findings, "saliency", "kl")) == {
        "sigma_deg=1": ("sigma_deg=2", clearly)
    }


def test_all_utilities_are_drawn_in_one_picture(tmp_path: Path) -> None:
    findings = found({"sigma_deg=1": (0.9, 0.1, 0.0), "sigma_deg=2": (0.5, 0.2, 0.0)})
    with drawing():
        picture = fronts(findings, [("saliency", "kl")], tmp_path, "front")
    assert (tmp_path / "front.png").stat().st_size > 5000
    assert "Gaussian noise (1 deg)" in picture.svg
    assert "against: saliency map" in picture.svg
