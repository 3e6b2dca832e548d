"""Studies that are run again, killed midway, or computed by processes that die: nothing that is
finished is computed again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import DataError, GazeveilError
from gazeveil.evaluation.run import evaluate
from gazeveil.features.recording_set import FeaturePipeline
from gazeveil.gaze.cohort import Cohort
from gazeveil.workers import OwnProcesses
from tests.support.places import ROOT
from tests.support.small_attacks import Deadly, Duration, Place, Shift, Told

FILES = ("results.parquet", "outcomes.parquet", "study.json", "examples.json.gz")


NOISE = "gaussian:sigma_deg=3"


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return gazeveil.simulate(4, 4, 2.0, 60.0, seed=5).load()


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


# --- resuming
# --------------------------------------------------------------------------------------------------


def study_of(cohort: Cohort, out: Path, **more: Any) -> Any:
    settings = {
        "mechanisms": [NOISE, "temporal:K=2"],
        "attacks": [Place(), Duration()],
        "utilities": [Shift()],
        "repetitions": 2,
        "executor": 1,
        **more,
    }
    return evaluate(cohort, out=out, **settings)


def test_a_finished_study_computes_nothing_and_gives_the_same_bytes(
    cohort: Cohort, tmp_path: Path
) -> None:
    first = study_of(cohort, tmp_path / "a")
    written = bytes_of(tmp_path / "a")
    stamps = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "a" / "cells").iterdir()}
    second = study_of(cohort, tmp_path / "a")
    assert first.study["times"]["found"] == 0
    assert second.study["times"]["computed"] == 0
    assert bytes_of(tmp_path / "a") == written
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "a" / "cells").iterdir()} == stamps


def test_figures_do_not_depend_on_who_computes_or_on_what_else_is_computed(
    cohort: Cohort, tmp_path: Path
) -> None:
    study_of(cohort, tmp_path / "a")
    with ThreadPoolExecutor(2) as pool:
        study_of(cohort, tmp_path / "b", executor=pool)
    study_of(cohort, tmp_path / "c", executor=2)
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b") == bytes_of(tmp_path / "c")
    # One mechanism alone, computed first, then the others around it.
    study_of(cohort, tmp_path / "d", mechanisms=["temporal:K=2"], utilities=[])
    mended = study_of(cohort, tmp_path / "d")
    assert mended.study["times"]["found"] > 0
    assert mended.study["times"]["computed"] > 0
    assert bytes_of(tmp_path / "d") == bytes_of(tmp_path / "a")


def test_another_seed_split_recording_preparation_or_code_shares_no_cell(
    cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study_of(cohort, tmp_path / "a")
    moved = Cohort(
        [
            cohort[0].with_(
                x_deg=np.where(cohort[0].valid, (cohort[0].x_deg + 1) % 360, cohort[0].x_deg)
            ),
            *list(cohort)[1:],
        ],
        cohort.people,
    )
    for changed in (
        {"seed": 1},
        {"train": 0.5},
        {"preparation": FeaturePipeline("ivt", {"setting": "ren2024"})},
        {"cohort": moved},
    ):
        recordings: Any = changed.pop("cohort", cohort)
        again = study_of(recordings, tmp_path / "a", **changed)
        assert again.study["times"]["found"] == 0
    monkeypatch.setattr("gazeveil.evaluation.run.code", lambda: "after an edit")
    assert study_of(cohort, tmp_path / "a").study["times"]["found"] == 0


def test_a_file_that_a_parameter_names_is_part_of_the_cell(cohort: Cohort, tmp_path: Path) -> None:
    told = Told(file=str(tmp_path / "boxes"))
    for value in (1.0, 2.0):
        (tmp_path / "boxes").write_text(str(value))
        assert evaluate(
            cohort, [], [], [told], repetitions=1, executor=1, out=tmp_path / "o"
        ).frame["value"].to_list() == [value]


def test_a_folder_of_something_else_is_not_written_into(cohort: Cohort, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("irreplaceable")
    with pytest.raises(DataError, match="was not written by a study"):
        study_of(cohort, tmp_path / "mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is a file"):
        study_of(cohort, tmp_path / "file")


SCRIPT = """
    import os, signal, sys, threading, time
    from pathlib import Path
    sys.path.insert(0, {root!r})
    import gazeveil
    import gazeveil.evaluation.run
    from tests.support.small_attacks import Place
    # A source file saved while the test runs would make finished cells stale, as it should.
    gazeveil.evaluation.run.code = lambda: "one"
    cohort = gazeveil.simulate(4, 4, 1.0, 60.0, seed=5)
    mechanisms = [f"gaussian:sigma_deg={{s}}" for s in range(1, 10)]
    # Unguarded on purpose: worker processes must not run this script again.
    print("began", flush=True)

    def stop():
        # From within: somebody else may be held up until the study is over.
        while len(list(Path({out!r}, "cells").glob("*.json"))) < {stop_after}:
            time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGSTOP)

    if {stop_after}:
        threading.Thread(target=stop, daemon=True).start()
    gazeveil.evaluate(
        cohort, mechanisms, [Place(wait_s=0.01), Place()], repetitions=5, executor={executor},
        out={out!r},
    )
"""


def start(folder: Path, out: Path, executor: int, stop_after: int = 0) -> subprocess.Popen[str]:
    """A study in a process of its own, which stops itself (SIGSTOP) after so many cells."""
    script = folder / f"study{executor}.py"
    chosen = {"root": str(ROOT), "executor": executor, "out": str(out), "stop_after": stop_after}
    script.write_text(textwrap.dedent(SCRIPT.format(**chosen)))
    return subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for something, at most two minutes, or (while it runs) until a process ends."""
    running = process.poll() is None
    for _ in range(6000):
        if condition() or (running and process.poll() is not None):
            return
        time.sleep(0.02)
    raise AssertionError("it took two minutes")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of 200 cells that nobody stopped."""
    out = tmp_path_factory.mktemp("whole") / "out"
    cohort = gazeveil.simulate(4, 4, 1.0, 60.0, seed=5)
    mechanisms = [f"gaussian:sigma_deg={s}" for s in range(1, 10)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gazeveil.evaluation.run.code", lambda: "one")
        attacks = [Place(wait_s=0.01), Place()]
        evaluate(cohort, mechanisms, attacks, repetitions=5, executor=1, out=out)
    return out


@pytest.mark.parametrize("executor", [pytest.param(1, marks=pytest.mark.heavy), 2])
def test_a_study_of_200_cells_killed_midway_recomputes_nothing_and_ends_with_the_same_bytes(
    whole: Path, tmp_path: Path, executor: int
) -> None:
    cells = json.loads((whole / "study.json").read_text())["study"]["cells"]
    assert cells >= 200
    broken = tmp_path / "broken"
    process = start(tmp_path, broken, executor, stop_after=60)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1]), "it was over before"
    workers = children(process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not any(alive(p) for p in workers), process)
    assert not any(alive(p) for p in workers), "workers outlived the study"
    finished = {
        p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in (broken / "cells").glob("*.json")
    }
    assert 60 <= len(finished) < cells
    assert not (broken / "results.parquet").exists()
    again = start(tmp_path, broken, executor)
    said, wrong = again.communicate()
    assert again.returncode == 0, wrong
    assert said.count("began") == 1
    after = {
        p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in (broken / "cells").glob("*.json")
    }
    assert len(after) == cells
    assert {name: after[name] for name in finished} == finished
    assert bytes_of(broken) == bytes_of(whole)
    assert not list((broken / "cells").glob(".*.part"))


def children(process: subprocess.Popen[str]) -> list[int]:
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(p) for p in listed.read_text().split()] if listed.exists() else []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- lost workers
# --------------------------------------------------------------------------------------------------


def test_a_process_that_dies_loses_nothing(cohort: Cohort, tmp_path: Path) -> None:
    calm = evaluate(
        cohort,
        [NOISE],
        [Place(), Deadly(file=str(tmp_path / "none"), lives=0)],
        repetitions=2,
        executor=1,
    )
    once = evaluate(
        cohort,
        [NOISE],
        [Place(), Deadly(file=str(tmp_path / "deaths"), lives=1)],
        repetitions=2,
        executor=2,
    )
    assert (tmp_path / "deaths").read_text() == "x"
    assert not once.failures
    assert once.frame.drop("attack").equals(calm.frame.drop("attack"))


def test_a_batch_that_always_kills_its_process_is_reported_and_the_others_are_not_harmed(
    cohort: Cohort, tmp_path: Path
) -> None:
    deadly = Deadly(file=str(tmp_path / "deaths"), lives=99, spare=os.getpid())
    results = evaluate(
        cohort,
        [NOISE],
        [Place(), deadly],
        scenarios=["private/raw"],
        repetitions=1,
        executor=2,
        out=tmp_path / "o",
    )
    assert {f["sentence"][:40] for f in results.failures} == {
        "The process that computed it ended witho"
    }
    # Cells that were finished before the death of their process are kept.
    rates = results.frame.filter(metric="identification_rate")
    assert set(zip(rates["mechanism"], rates["attack"], strict=True)) == {
        ("none", "place"),
        ("gaussian", "place"),
    }
    assert all("deadly" in f["cell"] for f in results.failures)


def test_something_defined_in_the_users_own_script_is_computed_in_that_process(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OwnProcesses, "_submit", lambda *_: pytest.fail("a process was started"))
    monkeypatch.setattr(Place, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Place", Place, raising=False)
    assert evaluate(cohort, [], [Place()], repetitions=3, executor=2).frame.height == 6


def test_an_executor_that_takes_no_work_is_reported(cohort: Cohort) -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(GazeveilError, match="The executor takes no more work"):
        evaluate(cohort, [], [Place()], repetitions=1, executor=pool)
