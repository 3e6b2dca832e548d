"""A PostgreSQL of its own for tests: Debian's, on loopback, in a temporary folder, as an
unprivileged user because it refuses root.

A test module imports the fixtures it uses, and those they use, with `# noqa: F401`.
"""

from __future__ import annotations

import atexit
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ports import free_port


def programs() -> Path | None:
    """Where PostgreSQL's programs are, newest version first."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda p: float(p.parts[-3]),
        reverse=True,
    )
    return found[0].parent if found else None


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
            return name
        except KeyError:
            continue
    return None


def _made(prefix: str) -> Path:
    """A new folder, in memory where that is possible: what is tested is killed processes, not lost
    power, and a slow disk makes minutes of seconds.
    """
    memory = Path("/dev/shm")
    roomy = (
        memory.is_dir()
        and os.access(memory, os.W_OK)
        and shutil.disk_usage(memory).free > 2 * 2**30
    )
    return Path(tempfile.mkdtemp(prefix=prefix, dir=memory if roomy else None))


@pytest.fixture
def quick_folder() -> Iterator[Path]:
    folder = _made("gazeveil-ledger-")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


class Server:
    """One cluster that can be stopped and started again."""

    def __init__(self, binaries: Path) -> None:
        self._bin = binaries
        self._user = _user()
        self.folder = _made("gazeveil-postgres-")
        self._password = secrets.token_hex(8)
        (self.folder / "password").write_text(self._password)
        self._watch()
        self.port = free_port()
        if self._user is not None:
            shutil.chown(self.folder, self._user)
            shutil.chown(self.folder / "password", self._user)
        self._run(
            "initdb",
            "-D",
            self._data,
            "-U",
            "gazeveil",
            "--pwfile",
            str(self.folder / "password"),
            "--auth=scram-sha-256",
            "-E",
            "UTF8",
            "--no-sync",
        )

    def _watch(self) -> None:
        """Clear up when the tests were killed before they could: a server of
        its own outlives them."""
        here, pid = str(self.folder), f"{self._data}/postmaster.pid"
        script = (
            f"while kill -0 {os.getpid()} 2>/dev/null && [ -d {here} ]; do sleep 1; done; [ -f"
            f" {pid} ] && kill -QUIT $(head -n 1 {pid}); rm -rf {here}"
        )
        none = subprocess.DEVNULL
        command = ["/bin/sh", "-c", script]
        subprocess.Popen(command, start_new_session=True, stdin=none, stdout=none, stderr=none)

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
            user=self._user,
            group=None if self._user is None else pwd.getpwnam(self._user).pw_gid,
            extra_groups=None if self._user is None else [],
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")

    def start(self) -> None:
        options = (
            f"-c listen_addresses=127.0.0.1 -c port={self.port} -c"
            f" unix_socket_directories={self.folder} -c shared_buffers=16MB -c max_connections=60"
            # Its workers come and go by themselves, one for each database in each minute.
            " -c autovacuum=off"
        )
        self._run(
            "pg_ctl", "start", "-w", "-D", self._data, "-l", str(self.folder / "log"), "-o", options
        )

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash: no checkpoint, connections cut."""
        self._run("pg_ctl", "stop", "-w", "-D", self._data, "-m", mode)

    @property
    def running(self) -> bool:
        return (Path(self._data) / "postmaster.pid").exists()

    def remove(self) -> None:
        if self.running:
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def fresh(self) -> str:
        """The URL of a new, empty database."""
        import psycopg

        name = f"t{secrets.token_hex(6)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, name: str) -> str:
        return f"postgresql://gazeveil:{self._password}@127.0.0.1:{self.port}/{name}"


#: The server of this process. Every module that imports the fixture has a fixture of its own.
_SERVERS: list[Server] = []


@pytest.fixture(scope="session")
def postgres() -> Server:
    binaries = programs()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed here; on Debian: apt-get install postgresql.")
    if not _SERVERS:
        _SERVERS.append(Server(binaries))
        atexit.register(_SERVERS[0].remove)
    if not _SERVERS[0].running:  # also after a test that stopped it and failed
        _SERVERS[0].start()
    return _SERVERS[0]


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, quick_folder: Path) -> str:
    """The URL of a new, empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{quick_folder / 'ledger.db'}"
    server: Server = request.getfixturevalue("postgres")
    return server.fresh()
