"""A command imports what it uses: modules are counted, because seconds differ by machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gazeveil
from gazeveil.cli.main import VERBS

HEAVY = {"numba", "scipy", "sklearn", "polars", "matplotlib", "torch", "cryptography", "numpy"}

#: Modules of the package that the help of a verb may import.
MOST_OF_OURS = 20

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
    assert modules & HEAVY == set()


@pytest.mark.parametrize(("words", "position"), [("gazeveil in", 1), ("gazeveil inspect --", 2)])
def test_completion_imports_the_verb_it_completes(words: str, position: int) -> None:
    modules = modules_of(
        _GAZEVEIL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(position)
    )
    verbs = modules & {f"gazeveil.cli.{verb}" for verb in VERBS}
    assert verbs == ({"gazeveil.cli.inspect"} if position == 2 else set())
    assert modules & HEAVY == set()


def test_to_inspect_recordings_takes_no_mathematics(tmp_path: Path) -> None:
    gazeveil.simulate(2, 2, 5.0, 120.0, seed=1).write(tmp_path / "raw")
    modules = modules_of("inspect", str(tmp_path / "raw"))
    assert modules & HEAVY == {"numpy", "polars"}
    assert len(ours(modules)) <= 70


def test_the_package_alone_imports_nothing_heavy() -> None:
    code = "import gazeveil, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & HEAVY == set()
    assert len(ours(set(done.stdout.split()))) <= 15
