"""Where the real recordings are: known only through GAZEVEIL_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.places import ROOT


def data_folder() -> Path:
    return Path(os.environ.get("GAZEVEIL_DATA", ROOT / ".." / "shared" / "data")).resolve()


def real(*parts: str) -> Path:
    """The path of real recordings, or a skip that says what is missing."""
    path = data_folder().joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f"the recordings '{'/'.join(parts)}' are not under GAZEVEIL_DATA ({data_folder()})"
        )
    return path
