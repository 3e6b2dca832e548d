"""The file of choices, and what is said before anything is done.

The attack step of a publication.

The length of a published feature table follows from public durations, never from gaze.
"""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, FeatureTable, Recording, Screen
from gazeveil.compiled import compiled, is_kept
from gazeveil.errors import DataError, GazeveilError
from gazeveil.privacy.publication.alignment import look_at
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.release.plan import (
    BATTERY_COSTS,
    MOST_EVENTS_HZ,
    Span,
    attack_in_words,
    attack_span,
    plan_of,
    planned_promise,
)
from gazeveil.release.publishing import Watcher, measure, planned, publish
from gazeveil.release.recipe import Recipe, recipe_of
from gazeveil.utility.signal import middle_errors_deg
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


@pytest.mark.parametrize("people", [25, 50, 100, 200, 1000])
def test_the_range_holds_what_the_strong_battery_took_near_its_middle(people: int) -> None:
    row = f"| {people:,} | {people * 6:,} |"
    page = (ROOT / "docs" / "results" / "growth.md").read_text("utf-8")
    table = page.split("<!-- begin strong battery -->")[1]
    line = next(line for line in table.splitlines() if line.startswith(row))
    processor_s = float(line.split("|")[4])
    span = attack_span("strong", people * 6 * 20 * 120, 2, 0.0)
    # The longer end is at most four times the shorter one: what is in the range is within a factor
    # of two of its middle. Twice or half of what is said would be noticed.
    assert span.least_s <= processor_s <= span.most_s < 4.2 * span.least_s
    assert 0.7 < math.sqrt(span.least_s * span.most_s) / processor_s < 1.4


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


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return gazeveil.simulate(4, 3, 4.0, 100.0, seed=2)


def test_an_attacker_who_sees_raw_gaze_is_told_apart_from_guessing() -> None:
    nothing = gazeveil.mechanism("gaussian", sigma_deg="1/1000")
    longer = gazeveil.simulate(4, 4, 10.0, 100.0, seed=3)
    found = measure(longer, nothing, "quick", ("signal",), 1, executor=1)
    attack = found["attack"]
    assert attack["people"] == 4
    assert attack["found"] > attack["guessing"] == 1
    assert attack["low"] <= attack["rate"] <= attack["high"]
    assert attack["tried"] == 2
    row = next(r for r in found["utility"]["analyses"] if r["unit"] == "degrees")
    assert row["value"] < 0.1 < row["reference"]
    assert any("recognised" in sentence for sentence in found["said"])


def test_figures_have_two_digits_since_they_come_from_the_recordings(cohort: Cohort) -> None:
    noisy = gazeveil.mechanism("gaussian", sigma_deg=3)
    found = measure(cohort, noisy, "none", ("signal", "density", "events"), 1, executor=1)
    rows = found["utility"]["analyses"]
    figures = [r[n] for r in rows for n in ("value", "reference") if r[n] is not None]
    assert len(figures) > 2
    assert all(float(f"{figure:.2g}") == figure for figure in figures)


def test_what_cannot_be_measured_is_said_and_not_made_up(cohort: Cohort) -> None:
    maps = measure(cohort, gazeveil.mechanism("heatmap-laplace", epsilon=1), "quick")
    assert maps["attack"] is None
    assert "no recording of a single person" in maps["said"][0]
    alone = cohort.select(people=cohort.keys[0][0])
    found = measure(alone, gazeveil.mechanism("gaussian", sigma_deg=1), "quick", executor=1)
    assert found["attack"] is None
    assert found["said"][0].startswith("Not measured: ")


def test_the_middle_is_a_guess_with_a_known_error() -> None:
    screen = Screen(1920, 1080, 531.0, 299.0, 600.0)
    right = Recording(
        "a", "s", np.arange(100) * 10_000_000, np.full(100, 10.0), np.zeros(100), space=screen
    )
    ahead = right.with_(person="b", x_deg=np.zeros(100))
    assert middle_errors_deg(Cohort([right, ahead]))[0] == pytest.approx(5.0)


def test_on_a_sphere_the_error_without_data_does_not_turn_with_the_headsets_zero() -> None:
    cohort = gazeveil.simulate(2, 2, 2.0, 50.0, seed=4)
    turned = Cohort([r.with_(x_deg=(r.x_deg + 100.0) % 360.0) for r in cohort])
    assert middle_errors_deg(turned)[0] == pytest.approx(middle_errors_deg(cohort)[0])
    opposite = [r.with_(stimulus="other", x_deg=(r.x_deg + 180.0) % 360.0) for r in cohort]
    both = Cohort([*cohort, *(r.with_(session=f"{i}") for i, r in enumerate(opposite))])
    assert middle_errors_deg(both)[0] < 1.5 * middle_errors_deg(cohort)[0]


SECONDS = 6.0


def released(
    reading_cohort: Cohort, folder: Path, table: str = "events"
) -> tuple[FeatureTable, dict]:
    source = reading_cohort.write(folder / "in")
    choices = PublicationChoices(durations="common")
    recipe = Recipe(source, "fpa:epsilon=10", choices, table=table, battery="none")
    publish(recipe, gazeveil.read(source), folder / "out")
    certificate = json.loads((folder / "out" / "PRIVACY.json").read_text())
    return FeatureTable.read(folder / "out" / "features.parquet"), certificate


@pytest.fixture(scope="module")
def reading_cohort() -> Cohort:
    return gazeveil.simulate(4, 2, SECONDS, 100.0, seed=3)


def test_a_stare_changes_neither_rows_nor_recordings(
    reading_cohort: Cohort, tmp_path: Path
) -> None:
    first = reading_cohort[0]
    stare = first.with_(
        x_deg=np.full(len(first), 180.0),
        y_deg=np.full(len(first), 90.0),
        valid=np.arange(len(first)) % 50 == 0,  # too few samples in a row for any event
    )
    table, certificate = released(reading_cohort, tmp_path / "a")
    other, _ = released(Cohort([stare, *list(reading_cohort)[1:]]), tmp_path / "b")
    assert len(gazeveil.event_features(stare)) == 0
    assert len(table) == len(other) == 8 * SECONDS * MOST_EVENTS_HZ
    assert len(table.recordings()) == len(other.recordings()) == 8
    assert certificate["guarantee"]["status"] == "proved"
    length = int(SECONDS * MOST_EVENTS_HZ)
    assert f"the length of {length} rows is public" in certificate["assumptions"]
    assert f"length={length}" in (tmp_path / "a" / "out" / "publish.toml").read_text()


def test_where_no_duration_is_public_the_length_is_derived_and_claimed(
    reading_cohort: Cohort, tmp_path: Path
) -> None:
    source = reading_cohort.write(tmp_path / "in")
    choices = PublicationChoices(durations="keep")
    recipe = Recipe(source, "fpa:epsilon=10", choices, battery="none")
    plan = dict(planned(recipe, gazeveil.read(source), Watcher()).lines)
    assert "claimed, since the length is derived from the data" in plan["promise"]
    publish(recipe, gazeveil.read(source), tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "PRIVACY.json").read_text())
    assert certificate["guarantee"]["status"] == "claimed"


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ("k-same-synth:k=3", "among k = 3, and 2 people took part"),
        ("event-synth-pd:k=4,gamma=4", "among k = 4, and 2 people took part"),
        ("mosaic:epsilon=4,r_deg=4", "among crowd = 12, and 2 people took part"),
        ("k-same-select:k=3", "among k = 3, and 2 people took part"),
    ],
)
def test_the_plan_says_what_cannot_be_done(mechanism: str, words: str, tmp_path: Path) -> None:
    source = gazeveil.simulate(2, 1, 4.0, 60.0, seed=1).write(tmp_path / "in")
    recipe = Recipe(source, mechanism, PublicationChoices(durations="common"), battery="none")
    with pytest.raises(DataError, match=words):
        planned(recipe, gazeveil.read(source), Watcher())
