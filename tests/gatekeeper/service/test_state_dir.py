"""What a service leaves on a shared machine: rights of folders and files, passwords, tokens, and
how fast it goes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gazeveil.cli.main import app as cli
from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.service.settings import Settings, load_settings, no_password, secret_text
from gazeveil.gatekeeper.service.state_dir import make_home
from tests.support.gatekeeper_running import Process, free_port, running
from tests.support.places import ROOT
from tests.support.postgres import Server, postgres  # noqa: F401
from tests.support.stalls import SteadyClock

SECRET = "correct-horse-battery"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# The home folder.


def test_a_new_home_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_home(tmp_path / "deep" / "home")
    finally:
        os.umask(before)
    assert mode(tmp_path / "deep" / "home") == 0o700


@pytest.mark.parametrize("wide", [0o755, 0o750, 0o1777, 0o701])
def test_a_folder_that_others_can_look_into_is_refused_and_not_changed(
    tmp_path: Path, wide: int
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(wide)
    with pytest.raises(ParameterError, match=r"open to other users .*chmod 700"):
        make_home(shared)
    assert mode(shared) == wide
    assert list(shared.iterdir()) == []


def test_gazeveil_serve_does_not_close_tmp() -> None:
    """The attack was a slip: --home /tmp took /tmp away from everybody on the machine."""
    before = mode(Path("/tmp"))
    command = [sys.executable, "-m", "gazeveil.cli.main", "serve", "--home", "/tmp", "--port", "0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.fail("it started in /tmp")
    finally:
        after = mode(Path("/tmp"))
        os.chmod("/tmp", before)
    assert after == before
    assert done.returncode == 2
    assert "open to other users" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_private_folder_with_other_files_is_used_and_they_are_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "letter.txt").write_text("dear")
    make_home(home)
    assert "not the service's" in caplog.text
    assert (home / "letter.txt").read_text() == "dear"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's folder")
def test_another_users_folder_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    os.chown(home, 65534, 65534)
    with pytest.raises(ParameterError, match="belongs to another user"):
        make_home(home)


# The database.


def test_sqlite_files_outside_home_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    before = os.umask(0)
    try:
        with running(tmp_path / "home", database=f"sqlite:///{folder / 'gaze.sqlite'}") as here:
            here.app()
            files = {path.name: mode(path) for path in folder.iterdir()}
    finally:
        os.umask(before)
    assert set(files) >= {"gaze.sqlite", "gaze.sqlite-wal", "gaze.sqlite-shm"}
    assert set(files.values()) == {0o600}


def test_a_sqlite_file_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "gaze.sqlite"
    path.touch(mode=0o640)
    path.chmod(0o640)
    with Ledger.open(f"sqlite:///{path}"):
        pass
    assert mode(path) == 0o640


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
    done = CliRunner().invoke(
        cli, ["serve", "--home", str(tmp_path / "home"), "--port", "0", "--database", url]
    )
    said = done.output + str(done.exception or "")
    assert done.exit_code != 0
    assert isinstance(done.exception, ParameterError) or "holds a password" in said
    assert "GAZEVEIL_DATABASE_FILE" in said
    assert SECRET not in said
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///x",
        "postgresql://gaze@127.0.0.1/gaze",
        "postgresql://gaze@127.0.0.1/gaze?passfile=/x&sslmode=require",
    ],
)
def test_a_url_without_a_password_is_not_refused(url: str) -> None:
    no_password(url)


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
    with pytest.raises(ParameterError, match="cannot be read"):
        secret_text(tmp_path / "none", "database_file")
    file.write_text("a\nb\n")
    with pytest.raises(ParameterError, match="one line"):
        secret_text(file, "database_file")


def test_settings_do_not_show_the_password() -> None:
    shown = Settings(database=f"postgresql://gaze:{SECRET}@127.0.0.1/gaze")
    assert SECRET not in repr(shown)
    assert SECRET not in str(shown)


def test_a_running_service_shows_its_password_to_nobody(tmp_path: Path, postgres: Server) -> None:
    url = postgres.fresh()
    password = url.split(":")[2].split("@")[0]
    file = tmp_path / "url"
    file.write_text(url + "\n")
    file.chmod(0o600)
    with Process(
        tmp_path / "home", free_port(), GAZEVEIL_DATABASE_FILE=str(file), GAZEVEIL_LOG_LEVEL="debug"
    ) as service:
        assert service.process is not None
        owner = service.owner()
        pages = [
            owner.get(path).text
            for path in (
                "/health",
                "/v1/apps",
                "/v1/certificate",
                "/v1/audit?last=100",
                "/openapi.json",
            )
        ]
        owner.close()
        shown = Path(f"/proc/{service.process.pid}/cmdline").read_bytes().decode()
        for text in (shown, service.errors.read_text(), *pages):
            assert password not in text


# The tracker's token.


def test_the_trackers_token_lies_in_a_file_and_is_another_after_a_restart(tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    file = home / "tracker-token"
    with Process(home, port, GAZEVEIL_TRACKER="websocket") as service:
        first = file.read_text().strip()
        assert re.fullmatch(r"gv_tracker_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", first)
        assert mode(file) == 0o600
        owner = service.owner()
    with Process(home, port, GAZEVEIL_TRACKER="websocket") as service:
        begun = file.read_text().strip()
        assert begun != first
        assert _welcomes(service.address, begun)
        assert not _welcomes(service.address, first)
        owner = service.owner()
        second = owner.post("/v1/tracker/token").json()["token"]
        owner.close()
        assert file.read_text().strip() == second
        assert not _welcomes(service.address, begun)
        assert _welcomes(service.address, second)
    file.write_text("gv_tracker_0123456789abcdef_nonsense\n")
    with Process(home, port, GAZEVEIL_TRACKER="websocket") as service:
        third = file.read_text().strip()
        assert third != second
        assert _welcomes(service.address, third)


def _welcomes(address: str, token: str) -> bool:
    from websockets.sync.client import connect

    there = address.replace("http", "ws", 1) + "/v1/tracker"
    with connect(there, compression=None, open_timeout=60) as socket:
        socket.send(json.dumps({"type": "hello", "token": token}))
        return bool(json.loads(socket.recv(timeout=60))["type"] == "welcome")


# Going.


@pytest.mark.heavy
def test_sigterm_ends_it_in_time_while_everything_is_being_compiled(tmp_path: Path) -> None:
    """With a cold cache a stop took 33 seconds: it waited for the compiler, which nobody can
    interrupt.
    """
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir(mode=0o700)
    cache.mkdir()
    (home / "policy.toml").write_text(
        "consent = true\n"
    )  # samples are looked at, so the tracker's thread compiles too
    service = Process(
        home, free_port(), NUMBA_CACHE_DIR=str(cache), GAZEVEIL_SHUTDOWN_S="2"
    ).start()
    time.sleep(1.0)
    assert service.process is not None
    with SteadyClock() as clock:
        code = service.kill(signal.SIGTERM)
        took_s = clock()
    assert code == 0
    assert took_s < 15, f"{took_s:.1f} s: shutdown_s + 2, or half a minute for the compiler"


def test_the_floor_of_uvicorn_has_what_is_used() -> None:
    """0.35 has the protocol, 0.44 its pings, 0.52.1 is the first that waits for a slow reader."""
    text = (ROOT / "pyproject.toml").read_text()
    floor = re.search(r'"uvicorn>=([0-9.]+)"', text)
    assert floor is not None
    assert tuple(map(int, floor.group(1).split("."))) >= (0, 52, 1)
