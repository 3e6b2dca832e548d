"""Studies and releases on a real Dask cluster of two worker processes, one of which is killed while
it works.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil import workers
from gazeveil.errors import DataError, MissingExtraError
from gazeveil.evaluation.run import evaluate
from gazeveil.privacy.publication.certificate import read_certificate
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.release.publishing import Watcher, publish
from gazeveil.release.recipe import Recipe
from gazeveil.release.run import Running
from gazeveil.release.verify import verify
from tests.release.running import written
from tests.support.small_attacks import Place

distributed = pytest.importorskip("distributed")

NOISE = "gaussian:sigma_deg=3"
FILES = ("results.parquet", "outcomes.parquet", "study.json", "examples.json.gz")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as made:
        yield made


def study(out: Path, executor: object) -> Any:
    cohort = gazeveil.simulate(4, 4, 1.0, 60.0, seed=5)
    mechanisms = ["gaussian:sigma_deg=1", "gaussian:sigma_deg=2", "temporal:K=2"]
    return evaluate(
        cohort, mechanisms, [Place(wait_s=0.05)], repetitions=4, executor=executor, out=out
    )  # type: ignore[arg-type]


def test_a_worker_killed_midway_changes_not_one_byte(cluster: Any, tmp_path: Path) -> None:
    study(tmp_path / "here", 1)
    with distributed.Client(cluster, set_as_default=False) as client:
        pids = list(client.run(os.getpid).values())
    assert len(set(pids)) == 2
    killed = []

    def kill() -> None:
        cells = tmp_path / "there" / "cells"
        while len(list(cells.glob("*.json")) if cells.exists() else []) < 6:
            time.sleep(0.02)
        os.kill(pids[0], signal.SIGKILL)
        killed.append(pids[0])

    watcher = threading.Thread(target=kill, daemon=True)
    watcher.start()
    results = study(tmp_path / "there", cluster.scheduler_address)
    watcher.join(timeout=5)
    assert killed, "the study was over before a worker could be killed"
    assert not results.failures
    assert {n: (tmp_path / "there" / n).read_bytes() for n in FILES} == {
        n: (tmp_path / "here" / n).read_bytes() for n in FILES
    }


def killing(cluster: Any, killed: list[int]) -> Callable[[int, int], None]:
    """Progress that kills a worker once something is finished."""
    with distributed.Client(cluster, set_as_default=False) as client:
        pid = next(iter(client.run(os.getpid).values()))

    def kill(done: int, total: int) -> None:
        if 1 <= done < total and not killed:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    return kill


def test_a_release_has_the_same_bytes_under_one_seed(cluster: Any, tmp_path: Path) -> None:
    raw, killed = gazeveil.simulate(6, 2, 8.0, 250.0, seed=3).write(tmp_path / "in"), []
    written(raw, tmp_path / "here", NOISE)
    kill, address = killing(cluster, killed), cluster.scheduler_address
    written(raw, tmp_path / "there", NOISE, None, cluster=address, progress=kill)
    assert killed
    assert files(tmp_path / "there") == files(tmp_path / "here")


def files(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_publish_gives_the_same_release_but_for_noise(cluster: Any, tmp_path: Path) -> None:
    source = gazeveil.simulate(6, 2, 6.0, 120.0, seed=3).write(tmp_path / "in")
    cohort, killed = gazeveil.read(source), []
    kept = PublicationChoices(keep=("person", "session", "stimulus"), durations="common")
    recipe = Recipe(source, NOISE, kept, battery="quick", repetitions=2)

    @contextmanager
    def cells(words: str) -> Iterator[Any]:
        yield killing(cluster, killed) if words == "Protecting" else None

    publish(recipe, cohort, tmp_path / "here", running=Running(1))
    running = Running(cluster.scheduler_address)
    publish(recipe, cohort, tmp_path / "there", Watcher(cells=cells), running=running)
    assert killed
    here, there = (read_certificate(tmp_path / name) for name in ("here", "there"))
    attacks: list[Any] = [here["attack"], there["attack"]]
    for certificate, attack in zip((here, there), attacks, strict=True):
        # Noise alone differs: hashes of files, and what an attack on the files themselves finds.
        assert attack.pop("files")["people"] == 6
        certificate.pop("files")
    assert there == here
    assert files(tmp_path / "there").keys() == files(tmp_path / "here").keys()
    one, other = (gazeveil.read(tmp_path / name) for name in ("here", "there"))
    by_key = {r.key: r for r in other}
    for r in one:
        assert np.array_equal(r.t_ns, by_key[r.key].t_ns)
        assert not np.array_equal(r.x_deg, by_key[r.key].x_deg)
    assert verify(tmp_path / "there", source).passed


@pytest.mark.heavy
def test_a_worker_holds_one_recording_however_many_there_are(cluster: Any, tmp_path: Path) -> None:
    """Recordings of 2 million samples, 50 MB each: sixteen take no more memory than eight. The
    first ones are read while a worker imports what it needs.
    """
    rng, samples = np.random.default_rng(1), 2_000_000
    t_ns = np.arange(samples, dtype=np.int64) * 1_000_000
    peaks = []
    for count in (2, 8, 16):
        people = [
            gazeveil.Recording(
                f"p{i}",
                "clip",
                t_ns,
                rng.normal(180, 5, samples),
                rng.normal(90, 5, samples),
                np.ones(samples, np.bool_),
                rate_hz=1000.0,
            )
            for i in range(count)
        ]
        source = gazeveil.Cohort(people).write(tmp_path / f"in{count}")
        written(source, tmp_path / f"out{count}", NOISE, None, cluster=cluster.scheduler_address)
        with distributed.Client(cluster, set_as_default=False) as client:
            peaks.append(max(client.run(peak_mb).values()))
    assert peaks[2] < peaks[1] + 50, peaks


def peak_mb() -> float:
    """The most memory that a worker has had, in MB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def test_nobody_at_the_address_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ANSWER_S", 0.5)
    with pytest.raises(DataError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9 "):
        evaluate(
            gazeveil.simulate(2, 2, 1.0, 60.0, seed=1),
            [],
            [Place()],
            repetitions=1,
            executor="tcp://127.0.0.1:9",
        )
    with pytest.raises(DataError, match="No Dask scheduler answers at nonsense"):
        evaluate(
            gazeveil.simulate(2, 2, 1.0, 60.0, seed=1),
            [],
            [Place()],
            repetitions=1,
            executor="nonsense:::",
        )


def test_a_client_nobody_answers_is_closed_and_not_left_to_the_garbage_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Collected while another client starts, an open one waits for a lock that its thread holds.
    monkeypatch.setattr(workers, "ANSWER_S", 0.5)
    gc.disable()
    try:
        with pytest.raises(DataError, match="No Dask scheduler answers"):
            workers.DaskCluster("nonsense:::")
        # Not isinstance: a proxy of what is gone already cannot be asked.
        made = [x for x in gc.get_objects() if issubclass(type(x), distributed.Client)]
    finally:
        gc.enable()
    assert made, "the client is gone already: nothing is shown"
    assert {client.status for client in made} == {"closed"}


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[cluster\]"):
        evaluate(
            gazeveil.simulate(2, 2, 1.0, 60.0, seed=1),
            [],
            [Place()],
            repetitions=1,
            executor="tcp://127.0.0.1:9",
        )


def test_a_cluster_with_another_version_is_refused(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "version", lambda: "0.0.1")
    with pytest.raises(
        DataError, match=r"A worker has Gazeveil .* and the process that .* 0\.0\.1"
    ):
        evaluate(
            gazeveil.simulate(2, 2, 1.0, 60.0, seed=1),
            [],
            [Place()],
            repetitions=1,
            executor=cluster.scheduler_address,
        )
