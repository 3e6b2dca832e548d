"""Hostile callers of the service: tokens, ids, adaptive rectangles, and a taint that must show up
nowhere.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from gazeveil.gatekeeper import DeviceLimits
from gazeveil.gatekeeper.logs import JsonLines, set_up
from gazeveil.gatekeeper.streams.billing import NOT_NOW
from tests.support.attacked_service import STRANGER, here  # noqa: F401
from tests.support.gatekeeper_running import GAUSSIAN, KALEIDO, Running, Talk, running, until


def get(here: Running, path: str, token: str) -> httpx.Response:
    return STRANGER.get(here.address + path, headers={"Authorization": f"Bearer {token}"})


def accounts(here: Running) -> dict[tuple[str | None, str], dict[str, str]]:
    """Budgets as the owner sees them."""
    return {
        (row["app"], row["currency"]): row
        for row in here.owner.get("/v1/budgets").json()["budgets"]
    }


def free(*names: str) -> list[dict[str, object]]:
    """Gaussian noise with values that no public list has, each named by the owner."""
    values = {
        "sigma_deg": "|".join(["2.01", *map(str, range(1, 16))]),
        "r_deg": "1|0.001",
        "w": "60|1",
    }
    return [{"name": "gaussian", "parameters": {name: ["in", values[name]] for name in names}}]


def test_a_tiny_r_in_the_text_of_a_mechanism_is_charged_like_any_other(here: Running) -> None:
    plain = here.app(mechanisms=free("sigma_deg", "r_deg", "w"))
    first = here.last
    sly = here.app(mechanisms=free("sigma_deg", "r_deg", "w"))
    with here.talk(plain) as one, here.talk(sly) as other:
        assert (
            one.subscribe(what="samples", mechanism="gaussian:sigma_deg=2")["type"] == "subscribed"
        )
        answer = other.subscribe(what="samples", mechanism="gaussian:sigma_deg=2,r_deg=0.001,w=1")
        found = accounts(here)
        assert found[here.last, "rho"]["spent"] == found[first, "rho"]["spent"]
        assert Fraction(found[here.last, "rho"]["spent"]) > 12
        assert (
            answer["guarantee"]["numbers"]["r_deg"]
            == get(here, "/v1/me", sly).json()["charged_r_deg"]
            == "1"
        )


def test_requests_that_are_refused_do_not_part_the_noise_of_two_apps(here: Running) -> None:
    tokens = [here.app(mechanisms=free("sigma_deg")) for _ in range(2)]
    poor = here.app(mechanisms=free("sigma_deg"), budgets={"rho": "1/1000000"})
    with (
        here.talk(tokens[0]) as one,
        here.talk(tokens[1]) as other,
        here.talk(poor) as third,
        here.tracker() as tracker,
    ):
        assert (
            one.subscribe(what="samples", mechanism="gaussian:sigma_deg=2", batch=1000)["type"]
            == "subscribed"
        )
        for number in range(12):
            assert (
                third.subscribe(
                    number, what="samples", mechanism=f"gaussian:sigma_deg={number + 3}"
                )["code"]
                == "budget"
            )
        assert (
            other.subscribe(what="samples", mechanism="gaussian:sigma_deg=2.01", batch=1000)["type"]
            == "subscribed"
        )
        tracker.send(np.full(1000, 180.0), 90.0)
        noise = np.array([one.until("samples")["x_deg"], other.until("samples")["x_deg"]]) - 180.0
    # 2.00 with a deviation of 0.045: six of them below is a false alarm in 10**9 runs.
    assert np.std(noise.mean(axis=0)) > 1.72, "independent noise would leave 1.42"
    assert np.corrcoef(noise)[0, 1] > 0.99


def test_nothing_an_app_can_ask_for_changes_while_another_spends_the_devices_budget(
    here: Running,
) -> None:
    assert here.service is not None
    keeper = here.service.keeper
    watcher, busy = here.app(), here.app()
    before_policy = keeper.policy
    now = time.time_ns()
    gone = here.service.ledger.spent(keeper.device_account, "epsilon", now)

    def seen() -> list[str]:
        own = [
            get(here, path, watcher).text
            for path in ("/v1/me", "/v1/areas", "/v1/budgets", "/v1/certificate", "/v1/apps")
        ]
        page = [STRANGER.get(here.address + "/metrics").text]
        with here.talk(watcher) as talk:
            refused = talk.subscribe(
                what="samples", mechanism="kaleido-uniform:epsilon=1,w=50,r_deg=5"
            )
        return [*own, "\n".join(page), str(refused)]

    try:
        keeper.set_policy(
            replace(before_policy, device=DeviceLimits(epsilon=gone + Fraction(1, 2)))
        )
        with here.talk(busy) as talk, here.tracker() as tracker:
            quiet = seen()
            keeper.set_policy(
                replace(before_policy, device=DeviceLimits(epsilon=gone + Fraction(7, 2)))
            )
            assert (
                talk.subscribe(what="samples", mechanism="kaleido-uniform:epsilon=1,w=10,r_deg=5")[
                    "type"
                ]
                == "subscribed"
            )
            tracker.send(np.full(100, 180.0), 90.0)
            ended = talk.until("ended")
            assert here.service.ledger.spent(keeper.device_account, "epsilon", now) == gone + 3
            assert seen() == quiet
            assert (ended["code"], ended["reason"]) == ("budget", NOT_NOW)
    finally:
        keeper.set_policy(before_policy)


def test_forged_and_stale_tokens_are_all_the_same_answer(here: Running) -> None:
    token = here.app()
    name = here.last
    tracker = here.owner.post("/v1/tracker/token").json()["token"]
    head, secret = token[: len("gv_app_") + 17], token[len("gv_app_") + 17 :]
    forged = [
        head + secret[:-1] + ("A" if secret[-1] != "A" else "B"),
        head + secrets.token_urlsafe(32),
        "gv_owner_" + token.removeprefix("gv_app_"),
        "gv_tracker_" + token.removeprefix("gv_app_"),
        "gv_app_" + tracker.removeprefix("gv_tracker_"),
        token.upper(),
        token + "=",
        token[:-1],
        "gv_app_" + "0" * 16 + "_" + secret,
        "' OR 1=1 --",
        "null",
        "x" * 250,
    ]
    answers = {get(here, "/v1/me", one).text for one in forged}
    assert {get(here, "/v1/me", one).status_code for one in forged} == {401}
    assert len(answers) == 1
    assert get(here, "/v1/me", token).status_code == 200
    assert get(here, "/v1/apps", token).status_code == 403
    assert get(here, "/v1/me", tracker).status_code == 403
    here.owner.delete(f"/v1/apps/{name}/token")
    assert get(here, "/v1/me", token).text == get(here, "/v1/me", forged[0]).text
    for one in (*forged[:4], token):
        with here.talk(None) as talk:
            talk.say(type="hello", token=one)
            assert talk.hear()["code"] == "token"


def test_guessing_is_throttled_and_honest_apps_go_on(tmp_path: Path) -> None:
    with running(tmp_path / "home", guesses_per_minute=10) as here:
        token = here.app()
        with here.client(token) as app:
            assert app.get("/v1/me").status_code == 200

            def guess(n: int) -> int:
                return get(here, "/v1/me", f"gv_app_{n:016x}_" + "A" * 43).status_code

            # One more is allowed every six seconds, which a busy machine may take.
            codes = [guess(n) for n in range(15)]
            assert codes[:10] == [401] * 10
            assert 429 in codes[10:]
            fresh = here.service.tokens.issue("other", "app", None) if here.service else ""
            assert (
                get(here, "/v1/me", fresh).status_code == 200
            )  # an app whose token was never used is not shut out by others' guesses
            assert app.get("/v1/me").status_code == 200
            assert here.owner.get("/v1/apps").status_code == 200
            assert here.service is not None
            link = here.service.owner_link(here.address)
            assert (
                httpx.get(link).status_code == 200
            )  # the owner cannot be locked out by somebody else's guesses
            assert (
                get(
                    here,
                    "/v1/me",
                    here.owner.post("/v1/apps", json={"name": "new"}).json()["token"],
                ).status_code
                == 200
            )

            def hello() -> str:
                with here.talk(None) as talk:
                    talk.say(type="hello", token="gv_app_guess")
                    return str(talk.hear()["code"])

            # The one that is allowed every six seconds may come between the two.
            until(lambda: guess(99) == 429)
            assert "guesses" in [hello() for _ in range(3)]


def test_too_many_requests_and_commands_are_refused(tmp_path: Path) -> None:
    with running(tmp_path / "home", requests_per_minute=40, commands_per_minute=5) as here:
        token = here.app()
        with here.talk(token) as talk:
            for _ in range(5):
                talk.say(type="ping")
            talk.say(type="ping")
            assert talk.until("error")["code"] == "rate"
            with pytest.raises(ConnectionClosed):
                talk.hear()
            assert talk.socket.close_code == 4029
        codes = [STRANGER.get(here.address + "/health").status_code for _ in range(60)]
        assert codes[0] == 200
        assert 429 in codes, "while some come back with time"


def test_an_app_sends_no_more_over_many_connections_than_over_one(tmp_path: Path) -> None:
    """With a hundred connections one app kept all threads busy, and others waited for theirs."""
    with running(tmp_path / "home", commands_per_minute=6) as here:
        token, other = here.app(), here.app()
        with here.talk(token) as one, here.talk(token) as two, here.talk(other) as third:
            for talk in (one, two):
                for _ in range(3):
                    talk.say(type="ping")
                    assert talk.hear()["type"] == "pong"
            two.say(type="ping")
            assert two.hear()["code"] == "rate"
            third.say(type="ping")
            assert third.hear()["type"] == "pong"


def test_an_app_holds_no_more_subscriptions_over_many_connections_than_it_may(
    tmp_path: Path,
) -> None:
    """Each event is told to all of them: with four thousand other apps waited for their samples."""
    with running(tmp_path / "home", subscriptions_per_app=3) as here:
        token, other = here.app(), here.app()
        with here.talk(token) as one, here.talk(token) as two, here.talk(other) as third:
            assert one.subscribe(1, what="tile")["type"] == "subscribed"
            assert one.subscribe(2, what="fixation")["type"] == "subscribed"
            assert two.subscribe(1, what="tile")["type"] == "subscribed"
            refused = two.subscribe(2, what="tile")
            assert (refused["code"], refused["reason"]) == (
                "rate",
                "An app may hold 3 subscriptions. End one first.",
            )
            assert third.subscribe(1, what="tile")["type"] == "subscribed"
            one.say(type="unsubscribe", id=1)
            assert one.until("ended")["id"] == 1
            assert two.subscribe(2, what="tile")["type"] == "subscribed"


def until_closed(talk: Talk) -> Iterator[dict[str, Any]]:
    """All that is said until the service hangs up."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            yield talk.hear()


@pytest.mark.parametrize("end", ["drop", "drop_token", "rotate"])
def test_a_connection_made_while_its_token_ends_does_not_outlive_it(
    here: Running, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """It stayed, as the app of that name, also where the next app of the name was somebody else's:
    those that were there when the token ended were closed, and it was not there yet.
    """
    service = here.service
    assert service is not None
    token, name = here.app(), here.last
    of_app = service.callers.of_app

    def slowly(*arguments: Any) -> Any:
        caller = of_app(*arguments)
        monkeypatch.setattr(service.callers, "of_app", of_app)
        if end == "rotate":
            assert here.owner.post(f"/v1/apps/{name}/token").status_code == 200
        else:
            getattr(service, end)(name)
        return caller

    monkeypatch.setattr(service.callers, "of_app", slowly)
    with here.talk(None) as talk:
        talk.say(type="hello", token=token)
        talk.say(type="ping")
        said = [message["type"] for message in until_closed(talk)]
        assert "pong" not in said
        assert talk.socket.close_code == 4001


def test_the_rate_of_the_grant_is_429_and_says_so(here: Running) -> None:
    token = here.app(calls_per_minute=3)
    with here.client(token) as app:
        answers = [app.get("/v1/tile") for _ in range(5)]
    assert [a.status_code for a in answers] == [200, 200, 200, 429, 429]
    assert answers[-1].json()["error"]["code"] == "rate"


def test_numbers_of_another_app_are_like_numbers_that_do_not_exist(here: Running) -> None:
    mine, other = here.app(), here.app()
    with here.client(mine) as me, here.client(other) as they, here.tracker() as tracker:
        area = me.post(
            "/v1/areas",
            json={"name": "a", "x_deg": 90, "y_deg": 80, "width_deg": 20, "height_deg": 20},
        ).json()["id"]
        tracker.look(200.0, 90.0)
        tracker.look(100.0, 90.0)
        tracker.look(200.0, 90.0, 1.0)
        tracker.settle(here)
        (fixation,) = me.get(f"/v1/areas/{area}/fixations").json()["fixations"]
        number = fixation["number"]
        for path in ("fixations", "saccades", "metrics", "counter"):
            hidden, missing = (
                they.get(f"/v1/areas/{area}/{path}"),
                they.get(f"/v1/areas/987654/{path}"),
            )
            assert (hidden.status_code, hidden.text) == (missing.status_code, missing.text)
            assert hidden.status_code == 404
        hidden, missing = (
            they.get(f"/v1/fixations/{number}/dwell"),
            they.get("/v1/fixations/987654/dwell"),
        )
        assert (
            (hidden.status_code, hidden.text)
            == (missing.status_code, missing.text)
            == (404, missing.text)
        )
        assert they.delete(f"/v1/areas/{area}").text == they.delete("/v1/areas/987654").text
        assert me.get(f"/v1/areas/{area}/metrics").status_code == 200
        assert me.get(f"/v1/fixations/{number}/dwell").status_code == 200


def test_shrinking_and_shifting_rectangles_learn_no_more_than_the_cell(here: Running) -> None:
    token = here.app(areas=1000)
    cells = set()
    with here.client(token) as app, here.tracker() as tracker:
        sizes = [(w, x) for w in (10.0, 10.0001, 15.0) for x in np.arange(86.0, 101.0, 1.37)]
        made = {}
        for width, x in sizes:
            answer = app.post(
                "/v1/areas",
                json={
                    "name": "a",
                    "x_deg": float(x),
                    "y_deg": 85.0,
                    "width_deg": width,
                    "height_deg": 10.0,
                },
            )
            assert answer.status_code == 201
            made[answer.json()["id"]] = answer.json()
        tiny = {"name": "a", "x_deg": 99.0, "y_deg": 85.0, "width_deg": 0.01, "height_deg": 0.01}
        area = app.post("/v1/areas", json=tiny).json()
        assert min(area["width_deg"], area["height_deg"]) >= 10.0, "widened, never smaller"
        for where in (97.2, 99.7):  # two places in one cell of 5 degrees
            tracker.look(200.0, 90.0)
            tracker.look(where, 91.0)
            tracker.look(200.0, 90.0, 1.0)
            tracker.settle(here)
            seen = {i: app.get(f"/v1/areas/{i}/fixations").json()["fixations"] for i in made}
            hits = frozenset(i for i, found in seen.items() if found)
            cells.add(
                (
                    hits,
                    frozenset((f["x_deg"], f["y_deg"]) for found in seen.values() for f in found),
                )
            )
    assert len(cells) == 1, "the two places can be told apart"
    assert next(iter(cells))[1] == {(97.5, 92.5)}


class Everything(logging.Handler):
    """Keeps every log line of every logger, as the service would write it and as any other
    formatter would.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self._json, self._plain = JsonLines(), logging.Formatter("%(message)s %(exc_text)s")

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self._json.format(record))
        self.lines.append(self._plain.format(record))


def test_recognisable_coordinates_show_up_in_no_answer_no_log_no_metric_and_no_error(
    tmp_path: Path,
) -> None:
    taint = ("123.4567", "67.8912")
    x, y = float(taint[0]), float(taint[1])
    logs, heard = Everything(), []
    root = logging.getLogger()
    with running(tmp_path / "home", log_level="debug") as here:
        set_up("debug")
        watched = [root, logging.getLogger("gazeveil"), logging.getLogger("uvicorn")]
        for logger in watched:
            logger.addHandler(logs)
        try:
            token = here.app()
            tracker_token = here.owner.post("/v1/tracker/token").json()["token"]
            with (
                here.client(token) as app,
                here.talk(token) as talk,
                here.talk(tracker_token, "/v1/tracker") as tracker,
            ):
                area = app.post(
                    "/v1/areas",
                    json={
                        "name": "a",
                        "x_deg": 110,
                        "y_deg": 55,
                        "width_deg": 30,
                        "height_deg": 30,
                    },
                ).json()["id"]
                wishes = (
                    {"what": "samples", "mechanism": GAUSSIAN},
                    {"what": "samples", "mechanism": KALEIDO, "encoding": "binary"},
                    {"what": "fixation"},
                )
                for number, wish in enumerate(
                    (*wishes, {"what": "saccade", "mode": "start-stop"}, {"what": "tile"}), 1
                ):
                    assert talk.subscribe(number, **wish)["type"] == "subscribed"
                step = 8_333_333
                for n in range(240):
                    at = (x, y) if (n // 60) % 2 == 0 else (x + 60, y)
                    tracker.say(
                        type="samples", t_ns=[10**9 + n * step], x_deg=[at[0]], y_deg=[at[1]]
                    )
                for bad in (
                    {"type": "samples", "t_ns": ["x"], "x_deg": [x], "y_deg": [y]},
                    {"type": "nonsense", "x_deg": x},
                ):
                    tracker.socket.send(json.dumps(bad))
                    heard.append(json.dumps(tracker.hear()))
                heard += [
                    app.get(f"/v1/areas/{area}/{path}").text
                    for path in ("fixations", "saccades", "metrics", "counter")
                ]
                numbers = [
                    f["number"] for f in app.get(f"/v1/areas/{area}/fixations").json()["fixations"]
                ]
                assert numbers, "the taint was looked at"
                heard += [
                    app.get(f"/v1/fixations/{numbers[0]}/dwell").text,
                    app.get("/v1/tile").text,
                    app.get("/v1/me").text,
                ]
                heard += [
                    app.post("/v1/areas", json={"name": "a", "x_deg": "b"}).text,
                    app.get(f"/v1/areas/{10**9}/metrics").text,
                ]
                talk.say(type="ping")
                while (message := talk.hear())["type"] != "pong":
                    block = message.pop("block", None)
                    if block is not None:
                        assert not (
                            np.isclose(block.x_deg, x, atol=2e-5)
                            & np.isclose(block.y_deg, y, atol=2e-5)
                        ).any()
                        message["numbers"] = [block.x_deg.tolist(), block.y_deg.tolist()]
                    heard.append(json.dumps(message))
                assert any('"type": "samples"' in m for m in heard)
                assert any('"type": "event"' in m for m in heard)
            for path in (
                "/metrics",
                "/health",
                "/v1/apps",
                "/v1/budgets",
                "/v1/audit?last=1000",
                "/v1/certificate",
                "/openapi.json",
            ):
                heard.append(here.owner.get(path).text)
        finally:
            root.removeHandler(logs)
            for name in ("gazeveil", "uvicorn"):
                logging.getLogger(name).handlers, logging.getLogger(name).propagate = [], True
    assert logs.lines
    files = [
        p.read_bytes().decode("latin-1") for p in (tmp_path / "home").rglob("*") if p.is_file()
    ]
    for text in (*heard, *logs.lines, *files):
        for word in taint:
            assert word not in text, text[:300]
    raw = struct.pack("<d", x)
    assert not any(raw.decode("latin-1") in text for text in files)
