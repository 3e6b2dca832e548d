"""A study on a real Dask cluster of two worker processes, one of which is killed while it works."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gazeveil
from gazeveil.errors import DataError, MissingExtraError
from gazeveil.evaluation import backends
from gazeveil.evaluation.api import evaluate
from tests.support.small_attacks import Place

distributed = pytest.importorskip("distributed")

FILES = ("results.parquet", "outcomes.parquet", "study.json", "examples.npz")


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


def test_nobody_at_the_address_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "ANSWER_S", 0.5)
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
    monkeypatch.setattr(backends, "ANSWER_S", 0.5)
    gc.disable()
    try:
        with pytest.raises(DataError, match="No Dask scheduler answers"):
            backends.Cluster("nonsense:::")
        made = [x for x in gc.get_objects() if isinstance(x, distributed.Client)]
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
    monkeypatch.setattr("gazeveil.evaluation.backends.__version__", "0.0.1")
    with pytest.raises(DataError, match=r"A worker has Gazeveil .* and the study 0\.0\.1"):
        evaluate(
            gazeveil.simulate(2, 2, 1.0, 60.0, seed=1),
            [],
            [Place()],
            repetitions=1,
            executor=cluster.scheduler_address,
        )
