"""The path of a newcomer: an empty environment, the wheel, and the page of the first ten minutes
line by line, twice. The wheel for the Python that builds it holds machine code: nothing compiles.

Run by `make newcomer` and by `tests/manual/test_pages.py`.
"""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.support.manual import CodeBlock, blocks
from tests.support.places import ROOT

PAGE = ROOT / "docs" / "start" / "ten-minutes.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

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
        if said.stdout.split()[1].startswith(version + "."):
            return command
    return None


def build_wheel(folder: Path, python: str) -> Path:
    """The wheel of this checkout, with machine code where that can be compiled for a Python."""
    made = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    # The build's tools are those of this environment: nothing is fetched to build.
    made += ["--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    own = python == f"python{sys.version_info.major}.{sys.version_info.minor}"
    subprocess.run(made, check=True, env={**os.environ, "GAZEVEIL_KERNELS": "1" if own else ""})
    return next(folder.glob("gazeveil-*.whl"))


#: Seconds of each command: from an empty home, then again.
Times = dict[str, list[float]]


def walk(python: str, wheel: Path, folder: Path, times: Times | None = None) -> list[str]:
    """Install the wheel into an empty environment and follow the page, cold and warm.

    Returns
    -------
    list of str
        What was not as the page says, one entry for each command or block; empty where all is.
    """
    times = {} if times is None else times
    subprocess.run([python, "-m", "venv", str(folder / "gaze")], check=True)
    bin_dir = folder / "gaze" / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(bin_dir / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run(pip, check=True)
    (folder / "user").mkdir()
    kept = ("PYTHONPATH", "VIRTUAL_ENV", "GAZEVEIL_DATA")
    environment = {k: v for k, v in os.environ.items() if k not in kept} | {
        "PATH": f"{bin_dir}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder / "user"),
        "NUMBA_CACHE_DIR": str(folder / "compiled"),
        "COLUMNS": "100",
    }
    wrong: list[str] = []
    for turn in ("cold", "warm"):
        (work := folder / turn).mkdir()
        environment["GAZEVEIL_HOME"] = str(folder / f"home-{turn}")
        for block in blocks(PAGE):
            wrong += _follow(block, work, environment, bin_dir, times)
    return wrong + ([] if wheel.name.endswith("-any.whl") else compiled_in(folder / "compiled"))


def compiled_in(folder: Path) -> list[str]:
    """What was compiled although the wheel holds machine code."""
    return [f"compiled: {file.name}" for file in sorted(folder.rglob("*.nbc"))]


def _follow(
    block: CodeBlock, work: Path, environment: dict[str, str], bin_dir: Path, times: Times
) -> list[str]:
    if block.reason:
        return []
    if block.kind == "python":
        page = work / "block.txt"
        page.write_text(block.text, encoding="utf-8")
        code = (
            "import doctest, sys; sys.exit(doctest.testfile('block.txt', module_relative=False,"
            f" optionflags={FLAGS}).failed)"
        )
        done = _run([str(bin_dir / "python"), "-c", code], work, environment)
        return [f"{block.place}: {done.stdout}{done.stderr}"] if done.returncode else []
    wrong = []
    for step in block.steps():
        # A reader pastes the line into a shell.
        began = perf_counter()
        done = _run(["/bin/sh", "-c", step.command], work, environment)
        times.setdefault(step.command, []).append(perf_counter() - began)
        same = doctest.OutputChecker().check_output(step.expected + "\n", done.stdout, FLAGS)
        if done.returncode or not same:
            wrong.append(
                f"{block.place}: {step.command}\nexpected:\n{step.expected}\ngot ("
                f"{done.returncode}):\n{done.stdout}{done.stderr}"
            )
    return wrong


def _run(
    command: list[str], work: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=work, env=environment, capture_output=True, text=True, check=False
    )


def main() -> int:
    """Walk with every interpreter that is here, or those named, and say what was not as the page
    says.
    """
    found = [command for python in sys.argv[1:] or PYTHONS if (command := find(python))]
    bad = 0
    for python in found:
        with TemporaryDirectory(prefix="newcomer-") as name:
            folder = Path(name)
            times: Times = {}
            wrong = walk(python, build_wheel(folder, Path(python).name), folder, times)
        bad += len(wrong)
        for text in wrong:
            sys.stdout.write(f"{text}\n\n")
        for command, (cold, warm) in times.items():
            sys.stdout.write(f"{cold:6.1f} s cold {warm:6.1f} s warm   {command}\n")
        count = 2 * sum(1 if b.kind == "python" else len(b.steps()) for b in blocks(PAGE))
        sys.stdout.write(f"{python}: {count - len(wrong)} of {count} outputs as printed\n")
    if not found:
        sys.stdout.write(f"None of {', '.join(PYTHONS)} is here.\n")
    return 1 if bad or not found else 0


if __name__ == "__main__":
    sys.exit(main())
