"""One running service for the tests of this folder; each uses apps of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.gatekeeper_running import Running, TrackerTalk, running


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(
        tmp_path_factory.mktemp("shared") / "home",
        requests_per_minute=1_000_000,
        commands_per_minute=1_000_000,
        queue_messages=16,
    ) as found:
        yield found


@pytest.fixture
def tracker(here: Running) -> Iterator[TrackerTalk]:
    with here.tracker() as found:
        yield found
