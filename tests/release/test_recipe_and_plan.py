"""The file of choices, and what is said before anything is done."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import gazeveil
from gazeveil.errors import DataError, GazeveilError
from gazeveil.privacy.publication.choices import PublicationChoices
from gazeveil.privacy.publication.survey import look_at
from gazeveil.release.plan import plan_of, planned_promise
from gazeveil.release.recipe import Recipe, read_recipe


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
    assert read_recipe(file) == recipe
    inside = recipe.text(inside=True)
    for secret in (str(tmp_path), "key.json", "a clip", "unit=px"):
        assert secret not in inside
    assert 'rate_hz = "72"' in inside


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
    ],
)
def test_a_file_that_is_not_understood_is_refused_in_one_sentence(
    text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(text, "utf-8")
    with pytest.raises(GazeveilError, match=words):
        read_recipe(tmp_path / "p.toml")


@pytest.mark.parametrize("durations", ["keep", "common"])
def test_the_promise_of_the_plan_is_that_of_the_release(durations: str) -> None:
    from gazeveil.privacy.publication.protecting import protected

    cohort = gazeveil.simulate(3, 2, 3.0, 100.0, seed=1)
    chosen = gazeveil.mechanism("kaleido", epsilon=1, w=50, r_deg=2)
    choices = PublicationChoices(durations=durations)
    looks = look_at(cohort, True)
    plan = plan_of(cohort, looks, chosen, choices, "quick")
    promise = planned_promise(chosen, plan.looks, plan.alignment, choices)
    assert promise is not None
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
