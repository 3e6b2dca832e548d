"""The rules of the source tree hold, and each rule notices a tree that breaks it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support import house_rules as rules
from tests.support.house_rules import Tree
from tests.support.places import ROOT

RULES: tuple[Callable[[Tree], list[str]], ...] = (
    rules.classes_defined_twice,
    rules.long_functions,
    rules.import_circles,
    rules.private_imports,
)


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree(ROOT / "src" / "gazeveil")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Callable[[Tree], list[str]], tree: Tree) -> None:
    assert rule(tree) == [], f"{rule.__doc__}"


def test_what_the_package_imports_is_declared(tree: Tree) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].items()
    needs = [*project["dependencies"], *(n for key, ns in extras if key != "dev" for n in ns)]
    declared = {re.split(r"[^\w-]", need)[0].lower() for need in needs}
    imported = {
        name.split(".")[0]
        for nodes in tree.nodes.values()
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or "."]
        )
    }
    homes = packages_distributions()
    others = imported & homes.keys() - {"gazeveil"}
    assert {n for n in others if not {d.lower() for d in homes[n]} & declared} == set()


def _made_up(folder: Path, files: dict[str, str]) -> Tree:
    for name, text in files.items():
        path = folder / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return Tree(folder / "house")


@pytest.mark.parametrize(
    "line",
    [
        "from house.room import a",
        "from house.room.a import x",
        "from .a import x",
        "from . import a",
        "import house.room.a",
        "def late():\n    from house.room.a import x",
        "import importlib\nimportlib.import_module('house.room.a')",
        "LAZY = {'x': 'house.room.a:x'}",
        "if TYPE_CHECKING:\n    pass\nelse:\n    from .a import x",
    ],
)
def test_a_circle_is_found_however_it_is_written(tmp_path: Path, line: str) -> None:
    files = {"__init__.py": "", "room/__init__.py": "", "room/a.py": "from house.room.b import y"}
    circle = rules.import_circles(_made_up(tmp_path, files | {"room/b.py": line}))
    assert circle == ["house.room.a house.room.b"]
