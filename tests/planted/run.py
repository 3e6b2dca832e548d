"""Plant every bug, run the tests and the audit that must catch it, and print who did.

Each plant runs in processes of its own. The same tests and audits run once without any plant: an
alarm there is a false one. Exits with 1 if the tests miss a plant, the audit catches fewer than
:data:`LEAST_AUDITED`, or anything raises a false alarm.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.planted import PLANTS
from tests.planted.plant import SURE, Plant

#: The variable that names the plant for `tests/conftest.py`.
VARIABLE = "GAZEVEIL_PLANT"

#: Plants that the audit must catch at least.
LEAST_AUDITED = 30

ROOT = Path(__file__).resolve().parents[2]
_FAILED = 1  # pytest: tests ran and some failed
_PATIENCE_S = 900


@dataclass(frozen=True)
class Found:
    """What came of one process.

    Parameters
    ----------
    caught : bool
        Whether it noticed something wrong.
    words : str
        The test that failed, the verdict, or the error.
    seconds : float
        How long it took.
    """

    caught: bool
    words: str
    seconds: float


def _process(arguments: list[str], plant: str) -> tuple[int, str, float]:
    begun = time.monotonic()
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {
        **os.environ,
        VARIABLE: plant,
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_NUM_THREADS": "1",
    }
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"took more than {_PATIENCE_S} s", time.monotonic() - begun
    return done.returncode, done.stdout + done.stderr, time.monotonic() - begun


def run_tests(tests: Iterable[str], plant: str) -> Found:
    """Run tests, with a plant or without; caught where a test failed."""
    first = ["-x"] if plant else []
    code, text, seconds = _process(
        ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", *first, *tests],
        plant,
    )
    failed = re.search(r"^FAILED (\S+)", text, re.MULTILINE)
    if code == _FAILED and failed is not None:
        return Found(True, failed.group(1), seconds)
    return Found(
        False, "passed" if code == 0 else f"pytest ended with {code}: {text[-500:]}", seconds
    )


def run_audit(plant: Plant, planted: bool) -> Found:
    """Run a plant's audit, with the plant or without; caught where the audit refutes."""
    code, text, seconds = _process(
        ["-m", "tests.planted.run", "--audit", plant.name], plant.name if planted else ""
    )
    verdict = "refuted" in text.splitlines()
    if code != 0 or not (verdict or "not refuted" in text.splitlines()):
        return Found(False, f"error: {text[-300:]}", seconds)
    return Found(verdict, "refuted" if verdict else "not refuted", seconds)


def _audit(name: str) -> None:
    """In a process of its own: the verdict of one audit, on the library as the variable says."""
    plant = PLANTS[name]
    if os.environ.get(VARIABLE):
        with PLANTS[os.environ[VARIABLE]].planted():
            refuted = plant.refuted()
    else:
        refuted = plant.refuted(SURE)
    print("refuted" if refuted else "not refuted")


def main() -> int:
    """Run everything and print the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--audit", help="only the audit of one plant, in this process")
    asked.add_argument("--only", nargs="*", default=[], help="names of plants; all by default")
    asked.add_argument("--jobs", type=int, default=2)
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    if given.audit:
        _audit(given.audit)
        return 0
    plants = [PLANTS[name] for name in given.only] or list(PLANTS.values())
    # The same test or audit without a plant is run once for all plants that name it.
    tests = sorted({test for plant in plants for test in plant.tests})
    audits = {(p.audit, p.trials, p.black_box): p for p in plants if p.audit}
    with ThreadPoolExecutor(given.jobs) as pool:
        plain = pool.submit(run_tests, tests, "")  # the longest first
        by_tests, by_audit = {}, {}
        for p in plants:
            by_tests[p.name] = pool.submit(run_tests, p.tests, p.name)
            if p.audit:
                by_audit[p.name] = pool.submit(run_audit, p, True)
        plain_audits = {key: pool.submit(run_audit, p, False) for key, p in audits.items()}
        rows = []
        print(f"{'plant':48} {'audit':12} tests")
        for p in plants:
            by = by_audit[p.name].result() if p.audit else Found(False, "-", 0.0)
            found = by_tests[p.name].result()
            rows.append(
                {
                    "plant": p.name,
                    "wrong": p.wrong,
                    "audit": by.words,
                    "audited": by.caught,
                    "tests": found.words,
                    "tested": found.caught,
                }
            )
            rows[-1] |= {"seconds": round(by.seconds + found.seconds, 1)}
            seen = ("caught" if by.caught else "MISSED" if p.audit else "-") + (
                f" {by.words}" if by.words.startswith("error") else ""
            )
            print(
                f"{p.name:48} {seen:12}"
                f" {'caught by ' if found.caught else 'MISSED: '}{found.words}",
                flush=True,
            )
        false = [
            f"{key[0]}: {f.result().words}"
            for key, f in plain_audits.items()
            if f.result().words != "not refuted"
        ]
        if plain.result().words != "passed":
            false.append(f"tests: {plain.result().words}")
    audited, missed = (
        sum(bool(r["audited"]) for r in rows),
        [r["plant"] for r in rows if not r["tested"]],
    )
    asked_of = sum(bool(p.audit) for p in plants)
    print(
        f"{len(rows)} plants: the tests catch {len(rows) - len(missed)}; of {asked_of} that an"
        f" audit was asked about it catches {audited}."
    )
    for line in false:
        print(f"False alarm without a plant: {line}")
    if given.json is not None:
        given.json.write_text(json.dumps({"plants": rows, "false_alarms": false}, indent=1) + "\n")
    enough = audited >= LEAST_AUDITED or bool(given.only)
    return 0 if not missed and not false and enough else 1


if __name__ == "__main__":
    sys.exit(main())
