"""What a charge costs beside the database's own smallest durable write: one JSON line per engine.

    python benchmarks/gatekeeper_ledger.py [--json FILE] [--charges 1000] [--folder DIR] [--database
    URL]

A charge takes budget from two accounts (the device's and an app's) and is on the disk when it
returns. Beside each charge the same database makes one bare insert of one row with the same
guarantee of durability, through its plain driver, in turn with the charges. For SQLite a charge may
wait for the disk at most 3 times as long as the bare insert waits: the wait is the time on the
clock less what this process computed (`processor_ms`), in the fastest tenth of both. Over all the
time, a fast disk made the computing look like waiting, and medians of a busy machine are those of
its queue. Where the bare insert computes longer than it waits (memory instead of a disk) there is
nothing to judge. PostgreSQL's charge is told without a floor, because it depends on how long a
message takes to the server and back. `--database` names a PostgreSQL; without it one is started
from Debian's packages if they are there.
"""

from __future__ import annotations

import argparse
import contextlib
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from gazeveil.gatekeeper.ledger.audit import AuditLog
from gazeveil.gatekeeper.ledger.ledger import Charge, Ledger
from gazeveil.gatekeeper.service.credentials import Tokens
from lines import Lines

COSTS = tuple(
    Charge(account, "epsilon", Fraction(1, 3), limit=Fraction(10**9))
    for account in ("device", "shop")
)

#: Charges before the first that counts.
WARM = 50


#: How many times the wait of a bare insert a charge of SQLite may wait.
MOST_TIMES = 3.0


def timed(work: Callable[[], object]) -> float:
    begin = perf_counter()
    work()
    return (perf_counter() - begin) * 1e3


def timed_apart(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds on the clock, and those in which this process computed."""
    begin = process_time()
    clock = timed(work)
    return clock, (process_time() - begin) * 1e3


def fastest_tenth(values: NDArray[np.float64]) -> float:
    return float(np.quantile(values, 0.1))


def measure(
    lines: Lines, engine: str, ledger: Ledger, bare: Callable[[], object], charges: int
) -> None:
    pairs = np.array(
        [
            timed_apart(partial(ledger.charge, f"bench {i}", COSTS, "lease", 0)) + timed_apart(bare)
            for i in range(charges + WARM)
        ]
    )[WARM:]
    cost, busy, alone, bare_busy = pairs.T
    waits, bare_waits = fastest_tenth(cost - busy), fastest_tenth(alone - bare_busy)
    row = {
        "figure": f"{engine}: wait of a durable charge of two accounts over that of a bare insert",
        "value": round(waits / bare_waits, 2) if bare_waits > 0 else None,
        "unit": "times",
        "charge_ms": round(float(np.median(cost)), 3),
        "charge_p99_ms": round(float(np.quantile(cost, 0.99)), 3),
        "bare_ms": round(float(np.median(alone)), 3),
        "bare_p99_ms": round(float(np.quantile(alone, 0.99)), 3),
        "charge_over_bare": round(float(np.median(cost) / np.median(alone)), 2),
        "processor_ms": round(float(np.median(busy)), 3),
        "bare_processor_ms": round(float(np.median(bare_busy)), 3),
        **others(ledger),
        "charges": charges,
    }
    lines.keep(row | judged(engine, waits, bare_waits, fastest_tenth(bare_busy)))
    assert ledger.spent("shop", "epsilon", 0) == Fraction(charges + WARM, 3)


def judged(engine: str, waits: float, bare_waits: float, bare_busy: float) -> dict[str, object]:
    """Whether SQLite's charge waits as little as it must, where there is a disk to wait for."""
    if engine != "sqlite":
        return {"most": None, "met": None, "why": "it depends on the way to the server"}
    if bare_waits < bare_busy:
        return {"most": MOST_TIMES, "met": None, "why": "nothing here waits for a disk"}
    return {"most": MOST_TIMES, "met": waits <= MOST_TIMES * bare_waits}


def others(ledger: Ledger) -> dict[str, object]:
    """Milliseconds of a row of the audit log and of a look at a token."""
    log, tokens = AuditLog(ledger), Tokens(ledger.database, ledger.now_ns)
    token = tokens.issue("shop", "app", None)
    rows = [timed(lambda: log.record("answer", "shop", {"what": "tile"}, 0)) for _ in range(100)]
    looks = [timed(lambda: tokens.holder(token)) for _ in range(100)]
    return {"audit_row_ms": round(median(rows), 3), "token_check_ms": round(median(looks), 3)}


@contextlib.contextmanager
def sqlite_bare(folder: Path) -> Iterator[Callable[[], object]]:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE bare (x TEXT)")

    def write() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO bare VALUES ('a row')")
        connection.execute("COMMIT")

    yield write
    connection.close()


@contextlib.contextmanager
def postgres_bare(url: str) -> Iterator[Callable[[], object]]:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE bare (x TEXT)")
        connection.commit()

        def write() -> None:
            connection.execute("INSERT INTO bare VALUES ('a row')")
            connection.commit()

        yield write
        connection.rollback()
        connection.execute("DROP TABLE bare")


@contextlib.contextmanager
def postgres_url(given: str | None) -> Iterator[str | None]:
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.support.postgres import Server, programs

    binaries = programs()
    if given is not None or binaries is None:
        yield given
        return
    server = Server(binaries)
    server.start()
    try:
        yield server.fresh()
    finally:
        server.remove()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    parser.add_argument("--charges", type=int, default=1000)
    parser.add_argument(
        "--folder", type=Path, help="where SQLite's file is made: the disk that is measured"
    )
    parser.add_argument("--database", help="postgresql://user@host/name, an empty database")
    arguments = parser.parse_args()
    lines = Lines(arguments.json)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        with (
            Ledger.open(f"sqlite:///{folder / 'ledger.db'}") as ledger,
            sqlite_bare(folder) as bare,
        ):
            measure(lines, "sqlite", ledger, bare, arguments.charges)
    with postgres_url(arguments.database) as url:
        if url is None:
            print("PostgreSQL is not installed here.", file=sys.stderr)
        else:
            with Ledger.open(url) as ledger, postgres_bare(url) as bare:
                measure(lines, "postgresql", ledger, bare, arguments.charges)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
