"""Batteries: who is in them, and how their names become attackers.

Choosing an attacker on other repetitions: what the choice sees, and what it does to luck.

Curves of an attack: gallery size in closed form, age of the template.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from gazeveil.attacks import registry
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.curves import found_among, gallery_curve
from gazeveil.attacks.registry import attack, attacks
from gazeveil.attacks.result import chosen_on_others, identification
from gazeveil.errors import DataError, ParameterError
from tests.support.places import ROOT
from tests.support.small_attacks import Place


def built(name: str) -> list[Attack]:
    return [attack(text) for text in registry.battery(name)]


@pytest.mark.parametrize("name", ["quick", "strong", "all"])
def test_a_battery_lists_attackers_by_the_texts_they_print(name: str) -> None:
    texts = registry.battery(name)
    assert [str(a) for a in built(name)] == list(texts)
    assert len(set(texts)) == len(texts) > 1
    assert "rbfn" in texts  # what the papers use, so that everybody is compared with it


def test_each_battery_holds_the_smaller_ones() -> None:
    quick, strong, everybody = (set(registry.battery(n)) for n in ("quick", "strong", "all"))
    assert quick < strong < everybody


@pytest.mark.parametrize("name", ["strong", "all"])
def test_the_large_batteries_attack_with_all_kinds_of_knowledge_and_behind_a_filter(
    name: str,
) -> None:
    members = built(name)
    assert {a.knowledge for a in members} == {"black-box", "exemplars", "white-box"}
    assert "lowpass" in {a.denoiser for a in members}
    # A release of tables has no samples: more than one of them must do without.
    assert sum("samples" not in a.needs and a.denoiser == "none" for a in members) > 2


def test_nobody_is_wanted_by_a_name_that_is_not_a_mistake() -> None:
    written = {t.partition(":")[0] for texts in registry.BATTERIES.values() for t in texts}
    planned = {"steps", "rocket", "fusion", "ekyt"}
    assert written <= {*attacks(), *planned}


def test_an_attacker_that_is_not_installed_is_left_out_of_a_battery(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "attacks", lambda: ("rbfn", "ekyt"))
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    assert registry.battery("quick") == ("rbfn",)
    assert "ekyt" not in registry.battery("all")
    monkeypatch.setattr(registry, "find_spec", lambda _: object())
    assert "ekyt" in registry.battery("all")


def test_names_and_batteries_are_joined_without_repeats() -> None:
    own = Place()
    assert registry.unfold(["quick", own, "lda"]) == ("rbfn", "linkage", own, "lda")
    # An attacker that is named in another way is still the same one.
    assert registry.unfold(["rbfn:knowledge=black-box", "quick"]) == (
        "linkage",
        "rbfn:knowledge=black-box",
    )
    assert registry.unfold(["quick", "strong", "quick"])[:2] == registry.battery("quick")
    assert registry.unfold(["none"]) == registry.unfold([]) == ()
    assert set(registry.unfold(["quick", "strong"])) == set(registry.battery("strong"))


@pytest.mark.parametrize("beside", ["linkage", "quick"])
def test_nobody_and_somebody_contradict_one_another(beside: str) -> None:
    with pytest.raises(ParameterError, match=f"'none' says that nobody attacks, and '{beside}'"):
        registry.unfold(["none", beside])


def test_an_unknown_battery_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ParameterError, match="strong"):
        registry.battery("stong")


def test_the_page_of_attackers_lists_the_batteries() -> None:
    page = (ROOT / "docs" / "reference" / "attacks" / "index.md").read_text(encoding="utf-8")
    lines = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    assert set(lines) == set(registry.BATTERIES)
    for name, texts in registry.BATTERIES.items():
        written = lines[name].split("|")[2]
        own = re.findall(r"`([^`]+)`", written)
        above = registry.BATTERIES["strong"] if name == "all" else ()
        assert [*above, *own] == list(texts), name


def test_the_choice_does_not_see_the_repetition_it_is_judged_by() -> None:
    rng = np.random.default_rng(1)
    credit = rng.integers(0, 2, size=(4, 5, 6)).astype(np.float64)
    before = chosen_on_others(credit)
    for repetition in range(5):
        # Other attackers' credit in this repetition does not change who is chosen for it.
        rates = np.delete(credit.mean(axis=2), repetition, axis=1).mean(axis=1)
        best = int(np.argmax(rates))
        changed = credit.copy()
        changed[np.arange(4) != best, repetition] = 1 - credit[np.arange(4) != best, repetition]
        np.testing.assert_array_equal(chosen_on_others(changed)[repetition], before[repetition])
        np.testing.assert_array_equal(before[repetition], credit[best, repetition])


def test_guessing_attackers_stay_at_chance_where_the_largest_of_them_does_not() -> None:
    # 10 attackers guess among 20 people, 400 studies of 2 repetitions: the mean of the chosen one
    # is 0.05 with a standard error of 0.0017; 4 of them are missed once in 16,000 runs.
    rng = np.random.default_rng(2)
    credit = (rng.random((400, 10, 2, 20)) < 0.05).astype(np.float64)
    chosen = np.array([chosen_on_others(c).mean() for c in credit])
    largest = credit.mean(axis=(2, 3)).max(axis=1)
    assert abs(chosen.mean() - 0.05) < 4 * 0.0017
    assert largest.mean() > 0.09


def test_who_was_not_asked_is_not_chosen() -> None:
    credit = np.array([[[1.0], [1.0], [np.nan]], [[0.0], [0.0], [0.5]]])
    np.testing.assert_array_equal(chosen_on_others(credit), [[1.0], [1.0], [0.5]])


def test_one_repetition_leaves_nothing_to_choose_on() -> None:
    assert np.isnan(chosen_on_others(np.ones((3, 1, 4)))).all()
    assert chosen_on_others(np.empty((0, 0, 0))).shape == (0, 0)


def test_another_shape_is_refused() -> None:
    with pytest.raises(DataError, match=r"attackers, repetitions and people. Got shape \(2, 3\)"):
        chosen_on_others(np.ones((2, 3)))


def random_scores(n=9, gain=1.0, ties=False, seed=1):
    rng = np.random.default_rng(seed)
    names = tuple(map(str, range(n)))
    values = rng.normal(size=(n, n)) + gain * np.eye(n)
    return Scores(names, names, np.round(values) if ties else values)


def by_drawing_every_gallery(scores, size):
    """The mean credit over every gallery of that size that holds the person asked about."""
    n = len(scores.known)
    total = []
    for row in range(n):
        for others in itertools.combinations([i for i in range(n) if i != row], size - 1):
            gallery = (row, *others)
            one = Scores(
                tuple(scores.known[i] for i in gallery),
                (scores.probes[row],),
                scores.values[row : row + 1, gallery],
            )
            total.append(one.credit()[0])
    return np.mean(total)


@pytest.mark.parametrize("ties", [False, True])
def test_the_closed_form_equals_drawing_every_gallery(ties):
    scores = random_scores(ties=ties)
    curve = gallery_curve([scores])
    assert [p.at for p in curve] == list(range(2, 10))
    for point in curve:
        assert point.result.value == pytest.approx(by_drawing_every_gallery(scores, int(point.at)))


def test_at_full_size_the_curve_is_the_identification_rate_with_its_interval():
    scores = [random_scores(seed=s, ties=True) for s in range(3)]
    last, whole = gallery_curve(scores)[-1].result, identification(scores)
    assert last.value == pytest.approx(whole.value)
    assert (last.low, last.high, last.chance) == (whole.low, whole.high, whole.chance)


def test_a_blind_attacker_has_chance_at_every_size():
    names = tuple(map(str, range(30)))
    blind = [Scores(names, names, np.zeros((30, 30)))]
    assert all(p.result.value == pytest.approx(1 / p.at) for p in gallery_curve(blind))


def test_larger_galleries_are_harder():
    rates = [p.result.value for p in gallery_curve([random_scores(n=40)])]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1] + 0.2


def test_large_galleries_stay_exact():
    assert found_among(0, 0, 5000, 4000) == 1.0
    assert found_among(1, 0, 5000, 4000) == pytest.approx(1 - 3999 / 4999)
    assert found_among(5000, 0, 5000, 2) == 0.0


def test_sizes_out_of_range_and_one_person_are_refused():
    with pytest.raises(ParameterError, match="from 2 to 9"):
        gallery_curve([random_scores()], sizes=[10])
    with pytest.raises(DataError, match="at least two people"):
        gallery_curve([Scores(("a",), ("a",), np.ones((1, 1)))])
