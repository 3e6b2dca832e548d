"""The service as its apps and its owner meet it: real sockets, the real core, SQLite."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from gatekeeper_running import ALL, GAUSSIAN, KALEIDO, Running, running, until
from websockets.exceptions import ConnectionClosed


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "home") as found:
        yield found


def test_an_app_is_granted_watches_samples_and_is_revoked_within_one_sample(here: Running) -> None:
    token = here.app()
    with here.tracker() as tracker, here.talk(token) as talk:
        answer = talk.subscribe(1, what="samples", mechanism=KALEIDO)
        assert answer["type"] == "subscribed", answer
        assert answer["guarantee"]["status"] == "proved"
        assert "epsilon = 1" in answer["guarantee"]["text"]
        for number in range(5):
            tracker.send(180.0, 90.0)
            samples = talk.until("samples")
            assert (samples["sequence"], samples["dropped"]) == (number, 0)
            assert len(samples["x_deg"]) == 1
        assert here.owner.post("/v1/apps/reader/revoke").json()["state"] == "revoked"
        tracker.send(180.0, 90.0)
        ended = talk.hear()
        assert (ended["type"], ended["id"], ended["code"]) == ("ended", 1, "revoked")
        tracker.send(180.0, 90.0)
        tracker.settle(here)
        talk.say(type="ping")
        assert talk.hear() == {"type": "pong"}
        assert talk.subscribe(2, what="samples", mechanism=KALEIDO)["code"] == "revoked"
