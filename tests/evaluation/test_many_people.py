"""Studies whose recordings do not stay in memory: the same figures, shared by all workers."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import DataError
from gazeveil.evaluation.plan import plan, seed_of
from gazeveil.evaluation.releases import ReleaseCache, protect
from gazeveil.evaluation.run import evaluate
from gazeveil.evaluation.sources import in_memory, loaded, scratch_paths
from gazeveil.evaluation.study import Study
from gazeveil.evaluation.worker import Worker, forget_parts
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet, carry
from gazeveil.gaze import scratch
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.scratch import is_set_aside, set_aside, size_of

FILES = ("results.parquet", "outcomes.parquet", "study.json", "examples.json.gz")


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return gazeveil.simulate(4, 4, 4.0, 60.0, seed=5).load()


def same(a: Recording, b: Recording) -> bool:
    arrays = all(
        np.array_equal(getattr(a, n), getattr(b, n), equal_nan=n != "valid")
        for n in ("t_ns", "x_deg", "y_deg", "valid")
    )
    return arrays and a.key == b.key and a.space == b.space and a.rate_hz == b.rate_hz


def study_of(cohort: Cohort, out: Path, executor: Any, **more: Any) -> gazeveil.Results:
    return evaluate(
        cohort,
        ["gaussian:sigma_deg=0.2"],
        ["rbfn", "linkage:features=extended"],
        repetitions=2,
        executor=executor,
        out=out,
        **more,
    )


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def test_recordings_above_a_size_are_read_back_as_they_were(cohort: Cohort) -> None:
    size = size_of(cohort[0])
    kept = set_aside(cohort, most_bytes=3 * size)
    assert [is_set_aside(item) for item in kept.items] == [False] * 3 + [True] * 13
    assert all(same(a, b) for a, b in zip(kept, cohort, strict=True))
    assert kept.keys == cohort.keys
    assert kept.people == cohort.people
    # What is set aside already is not written again.
    assert set_aside(kept, most_bytes=0).items[3:] == kept.items[3:]


@pytest.mark.parametrize("samples", [0, 1, 33])
def test_everything_of_a_recording_is_read_back_and_arrays_stay_as_they_were(
    cohort: Cohort, samples: int
) -> None:
    words, numbers = np.full(samples, "fixation"), np.arange(3.0)
    before = cohort[0].slice(0, samples)
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


def test_the_file_has_no_name_and_goes_with_the_last_reference(cohort: Cohort) -> None:
    kept = set_aside(cohort, most_bytes=0)
    (path,) = scratch_paths(RecordingSet(kept))
    if not path.startswith("/proc/"):
        pytest.skip("this system has no files without a name")
    assert " (deleted)" in os.readlink(path)
    sent = pickle.loads(pickle.dumps(kept))
    assert same(sent[5], cohort[5])
    assert len(pickle.dumps(kept)) < 0.2 * len(pickle.dumps(cohort))
    del kept
    gc.collect()
    assert not os.path.exists(path)
    with pytest.raises(FileNotFoundError):
        sent[5]


def test_a_full_disk_is_one_sentence(cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "r+b", buffering=0) as full:  # a device that never has room
        monkeypatch.setattr("tempfile.TemporaryFile", lambda prefix: full)
        with pytest.raises(DataError, match=r"could not be set aside in .*No space left.*TMPDIR"):
            set_aside(cohort, most_bytes=0)


def test_figures_are_the_same_where_recordings_are_set_aside(
    cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study_of(cohort, tmp_path / "memory", 1)
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    counts: list[tuple[int, int]] = []
    study_of(cohort, tmp_path / "two", 2, progress=lambda *n: counts.append(n))
    with ThreadPoolExecutor(2) as pool:
        study_of(cohort, tmp_path / "threads", pool)
    wanted = bytes_of(tmp_path / "memory")
    assert bytes_of(tmp_path / "two") == bytes_of(tmp_path / "threads") == wanted
    # Cells are counted one by one, not batch by batch: no count jumps by a whole batch of six.
    done = [n for n, _ in counts]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] == counts[-1][1]
    assert len(set(done)) > 6


def test_whoever_does_not_see_the_disk_gets_the_recordings(
    cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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

    study_of(cohort, tmp_path / "memory", 1)
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    study_of(cohort, tmp_path / "elsewhere", Elsewhere())
    assert Elsewhere.scratch
    assert not any(Elsewhere.scratch)
    assert bytes_of(tmp_path / "elsewhere") == bytes_of(tmp_path / "memory")


def test_parts_halves_and_carried_events_are_the_same_where_set_aside(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made() -> list[Cohort]:
        whole = RecordingSet(cohort)
        return [
            carry(cohort, FeaturePipeline()),
            *(p.cohort for p in whole.halves() if p.cohort is not None),
        ]

    before = made()
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    after = made()
    assert all(is_set_aside(item) for part in after for item in part.items)
    for a, b in zip(before, after, strict=True):
        assert all(same(x, y) for x, y in zip(a, b, strict=True))
        assert all(x.labels.keys() == y.labels.keys() for x, y in zip(a, b, strict=True))


def test_sets_are_put_together_without_reading_them(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = RecordingSet(set_aside(cohort, most_bytes=0))
    with monkeypatch.context() as watched:
        watched.setattr(scratch.SetAside, "__call__", lambda _: pytest.fail("it was read"))
        both = RecordingSet.together([whole, whole])
        assert len(both.keys) == 2 * len(cohort)
    again = pickle.loads(pickle.dumps(both.cohort))
    for made in (both.cohort, again):
        assert all(same(a, b) for a, b in zip(list(made)[:16], cohort, strict=True))
        assert all(
            same(a, b.with_(session=f"{b.session}~1"))
            for a, b in zip(list(made)[16:], cohort, strict=True)
        )


def test_rate_and_duration_are_known_without_reading(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = set_aside(cohort, most_bytes=size_of(cohort[0]))
    again = pickle.loads(pickle.dumps(kept))
    monkeypatch.setattr(scratch.SetAside, "__call__", lambda _: pytest.fail("it was read"))
    for made in (kept, again):
        assert scratch.rates_hz(made) == [r.rate_hz for r in cohort]
        assert scratch.durations_s(made) == [r.duration_s for r in cohort]


def test_batches_of_one_repetition_share_the_raw_parts(cohort: Cohort) -> None:
    mechanisms: Any = ("gaussian:sigma_deg=0.2", "temporal:K=3")
    study = Study(cohort, mechanisms, ("linkage",), repetitions=2, seed=4)  # type: ignore[arg-type]
    worker = Worker(study, {"test": "raw parts"})

    def raw_sides(mechanism: int | None, repetition: int) -> tuple[RecordingSet, RecordingSet]:
        protects = None if mechanism is None else study.mechanisms[mechanism]
        parts = worker.raw_parts("redetected", repetition)
        raw = worker.raw("redetected")
        cache = ReleaseCache(study, raw, protects, repetition, raw_parts=parts)
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
    forget_parts()
    assert not worker.raw_parts("redetected", 0)


def test_exemplars_are_those_of_the_whole_release(cohort: Cohort) -> None:
    mechanisms: Any = ("gaussian:sigma_deg=0.2",)
    attacks: Any = ("steps:knowledge=exemplars",)
    study = Study(cohort, mechanisms, attacks, seed=4)
    raw, mechanism = RecordingSet(cohort), study.mechanisms[0]
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
    cohort: Cohort, tmp_path: Path
) -> None:
    material = loaded(RecordingSet(cohort))
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
