"""No package grows beyond its budget, and space that was freed is gone for good.

Mechanisms are counted by the names of the registry: a name is one family, with all its readings,
parameters and kinds of input. Options are those of the verb that has most of them.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from gazeveil.cli.main import VERBS, build
from gazeveil.gatekeeper.service.settings import Settings
from gazeveil.privacy.registry import BUILT_IN
from tests.support.house_rules import parsed
from tests.support.places import ROOT

LINES = tomllib.loads(Path(__file__).with_name("budget.toml").read_text("utf-8"))
#: Where statements hold statements, handlers and cases.
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
#: Share of its budget that a package may lie below it before the line has to be lowered.
SLACK = 0.03


@cache
def statements(code: str) -> int:
    """Statements without docstrings; expressions, which hold none, are not looked through."""
    count, left = 0, list[ast.AST](parsed(code).body)
    while left:
        node = left.pop()
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        count += isinstance(node, ast.stmt) and not (text and isinstance(node.value.value, str))
        left += [inner for name in BLOCKS for inner in getattr(node, name, ())]
    return count


def counted(root: Path) -> Counter[str]:
    """Statements of each package of a tree; modules beside them count as `root`."""
    found: Counter[str] = Counter()
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).parts
        found[parts[0] if len(parts) > 1 else "root"] += statements(path.read_text("utf-8"))
    return found


def out_of_budget(found: Counter[str], budget: dict[str, int]) -> list[str]:
    """Packages above their line, far below it, or without one."""
    wrong = [f"{n}: {found[n]} statements, at most {m}" for n, m in budget.items() if found[n] > m]
    wrong += [
        f"{n}: {found[n]} statements: lower its line from {m}"
        for n, m in budget.items()
        if found[n] < (1 - SLACK) * m
    ]
    return wrong + [f"{n}: no line" for n in found.keys() - budget.keys()]


def test_every_package_keeps_its_budget() -> None:
    assert out_of_budget(counted(ROOT / "src" / "gazeveil"), LINES["statements"]) == []


def test_tests_weigh_at_most_seven_tenths_of_the_package() -> None:
    weight = {name: counted(ROOT / name).total() for name in ("src", "tests")}
    assert weight["tests"] <= 0.7 * weight["src"], weight


def options_of_verbs() -> dict[str, int]:
    verbs = getattr(get_command(build()), "commands", {})
    return {
        name: sum(p.param_type_name == "option" for p in verb.params)
        for name, verb in verbs.items()
    }


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("mechanisms", len(BUILT_IN)),
        ("verbs", len(VERBS)),
        ("options", max(options_of_verbs().values())),
        ("settings", len(Settings.model_fields)),
        ("files", len(list((ROOT / "src" / "gazeveil").rglob("*.py")))),
    ],
)
def test_there_are_no_more_than_the_line_says(name: str, count: int) -> None:
    assert count <= LINES["counts"][name]
