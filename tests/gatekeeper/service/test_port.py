"""The port belongs to the service: what another program is sent that takes it while the service is
stopped opens nothing afterwards, and a port that is held for the service cannot be taken.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fastapi
import httpx
import pytest
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from gazeveil.gatekeeper.service.service import Service
from tests.support.gatekeeper_running import Process, Running, free_port, running, until


class Squatter:
    """Another user's program on the port: it writes down what it is sent."""

    def __init__(self, port: int) -> None:
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.headers.append(dict(self.headers))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Squatter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def hello_at(port: int, token: str) -> str:
    """What a program on the port hears from a driver."""
    heard: list[str] = []

    def take(talk: ServerConnection) -> None:
        heard.append(str(talk.recv(timeout=10)))

    with serve(take, "127.0.0.1", port) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with connect(f"ws://127.0.0.1:{port}/v1/tracker") as driver:
            driver.send(json.dumps({"type": "hello", "token": token}))
            until(lambda: heard, 10)
        server.shutdown()
    return heard[0]


def test_what_a_squatter_was_sent_opens_nothing_after_the_restart(tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    with Process(home, port, GAZEVEIL_TRACKER="websocket") as service:
        page = service.owner()
        assert page.get("/v1/apps").status_code == 200
        token = (home / "tracker-token").read_text().strip()
    with Squatter(port) as squatter:
        page.get("/v1/apps")  # an open page asks again and again
    stolen = {name.lower(): value for name, value in squatter.headers[0].items()}
    assert "x-gazeveil-session" in stolen
    assert "cookie" in stolen
    hello = hello_at(port, token)
    with Process(home, port, GAZEVEIL_TRACKER="websocket") as service:
        both = {name: stolen[name] for name in ("x-gazeveil-session", "cookie")}
        with httpx.Client(base_url=service.address, headers=both) as thief:
            tried = {
                "apps": thief.get("/v1/apps"),
                "add": thief.post("/v1/apps", json={"name": "thief"}),
                "token": thief.post("/v1/owner/tokens", json={"name": "thief", "days": 365}),
                "consent": thief.post("/v1/consent", json={"on": True}),
            }
        assert {name: answer.status_code for name, answer in tried.items()} == dict.fromkeys(
            tried, 401
        )
        with connect(f"ws://127.0.0.1:{port}/v1/tracker", compression=None) as thief_driver:
            thief_driver.send(hello)
            assert json.loads(thief_driver.recv(timeout=30))["type"] == "error"
    page.close()


def test_a_port_that_is_taken_is_said_and_tried_again(tmp_path: Path) -> None:
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        threading.Timer(2.0, taken.close).start()
        with Process(tmp_path / "home", port) as service:
            assert httpx.get(service.address + "/health").json()["live"]


def command(port: int) -> list[str]:
    return [sys.executable, "-m", "gazeveil.cli.main", "serve", "--port", str(port)]


def test_a_port_that_stays_taken_ends_with_a_code_that_lets_systemd_try_again(
    tmp_path: Path,
) -> None:
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        done = subprocess.run(
            command(port),
            env={**os.environ, "GAZEVEIL_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 75
    assert "another program has the port" in done.stderr
    assert "trying again" in done.stdout


def test_a_port_that_systemd_holds_is_answered_on_and_stays_held(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(16)
        port = held.getsockname()[1]
        handle = os.dup2(held.fileno(), 40, inheritable=True)
        script = f"exec 3<&{handle}; LISTEN_FDS=1 LISTEN_PID=$$ exec {' '.join(command(port))}"
        environment = {**os.environ, "GAZEVEIL_HOME": str(tmp_path / "home")}
        process = subprocess.Popen(
            ["/bin/bash", "-c", script], env=environment, pass_fds=(handle,), text=True
        )
        try:
            until(lambda: _lives(port), 60)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            os.close(handle)
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))


def _lives(port: int) -> bool:
    try:
        return bool(httpx.get(f"http://127.0.0.1:{port}/health", timeout=1).json()["live"])
    except httpx.HTTPError:
        return False


# --- what a stranger asks, and when
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running(tmp_path_factory.mktemp("port") / "home") as found:
        yield found


def service_of(here: Running) -> Service:
    assert here.service is not None
    return here.service


def test_a_service_that_compiles_is_not_ready(here: Running) -> None:
    service_of(here).warming = True
    answer = httpx.get(here.address + "/health/ready")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)
    assert "compiles" in answer.json()["reason"]
    service_of(here).warming = False
    assert httpx.get(here.address + "/health/ready").json()["ready"]


def test_ready_means_that_the_first_stream_comes_at_once(tmp_path: Path) -> None:
    with Process(tmp_path / "home", free_port()) as service:
        ready = service.address + "/health/ready"
        until(lambda: httpx.get(ready).status_code == 200, 300)
        here = Running(service.address, "")
        here.owner = service.owner()
        token = here.app()
        with here.talk(token) as talk:
            before = time.monotonic()
            talk.subscribe(1, what="samples", mechanism="gaussian:sigma_deg=5")
            talk.until("samples")
            # A second on a free machine; the compiler took minutes.
            assert time.monotonic() - before < 5


def test_the_description_is_made_once(here: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """127 kB were made anew for every stranger, and stretched the gaps of another app fivefold."""
    first = httpx.get(here.address + "/openapi.json")
    monkeypatch.setattr(fastapi.FastAPI, "openapi", None)
    again = httpx.get(here.address + "/openapi.json")
    assert again.content == first.content
    assert "/v1/me" in first.json()["paths"]
    assert first.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("name", ["owner", "device", "Tracker", "wearer"])
def test_names_that_mean_something_are_refused(here: Running, name: str) -> None:
    refused = here.owner.post("/v1/apps", json={"name": name})
    assert refused.status_code == 422
    assert "mean something here" in refused.json()["error"]["reason"]


def test_a_bad_name_is_refused_in_words(here: Running) -> None:
    refused = here.owner.post("/v1/apps", json={"name": "my shop!"})
    assert refused.status_code == 422
    assert "letters, digits, dots, dashes" in refused.json()["error"]["reason"]
