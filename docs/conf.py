"""Sphinx settings: Markdown pages, one theme, warnings are errors (see the Makefile)."""

import re
import sys
from pathlib import Path

import gazeveil

sys.path.insert(0, str(Path(__file__).parent))  # for `formulas`

project = "Gazeveil"
author = "The Gazeveil authors"
copyright = "2026, the Gazeveil authors"  # noqa: A001 - Sphinx wants this name
version = release = gazeveil.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "formulas"]
# No `dollarmath`: formulas are written in plain text, which `formulas` sets. Sphinx would draw
# others with a script from another host, and the manual is read offline too.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# R' is R prime and --rate an option: neither is an apostrophe or a dash.
smartquotes = False
html_theme = "furo"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
napoleon_google_docstring = False


def _copy_proofs() -> None:
    """Put the proofs into the manual as they are; only their links into it count from elsewhere."""
    here = Path(__file__).parent
    made = here / "explain" / "proofs"
    made.mkdir(exist_ok=True)
    names = {path.name for path in (here.parent / "proofs").glob("*.md")}
    for old in made.glob("*.md"):
        if old.name not in names:
            old.unlink()
    for name in sorted(names):
        text = (here.parent / "proofs" / name).read_text(encoding="utf-8")
        text = re.sub(r"\]\(\.\./docs/", "](../../", text)
        target = made / name
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


_copy_proofs()
