"""`/metrics` is the owner's, and tells nobody when the eyes move: the attack reads it before and
after each second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from gazeveil.gatekeeper.blocks import block
from gazeveil.gatekeeper.service.metrics_page import RENEWED_S, Metrics
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import load_settings
from tests.support.gatekeeper_running import Running, running

RATE_HZ = 120


class Scraped:
    """A Gatekeeper whose tracker and clock are moved by hand, and its page of metrics."""

    def __init__(self, home: Path) -> None:
        self.service = Service(
            load_settings(home=home, tracker="websocket", rate_hz=float(RATE_HZ))
        )
        self.now_s = 0.0
        self.service.metrics._clock = lambda: self.now_s
        self.t_ns = 10**18
        self.service.consent(True)

    def live(self, moved: bool, seconds: int = 1) -> None:
        """Seconds of gaze, in blocks as a tracker sends them: with a saccade every quarter of a
        second, or at rest.
        """
        count = RATE_HZ * seconds
        t = self.t_ns + np.arange(1, count + 1) * (10**9 // RATE_HZ)
        jumps = (np.arange(count) // (RATE_HZ // 4)) % 4 if moved else np.zeros(count)
        noise = np.random.default_rng(int(t[0]) % 2**32).normal(0, 0.02, (2, count))
        for at in range(0, count, 4):
            part = slice(at, at + 4)
            self.service.tracker_input.push_waiting(
                block(t[part], 120 + 20 * jumps[part] + noise[0][part], 90 + noise[1][part], True)
            )
        self.t_ns = int(t[-1])
        self.now_s += seconds

    def scrape(self) -> dict[str, float]:
        """Every number on the page."""
        text = self.service.metrics.page(self.service.refresh_metrics).decode()
        found = re.findall(r"^([a-z]\S*) ([0-9.e+]+)$", text, re.M)
        return {name: float(value) for name, value in found if not name.endswith("_created")}


@pytest.fixture
def scraped(tmp_path: Path) -> Iterator[Scraped]:
    made = Scraped(tmp_path / "home")
    yield made
    made.service.tracker_input._thread.shutdown()
    made.service.keeper.close()
    made.service.ledger.close()
    made.service._alone.close()


def auc(scores: list[float], moved: list[bool]) -> float:
    """Chance that a second with movement scores above one without; 0.5 is guessing, and an attacker
    may turn the sign round.
    """
    above = [
        (a > b) + 0.5 * (a == b)
        for a, m in zip(scores, moved, strict=True)
        if m
        for b, n in zip(scores, moved, strict=True)
        if not n
    ]
    found = float(np.mean(above))
    return max(found, 1 - found)


def best_auc(pages: list[dict[str, float]], moved: list[bool]) -> tuple[float, str]:
    """What the best of all numbers on the page gives, by its change from one scrape to the next."""
    found = (
        (auc([b.get(name, 0.0) - a.get(name, 0.0) for a, b in pairwise(pages)], moved), name)
        for name in pages[-1]
    )
    return max(found)


def test_scrapes_before_and_after_each_second_do_not_tell_when_the_eyes_moved(
    scraped: Scraped,
) -> None:
    scraped.live(True, 3)
    moved = [bool(one) for one in np.random.default_rng(3).integers(0, 2, 40)]
    pages = [scraped.scrape()]
    for one in moved:
        scraped.live(one)
        pages.append(scraped.scrape())
    found, name = best_auc(pages, moved)
    assert found <= 0.55, f"{name} tells when the eyes moved: AUC {found:.2f}"


def test_nor_do_scrapes_a_minute_apart(scraped: Scraped) -> None:
    """The counters themselves hold nothing of it, whatever the page's age. Blocks that took too
    long depend on the machine alone, and so are left out here.
    """
    scraped.live(True, 3)
    moved = [bool(one) for one in np.random.default_rng(5).integers(0, 2, 24)]
    pages = [scraped.scrape()]
    for one in moved:
        scraped.live(one)
        scraped.now_s += RENEWED_S
        pages.append(scraped.scrape())
    assert pages[-1]["gazeveil_tracker_samples_total"] - pages[0][
        "gazeveil_tracker_samples_total"
    ] == RATE_HZ * len(moved)
    for page in pages:
        page.pop("gazeveil_tracker_slow_total")
    found, name = best_auc(pages, moved)
    assert found == 0.5, f"{name} tells when the eyes moved: AUC {found:.2f}"


def test_the_page_is_made_anew_once_a_minute() -> None:
    now, asked = [0.0], []
    metrics = Metrics(clock=lambda: now[0])
    pages = []
    for now[0] in (0.0, 1.0, RENEWED_S - 0.01, RENEWED_S, RENEWED_S + 1):
        metrics.tracker_samples.inc()
        pages.append(metrics.page(lambda: asked.append(now[0])))
    assert asked == [0.0, RENEWED_S]
    assert pages[0] == pages[1] == pages[2] != pages[3] == pages[4]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("metrics") / "home") as found:
        yield found


def test_strangers_and_apps_do_not_see_the_page(here: Running) -> None:
    token = here.app()
    cases: list[tuple[dict[str, Any], int]] = [
        ({}, 401),
        ({"Authorization": f"Bearer {token}"}, 403),
        ({"Authorization": "Bearer gv_owner_x"}, 401),
    ]
    for headers, status in cases:
        answer = httpx.get(here.address + "/metrics", headers=headers)
        assert answer.status_code == status
        assert "gazeveil_" not in answer.text
    page = here.owner.get("/metrics")
    assert page.status_code == 200
    assert not re.search(r"_bucket|_sum|seconds", page.text), "no times"
    assert here.last not in page.text
