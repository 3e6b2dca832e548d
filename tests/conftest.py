"""Settings for all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import Phase, settings

# The first example of a test may compile a kernel: time limits belong to whole tests (pytest-timeout), not to examples.
settings.register_profile("gazeveil", deadline=None)
settings.load_profile("gazeveil")

if os.environ.get("GAZEVEIL_PLANT"):
    # One planted bug for the whole run: see tests/planted. Nobody wants the smallest example of a failure that is asked for.
    from planted import PLANTS

    settings.register_profile("planted", deadline=None, phases=(Phase.explicit, Phase.generate), database=None)
    settings.load_profile("planted")

    PLANTS[os.environ["GAZEVEIL_PLANT"]].change(pytest.MonkeyPatch())
