"""A Gatekeeper that runs, for tests: in a thread of this process, or as a process of its own that
can be killed.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from websockets.sync.client import ClientConnection, connect

from gazeveil.gatekeeper import blocks
from gazeveil.gatekeeper.policy.grant import CURRENCIES, SCOPES, Grant
from gazeveil.gatekeeper.service.application import build
from gazeveil.gatekeeper.service.guard import SESSION_HEADER
from gazeveil.gatekeeper.service.server import Server, address_of, configure, listen, warm_up
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import load_settings
from tests.support.ports import free_port as free_port

KALEIDO = "kaleido-uniform:epsilon=1,w=60,r_deg=5"
GAUSSIAN = "gaussian:sigma_deg=5"

#: What a client may take for the head of a request, for its hello and for the answer to a ping, in
#: seconds: a test that a busy machine holds up would be cut. Tests send seconds of gaze at once, so
#: none is too old.
PATIENT = {"head_s": 60, "hello_s": 60, "ping_s": 300, "late_ms": 0}

#: A grant that allows everything, with budgets nobody reaches in a test.
ALL = Grant(
    frozenset(SCOPES),
    (
        KALEIDO,
        GAUSSIAN,
        *(f"kaleido-uniform:epsilon=1,w={w},r_deg=5" for w in (10, 50, 1000)),
        *(f"gaussian:sigma_deg={sigma}" for sigma in (1, 2, 3, 4)),
    ),
    areas=100,
    calls_per_minute=100_000,
    streams=200,
    budgets=dict.fromkeys(CURRENCIES, Fraction(10**6)),
)

PAUSES = ("paused", "resumed")


def timeless(text: str) -> str:
    """An answer without the time that goes on for all apps alike."""
    return re.sub(r'"t_ms":\d+', '"t_ms":0', text)


class Talk:
    """A WebSocket that speaks JSON and binary batches."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def say(self, **message: object) -> None:
        self.socket.send(json.dumps(message))

    def hear(self, timeout: float = 30.0, pauses: bool = False) -> dict[str, Any]:
        """The next message; what is told unasked is passed over: that gaze stops and goes on, and
        that a grant ends.
        """
        while True:
            found = self._hear(timeout)
            if pauses or found["type"] not in (*PAUSES, "ended") or "id" in found:
                return found

    def _hear(self, timeout: float) -> dict[str, Any]:
        data = self.socket.recv(timeout=timeout)
        if isinstance(data, bytes):
            batch = blocks.unpack(data)
            return {
                "type": "binary",
                "id": batch.id,
                "sequence": batch.sequence,
                "dropped": batch.dropped,
                "block": batch.block,
            }
        found: dict[str, Any] = json.loads(data)
        return found

    def until(self, kind: str, timeout: float = 30.0) -> dict[str, Any]:
        """The next message of a type; others are passed over."""
        end = time.monotonic() + timeout
        while True:
            message = self.hear(max(0.01, end - time.monotonic()), kind in PAUSES)
            if message["type"] == kind:
                return message

    def subscribe(self, number: int = 1, **wish: object) -> dict[str, Any]:
        self.say(type="subscribe", id=number, **wish)
        while True:
            message = self.hear()
            if message["type"] in ("subscribed", "refused") and message["id"] == number:
                return message


class Running:
    """The address of a Gatekeeper and its owner's client."""

    def __init__(self, address: str, owner_token: str, service: Service | None = None) -> None:
        self.address, self.service = address, service
        self.last = ""
        self._numbers = itertools.count(1)
        self.owner = httpx.Client(
            base_url=address, headers={"Authorization": f"Bearer {owner_token}"}, timeout=60
        )

    def app(
        self,
        name: str | None = None,
        grant: Grant | str | None = None,
        consent: bool = True,
        lasts: str = "until-stopped",
        **changes: Any,
    ) -> str:
        """A new app with a grant, or one of a preset; its token. Without a name it gets one that
        was not used before, in `last`.
        """
        self.last = name = name or f"shop-{next(self._numbers)}"
        answer = self.owner.post("/v1/apps", json={"name": name})
        assert answer.status_code == 201, answer.text
        if consent:
            assert self.owner.post("/v1/consent", json={"on": True}).status_code == 200
        if isinstance(grant, str):
            body = {"preset": grant, "lasts": lasts}
            granted = self.owner.post(f"/v1/apps/{name}/grant", json=body)
            assert granted.status_code == 200, granted.text
        else:
            assert self.service is not None
            self.service.set_grant(name, replace(grant or ALL, lasts=lasts, **changes))
        return str(answer.json()["token"])

    def client(self, token: str) -> httpx.Client:
        return httpx.Client(
            base_url=self.address, headers={"Authorization": f"Bearer {token}"}, timeout=60
        )

    @contextmanager
    def talk(self, token: str | None, path: str = "/v1/stream", **options: Any) -> Iterator[Talk]:
        """A WebSocket after its hello; without a token, before it."""
        with connect(
            self.address.replace("http", "ws", 1) + path,
            **{"compression": None, "open_timeout": 60, "ping_interval": None, **options},
        ) as socket:
            talk = Talk(socket)
            if token is not None:
                talk.say(type="hello", token=token)
                welcome = talk.hear()
                assert welcome["type"] == "welcome", welcome
            yield talk

    @contextmanager
    def tracker(self, rate_hz: float = 120.0) -> Iterator[TrackerTalk]:
        """The tracker's channel."""
        assert self.service is not None
        token = self.service.new_tracker_token()
        with self.talk(token, "/v1/tracker") as talk:
            yield TrackerTalk(talk, rate_hz)


class TrackerTalk:
    """Sends gaze as a tracker does; the clock is one for all, so that a service sees time go on."""

    latest_ns = time.time_ns()

    def __init__(self, talk: Talk, rate_hz: float) -> None:
        self.talk, self.step_ns = talk, round(1e9 / rate_hz)

    def send(self, x_deg: Any, y_deg: Any, valid: Any = True) -> None:
        x = np.atleast_1d(np.asarray(x_deg, dtype=np.float64))
        t = TrackerTalk.latest_ns + self.step_ns * np.arange(1, len(x) + 1)
        TrackerTalk.latest_ns = int(t[-1])
        self.talk.socket.send(
            blocks.pack(
                blocks.block(
                    t, x, np.broadcast_to(np.asarray(y_deg, dtype=np.float64), x.shape), valid
                )
            )
        )

    def look(self, x_deg: float, y_deg: float, seconds: float = 0.5) -> None:
        """Rest on a place."""
        count = max(1, round(seconds * 1e9 / self.step_ns))
        self.send(np.full(count, x_deg), y_deg)

    def settle(self, running: Running, timeout: float = 30.0) -> None:
        """Wait until all that was sent has been worked off."""
        self.talk.say(type="nothing of this name")
        self.talk.until("error", timeout)


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


class PageKey(httpx.Auth):
    """Signs calls as the owner's page does."""

    requires_request_body = True

    def __init__(self) -> None:
        self.private = ec.generate_private_key(ec.SECP256R1())
        form = Encoding.X962, PublicFormat.UncompressedPoint
        self.public = base64url(self.private.public_key().public_bytes(*form))
        self.session, self._numbers = "", itertools.count(1)

    def sign(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        number: int | None = None,
        t_ms: int | None = None,
    ) -> str:
        number = next(self._numbers) if number is None else number
        t_ms = time.time_ns() // 10**6 if t_ms is None else t_ms
        head = f"{self.session}.{number}.{t_ms}.{sha256(body).hexdigest()}"
        text = f"{method} {target}\n{head}".encode()
        halves = decode_dss_signature(self.private.sign(text, ec.ECDSA(hashes.SHA256())))
        return f"{head}.{base64url(b''.join(half.to_bytes(32, 'big') for half in halves))}"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        target = request.url.raw_path.decode()
        request.headers[SESSION_HEADER] = self.sign(request.method, target, request.content)
        yield request


def sign_in(address: str, link: str, **options: Any) -> httpx.Client:
    """An owner's client that has used a one-time link, as the page behind it does."""
    key = PageKey()
    client = httpx.Client(base_url=address, timeout=60, **options)
    assert client.get("/owner?" + link.partition("?")[2]).status_code == 200
    answer = client.post(
        "/v1/sign-in",
        headers={"Authorization": f"Bearer {link.partition('key=')[2]}", "Origin": address},
        json={"key": key.public},
    )
    assert answer.status_code == 201, answer.text
    key.session = answer.json()["id"]
    client.auth = key
    return client


def owner_token(service: Service) -> str:
    return service.tokens.issue("owner", "owner", time.time_ns() + 10**13)


_IS_WARM: list[bool] = []


def _warm(service: Service) -> None:
    """What is compiled on first use is compiled now, once: on a busy machine a test would wait for
    it.
    """
    if not _IS_WARM:
        warm_up(service)
        _IS_WARM.append(True)


@contextmanager
def running(home: Path, **settings: Any) -> Iterator[Running]:
    """A Gatekeeper in a thread of this process, on a free port, with a tracker on its own channel
    unless another is named.
    """
    chosen = load_settings(
        **{"home": home, "port": 0, "tracker": "websocket", **PATIENT, **settings}
    )
    found = listen(chosen)
    service = Service(chosen)
    _warm(service)
    server = Server(configure(build(service), service), service)
    thread = threading.Thread(target=server.run, args=([found],), daemon=True)
    thread.start()
    here = Running(address_of(found), owner_token(service), service)
    try:
        until(lambda: server.started, 60)
        yield here
    finally:
        here.owner.close()
        server.should_exit = True
        thread.join(60)
        found.close()
        assert not thread.is_alive()


def until(condition: Any, timeout: float = 30.0, step: float = 0.01) -> None:
    """Wait for something to become true; while the machine stands still time does too."""
    end = time.monotonic() + timeout
    while not condition():
        now = time.monotonic()
        assert now < end, "it did not happen in time"
        time.sleep(step)
        end += max(0.0, time.monotonic() - now - step)


class Process:
    """`gazeveil serve` as a process of its own, on a port that stays the same over restarts."""

    def __init__(self, home: Path, port: int, **environment: str) -> None:
        self.home, self.port = home, port
        self.environment = {
            **os.environ,
            "GAZEVEIL_HOME": str(home),
            "OMP_NUM_THREADS": "1",
            "GAZEVEIL_LATE_MS": "0",
            "GAZEVEIL_LIMITS": json.dumps({n: s for n, s in PATIENT.items() if n != "late_ms"}),
            **environment,
        }
        self.address = f"http://127.0.0.1:{port}"
        self.process: subprocess.Popen[str] | None = None
        self.link = ""
        self.errors = home.parent / f"{home.name}.log"

    def start(self, timeout: float = 60.0) -> Process:
        command = [sys.executable, "-m", "gazeveil.cli.main", "serve", "--port", str(self.port)]
        with self.errors.open("a") as log:
            self.process = subprocess.Popen(
                command, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("Owner link"):
                self.link = line.split(": ", 1)[1].strip()
                break
        assert self.link, self.errors.read_text()
        until(self._answers, timeout)
        return self

    def _answers(self) -> bool:
        try:
            return httpx.get(self.address + "/health").status_code == 200
        except httpx.HTTPError:
            return False

    def owner(self) -> httpx.Client:
        """The owner's browser: the one-time link, then calls that are signed."""
        return sign_in(self.address, self.link)

    def kill(self, number: int = signal.SIGKILL) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(120)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return code

    def __enter__(self) -> Process:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.kill(signal.SIGTERM)
