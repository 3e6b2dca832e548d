"""The service as its apps and its owner meet it: real sockets, the real core, SQLite."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper import Policy
from gazeveil.gatekeeper.policy.presets import PRESETS
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import load_settings
from tests.support.gatekeeper_running import (
    ALL,
    GAUSSIAN,
    KALEIDO,
    Running,
    TrackerTalk,
    running,
    until,
)
from tests.support.more_time import with_more_time
from tests.support.stalls import SteadyClock


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("shared") / "home", queue_messages=16) as found:
        yield found


@pytest.fixture
def here(shared: Running) -> Running:
    """One service for all tests of this file, with no apps and no consent."""
    for app in shared.owner.get("/v1/apps").json()["apps"]:
        shared.owner.delete(f"/v1/apps/{app['app']}/token")
    assert shared.service is not None
    policy = shared.service.policy
    for app in policy.apps:
        policy = policy.without(app)
    shared.service.keeper.set_policy(policy)
    shared.owner.post("/v1/consent", json={"on": False})
    return shared


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
        assert here.owner.post(f"/v1/apps/{here.last}/revoke").json()["state"] == "revoked"
        tracker.send(180.0, 90.0)
        ended = talk.hear()
        assert (ended["type"], ended["id"], ended["code"]) == ("ended", 1, "revoked")
        tracker.send(180.0, 90.0)
        tracker.settle(here)
        talk.say(type="ping")
        assert talk.hear() == {"type": "pong"}
        assert talk.subscribe(2, what="samples", mechanism=KALEIDO)["code"] == "revoked"


def test_consent_off_ends_everything_and_refuses_everything(here: Running) -> None:
    token = here.app()
    with here.tracker() as tracker, here.talk(token) as talk:
        assert talk.subscribe(1, what="samples", mechanism=GAUSSIAN)["type"] == "subscribed"
        assert talk.subscribe(2, what="fixation")["type"] == "subscribed"
        assert talk.subscribe(3, what="tile")["type"] == "subscribed"
        here.owner.post("/v1/consent", json={"on": False})
        tracker.look(100.0, 90.0)
        ended = {talk.until("ended")["id"] for _ in range(3)}
        assert ended == {1, 2, 3}
        refused = talk.subscribe(4, what="tile")
        assert (refused["type"], refused["code"]) == ("refused", "no-consent")
        with here.client(token) as app:
            for path in ("/v1/tile", "/v1/areas"):
                answer = app.get(path)
                assert (answer.status_code, answer.json()["error"]["code"]) == (403, "no-consent")
            me = app.get("/v1/me").json()
            assert (me["consent"], me["state"]) == (False, "granted")
        here.owner.post("/v1/consent", json={"on": True})
        assert talk.subscribe(5, what="tile")["type"] == "subscribed"


def test_a_budget_runs_out_and_the_app_sees_why(here: Running) -> None:
    token = here.app(budgets={"epsilon": "2"})
    with here.tracker() as tracker, here.talk(token) as talk:
        talk.subscribe(1, what="samples", mechanism="kaleido-uniform:epsilon=1,w=10,r_deg=5")
        for _ in range(3):
            tracker.send(np.full(10, 180.0), 90.0)
        ended = talk.until("ended")
        assert ended["code"] == "budget"
        assert "epsilon" in ended["reason"]
        with here.client(token) as app:
            budget = app.get("/v1/me").json()["budgets"][0]
        assert (budget["limit"], budget["spent"], budget["remaining"]) == ("2", "2", "0")
        assert (
            talk.subscribe(2, what="samples", mechanism="kaleido-uniform:epsilon=1,w=10,r_deg=5")[
                "code"
            ]
            == "budget"
        )


def test_no_more_samples_come_than_were_paid_for(here: Running) -> None:
    token = here.app(budgets={"epsilon": "3"})
    got = 0
    with here.tracker() as tracker, here.talk(token) as talk:
        talk.subscribe(
            1, what="samples", mechanism="kaleido-uniform:epsilon=1,w=10,r_deg=5", encoding="binary"
        )
        for _ in range(10):
            tracker.send(np.full(7, 180.0), 90.0)
        while (message := talk.hear())["type"] != "ended":
            got += len(message["block"])
    assert got == 30


def test_binary_and_json_of_two_apps_are_the_same_stream(here: Running) -> None:
    first, second = here.app("first"), here.app("second")
    with here.tracker() as tracker, here.talk(first) as one, here.talk(second) as two:
        one.subscribe(7, what="samples", mechanism=GAUSSIAN, encoding="binary", batch=4)
        two.subscribe(9, what="samples", mechanism=GAUSSIAN, batch=2)
        halves = []
        for number in range(4):
            tracker.send(180.0, 90.0)
            tracker.settle(here)  # what comes while the core is busy may come together
            if number % 2:
                halves.append(two.until("samples"))
        binary = one.until("binary")
        assert (binary["id"], binary["sequence"], len(binary["block"])) == (7, 0, 4)
        assert [h["sequence"] for h in halves] == [0, 2]
        np.testing.assert_allclose(
            binary["block"].x_deg, halves[0]["x_deg"] + halves[1]["x_deg"], atol=1e-3
        )
        np.testing.assert_allclose(
            binary["block"].t_ns / 1e6, halves[0]["t_ms"] + halves[1]["t_ms"], atol=1e-3
        )
        assert not np.allclose(binary["block"].x_deg, 180.0, atol=1e-6)


def test_areas_events_and_tiles_over_http_and_websocket(here: Running) -> None:
    token = here.app()
    with here.tracker() as tracker, here.talk(token) as talk, here.client(token) as app:
        assert app.get("/v1/areas").json() == {"areas": []}
        made = app.post(
            "/v1/areas",
            json={
                "name": "shelf",
                "x_deg": 101.0,
                "y_deg": 80.0,
                "width_deg": 18.0,
                "height_deg": 20.0,
            },
        )
        assert made.status_code == 201
        area = made.json()
        assert (area["x_deg"], area["width_deg"]) == (
            100.0,
            20.0,
        )  # moved outward to the grid of 5 degrees
        for number, wish in enumerate(
            ({"what": "fixation"}, {"what": "saccade", "mode": "start-stop"}, {"what": "tile"}), 1
        ):
            assert talk.subscribe(number, **wish)["type"] == "subscribed"
        for place in (200.0, 110.0, 250.0, 110.0, 200.0):
            tracker.look(place, 90.0)
        tracker.look(30.0, 90.0, 1.0)
        tracker.settle(here)
        path = f"/v1/areas/{area['id']}"
        fixations = app.get(f"{path}/fixations").json()["fixations"]
        assert len(fixations) == 2
        assert all(
            (f["x_deg"], f["y_deg"]) == (112.5, 92.5)
            and f["t_ms"] % 100 == 0
            and f["duration_ms"] % 100 == 0
            for f in fixations
        )
        assert (
            app.get(f"{path}/fixations", params={"after": fixations[0]["number"]}).json()[
                "fixations"
            ]
            == fixations[1:]
        )
        assert (
            app.get(f"{path}/fixations", params={"limit": 1}).json()["fixations"] == fixations[:1]
        )
        assert app.get(f"/v1/fixations/{fixations[0]['number']}/dwell").json() == {
            "duration_ms": fixations[0]["duration_ms"]
        }
        assert len(app.get(f"{path}/saccades").json()["saccades"]) == 2
        metrics = app.get(f"{path}/metrics").json()
        assert (metrics["fixations"], metrics["visits"]) == (2, 2)
        counter = app.get(f"{path}/counter").json()
        assert counter["epsilon"] == "1"
        assert counter["guarantee"]["status"] == "proved"
        assert app.get("/v1/tile").json()["tile"] is not None
        heard: dict[str, list[dict[str, object]]] = {"event": [], "saccade-start": [], "tile": []}
        talk.say(type="ping")
        while (message := talk.hear())["type"] != "pong":
            heard[message["type"]].append(message)
        assert {m["kind"] for m in heard["event"]} == {"fixation", "saccade"}
        assert set(heard["saccade-start"][0]) == {"type", "id", "t_ms"}
        assert set(heard["tile"][0]) == {"type", "id", "tile", "t_ms"}
        assert app.delete(path).status_code == 204
        assert app.get(f"{path}/metrics").status_code == 404


def test_subscriptions_are_refused_with_a_reason(here: Running) -> None:
    token = here.app()
    with here.talk(token) as talk:
        cases = [
            ({"what": "samples", "mechanism": "none"}, "mechanism"),
            ({"what": "samples", "mechanism": "gaussian:sigma_deg=0.5"}, "parameter"),
            ({"what": "samples", "mechanism": "gaussian:sigma_deg=1e999999999"}, "mechanism"),
            ({"what": "samples", "mechanism": "kaleido:epsilon=1,w=60,r_deg=5"}, "mechanism"),
            ({"what": "fixation", "mode": "start-stop"}, "parameter"),
            ({"what": "pursuit", "mode": "start-stop"}, "parameter"),
        ]
        for number, (wish, code) in enumerate(cases):
            answer = talk.subscribe(number, **wish)
            assert (answer["type"], answer["code"]) == ("refused", code), (wish, answer)
            assert answer["reason"].endswith((".", ","))
        assert talk.subscribe(9, what="tile")["type"] == "subscribed"
        assert talk.subscribe(9, what="tile")["type"] == "refused"
        talk.say(type="unsubscribe", id=9)
        assert talk.until("ended")["id"] == 9
        talk.say(type="unsubscribe", id=9)
        assert talk.until("refused")["code"] == "unknown"


def test_a_slow_reader_loses_samples_and_the_others_do_not(here: Running) -> None:
    token, other = here.app("slow"), here.app("quick")
    mechanism = "kaleido-uniform:epsilon=1,w=1000,r_deg=5"
    with (
        here.tracker() as tracker,
        here.talk(token, max_queue=1, close_timeout=0.1) as slow,
        here.talk(other) as quick,
    ):
        slow.subscribe(1, what="samples", mechanism=mechanism, batch=500)
        quick.subscribe(1, what="samples", mechanism=mechanism, batch=500, encoding="binary")
        got = 0
        for _ in range(450):
            tracker.send(np.full(500, 180.0), 90.0)
            got += len(quick.hear()["block"])
        assert got == 225_000
        streams = {a["app"]: a["streams"] for a in here.owner.get("/v1/apps").json()["apps"]}
        assert streams["quick"][0]["dropped"] == 0
        assert streams["slow"][0]["dropped"] > 10_000
        assert here.service is not None
        assert all(
            len(connection._waiting) <= here.service.settings.limits.queue_messages
            for connection in here.service.broadcaster.connections
        )
        seen = 0
        while True:
            message = slow.hear()
            assert message["sequence"] == seen + message["dropped"]
            if message["dropped"]:
                break
            seen += len(message["t_ms"])
        assert here.service is not None
        assert here.service.broadcaster.samples_dropped >= message["dropped"]


def test_the_owner_sees_the_device_beside_what_apps_were_sent(here: Running) -> None:
    token = here.app()
    owner = here.owner.headers["Authorization"].removeprefix("Bearer ")
    with here.tracker() as tracker, here.talk(token) as talk, here.talk(owner, "/v1/live") as live:
        talk.subscribe(1, what="samples", mechanism=GAUSSIAN)
        tracker.send(123.0001, 45.0)  # no place of the noise's lattice
        raw, sent = {}, {}
        while not (raw and sent):
            message = live.hear()
            raw = message if message["type"] == "raw" else raw
            sent = message if message["type"] == "sent" else sent
        assert (raw["x_deg"], raw["y_deg"]) == ([123.0001], [45.0])
        assert (sent["app"], sent["what"], sent["mechanism"]) == (here.last, "samples", GAUSSIAN)
        assert sent["x_deg"] != [123.0001]
        with here.client(token) as app:
            area = app.post(
                "/v1/areas",
                json={
                    "name": "shelf",
                    "x_deg": 100,
                    "y_deg": 80,
                    "width_deg": 20,
                    "height_deg": 20,
                },
            ).json()
            app.get(f"/v1/areas/{area['id']}/metrics")
        while message.get("what") != "metrics":
            message = live.hear()
        assert (message["app"], message["area"]["name"]) == (here.last, "shelf")
        with pytest.raises(AssertionError), here.talk(token, "/v1/live"):
            pass  # an app is not let in
        here.owner.post("/v1/consent", json={"on": False})
        while message["type"] != "changed":
            message = live.hear()


def test_apps_tokens_and_asks_as_the_dashboard_reads_them(here: Running) -> None:
    token = here.app("shop", grant={"scopes": ["tile"]})
    with here.client(token) as app:
        assert app.post("/v1/ask", json={"want": "study"}).json() == {"state": "waiting"}
        assert app.get("/v1/me").json()["asked"]
    device = here.owner.get("/v1/apps").json()
    assert [p["name"] for p in device["presets"]] == list(PRESETS)
    space = {name: side for name, side in device["space"].items() if side is not None}
    assert space == {"kind": "sphere", "width_deg": 360.0, "height_deg": 180.0}
    (shop,) = device["apps"]
    assert (shop["app"], shop["has_token"], shop["state"], shop["grant"]["scopes"]) == (
        "shop",
        True,
        "granted",
        ["tile"],
    )
    (ask,) = here.owner.get("/v1/asks").json()["asks"]
    assert (ask["app"], ask["want"]) == ("shop", "study")
    granted = here.owner.post(
        "/v1/apps/shop/grant",
        json={"preset": "study", "budgets": {"epsilon": "5/2"}, "lasts": "until-stopped"},
    ).json()
    assert granted["grant"]["preset"] == "study"
    assert granted["grant"]["budgets"]["epsilon"] == "5/2"
    assert here.owner.get("/v1/asks").json() == {"asks": []}
    with here.client(token) as app:
        app.post("/v1/ask", json={"want": "count"})
    number = here.owner.get("/v1/asks").json()["asks"][0]["id"]
    assert here.owner.delete(f"/v1/asks/{number}").status_code == 204
    assert here.owner.delete(f"/v1/asks/{number}").status_code == 404
    with here.talk(token) as talk:
        fresh = here.owner.post("/v1/apps/shop/token").json()["token"]
        with pytest.raises(ConnectionClosed):
            talk.hear()
        assert talk.socket.close_code == 4001
    assert (
        httpx.get(here.address + "/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code
        == 401
    )
    assert (
        httpx.get(here.address + "/v1/me", headers={"Authorization": f"Bearer {fresh}"}).status_code
        == 200
    )
    assert here.owner.delete("/v1/apps/shop/token").status_code == 200
    assert (
        httpx.get(here.address + "/v1/me", headers={"Authorization": f"Bearer {fresh}"}).status_code
        == 401
    )


def test_what_the_owner_chose_is_there_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path / "home") as first:
        token = first.app(budgets={"epsilon": "7"})
        with first.tracker() as tracker, first.talk(token) as talk:
            talk.subscribe(1, what="samples", mechanism=KALEIDO)
            tracker.send(180.0, 90.0)
            talk.until("samples")
    with running(tmp_path / "home") as second:
        me = second.client(token).get("/v1/me").json()
        assert (me["state"], me["consent"]) == ("granted", True)
        assert me["budgets"][0]["spent"] == "1"
        second.owner.post(f"/v1/apps/{first.last}/revoke")
    with running(tmp_path / "home") as third:
        assert third.client(token).get("/v1/me").json()["state"] == "revoked"


def test_a_home_has_one_service_because_a_second_would_not_know_what_is_revoked(
    tmp_path: Path,
) -> None:
    with (
        running(tmp_path / "home"),
        pytest.raises(GazeveilError, match="Another service runs with the home folder"),
    ):
        Service(load_settings(home=tmp_path / "home", port=0, tracker="websocket"))
    with running(tmp_path / "home"):  # the first one has stopped
        pass


def test_a_policy_that_is_named_must_be_there_and_is_written(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(GazeveilError, match="does not exist"):
        Service(load_settings(home=tmp_path / "home", port=0, tracker="websocket", policy=path))
    path.write_text("consent = false\n")
    with running(tmp_path / "home", policy=path) as first:
        token = first.app(budgets={"epsilon": "7/3"})
        assert first.service is not None
        written = first.service.policy
    assert Policy.load(path) == written
    with running(tmp_path / "home", policy=path) as second:
        assert second.client(token).get("/v1/me").json()["budgets"][0]["limit"] == "7/3"


def test_the_certificate_says_what_is_promised_and_spent(here: Running) -> None:
    token = here.app(budgets={"epsilon": "9"})
    with here.tracker() as tracker, here.talk(token) as talk:
        talk.subscribe(1, what="samples", mechanism=KALEIDO)
        tracker.send(180.0, 90.0)
        talk.until("samples")
        answer = here.owner.get("/v1/certificate").json()
        text = here.owner.get("/v1/certificate", params={"format": "text"})
    assert text.headers["content-type"].startswith("text/plain")
    (app,) = answer["certificate"]["apps"]
    assert app["streams"][0]["guarantee"]["status"] == "proved"
    assert app["budgets"][0]["spent"] == "1"
    assert "It has spent 1 of 9 epsilon in all" in answer["text"]
    assert "Consent is on." in answer["text"]
    assert "At its weakest" in answer["text"]
    weakest = next(m for m in app["mechanisms"] if m["rule"].startswith("gaussian"))
    assert weakest["guarantee"]["numbers"]
    assert {"Consent is on.", "Not covered:"} <= set(text.text.splitlines())


def test_the_audit_log_grows_with_every_answer_and_verifies(here: Running) -> None:
    token = here.app()
    before = here.owner.get("/v1/audit", params={"last": 1}).json()["last"]
    with here.client(token) as app:
        app.get("/v1/tile")
        app.get("/v1/areas/77/metrics")
    page = here.owner.get("/v1/audit", params={"after": before, "verify": True}).json()
    assert page["verified"] is True
    assert [e["detail"]["what"] for e in page["entries"]] == ["current_tile", "metrics"]
    # The log holds a hash; the owner is shown the name beside it.
    assert {e["name"] for e in page["entries"]} == {here.last}
    assert all(here.last not in str({**e, "name": None}) for e in page["entries"])


def test_pages_and_health_are_open_and_carry_their_headers(here: Running) -> None:
    stranger = httpx.Client(base_url=here.address)
    for path in (
        "/",
        "/client.js",
        "/style.css",
        "/health",
        "/health/ready",
        "/openapi.json",
        "/lib/gaze.js",
    ):
        answer = stranger.get(path)
        assert answer.status_code == 200, path
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert httpx.get(here.address + "/client.js").headers["access-control-allow-origin"] == "*"
    health = httpx.get(here.address + "/health").json()
    assert health["live"]
    assert health["ready"]
    here.app("conspicuous")
    assert stranger.get("/metrics").status_code == 401
    page = here.owner.get("/metrics").text
    assert "gazeveil_tracker_samples_total" in page
    assert "gazeveil_requests" in page
    assert "conspicuous" not in page


def test_a_stranger_gets_401_403_or_404_everywhere_else(here: Running) -> None:
    stranger = httpx.Client(base_url=here.address)
    paths = stranger.get("/openapi.json").json()["paths"]
    closed = [
        (path, method)
        for path, methods in paths.items()
        for method in methods
        if path not in ("/health", "/health/ready")
    ]
    assert len(closed) > 20
    for path, method in closed:
        answer = stranger.request(method, re.sub(r"\{\w+\}", "1", path), json={})
        assert answer.status_code in (401, 403, 404), (method, path, answer.text)
    for path in (
        "/v1/raw",
        "/v1/",
        "/docs",
        "/redoc",
        "/../settings.py",
        "/%2e%2e/settings.py",
        "/server.py",
        "/.env",
        "/lib",
        "/v1/apps/../me",
    ):
        answer = stranger.get(path)
        assert answer.status_code in (401, 403, 404), path
        assert set(answer.json()["error"]) == {"code", "reason"}


def test_without_a_hello_the_connection_is_closed(tmp_path: Path) -> None:
    with running(tmp_path / "home", hello_s=1.0) as here, SteadyClock() as clock:
        with here.talk(None) as talk:
            assert talk.hear()["code"] == "hello"
            with pytest.raises(ConnectionClosed):
                talk.hear()
            assert talk.socket.close_code == 4001
        assert clock() < 4, "one second here, a minute elsewhere"


def test_origins_are_checked_for_pages_and_sockets(here: Running) -> None:
    answer = here.owner.post("/v1/apps", json={"name": "web", "origins": ["https://shop.example"]})
    here.owner.post("/v1/consent", json={"on": True})
    here.owner.post("/v1/apps/web/grant", json={"preset": "follow", "lasts": "until-stopped"})
    token = answer.json()["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    fine = httpx.get(here.address + "/v1/me", headers={**bearer, "Origin": "https://shop.example"})
    assert (fine.status_code, fine.headers["access-control-allow-origin"]) == (
        200,
        "https://shop.example",
    )
    foul = httpx.get(here.address + "/v1/me", headers={**bearer, "Origin": "https://evil.example"})
    assert (foul.status_code, foul.json()["error"]["code"]) == (403, "origin")
    # A page may read that it was refused, and nothing behind any other path.
    areas = httpx.get(
        here.address + "/v1/areas", headers={**bearer, "Origin": "https://evil.example"}
    )
    assert areas.status_code == 403
    assert "access-control-allow-origin" not in areas.headers
    assert (
        httpx.get(here.address + "/v1/me", headers={**bearer, "Origin": here.address}).status_code
        == 200
    )
    assert (
        httpx.options(
            here.address + "/v1/me", headers={"Origin": "https://shop.example"}
        ).status_code
        == 204
    )
    assert (
        httpx.options(
            here.address + "/v1/areas", headers={"Origin": "https://evil.example"}
        ).status_code
        == 403
    )
    with here.talk(token, origin="https://shop.example") as talk:
        talk.say(type="ping")
        assert talk.hear()["type"] == "pong"
    with (
        pytest.raises(AssertionError, match="origin"),
        here.talk(token, origin="https://evil.example"),
    ):
        pass
    assert httpx.get(here.address + "/health", headers={"Host": "evil.example"}).status_code == 403


def test_a_page_whose_origin_is_taken_off_the_list_is_shut_out_at_once(here: Running) -> None:
    """What it had subscribed to went on, and it could subscribe to more."""
    assert here.service is not None
    answer = here.owner.post("/v1/apps", json={"name": "page", "origins": ["https://a.example"]})
    here.owner.post("/v1/consent", json={"on": True})
    here.owner.post("/v1/apps/page/grant", json={"preset": "study", "lasts": "until-stopped"})
    path = here.service.settings.policy_path
    with here.talk(answer.json()["token"], origin="https://a.example") as talk:
        assert talk.subscribe(1, what="fixation")["type"] == "subscribed"
        path.write_text(path.read_text().replace("https://a.example", "https://b.example"))
        assert here.owner.post("/v1/policy/reload").status_code == 200
        assert talk.hear()["code"] == "origin"
        assert talk.subscribe(2, what="fixation")["code"] == "origin"


def test_events_of_the_tracker_that_vanishes_are_closed_and_streams_go_on(here: Running) -> None:
    token = here.app()
    with here.talk(token) as talk:
        talk.subscribe(1, what="samples", mechanism=KALEIDO)
        with here.tracker() as tracker:
            tracker.look(180.0, 90.0, 0.3)
            talk.until("samples")
            assert httpx.get(here.address + "/health").json()["tracker"]
            with here.tracker() as second:  # a new token ends the connection of the old one
                assert tracker.talk.until("error")["code"] == "token"
                second.look(180.0, 90.0, 0.1)
                talk.until("samples")
        until(lambda: not httpx.get(here.address + "/health").json()["tracker"])
        with here.tracker() as again:
            again.look(180.0, 90.0, 0.3)
            assert talk.until("samples")["dropped"] == 0


def test_a_tracker_sends_json_and_poses_and_mistakes_are_told_without_quotes(here: Running) -> None:
    token = here.app()
    tracker_token = here.owner.post("/v1/tracker/token").json()["token"]
    now = TrackerTalk.latest_ns + 10**9
    with here.talk(token) as talk, here.talk(tracker_token, "/v1/tracker") as tracker:
        talk.subscribe(1, what="samples", mechanism=GAUSSIAN)
        tracker.say(type="samples", t_ns=[now], x_deg=[100.0], y_deg=[90.0])
        assert talk.until("samples")["valid"] == [True]
        tracker.say(type="poses", t_ns=[now + 10**7], orientation=[[0.0, 0.1, 0.0, 0.99]])
        assert talk.until("samples")["valid"] == [True]
        tracker.say(type="samples", t_ns=[now + 2 * 10**7], x_deg=[None], y_deg=[90.0])
        assert talk.until("samples")["valid"] == [False]
        tracker.say(type="samples", t_ns=["now"], x_deg=[77.7777], y_deg=[90.0])
        assert "77.7777" not in tracker.until("error")["reason"]
        tracker.socket.send(b"\x01\x01garbage")
        tracker.until("error")
        tracker.say(type="lost")
        tracker.say(type="samples", t_ns=[now + 4 * 10**7], x_deg=[100.0], y_deg=[90.0])
        talk.until("samples")


def test_the_wrong_tracker_is_refused(here: Running) -> None:
    app = here.app()
    with pytest.raises(AssertionError, match="role"), here.talk(app, "/v1/tracker"):
        pass
    token = here.owner.post("/v1/tracker/token").json()["token"]
    with pytest.raises(AssertionError, match="role"), here.talk(token):
        pass
    for hello in (
        {"rate_hz": 60.0},
        {"rate_hz": -(10**400)},
        {
            "space": {
                "kind": "screen",
                "width_px": 1,
                "height_px": 1,
                "width_mm": 1,
                "height_mm": 1,
                "distance_mm": 1,
            }
        },
        {"space": 3},
    ):
        with here.talk(None, "/v1/tracker") as talk:
            talk.say(type="hello", token=token, **hello)
            assert talk.hear()["type"] == "error"
            with pytest.raises(ConnectionClosed):
                talk.hear()
    with here.talk(None, "/v1/tracker") as talk:
        talk.say(type="hello", token=token, rate_hz=120, space={"kind": "sphere"})
        assert talk.hear()["type"] == "welcome"


def test_expired_tokens_end_their_connections(here: Running) -> None:
    def work(lasts_s: float) -> None:
        here.app()
        assert here.service is not None
        expires_ns = time.time_ns() + round(lasts_s * 1e9)
        token = here.service.tokens.issue(here.last, "app", expires_ns)
        with here.talk(token) as talk:
            talk.subscribe(1, what="tile")
            assert talk.until("ended")["code"] == "expired"
            with pytest.raises(ConnectionClosed):
                talk.hear()
        assert here.client(token).get("/v1/me").status_code == 401

    with_more_time(work, 1.5, 6, 20)


def test_presets_of_the_policy_can_all_be_granted(here: Running) -> None:
    here.app("any", grant={"scopes": ["tile"]})
    for name in PRESETS:
        answer = here.owner.post("/v1/apps/any/grant", json={"preset": name})
        assert answer.json()["grant"]["preset"] == name
    for wrong in (
        {},
        {"preset": "everything"},
        {"preset": "follow", "grant": ALL},
        {"grant": {"scopes": ["raw"]}},
        {"grant": {**ALL, "budgets": {"epsilon": "1/0"}}},
    ):
        answer = here.owner.post("/v1/apps/any/grant", json=wrong)
        assert answer.status_code == 422, wrong
    assert here.owner.post("/v1/apps/nobody/grant", json={"preset": "follow"}).status_code == 404
    assert here.owner.post("/v1/apps", json={"name": "any"}).json()["error"]["code"] == "taken"


@pytest.mark.parametrize("how", ["off", "revoked", "wearer", "expired"])
def test_what_waits_of_a_stream_that_its_budget_ended_is_thrown_away_too(
    tmp_path: Path, how: str
) -> None:
    """A slow reader got it minutes after the owner had switched everything off."""
    with running(tmp_path / "home") as here:
        ends = time.time_ns() + 4 * 10**9 if how == "expired" else None
        token = here.app("shop", grant={**ALL, "expires_ns": ends})
        with here.talk(token) as talk, here.tracker() as tracker:
            assert talk.subscribe(1, what="samples", mechanism=KALEIDO)["type"] == "subscribed"
            assert here.service is not None
            (connection,) = here.service.broadcaster.of("shop")
            connection._sending = True  # as if the socket took no more
            tracker.send(np.full(60, 180.0), 90.0)
            tracker.settle(here)
            connection.end(connection.channels[1], "budget", "The budget is used up.")
            if how != "expired":
                assert any(waits.samples is not None for waits in connection._waiting), "paid for"
            if how == "off":
                here.owner.post("/v1/consent", json={"on": False})
            elif how == "revoked":
                here.owner.post("/v1/apps/shop/revoke")
            elif how == "wearer":
                here.owner.post("/v1/wearer", json={"name": "anna"})
            until(lambda: all(waits.samples is None for waits in tuple(connection._waiting)))
            connection._sending = False
            here.service.broadcaster.touch(connection)
            assert talk.hear()["type"] == "ended"
