"""The averaging attack on every preset, from what an app sees, against the preset's own sentence.
The full figures: benchmarks/gatekeeper_averaging.py.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from gazeveil.gatekeeper import PRESETS
from gazeveil.gatekeeper.policy.rules import weakest
from gazeveil.gatekeeper.streams.averaging import averaging_words, steady_error_deg
from gazeveil.privacy import registry
from tests.support.places import ROOT

#: The device's noise is its own, so a median over places varies. Of 180 places, the best way of the
#: attacker came nearer than SLACK of what is stated at 30 (`avatar`) and 37 (`foveated-rendering`),
#: and nearer than WORST_SLACK at 21 of the worst places. A median over 61 places then falls below
#: by chance with a probability of 4e-7 at most, summed over all ways and times; over 45 of the
#: worst places with 3e-8.
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


@pytest.mark.parametrize(
    "name", [n if n == "avatar" else pytest.param(n, marks=pytest.mark.heavy) for n in TELLING]
)
def test_no_app_finds_resting_eyes_better_than_its_preset_says(bench: Any, name: str) -> None:
    """`avatar` once promised that rest within 5 degrees was removed; ten sessions
    found it to 0.08."""
    steady = PRESETS[name].steady
    assert steady is not None
    few = name == "research"  # its streams are slow to compute, and its errors are all alike
    found = bench.Attack(name).run(
        bench.random_places(6 if few else 61, seed=2), days=False, sessions=2 if few else 10
    )
    short, long, day = (found[after] for after in bench.AFTER[:3])
    assert short > SLACK * steady.short_deg
    assert long > SLACK * steady.long_deg
    assert day > SLACK * steady.day_deg
    assert short < 3 * steady.short_deg + 1, "the attack works about as well as is said"


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["avatar", "foveated-rendering"])
def test_nor_at_the_worst_place(bench: Any, name: str) -> None:
    steady = PRESETS[name].steady
    assert steady is not None
    found = bench.Attack(name).run(bench.worst_places(45, seed=3), days=False)
    assert found[bench.AFTER[2]] > WORST_SLACK * steady.worst_deg
    assert found[bench.AFTER[2]] < 2 * steady.worst_deg + 1


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


def test_every_preset_says_what_averaging_gives_and_only_select_needs_not() -> None:
    assert [name for name, preset in PRESETS.items() if preset.steady is None] == ["select"]
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


@pytest.mark.parametrize("name", ["avatar", "foveated-rendering"])
def test_the_formula_of_the_certificate_is_what_the_attack_finds(name: str) -> None:
    preset = PRESETS[name]
    assert preset.steady is not None
    mechanism = registry.mechanism(weakest(preset.mechanisms[0]))
    error = steady_error_deg(mechanism, 60.0)
    assert error is not None
    # The formula is about one look. Ten looks that come from all sides may be in several cells, and
    # the tile helps a little.
    assert 0.55 * error < preset.steady.day_deg <= error
    assert "where four cells meet" in averaging_words(mechanism, 60.0)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("gaussian:sigma_deg=2", 0.068),
        ("chain:stages=gaussian(sigma_deg=2)+temporal(K=4)", 0.136),
        ("gaussian-fixation:sigma_deg=2", 0.372),
        ("kaleido:epsilon=1,w=60,r_deg=2", None),
    ],
)
def test_what_ten_seconds_of_fresh_noise_leave(text: str, error: float | None) -> None:
    found = steady_error_deg(registry.mechanism(text), 120.0)
    assert found == (None if error is None else pytest.approx(error, rel=0.01))
    assert averaging_words(registry.mechanism(text), 120.0).startswith(
        "Averaging this stream alone: who watches resting eyes for "
    )


@pytest.mark.parametrize("name", ["avatar", "foveated-rendering"])
@pytest.mark.parametrize("level", ["coarse", "fine"])
def test_presets_with_noise_that_stays_give_nothing_without_noise(
    bench: Any, name: str, level: str
) -> None:
    """The tile came with both once: where four tiles meet it told the place to a
    tenth of a degree."""
    assert PRESETS[name].scopes == {"samples"}
    corners = [
        (90.0 * i + 0.05, y) for i in range(4) for y in (45.0, 90.0, 135.0)
    ]  # corners of tiles at both levels
    found = bench.Attack(name, level=level).run(corners, days=False)
    # A median over twelve places: nearer by chance in one of 10**7 runs.
    assert found[bench.AFTER[2]] > 0.2
