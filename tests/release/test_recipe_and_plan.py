"""The file of choices, and what is said before anything is done."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

import gazeveil
from gazeveil.compiled import compiled, is_kept
from gazeveil.errors import DataError, GazeveilError
from gazeveil.privacy.publication.alignment import look_at
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.release.plan import (
    BATTERY_COSTS,
    Span,
    attack_in_words,
    attack_span,
    plan_of,
    planned_promise,
)
from gazeveil.release.recipe import Recipe, recipe_of
from tests.support.places import ROOT


def test_every_choice_survives_the_file(tmp_path: Path) -> None:
    choices = PublicationChoices(
        ("person", "pupil"),
        "csv",
        Fraction(72),
        {'a clip = "1"': "30", "b": "1/3"},
        k=6,
        stimuli=('a clip = "1"',),
        key_file=tmp_path / "key.json",
    )
    recipe = Recipe(
        tmp_path / "in",
        "kaleido:epsilon=1,w=50,r_deg=2",
        choices,
        "csv",
        ("unit=px", 'person="x"'),
        "1280x720px,400x225mm,450mm",
        "windows",
        "strong",
        5,
        ("density",),
    )
    file = tmp_path / "out.publish.toml"
    file.write_text(recipe.text(inside=False), "utf-8")
    assert recipe_of({}, file) == recipe
    inside = recipe.text(inside=True)
    for secret in (str(tmp_path), "key.json", "a clip", "unit=px"):
        assert secret not in inside
    assert 'rate_hz = "72"' in inside


#: A file that says what is published; a choice follows.
WHOLE = """format = "gazeveil-publish"
version = 1
[input]
path = "x"
[protect]
mechanism = "temporal:K=2"
[publication]
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("= 3", "not TOML"),
        ('format = "other"', "no recipe"),
        ('format = "gazeveil-publish"\nversion = 2', "no recipe"),
        ('format = "gazeveil-publish"\nversion = 1\n[input]\npath = "x"', "which recordings"),
        ('format = "gazeveil-publish"\nversion = 1\n[colours]\nred = 1', "nobody reads 'colours'"),
        (
            'format = "gazeveil-publish"\nversion = 1\n[protect]\nmechanims = "x"',
            "Did you mean 'mechanism'",
        ),
        (
            'format = "gazeveil-publish"\nversion = 1\n[publication]\nlens = 3',
            "has no option 'lens'. Allowed: durations, k,",
        ),
        (
            WHOLE + "rate_hz = 'fast'",
            "'rate_hz' parameter of publication must be an exact number above 0",
        ),
        (
            WHOLE + "durations = 'short'",
            "'durations' parameter of publication must be one of common, keep",
        ),
    ],
)
def test_a_file_that_is_not_understood_is_refused_in_one_sentence(
    text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(text, "utf-8")
    with pytest.raises(GazeveilError, match=words):
        recipe_of({}, tmp_path / "p.toml")


@pytest.mark.parametrize("durations", ["keep", "common"])
def test_the_promise_of_the_plan_is_that_of_the_release(durations: str) -> None:
    from gazeveil.privacy.publication.protecting import protected

    cohort = gazeveil.simulate(3, 2, 3.0, 100.0, seed=1)
    chosen = gazeveil.mechanism("kaleido", epsilon=1, w=50, r_deg=2)
    choices = PublicationChoices(durations=durations)
    looks = look_at(cohort, True)
    plan = plan_of(cohort, looks, chosen, choices, "quick")
    promise = planned_promise(chosen, plan.looks, plan.alignment, choices)
    made = protected(cohort, chosen, choices).release.guarantee
    assert promise.numbers == made.numbers
    assert promise.user == made.user


def test_nobody_left_is_one_sentence() -> None:
    cohort = gazeveil.Cohort(
        [r.with_(valid=r.valid & False) for r in gazeveil.simulate(2, 1, 1.0, 100.0, seed=1)]
    )
    chosen = gazeveil.mechanism("gaussian", sigma_deg=1)
    with pytest.raises(DataError, match="nothing to publish"):
        plan_of(cohort, look_at(cohort, True), chosen, PublicationChoices(), "quick")


def test_fixations_alone_are_published_as_maps_and_refused_as_samples() -> None:
    made = gazeveil.simulate(4, 1, 4.0, 100.0, seed=1)
    fixations = gazeveil.Cohort(
        [
            gazeveil.Recording(
                r.person, r.stimulus, [], [], [], space=r.space, events=gazeveil.detect(r)
            )
            for r in made
        ]
    )
    looks = look_at(fixations, True)
    maps = gazeveil.mechanism("heatmap-laplace", epsilon=1)
    plan = plan_of(fixations, looks, maps, PublicationChoices(), "none")
    assert len(plan.cohort) == 4
    with pytest.raises(DataError, match="publish maps of them"):
        plan_of(
            fixations,
            looks,
            gazeveil.mechanism("gaussian", sigma_deg=1),
            PublicationChoices(),
            "none",
        )


@pytest.mark.parametrize("battery", sorted(BATTERY_COSTS))
def test_the_time_of_an_attack_is_a_range_that_grows_with_what_is_attacked(battery: str) -> None:
    one = attack_span(battery, 2_000_000, 3, 10.0)
    assert 0 < one.least_s < one.most_s
    fixed = attack_span(battery, 0, 3, 0.0)
    for times in (2, 5):
        more = attack_span(battery, 2_000_000 * times, 3, 10.0 * times)
        for end in ("least_s", "most_s"):
            grown = getattr(more, end) - getattr(fixed, end)
            assert grown == pytest.approx(times * (getattr(one, end) - getattr(fixed, end)))
        draws = attack_span(battery, 2_000_000, 3 * times, 10.0)
        assert draws.least_s == pytest.approx(times * one.least_s)
    slow = attack_span(battery, 2_000_000, 3, 1000.0)
    assert slow.least_s - one.least_s >= 3 * 2 * 990.0, "each draw makes at least two releases"


@pytest.mark.parametrize(
    ("people", "processor_s"), [(200, 118), (1000, 564)], ids=["200 people", "1,000 people"]
)
def test_the_range_holds_what_the_strong_battery_took(people: int, processor_s: float) -> None:
    row = f"| {people:,} | {people * 6:,} |"
    page = (ROOT / "docs" / "results" / "growth.md").read_text("utf-8")
    table = page.split("<!-- begin strong battery -->")[1]
    line = next(line for line in table.splitlines() if line.startswith(row))
    assert float(line.split("|")[4]) == processor_s
    span = attack_span("strong", people * 6 * 20 * 120, 2, 0.0)
    assert span.least_s <= processor_s <= span.most_s


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (Span(3.2, 3.2), "3 s"),
        (Span(0.0, 0.2), "1 s"),
        (Span(20, 99), "20 to 99 s"),
        (Span(20, 240), "1 to 4 minutes"),
        (Span(3000, 9000), "1 to 2 hours"),
    ],
)
def test_times_are_said_in_the_unit_of_their_longer_end(span: Span, words: str) -> None:
    assert str(span) == words


def test_a_plan_says_when_nobody_attacks_and_how_long_others_take() -> None:
    cohort = gazeveil.simulate(3, 2, 3.0, 100.0, seed=1)
    looks = look_at(cohort, True)

    def time(text: str, battery: str, repetitions: int = 3) -> str:
        chosen = gazeveil.mechanism(text)
        plan = plan_of(cohort, looks, chosen, PublicationChoices(), battery, repetitions)
        return dict(plan.lines)["time"]

    assert "nobody attacks" in time("gaussian:sigma_deg=1", "none")
    assert "nobody attacks maps" in time("heatmap-laplace:epsilon=1", "strong")
    strong = time("gaussian:sigma_deg=1", "strong")
    assert re.search(r"the strong battery attacks: \d+ to \d+ s of processor time, ", strong)
    assert "longer than the strong one" in time("gaussian:sigma_deg=1", "all")
    assert " minutes of processor time" in time("gaussian:sigma_deg=1", "strong", 66)


def test_a_plan_counts_compiling_where_no_machine_code_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(x: float) -> float:
        return 2 * x

    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    fresh = compiled(twice)
    assert not is_kept(fresh)
    chosen = gazeveil.mechanism("gaussian:sigma_deg=1")
    # All kernels that a plan looks at: which of them an earlier test compiled must not matter.
    for kernel in ("measure_events", "unwrapped"):
        monkeypatch.setattr(f"gazeveil.release.plan.{kernel}", fresh)
    more = "; the first time on this machine half a minute to two more, for compiling"
    assert attack_in_words(chosen, "quick", 1000, 3, 1.0).endswith(more)
    assert fresh(1.0) == 2.0
    assert is_kept(fresh)
    assert more not in attack_in_words(chosen, "quick", 1000, 3, 1.0)
    assert more not in attack_in_words(chosen, "none", 1000, 3, 1.0)
