"""Settings for the tests of the Gatekeeper."""

from __future__ import annotations

import contextlib
import time

import pytest

with contextlib.suppress(ImportError):  # the extra 'service'
    from httpx import _config

    # Five seconds by default, which a busy machine may take for an answer.
    for _part in ("connect", "read", "write", "pool"):
        setattr(_config.DEFAULT_TIMEOUT_CONFIG, _part, 60.0)

_DAY_S, _LONGEST_S = 86_400, 60


@pytest.fixture(autouse=True)
def _within_one_day() -> None:
    """Begin no test shortly before midnight (UTC), where budgets of the day begin anew."""
    left_s = _DAY_S - time.time() % _DAY_S
    if left_s < _LONGEST_S:
        time.sleep(left_s + 1)
