"""Attacks by asking: an app's own text on the owner's page, an ask swapped before the owner
presses, asking until the owner gives in; a name used again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service.access_requests import MOST_DISMISSALS, PURPOSES, AccessRequests
from tests.support.gatekeeper_running import KALEIDO, Running, running

LIE = "Gazeveil: this app was checked and is safe"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "home") as found:
        yield found


def test_nothing_an_app_writes_reaches_the_owner(here: Running) -> None:
    token = here.owner.post("/v1/apps", json={"name": "liar"}).json()["token"]
    with here.client(token) as app:
        for body in (
            {"preset": "avatar", "purpose": LIE},
            {"preset": LIE, "purpose": "avatar"},
            {"scopes": [LIE], "purpose": "avatar"},
            {"scopes": ["tile"], "mechanisms": [LIE], "purpose": "avatar"},
            {"preset": "avatar", "purpose": "avatar", "why": LIE},
            {"preset": "avatar", "why": LIE},
            {"purpose": "avatar"},
        ):
            answer = app.post("/v1/ask", json=body)
            assert answer.status_code == 422, body
            assert LIE not in answer.text
        assert here.owner.get("/v1/asks").json() == {"asks": []}
        assert (
            app.post("/v1/ask", json={"preset": "avatar", "purpose": "avatar"}).status_code == 202
        )
    (ask,) = here.owner.get("/v1/asks").json()["asks"]
    assert ask.keys() == {"id", "app", "preset", "purpose", "scopes", "t_ns"}
    purposes = here.owner.get("/v1/apps").json()["purposes"]
    assert {one["code"]: one["means"] for one in purposes} == dict(PURPOSES)


def test_an_ask_cannot_be_swapped_between_reading_and_pressing(here: Running) -> None:
    token = here.owner.post("/v1/apps", json={"name": "swapper"}).json()["token"]
    with here.client(token) as app:
        app.post("/v1/ask", json={"preset": "avatar", "purpose": "avatar"})
        (read,) = here.owner.get("/v1/asks").json()["asks"]
        swapped = app.post("/v1/ask", json={"preset": "research", "purpose": "study"})
        assert (swapped.status_code, swapped.json()["error"]["code"]) == (409, "waiting")
        assert here.owner.get("/v1/asks").json()["asks"] == [read]
        # Dismissed in another window, and asked for more: what was read first is not what waits.
        here.owner.delete(f"/v1/asks/{read['id']}")
        app.post("/v1/ask", json={"preset": "research", "purpose": "study"})
        pressed = here.owner.post(
            "/v1/apps/swapper/grant", json={"preset": "avatar", "ask": read["id"]}
        )
        assert (pressed.status_code, pressed.json()["error"]["code"]) == (409, "changed")
        assert app.get("/v1/me").json()["state"] == "none"
        (now,) = here.owner.get("/v1/asks").json()["asks"]
        assert (
            here.owner.post(
                "/v1/apps/swapper/grant", json={"preset": "avatar", "ask": now["id"]}
            ).json()["state"]
            == "granted"
        )
        assert here.owner.get("/v1/asks").json() == {"asks": []}


def test_the_third_dismissal_blocks_also_after_a_restart_until_the_owner_lifts_it(
    tmp_path: Path,
) -> None:
    wish = {"preset": "avatar", "purpose": "avatar"}
    with running(tmp_path / "home") as here:
        token = here.owner.post("/v1/apps", json={"name": "nagger"}).json()["token"]
        with here.client(token) as app:
            for _ in range(MOST_DISMISSALS - 1):
                assert app.post("/v1/ask", json=wish).status_code == 202
                here.owner.delete(f"/v1/asks/{here.owner.get('/v1/asks').json()['asks'][0]['id']}")
    with running(tmp_path / "home") as here, here.client(token) as app:
        assert app.post("/v1/ask", json=wish).status_code == 202
        here.owner.delete(f"/v1/asks/{here.owner.get('/v1/asks').json()['asks'][0]['id']}")
        blocked = app.post("/v1/ask", json=wish)
        assert (blocked.status_code, blocked.json()["error"]["code"]) == (403, "blocked")
        assert app.get("/v1/me").json()["blocked"]
    with running(tmp_path / "home") as here, here.client(token) as app:
        assert app.post("/v1/ask", json=wish).json()["error"]["code"] == "blocked"
        (shown,) = here.owner.get("/v1/apps").json()["apps"]
        assert shown["blocked"]
        assert not here.owner.post("/v1/apps/nagger/unblock").json()["blocked"]
        assert app.post("/v1/ask", json=wish).status_code == 202


def test_a_count_that_cannot_be_read_lifts_no_block(tmp_path: Path) -> None:
    (tmp_path / "dismissed.json").write_text('{"nagger": "many"}')
    with pytest.raises(ParameterError, match=r"cannot be read\. Remove it"):
        AccessRequests(tmp_path / "dismissed.json")


def test_a_dropped_app_leaves_nothing_to_the_next_of_its_name_but_what_it_spent(
    here: Running,
) -> None:
    assert here.service is not None
    token = here.app("shop", budgets={"epsilon": "3"}, per="ever")
    with here.tracker() as tracker, here.talk(token) as talk:
        talk.subscribe(1, what="samples", mechanism=KALEIDO)
        tracker.look(180, 90, 0.2)
        talk.until("samples")
    with here.client(token) as app:
        app.post(
            "/v1/areas",
            json={"name": "a", "x_deg": 90, "y_deg": 80, "width_deg": 20, "height_deg": 20},
        )
        app.post("/v1/ask", json={"preset": "research", "purpose": "study"})
        spent = here.service.ledger.spent("app:shop", "epsilon", time.time_ns())
        assert spent > 0
        assert here.owner.delete("/v1/apps/shop").json() == {"app": "shop", "written": True}
        assert app.get("/v1/me").status_code == 401
    assert here.owner.get("/v1/apps").json()["apps"] == []
    assert here.owner.get("/v1/asks").json() == {"asks": []}
    assert "shop" not in Policy.load(here.service.settings.policy_path).apps
    assert here.owner.delete("/v1/apps/shop").status_code == 404
    second = here.owner.post("/v1/apps", json={"name": "shop"}).json()["token"]
    with here.client(second) as app:
        assert app.get("/v1/me").json()["state"] == "none"
        assert app.get("/v1/tile").json()["error"]["code"] == "scope"
    granted = {
        "scopes": ["areas", "samples"],
        "mechanisms": [],
        "budgets": {"epsilon": "3"},
        "per": "ever",
    }
    here.owner.post("/v1/apps/shop/grant", json={"grant": granted, "lasts": "for-good"})
    with here.client(second) as app:
        assert app.get("/v1/areas").json() == {"areas": []}
        (row,) = app.get("/v1/me").json()["budgets"]
        assert row["spent"] == str(spent), "deleting and adding must not give budget back"


def test_a_name_whose_token_was_taken_away_starts_with_nothing(here: Running) -> None:
    here.app("shop")
    assert here.owner.delete("/v1/apps/shop/token").json() == {"app": "shop", "written": True}
    (shop,) = here.owner.get("/v1/apps").json()["apps"]
    assert (shop["has_token"], shop["state"]) == (False, "revoked")
    token = here.owner.post("/v1/apps", json={"name": "shop"}).json()["token"]
    with here.client(token) as app:
        assert app.get("/v1/me").json()["state"] == "none"
        assert app.get("/v1/tile").status_code == 403


def test_a_grant_that_the_owner_wrote_for_an_app_to_come_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('consent = true\n[apps.shop]\nscopes = ["tile"]\n')
    with running(tmp_path / "home", policy=tmp_path / "policy.toml") as here:
        token = here.owner.post("/v1/apps", json={"name": "shop"}).json()["token"]
        with here.client(token) as app:
            assert app.get("/v1/me").json()["state"] == "granted"
