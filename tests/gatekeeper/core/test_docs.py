"""The manual's example runs and prints what it says; the core needs no web server."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys

from tests.support.places import ROOT

DOCS = ROOT / "docs" / "howto" / "gatekeeper"


def test_the_ten_lines_of_embedding_print_what_the_page_says() -> None:
    page = (DOCS / "running.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    said = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert code is not None
    assert said is not None
    assert len([line for line in code[1].splitlines() if line.strip()]) <= 10
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code[1], "running.md", "exec"), {})
    assert out.getvalue() == said[1]


def test_the_core_imports_no_web_server_and_no_attack() -> None:
    wanted = (
        "import sys, gazeveil.gatekeeper.core.gatekeeper, gazeveil.gatekeeper.ledger.ledger,"
        " gazeveil.gatekeeper.policy.policy; print(' '.join(sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", wanted], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "gazeveil.gatekeeper.core.gatekeeper" in loaded
    roots = {name.partition(".")[0] for name in loaded}
    assert not roots & {
        "fastapi",
        "starlette",
        "uvicorn",
        "websockets",
        "httpx",
        "zmq",
        "polars",
        "sklearn",
        "torch",
    }
    assert not [
        name
        for name in loaded
        if name.startswith(("gazeveil.attacks", "gazeveil.utility", "gazeveil.evaluation"))
    ]


def test_the_threat_model_holds_the_table_of_the_benchmark() -> None:
    page = (DOCS / "threat-model.md").read_text(encoding="utf-8")
    table = page.partition("<!-- begin gatekeeper attack -->")[2].partition(
        "<!-- end gatekeeper attack -->"
    )[0]
    rows = [
        line for line in table.splitlines() if line.startswith("| ") and "the level's own" in line
    ]
    assert len(rows) == 2, (
        "run python benchmarks/gatekeeper_attack.py --page docs/howto/gatekeeper/threat-model.md"
    )
    for outside in ("Frame times", "Content", "dishonest platform"):
        assert outside in page


def test_the_threat_model_holds_the_table_of_selections() -> None:
    page = (DOCS / "threat-model.md").read_text(encoding="utf-8")
    table = page.partition("<!-- begin gatekeeper select -->")[2].partition(
        "<!-- end gatekeeper select -->"
    )[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()
        if line.startswith("| coarse")
    ]
    assert len(rows) == 3, (
        "run python benchmarks/gatekeeper_select.py --page docs/howto/gatekeeper/threat-model.md"
    )
    for _, by, choices, _ in rows:
        assert (choices == "0.0 (0.0)") == ("gesture" in by)
