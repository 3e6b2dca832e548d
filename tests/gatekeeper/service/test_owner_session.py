"""The owner's session: two halves, bound to the page's own origin with its port; the theft of its
cookie; sign-out and the list of sessions.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.service.credentials.sessions import MOST, Sessions
from gazeveil.gatekeeper.service.credentials.tokens import Tokens
from tests.support import gatekeeper_browser
from tests.support.gatekeeper_browser import browser, desk, process, signed_in  # noqa: F401
from tests.support.gatekeeper_running import Process, Running, Talk, free_port, running, sign_in
from tests.support.other_origin import OtherOrigin, other_origin  # noqa: F401

HOUR_NS = 3600 * 10**9


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(
        tmp_path_factory.mktemp("session") / "home", new_link_ends_sessions=False
    ) as found:
        yield found


def new_session(here: Running, **options: Any) -> httpx.Client:
    assert here.service is not None
    return sign_in(here.address, here.service.owner_link(here.address), **options)


def signed_in_client(here: Running, **options: Any) -> closing[httpx.Client]:
    return closing(new_session(here, **options))


def until_closed(talk: Talk) -> None:
    """Hear what still comes until the service closes the socket."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            talk.hear()


def only_cookie(client: httpx.Client) -> str:
    name, value = next(iter(client.cookies.items()))
    return f"{name}={value}"


# --- the two halves
# --------------------------------------------------------------------------------------------------


def test_the_link_works_once_and_reading_its_page_uses_nothing_up(here: Running) -> None:
    assert here.service is not None
    link = here.service.owner_link(here.address)
    for _ in range(3):  # as programs do that preview links
        page = httpx.get(link)
        assert page.status_code == 200
        assert page.headers["cache-control"] == "no-store"
        assert "<script>" not in page.text
        assert "set-cookie" not in page.headers
    with closing(sign_in(here.address, link)) as owner:
        assert owner.get("/v1/apps").status_code == 200
    assert httpx.get(link).status_code == 403
    late = httpx.post(
        here.address + "/v1/sign-in",
        headers={"Authorization": f"Bearer {link.partition('key=')[2]}"},
    )
    assert (late.status_code, late.json()["error"]["code"]) == (403, "link")


def test_the_cookie_has_the_port_in_its_name_and_no_script_can_read_it(here: Running) -> None:
    assert here.service is not None
    link = here.service.owner_link(here.address)
    answer = httpx.post(
        here.address + "/v1/sign-in",
        headers={"Authorization": f"Bearer {link.partition('key=')[2]}"},
    )
    text = answer.headers["set-cookie"].lower()
    assert text.startswith(f"gazeveil_owner_{here.address.rpartition(':')[2]}=")
    assert "httponly" in text
    assert "samesite=strict" in text
    assert answer.json()["session"] not in text


def test_neither_half_alone_reads_changes_or_looks(here: Running) -> None:
    with signed_in_client(here) as owner:
        secret, cookie = owner.headers["X-Gazeveil-Session"], only_cookie(owner)
        value = cookie.partition("=")[2]
        assert owner.get("/v1/apps").status_code == 200
        attempts: list[dict[str, str]] = [
            {"Cookie": cookie},
            {"Cookie": cookie, "X-Gazeveil": "1"},
            {"Cookie": cookie, "X-Gazeveil-Session": value},
            {"Authorization": f"Bearer {value}"},
            {"Authorization": f"Bearer {value}", "Cookie": cookie, "X-Gazeveil": "1"},
            {"Authorization": f"Bearer {secret}"},
            {"Authorization": f"Bearer {secret}", "Cookie": cookie},
            {"X-Gazeveil-Session": secret},
            {"X-Gazeveil-Session": secret, "Cookie": cookie + "x"},
            {
                "X-Gazeveil-Session": secret[:-1] + ("A" if secret[-1] != "A" else "B"),
                "Cookie": cookie,
            },
        ]
        for headers in attempts:
            assert httpx.get(here.address + "/v1/apps", headers=headers).status_code == 401, headers
            assert httpx.get(here.address + "/metrics", headers=headers).status_code == 401, headers
            assert (
                httpx.post(
                    here.address + "/v1/consent", headers=headers, json={"on": True}
                ).status_code
                == 401
            ), headers
            assert (
                httpx.post(
                    here.address + "/v1/owner/tokens", headers=headers, json={"name": "thief"}
                ).status_code
                == 401
            ), headers
        for hello, sent in (
            ({}, cookie),
            ({"token": value}, cookie),
            ({"session": value}, cookie),
            ({"session": secret}, ""),
            ({"token": secret}, cookie),
        ):
            with here.talk(
                None, "/v1/live", additional_headers={"Cookie": sent} if sent else {}
            ) as talk:
                talk.say(type="hello", **hello)
                assert talk.hear()["type"] == "error", hello
                with pytest.raises(ConnectionClosed):
                    talk.hear()
        with here.talk(None, "/v1/live", additional_headers={"Cookie": cookie}) as talk:
            talk.say(type="hello", session=secret)
            assert talk.hear()["type"] == "welcome"
        foreign = {"X-Gazeveil-Session": secret, "Cookie": cookie, "Origin": "http://127.0.0.1:1"}
        assert httpx.get(here.address + "/v1/apps", headers=foreign).status_code == 403


def test_the_secret_alone_takes_away_so_that_a_replaced_cookie_cannot_keep_sharing_on(
    here: Running,
) -> None:
    here.app("shop-taken")
    with signed_in_client(here) as owner:
        replaced = {
            "X-Gazeveil-Session": owner.headers["X-Gazeveil-Session"],
            "Cookie": f"{only_cookie(owner).partition('=')[0]}=junk",
        }
        assert here.owner.get("/v1/apps").json()["consent"] is True
        assert (
            httpx.post(
                here.address + "/v1/consent", headers=replaced, json={"on": False}
            ).status_code
            == 200
        )
        assert here.owner.get("/v1/apps").json()["consent"] is False
        assert (
            httpx.post(here.address + "/v1/apps/shop-taken/revoke", headers=replaced).status_code
            == 200
        )
        answer = httpx.post(here.address + "/v1/consent", headers=replaced, json={"on": True})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "cookie")


def test_nothing_of_a_session_is_on_the_disk(here: Running) -> None:
    assert here.service is not None
    with signed_in_client(here) as owner:
        secret, cookie = owner.headers["X-Gazeveil-Session"], only_cookie(owner).partition("=")[2]
        held = b"".join(
            path.read_bytes() for path in here.service.settings.home.iterdir() if path.is_file()
        )
        assert secret.split("_", 2)[2].encode() not in held
        assert cookie.encode() not in held


# --- signing out
# --------------------------------------------------------------------------------------------------


def test_signing_out_ends_the_session_and_its_live_view_and_nobody_elses(here: Running) -> None:
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0"
    with (
        signed_in_client(here, headers={"User-Agent": agent}) as one,
        signed_in_client(here) as two,
    ):
        cookie, secret = only_cookie(one), one.headers["X-Gazeveil-Session"]
        with here.talk(None, "/v1/live", additional_headers={"Cookie": cookie}) as live:
            live.say(type="hello", session=secret)
            assert live.hear()["type"] == "welcome"
            listed = one.get("/v1/sessions").json()["sessions"]
            assert [s["browser"] for s in listed if s["this"]] == ["Firefox on Linux"]
            assert one.post("/v1/sign-out").status_code == 204
            until_closed(live)
            assert live.socket.close_code == 4001
        assert (
            httpx.get(
                here.address + "/v1/apps", headers={"Cookie": cookie, "X-Gazeveil-Session": secret}
            ).status_code
            == 401
        )
        assert two.get("/v1/apps").status_code == 200
        assert not any(
            s["browser"] == "Firefox on Linux" for s in two.get("/v1/sessions").json()["sessions"]
        )


def test_one_session_or_all_others_can_be_ended(here: Running) -> None:
    with (
        signed_in_client(here) as one,
        signed_in_client(here) as two,
        signed_in_client(here) as three,
    ):
        other = next(s["id"] for s in two.get("/v1/sessions").json()["sessions"] if s["this"])
        assert one.delete(f"/v1/sessions/{other}").status_code == 204
        assert two.get("/v1/apps").status_code == 401
        assert one.delete(f"/v1/sessions/{other}").status_code == 404
        assert one.delete("/v1/sessions").json()["ended"] >= 1
        assert three.get("/v1/apps").status_code == 401
        assert len(one.get("/v1/sessions").json()["sessions"]) == 1


def test_programs_get_named_tokens_that_can_be_listed_and_ended(here: Running) -> None:
    with signed_in_client(here) as owner:
        made = owner.post("/v1/owner/tokens", json={"name": "backup", "days": 1}).json()
        with here.client(made["token"]) as program:
            assert program.get("/v1/apps").status_code == 200
            assert program.post("/v1/sign-out").status_code == 403
            with here.talk(made["token"], "/v1/live") as live:
                listed = {
                    t["id"]: t["name"] for t in owner.get("/v1/owner/tokens").json()["tokens"]
                }
                assert listed[made["id"]] == "backup"
                assert owner.delete(f"/v1/owner/tokens/{made['id']}").status_code == 204
                until_closed(live)
            assert program.get("/v1/apps").status_code == 401
        assert owner.delete(f"/v1/owner/tokens/{made['id']}").status_code == 404


@pytest.mark.parametrize("ends", [True, False])
def test_a_new_link_ends_sessions_where_the_owner_says_so_and_a_restart_ends_all(
    tmp_path: Path, ends: bool
) -> None:
    chosen = {"new_link_ends_sessions": ends, "port": free_port()}
    with running(tmp_path / "home", **chosen) as here:
        first, second = new_session(here), new_session(here)
        assert first.get("/v1/apps").status_code == (401 if ends else 200)
        assert second.get("/v1/apps").status_code == 200
    with running(tmp_path / "home", **chosen) as here:
        assert second.get("/v1/apps").status_code == 401
    first.close()
    second.close()


def test_an_end_that_could_not_be_written_is_in_force_and_written_later(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "a.sqlite"
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.database.patience_s = 0.1
        tokens = Tokens(ledger)
        token = tokens.issue("backup", "owner", time.time_ns() + HOUR_NS)
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("PRAGMA busy_timeout=5000")
        blocker.execute("BEGIN EXCLUSIVE")
        ledger.database.engine.dispose()
        with ledger.database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout=50")
        assert tokens.end_owner_token(tokens.live.id_of(token))
        assert not tokens.ends.write()
        blocker.execute("ROLLBACK")
        blocker.close()
        assert tokens.live.holder(token, time.time_ns()) is None
        assert tokens.check(token, time.time_ns()) is None, "not written yet, and in force"
        assert tokens.ends.write()
        assert Tokens(ledger).check(token, time.time_ns()) is None


def test_sessions_are_few_and_end_in_time() -> None:
    sessions = Sessions()
    all_of_them = [sessions.begin("Firefox", n, HOUR_NS) for n in range(MOST + 2)]
    assert len(sessions.listed(0)) == MOST
    assert sessions.check(all_of_them[0].secret, None, 0) is None
    last = all_of_them[-1]
    assert sessions.check(last.secret, [last.cookie], HOUR_NS - 1) is not None
    assert sessions.check(last.secret, [last.cookie], HOUR_NS) is None


# --- the theft, in a browser
# --------------------------------------------------------------------------------------------------


#: Runs in a page of the hostile origin: everything a page can try in the name of the browser's
#: owner.
TRIES = """async (service) => {
  const tried = {};
  const credentials = "include";
  const call = async (name, path, options) => {
    try {
      const answer = await fetch(service + path, { credentials, ...options });
      tried[name] = [answer.status, (await answer.text()).includes("apps")];
    } catch { tried[name] = "blocked"; }
  };
  await call("read", "/v1/apps", {});
  await call("read opaque", "/v1/apps", { mode: "no-cors" });
  await call("header", "/v1/apps", { headers: { "X-Gazeveil": "1" } });
  const session = { "X-Gazeveil-Session": "gvs_0000000000000000_x" };
  await call("session header", "/v1/apps", { headers: session });
  const form = { method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" } };
  await call("form", "/v1/consent", { ...form, body: '{"on": true}' });
  tried.storage = Object.keys(localStorage).length;
  tried.live = await new Promise((resolve) => {
    const socket = new WebSocket(service.replace("http", "ws") + "/v1/live");
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello" }));
    socket.onmessage = (event) => resolve(JSON.parse(event.data).code ?? event.data);
    socket.onclose = (event) => resolve(event.code);
  });
  return tried;
}"""


def test_a_server_on_another_port_steals_the_cookie_and_gets_nothing(
    browser: Any, process: Process, signed_in: dict[str, Any], other_origin: OtherOrigin
) -> None:
    context = browser.new_context(storage_state=signed_in)
    page = context.new_page()
    page.goto(process.address)
    page.wait_for_selector("#board:not([hidden])")
    # A link followed within the same host is same-site, whatever the port: the browser sends the
    # cookie.
    page.evaluate("address => { location.href = address }", f"{other_origin.address}/gift")
    page.wait_for_url(f"{other_origin.address}/gift")
    stolen = next(text for text in other_origin.cookies if text)
    assert "gazeveil_owner" in stolen, "the attack begins with a cookie that was seen"
    value = stolen.partition("=")[2]
    for headers in (
        {"Authorization": f"Bearer {value}"},
        {"Cookie": stolen},
        {"Cookie": stolen, "X-Gazeveil": "1"},
        {"Cookie": stolen, "X-Gazeveil": "1", "X-Gazeveil-Session": value},
        {"Authorization": f"Bearer {value}", "Cookie": stolen, "X-Gazeveil": "1"},
    ):
        with httpx.Client(base_url=process.address, headers=headers) as thief:
            assert thief.get("/v1/apps").status_code in (401, 403), headers
            assert thief.get("/v1/audit").status_code in (401, 403), headers
            assert thief.post("/v1/consent", json={"on": True}).status_code in (401, 403), headers
            assert thief.post("/v1/apps", json={"name": "thief"}).status_code in (401, 403), headers
            assert thief.post("/v1/apps/thief/grant", json={"preset": "study"}).status_code in (
                401,
                403,
            ), headers
    for hello in ({}, {"token": value}, {"session": value}):
        with Running(process.address, "").talk(
            None, "/v1/live", additional_headers={"Cookie": stolen}
        ) as talk:
            talk.say(type="hello", **hello)
            assert talk.hear()["type"] == "error"
    # The page of the hostile origin, in the signed-in browser.
    tried = page.evaluate(TRIES, process.address)
    assert tried["read"] == tried["header"] == tried["session header"] == "blocked"
    assert tried["read opaque"] in ("blocked", [0, False])
    assert tried["storage"] == 0
    assert tried["live"] == "origin"
    with httpx.Client(
        base_url=process.address,
        headers={"X-Gazeveil-Session": _secret(signed_in), "Cookie": stolen},
    ) as owner:
        assert owner.get("/v1/apps").json()["consent"] is False
    context.close()


def _secret(state: dict[str, Any]) -> str:
    return next(
        str(item["value"])
        for origin in state["origins"]
        for item in origin["localStorage"]
        if item["name"] == gatekeeper_browser.SESSION
    )


def test_a_replaced_cookie_locks_the_page_and_sharing_can_still_be_switched_off(
    desk: Any, other_origin: OtherOrigin
) -> None:
    desk.consent(True)
    page = desk.owner()
    page.evaluate("address => { location.href = address }", f"{other_origin.address}/replace")
    page.wait_for_url(f"{other_origin.address}/replace")
    page.goto(desk.process.address)
    page.wait_for_selector("#locked:not([hidden])")
    page.get_by_role("button", name="Switch sharing off").click()
    page.locator("#said", has_text="Sharing is off").wait_for()
    assert desk.api.get("/v1/apps").json()["consent"] is False


def test_the_secret_is_in_no_address_and_the_owner_signs_out_on_the_page(
    browser: Any, tmp_path: Path
) -> None:
    with Process(tmp_path / "home", free_port()) as started:
        context = browser.new_context()
        page = context.new_page()
        seen: list[str] = []
        page.on("framenavigated", lambda frame: seen.append(frame.url))
        page.goto(started.link)
        page.wait_for_selector("#board:not([hidden])")
        secret = page.evaluate(f"localStorage.getItem('{gatekeeper_browser.SESSION}')")
        assert secret
        assert not any(secret in address for address in seen)
        assert page.evaluate("document.cookie") == ""
        page.go_back()
        assert "key=" not in page.url
        page.goto(started.address)
        page.wait_for_selector("#sessions-list li")
        assert page.locator("#sessions-list li", has_text="this browser").count() == 1
        page.locator("#sign-out").click()
        page.wait_for_selector("#locked:not([hidden])")
        # The feed may end, and lock the page, before the answer to signing out is there.
        page.wait_for_function("localStorage.length === 0")
        assert context.cookies() == []
        page.reload()
        page.wait_for_selector("#locked:not([hidden])")
        context.close()
