"""How time and memory of a study grow with the number of people.

    python benchmarks/growth.py [--full] [--people 25 50] [--cluster] [--json FILE]
                                [--agreement] [--note TEXT] [--page docs/results/growth.md]
                                [--attacks strong --section docs/results/growth.md]

Simulated people, 6 clips of 20 s at 120 Hz each, `gaussian` with 2 deg, 2 repetitions, the
scenarios raw/private and private/private beside the baseline, two worker processes. Each size runs
in a process of its own, from simulating the recordings to the finished results. Memory is the
largest sum of memory over the process and all it started, looked at once a second (to add up the
pages of a process takes milliseconds, which would count as the study's); pages that several
processes share (libraries, for one) count as shares, once in all. Processor time is that of all
these processes: it does not depend on what else a machine does, as far as caches do not.

`--full` adds 1,000 people. `--cluster` runs each size up to 100 people a second time on a Dask
scheduler with two workers on this machine and compares every figure. `--agreement` compares
the RBF network of few prototypes with the exact one on GazeCom under GAZEVEIL_DATA. `--attacks`
names other attackers, `--section` the page whose table of the strong battery takes the sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]

import gazeveil
from gazeveil.attacks.identify import radial_network
from gazeveil.attacks.identify.radial_network import RBFN
from gazeveil.evaluation.run import run
from gazeveil.evaluation.sources import Simulated
from gazeveil.evaluation.study import Study
from gazeveil.features.recording_set import RecordingSet
from lines import markdown, put_into

PEOPLE = (25, 50, 100, 200)
FULL = 1000
CLUSTER_MOST = 100
CLIPS, SECONDS, RATE_HZ = 6, 20.0, 120.0
ATTACKS = ("rbfn", "linkage", "linkage:features=extended")
WORKERS = 2
EVERY_S, LOOKS_PER_SUM = 0.2, 5
SPLITS = 4

_MIB = 1 << 20


def study(people: int, attacks: tuple[str, ...] = ATTACKS) -> Study:
    """The study of one size."""
    mechanisms: Any = ("gaussian:sigma_deg=2",)  # a study makes texts what they name
    attackers: Any = attacks
    source = Simulated(people, CLIPS, SECONDS, RATE_HZ, seed=17)
    return Study(source, mechanisms, attackers, repetitions=2, seed=3)


class Watch(threading.Thread):
    """The largest memory, in MiB, and the processor time, in seconds, of this process and
    all it started.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.tree_mib = self.process_mib = 0.0
        self._cpu_s: dict[int, float] = {}
        self._over = threading.Event()

    def run(self) -> None:
        """Look until told to stop."""
        own, look = psutil.Process(), 0
        while not self._over.wait(EVERY_S):
            held = [0.0]
            for process in (own, *own.children(recursive=True)):
                try:
                    times = process.cpu_times()
                    self._cpu_s[process.pid] = times.user + times.system
                    if look % LOOKS_PER_SUM == 0:
                        held.append(process.memory_full_info().pss / _MIB)
                except psutil.Error:  # it ended between the two looks
                    continue
            self.tree_mib = max(self.tree_mib, sum(held))
            self.process_mib = max(self.process_mib, *held)
            look += 1

    def stop(self) -> float:
        """No further look; the processor time."""
        self._over.set()
        self.join()
        return sum(self._cpu_s.values())


def one_size(people: int, cluster: bool, attacks: tuple[str, ...]) -> dict[str, object]:
    """Time, memory and figures of one size, computed in this process and its workers."""
    watch = Watch()
    watch.start()
    first: list[float] = []
    begin = perf_counter()

    def progress(done: int, total: int) -> None:
        if done and not first:
            first.append(perf_counter() - begin)

    if cluster:
        import distributed

        made: Any = distributed.LocalCluster  # Dask has no types
        with made(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as local:
            begin = perf_counter()
            results = run(study(people, attacks), None, local.scheduler_address, progress)
            took = perf_counter() - begin
    else:
        results = run(study(people, attacks), None, WORKERS, progress)
        took = perf_counter() - begin
    cpu = watch.stop()
    return {
        "people": people,
        "seconds": took,
        "cpu_seconds": cpu,
        "first_cell_seconds": first[0] if first else None,
        "tree_mib": watch.tree_mib,
        "process_mib": watch.process_mib,
        "failures": [f["sentence"] for f in results.failures],
        "figures": [
            [r["attack"], r["scenario"], r["metric"], r["value"]] for r in results.frame.to_dicts()
        ],
    }


def measured(people: int, attacks: tuple[str, ...], cluster: bool = False) -> dict[str, object]:
    """One size, measured in a fresh process."""
    command = [sys.executable, __file__, "--one", str(people), "--attacks", *attacks]
    command += ["--cluster"] if cluster else []
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def agreement(path: Path) -> list[list[str]]:
    """Rows of the table of fewer prototypes, against the exact network of 32 per person."""
    raw = RecordingSet(gazeveil.read(path).load()).prepared(("fixation", "saccade"))
    assert raw.cohort is not None
    spatial = gazeveil.mechanism("spatial", L=64).release(raw.cohort, seed=1).data.load()
    released = RecordingSet(spatial).prepared(("fixation", "saccade"))
    people = len(raw.persons)
    found: dict[int, list[list[float]]] = {k: [] for k in (32, 16, 8, 4, 2)}
    for repetition in range(SPLITS):
        order = np.random.default_rng([7, repetition]).permutation(raw.stimuli).tolist()
        learnt = round(0.8 * len(order))
        row: dict[int, list[float]] = {k: [] for k in found}
        for whole in (raw, released):
            sides = whole.select(stimuli=order[:learnt]), whole.select(stimuli=order[learnt:])
            exact = RBFN(solver="pinv").identify(*sides, seed=1)
            for k, figures in row.items():
                radial_network.MOST_UNITS = k * people
                solver = "pinv" if k == 32 else "reduced"
                scores = exact if k == 32 else RBFN(solver=solver).identify(*sides, seed=1)
                same = scores.values.argmax(axis=1) == exact.values.argmax(axis=1)
                alike = np.corrcoef(scores.values.ravel(), exact.values.ravel())[0, 1]
                figures += [float(scores.credit().mean()), float(same.mean()), float(alike)]
        for k, figures in row.items():
            found[k].append(figures)
    rows = []
    for k, repetitions in found.items():
        right, same_, alike_, right2, same2, alike2 = np.mean(repetitions, axis=0).tolist()
        rows.append(
            [
                f"{k}, exact" if k == 32 else str(k),
                *(f"{100 * right:.0f} %", f"{100 * same_:.0f} %", f"{alike_:.2f}"),
                *(f"{100 * right2:.0f} %", f"{100 * same2:.0f} %", f"{alike2:.2f}"),
            ]
        )
    return rows


def row_of(now: dict[str, object]) -> list[str]:
    """One row of the table."""
    columns = ("seconds", "cpu_seconds", "first_cell_seconds", "tree_mib", "process_mib")
    return [
        f"{now['people']:,}",
        f"{int(str(now['people'])) * CLIPS:,}",
        *(f"{float(str(now[name])):,.0f}" if name in now else "" for name in columns),
        f"{float(str(now['load'])):.1f}",
    ]


def page(kept: dict[str, object]) -> str:
    """Tables of the page of results."""
    sizes, cluster = _by_people(kept.get("sizes")), _by_people(kept.get("cluster"))
    columns = [
        *("people", "recordings", "seconds", "processor s", "first cell s", "MiB in all"),
        *("MiB of the largest process", "other load"),
    ]
    text = [markdown(columns, [row_of(now) for _, now in sorted(sizes.items())]), ""]
    if len(sizes) > 1:
        few, many = sizes[min(sizes)], sizes[max(sizes)]
        times = float(str(many["cpu_seconds"])) / float(str(few["cpu_seconds"]))
        share = int(str(many["people"])) / int(str(few["people"]))
        text += [f"{share:.0f} times the people take {times:.1f} times the processor time.", ""]
    for n, there in sorted(cluster.items()):
        same = f"; figures: {apart(there, sizes[n])}" if n in sizes else ""
        text += [
            f"On a Dask cluster of two workers {n} people took {row_of(there)[2]} s and"
            f" {row_of(there)[3]} processor seconds{same}."
        ]
    return "\n".join(text).strip()


def section(kept: dict[str, object]) -> str:
    """The table of the strong battery."""
    sizes = _by_people(kept.get("sizes"))
    columns = [
        *("people", "recordings", "seconds", "processor s", "first cell s", "MiB in all"),
        *("MiB of the largest process", "other load"),
    ]
    rows = [row_of(now) for _, now in sorted(sizes.items())]
    text = [markdown(columns, rows)]
    if kept.get("note"):
        text += ["", str(kept["note"])]
    return "\n".join(text)


def apart(there: dict[str, Any], here: dict[str, Any]) -> str:
    """How far the figures of two runs differ, in words."""
    pairs = list(zip(there["figures"], here["figures"], strict=True))
    if any(a[:3] != b[:3] for a, b in pairs):
        return "other figures"
    x, y = (np.array([pair[i][3] for pair in pairs], dtype=np.float64) for i in (0, 1))
    if np.array_equal(x, y, equal_nan=True):
        return f"all {len(pairs)} equal"
    differ = ~((x == y) | (np.isnan(x) & np.isnan(y)))
    most = np.max(np.abs(x - y)[differ] / np.maximum(np.abs(y[differ]), 1e-300))
    return f"{differ.sum()} of {len(pairs)} differ, by at most {most:.0e} of their value"


def _by_people(rows: object) -> dict[int, dict[str, object]]:
    return {int(row["people"]): row for row in (rows if isinstance(rows, list) else [])}


def main() -> None:
    """Measure, keep, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--people", type=int, nargs="*", default=list(PEOPLE))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--agreement", action="store_true")
    parser.add_argument("--attacks", nargs="+", default=list(ATTACKS))
    parser.add_argument("--json", type=Path, help="earlier sizes in it are kept")
    parser.add_argument("--note", help="a sentence under the table, kept in the JSON")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--section", type=Path)
    asked = parser.parse_args()
    attacks = tuple(asked.attacks)
    if asked.one is not None:
        print(json.dumps(one_size(asked.one, asked.cluster, attacks)))
        return
    kept: dict[str, object] = {}
    if asked.json is not None and asked.json.exists():
        kept = json.loads(asked.json.read_text("utf-8"))
    if asked.note is not None:
        kept["note"] = asked.note
    for people in [*asked.people, *([FULL] if asked.full else [])]:
        for name in ("sizes", *(["cluster"] if asked.cluster else [])):
            if name == "cluster" and people > CLUSTER_MOST:
                continue
            load = os.getloadavg()[0]
            row = {**measured(people, attacks, name == "cluster"), "load": load}
            kept[name] = list({**_by_people(kept.get(name)), people: row}.values())
            print(json.dumps({k: v for k, v in row.items() if k != "figures"}), flush=True)
            if asked.json is not None:
                asked.json.write_text(json.dumps(kept) + "\n", encoding="utf-8")
    if asked.agreement:
        most = radial_network.MOST_UNITS
        kept["agreement"] = agreement(Path(os.environ["GAZEVEIL_DATA"]) / "gazecom")
        radial_network.MOST_UNITS = most
    if asked.json is not None:
        asked.json.write_text(json.dumps(kept) + "\n", encoding="utf-8")
    if asked.section is not None:
        put_into(asked.section, "strong battery", section(kept))
    if asked.page is not None:
        put_into(asked.page, "sizes", page(kept))


if __name__ == "__main__":
    main()
