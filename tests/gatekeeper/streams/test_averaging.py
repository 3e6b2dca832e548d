"""The averaging attack on every preset, from what an app sees, against the preset's own sentence.
The full figures: benchmarks/gatekeeper_averaging.py.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from gazeveil.gatekeeper import PRESETS
from gazeveil.gatekeeper.streams.averaging import averaging_words, steady_error_deg
from gazeveil.privacy import registry
from tests.support.places import ROOT

#: The device's noise is its own, so a median over places varies.
SLACK, WORST_SLACK = 0.6, 0.5


@pytest.fixture(scope="module")
def bench() -> Any:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import gatekeeper_averaging
    finally:
        sys.path.pop(0)
    return gatekeeper_averaging


TELLING = [name for name, preset in PRESETS.items() if preset.steady is not None]


@pytest.mark.heavy
@pytest.mark.parametrize("name", TELLING)
def test_no_app_finds_resting_eyes_better_than_its_preset_says_over_many_places(
    bench: Any, name: str
) -> None:
    steady = PRESETS[name].steady
    assert steady is not None
    found = bench.Attack(name).run(bench.random_places(45), days=False)
    for stated, after in zip(
        (steady.short_deg, steady.long_deg, steady.day_deg), bench.AFTER[:3], strict=True
    ):
        assert found[after] > SLACK * stated
    assert (
        bench.Attack(name).run(bench.worst_places(45), days=False)[bench.AFTER[2]]
        > WORST_SLACK * steady.worst_deg
    )


def test_every_preset_that_tells_places_says_what_averaging_gives() -> None:
    assert TELLING == ["count", "study"]
    assert "which of the device's parts of the view" in PRESETS["follow"].means
    for preset in PRESETS.values():
        if preset.steady is not None:
            assert preset.steady.words() in preset.means
            assert (
                preset.steady.worst_deg
                <= preset.steady.day_deg
                <= preset.steady.long_deg
                <= preset.steady.short_deg
            )


def test_the_page_has_the_figures_of_the_attack_and_they_agree_with_the_presets(bench: Any) -> None:
    page = (ROOT / "docs" / "howto" / "gatekeeper" / "threat-model.md").read_text(encoding="utf-8")
    rows = {
        tuple(row[:2]): [float(v) for v in row[2:]]
        for row in re.findall(
            r"\| `([\w-]+)` \| (random|worst) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|",
            page,
        )
    }
    assert len(rows) == 2 * len(TELLING)
    for name in TELLING:
        steady = PRESETS[name].steady
        assert steady is not None
        for stated, measured in zip(
            (steady.short_deg, steady.long_deg, steady.day_deg),
            rows[name, "random"][:3],
            strict=True,
        ):
            assert 0.85 * stated <= measured <= 2 * stated + 0.05
        assert rows[name, "worst"][2] >= 0.85 * steady.worst_deg


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("gaussian:sigma_deg=2", 0.068),
        ("chain:stages=gaussian(sigma_deg=2)+temporal(K=4)", 0.136),
        ("kaleido:epsilon=1,w=60,r_deg=2", None),
    ],
)
def test_what_ten_seconds_of_fresh_noise_leave(text: str, error: float | None) -> None:
    found = steady_error_deg(registry.mechanism(text), 120.0)
    assert found == (None if error is None else pytest.approx(error, rel=0.01))
    assert averaging_words(registry.mechanism(text), 120.0).startswith(
        "Averaging this stream alone: who watches resting eyes for "
    )
