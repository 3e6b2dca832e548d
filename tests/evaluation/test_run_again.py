"""Studies that are run again, killed midway, or computed by processes that die: nothing that is
finished is computed again.

Studies whose recordings do not stay in memory: the same figures, shared by all workers.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import DataError, GazeveilError
from gazeveil.evaluation.plan import CellBatch, plan, seed_of
from gazeveil.evaluation.releases import ReleaseCache, protect
from gazeveil.evaluation.run import evaluate
from gazeveil.evaluation.sources import in_memory, loaded, scratch_paths
from gazeveil.evaluation.study import Study
from gazeveil.evaluation.worker import Worker, forget_shared
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.gaze import scratch
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.scratch import is_set_aside, set_aside, size_of
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


@pytest.mark.heavy
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


FILES_OF_MANY = ("results.parquet", "outcomes.parquet", "study.json", "examples.json.gz")


@pytest.fixture(scope="module")
def many() -> Cohort:
    return gazeveil.simulate(4, 4, 4.0, 60.0, seed=5).load()


def same(a: Recording, b: Recording) -> bool:
    arrays = all(
        np.array_equal(getattr(a, n), getattr(b, n), equal_nan=n != "valid")
        for n in ("t_ns", "x_deg", "y_deg", "valid")
    )
    return arrays and a.key == b.key and a.space == b.space and a.rate_hz == b.rate_hz


def study_of_many(many: Cohort, out: Path, executor: Any, **more: Any) -> gazeveil.Results:
    return evaluate(
        many,
        ["gaussian:sigma_deg=0.2"],
        ["rbfn", "linkage:features=extended"],
        repetitions=2,
        executor=executor,
        out=out,
        **more,
    )


def bytes_of_many(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES_OF_MANY}


def test_recordings_above_a_size_are_read_back_as_they_were(many: Cohort) -> None:
    size = size_of(many[0])
    kept = set_aside(many, most_bytes=3 * size)
    assert [is_set_aside(item) for item in kept.items] == [False] * 3 + [True] * 13
    assert all(same(a, b) for a, b in zip(kept, many, strict=True))
    assert kept.keys == many.keys
    assert kept.people == many.people
    # What is set aside already is not written again.
    assert set_aside(kept, most_bytes=0).items[3:] == kept.items[3:]


@pytest.mark.parametrize("samples", [0, 1, 33])
def test_everything_of_a_recording_is_read_back_and_arrays_stay_as_they_were(
    many: Cohort, samples: int
) -> None:
    words, numbers = np.full(samples, "fixation"), np.arange(3.0)
    before = many[0].slice(0, samples)
    before = before.with_(
        labels={"coder": words},
        events=Events(["fixation"], [0], [0], [0], [1]),
        counts={"rows": samples},
        metadata={"numbers": numbers, "source": "here"},
    )
    (item,) = set_aside(Cohort([before]), most_bytes=-1).items
    for load in (item.load, pickle.loads(pickle.dumps(item.load))):
        after = load()
        for f in fields(before):
            a, b = getattr(before, f.name), getattr(after, f.name)
            if isinstance(a, np.ndarray):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a, b)
                # Compiled code would be compiled again for arrays that begin anywhere.
                assert b.flags.aligned
                assert not b.flags.writeable
            elif f.name not in ("labels", "events", "metadata"):
                assert a == b
        assert after.labels["coder"].tolist() == words.tolist()
        assert after.events.kind.tolist() == ["fixation"]
        assert after.source == "here"
        assert after.metadata["numbers"].tolist() == numbers.tolist()  # type: ignore[attr-defined]
        with pytest.raises(TypeError):
            after.metadata["source"] = "elsewhere"  # type: ignore[index]


def test_the_file_has_no_name_and_goes_with_the_last_reference(many: Cohort) -> None:
    kept = set_aside(many, most_bytes=0)
    (path,) = scratch_paths(RecordingSet(kept))
    if not path.startswith("/proc/"):
        pytest.skip("this system has no files without a name")
    assert " (deleted)" in os.readlink(path)
    sent = pickle.loads(pickle.dumps(kept))
    assert same(sent[5], many[5])
    assert len(pickle.dumps(kept)) < 0.2 * len(pickle.dumps(many))
    del kept
    gc.collect()
    assert not os.path.exists(path)
    with pytest.raises(FileNotFoundError):
        sent[5]


def test_a_full_disk_is_one_sentence(many: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "r+b", buffering=0) as full:  # a device that never has room
        monkeypatch.setattr("tempfile.TemporaryFile", lambda prefix: full)
        with pytest.raises(DataError, match=r"could not be set aside in .*No space left.*TMPDIR"):
            set_aside(many, most_bytes=0)


def test_figures_are_the_same_where_recordings_are_set_aside(
    many: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[tuple[int, int]] = []
    study_of_many(many, tmp_path / "memory", 1, progress=lambda *n: counts.append(n))
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    study_of_many(many, tmp_path / "two", 2)
    with ThreadPoolExecutor(2) as pool:
        study_of_many(many, tmp_path / "threads", pool)
    wanted = bytes_of_many(tmp_path / "memory")
    assert bytes_of_many(tmp_path / "two") == bytes_of_many(tmp_path / "threads") == wanted
    # Cells are counted one by one, not batch by batch: no count jumps by a whole batch of six.
    done = [n for n, _ in counts]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] == counts[-1][1]
    assert len(set(done)) > 6


def test_whoever_does_not_see_the_disk_gets_the_recordings(
    many: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(Executor):
        """An executor of which nothing is known, such as one on another machine."""

        scratch: ClassVar[list[bool]] = []

        def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
            items = arguments[2].study.source.cohort.items
            self.scratch.append(any(isinstance(item, Handle) for item in items))
            future: Future[Any] = Future()
            future.set_result(function(*arguments, **named))
            return future

    study_of_many(many, tmp_path / "memory", 1)
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    study_of_many(many, tmp_path / "elsewhere", Elsewhere())
    assert Elsewhere.scratch
    assert not any(Elsewhere.scratch)
    assert bytes_of_many(tmp_path / "elsewhere") == bytes_of_many(tmp_path / "memory")


def test_sets_are_put_together_without_reading_them(
    many: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = RecordingSet(set_aside(many, most_bytes=0))
    with monkeypatch.context() as watched:
        watched.setattr(scratch.SetAside, "__call__", lambda _: pytest.fail("it was read"))
        both = RecordingSet.together([whole, whole])
        assert len(both.keys) == 2 * len(many)
    again = pickle.loads(pickle.dumps(both.cohort))
    for made in (both.cohort, again):
        assert all(same(a, b) for a, b in zip(list(made)[:16], many, strict=True))
        assert all(
            same(a, b.with_(session=f"{b.session}~1"))
            for a, b in zip(list(made)[16:], many, strict=True)
        )


def test_rate_and_duration_are_known_without_reading(
    many: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = set_aside(many, most_bytes=size_of(many[0]))
    again = pickle.loads(pickle.dumps(kept))
    monkeypatch.setattr(scratch.SetAside, "__call__", lambda _: pytest.fail("it was read"))
    for made in (kept, again):
        assert scratch.rates_hz(made) == [r.rate_hz for r in many]
        assert scratch.durations_s(made) == [r.duration_s for r in many]


def test_batches_of_one_repetition_share_the_raw_parts(many: Cohort) -> None:
    mechanisms: Any = ("gaussian:sigma_deg=0.2", "temporal:K=3")
    study = Study(many, mechanisms, ("linkage",), repetitions=2, seed=4)  # type: ignore[arg-type]
    worker = Worker(study, {"test": "raw parts"})

    def raw_sides(mechanism: int | None, repetition: int) -> tuple[RecordingSet, RecordingSet]:
        protects = None if mechanism is None else study.mechanisms[mechanism]
        parts = worker.shared(CellBatch("none", "redetected", repetition, ()))
        raw = worker.raw("redetected")
        cache = ReleaseCache(study, raw, protects, repetition, shared=parts)
        attack: Any = study.attacks[0]
        gallery = cache.sides(attack, "raw/raw" if protects is None else "raw/private")[0]
        return gallery, cache.sides(attack, "raw/raw" if protects is None else "private/raw")[1]

    first = raw_sides(None, 0)
    assert all(a is b for a, b in zip(raw_sides(0, 0), first, strict=True))
    assert all(a is b for a, b in zip(raw_sides(1, 0), first, strict=True))
    # Of another repetition they are other recordings, and only the last ones are kept.
    other = raw_sides(0, 1)
    assert other[0].keys != first[0].keys
    assert raw_sides(0, 0)[0] is not first[0]
    forget_shared()
    assert not worker.shared(CellBatch("none", "redetected", 0, ()))


def test_exemplars_are_those_of_the_whole_release(many: Cohort) -> None:
    mechanisms: Any = ("gaussian:sigma_deg=0.2",)
    attacks: Any = ("steps:knowledge=exemplars",)
    study = Study(many, mechanisms, attacks, seed=4)
    raw, mechanism = RecordingSet(many), study.mechanisms[0]
    attack: Any = study.attacks[0]
    gallery = ReleaseCache(study, raw, mechanism, 0).sides(attack, "raw/private")[0]
    whole = protect(raw, mechanism, seed_of(4, "release", mechanism, 0, "exemplars"))
    release = {r.key: r for r in whole.cohort}
    known = [r for r in gallery.cohort if "~" in r.session]
    assert len(known) == round(0.25 * (len(gallery.keys) - len(known)))
    for r in known:
        assert same(r.with_(session="1"), release[r.person, r.stimulus, "1", r.task])


def test_what_a_simulator_knows_is_not_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    lazy = gazeveil.simulate(2, 2, 1.0, 60.0, seed=1)
    assert lazy[0].truth is not None
    held = loaded(RecordingSet(lazy))
    assert all(r.truth is None for r in held.cohort)
    assert loaded(held).cohort.items == held.cohort.items  # type: ignore[union-attr]
    assert not scratch_paths(in_memory(held))


ONE_THREAD = """
import pickle, sys
from threadpoolctl import threadpool_info

with open(sys.argv[1], "rb") as file:
    worker, batch = pickle.load(file)
from gazeveil.evaluation.worker import compute

assert "scipy.linalg" not in sys.modules
work = compute(worker, batch)
next(work)  # the limit holds until all cells are computed
assert "scipy.linalg" in sys.modules
print(max(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"))
"""


def test_linear_algebra_has_one_thread_where_an_attacker_is_the_first_to_import_it(
    many: Cohort, tmp_path: Path
) -> None:
    material = loaded(RecordingSet(many))
    attacks: Any = ("linkage",)
    study = Study(material, (), attacks, repetitions=2)
    planned = plan(study, material)
    batch = planned.batches(frozenset(planned.cells))[0]
    (tmp_path / "study").write_bytes(pickle.dumps((Worker(study, {}), batch)))
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", ONE_THREAD, str(tmp_path / "study")],
        env={**environment, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "1", done.stderr
