"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# The first example of a test may compile a kernel: time limits belong to whole tests (pytest-timeout), not to examples.
settings.register_profile("gazeveil", deadline=None)
settings.load_profile("gazeveil")
