"""Where the real recordings are, known only through GAZEVEIL_DATA, and what is in them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT

if TYPE_CHECKING:
    from gazeveil import Cohort


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


@cache
def _loaded(path: Path) -> Cohort:
    import gazeveil

    return gazeveil.read(path).load()


def real_cohort(*parts: str) -> Cohort:
    """Real recordings in memory, read once for all tests of a process: nobody can change them."""
    return _loaded(real(*parts))
