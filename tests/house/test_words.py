"""Docstrings speak of things, and parameters are named by nouns: `spec/language.md`, rules 2 and 8.

A sentence ends at a full stop, colon, semicolon, question or exclamation mark, or at an empty line.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.house_rules import parsed
from tests.support.places import ROOT

LINES = tomllib.loads(Path(__file__).with_name("budget.toml").read_text("utf-8"))["words"]
PERSONS = re.compile(r"\b(?:nobody|somebody|whoever)\b", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n")
PARTICIPLES = {"kept", "shown", "wanted", "said", "told", "found"}


def docstring_sentences(tree: ast.Module) -> list[str]:
    """Docstring sentences of a module with a word of rule 2, those of attributes included."""
    docstrings = [
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    sentences = [part for text in docstrings for part in SENTENCE_END.split(text)]
    return [" ".join(part.split()) for part in sentences if PERSONS.search(part)]


def public_functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Public functions, public methods of public classes, and their constructors."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
            node.name == "__init__" or not node.name.startswith("_")
        ):
            yield node


def parameter_names(tree: ast.Module) -> list[str]:
    """Parameters of public functions that are named by a participle of rule 8."""
    return [
        f"{function.name}({parameter.arg})"
        for function in public_functions(tree.body)
        for parameter in ast.walk(function.args)
        if isinstance(parameter, ast.arg) and parameter.arg in PARTICIPLES
    ]


MEASURES = {"docstring_sentences": docstring_sentences, "parameter_names": parameter_names}


@pytest.mark.parametrize("name", LINES)
def test_words_only_fall(name: str) -> None:
    paths = sorted((ROOT / "src" / "gazeveil").rglob("*.py"))
    places = [
        f"{path.relative_to(ROOT)}: {place}"
        for path in paths
        for place in MEASURES[name](parsed(path.read_text("utf-8")))
    ]
    assert len(places) <= LINES[name], "\n".join([f"{len(places)}, at most {LINES[name]}", *places])
