"""The tutorials as notebooks: made from their pages, and their cells run."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import ROOT

START = ROOT / "docs" / "start"


def run(source: str, namespace: dict[str, Any]) -> str:
    """What a cell prints, and the value of its last line as a notebook shows it."""
    *body, last = ast.parse(source).body
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(ast.Module(body, []), "cell", "exec"), namespace)
        exec(compile(ast.Interactive([last]), "cell", "single"), namespace)
    return shown.getvalue()


@pytest.mark.parametrize("name", ["tutorial-csv", "tutorial-screen", "tutorial-vr"])
def test_a_notebook_is_its_page(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(START))
    import notebooks

    assert f"{name}.md" in notebooks.PAGES
    written = json.loads((START / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert written == notebooks.notebook(START / f"{name}.md"), "python docs/start/notebooks.py"
    page = (START / f"{name}.md").read_text(encoding="utf-8")
    sources = [line for c in written["cells"] if c["cell_type"] == "code"
               for line in c["source"].splitlines()]  # fmt: skip
    assert len(sources) == page.count("\n>>> ") + page.count("\n... ")


def test_the_cells_of_a_notebook_run_in_order_and_give_their_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    held = json.loads((START / "tutorial-csv.ipynb").read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in (c for c in held["cells"] if c["cell_type"] == "code"):
        output = run(cell["source"], namespace)
        assert output == "".join(o["text"] for o in cell["outputs"]), cell["source"]
