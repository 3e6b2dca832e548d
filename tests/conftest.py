"""Settings for all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# The first example of a test may compile a kernel: time limits belong to whole tests (pytest-timeout), not to examples.
settings.register_profile("gazeveil", deadline=None)
settings.load_profile("gazeveil")

if os.environ.get("GAZEVEIL_PLANT"):
    # One planted bug for the whole run: see tests/planted.
    from planted import PLANTS

    PLANTS[os.environ["GAZEVEIL_PLANT"]].change(pytest.MonkeyPatch())
