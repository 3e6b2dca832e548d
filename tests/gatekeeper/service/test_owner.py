"""What the owner decides over HTTP, and who the owner is: signed calls, programs' tokens, asks,
policies, origins, the audit log.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastapi
import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper import Policy
from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.policy.grant import PRESETS
from gazeveil.gatekeeper.service import application, guard
from gazeveil.gatekeeper.service.asks import MOST_DISMISSALS, MOST_NEWCOMERS
from gazeveil.gatekeeper.service.credentials import Sessions, page_key
from gazeveil.gatekeeper.service.guard import SESSION_HEADER, WEB
from gazeveil.gatekeeper.service.settings import load_settings
from tests.support.gatekeeper_running import (
    GAUSSIAN,
    KALEIDO,
    PageKey,
    Running,
    Talk,
    TrackerTalk,
    running,
    sign_in,
    until,
)


@contextlib.contextmanager
def signed_in(here: Running, **options: Any) -> Iterator[httpx.Client]:
    client = sign_in(here.address, here.service.owner_link(here.address), **options)
    yield client
    client.close()


def until_closed(talk: Talk) -> int | None:
    """Hear what still comes until the service closes the socket; its code."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            talk.hear()
    return talk.socket.close_code


def key_of(client: httpx.Client) -> PageKey:
    assert isinstance(client.auth, PageKey)
    return client.auth


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# --- the session
# --------------------------------------------------------------------------------------------------


def test_the_link_works_once_and_reading_its_page_uses_nothing_up(here: Running) -> None:
    link = here.service.owner_link(here.address)
    for _ in range(3):  # as programs do that preview links
        page = httpx.get(link)
        assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
        assert "<script>" not in page.text
        assert "set-cookie" not in page.headers
    key, page_key = bearer(link.partition("key=")[2]), {"key": PageKey().public}
    nonsense = httpx.post(here.address + "/v1/sign-in", headers=key, json={"key": "AAAA"})
    assert nonsense.status_code == 422, "and the link is not used up"
    answer = httpx.post(here.address + "/v1/sign-in", headers=key, json=page_key)
    assert (answer.status_code, "set-cookie" in answer.headers) == (201, False)
    assert set(answer.json()) == {"id", "expires_ns"}
    assert httpx.get(link).status_code == 403
    late = httpx.post(here.address + "/v1/sign-in", headers=key, json=page_key)
    assert (late.status_code, late.json()["error"]["code"]) == (403, "link")


def test_a_call_is_signed_by_the_sessions_key_comes_in_time_and_works_once(here: Running) -> None:
    now_ms = time.time_ns() // 10**6
    with signed_in(here) as owner:
        key, stranger = key_of(owner), PageKey()
        stranger.session = key.session

        def code(signed: str, by: str = "GET", path: str = "/v1/apps", body: bytes = b"") -> str:
            headers = {SESSION_HEADER: signed}
            answer = httpx.request(by, here.address + path, headers=headers, content=body)
            return "" if answer.status_code == 200 else str(answer.json()["error"]["code"])

        off = b'{"on":false}'
        right = key.sign("POST", "/v1/consent", off)
        assert code(right, "POST", "/v1/consent", b'{"on":true }') == "session"
        assert code(right, "POST", "/v1/consent", off) == "used"
        for signed, wrong in (
            ("", "session"),
            (key.session, "session"),
            ("0" * 16 + right[16:], "session"),
            (stranger.sign("GET", "/v1/apps"), "session"),
            (key.sign("POST", "/v1/apps"), "session"),
            (key.sign("GET", "/v1/apps?x=1"), "session"),
            (key.sign("GET", "/v1/apps", t_ms=now_ms - 31_000), "late"),
            (key.sign("GET", "/v1/apps", t_ms=now_ms + 90_000), "late"),
            (key.sign("GET", "/v1/apps", number=5000), ""),
            (key.sign("GET", "/v1/apps", number=4990), ""),
            (key.sign("GET", "/v1/apps", number=5000), "used"),
            (key.sign("GET", "/v1/apps", number=4990), "used"),
            (key.sign("GET", "/v1/apps", number=100), "used"),
            (key.sign("GET", "/v1/apps", number=10**15 - 1), ""),
        ):
            assert code(signed) == wrong, signed
        for session, said in (
            ("", "session"),
            (stranger.sign("GET", "/v1/live"), "session"),
            (key.sign("GET", "/v1/live"), "used"),
            (key.sign("GET", "/v1/live", number=10**15 - 2), "welcome"),
        ):
            with here.talk(None, "/v1/live") as talk:
                talk.say(type="hello", session=session)
                heard = talk.hear()
                assert heard.get("code", heard["type"]) == said
        foreign = {"Origin": "http://127.0.0.1:1"}
        assert owner.get("/v1/apps", headers=foreign).status_code == 403


def test_nothing_of_a_session_or_a_token_is_on_the_disk(here: Running) -> None:
    secrets = [here.app(), here.owner.headers["Authorization"]]
    with signed_in(here) as owner:
        secrets += [key_of(owner).public, key_of(owner).session]
        files = [path for path in here.service.settings.home.iterdir() if path.is_file()]
        held = b"".join(path.read_bytes() for path in files if path.name != "tracker-token")
        assert not any(secret[-40:].encode() in held for secret in secrets)


def test_signing_out_and_a_new_link_end_the_session_and_its_live_view(here: Running) -> None:
    for signs_out in (True, False):
        with signed_in(here) as one, here.talk(None, "/v1/live") as live:
            live.say(type="hello", session=key_of(one).sign("GET", "/v1/live"))
            assert live.hear()["type"] == "welcome"
            assert not signs_out or one.post("/v1/sign-out").status_code == 204
            with signed_in(here) as two:
                assert until_closed(live) == 4001
                assert one.get("/v1/apps").status_code == 401
                assert two.get("/v1/owner/tokens").json()["yours_ends_ns"] > time.time_ns()


WEARERS = """
consent = true
apps.shop.scopes = ["select"]

[wearers.anna]
consent = true
apps.shop.scopes = ["select"]
"""


def test_the_owners_page_hears_what_the_owner_looks_at_and_no_other_wearer(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(WEARERS)
    lamp = {"name": "lamp", "x_deg": 140, "y_deg": 80, "width_deg": 10, "height_deg": 10}
    with running(tmp_path / "home", policy=tmp_path / "policy.toml") as here:
        owner = here.owner.headers["Authorization"].removeprefix("Bearer ")
        here.owner.post("/v1/wearer", json={"name": "owner"})
        token = here.owner.post("/v1/apps", json={"name": "shop"}).json()["token"]
        for wearer, lit in (("anna", []), ("owner", ["lamp", None, "lamp"])):
            here.owner.post("/v1/wearer", json={"name": wearer})
            heard: list[Any] = []
            with (
                here.tracker() as tracker,
                here.talk(owner, "/v1/live") as live,
                here.talk(token) as talk,
            ):
                assert talk.subscribe(1, what="select", targets=[lamp])["type"] == "subscribed"
                for x, y in ((230, 120), (145, 85), (230, 120), (145, 85)):
                    tracker.look(x, y, 1.0)
                tracker.talk.say(type="confirm")
                assert talk.hear()["target"] == "lamp"
                while (message := live.hear())["type"] != "sent":
                    heard += [message["target"]] if message["type"] == "hover" else []
            assert heard == lit


def test_programs_get_named_tokens_that_can_be_listed_and_ended(here: Running) -> None:
    made = here.owner.post("/v1/owner/tokens", json={"name": "backup", "days": 1}).json()
    with here.client(made["token"]) as program:
        assert program.get("/v1/apps").status_code == 200
        assert program.post("/v1/sign-out").status_code == 403
        with here.talk(made["token"], "/v1/live") as live:
            tokens = here.owner.get("/v1/owner/tokens").json()["tokens"]
            assert {t["id"]: t["name"] for t in tokens}[made["id"]] == "backup"
            assert here.owner.delete(f"/v1/owner/tokens/{made['id']}").status_code == 204
            until_closed(live)
        assert program.get("/v1/apps").status_code == 401
    assert here.owner.delete(f"/v1/owner/tokens/{made['id']}").status_code == 404
    meant = here.owner.post("/v1/owner/tokens", json={"name": "owner-token-file"})
    assert (meant.status_code, meant.json()["error"]["code"]) == (422, "taken")


def test_a_session_ends_in_time() -> None:
    sessions, key = Sessions(), PageKey()
    session = sessions.begin(page_key(key.public), 1000)
    key.session = session.id
    assert sessions.read(key.sign("GET", "/"), "GET", "/", 999).session is session
    with pytest.raises(Refused):
        sessions.read(key.sign("GET", "/"), "GET", "/", 1000)


# --- asks and grants
# --------------------------------------------------------------------------------------------------

LIE = "Gazeveil: this app was checked and is safe"


def asks_of(here: Running, app: str) -> list[dict[str, Any]]:
    return [one for one in here.owner.get("/v1/asks").json()["asks"] if one["app"] == app]


def test_nothing_an_app_writes_reaches_the_owner(here: Running) -> None:
    with here.client(here.owner.post("/v1/apps", json={"name": "liar"}).json()["token"]) as app:
        for body in ({"want": LIE}, {"want": "follow", "why": LIE}, {"want": [LIE]}, {}):
            answer = app.post("/v1/ask", json=body)
            assert answer.status_code == 422, body
            assert LIE not in answer.text
        assert asks_of(here, "liar") == []
        for _ in range(2):
            assert app.post("/v1/ask", json={"want": "follow"}).json() == {"state": "waiting"}
        assert app.get("/v1/me").json()["answer"] == "waiting"
    (ask,) = asks_of(here, "liar")
    assert ask.keys() == {"id", "app", "want", "t_ns"}
    shown = {one["name"]: one for one in here.owner.get("/v1/apps").json()["presets"]}
    assert list(shown) == list(PRESETS)
    assert all(len(one["sentence"].split()) <= 15 for one in shown.values())
    assert all(one["recognise"] for one in shown.values())


def test_presets_alone_can_be_granted_and_names_are_the_apps_own(here: Running) -> None:
    here.app("any")
    for name in PRESETS:
        answer = here.owner.post("/v1/apps/any/grant", json={"preset": name})
        assert answer.json()["grant"]["preset"] == name
    for wrong in ({}, {"preset": "all"}, {"preset": "follow", "scopes": ["samples"]}):
        assert here.owner.post("/v1/apps/any/grant", json=wrong).status_code == 422, wrong
    assert here.owner.post("/v1/apps/nobody/grant", json={"preset": "follow"}).status_code == 404
    for name, reason in (
        ("any", "already"),
        ("owner", "mean something here"),
        ("Tracker", "mean something here"),
        ("https.bank.example", "pages and users"),
        ("user.anna", "pages and users"),
        ("my shop!", "letters, digits, dots, dashes"),
    ):
        refused = here.owner.post("/v1/apps", json={"name": name})
        assert refused.status_code in (403, 422)
        assert reason in refused.json()["error"]["reason"]


def test_the_third_dismissal_blocks_also_after_a_restart_until_the_owner_lifts_it(
    tmp_path: Path,
) -> None:
    token = ""
    for number in range(MOST_DISMISSALS + 1):
        with running(tmp_path / "home") as here:
            token = token or here.owner.post("/v1/apps", json={"name": "nagger"}).json()["token"]
            with here.client(token) as app:
                answer = app.post("/v1/ask", json={"want": "follow"})
                if number < MOST_DISMISSALS:
                    here.owner.delete(f"/v1/asks/{asks_of(here, 'nagger')[0]['id']}")
                    continue
                assert (answer.status_code, answer.json()["error"]["code"]) == (403, "blocked")
                assert app.get("/v1/me").json()["blocked"]
                assert here.owner.get("/v1/apps").json()["apps"][0]["blocked"]
                assert not here.owner.post("/v1/apps/nagger/unblock").json()["blocked"]
                assert app.post("/v1/ask", json={"want": "follow"}).status_code == 200


def test_a_dropped_app_leaves_nothing_to_the_next_of_its_name_but_what_it_spent(
    here: Running, tracker: TrackerTalk
) -> None:
    token = here.app("gone")
    with here.talk(token) as talk, here.client(token) as app:
        talk.subscribe(1, what="samples", mechanism=KALEIDO)
        tracker.look(180, 90, 0.2)
        talk.until("samples")
        sides = {"x_deg": 90, "y_deg": 80, "width_deg": 20, "height_deg": 20}
        assert app.post("/v1/areas", json={"name": "a", **sides}).status_code == 201
        app.post("/v1/ask", json={"want": "study"})
        assert here.owner.delete("/v1/apps/gone").json() == {"app": "gone", "written": True}
        assert (until_closed(talk), app.get("/v1/me").status_code) == (4001, 401)
    assert (asks_of(here, "gone"), here.owner.delete("/v1/apps/gone").status_code) == ([], 404)
    second = here.app("gone", consent=False)
    with here.client(second) as app:
        assert app.get("/v1/areas").json() == {"areas": []}

        def spent() -> bool:  # figures follow the ledger within a second
            rows = app.get("/v1/me").json()["budgets"]
            return any(row["currency"] == "epsilon" and row["spent"] != "0" for row in rows)

        until(spent)  # deleting and adding must not give budget back
    third = here.owner.post("/v1/apps/gone/token").json()["token"]
    assert httpx.get(here.address + "/v1/me", headers=bearer(second)).status_code == 401
    assert httpx.get(here.address + "/v1/me", headers=bearer(third)).status_code == 200


# --- pages that bring no token
# --------------------------------------------------------------------------------------------------

SHOP = {"Origin": "https://shop.example"}
NAME = "https.shop.example"


def page_asks(here: Running, want: str = "follow", **headers: str) -> httpx.Response:
    return httpx.post(here.address + "/v1/ask", json={"want": want}, headers=headers or SHOP)


def me_of(here: Running, token: str) -> dict[str, Any]:
    return dict(httpx.get(here.address + "/v1/me", headers={**bearer(token), **SHOP}).json())


def test_a_page_asks_by_its_origin_and_a_thief_of_it_inherits_nothing(here: Running) -> None:
    here.owner.post("/v1/consent", json={"on": True})
    first = page_asks(here)
    assert first.headers["access-control-allow-origin"] == SHOP["Origin"]
    token = first.json()["token"]
    assert (first.json()["state"], me_of(here, token)["answer"]) == ("waiting", "waiting")
    (ask,) = asks_of(here, NAME)
    given = {"preset": "follow", "lasts": "visit", "ask": ask["id"]}
    with here.client(token) as app:
        assert app.get("/v1/tile", headers=SHOP).json()["error"]["code"] == "no-grant"
        assert here.owner.post(f"/v1/apps/{NAME}/grant", json=given).status_code == 200
        me = me_of(here, token)
        assert (me["state"], me["want"], me["answer"]) == ("granted", "follow", "granted")
        assert app.get("/v1/tile", headers=SHOP).json()["error"]["code"] == "scope"
        assert page_asks(here, **SHOP, **bearer(token)).json() == {"state": "granted"}
        assert '"origin"' in app.get("/v1/me", headers={"Origin": "https://evil.example"}).text
    thief = page_asks(here).json()["token"]  # a program that writes the page's origin
    assert me_of(here, thief)["state"] == "none"
    with here.client(thief) as app:
        assert app.get("/v1/tile", headers=SHOP).json()["error"]["code"] == "no-grant"
    # What the owner grants by hand answers no question, and a refused one gets nothing.
    here.owner.post(f"/v1/apps/{NAME}/grant", json={"preset": "study"})
    assert me_of(here, thief).get("state") != "granted"
    assert me_of(here, token)["want"] == "study"
    here.owner.delete(f"/v1/apps/{NAME}")


def test_a_refused_page_hears_it_and_an_unanswered_question_does_not_count(here: Running) -> None:
    for _ in range(MOST_DISMISSALS + 1):
        page = page_asks(here, "count").json()["token"]
        assert here.service.access_requests.sweep(time.time_ns() + 121 * 10**9)
        assert me_of(here, page)["answer"] == "dismissed"
    for _ in range(MOST_DISMISSALS):  # each time with the pass of the time before, which it keeps
        page = page_asks(here, "study", **SHOP, **bearer(page)).json()["token"]
        here.owner.delete(f"/v1/asks/{asks_of(here, NAME)[0]['id']}")
        assert me_of(here, page)["answer"] == "refused"
    assert page_asks(here, "study").json()["error"]["code"] == "blocked"

    def last(rows: int) -> list[tuple[Any, ...]]:
        page = here.owner.get("/v1/audit", params={"last": rows, "verify": True}).json()
        assert page["verified"] is True
        return [(row["kind"], row["name"], row["detail"]) for row in page["entries"]]

    # A no is a decision.
    assert last(MOST_DISMISSALS) == [("dismiss", NAME, {"want": "study"})] * MOST_DISMISSALS
    assert not here.owner.post(f"/v1/apps/{NAME}/unblock").json()["blocked"]
    ((lifted, _, _),) = last(1)
    assert lifted == "unblock"
    page = page_asks(here, "count", **SHOP, **bearer(page)).json()["token"]
    # A reload asks nothing twice.
    assert page_asks(here, "count", **SHOP, **bearer(page)).json() == {"state": "waiting"}
    here.owner.post(
        f"/v1/apps/{NAME}/grant",
        json={"preset": "count", "lasts": "visit", "ask": asks_of(here, NAME)[0]["id"]},
    )
    assert me_of(here, page)["want"] == "count", "a no is no end: a later yes lets the page in"
    here.owner.delete(f"/v1/apps/{NAME}")


def test_what_is_no_origin_asks_nothing_and_newcomers_that_wait_are_few(here: Running) -> None:
    for origin in (
        "null",
        "https://evil.example/x",
        "file://",
        "https://[::1]:8",
        "https://" + 60 * "a.",
    ):
        page = page_asks(here, "choose", Origin=origin)
        assert (page.status_code, page.json()["error"]["code"]) == (403, "origin"), origin
    assert httpx.post(here.address + "/v1/ask", json={"want": "choose"}).status_code == 401
    here.service.access_requests.sweep(time.time_ns() + 121 * 10**9)
    origins = [f"https://{number}.evil.example" for number in range(MOST_NEWCOMERS + 1)]
    assert [page_asks(here, "choose", Origin=origin).status_code for origin in origins] == [
        *[200] * MOST_NEWCOMERS,
        409,
    ]
    here.service.access_requests.sweep(time.time_ns() + 121 * 10**9)


# --- origins, pages and what strangers see
# --------------------------------------------------------------------------------------------------


def test_origins_are_checked_for_pages_and_sockets_and_a_change_counts_at_once(
    here: Running,
) -> None:
    """What it had subscribed to went on, and it could subscribe to more."""
    assert here.service is not None
    body = {"name": "web", "origins": [SHOP["Origin"]]}
    token = here.owner.post("/v1/apps", json=body).json()["token"]
    here.owner.post("/v1/consent", json={"on": True})
    here.owner.post("/v1/apps/web/grant", json={"preset": "study", "lasts": "until-stopped"})
    evil = {"Origin": "https://evil.example"}
    with here.client(token) as app:
        fine, foul = app.get("/v1/me", headers=SHOP), app.get("/v1/me", headers=evil)
        assert fine.headers["access-control-allow-origin"] == SHOP["Origin"]
        assert (foul.status_code, foul.json()["error"]["code"]) == (403, "origin")
        # A page may read that it was refused, and nothing behind any other path.
        areas = app.get("/v1/areas", headers=evil)
        assert areas.status_code == 403
        assert "access-control-allow-origin" not in areas.headers
        assert app.get("/v1/me", headers={"Origin": here.address}).status_code == 200
        assert app.options("/v1/me", headers=SHOP).status_code == 204
        assert app.options("/v1/areas", headers=evil).status_code == 403
    assert httpx.get(here.address + "/health", headers={"Host": "evil.example"}).status_code == 403
    with pytest.raises(AssertionError, match="origin"), here.talk(token, origin=evil["Origin"]):
        pass
    with here.talk(token, origin=SHOP["Origin"]) as talk:
        assert talk.subscribe(1, what="fixation")["type"] == "subscribed"
        text = here.owner.get("/v1/policy").text
        moved = text.replace(SHOP["Origin"], "https://b.example")
        assert here.owner.put("/v1/policy", content=moved).status_code == 200
        assert talk.hear()["code"] == "origin"
        assert talk.subscribe(2, what="fixation")["code"] == "origin"


@pytest.mark.parametrize(
    "origin",
    ["gaze.example", "https://gaze.example/", "ftp://a.b", "https://A.example", "https://*.b"],
)
def test_a_public_origin_that_no_browser_would_send_is_refused(origin: str) -> None:
    with pytest.raises(ParameterError, match="public_origin"):
        load_settings(public_origin=[origin])


def test_what_a_proxy_shows_is_the_services_own_and_no_header_says_so(tmp_path: Path) -> None:
    claims = {"Origin": "https://gaze.example", "X-Forwarded-Proto": "https"}
    with running(tmp_path / "home", public_origin=["https://gaze.example"]) as public:
        consent = {"json": {"on": True}}
        assert public.owner.post("/v1/consent", headers=claims, **consent).status_code == 200
        plain = {"Origin": "http://gaze.example"}
        assert public.owner.post("/v1/consent", headers=plain, **consent).status_code == 403
        assert public.service is not None
        link = public.service.owner_link(public.address)
        assert link.startswith("https://gaze.example/")
        key = {**claims, **bearer(link.partition("key=")[2])}
        signed = httpx.post(
            public.address + "/v1/sign-in", headers=key, json={"key": PageKey().public}
        )
        assert signed.status_code == 201
        for host, status in (("gaze.example", 200), ("evil.example", 403)):
            answer = httpx.get(public.address + "/health", headers={"Host": host})
            assert answer.status_code == status


def test_pages_and_the_client_are_open_and_carry_their_headers(here: Running) -> None:
    with httpx.Client(base_url=here.address, headers=SHOP) as stranger:
        scripts = ["/client.js", *(f"/lib/{path.name}" for path in (WEB / "lib").glob("*.js"))]
        for path in (*scripts, "/", "/style.css", "/health", "/health/ready", "/openapi.json"):
            answer = stranger.get(path)
            assert answer.status_code == 200, path
            policy = answer.headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy
            assert "default-src 'self'" in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            if path in scripts:
                assert answer.headers["access-control-allow-origin"] == "*", path
                assert answer.headers["content-type"] == "text/javascript; charset=utf-8", path
        for path in ("/dash/owner.js", "/dashboard.js", "/"):  # the owner's page is nobody else's
            assert "access-control-allow-origin" not in stranger.get(path).headers


def test_a_stranger_gets_401_403_or_404_everywhere_else(
    here: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stranger = httpx.Client(base_url=here.address)
    for module in (application, guard):  # an unknown path is no question to the disk
        monkeypatch.setattr(module, "WEB", tmp_path / "nowhere", raising=False)
    with running(tmp_path / "home") as other:
        assert httpx.get(other.address + "/nothing").json()["error"]["code"] == "unknown"
    monkeypatch.setattr(fastapi.FastAPI, "openapi", None)  # it is made once, not for each
    paths = stranger.get("/openapi.json").json()["paths"]
    closed = [
        (method, re.sub(r"\{\w+\}", "1", path))
        for path, methods in paths.items()
        for method in methods
        if not path.startswith("/health")
    ]
    assert len(closed) > 20
    closed += [
        ("GET", path)
        for path in ("/v1/raw", "/v1/", "/docs", "/metrics", "/../settings.py", "/.env", "/lib")
    ]
    for method, path in closed:
        answer = stranger.request(method, path, json={})
        assert answer.status_code in (401, 403, 404), (method, path, answer.text)
        if path != "/owner":
            assert set(answer.json()["error"]) == {"code", "reason"}


# --- policies, the audit log and the certificate
# --------------------------------------------------------------------------------------------------


def test_a_policy_is_imported_at_the_first_start_and_put_and_taken_out_whole(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('consent = true\n[apps.shop]\npreset = "follow"\n[wearers.anna]\n')
    with running(tmp_path / "home", policy=path) as here:
        unknown = here.owner.post("/v1/apps", json={"name": "shop"})
        assert unknown.status_code == 422, "one of two, and nobody said which"
        here.owner.post("/v1/wearer", json={"name": "owner"})
        token = here.owner.post("/v1/apps", json={"name": "shop"}).json()["token"]
        with here.client(token) as app:
            assert app.get("/v1/me").json()["state"] == "granted", "written for an app to come"
            taken = here.owner.get("/v1/policy").text
            assert set(Policy.parse(taken).wearers) == {"owner", "anna"}
            for wrong in (
                "consent = 'perhaps'",
                "[apps.x]\nscopes = ['raw']",
                "\x00",
                "[wearers]\nb = 1",
            ):
                assert here.owner.put("/v1/policy", content=wrong).status_code == 422, wrong
            less = taken.replace("consent = true", "consent = false", 1)
            assert here.owner.put("/v1/policy", content=less).json()["consent"] is False
            assert app.get("/v1/tile").json()["error"]["code"] == "no-consent"
        assert httpx.put(here.address + "/v1/policy", content=taken).status_code == 401
    path.write_text("consent = true\n")
    with running(tmp_path / "home", policy=path) as here:
        assert here.owner.get("/v1/policy").text == less, "the database has one now"


def test_the_certificate_and_the_audit_log_say_what_was_promised_given_and_spent(
    tmp_path: Path,
) -> None:
    with running(tmp_path / "home") as here, here.tracker() as tracker:
        token = here.app("shop", grant="study")
        with here.talk(token) as talk, here.client(token) as app:
            talk.subscribe(1, what="samples", mechanism="gaussian:sigma_deg=2")
            tracker.send(180.0, 90.0)
            talk.until("samples")
            before = here.owner.get("/v1/audit", params={"last": 1}).json()["entries"][-1]
            app.get("/v1/tile")
            app.get("/v1/areas/77/metrics")
            answer = here.owner.get("/v1/certificate").json()
            text = here.owner.get("/v1/certificate", params={"text": True})
        window = {"after": before["number"], "verify": True}
        page = here.owner.get("/v1/audit", params=window).json()
    (promised,) = answer["certificate"]["apps"]
    assert promised["open"][0]["guarantee"]["status"] == "proved"
    said = {
        "Consent is on.",
        "Raw samples, pupils, velocities and the tracker's own timing are never given",
        "finds them to about 0.07 degrees.",
        "Mechanism gaussian:sigma_deg=1.",
        "Open now: gaussian:sigma_deg=2.",
        "Not covered:",
    }
    assert all(words in text.text for words in said), text.text
    assert text.headers["content-type"].startswith("text/plain")
    assert answer["text"].splitlines()[2:] == text.text.splitlines()[2:]
    assert page["verified"] is True
    assert [e["detail"]["what"] for e in page["entries"]] == ["current_tile", "metrics"]
    assert {e["name"] for e in page["entries"]} == {"shop"}, "shown beside a hash"
    assert all("shop" not in str({**e, "name": None}) for e in page["entries"])


def test_the_owner_sees_the_device_beside_what_apps_were_sent(
    here: Running, tracker: TrackerTalk
) -> None:
    token, name = here.app(), here.last
    owner = here.owner.headers["Authorization"].removeprefix("Bearer ")
    with here.talk(token) as talk, here.talk(owner, "/v1/live") as live, here.client(token) as app:
        talk.subscribe(1, what="samples", mechanism=GAUSSIAN)
        until(lambda: here.service.broadcaster.viewers)  # welcomed a moment before it looks
        tracker.send(123.0001, 45.0)  # no place of the noise's lattice
        heard: dict[str, dict[str, Any]] = {}
        while not {"raw", "sent"} <= heard.keys():
            message = live.hear()
            heard[message["type"]] = message
        assert (heard["raw"]["x_deg"], heard["raw"]["y_deg"]) == ([123.0001], [45.0])
        assert ((sent := heard["sent"])["app"], sent["what"], sent["mechanism"]) == (
            name,
            "samples",
            GAUSSIAN,
        )
        assert sent["x_deg"] != [123.0001]
        sides = {"x_deg": 100, "y_deg": 80, "width_deg": 20, "height_deg": 20}
        area = app.post("/v1/areas", json={"name": "shelf", **sides}).json()
        app.get(f"/v1/areas/{area['id']}/metrics")
        while (message := live.hear()).get("what") != "metrics":
            continue
        assert (message["app"], message["area"]["name"]) == (name, "shelf")
        with pytest.raises(AssertionError), here.talk(token, "/v1/live"):
            pass  # an app is not let in
        here.owner.post("/v1/consent", json={"on": False})
        assert live.until("changed")
