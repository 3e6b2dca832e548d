"""The unit of systemd: what can be known of it without a system that runs systemd, and the token
file it hands over.

The Containerfile, read: no container is built here, so what can be known without building is
checked.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest
import typer

from gazeveil.cli.main import app
from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.settings import Settings, load_settings
from tests.support.gatekeeper_running import running
from tests.support.places import ROOT

UNIT = ROOT / "packaging" / "gazeveil.service"
ANALYZE = shutil.which("systemd-analyze")

needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")


def test_every_variable_of_the_unit_is_a_setting_that_does_something() -> None:
    text = UNIT.read_text()
    names = re.findall(r"GAZEVEIL_([A-Z_]+)=", text)
    assert {"HOME", "UNIX_SOCKET", "OWNER_TOKEN_FILE", "DATABASE_FILE"} <= set(names)
    assert {name.lower() for name in names} <= set(Settings.model_fields)
    assert "password" not in text.lower()
    # With DynamicUser= its own folder would be a link into one that other users cannot enter: the
    # socket's unit makes it.
    assert not re.search(r"^RuntimeDirectory", text, re.M)
    local = re.search(r"^ListenStream=(%t/.*)$", UNIT.with_suffix(".socket").read_text(), re.M)
    assert local is not None
    assert f"UNIX_SOCKET={local.group(1)}\n" in text


def test_the_command_of_the_unit_is_one_of_ours() -> None:
    from gazeveil.cli.main import app

    words = re.search(r"^ExecStart=\S+/gazeveil (.*)$", UNIT.read_text(), re.M)
    assert words is not None
    assert words.group(1).split()[0] in {command.name for command in app.registered_commands}


@pytest.fixture
def here_unit(tmp_path: Path) -> Path:
    """The unit with a program that is there: systemd looks for it."""
    shutil.copy(UNIT.with_suffix(".socket"), tmp_path)
    copy = tmp_path / "gazeveil.service"
    copy.write_text(
        re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT.read_text(), flags=re.M)
    )
    return copy


@needs_systemd
def test_systemd_finds_no_mistake_in_the_unit(here_unit: Path) -> None:
    done = subprocess.run(
        [
            *(str(ANALYZE), "verify", "--man=no"),
            *(str(here_unit), str(here_unit.with_suffix(".socket"))),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    mine = [line for line in (done.stdout + done.stderr).splitlines() if "gazeveil" in line]
    assert not mine


@needs_systemd
def test_the_unit_is_little_exposed_as_the_manual_says(here_unit: Path) -> None:
    done = subprocess.run(
        [str(ANALYZE), "security", "--offline=true", "--threshold=20", str(here_unit)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


# The token file.


def made_token() -> str:
    return f"gv_owner_{secrets.token_hex(8)}_{secrets.token_urlsafe(32)}"


def asked(address: str, token: str) -> int:
    return httpx.get(
        f"{address}/v1/apps", headers={"Authorization": f"Bearer {token}"}, timeout=60
    ).status_code


def test_the_token_of_the_file_is_the_owners_and_that_of_an_earlier_file_is_not(
    tmp_path: Path,
) -> None:
    home, file = tmp_path / "home", tmp_path / "owner-token"
    first, second = made_token(), made_token()
    for token in (first, first, second):
        file.write_text(token + "\n")
        file.chmod(0o600)
        with running(home, owner_token_file=file) as here:
            assert asked(here.address, token) == 200
            if token == second:
                assert asked(here.address, first) == 401
            listed = here.owner.get("/v1/owner/tokens").json()["tokens"]
            assert [one["name"] for one in listed].count("owner-token-file") == 1
    with running(home) as here:
        assert asked(here.address, second) == 401, "without the file its token is void"


def test_a_token_that_was_ended_stays_ended(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "owner-token"
    token = made_token()
    file.write_text(token)
    file.chmod(0o600)
    with running(home, owner_token_file=file) as here:
        assert here.owner.delete(f"/v1/owner/tokens/{token.split('_')[2]}").status_code == 204
        assert asked(here.address, token) == 401
    with pytest.raises(ParameterError, match="was ended"):
        Service(load_settings(home=home, port=0, tracker="websocket", owner_token_file=file))


@pytest.mark.parametrize(
    "text", ["secret", "gv_app_0123456789abcdef_" + "x" * 43, "gv_owner_0123456789abcdef_short"]
)
def test_a_file_without_an_owners_token_is_refused_without_being_quoted(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "owner-token"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ParameterError, match="holds no owner's token") as no:
        Service(
            load_settings(
                home=tmp_path / "home", port=0, tracker="websocket", owner_token_file=file
            )
        )
    assert text not in str(no.value)


def test_an_apps_token_cannot_be_made_the_owners(tmp_path: Path) -> None:
    file = tmp_path / "owner-token"
    with running(tmp_path / "home") as here:
        token = here.app("shop")
        assert here.service is not None
        assert not here.service.tokens.adopt(
            "owner-token-file", "owner", token.replace("gv_app_", "gv_owner_")
        )
        file.write_text(token)
        assert asked(here.address, token) == 403


def parse(text: str) -> list[tuple[str, str]]:
    """Instructions and what follows them; lines that end in a backslash go on."""
    joined = re.sub(
        r"\\\n",
        " ",
        "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#")),
    )
    found = [line.split(None, 1) for line in joined.splitlines() if line.strip()]
    assert all(len(parts) == 2 for parts in found)
    return [(word, rest.strip()) for word, rest in found]


def containerfile() -> list[tuple[str, str]]:
    return parse((ROOT / "Containerfile").read_text(encoding="utf-8"))


def test_the_last_stage_runs_the_service_as_a_user_without_rights() -> None:
    lines = containerfile()
    last = lines[max(i for i, (word, _) in enumerate(lines) if word == "FROM") :]
    users = [rest for word, rest in last if word == "USER"]
    assert users == ["gaze"]
    made = [rest for word, rest in last if word == "RUN" and "useradd" in rest]
    assert "--uid 10001" in made[0], "a number that is not 0"
    after = last[[word for word, _ in last].index("USER") :]
    assert not [word for word, _ in after if word in ("RUN", "COPY", "ADD")], (
        "nothing is made as root after the user is set"
    )
    verb = json.loads(dict(last)["CMD"])
    assert dict(last)["ENTRYPOINT"] == '["gazeveil"]'
    assert verb[0] in {command.name for command in app.registered_commands}
    known = {
        option
        for parameter in typer.main.get_command(app).commands[verb[0]].params
        for option in parameter.opts
    }  # type: ignore[attr-defined]
    assert {word for word in verb if word.startswith("--")} <= known
    assert dict(last)["EXPOSE"] == verb[verb.index("--port") + 1]


def test_what_is_copied_is_there_and_the_extra_and_the_python_exist() -> None:
    lines = containerfile()
    for word, rest in lines:
        if word == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.findall(r'"\.\[(\w+)\]"', " ".join(rest for _, rest in lines))
    assert extras == ["service"]
    assert "service" in project["optional-dependencies"]
    images = {rest.split()[0] for word, rest in lines if word == "FROM"}
    assert len(images) == 1, "what is compiled in one stage must run in the other"
    minor = int(re.findall(r"python:3\.(\d+)-slim", images.pop())[0])
    assert 11 <= minor <= 13
    assert project["requires-python"] == ">=3.11,<3.14"


def test_no_secret_is_baked_in() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert not re.search(r"gv_(app|tracker|owner)_|password|secret", text, re.IGNORECASE)
