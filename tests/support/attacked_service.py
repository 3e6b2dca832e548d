"""A running service that tests attack."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.gatekeeper_running import Running, running

STRANGER = httpx.Client()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = tmp_path_factory.mktemp("attack") / "home"
    with running(
        home, guesses_per_minute=100_000, requests_per_minute=1_000_000, commands_per_minute=100_000
    ) as found:
        yield found
