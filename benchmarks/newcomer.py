"""The path of a newcomer: an empty environment, the wheel, and the page of the first ten minutes
line by line and a few commands more, twice. A wheel with machine code compiles nothing.

Run by `make newcomer` and by `tests/manual/test_pages.py`. `--before` follows the page with a wheel
without machine code too, command by command; `--page` writes the seconds into a page.
"""

from __future__ import annotations

import argparse
import doctest
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.support.manual import CodeBlock, blocks
from tests.support.places import ROOT

PAGE = ROOT / "docs" / "start" / "ten-minutes.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

Ended = subprocess.CompletedProcess[str]

#: What is tried, by the names of interpreters.
PYTHONS = ("python3.11", "python3.12", "python3.13")


def find(python: str) -> str | None:
    """Where an interpreter is that is what its name says: on the path, or one of pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    version = python.removeprefix("python")
    others = sorted(root.glob(f"versions/{version}*/bin/{python}"), reverse=True)
    for command in (python, *map(str, others)):
        try:
            said = subprocess.run(
                [command, "--version"], capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        if version in ("", "3") or said.stdout.split()[1].startswith(version + "."):
            return command
    return None


def build_wheel(folder: Path, python: str) -> Path:
    """The wheel of this checkout, with machine code where that can be compiled for a Python; for
    no Python, without.
    """
    folder.mkdir(exist_ok=True)
    made = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    # The build's tools are those of this environment: nothing is fetched to build.
    made += ["--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    own = python == f"python{sys.version_info.major}.{sys.version_info.minor}"
    subprocess.run(made, check=True, env={**os.environ, "GAZEVEIL_KERNELS": "1" if own else ""})
    return next(folder.glob("gazeveil-*.whl"))


#: What is run after the page, in a ledger of its own: their output is not compared.
MORE = (
    "gazeveil --help",
    "gazeveil features people --out features.parquet",
    "gazeveil protect people keyed -m gaussian:sigma_deg=3 --key-file key.json",
    "gazeveil attack people keyed --key-file key.json -r 3 -w 1",
)

#: The table of seconds stands between these lines of a page.
MARKS = "<!-- begin first commands -->", "<!-- end first commands -->"

#: Seconds of each command: of each wheel from an empty home, then again.
Times = dict[str, list[float]]


class Installed:
    """An empty environment with a wheel in it, and an empty home."""

    def __init__(self, python: str, wheel: Path, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        subprocess.run([python, "-m", "venv", str(folder / "gaze")], check=True)
        self.bin_dir = folder / "gaze" / ("Scripts" if os.name == "nt" else "bin")
        pip = [str(self.bin_dir / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
        subprocess.run(pip, check=True)
        (folder / "user").mkdir()
        self.wheel, self.folder = wheel, folder
        kept = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "GAZEVEIL_DATA")
        self.environment = {k: v for k, v in os.environ.items() if k not in kept} | {
            "PATH": f"{self.bin_dir}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder / "user"),
            "NUMBA_CACHE_DIR": str(folder / "compiled"),
            "COLUMNS": "100",
        }

    def run(self, command: list[str], turn: str, ledger: str = "home") -> Ended:
        """Run a command in the folder of a turn."""
        (work := self.folder / turn).mkdir(exist_ok=True)
        home = {"GAZEVEIL_HOME": str(self.folder / f"{ledger}-{turn}")}
        return subprocess.run(
            command,
            cwd=work,
            env=self.environment | home,
            capture_output=True,
            text=True,
            check=False,
        )

    def follow(self, block: CodeBlock, turn: str) -> Iterator[tuple[str, float, str]]:
        """Each command of a block of the page, its seconds, and what was not as printed."""
        if block.kind == "python":
            (self.folder / turn / "block.txt").write_text(block.text, encoding="utf-8")
            code = (
                "import doctest, sys; sys.exit(doctest.testfile('block.txt', module_relative=False,"
                f" optionflags={FLAGS}).failed)"
            )
            done = self.run([str(self.bin_dir / "python"), "-c", code], turn)
            wrong = f"{block.place}: {done.stdout}{done.stderr}" if done.returncode else ""
            yield "", 0.0, wrong
            return
        for step in block.steps():
            # A reader pastes the line into a shell.
            began = perf_counter()
            done = self.run(["/bin/sh", "-c", step.command], turn)
            spent_s = perf_counter() - began
            same = doctest.OutputChecker().check_output(step.expected + "\n", done.stdout, FLAGS)
            wrong = (
                ""
                if same and not done.returncode
                else (
                    f"{block.place}: {step.command}\nexpected:\n{step.expected}\ngot ("
                    f"{done.returncode}):\n{done.stdout}{done.stderr}"
                )
            )
            yield step.command, spent_s, wrong

    def more(self, command: str, turn: str) -> Iterator[tuple[str, float, str]]:
        """A command that is not on the page."""
        began = perf_counter()
        done = self.run(["/bin/sh", "-c", command], turn, "other")
        wrong = f"{command}\n{done.stdout}{done.stderr}" if done.returncode else ""
        yield command, perf_counter() - began, wrong


def walk(python: str, wheels: list[Path], folder: Path, times: Times | None = None) -> list[str]:
    """Install each wheel into an empty environment and follow the page, cold and warm, by turns.

    Returns
    -------
    list of str
        What was not as the page says, one entry for each command or block; empty where all is.
    """
    times = {} if times is None else times
    installed = [Installed(python, wheel, folder / f"wheel-{i}") for i, wheel in enumerate(wheels)]
    wrong: list[str] = []
    shown = [block for block in blocks(PAGE) if not block.reason]
    for turn in ("cold", "warm"):
        steps = chain(
            ([i.follow(block, turn) for i in installed] for block in shown),
            ([i.more(command, turn) for i in installed] for command in MORE),
        )
        for side_by_side in steps:
            for command, spent_s, what in chain.from_iterable(zip(*side_by_side, strict=True)):
                wrong += [what] * bool(what)
                times.setdefault(command, []).append(spent_s)
    times.pop("", None)
    for each in installed:
        if not each.wheel.name.endswith("-any.whl"):
            wrong += compiled_in(each.folder / "compiled")
    return wrong


def compiled_in(folder: Path) -> list[str]:
    """What was compiled although the wheel holds machine code."""
    return [f"compiled: {file.name}" for file in sorted(folder.rglob("*.nbc"))]


def written(times: Times, wheels: int) -> str:
    """Seconds of each command, first and again, as rows of a table with a column for each wheel."""
    head = ["command", *("without machine code", "with it")[-wheels:]]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for command, spent_s in times.items():
        name = command.split()[1].removeprefix("--")
        pairs = (
            f"{cold_s:.1f}/{again_s:.1f}"
            for cold_s, again_s in zip(spent_s[:wheels], spent_s[wheels:], strict=True)
        )
        lines.append(f"| {name} | {' | '.join(pairs)} |")
    return "\n".join(lines)


def main() -> int:
    """Walk with every interpreter that is here, or those named, and say what was not as the page
    says.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="*", default=PYTHONS)
    parser.add_argument("--wheel", type=Path, help="walk with this one instead of building one")
    parser.add_argument("--before", action="store_true", help="and one without machine code")
    parser.add_argument("--page", type=Path, help="write the seconds between its markers")
    given = parser.parse_args()
    found = [command for python in given.pythons if (command := find(python))]
    bad = 0
    for python in found:
        with TemporaryDirectory(prefix="newcomer-") as name:
            folder = Path(name)
            times: Times = {}
            wheels = [build_wheel(folder / "pure", "")] if given.before else []
            wheels += [given.wheel or build_wheel(folder / "built", Path(python).name)]
            wrong = walk(python, wheels, folder, times)
        bad += len(wrong)
        for text in wrong:
            sys.stdout.write(f"{text}\n\n")
        table = written(times, len(wheels))
        sys.stdout.write(f"{table}\n{python}, {wheels[-1].name}: {len(wrong)} not as printed\n")
        if given.page and not wrong:
            before, mark, rest = given.page.read_text("utf-8").partition(MARKS[0])
            after = rest.partition(MARKS[1])[2]
            assert mark, f"{given.page} lacks {MARKS[0]}"
            given.page.write_text(f"{before}{mark}\n\n{table}\n\n{MARKS[1]}{after}", "utf-8")
    if not found:
        sys.stdout.write(f"None of {', '.join(given.pythons)} is here.\n")
    return 1 if bad or not found else 0


if __name__ == "__main__":
    sys.exit(main())
