"""Formulas of the manual as a browser shows them best: pages are written in plain text, `r^2 <= 4`,
and the HTML has raised exponents and one sign for each comparison.

Code is left as it is, and so is a `^` that stands for a hat (`|y^|`).
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

#: After the base: a word or number, or a bracket, each perhaps with a minus before it.
EXPONENT = re.compile(
    r"(?<=[\w)\]}'\u2019|])\^(-?(?:\((?:[^()]|\([^()]*\))*\)|\d+[.,]\d+(?!\w)|[A-Za-z0-9]\w*))"
)
SIGNS = {"<=": "≤", ">=": "≥"}

_AS_THEY_ARE = (nodes.literal, nodes.literal_block, nodes.raw, nodes.comment, nodes.title)


def pieces(text: str) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is an exponent, which loses its outer brackets.

    Examples
    --------
    >>> pieces("dx^2 <= 2^-(i+1)")
    [('dx', False), ('2', True), (' ≤ 2', False), ('-(i+1)', True)]
    """
    found: list[tuple[str, bool]] = []
    for number, part in enumerate(EXPONENT.split(text)):
        if number % 2:
            found.append((part[1:-1] if part.startswith("(") else part, True))
        elif part:
            for plain, sign in SIGNS.items():
                part = re.sub(rf"(?<![<>=-]){plain}(?![<>=])", sign, part)
            found.append((part, False))
    return found


def typeset(app: Any, doctree: nodes.document) -> None:
    """Raise the exponents of one page."""
    for text in list(doctree.findall(nodes.Text)):
        if any(isinstance(above, _AS_THEY_ARE) for above in _ancestors(text)):
            continue
        made = pieces(text.astext())
        if len(made) == 1 and made[0] == (text.astext(), False):
            continue
        new = [nodes.superscript("", p) if raised else nodes.Text(p) for p, raised in made]
        text.parent.replace(text, new)


def _ancestors(node: nodes.Node) -> list[nodes.Node]:
    above = []
    while (parent := node.parent) is not None:
        above.append(parent)
        node = parent
    return above


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("doctree-read", typeset)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
