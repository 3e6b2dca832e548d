"""The code blocks of the manual, and how they are run.

- `python`: all blocks of a page run one after the other in one namespace; lines after `>>>` are
  doctests, and their output is compared.
- `console`: lines after `$ ` are commands; what follows is the output that is expected, with `...`
  for what changes from run to run.
- `sh`: commands without their output.

A line `<!-- not run: reason -->` above a block leaves it out. Commands of Gazeveil in it are still
checked for verbs and options that do not exist.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.support.places import ROOT

_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^>]+?) -->\n\s*)?```(?P<kind>[a-z]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

#: Kinds of blocks that hold code of this manual.
KINDS = ("python", "console", "sh")


@dataclass(frozen=True)
class Step:
    """A command and the output that the page shows for it."""

    command: str
    expected: str


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block of a page."""

    page: Path
    line: int
    kind: str
    text: str
    reason: str

    @property
    def place(self) -> str:
        """Page and line, for messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def steps(self) -> list[Step]:
        """Commands with the output that follows each (console), or none (sh)."""
        text = self.text.replace("\\\n", " ")
        if self.kind == "console":
            parts = re.split(r"^\$ (.+)$", text, flags=re.MULTILINE)[1:]
            return [Step(c, o.strip()) for c, o in zip(parts[::2], parts[1::2], strict=True)]
        lines = (line.strip() for line in text.splitlines())
        return [Step(line, "") for line in lines if line and not line.startswith("#")]


def pages() -> list[Path]:
    """All pages with code: the manual and what stands at the root."""
    manual = [p for p in sorted((ROOT / "docs").rglob("*.md")) if not _made(p)]
    return [*sorted(ROOT.glob("*.md")), *manual]


def blocks(page: Path) -> list[CodeBlock]:
    """The code blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        CodeBlock(
            page,
            text.count("\n", 0, found.start()) + 1,
            found["kind"],
            found["text"],
            (found["reason"] or "").strip(),
        )
        for found in _BLOCK.finditer(text)
        if found["kind"] in KINDS
    ]


def words(command: str) -> list[str]:
    """The words of a `gazeveil` command without a comment; empty for another program's."""
    said = shlex.split(command, comments=True)
    return said[1:] if said and said[0] == "gazeveil" else []


def _made(page: Path) -> bool:
    """Whether a page is made by the build."""
    return "_build" in page.parts or page.parent.name == "proofs"
