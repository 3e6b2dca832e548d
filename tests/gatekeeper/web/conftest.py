"""One Chromium and one service, with its owner signed in, for the tests of this folder."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from tests.support.gatekeeper_browser import browser, desk, process, signed_in  # noqa: F401
from tests.support.other_origin import other_origin  # noqa: F401
