"""Write the floors of `architecture.md` from the import contracts: `python
docs/explain/architecture_page.py`.

What a floor holds is the first sentence of its docstring; a test compares the page with this.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("architecture.md")
BEGIN, END = "<!-- floors: begin -->\n", "<!-- floors: end -->"


def purpose(module: str) -> str:
    """The first sentence of a module's docstring."""
    path = ROOT / "src" / Path(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = " ".join((ast.get_docstring(ast.parse(source.read_text("utf-8"))) or "").split())
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    return re.split(r"(?<=[^.])\.(?: |$)", text)[0].rstrip(".").replace("|", "\\|")


def exists(module: str) -> bool:
    """Whether a module of the contract is there: a floor in brackets need not be."""
    path = ROOT / "src" / Path(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def floors() -> str:
    """The table of floors and the list of contracts, as Markdown."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    first, *others = settings["contracts"]
    lines = ["| floor | holds |", "|---|---|"]
    for layer in first["layers"]:
        modules = [word for word in re.findall(r"[\w.]+", layer) if exists(word)]
        between = ", independent of " if "|" in layer else ", with "
        names = between.join(f"`{module.removeprefix('gazeveil.')}`" for module in modules)
        if modules:
            lines.append(f"| {names} | {'; '.join(purpose(module) for module in modules)} |")
    lines += ["", "Further contracts:", "", *(f"- {contract['name']}." for contract in others)]
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole page, with its floors as the contracts have them now."""
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + floors() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
