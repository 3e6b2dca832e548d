"""Attacks by asking: an app's own text on the owner's page, an ask swapped before the owner
presses, asking until the owner gives in; a name used again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service.access_requests import (
    MOST_DISMISSALS,
    MOST_NEWCOMERS,
    AccessRequests,
)
from tests.support.gatekeeper_running import KALEIDO, Running, running

LIE = "Gazeveil: this app was checked and is safe"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "home") as found:
        yield found


def test_nothing_an_app_writes_reaches_the_owner(here: Running) -> None:
    token = here.owner.post("/v1/apps", json={"name": "liar"}).json()["token"]
    with here.client(token) as app:
        for body in ({"want": LIE}, {"want": "follow", "why": LIE}, {"want": [LIE]}, {}):
            answer = app.post("/v1/ask", json=body)
            assert answer.status_code == 422, body
            assert LIE not in answer.text
        assert here.owner.get("/v1/asks").json() == {"asks": []}
        assert app.post("/v1/ask", json={"want": "follow"}).json() == {"state": "waiting"}
        assert app.post("/v1/ask", json={"want": "follow"}).json() == {"state": "waiting"}
        assert app.get("/v1/me").json()["answer"] == "waiting"
    (ask,) = here.owner.get("/v1/asks").json()["asks"]
    assert ask.keys() == {"id", "app", "want", "t_ns"}
    sentences = {one["name"]: one for one in here.owner.get("/v1/apps").json()["presets"]}
    assert list(sentences) == ["choose", "follow", "count", "study"]
    assert all(len(one["sentence"].split()) <= 15 for one in sentences.values())
    assert [name for name, one in sentences.items() if not one["recognise"]] == ["choose"]


def test_an_ask_cannot_be_swapped_between_reading_and_pressing(here: Running) -> None:
    token = here.owner.post("/v1/apps", json={"name": "swapper"}).json()["token"]
    with here.client(token) as app:
        app.post("/v1/ask", json={"want": "follow"})
        (read,) = here.owner.get("/v1/asks").json()["asks"]
        swapped = app.post("/v1/ask", json={"want": "study"})
        assert (swapped.status_code, swapped.json()["error"]["code"]) == (409, "waiting")
        assert here.owner.get("/v1/asks").json()["asks"] == [read]
        # Dismissed in another window, and asked for more: what was read first is not what waits.
        here.owner.delete(f"/v1/asks/{read['id']}")
        app.post("/v1/ask", json={"want": "study"})
        pressed = here.owner.post(
            "/v1/apps/swapper/grant", json={"preset": "follow", "ask": read["id"]}
        )
        assert (pressed.status_code, pressed.json()["error"]["code"]) == (409, "changed")
        assert app.get("/v1/me").json()["state"] == "none"
        (now,) = here.owner.get("/v1/asks").json()["asks"]
        assert (
            here.owner.post(
                "/v1/apps/swapper/grant", json={"preset": "follow", "ask": now["id"]}
            ).json()["state"]
            == "granted"
        )
        assert here.owner.get("/v1/asks").json() == {"asks": []}


def test_the_third_dismissal_blocks_also_after_a_restart_until_the_owner_lifts_it(
    tmp_path: Path,
) -> None:
    wish = {"want": "follow"}
    with running(tmp_path / "home") as here:
        token = here.owner.post("/v1/apps", json={"name": "nagger"}).json()["token"]
        with here.client(token) as app:
            for _ in range(MOST_DISMISSALS - 1):
                assert app.post("/v1/ask", json=wish).status_code == 200
                here.owner.delete(f"/v1/asks/{here.owner.get('/v1/asks').json()['asks'][0]['id']}")
    with running(tmp_path / "home") as here, here.client(token) as app:
        assert app.post("/v1/ask", json=wish).status_code == 200
        here.owner.delete(f"/v1/asks/{here.owner.get('/v1/asks').json()['asks'][0]['id']}")
        blocked = app.post("/v1/ask", json=wish)
        assert (blocked.status_code, blocked.json()["error"]["code"]) == (403, "blocked")
        assert app.get("/v1/me").json()["blocked"]
    with running(tmp_path / "home") as here, here.client(token) as app:
        assert app.post("/v1/ask", json=wish).json()["error"]["code"] == "blocked"
        (shown,) = here.owner.get("/v1/apps").json()["apps"]
        assert shown["blocked"]
        assert not here.owner.post("/v1/apps/nagger/unblock").json()["blocked"]
        assert app.post("/v1/ask", json=wish).status_code == 200


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
        app.post("/v1/ask", json={"want": "study"})
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
    here.owner.post("/v1/apps/shop/grant", json={"grant": granted, "lasts": "until-stopped"})
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


# --- pages that bring no token
# --------------------------------------------------------------------------------------------------

SHOP = {"Origin": "https://shop.example"}


def answered(here: Running, token: str, **headers: str) -> dict[str, object]:
    with here.client(token) as app:
        found: dict[str, object] = app.get("/v1/me", headers=headers or SHOP).json()
        return found


def test_a_page_asks_by_its_origin_and_goes_on_after_a_reload(here: Running) -> None:
    here.owner.post("/v1/consent", json={"on": True})
    first = httpx.post(here.address + "/v1/ask", json={"want": "follow"}, headers=SHOP)
    assert first.headers["access-control-allow-origin"] == SHOP["Origin"]
    token = first.json()["token"]
    assert (first.json()["state"], answered(here, token)["answer"]) == ("waiting", "waiting")
    (ask,) = here.owner.get("/v1/asks").json()["asks"]
    assert (ask["app"], ask["want"]) == ("https.shop.example", "follow")
    with here.client(token) as app:
        assert app.get("/v1/tile", headers=SHOP).json()["error"]["code"] == "no-grant"
    given = {"preset": "follow", "lasts": "visit", "ask": ask["id"]}
    assert here.owner.post("/v1/apps/https.shop.example/grant", json=given).status_code == 200
    me = answered(here, token)
    assert (me["state"], me["want"], me["answer"]) == ("granted", "follow", "granted")
    with here.client(token) as app:
        assert app.get("/v1/tile", headers=SHOP).status_code == 200
        again = app.post("/v1/ask", json={"want": "follow"}, headers=SHOP)
        assert again.json() == {"state": "granted"}
        elsewhere = app.get("/v1/me", headers={"Origin": "https://evil.example"})
        assert elsewhere.json()["error"]["code"] == "origin"


def test_who_writes_a_foreign_origin_does_not_inherit_the_answer(here: Running) -> None:
    here.owner.post("/v1/consent", json={"on": True})

    def ask() -> str:
        page = httpx.post(here.address + "/v1/ask", json={"want": "follow"}, headers=SHOP)
        return str(page.json()["token"])

    page = ask()
    (asked,) = here.owner.get("/v1/asks").json()["asks"]
    given = {"preset": "follow", "lasts": "until-stopped", "ask": asked["id"]}
    here.owner.post("/v1/apps/https.shop.example/grant", json=given)
    thief = ask()
    assert answered(here, thief)["state"] == "none"
    with here.client(thief) as app:
        assert app.get("/v1/tile", headers=SHOP).json()["error"]["code"] == "no-grant"
        assert app.post("/v1/ask", json={"want": "follow"}, headers=SHOP).status_code == 200
    # What the owner grants by hand answers no question, and a refused one gets nothing.
    here.owner.post("/v1/apps/https.shop.example/grant", json={"preset": "study"})
    assert answered(here, thief).get("state") != "granted"
    assert answered(here, page)["want"] == "study"


def test_a_refused_page_hears_it_and_three_times_are_enough(here: Running) -> None:
    for _ in range(MOST_DISMISSALS):
        page = httpx.post(here.address + "/v1/ask", json={"want": "study"}, headers=SHOP)
        (ask,) = here.owner.get("/v1/asks").json()["asks"]
        here.owner.delete(f"/v1/asks/{ask['id']}")
        assert answered(here, page.json()["token"])["answer"] == "refused"
    blocked = httpx.post(here.address + "/v1/ask", json={"want": "study"}, headers=SHOP)
    assert blocked.json()["error"]["code"] == "blocked"
    (shown,) = here.owner.get("/v1/apps").json()["apps"]
    assert (shown["app"], shown["blocked"]) == ("https.shop.example", True)
    assert not here.owner.post("/v1/apps/https.shop.example/unblock").json()["blocked"]


def test_a_question_that_nobody_answers_is_dismissed_and_not_counted(here: Running) -> None:
    assert here.service is not None
    asked = here.service.access_requests
    for _ in range(MOST_DISMISSALS + 1):
        page = httpx.post(here.address + "/v1/ask", json={"want": "count"}, headers=SHOP)
        assert asked.sweep(time.time_ns() + 121 * 10**9)
        assert answered(here, page.json()["token"])["answer"] == "dismissed"
    assert not asked.blocked("https.shop.example")


@pytest.mark.parametrize(
    "origin",
    ["null", "https://evil.example/x", "file://", "https://[::1]:8", "https://" + 60 * "a."],
)
def test_what_is_no_origin_asks_nothing(here: Running, origin: str) -> None:
    page = httpx.post(here.address + "/v1/ask", json={"want": "choose"}, headers={"Origin": origin})
    assert (page.status_code, page.json()["error"]["code"]) == (403, "origin")
    assert httpx.post(here.address + "/v1/ask", json={"want": "choose"}).status_code == 401


def test_newcomers_that_wait_are_few_and_no_page_takes_anothers_name(here: Running) -> None:
    codes = [
        httpx.post(
            here.address + "/v1/ask",
            json={"want": "choose"},
            headers={"Origin": f"https://{number}.evil.example"},
        ).status_code
        for number in range(MOST_NEWCOMERS + 1)
    ]
    assert codes == [200] * MOST_NEWCOMERS + [409]
    for name in ("https.bank.example", "user.anna"):
        assert here.owner.post("/v1/apps", json={"name": name}).status_code == 422
