"""Floods without a token: texts that are slow to read, heads that never end, pings nobody reads,
requests and guesses by the thousand.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.server import ServerProtocol

from gazeveil.gatekeeper.service.http import limits
from gazeveil.gatekeeper.service.http.cookies import keep_ours, owner_cookies
from gazeveil.gatekeeper.service.http.limits import depth
from tests.support.gatekeeper_running import Process, Running, free_port, running, sign_in, until
from tests.support.more_time import with_more_time
from tests.support.stalls import SteadyClock

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


def half_head(
    address: str, text: bytes = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "
) -> socket.socket:
    """A connection that sends the beginning of a head and waits."""
    host, port = address.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)), timeout=30)
    if text:
        made.sendall(text)
    return made


def processor_s(pid: int) -> float:
    """Seconds of the processor that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Memory of a process that is really there."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process(
        tmp_path_factory.mktemp("flood") / "home",
        free_port(),
        GAZEVEIL_LIMITS='{"head_s": 60, "ping_s": 60, "hello_s": 60}',
    ) as started:
        yield started


def pid_of(process: Process) -> int:
    assert process.process is not None
    return process.process.pid


# --- texts
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORST)
def test_nesting_is_found_in_one_pass(name: str) -> None:
    text = WORST[name]
    read = 0
    for match in limits._MARKS.finditer(text):
        assert match.start() >= read
        read = match.end()
    started = time.process_time()
    depth(text)
    assert time.process_time() - started < 2, "the pattern before took up to 36 s for this"


@given(st.lists(st.sampled_from([b'"', b"\\", b"[", b"}", b"a", b"\n"]), max_size=40).map(b"".join))
def test_the_pattern_cannot_fail_after_a_quote_so_no_byte_is_read_twice(rest: bytes) -> None:
    found = limits._MARKS.match(b'"' + rest)
    assert found is not None
    # It ends at the first quote that no backslash hides, or at the end of the text.
    at, hidden = 0, False
    while at < len(rest) and (hidden or rest[at : at + 1] != b'"'):
        hidden = not hidden and rest[at : at + 1] == b"\\"
        at += 1
    assert found.end() == min(len(rest) + 1, at + 2)


def test_one_post_of_64_kb_does_not_stop_the_service(tmp_path: Path) -> None:
    with running(tmp_path / "home") as here:
        for name, text in WORST.items():
            # Of the processor: the service runs in this process, and reading holds all of it up.
            started = time.process_time()
            answer = httpx.post(
                here.address + "/v1/ask",
                content=text,
                headers={"Content-Type": "application/json"},
                timeout=60,
            )
            assert answer.status_code in (400, 401, 422), name
            taken_s = time.process_time() - started
            assert taken_s < 10, f"{name}: the pattern before took up to 36 s"


def test_a_cookie_of_escapes_does_not_stop_the_service(process: Process) -> None:
    cookie = 'a="' + '\\"' * 7_000 + '"'
    started = processor_s(pid_of(process))
    for path in ("/v1/me", "/v1/apps", "/client.js", "/owner"):
        assert httpx.get(
            process.address + path, headers={"Cookie": cookie}, timeout=60
        ).status_code in (200, 401, 403)
    taken_s = processor_s(pid_of(process)) - started
    assert taken_s < 3, "the usual reader of cookies took 1 to 2 s for each"


def test_others_cookies_are_thrown_away_before_anybody_looks() -> None:
    ours = [f"gazeveil_owner_{port}={'A' * 43}".encode() for port in (1, 8765)] + [
        b"__Host-gazeveil_owner_443=" + b"-" * 43
    ]
    others = [
        b"session=secret",
        b'a="' + b'\\"' * 7_000,
        b"gazeveil_owner_1=short",
        b"gazeveil_owner_x=" + b"A" * 43,
        b"",
        b"=",
        b"gazeveil_owner_1",
    ]
    scope = {
        "type": "http",
        "headers": [
            (b"host", b"here"),
            (b"cookie", b"; ".join([*others, *ours])),
            (b"cookie", b";".join(others)),
        ],
    }
    keep_ours(scope)
    assert scope["headers"] == [(b"host", b"here"), (b"cookie", b"; ".join(ours))]
    assert owner_cookies(Headers(scope=scope)) == ["A" * 43, "A" * 43, "-" * 43]
    bare = {"type": "http", "headers": [(b"cookie", b"; ".join(others))]}
    keep_ours(bare)
    assert bare["headers"] == []


# --- heads
# --------------------------------------------------------------------------------------------------


def answer_of(one: socket.socket, seconds: float = 30.0) -> bytes:
    one.settimeout(seconds)
    heard = b""
    with contextlib.suppress(OSError):
        while part := one.recv(65_536):
            heard += part
    return heard


@pytest.mark.parametrize(
    ("name", "head"),
    [
        (
            "one long header",
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: " + b"a" * 20_000 + b"\r\n\r\n",
        ),
        (
            "many headers",
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            + b"".join(b"a: b\r\n" for _ in range(3_000))
            + b"\r\n",
        ),
        ("a long address", b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        (
            "headers after the body",
            b"POST /v1/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding:"
            b" chunked\r\n\r\n2\r\n{}\r\n0\r\n" + b"X-A: b\r\n" * 3_000,
        ),
        (
            "more requests at once than may wait",
            b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 200,
        ),
    ],
)
def test_heads_that_are_too_large_are_refused_in_the_one_shape(
    process: Process, name: str, head: bytes
) -> None:
    with half_head(process.address, head) as one:
        heard = answer_of(one)
    assert b" 431 " in heard, (name, heard[:200])
    assert b'{"error": {"code": "head"' in heard


def test_what_is_no_request_is_answered_in_the_one_shape(process: Process) -> None:
    with half_head(process.address, b"\x16\x03\x01 this is not HTTP\r\n\r\n") as one:
        assert b'{"error": {"code": "request"' in answer_of(one)


def send_header_bytes(process: Process, connections: int, megabytes: float) -> int:
    """Send header bytes that never end over several connections; how many were taken."""
    taken = 0
    for _ in range(connections):
        with half_head(process.address) as one:
            one.settimeout(5)
            with contextlib.suppress(OSError):
                for _ in range(round(megabytes * 1e6 / connections / 65_536)):
                    one.sendall(b"a" * 65_536)
                    taken += 65_536
    return taken


def test_header_bytes_without_end_do_not_grow_the_memory(process: Process) -> None:
    httpx.get(process.address + "/health")
    before = resident_mb(pid_of(process))
    held = [half_head(process.address) for _ in range(20)]
    for one in held:
        one.settimeout(2)
        with contextlib.suppress(OSError):
            for _ in range(60):  # 4 MB on each, all open at the same time
                one.sendall(b"a" * 65_536)
    grown = resident_mb(pid_of(process)) - before
    for one in held:
        one.close()
    assert grown < 24, f"memory grew by {grown:.0f} MB"
    assert httpx.get(process.address + "/health").status_code == 200


@pytest.mark.heavy
def test_150_mb_of_header_bytes_do_not_grow_the_memory(process: Process) -> None:
    before = resident_mb(pid_of(process))
    send_header_bytes(process, 30, 150)
    assert resident_mb(pid_of(process)) - before < 24


def test_a_head_has_a_deadline_and_so_has_silence(tmp_path: Path) -> None:
    def work(head_s: float) -> None:
        with running(tmp_path / f"home-{head_s}", head_s=head_s) as here:
            with half_head(here.address) as slow:
                assert b" 408 " in answer_of(slow)
            with half_head(here.address, b"") as silent:
                assert answer_of(silent) == b""
            request = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            with half_head(here.address, request) as kept:
                kept.settimeout(30)
                assert b"200 OK" in kept.recv(65_536)
                # Line ends before a request are no request, and no way to hold a connection. Who
                # sends the second one after it was closed is told that it is.
                with contextlib.suppress(OSError):
                    for _ in range(4):
                        kept.sendall(b"\r\n")
                        time.sleep(0.4 * head_s)
                assert b" 408 " in answer_of(kept)
            with half_head(here.address, b"GET /he") as trickle, SteadyClock() as clock:
                trickle.settimeout(30)
                with contextlib.suppress(OSError):
                    while clock() < 8 * head_s:
                        trickle.sendall(b"a")
                        time.sleep(0.1)
                assert clock() < 6 * head_s

    with_more_time(work, 0.5, 3, 15)


def lock_out(here: Any, halves: int) -> None:
    """Half heads and silent connections, then the owner and an app come."""
    held: list[socket.socket] = []
    try:
        for number in range(halves):
            with contextlib.suppress(OSError):
                held.append(
                    half_head(here.address, b"" if number % 2 else b"GET / HTTP/1.1\r\nX-A: ")
                )
        fresh = httpx.post(
            here.address + "/v1/consent",
            json={"on": False},
            headers=here.owner.headers,
            cookies=here.owner.cookies,
            timeout=30,
        )
        assert fresh.status_code == 200
        assert httpx.get(here.address + "/", timeout=30).status_code == 200
    finally:
        for one in held:
            one.close()


def test_half_heads_do_not_lock_the_owner_out(tmp_path: Path) -> None:
    with running(tmp_path / "home", head_s=120, strangers=24, strangers_per_address=12) as here:
        token = here.app()
        with (
            here.talk(token) as talk,
            here.talk(
                here.owner.headers["Authorization"].removeprefix("Bearer "), "/v1/live"
            ) as live,
        ):
            lock_out(here, 60)
            assert here.service is not None
            assert here.service.peers.strangers <= 12
            # Connections that are known are not closed for strangers.
            talk.say(type="ping")
            assert talk.until("pong")
            live.socket.ping().wait(30)
        until(lambda: here.service is not None and len(here.service.peers) <= 2)


@pytest.mark.heavy
def test_1006_half_heads_do_not_lock_the_owner_out_of_1024_handles(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))"
    folder = tmp_path / "limit"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(limit)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    with Process(tmp_path / "home", free_port(), PYTHONPATH=path) as started:
        here = Running(started.address, "")
        here.owner = sign_in(started.address, started.link)
        lock_out(here, 1006)


# --- pings
# --------------------------------------------------------------------------------------------------


def upgraded(address: str) -> socket.socket:
    """A WebSocket before its hello, as bare bytes."""
    one = half_head(
        address,
        b"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection:"
        b" Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version:"
        b" 13\r\n\r\n",
    )
    assert b" 101 " in one.recv(4096)
    return one


def frame(opcode: int, payload: bytes, fin: bool = True) -> bytes:
    """A frame of a client, masked with zeros."""
    return (
        struct.pack("!BB", (0x80 if fin else 0) | opcode, 0x80 | len(payload)) + bytes(4) + payload
    )


def test_pings_whose_answers_nobody_reads_do_not_grow_the_memory(process: Process) -> None:
    with upgraded(process.address) as one:
        before = resident_mb(pid_of(process))
        pings = frame(9, b"x" * 125) * 512
        one.settimeout(3)
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 60_000_000:  # never reads
                sent += one.send(pings)
        grown = resident_mb(pid_of(process)) - before
        assert grown < 16, f"memory grew by {grown:.0f} MB after {sent / 1e6:.0f} MB of pings"
        assert sent < 60_000_000, "the service went on reading what it could not answer"
        # Whoever reads again is served again.
        one.settimeout(30)
        one.recv(1 << 20)
    assert httpx.get(process.address + "/health").status_code == 200


def test_pings_that_are_read_are_all_answered(process: Process) -> None:
    count = 20_000
    with upgraded(process.address) as one:
        heard = bytearray()

        def listen() -> None:
            one.settimeout(60)
            with contextlib.suppress(OSError):
                while len(heard) < count * 127:
                    time.sleep(0.001)
                    heard.extend(one.recv(1 << 16))

        reader = threading.Thread(target=listen)
        reader.start()
        one.sendall(frame(9, b"y" * 125) * count)
        reader.join(120)
        assert len(heard) == count * 127
        assert set(heard[::127]) == {0x8A}


def test_a_message_in_countless_empty_pieces_is_refused(process: Process) -> None:
    with upgraded(process.address) as one:
        one.settimeout(30)
        with contextlib.suppress(OSError):
            one.sendall(frame(1, b"a", fin=False) + frame(0, b"", fin=False) * 100_000)
        heard = answer_of(one)
        assert heard[:1] == b"\x88"
        assert struct.unpack("!H", heard[2:4])[0] == 1009


def test_messages_that_are_no_utf8_fill_no_log(process: Process) -> None:
    before = process.errors.read_text()
    for _ in range(20):
        with upgraded(process.address) as one:
            one.settimeout(30)
            one.sendall(frame(1, b"\xff\xfe"))
            heard = answer_of(one)
            assert (heard[0], struct.unpack("!H", heard[2:4])[0]) == (0x88, 1007)
    assert httpx.get(process.address + "/health").status_code == 200
    assert process.errors.read_text() == before


def test_who_reads_nothing_at_all_is_cut(tmp_path: Path) -> None:
    with running(tmp_path / "home", ping_s=0.5, hello_s=60) as here, upgraded(here.address) as one:
        assert here.service is not None
        one.settimeout(2)
        with contextlib.suppress(OSError):
            while True:
                one.send(frame(9, b"x" * 125) * 512)
        until(lambda: here.service is not None and here.service.peers.strangers == 0, 30)


# --- messages before the hello
# --------------------------------------------------------------------------------------------------


def unfinished(size: int) -> bytes:
    """A text frame of a client that lacks its last byte."""
    return b"\x81\xff" + struct.pack("!Q", size) + bytes(4) + b"a" * (size - 1)


def test_unfinished_messages_before_the_hello_do_not_grow_the_memory(process: Process) -> None:
    httpx.get(process.address + "/health")
    before = resident_mb(pid_of(process))
    held = [upgraded(process.address) for _ in range(100)]
    for one in held:
        one.settimeout(2)
        with contextlib.suppress(OSError):
            one.sendall(unfinished(1 << 20))
    grown = resident_mb(pid_of(process)) - before
    for one in held:
        one.close()
    assert grown < 24, f"memory grew by {grown:.0f} MB"


def test_what_a_lost_connection_has_sent_does_not_wait_for_the_garbage_collector(
    tmp_path: Path,
) -> None:
    def kept() -> tuple[int, int]:
        # By type(): isinstance asks a weak proxy whose object is gone, and raises.
        found = [one for one in gc.get_objects() if issubclass(type(one), ServerProtocol)]
        return len(found), sum(len(one.reader.buffer) for one in found)

    # Cut by the client, or by the service after its hello did not come; till then all are open.
    def work(late: bool, hello_s: float) -> None:
        with running(tmp_path / f"home-{hello_s}", hello_s=hello_s) as here:
            service = here.service
            assert service is not None
            gc.collect()
            before = kept()[0]
            gc.disable()
            try:
                held = [upgraded(here.address) for _ in range(20)]
                for one in held:
                    one.sendall(unfinished(16_000))
                until(lambda: kept()[1] >= 20 * 15_000, 30)
                if late:
                    assert all(b"No hello" in one.recv(4096) for one in held)
                for one in held:
                    one.close()
                until(lambda service=service: service.peers.strangers == 0, 30)
                until(lambda before=before: kept() == (before, 0), 30)
            finally:
                gc.enable()

    work(False, 60)
    with_more_time(lambda hello_s: work(True, hello_s), 3, 12, 25)


def test_whole_frames_may_come_after_the_welcome_and_no_sooner(tmp_path: Path) -> None:
    with running(tmp_path / "home") as here:
        token = here.owner.post("/v1/tracker/token").json()["token"]
        with here.talk(token, "/v1/tracker") as talk:
            talk.say(type="lost", padding="a" * 500_000)
            talk.say(type="wearer", name="owner")
            assert talk.hear()["type"] == "wearer"
        for path in ("/v1/stream", "/v1/tracker", "/v1/live"):
            with here.talk(None, path) as talk:
                talk.say(type="hello", token="a" * 17_000)
                with pytest.raises(ConnectionClosed) as closed:
                    talk.hear()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1009


# --- requests and guesses
# --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def flood(address: str, headers: dict[str, str]) -> Iterator[list[int]]:
    """Requests of a stranger on this machine, as fast as they go; their answers."""
    codes: list[int] = []
    stop = threading.Event()

    def run() -> None:
        with httpx.Client(base_url=address, headers=headers, timeout=30) as stranger:
            while not stop.is_set():
                with contextlib.suppress(httpx.HTTPError):
                    codes.append(stranger.get("/v1/me").status_code)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield codes
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)


@pytest.mark.parametrize("restarted", [False, True])
def test_under_a_flood_the_owner_switches_off_with_the_first_press_and_a_new_app_connects(
    tmp_path: Path, restarted: bool
) -> None:
    chosen: dict[str, Any] = {
        "requests_per_minute": 60,
        "guesses_per_minute": 5,
        "port": free_port(),
    }
    with running(tmp_path / "home", **chosen) as here:
        assert here.service is not None
        browser = sign_in(here.address, here.service.owner_link(here.address))
        token = here.app("honest")  # never used before the flood
        page = here.owner.post(
            "/v1/apps", json={"name": "page", "origins": ["https://shop.example"]}
        ).json()["token"]
        if not restarted:
            _under_flood(here, browser, token, page)
    if restarted:
        # Nothing is remembered from requests before: what is valid was read from the database at
        # the start; the owner signs in anew.
        with running(tmp_path / "home", **chosen) as here:
            assert here.service is not None
            browser.close()
            browser = sign_in(here.address, here.service.owner_link(here.address))
            _under_flood(here, browser, token, page)
    browser.close()


def _under_flood(here: Running, browser: httpx.Client, token: str, page: str) -> None:
    garbage = "gv_app_" + "0" * 16 + "_" + "A" * 43
    forged = token[:24] + "A" * 43  # the honest app's own id, with a wrong secret
    with (
        flood(here.address, {"Authorization": f"Bearer {garbage}"}) as codes,
        flood(here.address, {"Authorization": f"Bearer {forged}"}) as more,
    ):
        until(lambda: 429 in codes and 429 in more, 30)
        assert browser.post("/v1/consent", json={"on": False}).status_code == 200, "the first press"
        assert browser.get("/").status_code == 200, "the owner's own page"
        with here.client(token) as app:
            assert app.get("/v1/me").status_code == 200
        from_page = {"Authorization": f"Bearer {page}", "Origin": "https://shop.example"}
        assert httpx.get(here.address + "/v1/me", headers=from_page).status_code == 200
        with here.talk(token) as talk:
            talk.say(type="ping")
            assert talk.hear()["type"] == "pong"
        link = here.service.owner_link(here.address) if here.service else ""
        again = sign_in(here.address, link)
        assert again.get("/v1/apps").status_code == 200, "a new link under the flood"
        again.close()


def test_an_app_that_floods_meets_its_own_limit_alone(tmp_path: Path) -> None:
    with running(tmp_path / "home", requests_per_minute=40) as here:
        greedy, other = here.app("greedy"), here.app("other")
        with here.client(greedy) as app:
            codes = [app.get("/v1/me").status_code for _ in range(60)]
        assert 429 in codes
        with here.client(other) as app:
            assert app.get("/v1/me").status_code == 200
        assert here.owner.get("/v1/apps").status_code == 200


def test_the_cookie_alone_uses_up_nothing_of_the_owners(tmp_path: Path) -> None:
    with running(tmp_path / "home", requests_per_minute=20) as here:
        assert here.service is not None
        browser = sign_in(here.address, here.service.owner_link(here.address))
        # What a server on another port of the host sees of the owner's browser.
        with httpx.Client(base_url=here.address, cookies=browser.cookies) as thief:
            assert [thief.get("/").status_code for _ in range(60)] == [200] * 60
            assert 429 in [thief.get("/health").status_code for _ in range(60)]
            assert 429 in [thief.get("/no-such-page").status_code for _ in range(60)]
        with httpx.Client(base_url=here.address, cookies=browser.cookies) as opened:
            for path in ("/", "/dashboard.js", "/style.css", "/dash/switch.js"):
                page = opened.get(path)
                assert page.status_code == 200, path
                assert (
                    opened.get(path, headers={"If-None-Match": page.headers["etag"]}).status_code
                    == 304
                )
        assert browser.post("/v1/consent", json={"on": False}).status_code == 200
        browser.close()
