"""Apps that are known by their user or program over the service's Unix socket."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import unix_connect

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.policy.identity import LocalIdentity, LocalPeer, file_of, peer_of
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service.http.application import build
from gazeveil.gatekeeper.service.http.server import Server, configure
from gazeveil.gatekeeper.service.http.start import address_of, listen
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import load_settings
from gazeveil.gatekeeper.service.sockets.local_socket import listen_local
from tests.support.gatekeeper_running import PATIENT, Running, owner_token, until

GAME_UID, OTHER_UID = 12345, 12346
PYTHON = os.path.realpath(sys.executable)

POLICY = f"""
consent = true

[apps.game]
scopes = ["areas", "events"]
calls_per_minute = 100000
identity = {{ uid = {GAME_UID} }}

[apps.here]
scopes = ["areas", "events"]
calls_per_minute = 100000
identity = {{ uid = {os.geteuid()}, executable = "{PYTHON}" }}

[apps.away]
scopes = ["areas"]
identity = {{ executable = "/usr/bin/no-such-program" }}
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that other users may go into; pytest's own are closed to them, and a socket's path
    must be short.
    """
    made = Path(tempfile.mkdtemp(prefix="gaze-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def here(folder: Path) -> Iterator[Running]:
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "policy.toml").write_text(POLICY)
    settings = load_settings(
        home=home, port=0, tracker="websocket", unix_socket=folder / "s", **PATIENT
    )
    found, local = listen(settings), listen_local(folder / "s")
    service = Service(settings)
    server = Server(configure(build(service), service), service)
    server.local = local
    thread = threading.Thread(target=server.run, args=([found],), daemon=True)
    thread.start()
    one = Running(address_of(found), owner_token(service), service)
    until(lambda: server.started, 60)
    until(lambda: len(server.servers) == 2, 60)
    yield one
    one.owner.close()
    server.should_exit = True
    thread.join(60)
    assert not thread.is_alive()


def over_socket(path: Path) -> httpx.Client:
    return httpx.Client(
        transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost", timeout=60
    )


#: Asks /v1/me over the socket as another user, and then over a WebSocket; uses nothing but the
#: standard library.
ASK = """
import json, os, socket, sys
path, uid, header = sys.argv[1], int(sys.argv[2]), sys.argv[3]
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
one = socket.socket(socket.AF_UNIX)
one.connect(path)
head = f"Host: localhost\\r\\n{header}Connection: close\\r\\n"
one.sendall(f"GET /v1/me HTTP/1.1\\r\\n{head}\\r\\n".encode())
data = b""
while part := one.recv(65536):
    data += part
head, _, body = data.partition(b"\\r\\n\\r\\n")
print(head.split()[1].decode(), body.decode())
"""


#: Says hello as a tracker of another user, and prints the answer; uses the standard library alone.
TRACK = """
import os, socket
os.setgroups([])
os.setresgid(UID, UID, UID)
os.setresuid(UID, UID, UID)
one = socket.socket(socket.AF_UNIX)
one.connect(PATH)
key = "dGhlIHNhbXBsZSBub25jZQ=="
head = f"Host: localhost\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
head += f"Sec-WebSocket-Key: {key}\\r\\nSec-WebSocket-Version: 13\\r\\n"
one.sendall(f"GET /v1/tracker HTTP/1.1\\r\\n{head}\\r\\n".encode())
while not one.recv(65536).endswith(b"\\r\\n\\r\\n"):
    pass
hello = b'{"type":"hello"}'
one.sendall(bytes((0x81, 0x80 | len(hello), 0, 0, 0, 0)) + hello)
print(one.recv(65536)[2:].decode("utf-8", "replace"))
"""


def ask_as(uid: int, path: Path, header: str = "") -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        ["/usr/bin/env", "python3", "-c", ASK, str(path), str(uid), header],
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    status, _, body = done.stdout.partition(" ")
    return int(status), json.loads(body)


def test_a_program_of_this_user_is_its_app_without_a_token(here: Running, folder: Path) -> None:
    with over_socket(folder / "s") as client:
        me = client.get("/v1/me")
        assert me.status_code == 200, me.text
        assert me.json()["app"] == "here"
        assert client.get("/v1/areas").status_code == 200
        assert client.get("/v1/apps").status_code == 401, "an app is not the owner"


def test_the_same_program_over_the_port_is_nobody(here: Running) -> None:
    assert httpx.get(here.address + "/v1/me").status_code == 401


def test_a_websocket_over_the_socket_needs_no_token(here: Running, folder: Path) -> None:
    with unix_connect(
        str(folder / "s"), "ws://localhost/v1/stream", compression=None, open_timeout=60
    ) as socket_:
        socket_.send(json.dumps({"type": "hello"}))
        welcome = json.loads(socket_.recv(timeout=60))
        assert (welcome["type"], welcome["app"]) == ("welcome", "here")
        assert json.loads(socket_.recv(timeout=60))["type"] == "paused", "there is no tracker"
        socket_.send(json.dumps({"type": "subscribe", "id": 1, "what": "fixation"}))
        assert json.loads(socket_.recv(timeout=60))["type"] == "subscribed"


def test_a_program_that_the_policy_names_no_more_is_hung_up_on(here: Running, folder: Path) -> None:
    assert here.service is not None
    path = here.service.settings.policy_path
    before = path.read_text()
    try:
        with unix_connect(
            str(folder / "s"), "ws://localhost/v1/stream", compression=None, open_timeout=60
        ) as socket_:
            socket_.send(json.dumps({"type": "hello"}))
            assert json.loads(socket_.recv(timeout=60))["app"] == "here"
            path.write_text(before.replace(PYTHON, "/usr/bin/no-such-program-either"))
            assert here.owner.post("/v1/policy/reload").status_code == 200
            assert json.loads(socket_.recv(timeout=60))["type"] == "paused"
            with pytest.raises(ConnectionClosed):
                socket_.recv(timeout=60)
            assert socket_.close_code == 4001
    finally:
        path.write_text(before)
        assert here.owner.post("/v1/policy/reload").status_code == 200


def test_a_tracker_of_this_user_needs_no_token_over_the_socket_alone(
    here: Running, folder: Path
) -> None:
    hello = json.dumps({"type": "hello"})
    with unix_connect(
        str(folder / "s"), "ws://localhost/v1/tracker", compression=None, open_timeout=60
    ) as tracker:
        tracker.send(hello)
        assert json.loads(tracker.recv(timeout=60))["type"] == "welcome"
    with here.talk(None, "/v1/tracker") as stranger:
        stranger.say(type="hello")
        assert stranger.hear()["type"] == "error"


@needs_root
def test_another_user_is_no_tracker(folder: Path, here: Running) -> None:
    script = TRACK.replace("PATH", repr(str(folder / "s"))).replace("UID", str(OTHER_UID))
    done = subprocess.run(
        ["/usr/bin/env", "python3", "-c", script], capture_output=True, text=True, timeout=60
    )
    assert "error" in done.stdout, done.stderr
    assert "hello with the tracker's token" in done.stdout


@needs_root
def test_another_user_is_the_app_of_that_user_and_no_other(here: Running, folder: Path) -> None:
    status, body = ask_as(GAME_UID, folder / "s")
    assert (status, body.get("app")) == (200, "game"), body
    status, body = ask_as(OTHER_UID, folder / "s")
    assert (status, body["error"]["code"]) == (401, "token")


@needs_root
def test_headers_cannot_say_who_it_is(here: Running, folder: Path) -> None:
    for header in (
        f"X-Uid: {GAME_UID}\r\n",
        f"X-Forwarded-For: uid {GAME_UID}\r\n",
        "Authorization: Bearer game\r\n",
    ):
        assert ask_as(OTHER_UID, folder / "s", header)[0] == 401


@needs_root
def test_tokens_go_on_over_the_socket_and_win_over_the_user(here: Running, folder: Path) -> None:
    token = here.owner.post("/v1/apps", json={"name": "token-app"}).json()["token"]
    for uid in (GAME_UID, OTHER_UID):
        status, body = ask_as(uid, folder / "s", f"Authorization: Bearer {token}\r\n")
        assert (status, body["app"]) == (200, "token-app")
    assert ask_as(GAME_UID, folder / "s", f"Authorization: Bearer {token[:-1]}x\r\n")[0] == 401, (
        "a wrong token is not made good by the user"
    )


@needs_root
def test_an_app_that_is_dropped_is_not_known_by_its_user_any_more(
    here: Running, folder: Path
) -> None:
    service = here.service
    assert service is not None
    before = service.policy
    try:
        assert here.owner.delete("/v1/apps/game").status_code in (200, 204)
        assert ask_as(GAME_UID, folder / "s")[0] == 401
    finally:
        service.keeper.set_policy(before)


def test_a_grant_by_the_owner_keeps_the_identity(here: Running, folder: Path) -> None:
    assert (
        here.owner.post(
            "/v1/apps/here/grant", json={"preset": "count", "lasts": "until-stopped"}
        ).status_code
        == 200
    )
    with over_socket(folder / "s") as client:
        assert client.get("/v1/me").json()["app"] == "here"
    assert here.service is not None
    assert Policy.load(here.service.settings.policy_path).apps["here"].identity == LocalIdentity(
        os.geteuid(), PYTHON
    )


def test_a_program_that_fits_two_apps_is_neither(here: Running) -> None:
    service = here.service
    assert service is not None
    peer = LocalPeer(1, GAME_UID, 1, PYTHON, file_of(PYTHON))
    assert service.callers.local_app(peer) == "game"
    two = Policy.parse(
        f"[apps.a]\nidentity = {{ uid = {GAME_UID} }}\n[apps.b]\nidentity = {{ executable ="
        f' "{PYTHON}" }}\n'
    )
    before = service.policy
    service.keeper.set_policy(two)
    try:
        assert service.callers.local_app(peer) is None
    finally:
        service.keeper.set_policy(before)


def test_the_kernel_says_who_connected_and_it_is_not_changed_by_what_comes_after() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        peer = peer_of(ours.fileno())
        assert peer == LocalPeer(os.getpid(), os.geteuid(), os.getegid(), PYTHON, file_of(PYTHON))
        ours.sendall(b"still open")
    assert peer_of(-1) is None


def test_the_executable_is_the_one_at_the_time_of_connecting() -> None:
    file = file_of(PYTHON)
    assert LocalIdentity(executable=PYTHON).fits(LocalPeer(1, 1, 1, PYTHON, file))
    for other in (f"{PYTHON} (deleted)", f"{PYTHON}2", None):
        assert not LocalIdentity(executable=PYTHON).fits(LocalPeer(1, 1, 1, other, file))
    for another in (None, (file[0], file[1] + 1), (file[0] + 1, file[1])):
        assert not LocalIdentity(executable=PYTHON).fits(LocalPeer(1, 1, 1, PYTHON, another))
    assert not LocalIdentity(executable="/usr/bin/no-such-program").fits(
        LocalPeer(1, 1, 1, "/usr/bin/no-such-program", file)
    )
    assert not LocalIdentity(uid=0, executable=PYTHON).fits(LocalPeer(1, 1, 1, PYTHON, file))


def test_a_program_mounted_over_the_path_of_another_is_not_that_one(folder: Path) -> None:
    other = os.path.realpath("/usr/bin/env")
    if subprocess.run(
        ["unshare", "-rm", "mount", "--bind", PYTHON, other], capture_output=True, check=False
    ).returncode:
        pytest.skip("needs mount namespaces for users")
    path = folder / "mounted"
    connect = (
        f"import socket; one = socket.socket(socket.AF_UNIX); one.connect({str(path)!r});"
        " one.recv(1)"
    )
    with socket.socket(socket.AF_UNIX) as ours:
        ours.bind(str(path))
        ours.listen()
        ours.settimeout(60)
        attack = [
            "unshare",
            "-rm",
            "sh",
            "-c",
            f'mount --bind {PYTHON} {other} && exec {other} -S -c "$1"',
            "sh",
            connect,
        ]
        with subprocess.Popen(attack, env={**os.environ, "PYTHONHOME": sys.base_prefix}):
            theirs, _ = ours.accept()
            with theirs:
                peer = peer_of(theirs.fileno())
    assert peer is not None
    assert peer.executable == other, "the attack did not run"
    assert not LocalIdentity(executable=other).fits(peer)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("{}", "uid, executable or both"),
        ("{ uid = -1 }", "the number of a user"),
        ("{ uid = true }", "the number of a user"),
        ("{ uid = 65534 }", "in a container"),
        ('{ executable = "game" }', "the whole path"),
        ('{ executable = "/usr/bin/../bin/game" }', "the whole path"),
        ("{ pid = 3 }", "no key 'pid'"),
        ("7", "must be a table"),
    ],
)
def test_a_wrong_identity_says_what_is_allowed(table: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        Policy.parse(f"[apps.game]\nidentity = {table}\n")


def test_two_apps_cannot_have_one_identity_whoever_wears_the_device() -> None:
    for second in ("[apps.b]", "[wearers.anna.apps.b]"):
        with pytest.raises(ParameterError, match="another than that of the app 'a'"):
            Policy.parse(
                f"[apps.a]\nidentity = {{ uid = 7 }}\n{second}\nidentity = {{ uid = 7 }}\n"
            )
    both = Policy.parse(
        "[apps.a]\nidentity = { uid = 7 }\n[wearers.anna.apps.a]\nidentity = { uid = 7 }\n"
    )
    assert Policy.parse(both.text()) == both


def test_the_socket_is_open_to_all_users_and_replaces_only_a_dead_one(folder: Path) -> None:
    path = folder / "t"
    first = listen_local(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    with pytest.raises(ParameterError, match="Another service listens"):
        listen_local(path)
    first.close()
    listen_local(path).close()
    path.unlink()
    path.write_text("a letter")
    with pytest.raises(ParameterError, match="no socket"):
        listen_local(path)
    assert path.read_text() == "a letter"
    with pytest.raises(ParameterError, match="Cannot listen"):
        listen_local(folder / ("x" * 200))
