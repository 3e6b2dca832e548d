"""The whole way of pieces: plan, one clock, pieces, ledger, attack, certificate; and only once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gazeveil
from gazeveil.cli.main import app
from gazeveil.privacy.composition import BudgetError
from gazeveil.privacy.publication.alignment import look_at
from gazeveil.privacy.publication.certificate import read_certificate
from gazeveil.privacy.publication.ledger import Charging, ReleaseLedger
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.privacy.publication.protecting import protected
from gazeveil.privacy.registry import mechanism
from gazeveil.release.plan import plan_of
from gazeveil.release.publishing import Watcher, compare, publish
from gazeveil.release.recipe import Recipe
from gazeveil.release.verify import verify

PIECES = "mosaic:epsilon=10,r_deg=2,piece_s=2,gap_s=1,crowd=3"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Six people whose trackers differ in rate and whose recordings differ in length."""
    made = []
    for i, r in enumerate(gazeveil.simulate(6, 2, 7.0, 60.0, seed=2)):
        part = slice(0, len(r) - 5 * (i % 4))
        made.append(
            gazeveil.Recording(
                r.person,
                r.stimulus,
                r.t_ns[part],
                r.x_deg[part],
                r.y_deg[part],
                r.valid[part],
                space=r.space,
                rate_hz=60.0,
            )
        )
    gazeveil.Cohort(made, {r.person: {"age": 20 + i} for i, r in enumerate(made)}).write(
        tmp_path / "in"
    )
    return tmp_path / "in"


def test_pieces_are_published_once(source: Path, tmp_path: Path) -> None:
    ledger = ReleaseLedger.create(tmp_path / "releases.json")
    recipe = Recipe(source, PIECES, PublicationChoices(durations="common"), battery="none")
    cohort, said = gazeveil.read(source), list[str]()
    watcher = Watcher(say=lambda step, sentence: said.append(f"{step} {sentence}"))
    publish(recipe, cohort, tmp_path / "out", watcher, charging=Charging(ledger, 10**9))
    assert any("each under a name of its own" in line for line in said)
    assert any("24 pieces by mosaic" in line for line in said)
    assert not any(line.startswith("plan lengths") for line in said)
    assert any("factor of e to the power of 10" in line for line in said)
    assert any("plan per person at most: All pieces of one participant: epsilon" in s for s in said)
    assert any(s.startswith("plan headsets:") and "--preset public-vr" in s for s in said)
    assert verify(tmp_path / "out", against=cohort).passed
    alignment = read_certificate(tmp_path / "out")["alignment"]
    assert alignment["before_protection"]
    assert alignment["rate_hz"] == "60"

    done = CliRunner().invoke(
        app, ["inspect", str(tmp_path / "out"), "--json", str(tmp_path / "i.json")]
    )
    assert done.exit_code == 0, done.output
    assert "24 (each has a name of its own" in done.output
    assert "Pieces (10 of 24)" in done.output
    assert "person" not in done.output.split("Certificate")[0]
    figures = json.loads((tmp_path / "i.json").read_text("utf-8"))
    assert (figures["pieces"], figures["people"]) == (24, {})

    for again in (PIECES, "kaleido:epsilon=1,w=30,r_deg=2"):
        second = Recipe(source, again, PublicationChoices(durations="common"), battery="none")
        with pytest.raises(BudgetError, match="whatever budget is left"):
            publish(second, cohort, tmp_path / "more", charging=Charging(ledger, 10**9))
        assert not (tmp_path / "more").exists()


def test_a_plan_of_pieces_names_at_most_the_cost_of_the_release(source: Path) -> None:
    cohort, choices = gazeveil.read(source), PublicationChoices(durations="common")
    looks = look_at(cohort, True)

    def lines(text: str) -> dict[str, str]:
        return dict(plan_of(cohort, looks, mechanism(text), choices, "none").lines)

    found = re.search(r"epsilon = (\d+)", lines(PIECES)["per person at most"])
    released = protected(cohort, mechanism(PIECES), choices).release.guarantee
    assert found
    assert released.user["epsilon"] <= int(found[1]) <= 2 * released.user["epsilon"]
    assert "headsets" in lines(PIECES)
    assert "headsets" not in lines(f"{PIECES},paths=near")


def test_presets_are_compared_with_their_numbers(source: Path) -> None:
    recipe = Recipe(source, PIECES, PublicationChoices(), battery="none")
    names = ["public-samples", "public-pieces"]
    samples, pieces = compare(recipe, names, gazeveil.read(source), Watcher())
    assert samples["promise"] == "epsilon-w-r-dp, proved: epsilon = 1, w_samples = 30, r_deg = 2"
    assert "needs at least 12" in pieces["refused"] or "crowd = 12" in pieces["refused"]


def test_an_attack_on_pieces_is_part_of_the_certificate(source: Path, tmp_path: Path) -> None:
    choices = PublicationChoices(durations="common")
    recipe = Recipe(source, PIECES, choices, battery="quick", repetitions=1, utilities=())
    publish(recipe, gazeveil.read(source), tmp_path / "out")
    attack = read_certificate(tmp_path / "out")["attack"]
    assert attack["asked"] == "pieces"
    assert "% of all pieces" in (tmp_path / "out" / "PRIVACY.md").read_text()
