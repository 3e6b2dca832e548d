"""Compile every kernel of the package for the types that are used.

`python packaging/kernels.py` compiles for this machine, into NUMBA_CACHE_DIR (`make install`), or
what a piece of the work needs: `python packaging/kernels.py gazeveil demo` (`make demo`).

As hatchling's build hook, and where GAZEVEIL_KERNELS is set, it puts the machine code into the
wheel: for each processor of `PROCESSORS`, and for the Python that builds (`make wheel`). A wheel
that is built without it holds no machine code and fits every machine.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

#: Machine -> processors that its wheel has machine code for.
PROCESSORS = {"x86_64": ("x86-64-v3", "x86-64"), "aarch64": ("generic",)}

#: Name of the system in the wheel's, and the newest C library that wheels of numba ask for.
SYSTEM = "manylinux_2_28"

TASKS = ("free-viewing", "video", "reading", "random-saccade", "search", "tracking")
METHODS = ("auto", "ivt", "idt", "dorr", "is5t", "online")
KINDS = ("fixation", "saccade", "all")
UTILITIES = ("aoi", "saliency", "document", "activity", "task", "signal", "density", "events")

#: Mechanisms with the parameters that recordings of twelve people ask for.
CASES = json.loads((ROOT / "tests" / "privacy" / "fingerprints.json").read_text("utf-8"))
STREAMS = ("gaussian", "temporal", "spatial", "smoothing", "kalman", "kaleido", "clock")

#: Commands of the first ten minutes, in a folder of twelve people who read.
COMMANDS = (
    "inspect people --plot overview.png",
    "events people --out events.parquet",
    "features people --kind saccade --out saccades.parquet",
    "evaluate people --out study -m gaussian:sigma_deg=3 -r 3 -w 1",
    "evaluate headset --out vr -m temporal:K=3 -r 1 -w 1",
    "attack people safe --key-file key.json -r 2 -w 1",
    "publish people published --preset public-events --attacks quick",
    "publish headset maps --preset public-maps --attacks quick",
    "explore people --save explore.html -m gaussian:sigma_deg=1|10",
    "demo --out demo --people 8 --seconds 12 -r 1 -w 1",
)


def cohort(task: str, people: int = 4, seconds: float = 12.0) -> Any:
    """People of the simulator."""
    import gazeveil

    return gazeveil.simulate(people, 3, seconds, 120.0, task=task, seed=1)


def simulated(task: str) -> None:
    """Simulate, also without a seed, and detect events by every method."""
    import gazeveil

    gazeveil.simulate(2, 1, 5.0, 250.0, task=task)
    for recording in cohort(task):
        for method in METHODS:
            with suppress(gazeveil.errors.GazeveilError):
                gazeveil.detect(recording, method)


def measured(task: str) -> None:
    """Compute features."""
    import gazeveil

    for kind in KINDS:
        gazeveil.event_features(cohort(task), kind=kind)
    gazeveil.window_features(cohort(task), window_s=5.0)


def protected(text: str) -> None:
    """Release as the fingerprints do, and simulated people with noise of the operating system."""
    import numpy as np
    from tests.privacy.test_fingerprints import fingerprint

    import gazeveil
    from gazeveil.errors import GazeveilError

    fingerprint(text)
    name = text.split(" ")[0]
    if name == "graded":
        return
    chosen = gazeveil.mechanism(name)
    if chosen.kind not in ("stream", "cohort"):
        return
    for task in ("free-viewing", "reading"):
        with suppress(GazeveilError):
            gazeveil.protect(cohort(task, 12), name)
        if chosen.kind == "stream":
            with suppress(GazeveilError):
                space = cohort(task, 1)[0].space
                session: Any = chosen.open(100.0, space=space)  # type: ignore[attr-defined]
                for i in range(120):
                    session.push(np.int64(i * 10**7), 1.0 + i / 50, 2.0, i % 40 != 7)


def served() -> None:
    """Warm a Gatekeeper up, for a screen and for a sphere."""
    from gazeveil.gatekeeper.service.server import warm_up
    from gazeveil.gaze.geometry import Screen, Sphere

    for space in (Screen(1280, 720, 600.0, 340.0, 600.0), Sphere()):
        service: Any = SimpleNamespace(keeper=SimpleNamespace(rate_hz=120.0, space=space))
        warm_up(service)


def used() -> None:
    """Measure every use of releases."""
    import gazeveil

    for task in ("free-viewing", "reading"):
        for utility in UTILITIES:
            with suppress(gazeveil.errors.GazeveilError):
                gazeveil.evaluate(
                    cohort(task, 6),
                    mechanisms=["gaussian:sigma_deg=1"],
                    attacks=[],
                    utilities=[utility],
                    repetitions=1,
                    seed=1,
                    executor=1,
                )


def commanded(line: str) -> None:
    """Run a command, on the people and a copy of them, with a ledger of its own: what another
    command releases would have it refused.
    """
    from gazeveil.cli.main import main

    with tempfile.TemporaryDirectory() as home:
        os.environ["GAZEVEIL_HOME"] = home
        try:
            main(line.split(" "))
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"exit code {end.code}") from None


def _prepare() -> None:
    """Write what the commands read."""
    first = "--people 12 --stimuli 4 --seconds 20 --rate 120 --seed 1"
    commanded(f"simulate people {first} --task reading")
    commanded(f"simulate headset {first} --task free-viewing")
    commanded("protect people safe -m gaussian:sigma_deg=3 --key-file key.json")


def work() -> list[tuple[str, Callable[[], None]]]:
    """Everything that compiles, longest first."""
    return [
        *((f"gazeveil {line}", partial(commanded, line)) for line in COMMANDS),
        ("utilities", used),
        *((f"events of {task}", partial(simulated, task)) for task in TASKS),
        *((f"features of {task}", partial(measured, task)) for task in ("free-viewing", "reading")),
        *((text, partial(protected, text)) for text in CASES),
        ("gatekeeper", served),
    ]


def chosen(words: str) -> list[int]:
    """The numbers of pieces whose name begins with these words."""
    return [number for number, (name, _) in enumerate(work()) if name.startswith(words)]


def _done(number: int) -> tuple[str, float, str]:
    """Do one piece of the work; returns its name, its seconds and its failure."""
    name, piece = work()[number]
    began, failure = time.monotonic(), ""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            piece()
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
    return name, time.monotonic() - began, failure


def compile_all(workers: int, numbers: list[int]) -> list[str]:
    """Compile side by side; a line says how far it is. Returns the pieces that failed."""
    from tests.support.one_compiler import compile_in_one_process

    compile_in_one_process()
    began, pieces, failures = time.monotonic(), len(numbers), []
    here = Path.cwd()
    sys.stderr.write(f"compiling what {pieces} pieces of work need\n")
    with tempfile.TemporaryDirectory(prefix="gazeveil-kernels-") as folder:
        os.chdir(folder)
        if pieces > 1:  # the demo simulates its own people
            sys.stderr.write("simulating people first, without a line for about a minute\n")
            fork = multiprocessing.get_context("fork")
            with redirect_stdout(io.StringIO()), fork.Pool(1) as pool:
                pool.apply(_prepare)
        with multiprocessing.get_context("fork").Pool(workers, maxtasksperchild=8) as pool:
            for count, (name, spent_s, failure) in enumerate(
                pool.imap_unordered(_done, numbers), 1
            ):
                end = "\n" if failure or not sys.stderr.isatty() else "\r"
                taken_s = time.monotonic() - began
                line = (
                    f"compiling {count}/{pieces}, {taken_s:.0f} s: {name} {spent_s:.1f} s {failure}"
                )
                sys.stderr.write(f"{line[:140]:<100}{end}")
                sys.stderr.flush()
                if failure:
                    failures.append(f"{name}: {failure}")
        os.chdir(here)
    return failures


def compiled_for(processor: str, folder: Path) -> Iterator[tuple[Path, str]]:
    """Compile a copy of the package for a processor; yields the files, and their places in it."""
    copy = folder / processor
    shutil.copytree(
        ROOT / "src" / "gazeveil", copy / "gazeveil", ignore=shutil.ignore_patterns("__pycache__")
    )
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": f"{copy}{os.pathsep}{ROOT}"}
    environment |= {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}
    subprocess.run([sys.executable, __file__], check=True, env=environment, cwd=folder)
    for file in sorted((copy / "gazeveil").rglob("__pycache__/*.nb[ci]")):
        place = file.parent.parent.relative_to(copy / "gazeveil") / file.name
        yield file, f"gazeveil/kernels/{processor}/{place}"


with suppress(ImportError):
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class Kernels(BuildHookInterface[Any]):
        """Put the machine code into the wheel."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile, where that is asked for."""
            if not os.environ.get("GAZEVEIL_KERNELS"):
                return
            self._folder = tempfile.mkdtemp(prefix="gazeveil-wheel-")
            machine = platform.machine()
            python = f"cp{sys.version_info.major}{sys.version_info.minor}"
            build_data["pure_python"] = False
            build_data["tag"] = f"{python}-{python}-{SYSTEM}_{machine}"
            for processor in PROCESSORS[machine]:
                for file, place in compiled_for(processor, Path(self._folder)):
                    build_data["force_include"][str(file)] = place

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            """Remove the copies."""
            shutil.rmtree(getattr(self, "_folder", ""), ignore_errors=True)


def main(words: str) -> None:
    """Compile what the pieces need whose name begins with these words; fails where one fails."""
    if failed := compile_all(len(os.sched_getaffinity(0)), chosen(words)):
        sys.exit("\n".join([f"{len(failed)} pieces of work failed, so kernels lack:", *failed]))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(" ".join(sys.argv[1:]))
