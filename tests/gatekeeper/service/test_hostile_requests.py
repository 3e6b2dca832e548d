"""Requests and frames that are too large, malformed or made up."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import CHECKS
from websockets.exceptions import ConnectionClosed

from tests.support.attacked_service import STRANGER, here  # noqa: F401
from tests.support.gatekeeper_running import GAUSSIAN, Running, owner_token, running, until
from tests.support.more_time import with_more_time


def upgraded(here: Running, path: str) -> socket.socket:
    """A bare socket after the handshake, for frames that no client would send."""
    found = socket.create_connection(
        ("127.0.0.1", int(here.address.rpartition(":")[2])), timeout=30
    )
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13"
    found.sendall(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection:"
        f" Upgrade\r\n{key}\r\n\r\n".encode()
    )
    assert b" 101 " in found.recv(4096)
    return found


#: The head of a masked binary frame of 16 MB.
SIXTEEN_MB = b"\x82\xff" + (16 << 20).to_bytes(8, "big") + b"\x00\x00\x00\x00"


@pytest.mark.parametrize("path", ["/v1/stream", "/v1/tracker", "/v1/live"])
def test_a_frame_of_16_mb_closes_with_1009_before_it_has_come(here: Running, path: str) -> None:
    with upgraded(here, path) as bare:
        bare.sendall(SIXTEEN_MB)
        answer = bare.recv(4096)
    assert answer[0] == 0x88
    assert int.from_bytes(answer[2:4], "big") == 1009


def test_fragments_of_a_large_message_close_with_1009(here: Running) -> None:
    part = bytes(9_000)  # two are more than a message before the hello may have, each alone is not
    with upgraded(here, "/v1/stream") as bare:
        bare.sendall(b"\x02\xfe" + len(part).to_bytes(2, "big") + bytes(4) + part)
        # The head of the second is enough: more would meet a closed connection.
        bare.sendall(b"\x00\xfe" + len(part).to_bytes(2, "big") + bytes(4))
        answer = bare.recv(4096)
    assert (answer[0], int.from_bytes(answer[2:4], "big")) == (0x88, 1009)


def test_large_frames_do_not_grow_the_memory(here: Running) -> None:
    def resident_mb() -> float:
        return (
            int(Path("/proc/self/statm").read_text().split()[1])
            * os.sysconf("SC_PAGE_SIZE")
            / 2**20
        )

    chunk = bytes(1 << 16)
    before = resident_mb()
    for _ in range(10):
        with upgraded(here, "/v1/stream") as bare, contextlib.suppress(OSError):
            bare.sendall(SIXTEEN_MB)
            for _ in range(256):
                bare.sendall(chunk)
    assert resident_mb() - before < 16


def test_large_deep_and_wrong_bodies_are_refused_in_one_shape(here: Running) -> None:
    token = here.app()
    deep = b'{"name":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    bodies: list[tuple[bytes, int]] = [
        (b"x" * 70_000, 413),
        (deep, 400),
        (b"{", 400),
        (b"\xff\xfe\x00\x01", 400),
        (b"[]", 422),
        (b"null", 422),
        (b'{"name":"a"}', 422),
        (b'{"name":"a","x_deg":"90","y_deg":80,"width_deg":20,"height_deg":20}', 422),
        (b'{"name":"a","x_deg":NaN,"y_deg":80,"width_deg":20,"height_deg":20}', 422),
        (b'{"name":"a","x_deg":1e400,"y_deg":80,"width_deg":20,"height_deg":20}', 422),
        (b'{"name":"a","x_deg":true,"y_deg":80,"width_deg":20,"height_deg":20}', 422),
        (b'{"name":"a","x_deg":90,"y_deg":80,"width_deg":20,"height_deg":20,"raw":1}', 422),
        (
            b'{"name":"a","x_deg":' + b"9" * 6000 + b',"y_deg":80,"width_deg":20,"height_deg":20}',
            400,
        ),
    ]
    with here.client(token) as app:
        for body, status in bodies:
            answer = app.post(
                "/v1/areas", content=body, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code == status, (body[:60], answer.text)
            assert set(answer.json()["error"]) == {"code", "reason"}
        chunked = app.post("/v1/areas", content=(b"x" * 10_000 for _ in range(20)))
        assert chunked.status_code == 413
        assert app.get("/v1/areas").json() == {"areas": []}


def test_garbage_on_a_socket_is_answered_and_then_the_line_is_closed(here: Running) -> None:
    token = here.app()
    garbage = [
        b"\x00\xff" * 50,
        struct.pack("<BBHIQQ", 1, 1, 1, 2**32 - 1, 0, 0),
        b"[" * 10_000,
        b'{"type":"subscribe","id":"one"}',
        b"\xf0\x9f",
    ]
    with here.talk(token) as talk:
        for one in garbage[:4]:
            talk.socket.send(one)
            assert talk.hear()["code"] == "message"
        talk.socket.send(garbage[4])
        assert talk.until("error")["code"] == "message"
        with pytest.raises(ConnectionClosed):
            talk.hear()
        assert talk.socket.close_code == 1008
    rng = np.random.default_rng(7)
    for _ in range(30):
        with here.talk(None) as talk:
            talk.socket.send(rng.bytes(int(rng.integers(1, 300))))
            assert talk.hear()["code"] == "message"
    assert STRANGER.get(here.address + "/health").json()["live"]


def test_a_hello_cannot_be_said_twice_and_ids_are_the_connections_own(here: Running) -> None:
    mine, other = here.app(), here.app()
    with here.talk(mine) as me, here.talk(other) as they:
        assert me.subscribe(5, what="tile")["type"] == "subscribed"
        they.say(type="unsubscribe", id=5)
        assert they.until("refused")["code"] == "unknown"
        they.say(type="hello", token=mine)
        assert they.until("error")["code"] == "message"
        assert me.subscribe(6, what="tile")["type"] == "subscribed"


def test_what_was_sent_before_is_not_sent_again_to_who_subscribes_again(here: Running) -> None:
    """Replay: subscribing again costs again and begins with what comes then."""
    token = here.app(budgets={"rho": "1000000"})
    with here.client(token) as app, here.tracker() as tracker, here.talk(token) as talk:
        spent = []
        for number in (1, 2):
            talk.subscribe(number, what="samples", mechanism=GAUSSIAN)
            tracker.send(180.0, 90.0)
            assert talk.until("samples")["sequence"] == 0
            talk.say(type="unsubscribe", id=number)
            talk.until("ended")
            spent.append(app.get("/v1/me").json()["budgets"][0]["spent"])
    assert Fraction(spent[1]) > Fraction(spent[0])


def examine(here: Running, role: str, examples: int) -> int:
    """Throw made-up calls at every path; how many there were."""
    assert here.service is not None
    here.owner.post(
        "/v1/wearer", json={"name": "owner"}
    )  # made-up calls in the owner's name may have handed the device on
    token = here.app() if role == "app" else owner_token(here.service) if role == "owner" else ""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    schema = schemathesis.openapi.from_url(here.address + "/openapi.json")
    wanted = [
        CHECKS.get_one(n)
        for n in (
            "not_a_server_error",
            "status_code_conformance",
            "content_type_conformance",
            "response_schema_conformance",
        )
    ]
    paths = 0
    with requests.Session() as session:
        for found in schema.get_all_operations():
            operation = found.ok()
            paths += 1

            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy())
            def one(case: schemathesis.Case) -> None:
                response = case.call(session=session, headers={**(case.headers or {}), **headers})
                case.validate_response(response, checks=wanted)

            one()
    described = STRANGER.get(here.address + "/openapi.json").json()["paths"]
    assert paths == sum(len(methods) for methods in described.values())
    return paths


@pytest.mark.parametrize("role", ["stranger", "app", "owner"])
def test_made_up_calls_get_documented_answers_and_no_5xx(here: Running, role: str) -> None:
    assert examine(here, role, 5) > 40


@pytest.mark.heavy
@pytest.mark.timeout(2400)  # ten thousand calls, six minutes on a free machine
@pytest.mark.parametrize("role", ["app", "owner"])
def test_many_made_up_calls_get_documented_answers_and_no_5xx(here: Running, role: str) -> None:
    assert examine(here, role, 300) > 40


def test_the_description_names_every_status_that_the_handlers_give(here: Running) -> None:
    description = STRANGER.get(here.address + "/openapi.json").json()
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/v1"):
                assert {"401", "403", "404", "413", "422", "429", "503"} <= set(
                    operation["responses"]
                ), (method, path)
                assert operation["security"], (method, path)
            assert operation.get("description"), (method, path)
    assert re.search(r"raw gaze", description["info"]["description"])


def test_a_socket_that_says_nothing_more_is_closed_when_it_is_idle(tmp_path: Path) -> None:
    def work(idle_s: float) -> None:
        with running(tmp_path / f"home-{idle_s}", idle_s=idle_s) as here:
            token = here.app()
            with here.talk(token) as talk:
                assert talk.hear()["code"] == "idle"
            with here.talk(token) as talk:
                assert talk.subscribe(1, what="tile")["type"] == "subscribed"
                with pytest.raises(TimeoutError):
                    talk.hear(3 * idle_s)
            service = here.service
            assert service is not None
            until(lambda: not service.broadcaster.connections)

    with_more_time(work, 0.4, 3, 12)
