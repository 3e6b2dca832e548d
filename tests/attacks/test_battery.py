"""Batteries: who is in them, and how their names become attackers."""

from __future__ import annotations

import re

import pytest

from gazeveil.attacks import registry
from gazeveil.attacks.base import Attack
from gazeveil.attacks.registry import attack, attacks
from gazeveil.errors import ParameterError
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
