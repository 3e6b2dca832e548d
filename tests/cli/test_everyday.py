"""What everybody meets at a terminal: help, options that mean one thing, words of the command line
in messages, tables that can be read, and what is said when somebody stops a run.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.table import Table

import gazeveil
from gazeveil.cli.arguments import TableConsole, TimeLeftColumn, in_options
from gazeveil.cli.main import PANELS, VERBS, build
from tests.support.command_line import heard as run
from tests.support.places import ROOT


def test_flags_are_shown_without_a_value_and_verbs_in_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    _, told, _ = run(capsys, "demo", "--help")
    assert "--open" in told
    assert "bool" not in told.lower()
    for first in (line for verbs in PANELS.values() for line in verbs.values()):
        assert len(first) <= 60, f"the list of verbs shows all of: {first}"


def test_nothing_asked_for_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    for verb in ("inspect", "protect", "evaluate"):
        assert f" {verb} " in out


@pytest.fixture(scope="module")
def verbs() -> dict[str, Any]:
    command: Any = typer.main.get_command(build())
    return dict(command.commands)


def test_a_short_option_means_one_thing_everywhere(verbs: dict[str, Any]) -> None:
    assert len(verbs) >= len(VERBS)
    meanings: dict[str, set[str]] = defaultdict(set)
    for verb in verbs.values():
        for parameter in verb.params:
            long = [o for o in parameter.opts if o.startswith("--")]
            for short in parameter.opts:
                if short.startswith("-") and not short.startswith("--"):
                    meanings[short].add(long[0])
    assert meanings["-m"] == {"--mechanism"}
    assert meanings["-p"] == {"--parameter"}
    assert {short: names for short, names in meanings.items() if len(names) > 1} == {}


def test_the_extra_all_names_every_extra_of_users() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    (every,) = extras["all"]
    named = set(every.removeprefix("gazeveil[").removesuffix("]").split(","))
    assert named == set(extras) - {"all", "dev", "docs"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "PLACE"),
        ("events", "PLACE"),
        ("features", "PLACE"),
        ("protect", "PLACE", "OUT", "-m", "temporal:K=2"),
        ("publish", "PLACE", "OUT", "-m", "temporal:K=2"),
        ("scrub", "PLACE", "OUT"),
        ("verify", "PLACE"),
        ("attack", "PLACE", "PLACE"),
        ("evaluate", "PLACE"),
        ("evaluate", "PLACE.toml"),
        ("train", "PLACE", "--out", "OUT"),
    ],
)
def test_a_missing_path_is_said_so(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = str(tmp_path / "nowhere")
    given = [a.replace("PLACE", place).replace("OUT", str(tmp_path / "o")) for a in arguments]
    code, _, err = run(capsys, *given)
    assert code == 2
    assert "no such file" in err or "does not exist" in err
    assert "nowhere" in err
    assert not (tmp_path / "o").exists()


WORDS = [
    ("unit='px' and screen=Screen(...)", "--set unit=px and --screen 1280x720px,400x225mm,450mm"),
    ("Give screen= to mend this.", "Give --screen 1280x720px,400x225mm,450mm to mend this."),
    ("Say unit= one of: deg, px.", "Say --set unit= one of: deg, px."),
    ("Name it (format= in Python, --format on the command line).", "Name it (--format)."),
    ("read with clash='session'.", "read with --set clash=session."),
    ("use reading='corrected'.", "use reading=corrected."),
    ("The 'seed' parameter of Study must be", "The '--seed' option must be"),
    ("The 'mechanisms' parameter of Study must be", "The '--mechanism' option must be"),
    ("The 'sigma_deg' parameter of gaussian must be", None),
    ("person 'unit=' of 'task=1'", None),
    ("Got 'a=b' instead.", None),
]


@pytest.mark.parametrize(("message", "wanted"), WORDS)
def test_messages_speak_of_options(message: str, wanted: str | None) -> None:
    options = {"--set", "--screen", "--format", "--seed", "--mechanism"}
    assert in_options(message, options) == (message if wanted is None else wanted)


def test_wrong_units_are_answered_with_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("t_ms,x,y\n1,200,300\n2,210,310\n", "utf-8")
    code, _, err = run(capsys, "inspect", tmp_path / "a.csv", "--format", "csv")
    assert code == 2
    assert "--set unit=" in err
    code, _, err = run(capsys, "evaluate", tmp_path / "a.csv", "--repetitions", 0)
    assert "The '--repetitions' option must be" in err


def _table(*cells: str, **column: Any) -> Table:
    table = Table(title="t")
    for i in range(len(cells)):
        table.add_column(f"column{i}", **column)
    table.add_row(*cells)
    return table


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("column", [{}, {"overflow": "fold"}, {"no_wrap": True}])
def test_no_word_of_a_table_is_broken(width: int, column: dict[str, Any]) -> None:
    words = (
        "gaussian:sigma_deg=5,reading=published",
        "a short text of many words here",
        "日本語の名前",
    )
    out = io.StringIO()
    console = TableConsole(file=out, width=width, markup=False, highlight=False)
    console.print(_table(*words, **column))
    for word in " ".join(words).split():
        assert word in out.getvalue()
    assert console.width == width


def test_a_name_in_a_table_moves_no_cursor_and_turns_no_text_round() -> None:
    name = "a\x1b[2J\x9b1mb\r\u202ec\udcff"
    table = _table(name, "plain")
    out = io.StringIO()
    TableConsole(file=out, width=60, markup=False).print(table, name)
    assert set("\x1b\x9b\r\u202e\udcff").isdisjoint(out.getvalue())
    assert out.getvalue().count("a\\x1b[2J\\x9b1mb\\x0d\\u202ec\\udcff") == 2


class _Task:
    def __init__(self, elapsed: float | None, completed: float, remaining: float | None) -> None:
        self.elapsed, self.completed, self.remaining = elapsed, completed, remaining
        self.fields: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (_Task(30.0, 3, 9), "about 1:30 left"),
        (_Task(1.0, 0, 100_000), "0:01 so far"),
        (_Task(7.0, 0, 1), "0:07 so far"),
        (_Task(None, 0, None), ""),
    ],
)
def test_the_time_left_is_there_from_the_first_second(task: Any, words: str) -> None:
    shown = str(TimeLeftColumn().render(task))
    assert shown.startswith(words)
    assert bool(shown) == bool(words)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_study_that_is_stopped_says_what_was_kept(tmp_path: Path) -> None:
    raw = gazeveil.simulate(4, 4, 5.0, 120.0, seed=1).write(tmp_path / "raw")
    out = tmp_path / "out"
    arguments = ["evaluate", str(raw), "-m", "gaussian:sigma_deg=2", "-a", "rbfn", "-r", "40"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gazeveil", *arguments, "--workers", "1", "--out", str(out)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    until = time.monotonic() + 120
    while len(list(out.glob("cells/*.json"))) < 2 and time.monotonic() < until:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Stopped. " in said
    assert "cells are finished and kept in" in said
    kept = int(said.split("Stopped. ")[1].split(" of ")[0])
    assert kept == len(list(out.glob("cells/*.json"))) >= 2
    assert "Traceback" not in said
