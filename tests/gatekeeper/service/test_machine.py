"""What a service is on a shared machine: its home folder and database, passwords and tokens, its
port and its Unix socket, and the programs that come over that.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect, unix_connect

from gazeveil.cli.main import app as cli
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gatekeeper import client
from gazeveil.gatekeeper.client import Target
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.policy.identity import peer_uid, user_app
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service import server
from gazeveil.gatekeeper.service.application import build
from gazeveil.gatekeeper.service.server import Server, address_of, configure, listen, listen_local
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import Settings, load_settings, no_password, secret_text
from gazeveil.gatekeeper.service.store import make_home
from tests.support.gatekeeper_running import (
    PATIENT,
    Process,
    Running,
    free_port,
    owner_token,
    running,
    sign_in,
    until,
)
from tests.support.postgres import Server as Postgres
from tests.support.postgres import postgres  # noqa: F401
from tests.support.stalls import SteadyClock

SECRET = "correct-horse-battery"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- the home folder and the database
# --------------------------------------------------------------------------------------------------


def test_a_new_home_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_home(tmp_path / "deep" / "home")
        url = f"sqlite:///{tmp_path / 'gaze.sqlite'}"
        with running(tmp_path / "deep" / "home", database=url) as here:
            here.app()
            found = {mode(path) for path in tmp_path.glob("gaze.sqlite*")}
    finally:
        os.umask(before)
    assert (mode(tmp_path / "deep" / "home"), found) == (0o700, {0o600})
    there = tmp_path / "there.sqlite"
    there.touch(mode=0o640)
    there.chmod(0o640)
    Ledger.open(f"sqlite:///{there}").close()
    assert mode(there) == 0o640, "one that is there keeps its rights"


@pytest.mark.parametrize("wide", [0o755, 0o750, 0o1777, 0o701])
def test_a_folder_that_others_can_look_into_is_refused_and_not_changed(
    tmp_path: Path, wide: int
) -> None:
    """The attack was a slip: --home /tmp took /tmp away from everybody on the machine."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(wide)
    with pytest.raises(ParameterError, match=r"open to other users .*chmod 700"):
        make_home(shared)
    assert (mode(shared), list(shared.iterdir())) == (wide, [])


def test_a_private_folder_with_other_files_is_used_and_another_users_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "letter.txt").write_text("dear")
    make_home(home)
    assert "not the service's" in caplog.text
    assert (home / "letter.txt").read_text() == "dear"
    if os.geteuid() == 0:
        os.chown(home, 65534, 65534)
        with pytest.raises(ParameterError, match="belongs to another user"):
            make_home(home)


def test_a_home_has_one_service_because_a_second_would_not_know_what_is_revoked(
    tmp_path: Path,
) -> None:
    settings = load_settings(home=tmp_path / "home", port=0, tracker="websocket")
    refused = pytest.raises(GazeveilError, match="Another service runs with the home folder")
    with running(tmp_path / "home"), refused:
        Service(settings)
    with running(tmp_path / "home"):  # the first one has stopped
        pass


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://gaze:{SECRET}@127.0.0.1/gaze",
        f"postgresql://gaze@127.0.0.1/gaze?password={SECRET}",
        "postgresql://gaze:@127.0.0.1/gaze",
    ],
)
def test_a_password_on_the_command_line_is_refused_without_being_repeated(
    tmp_path: Path, url: str
) -> None:
    home = tmp_path / "home"
    command = ["serve", "--home", str(home), "--port", "0", "--database", url]
    done = CliRunner().invoke(cli, command)
    said = done.output + str(done.exception or "")
    assert done.exit_code != 0
    assert "GAZEVEIL_DATABASE_FILE" in said
    assert SECRET not in said
    assert not home.exists()
    no_password("postgresql://gaze@127.0.0.1/gaze?passfile=/x&sslmode=require")


def test_the_password_is_read_from_a_file_that_is_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "url"
    file.write_text(f"postgresql://gaze:{SECRET}@127.0.0.1/gaze\n")
    file.chmod(0o640)
    settings = load_settings(database_file=file)
    with pytest.raises(ParameterError, match=r"open to other users .*chmod 600"):
        _ = settings.database_url
    file.chmod(0o600)
    assert settings.database_url.endswith("@127.0.0.1/gaze")
    with pytest.raises(ParameterError, match="both given"):
        _ = load_settings(database_file=file, database="sqlite://").database_url
    file.chmod(0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert SECRET in secret_text(file, "database_file"), "systemd's own folder keeps others out"
    for text, words in (("", "cannot be read"), ("a\nb\n", "one line")):
        path = tmp_path / ("file" if text else "none")
        path.write_text(text) if text else None
        with pytest.raises(ParameterError, match=words):
            secret_text(path, "database_file")
    assert SECRET not in repr(Settings(database=f"postgresql://gaze:{SECRET}@127.0.0.1/gaze"))


def test_a_running_service_shows_its_password_to_nobody(tmp_path: Path, postgres: Postgres) -> None:
    url, file = postgres.fresh(), tmp_path / "url"
    password = url.split(":")[2].split("@")[0]
    file.write_text(url + "\n")
    file.chmod(0o600)
    environment = {"GAZEVEIL_DATABASE_FILE": str(file), "GAZEVEIL_LOG_LEVEL": "debug"}
    with Process(tmp_path / "home", free_port(), **environment) as service:
        owner = service.owner()
        paths = ("/health", "/v1/apps", "/v1/certificate", "/v1/audit?last=99", "/openapi.json")
        pages = [owner.get(path).text for path in paths]
        owner.close()
        shown = Path(f"/proc/{service.process.pid}/cmdline").read_bytes().decode()
        for text in (shown, service.errors.read_text(), *pages):
            assert password not in text


# --- the port
# --------------------------------------------------------------------------------------------------


def test_what_a_squatter_was_sent_opens_nothing_after_the_restart(tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    file = home / "tracker-token"
    with running(home, port=port) as here:
        here.service.new_tracker_token()  # as each start of the process does
        page = sign_in(here.address, here.service.owner_link(here.address))
        sent = {"Origin": "https://shop.example"}
        asked = httpx.post(here.address + "/v1/ask", json={"want": "follow"}, headers=sent)
        sent["Authorization"] = f"Bearer {asked.json()['token']}"
        given = {"preset": "follow", "ask": page.get("/v1/asks").json()["asks"][0]["id"]}
        assert page.post("/v1/apps/https.shop.example/grant", json=given).status_code == 200
        assert httpx.get(here.address + "/v1/me", headers=sent).json()["state"] == "granted"
        token = file.read_text().strip()
        assert re.fullmatch(r"gv_tracker_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", token)
        assert mode(file) == 0o600
    # What drivers and pages send to whoever has the port, and more than the owner's would: its key.
    key = page.auth
    page.close()
    with running(home, port=port) as here:
        here.service.new_tracker_token()
        here.service.end_passes()
        with httpx.Client(base_url=here.address, auth=key) as thief:
            tried = [
                thief.get("/v1/apps"),
                thief.post("/v1/apps", json={"name": "thief"}),
                thief.post("/v1/owner/tokens", json={"name": "thief", "days": 365}),
                thief.post("/v1/consent", json={"on": True}),
                httpx.get(here.address + "/v1/me", headers=sent),
            ]
        assert {answer.status_code for answer in tried} == {401}
        for shown, heard in ((token, "error"), (file.read_text().strip(), "welcome")):
            with connect(f"ws://127.0.0.1:{port}/v1/tracker", compression=None) as driver:
                driver.send(json.dumps({"type": "hello", "token": shown}))
                assert json.loads(driver.recv(timeout=30))["type"] == heard


def command(port: int) -> list[str]:
    return [sys.executable, "-m", "gazeveil.cli.main", "serve", "--port", str(port)]


def test_a_port_that_is_taken_is_tried_again_and_then_said_to_systemd(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        environment = {**os.environ, "GAZEVEIL_HOME": str(tmp_path / "home")}
        done = subprocess.run(
            command(taken.getsockname()[1]),
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 75
    assert "another program has the port" in done.stderr
    assert "trying again" in done.stdout
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        threading.Timer(0.5, taken.close).start()
        listen(load_settings(home=tmp_path / "home", port=port), said.append).close()
    assert "trying again" in said[0]


@pytest.mark.parametrize("inside", ["", "unshare --net "], ids=["unit", "container"])
def test_a_port_that_systemd_holds_is_answered_on_and_stays_held(
    tmp_path: Path, inside: str
) -> None:
    """Also without a network of its own, as the container has none."""
    if inside and subprocess.run([*inside.split(), "true"], check=False).returncode:
        pytest.skip("this user may not make a network")
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        handle = os.dup(held.fileno())
        run = inside + " ".join(command(port))
        script = f"exec 3<&{handle}; LISTEN_FDS=1 LISTEN_PID=$$ exec {run}"
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


def test_ready_means_that_the_first_stream_comes_at_once(
    here: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.service.warming = True
    answer = httpx.get(here.address + "/health/ready")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)
    assert "compiles" in answer.json()["reason"]
    said = list[str]()
    with monkeypatch.context() as broken:
        broken.setattr(server, "Gatekeeper", None)
        broken.setattr(LOG, "error", lambda text, **_: said.append(text))
        server.warm_up(here.service)
    assert said == ["what is compiled first failed, so first answers are late"]
    assert httpx.get(here.address + "/health/ready").json()["ready"]
    with Process(tmp_path / "home", free_port()) as service:
        until(lambda: httpx.get(service.address + "/health/ready").status_code == 200, 300)
        fresh = Running(service.address, "")
        fresh.owner = service.owner()
        with fresh.talk(fresh.app(grant="study")) as talk, SteadyClock() as clock:
            talk.subscribe(1, what="samples")
            talk.until("samples")
            assert clock() < 5, "a second on a free machine; the compiler took minutes"


@pytest.mark.heavy
def test_sigterm_ends_it_in_time_while_everything_is_being_compiled(tmp_path: Path) -> None:
    """With a cold cache a stop took 33 seconds: it waited for the compiler, which nobody can
    interrupt.
    """
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "GAZEVEIL_SHUTDOWN_S": "2"}
    service = Process(tmp_path / "home", free_port(), **cache).start()
    time.sleep(1.0)
    with SteadyClock() as clock:
        code = service.kill(signal.SIGTERM)
        assert clock() < 15, "shutdown_s + 2, or half a minute for the compiler"
    assert code == 0


# --- programs of this machine
# --------------------------------------------------------------------------------------------------

GAME_UID, OTHER_UID = 12345, 12346

POLICY = f"""
consent = true

[apps.game]
scopes = ["areas", "events"]
uid = {GAME_UID}

[apps.here]
scopes = ["areas", "events"]
uid = {os.geteuid()}
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
def local(folder: Path) -> Iterator[Running]:
    """A service that also listens on a Unix socket."""
    (folder / "policy.toml").write_text(POLICY)
    settings = load_settings(
        home=folder / "home",
        port=0,
        tracker="websocket",
        unix_socket=folder / "s",
        policy=folder / "policy.toml",
        **PATIENT,
    )
    found, service = listen(settings), Service(settings)
    server = Server(configure(build(service), service), service, listen_local(folder / "s"))
    thread = threading.Thread(target=server.run, args=([found],), daemon=True)
    thread.start()
    one = Running(address_of(found), owner_token(service), service)
    until(lambda: server.started and len(server.servers) == 2, 60)
    yield one
    one.owner.close()
    server.should_exit = True
    thread.join(60)
    assert not thread.is_alive()


@pytest.fixture
def policy(local: Running) -> Iterator[Policy]:
    """The policy, which is the same after the test."""
    before = local.service.policy
    yield before
    local.service.keeper.set_policy(before)


def over_socket(folder: Path) -> httpx.Client:
    transport = httpx.HTTPTransport(uds=str(folder / "s"))
    return httpx.Client(transport=transport, base_url="http://localhost", timeout=60)


def socket_talk(folder: Path, path: str) -> Any:
    return unix_connect(str(folder / "s"), f"ws://localhost{path}", compression=None)


def hears(talk: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(talk.recv(timeout=60))
    return found


#: Sends bytes over the socket as another user, and prints what comes; uses nothing but the standard
#: library.
AS_USER = """
import json, os, socket, sys
path, uid, texts = sys.argv[1], int(sys.argv[2]), json.load(sys.stdin)
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
one = socket.socket(socket.AF_UNIX)
one.connect(path)
for text in texts:
    one.sendall(text.encode("latin-1"))
    if text != texts[-1]:
        one.recv(65536)
data = b""
while part := one.recv(65536):
    data += part
print(data.decode("latin-1"))
"""

UPGRADE = (
    "GET /v1/tracker HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def as_user(uid: int, folder: Path, *texts: str) -> str:
    done = subprocess.run(
        ["/usr/bin/env", "python3", "-c", AS_USER, str(folder / "s"), str(uid)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def me_as(uid: int, folder: Path, header: str = "") -> str:
    """The app that a user's program is, or the word of its refusal."""
    head = f"GET /v1/me HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n"
    body = json.loads(as_user(uid, folder, head).partition("\n\n")[2])
    return str(body["app"] if "app" in body else body["error"]["code"])


def test_a_program_of_this_user_is_its_app_over_the_socket_alone(
    local: Running, folder: Path
) -> None:
    with over_socket(folder) as client:
        assert client.get("/v1/me").json()["app"] == "here"
        assert client.get("/v1/areas").status_code == 200
        assert client.get("/v1/apps").status_code == 401, "an app is not the owner"
        given = {"preset": "count", "lasts": "until-stopped"}
        assert local.owner.post("/v1/apps/here/grant", json=given).status_code == 200
        assert client.get("/v1/me").json()["app"] == "here", "a grant keeps the user"
    assert httpx.get(local.address + "/v1/me").status_code == 401


def test_a_websocket_over_the_socket_needs_no_token_while_the_policy_names_its_program(
    local: Running, folder: Path, policy: Policy
) -> None:
    with socket_talk(folder, "/v1/stream") as talk:
        talk.send(json.dumps({"type": "hello"}))
        assert [hears(talk).get("app"), hears(talk)["type"]] == ["here", "paused"]
        talk.send(json.dumps({"type": "subscribe", "id": 1, "what": "fixation"}))
        assert hears(talk)["type"] in ("subscribed", "refused")
        other = policy.text().replace(f"uid = {os.geteuid()}", f"uid = {OTHER_UID}")
        assert local.owner.put("/v1/policy", content=other).status_code == 200
        with contextlib.suppress(ConnectionClosed):
            while True:
                talk.recv(timeout=60)
        assert talk.close_code == 4001


def test_a_tracker_of_this_user_needs_no_token_over_the_socket_alone(
    local: Running, folder: Path
) -> None:
    with socket_talk(folder, "/v1/tracker") as tracker:
        tracker.send(json.dumps({"type": "hello"}))
        assert hears(tracker)["type"] == "welcome"
    with local.talk(None, "/v1/tracker") as stranger:
        stranger.say(type="hello")
        assert stranger.hear()["type"] == "error"


@needs_root
def test_another_user_is_the_app_of_that_user_and_no_other_and_no_tracker(
    local: Running, folder: Path, policy: Policy
) -> None:
    token = local.owner.post("/v1/apps", json={"name": "token-app"}).json()["token"]
    assert (me_as(GAME_UID, folder), me_as(OTHER_UID, folder)) == ("game", "token")
    for header in (f"X-Uid: {GAME_UID}", f"X-Forwarded-For: uid {GAME_UID}"):
        assert me_as(OTHER_UID, folder, f"{header}\r\n") == "token"
    for uid in (GAME_UID, OTHER_UID):
        assert me_as(uid, folder, f"Authorization: Bearer {token}\r\n") == "token-app"
    wrong = f"Authorization: Bearer {token[:-1]}x\r\n"
    assert me_as(GAME_UID, folder, wrong) == "token", "not made good by the user"
    hello = '{"type":"hello"}'
    frame = f"\x81{chr(0x80 | len(hello))}\x00\x00\x00\x00{hello}"
    assert "hello with the tracker's token" in as_user(OTHER_UID, folder, UPGRADE, frame)
    assert local.owner.delete("/v1/apps/game").status_code == 200
    assert me_as(GAME_UID, folder) == "token", "an app that was dropped is not known any more"


def test_a_program_of_an_unknown_user_asks_and_then_chooses(
    local: Running, folder: Path, policy: Policy
) -> None:
    unnamed = POLICY.partition("[apps.here]")[0]
    assert local.owner.put("/v1/policy", content=unnamed).status_code == 200
    lamp, app = Target("lamp", 140, 80, 10, 10), user_app(os.geteuid())
    with (
        client.connect(f"unix:{folder / 's'}") as gaze,
        local.tracker() as tracker,
        ThreadPoolExecutor() as threads,
    ):
        with pytest.raises(Denied) as refusal:
            gaze.choose([lamp])
        assert refusal.value.code == "token"
        asked = threads.submit(gaze.ask, "choose", every_s=0.05)
        until(lambda: local.owner.get("/v1/asks").json()["asks"])
        (ask,) = local.owner.get("/v1/asks").json()["asks"]
        assert (ask["app"], ask["want"]) == (app, "choose")
        with pytest.raises(Denied) as refusal:
            gaze.choose([lamp])
        assert refusal.value.code == "no-grant"
        yes = {"preset": "choose", "lasts": "until-stopped", "ask": ask["id"]}
        assert local.owner.post(f"/v1/apps/{app}/grant", json=yes).status_code == 200
        assert asked.result(60) == "granted"
        chosen = threads.submit(gaze.choose, [lamp])
        while not chosen.done():
            tracker.look(230.0, 120.0, 0.4)
            tracker.look(145.0, 85.0, 1.0)
            tracker.talk.say(type="confirm")
            with contextlib.suppress(TimeoutError):
                chosen.result(0.2)
        assert chosen.result().name == "lamp"


def test_the_kernel_says_who_connected() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_uid(ours.fileno()) == os.geteuid()
    assert peer_uid(-1) is None


@pytest.mark.parametrize(
    ("uid", "words"),
    [
        ("{}", "the number of a user"),
        ("-1", "the number of a user"),
        ("true", "the number of a user"),
        ("65534", "in a container"),
        ("7\n[apps.b]\nuid = 7", "another than that of the app"),
        ("7\n[wearers.x.apps.b]\nuid = 7", "another than that of"),
    ],
)
def test_a_wrong_user_says_what_is_allowed(uid: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        Policy.parse(f"[apps.game]\nuid = {uid}\n")
    both = Policy.parse("[apps.a]\nuid = 7\n[wearers.anna.apps.a]\nuid = 7\n")
    assert Policy.parse(both.text()) == both, "one app of two wearers"


def test_the_socket_is_open_to_all_users_and_replaces_only_a_dead_one(folder: Path) -> None:
    path = folder / "t"
    first = listen_local(path)
    assert mode(path) == 0o666
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
