"""The browser of this machine."""

from __future__ import annotations

import shutil

import pytest


def chromium() -> str:
    """Where Chromium is; without one the test is skipped."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (found := shutil.which(name)) is not None:
            return found
    pytest.skip("no Chromium is installed: the pages are not looked at in a browser")
