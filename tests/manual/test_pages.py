"""Pages say what the package has."""

from __future__ import annotations

import re
import tomllib

from gazeveil.cli.main import VERBS
from tests.support.manual import pages
from tests.support.places import ROOT


def test_every_extra_is_on_the_page_of_installing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z0-9]+)` \|", text, re.MULTILINE))
    assert listed == set(project["optional-dependencies"]) - {"dev"}


def test_every_page_is_in_a_list_of_pages() -> None:
    listed: set[str] = set()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for body in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for line in body.splitlines():
                if line and not line.startswith(":"):
                    listed |= {str(p) for p in page.parent.glob(f"{line}.md")}
    manual = {str(p) for p in pages() if p.is_relative_to(ROOT / "docs")}
    assert manual - listed == {str(ROOT / "docs" / "index.md")}


def test_every_verb_is_somewhere_in_the_manual() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages())
    said = set(re.findall(r"gazeveil ([a-z][a-z-]+)", text))
    assert {verb.replace("_", "-") for verb in VERBS} - said == set()
