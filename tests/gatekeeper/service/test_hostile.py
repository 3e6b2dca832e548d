"""Hostile callers of the service: texts that are slow to read, heads that never end, frames and
pings nobody reads, forged tokens, floods, and a taint that must show up nowhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import re
import secrets
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import ConnectionClosed

from gazeveil.gatekeeper import DeviceLimits, blocks
from gazeveil.gatekeeper.logs import JsonLines, set_up
from gazeveil.gatekeeper.service import guard, tracker_socket
from gazeveil.gatekeeper.service.accepting import PATIENCE
from gazeveil.gatekeeper.service.guard import KEYS, SESSION_HEADER, Buckets, depth
from gazeveil.gatekeeper.streams.billing import NOT_NOW
from tests.support.gatekeeper_running import (
    GAUSSIAN,
    KALEIDO,
    Process,
    Running,
    Talk,
    TrackerTalk,
    free_port,
    owner_token,
    running,
    sign_in,
    timeless,
    until,
)
from tests.support.more_time import with_more_time
from tests.support.stalls import SteadyClock

TEN = "kaleido-uniform:epsilon=1,w=10,r_deg=5"


def get(here: Running, path: str, token: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.get(here.address + path, headers=headers, timeout=60)


# --- texts
# --------------------------------------------------------------------------------------------------

#: Texts of 64 KB that made the reader of nesting slow, and others that might.
WORST = {
    "escaped quotes": b'"\\' * 32_768,
    "escaped backslashes": b'"\\\\' * 21_845,
    "quotes": b'"' * 65_535,
    "one open string after another": b'"a' * 32_767 + b"\\",
    "an open string of escapes": b'"' + b'\\"' * 32_767,
    "brackets": b"[" * 65_536,
    "brackets and quotes": b'["' * 32_768,
    "closing brackets": b"]}" * 32_768,
}


@pytest.mark.parametrize("name", WORST)
def test_one_post_of_64_kb_does_not_stop_the_service(here: Running, name: str) -> None:
    """The pattern before took up to 36 seconds of the processor for this."""
    started = time.process_time()
    headers = {"Content-Type": "application/json"}
    answer = httpx.post(here.address + "/v1/ask", content=WORST[name], headers=headers)
    assert answer.status_code in (400, 401, 422)
    assert time.process_time() - started < 5


@given(st.lists(st.sampled_from([b'"', b"\\", b"[", b"}", b"a", b"\n"]), max_size=40).map(b"".join))
def test_the_pattern_cannot_fail_after_a_quote_so_no_byte_is_read_twice(rest: bytes) -> None:
    found = guard._MARKS.match(b'"' + rest)
    # It ends at the first quote that no backslash hides, or at the end of the text.
    at, hidden = 0, False
    while at < len(rest) and (hidden or rest[at : at + 1] != b'"'):
        hidden = not hidden and rest[at : at + 1] == b"\\"
        at += 1
    assert found.end() == min(len(rest) + 1, at + 2)


def test_depth_counts_brackets_outside_of_text() -> None:
    texts = (b"", b"{}", b'"[[[["', b'["\\"[[",[]]', b'{"a":{"b":[1]}}', b"]]][", b'["[[', b'["\\')
    assert [depth(text) for text in texts] == [0, 1, 0, 2, 3, 1, 1, 1]


def test_others_cookies_are_thrown_away_before_anybody_looks(here: Running) -> None:
    """The usual reader of cookies took 1 to 2 s for quotes and escapes."""
    started = time.process_time()
    cookie = {"Cookie": 'a="' + '\\"' * 7_000 + '"'}
    assert httpx.get(here.address + "/v1/me", headers=cookie).status_code == 401
    assert time.process_time() - started < 1


def test_large_deep_and_wrong_bodies_are_refused_in_one_shape(here: Running) -> None:
    place = b'{"name":"a","x_deg":%s,"y_deg":80,"width_deg":20,"height_deg":20}'
    bodies: list[tuple[bytes, int]] = [
        (b"x" * 70_000, 413),
        (b'{"name":' + b"[" * 20_000 + b"]" * 20_000 + b"}", 400),
        *((text, 400) for text in (b"{", b"\xff\xfe\x00\x01", place % (b"9" * 6000))),
        *((text, 422) for text in (b"[]", b"null", b'{"name":"a"}')),
        *((place % text, 422) for text in (b'"90"', b"NaN", b"1e400", b"true", b'90,"raw":1')),
    ]
    with here.client(here.app()) as app:
        for body, status in bodies:
            headers = {"Content-Type": "application/json"}
            answer = app.post("/v1/areas", content=body, headers=headers)
            assert answer.status_code == status, (body[:60], answer.text)
            assert set(answer.json()["error"]) == {"code", "reason"}
        chunked = app.post("/v1/areas", content=(b"x" * 10_000 for _ in range(20)))
        assert (chunked.status_code, app.get("/v1/areas").json()) == (413, {"areas": []})


# --- heads, frames and pings
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    bounds = '{"head_s": 60, "ping_s": 60, "hello_s": 60}'
    folder = tmp_path_factory.mktemp("flood") / "home"
    with Process(folder, free_port(), GAZEVEIL_LIMITS=bounds) as started:
        assert httpx.get(started.address + "/health").status_code == 200
        yield started


def resident_mb(process: Process) -> float:
    """Memory of a process that is really there."""
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def bare(
    address: str, text: bytes = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "
) -> socket.socket:
    """A connection that sends the beginning of a head and waits."""
    made = socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=30)
    made.sendall(text)
    return made


def upgraded(address: str, path: str = "/v1/stream") -> socket.socket:
    """A WebSocket before its hello, as bare bytes."""
    head = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    )
    key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    one = bare(address, (head + key).encode())
    assert b" 101 " in one.recv(4096)
    return one


def frame(opcode: int, payload: bytes, fin: bool = True) -> bytes:
    """A frame of a client, masked with zeros."""
    head = struct.pack("!BB", (0x80 if fin else 0) | opcode, 0x80 | min(len(payload), 126))
    longer = struct.pack("!H", len(payload)) if len(payload) > 125 else b""
    return head + longer + bytes(4) + payload


def answer_of(one: socket.socket) -> bytes:
    """All that comes until the line is closed."""
    heard = b""
    with contextlib.suppress(OSError):
        while part := one.recv(65_536):
            heard += part
    return heard


REQUEST = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    "head",
    [
        REQUEST + b"X-A: " + b"a" * 20_000,
        REQUEST + b"a: b\r\n" * 4_000,
        b"GET /" + b"a" * 20_000,
        b"POST /v1/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"
        b"0\r\n" + b"X-A: b\r\n" * 4_000,
        b"\x16\x03\x01 this is not HTTP\r\n\r\n",
    ],
)
def test_heads_that_are_too_large_or_none_are_refused_and_the_line_closed(
    process: Process, head: bytes
) -> None:
    with bare(process.address, head) as one:
        assert b" 400 " in answer_of(one)


def test_requests_sent_ahead_wait_for_one_another_and_take_no_memory(process: Process) -> None:
    before = resident_mb(process)
    held = [bare(process.address, (REQUEST + b"\r\n") * 10_000) for _ in range(10)]
    grown = resident_mb(process) - before
    for one in held:
        assert b" 200 OK" in one.recv(4096)
        one.close()
    assert grown < 16, f"memory grew by {grown:.0f} MB"


ENDLESS = {
    "header bytes": (b"", b"a" * 65_536, 200),
    "a frame of 16 MB": (
        b"\x82\xff" + (16 << 20).to_bytes(8, "big") + bytes(4),
        b"a" * 65_536,
        200,
    ),
    "an unfinished message": (b"\x81\xff" + struct.pack("!Q", 60_000) + bytes(4), b"a" * 59_999, 1),
    "empty pieces of a message": (frame(1, b"a", False), frame(0, b"", False) * 10_000, 20),
    "pings": (b"", frame(9, b"x" * 125) * 512, 100),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_comes_without_end_does_not_grow_the_memory(process: Process, name: str) -> None:
    first, more, times = ENDLESS[name]
    before = resident_mb(process)
    opened = bare if name == "header bytes" else upgraded
    held = [opened(process.address) for _ in range(6)]
    for one in held:
        one.settimeout(0.2)
        with contextlib.suppress(OSError):
            one.sendall(first)
            for _ in range(times):  # never reads
                one.sendall(more)
    grown = resident_mb(process) - before
    for one in held:
        one.close()
    assert grown < 24, f"memory grew by {grown:.0f} MB"
    assert httpx.get(process.address + "/health").status_code == 200


@pytest.mark.parametrize("path", ["/v1/stream", "/v1/tracker", "/v1/live"])
def test_what_is_too_large_closes_with_1009_before_it_has_come(here: Running, path: str) -> None:
    large = b"\x82\xff" + (16 << 20).to_bytes(8, "big") + bytes(4)
    for sent in (large, frame(2, bytes(40_000), False) + frame(0, bytes(40_000))):
        with upgraded(here.address, path) as one:
            one.sendall(sent)
            answer = one.recv(4096)
        assert (answer[0], int.from_bytes(answer[2:4], "big")) == (0x88, 1009)


def test_a_sample_passes_no_queue_and_a_flood_of_them_does_and_nothing_overtakes(
    here: Running, tracker: TrackerTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued: list[str] = []
    long_way = WebSocketsSansIOProtocol.send_receive_event_to_app

    def noted(self: Any) -> None:
        queued.append(self.curr_msg_data_type)
        long_way(self)

    monkeypatch.setattr(WebSocketsSansIOProtocol, "send_receive_event_to_app", noted)

    def sample() -> bytes:
        TrackerTalk.latest_ns += tracker.step_ns
        return frame(2, blocks.pack(blocks.block(TrackerTalk.latest_ns, 180.0, 90.0)))

    t_ns: list[int] = []

    def send(*data: bytes) -> None:
        """Send at once, and hear all samples that were sent."""
        tracker.talk.socket.socket.sendall(b"".join(data))
        while not t_ns or t_ns[-1] < TrackerTalk.latest_ns - tracker.step_ns // 2:
            t_ns.extend(talk.until("binary")["block"].t_ns)

    with here.talk(here.app()) as talk:
        talk.subscribe(1, what="samples", mechanism=GAUSSIAN, encoding="binary")
        for _ in range(100):
            send(sample())
        assert queued.count("bytes") < 40, "the first ones are compiled and paid for elsewhere"
        lost, ping = (frame(1, b'{"type":"%s"}' % word) for word in (b"lost", b"ping"))
        for text in (lost, lost + ping):  # what goes before and after a text stays there
            send(*(sample() for _ in range(8)), text, sample())
        tracker.talk.until("pong")
        # What comes after half a message is the rest of it, and no sample, whatever it looks like.
        like = frame(2, blocks.pack(blocks.block(TrackerTalk.latest_ns + 9 * 10**8, 180.0, 90.0)))
        tracker.talk.socket.socket.sendall(ping + frame(2, bytes(9) + like)[:15])
        tracker.talk.until("pong")
        send(like, sample())
        before = len(queued)
        send(*(sample() for _ in range(60)))
        assert len(queued) - before >= 50, "a flood goes behind one another"
        assert queued.count("text") == 6, "the hello, the subscription, and four of the tracker"
    assert len(t_ns) == 179
    assert np.all(np.diff(t_ns) > 0)


def test_pings_that_are_read_are_all_answered_and_who_reads_nothing_is_cut(
    process: Process, here: Running
) -> None:
    count, heard = 5_000, bytearray()
    with upgraded(process.address) as one:

        def listen() -> None:
            with contextlib.suppress(OSError):
                while len(heard) < count * 127:
                    heard.extend(one.recv(1 << 16))

        reader = threading.Thread(target=listen)
        reader.start()
        one.sendall(frame(9, b"y" * 125) * count)
        reader.join(120)
    assert (len(heard), set(heard[::127])) == (count * 127, {0x8A})
    peers = here.service.peers
    with upgraded(here.address) as one:
        one.settimeout(2)
        with contextlib.suppress(OSError):
            while True:
                one.send(frame(9, b"x" * 125) * 512)
        until(lambda: not peers.strangers, 30)


def test_a_head_has_a_deadline_and_so_has_silence(tmp_path: Path) -> None:
    def work(head_s: float) -> None:
        with running(tmp_path / f"home-{head_s}", head_s=head_s) as here, SteadyClock() as clock:
            for begun in (b"GET /he", b"", REQUEST + b"\r\n"):
                with bare(here.address, begun) as slow, contextlib.suppress(OSError):
                    before = clock()
                    if begun.endswith(b"\r\n\r\n"):
                        assert b"200 OK" in slow.recv(65_536)
                    while slow.send(b"\r\n" if begun.endswith(b"\n") else b"a"):
                        time.sleep(0.1)
                        assert clock() - before < head_s + 3

    with_more_time(work, 0.5, 3, 15)


def test_half_heads_do_not_lock_the_owner_out(tmp_path: Path) -> None:
    with running(tmp_path / "home", head_s=120, strangers=24, strangers_per_address=12) as here:
        owner = here.owner.headers["Authorization"].removeprefix("Bearer ")
        with here.talk(here.app()) as talk, here.talk(owner, "/v1/live") as live:
            held = [bare(here.address, b"" if n % 2 else b"GET / HTTP") for n in range(60)]
            headers = {"Authorization": f"Bearer {owner}"}
            consent = here.address + "/v1/consent"
            assert httpx.post(consent, json={"on": False}, headers=headers).status_code == 200
            assert get(here, "/").status_code == 200
            assert len(here.service.peers.strangers) <= 12
            # Connections that are known are not closed for strangers.
            talk.say(type="ping")
            assert talk.until("pong")
            live.socket.ping().wait(30)
            for one in held:
                one.close()


def test_what_says_nothing_more_is_closed_unless_it_is_a_known_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that waits for pauses alone was closed after two minutes, and read that gaze had
    stopped.
    """
    timeout, patience = asyncio.timeout, tracker_socket.IDLE_S

    def work(idle_s: float) -> None:
        monkeypatch.setattr(tracker_socket, "IDLE_S", idle_s)
        monkeypatch.setattr(asyncio, "timeout", lambda s: timeout(idle_s if s == patience else s))
        home = tmp_path / f"home-{idle_s}"
        with running(home, hello_s=2 * idle_s) as here, SteadyClock() as clock:
            token = here.app()
            with here.talk(token) as talk, here.talk(None) as silent:
                assert silent.hear()["code"] == "hello"
                with pytest.raises(ConnectionClosed):
                    silent.hear()
                assert silent.socket.close_code == 4001
                with here.tracker() as tracker:
                    assert tracker.talk.until("error")["code"] == "idle"
                assert clock() < 10 * idle_s + 2
                talk.say(type="ping")
                assert talk.hear()["type"] == "pong"

    with_more_time(work, 0.4, 3, 12)


# --- tokens and budgets of others
# --------------------------------------------------------------------------------------------------


def test_forged_and_stale_tokens_are_all_the_same_answer(here: Running) -> None:
    token, name = here.app(), here.last
    tracker = here.service.new_tracker_token()
    head, secret = token[:24], token[24:]
    forged = [
        token[:-1] + "AB"[token[-1] == "A"],
        head + secrets.token_urlsafe(32),
        *(token.replace("gv_app_", f"gv_{role}_") for role in ("owner", "tracker", "link")),
        tracker.replace("gv_tracker_", "gv_app_"),
        *(token.upper(), token + "=", token[:-1], "gv_app_" + "0" * 16 + "_" + secret),
        *("' OR 1=1 --", "null", "x" * 250),
    ]

    def answer(one: str) -> tuple[int, str]:
        found = get(here, "/v1/me", one)
        return found.status_code, found.text

    answers = set(map(answer, forged))
    assert get(here, "/v1/me", token).status_code == 200
    assert (
        get(here, "/v1/apps", token).status_code == get(here, "/v1/me", tracker).status_code == 403
    )
    here.owner.delete(f"/v1/apps/{name}")
    assert (answers, answer(token)[0]) == ({answer(token)}, 401)
    for one in (*forged[:4], token):
        with here.talk(None) as talk:
            talk.say(type="hello", token=one)
            assert talk.hear()["code"] == "token"


def test_nothing_an_app_can_ask_for_changes_while_another_spends_the_devices_budget(
    here: Running,
) -> None:
    keeper, ledger = here.service.keeper, here.service.ledger
    watcher, busy = here.app(), here.app()
    before, now = keeper.policy, time.time_ns()
    account = keeper.state.account(None)
    gone = ledger.spent(account, "epsilon", now)

    def seen() -> list[str]:
        paths = ("/v1/me", "/v1/areas", "/v1/budgets", "/v1/certificate", "/v1/apps", "/health")
        with here.talk(watcher) as talk:
            refused = talk.subscribe(what="samples", mechanism=TEN.replace("10", "50"))
        return [*(timeless(get(here, path, watcher).text) for path in paths), str(refused)]

    def leave(epsilon: Fraction) -> None:
        keeper.set_policy(replace(before, device=DeviceLimits(epsilon=gone + epsilon)))

    try:
        leave(Fraction(1, 2))
        with here.talk(busy) as talk, here.tracker() as tracker:
            quiet = seen()
            leave(Fraction(7, 2))
            assert talk.subscribe(what="samples", mechanism=TEN)["type"] == "subscribed"
            tracker.send(np.full(100, 180.0), 90.0)
            ended = talk.until("ended")
            assert ledger.spent(account, "epsilon", now) == gone + 3
            assert seen() == [text.replace('"tracker":false', '"tracker":true') for text in quiet]
            assert (ended["code"], ended["reason"]) == ("budget", NOT_NOW)
    finally:
        keeper.set_policy(before)


@pytest.mark.parametrize("end", ["drop", "rotate"])
def test_a_connection_made_while_its_token_ends_does_not_outlive_it(
    here: Running, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """It stayed, as the app of that name, also where the next app of the name was somebody else's:
    those that were there when the token ended were closed, and it was not there yet.
    """
    service, token, name = here.service, here.app(), here.last
    app_caller = service.app_caller

    def slowly(*arguments: Any) -> Any:
        caller = app_caller(*arguments)
        monkeypatch.setattr(service, "app_caller", app_caller)
        if end == "rotate":
            service.tokens.issue(name, "app", None, in_place_of_others=True)
        else:
            service.drop(name)
        return caller

    monkeypatch.setattr(service, "app_caller", slowly)
    with here.talk(None) as talk:
        talk.say(type="hello", token=token)
        talk.say(type="ping")
        said = []
        with contextlib.suppress(ConnectionClosed):
            while True:
                said.append(talk.hear()["type"])
        assert "pong" not in said
        assert talk.socket.close_code == 4001


def test_shrinking_and_shifting_rectangles_learn_no_more_than_the_cell(here: Running) -> None:
    cells = set()
    with here.client(here.app(areas=1000)) as app, here.tracker() as tracker:
        made = []
        for width in (0.01, 10.0, 10.0001, 15.0):
            for x in np.arange(86.0, 101.0, 1.37):
                sides = {"x_deg": float(x), "y_deg": 85.0, "width_deg": width, "height_deg": 10.0}
                made.append(app.post("/v1/areas", json={"name": "a", **sides}).json())
        assert min(area["width_deg"] for area in made) >= 10.0, "widened, never smaller"
        for where in (97.2, 99.7):  # two places in one cell of 5 degrees
            for x in (200.0, where, 200.0, 200.0):
                tracker.look(x, 91.0)
            tracker.settle(here)
            found = [app.get(f"/v1/areas/{a['id']}/fixations").json()["fixations"] for a in made]
            places = frozenset((f["x_deg"], f["y_deg"]) for seen in found for f in seen)
            cells.add((tuple(map(bool, found)), places))
    ((_, places),) = cells
    assert places == {(97.5, 92.5)}, "the two places cannot be told apart"


# --- floods
# --------------------------------------------------------------------------------------------------


def test_a_bucket_gives_its_burst_and_then_its_rate_and_invented_keys_fill_nothing() -> None:
    now = [0.0]
    buckets = Buckets(60, clock=lambda: now[0])
    assert sum(buckets.take("a") for _ in range(100)) == 60
    now[0] = 5.0
    assert sum(buckets.take("a") for _ in range(100)) == 5
    now[0] = 4.0  # a clock that goes back gives nothing
    assert not buckets.take("a")
    for number in range(KEYS + 500):
        buckets.take(str(number))
    assert len(buckets) == KEYS


def test_too_much_of_one_caller_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    """With a hundred connections one app kept all threads busy, and others waited for theirs."""
    chosen = {"requests_per_minute": 40, "commands_per_minute": 6, "subscriptions_per_app": 3}
    with running(tmp_path / "home", **chosen) as here:
        token, other = here.app(calls_per_minute=3), here.app()
        with here.client(token) as app:
            answers = [app.get("/v1/tile") for _ in range(5)]
            assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
            assert answers[-1].json()["error"]["code"] == "rate", "of its grant"
            assert 429 in [app.get("/v1/me").status_code for _ in range(60)]
        assert get(here, "/v1/me", other).status_code == 200
        # Each event is told to all subscriptions, so they are counted over all connections.
        with here.talk(other) as one, here.talk(other) as two:
            assert one.subscribe(1, what="tile")["type"] == "subscribed"
            assert one.subscribe(2, what="tile")["type"] == "subscribed"
            assert two.subscribe(1, what="tile")["type"] == "subscribed"
            refused = two.subscribe(2, what="tile")
            assert refused["reason"] == "An app may hold 3 subscriptions. End one first."
            for _ in range(3):
                two.say(type="ping")
            assert two.until("error")["code"] == "rate"
            with pytest.raises(ConnectionClosed):
                two.hear()
            assert two.socket.close_code == 4029


@contextlib.contextmanager
def flood(address: str, token: str) -> Iterator[list[int]]:
    """Requests of a stranger on this machine, as fast as they go; their answers."""
    codes: list[int] = []
    stop = threading.Event()

    def run() -> None:
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=address, headers=headers, timeout=30) as stranger:
            while not stop.is_set():
                with contextlib.suppress(httpx.HTTPError):
                    codes.append(stranger.get("/v1/me").status_code)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield codes
    finally:
        stop.set()
        thread.join(30)


def test_under_a_flood_the_owner_switches_off_with_the_first_press_and_a_new_app_connects(
    tmp_path: Path,
) -> None:
    chosen = {"requests_per_minute": 60, "port": free_port()}
    shop = {"name": "page", "origins": ["https://shop.example"]}
    with running(tmp_path / "home", **chosen) as here:
        token = here.app("honest")
        page = here.owner.post("/v1/apps", json=shop).json()["token"]
    # Nothing is remembered from requests before: the flood is there before anybody else.
    with running(tmp_path / "home", **chosen) as here:
        browser = sign_in(here.address, here.service.owner_link(here.address))
        garbage = "gv_app_" + "0" * 16 + "_" + "A" * 43
        forged = token[:24] + "A" * 43  # the honest app's own id, with a wrong secret
        with flood(here.address, garbage) as codes, flood(here.address, forged) as more:
            until(lambda: 429 in codes and 429 in more, 30)
            off = browser.post("/v1/consent", json={"on": False})
            assert off.status_code == 200, "the first press"
            assert browser.get("/").status_code == 200, "the owner's own page"
            assert get(here, "/v1/me", token).status_code == 200
            of_page = {"Authorization": f"Bearer {page}", "Origin": shop["origins"][0]}
            assert httpx.get(here.address + "/v1/me", headers=of_page).status_code == 200
            with here.talk(token) as talk:
                talk.say(type="ping")
                assert talk.until("pong")
            browser.close()
            browser = sign_in(here.address, here.service.owner_link(here.address))
            assert browser.get("/v1/apps").status_code == 200, "a new link under the flood"
        # The session's name opens no quota.
        seen = {SESSION_HEADER: browser.auth.sign("GET", "/")}
        with httpx.Client(base_url=here.address, headers=seen) as thief:
            assert [thief.get("/").status_code for _ in range(60)] == [200] * 60
            assert 429 in [thief.get("/health").status_code for _ in range(90)]
        assert browser.post("/v1/consent", json={"on": False}).status_code == 200
        browser.close()


# --- nonsense
# --------------------------------------------------------------------------------------------------


def examine(here: Running, role: str, examples: int) -> int:
    """Throw made-up calls at every path; how many there were."""
    assert here.service is not None
    token = {"app": here.app(), "owner": owner_token(here.service)}.get(role, "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    schema = schemathesis.openapi.from_url(here.address + "/openapi.json")
    names = ("not_a_server_error", "status_code_conformance", "response_schema_conformance")
    wanted, paths = [CHECKS.get_one(name) for name in names], 0
    quiet: dict[str, Any] = {"deadline": None, "database": None}
    quiet["suppress_health_check"] = list(HealthCheck)
    with requests.Session() as session:
        for found in schema.get_all_operations():
            operation = found.ok()
            paths += 1

            @settings(max_examples=examples, **quiet)
            @given(case=operation.as_strategy())
            def one(case: schemathesis.Case) -> None:
                response = case.call(session=session, headers={**(case.headers or {}), **headers})
                case.validate_response(response, checks=wanted)

            one()
    return paths


@pytest.mark.parametrize(
    ("role", "examples"),
    [
        *(("stranger", 3), ("app", 5), ("owner", 5)),
        # Ten thousand calls, six minutes on a free machine.
        *(
            pytest.param(role, 300, marks=[pytest.mark.heavy, pytest.mark.timeout(2400)])
            for role in ("app", "owner")
        ),
    ],
)
def test_made_up_calls_get_documented_answers_and_no_5xx(
    tmp_path: Path, role: str, examples: int
) -> None:
    with running(tmp_path / "home", requests_per_minute=1_000_000) as here:
        assert examine(here, role, examples) > 35


ROUNDS, MESSAGES = 40, 12

#: Where the wearer looks; no answer may hold these numbers.
X_DEG, Y_DEG = 123.4567, 67.8912

#: Values that a careless reader trips over.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 65_535, 65_536, 2**53, 2**64, 10**400, -(10**400)),
    *(1e308, 5e-324, 0.1, float("nan"), float("inf"), -0.0, "", "a", "\x00", "\ud800", "\u202e"),
    *("x" * 600, "../../etc/passwd", "1e999999999", "{{7*7}}", [], {}, [[]], {"a": {"b": []}}),
    *("fixation", "tile", "samples", "select", "dwell", "binary", "raw", "pupil", "hello"),
    *(GAUSSIAN, KALEIDO, "gaussian:sigma_deg=nan", "gaussian:sigma_deg=1e999999999", "none"),
)

TARGET = {"name": "a", "x_deg": 100, "y_deg": 40, "width_deg": 60, "height_deg": 60}

COMMANDS: tuple[dict[str, Any], ...] = (
    {"type": "subscribe", "id": 1, "what": "fixation", "mode": "end"},
    {"type": "subscribe", "id": 2, "what": "saccade", "mode": "start-stop"},
    {"type": "subscribe", "id": 3, "what": "samples", "mechanism": GAUSSIAN, "batch": 3},
    {"type": "subscribe", "id": 4, "what": "samples", "mechanism": KALEIDO, "encoding": "binary"},
    {"type": "subscribe", "id": 5, "what": "select", "targets": [TARGET], "by": "dwell"},
    {"type": "unsubscribe", "id": 1},
    {"type": "ping"},
    {"type": "hello", "token": "gv_app_x"},
)

#: What the service may say, and with what it may close: not UTF-8, unreadable, too large.
SAID = {"error", "refused", "subscribed", "ended", "event", "saccade-start", "samples", "pong"}
CLOSED = {1007, 1008, 1009}


def changed(rng: random.Random, fields: dict[str, Any]) -> dict[str, Any]:
    """A message with one or two fields changed, taken out or put in."""
    made = dict(fields)
    for _ in range(rng.randrange(1, 3)):
        key = rng.choice([*made, "extra"])
        made[key] = rng.choice((*ODD, [rng.choice(ODD)], {"a": rng.choice(ODD)}))
        if rng.random() < 0.2:
            del made[key]
    return made


def made_up(rng: random.Random) -> str | bytes:
    """Something to send: mostly a command with a mistake, often a right one, seldom noise."""
    kind = rng.random()
    if kind < 0.05:
        return rng.randbytes(rng.randrange(300))
    if kind < 0.1:
        return json.dumps(rng.choice(ODD))
    command = rng.choice(COMMANDS)
    return json.dumps(command if kind < 0.5 else changed(rng, command))


def talk_nonsense(talk: Talk, rng: random.Random) -> list[dict[str, Any]]:
    """Send made-up messages, each after the answer to the one before; all that was said, until the
    service hung up or that was enough.
    """
    said: list[dict[str, Any]] = []
    unreadable = 0
    try:
        for _ in range(MESSAGES):
            talk.socket.send(made_up(rng), text=rng.random() < 0.9)
            said.append(talk.hear())
            unreadable += said[-1]["type"] == "error" and "protocol" in said[-1]["reason"]
            if unreadable == PATIENCE:
                said.append(talk.hear())
    except ConnectionClosed:
        assert talk.socket.close_code in CLOSED, talk.socket.close_code
    return said


def test_whatever_an_app_sends_it_is_answered_and_another_app_misses_nothing(here: Running) -> None:
    service, rng = here.service, random.Random(20_261_117)
    hostile, hostile_name = here.app(), here.last
    honest, honest_name = here.app(), here.last
    kinds: set[str] = set()
    got = 0
    with here.tracker() as tracker, here.talk(honest) as other, here.client(hostile) as http:
        assert other.subscribe(1, what="samples", mechanism=GAUSSIAN)["type"] == "subscribed"
        for number in range(ROUNDS):
            with here.talk(hostile) as talk:
                said = [one for one in talk_nonsense(talk, rng) if one["type"] != "binary"]
            kinds |= {message["type"] for message in said}
            for message in said:
                text = json.dumps(message)
                assert honest_name not in text
                if message["type"] != "samples":
                    assert str(X_DEG) not in text
                if message["type"] in ("error", "refused", "ended"):
                    assert message["reason"].endswith("."), message
            body = json.dumps(changed(rng, {**TARGET})).encode("utf-8", "surrogatepass")
            headers = {"Content-Type": "application/json"}
            answer = http.post("/v1/areas", content=body, headers=headers)
            assert answer.status_code in (201, 400, 403, 422), answer.text
            tracker.send([X_DEG + 40.0 * (number % 3)] * 10, Y_DEG)
            while got < 10 * (number + 1):
                samples = other.hear()
                assert (samples["sequence"], samples["dropped"]) == (got, 0)
                got += len(samples["t_ms"])
    assert {"error", "refused", "subscribed", "ended"} <= kinds <= SAID
    until(lambda: all(s.app != hostile_name for s in tuple(service.keeper.state.subscriptions)))


class Everything(logging.Handler):
    """Keeps every log line of every logger, as the service would write it and as any other
    formatter would.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self._json, self._plain = JsonLines(), logging.Formatter("%(message)s %(exc_text)s")

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += [self._json.format(record), self._plain.format(record)]


def test_recognisable_coordinates_show_up_in_no_answer_no_log_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, heard = Everything(), list[str]()
    loggers = [logging.getLogger(name) for name in ("", "gazeveil", "uvicorn")]
    with running(tmp_path / "home", log_level="debug") as here:
        set_up("debug")
        for logger in loggers:
            monkeypatch.setattr(logger, "handlers", [logs])
            monkeypatch.setattr(logger, "propagate", True)
        token = here.app()
        with here.client(token) as app, here.talk(token) as talk, here.tracker() as tracker:
            sides = {"x_deg": 110, "y_deg": 55, "width_deg": 30, "height_deg": 30}
            area = app.post("/v1/areas", json={"name": "a", **sides}).json()["id"]
            for number, wish in enumerate(
                (
                    {"what": "samples", "mechanism": GAUSSIAN},
                    {"what": "samples", "mechanism": KALEIDO, "encoding": "binary"},
                    {"what": "fixation"},
                )
            ):
                assert talk.subscribe(number, **wish)["type"] == "subscribed"
            for place in ((X_DEG, Y_DEG), (200.0, 90.0), (X_DEG, Y_DEG), (200.0, 90.0)):
                tracker.look(*place)
            tracker.talk.say(type="samples", t_ns=["x"], x_deg=[X_DEG], y_deg=[Y_DEG])
            heard.append(json.dumps(tracker.talk.until("error")))
            found = app.get(f"/v1/areas/{area}/fixations").json()["fixations"]
            assert found, "the taint was looked at"
            paths = (f"/v1/fixations/{found[0]['number']}/dwell", "/v1/tile", "/v1/me")
            heard += [json.dumps(found), *(app.get(path).text for path in paths)]
            talk.say(type="ping")
            while (message := talk.hear())["type"] != "pong":
                block = message.pop("block", None)
                if block is not None:
                    near = np.isclose(block.x_deg, X_DEG, atol=2e-5)
                    assert not (near & np.isclose(block.y_deg, Y_DEG, atol=2e-5)).any()
                heard.append(json.dumps(message))
            assert any('"type": "samples"' in text for text in heard)
            owner = ("/health", "/v1/apps", "/v1/budgets", "/v1/audit?last=1000", "/v1/certificate")
            heard += [here.owner.get(path).text for path in owner]
    files = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    texts = [*heard, *logs.lines, *(data.decode("latin-1") for data in files)]
    assert not [t[:300] for t in texts if str(X_DEG) in t or str(Y_DEG) in t]
    assert not any(struct.pack("<d", X_DEG) in data for data in files)
    assert re.search("started|tracker", " ".join(logs.lines))
