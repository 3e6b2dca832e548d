"""Planted bugs: every one is well described, and some of them are planted here and caught; all of
them are by `make audit`.
"""

from __future__ import annotations

import ast

import pytest

from tests.planted import PLANTS
from tests.planted.plant import SURE, Plant
from tests.planted.run import LEAST_AUDITED
from tests.support.places import ROOT

#: A table, a cohort and a stream; `make audit` plants all.
QUICK = ("data-dependent padding", "group of k - 1", "pad reuse after a reset")


@pytest.mark.parametrize("plant", PLANTS.values(), ids=lambda p: p.name)
def test_every_plant_is_a_name_a_sentence_and_a_test_that_exists(plant: Plant) -> None:
    assert plant.name
    assert plant.wrong.endswith(".")
    assert plant.tests
    for test in plant.tests:
        file, _, name = test.partition("::")
        names = {
            node.name
            for node in ast.walk(ast.parse((ROOT / file).read_text()))
            if isinstance(node, ast.FunctionDef)
        }
        assert not name or name.partition("[")[0] in names, f"{file} has no test '{name}'"
    with plant.planted():
        pass


def test_there_are_as_many_plants_as_the_review_asks_for() -> None:
    assert len(PLANTS) >= 44
    assert sum(bool(plant.audit) for plant in PLANTS.values()) >= LEAST_AUDITED


@pytest.mark.parametrize("name", QUICK)
def test_an_audit_refutes_the_bug_and_not_the_library(name: str) -> None:
    plant = PLANTS[name]
    with plant.planted():
        assert plant.refuted()
    assert not plant.refuted(SURE)
