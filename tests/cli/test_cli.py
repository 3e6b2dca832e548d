"""The command line as its user meets it: what it prints, what it writes, how it fails.

A command imports what it uses: modules are counted, because seconds differ by machine.

`gazeveil explore` as somebody types it.

What everybody meets at a terminal: help, options that mean one thing, words of the command line
in messages, tables that can be read, and what is said when somebody stops a run.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import polars as pl
import pytest
import typer
from rich.table import Table

import gazeveil
from gazeveil.cli.arguments import TableConsole, TimeLeftColumn, in_options
from gazeveil.cli.main import PANELS, VERBS, build
from tests.support.command_line import heard, run
from tests.support.places import ROOT

SCREEN = "1280x720px,400x225mm,450mm"


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "cohort"
    assert (
        run(
            "simulate",
            folder,
            "--people",
            4,
            "--stimuli",
            2,
            "--seconds",
            12,
            "--rate",
            120,
            "--task",
            "reading",
            "--seed",
            3,
        )
        == 0
    )
    return folder


def test_inspect_prints_writes_and_draws(
    cohort: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", cohort, "--json", tmp_path / "o.json", "--plot", tmp_path / "o.png") == 0
    out = capsys.readouterr().out
    for part in ("people", "4 (age, gender known)", "120 Hz", "Picture:"):
        assert part in out
    figures = json.loads((tmp_path / "o.json").read_text())
    assert len(figures["recordings"]) == 8
    assert figures["samples"] == 8 * 12 * 120
    assert all(r["rows"] in (0, r["samples"]) for r in figures["recordings"])
    assert (tmp_path / "o.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ((), "in a headset"),
        (("--task", "reading"), "at a screen"),
        (("--screen", SCREEN), "at a screen"),
    ],
)
def test_simulate_says_where_people_look(
    words: tuple[str, ...], place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--people", 1, "--stimuli", 1, "--seconds", 1, "--rate", 60)
    assert run("simulate", tmp_path / "out", *few, *words) == 0
    assert f"1 recordings of 1 people {place}:" in capsys.readouterr().out


def test_inspect_counts_every_recording_of_its_screens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{17 * i},{9 * i},{7 * i}\n" for i in range(60))
    index = ["file,person,stimulus,width_px,height_px,width_mm,height_mm,distance_mm"]
    for n in range(5):
        (tmp_path / f"{n}.csv").write_text(f"t_ms,x_px,y_px\n{rows}")
        index.append(f"{n}.csv,p{n},sea,{1280 + n},720,400,225,450")
    (tmp_path / "index.csv").write_text("\n".join(index))
    assert run("inspect", tmp_path, "--set", f"index={tmp_path / 'index.csv'}") == 0
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "format csv" in told
    assert "screen 1282 x 720 px and 2 more" in told
    assert told.count("mm away (1 recordings)") == 3
    assert "2 others (2 recordings)" in told


def test_events_and_features_go_to_files(cohort: Path, tmp_path: Path) -> None:
    assert (
        run(
            "events",
            cohort,
            "--method",
            "ivt",
            "--parameter",
            "setting=ren2024",
            "--out",
            tmp_path / "e.parquet",
            "--json",
            tmp_path / "e.json",
        )
        == 0
    )
    events = pl.read_parquet(tmp_path / "e.parquet")
    assert set(events.columns) >= {
        "person",
        "stimulus",
        "kind",
        "onset",
        "offset",
        "onset_ns",
        "offset_ns",
        "duration_s",
    }
    assert (
        json.loads((tmp_path / "e.json").read_text())["events"]["fixation"]["count"]
        == events.filter(pl.col("kind") == "fixation").height
    )
    assert run("features", cohort, "--kind", "saccade", "--out", tmp_path / "f.csv") == 0
    assert pl.read_csv(tmp_path / "f.csv").height > 0


def test_mechanisms_and_audits_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("list", "mechanisms", "--json", tmp_path / "m.json") == 0
    rows = json.loads((tmp_path / "m.json").read_text())
    assert {"lpa", "fpa", "k-same-select", "demographics"} <= {r["name"] for r in rows}
    assert all(r["status"] in {"proved", "claimed", "empirical", "refuted"} for r in rows)
    assert run("list", "mechanisms", "lpa") == 0
    assert "Parameters: epsilon" in capsys.readouterr().out
    words = ("--trials", 2000, "--confidence", 0.999999, "--json", tmp_path / "a.json")
    assert run("audit", "lpa:epsilon=1", *words) == 0
    assert json.loads((tmp_path / "a.json").read_text())[0]["refuted"] is False


def test_datasets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "datasets", "gazecom") == 0
    assert "Dorr" in capsys.readouterr().out


def test_names_of_any_text_are_printed_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{4 * i},{(i // 50) % 7 - 3},{i % 3},[/b] x,[red]s[/red]\n" for i in range(400))
    (tmp_path / "a.csv").write_text("t_ms,x_deg,y_deg,person,stimulus\n" + rows)
    assert run("inspect", tmp_path / "a.csv", "--plot", tmp_path / "[/i].png") == 0
    out = capsys.readouterr().out
    assert "[/b] x" in out
    assert "[red]s[/red]" in out
    assert "[/i].png" in out
    assert run("events", tmp_path / "a.csv", "--out", tmp_path / "[/e].csv") == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("inspect", "/no/such/folder"), "/no/such/folder: there is no such file or folder."),
        (("inspect",), "Missing argument"),
        (("simulate", "{cohort}"), "exists and is not an empty folder"),
        (("inspect", ".", "--fast"), "No such option"),
        (("inspcet",), "No such command 'inspcet'"),
        (
            ("simulate", "{tmp}/x", "--people", "0"),
            ("The '--people' option must be a whole number of at least 1. Got 0 instead."),
        ),
        (("simulate", "{tmp}/x", "--task", "walking"), "The '--task' option must be one of"),
        (("events", "{cohort}", "--method", "magic"), "The '--method' option must be one of"),
        (
            ("events", "{cohort}", "--out", "{tmp}/e.txt"),
            "The '--out' option must name a .parquet or .csv file.",
        ),
        (("features", "{cohort}", "--kind", "window"), "No recording gives a row"),
        (("inspect", "{cohort}", "--set", "nonsense"), "The '--set' option must be NAME=VALUE."),
        (
            ("inspect", "{cohort}", "--screen", "big"),
            "The '--screen' option must look like 1280x720px,400x225mm,450mm.",
        ),
        (
            ("inspect", "{cohort}", "--screen", "1.2.3x4px,1x1mm,1mm"),
            "The '--screen' option must look like",
        ),
        (
            ("inspect", "{cohort}", "--set", "format=csv"),
            "'format' is not given as NAME=VALUE but by --format.",
        ),
        (
            ("events", "{cohort}", "--parameter", "method=ivt"),
            "'method' is not given as NAME=VALUE but by --method.",
        ),
        (
            ("features", "{cohort}", "--parameter", "kind=saccade"),
            "'kind' is not given as NAME=VALUE but by --kind.",
        ),
        (
            ("simulate", "{tmp}/x", "--people", "1", "--stimuli", "1", "--seconds", "1e12"),
            "more memory than there is",
        ),
        (("audit", "lpa:epsilon=0"), "must be an exact number above 0"),
    ],
)
def test_mistakes_end_with_one_sentence_and_code_2(
    arguments: tuple[str, ...],
    sentence: str,
    cohort: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(*(a.format(cohort=cohort, tmp=tmp_path) for a in arguments)) == 2
    error = capsys.readouterr().err.replace("\n", " ")
    assert sentence in error
    assert "Traceback" not in error


def test_the_installed_command_knows_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gazeveil.cli.main", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("gazeveil 0.")


def test_a_verb_is_called_as_its_module_and_every_module_of_a_verb_is_one() -> None:
    folder = Path(import_module("gazeveil.cli").__path__[0])
    files = {f.stem for f in folder.glob("*.py") if "\nHELP = " in f.read_text("utf-8")}
    assert files == set(VERBS)


HEAVY = {"numba", "scipy", "sklearn", "polars", "matplotlib", "torch", "cryptography", "numpy"}

#: Modules of the package that the help of a verb may import.
MOST_OF_OURS = 15

COUNT = """
import sys
from gazeveil.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0, end.code
print()
print(*sys.modules)
"""

#: The same for the help of many verbs: a process for each, all from one that has begun.
HELP = """
import os, sys, typer.rich_utils
from gazeveil.cli.main import main
for verb in sys.argv[1:]:
    sys.stdout.flush()
    if os.fork() == 0:
        code = 1
        try:
            main([verb, "--help"])
        except SystemExit as end:
            code = end.code
        print()
        print("MODULES", verb, code, *sys.modules, flush=True)
        os._exit(0)
    os.wait()
"""


def imported(*arguments: str, code: str = COUNT, **environment: str) -> list[str]:
    """The lines that a command prints, and then the modules that it has imported."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout.splitlines()


def modules_of(*arguments: str, **environment: str) -> set[str]:
    """The modules that a command has imported when it ends."""
    return set(imported(*arguments, **environment)[-1].split())


def ours(modules: set[str]) -> set[str]:
    return {m for m in modules if m.partition(".")[0] == "gazeveil"}


def test_the_help_of_a_verb_imports_its_options_alone() -> None:
    lines = [line.split() for line in imported(*VERBS, code=HELP) if line.startswith("MODULES ")]
    assert [line[1] for line in lines] == list(VERBS)
    for _, verb, code, *modules in lines:
        assert code == "0", verb
        assert set(modules) & HEAVY == set(), verb
        assert f"gazeveil.cli.{verb}" in modules
        assert len(ours(set(modules))) <= MOST_OF_OURS, verb


def test_the_list_of_verbs_imports_no_verb() -> None:
    modules = modules_of("--help")
    assert modules & {f"gazeveil.cli.{verb}" for verb in VERBS} == set()
    assert modules & (HEAVY | {"multiprocessing.context", "pydantic"}) == set()


@pytest.mark.parametrize(("words", "position"), [("gazeveil in", 1), ("gazeveil inspect --", 2)])
def test_completion_imports_the_verb_it_completes(words: str, position: int) -> None:
    modules = modules_of(
        _GAZEVEIL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(position)
    )
    verbs = modules & {f"gazeveil.cli.{verb}" for verb in VERBS}
    assert verbs == ({"gazeveil.cli.inspect"} if position == 2 else set())
    assert modules & HEAVY == set()


def test_to_inspect_takes_no_mathematics_and_to_protect_no_compiler(tmp_path: Path) -> None:
    gazeveil.simulate(2, 2, 5.0, 120.0, seed=1).write(tmp_path / "raw")
    modules = modules_of("inspect", str(tmp_path / "raw"))
    assert modules & HEAVY == {"numpy", "polars"}
    assert len(ours(modules)) <= 51
    # The first compiles what no run has compiled before it.
    _, second = (
        modules_of(
            "protect", str(tmp_path / "raw"), str(tmp_path / name), "-m", "gaussian:sigma_deg=3"
        )
        for name in "ab"
    )
    assert second & {"numba.np.linalg", "scipy.linalg"} == set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("explore") / "recordings"
    gazeveil.simulate(3, 3, 6, 60, task="reading", seed=1).write(out)
    return out


def test_the_page_is_saved_and_says_what_is_in_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "new" / "page.html"
    assert run("explore", folder, "--save", page, "-m", "gaussian:sigma_deg=2") == 0
    said = capsys.readouterr().out
    assert "3 people, 3 stimuli, 9 recordings" in said
    assert "no recorded gaze is in it" in said
    assert page.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--save", "page.txt"), "HTML"),
        (("-m", "gaussian:sigma_deg=0|1"), "sigma_deg"),
        (("-m", "lpa:epsilon=1"), "releases are recordings"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    folder: Path, arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("explore", folder, *arguments) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said


def test_it_serves_until_it_is_stopped(folder: Path) -> None:
    command = [sys.executable, "-m", "gazeveil.cli.main", "explore", str(folder), "--no-open"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        link = lines[1].split()[1]
        address, _, secret = link.partition("#")
        assert address.startswith("http://127.0.0.1:")
        asked = Request(f"{address}api/board", headers={"X-Gazeveil-Session": secret})
        assert b'"p1"' in urlopen(asked, timeout=30).read()
        process.send_signal(signal.SIGINT)
        assert "nothing was written" in process.stdout.read()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def test_flags_are_shown_without_a_value_and_verbs_in_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    _, told, _ = heard(capsys, "demo", "--help")
    assert "--open" in told
    assert "bool" not in told.lower()
    for first in (line for verbs in PANELS.values() for line in verbs.values()):
        assert len(first) <= 60, f"the list of verbs shows all of: {first}"


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
    code, _, err = heard(capsys, *given)
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
    code, _, err = heard(capsys, "inspect", tmp_path / "a.csv", "--format", "csv")
    assert code == 2
    assert "--set unit=" in err
    code, _, err = heard(capsys, "evaluate", tmp_path / "a.csv", "--repetitions", 0)
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
