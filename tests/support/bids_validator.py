"""The real BIDS validator, as PyPI has it (`bids-validator-deno`, which runs in `deno`)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def issues(folder: Path) -> list[dict[str, Any]]:
    """Everything it says about a dataset; without the program the test is skipped."""
    program = Path(sys.executable).parent / "bids-validator-deno"
    found = str(program) if program.exists() else shutil.which("bids-validator-deno")
    if found is None:
        pytest.skip("bids-validator-deno is not installed: pip install 'gazeveil[dev]'")
    done = subprocess.run(
        [found, "--format", "json", "--max-rows", "-1", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    answer = json.loads(done.stdout)
    return list(answer["issues"]["issues"])


def errors(folder: Path) -> list[str]:
    """Errors in words."""
    return [
        f"{i['code']} {i.get('subCode', '')} {i.get('location', '')} {i.get('issueMessage', '')}"
        for i in issues(folder)
        if i["severity"] == "error"
    ]
