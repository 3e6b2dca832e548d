"""The Containerfile, read: no container is built here, so what can be known without building is
checked.
"""

from __future__ import annotations

import json
import re
import tomllib

import typer

from gazeveil.cli.main import app
from tests.support.places import ROOT

INSTRUCTIONS = {
    "FROM",
    "WORKDIR",
    "COPY",
    "RUN",
    "ENV",
    "USER",
    "VOLUME",
    "EXPOSE",
    "STOPSIGNAL",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
}


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


def test_every_instruction_is_one_and_lists_are_json() -> None:
    lines = containerfile()
    assert lines[0][0] == "FROM"
    assert {word for word, _ in lines} <= INSTRUCTIONS
    for word, rest in lines:
        if word in ("ENTRYPOINT", "CMD", "VOLUME"):
            assert all(isinstance(part, str) for part in json.loads(rest)), word
        if word == "HEALTHCHECK":
            compile(json.loads(rest.partition("CMD ")[2])[2], "health", "exec")


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
