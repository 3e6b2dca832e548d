"""The rules of the source tree as functions: each lists what breaks it, one sentence per break.

They read files with `ast` and import nothing, so they also work on a tree that a test makes up.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

LINE_LENGTH = 100
FUNCTION_LINES = 60
#: What a comment at a longer function must say, e.g. `# Long: one loop over samples, ...`.
LONG_BECAUSE = re.compile(r"#\s*Long: \w+")


@cache
def parsed(text: str) -> ast.Module:
    """The tree of a module; several rules look at the same ones."""
    return ast.parse(text)


class Tree:
    """The Python files of one package, parsed once.

    Parameters
    ----------
    folder : Path
        The folder of the package itself, e.g. `src/gazeveil`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder.name
        self.paths = {self._module_name(path): path for path in sorted(folder.rglob("*.py"))}
        self.text = {name: path.read_text("utf-8") for name, path in self.paths.items()}
        self.code = {name: parsed(text) for name, text in self.text.items()}

    @cached_property
    def nodes(self) -> dict[str, list[ast.AST]]:
        """All nodes of each module: to walk through them takes as long as to parse them."""
        return {name: list(ast.walk(code)) for name, code in self.code.items()}

    def _module_name(self, path: Path) -> str:
        parts = path.relative_to(self.folder.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def relative(self, name: str) -> str:
        """The path of a module inside the package."""
        return self.paths[name].relative_to(self.folder).as_posix()

    def is_package(self, name: str) -> bool:
        """Whether a module is a folder's `__init__`."""
        return self.paths[name].name == "__init__.py"

    def module_of(self, dotted: str) -> str | None:
        """The module that a dotted name or `module:attribute` is or lies in."""
        name = dotted.split(":", 1)[0]
        while name and name not in self.code:
            name = name.rpartition(".")[0]
        return name or None


def classes_defined_twice(tree: Tree) -> list[str]:
    """Public class names that two modules define."""
    homes: dict[str, list[str]] = defaultdict(list)
    for name, code in tree.code.items():
        for node in code.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(tree.relative(name))
    return [f"{word}: {', '.join(at)}" for word, at in homes.items() if len(at) > 1]


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (node.end_lineno or node.lineno) - body[0].lineno + 1 if body else 0


def long_functions(tree: Tree) -> list[str]:
    """Functions whose body is above the length, without a comment that says why."""
    breaks = []
    for name, nodes in tree.nodes.items():
        lines = tree.text[name].splitlines()
        for node in nodes:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            top = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
            reason = "\n".join([*lines[max(0, top - 4) : top], *lines[top : node.end_lineno]])
            if _body_lines(node) > FUNCTION_LINES and not LONG_BECAUSE.search(reason):
                breaks.append(f"{tree.relative(name)}: {node.name}")
    return breaks


def _without_type_checking(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below one, in any order, but those that only a type checker reads."""
    left = [node]
    while left:
        for child in ast.iter_child_nodes(left.pop()):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                left += child.orelse
                yield from child.orelse
                continue
            left.append(child)
            yield child


def _from_module(tree: Tree, name: str, node: ast.ImportFrom) -> str:
    """The absolute dotted name after `from`."""
    if not node.level:
        return node.module or ""
    parts = name.split(".")
    keep = len(parts) - node.level + (1 if tree.is_package(name) else 0)
    return ".".join([*parts[:keep], *([node.module] if node.module else [])])


def imports_of(tree: Tree, name: str) -> set[str]:
    """Modules of the package that one of them imports, in functions and by text too.

    A text counts where it is the name of a module, or `module:attribute`: tables for lazy imports.
    """
    targets: set[str | None] = set()
    for node in _without_type_checking(tree.code[name]):
        if isinstance(node, ast.Import):
            targets |= {tree.module_of(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = _from_module(tree, name, node)
            targets |= {
                tree.module_of(f"{source}.{alias.name}")
                for alias in node.names
                if not alias.name.startswith("__")  # `__version__` stands before any import
            }
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if text.startswith(f"{tree.package}.") and text.split(":", 1)[0] in tree.code:
                targets.add(tree.module_of(text))
    return {target for target in targets if target is not None and target != name}


def import_circles(tree: Tree) -> list[str]:
    """A group of modules that import one another: the first that the sorting meets."""
    try:
        TopologicalSorter({name: imports_of(tree, name) for name in tree.code}).prepare()
    except CycleError as error:
        return [" ".join(sorted(set(error.args[1])))]
    return []


def private_imports(tree: Tree) -> list[str]:
    """Private names that a module takes from another one, by import or by attribute."""
    breaks = []
    for name, nodes in tree.nodes.items():
        modules: dict[str, str] = {}
        for node in nodes:
            if not isinstance(node, ast.ImportFrom):
                continue
            source = _from_module(tree, name, node)
            if source.split(".")[0] != tree.package:
                continue
            for alias in node.names:
                if alias.name.startswith("_") and not alias.name.startswith("__"):
                    breaks.append(f"{tree.relative(name)}: {alias.name}")
                if f"{source}.{alias.name}" in tree.code:
                    modules[alias.asname or alias.name] = alias.name
        breaks += [
            f"{tree.relative(name)}: {node.value.id}.{node.attr}"
            for node in nodes
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
            and re.match(r"_[^_]", node.attr)
        ]
    return breaks
