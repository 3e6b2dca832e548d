"""What a charge costs beside the database's own smallest durable write: one JSON line per engine.

    python benchmarks/gatekeeper_ledger.py [--json FILE] [--charges 1000] [--folder DIR] [--database
    URL]

A charge takes budget from two accounts (the device's and an app's) and is on the disk when it
returns. Beside each charge the same database makes one bare insert of one row with the same
guarantee of durability, through its plain driver, in turn with the charges. On a disk SQLite's
charge must take at most 3 times the bare insert; PostgreSQL's is told without a floor, because it
depends on how long a message takes to the server and back. `processor_ms` is the time this process
computed per charge. `--database` names a PostgreSQL; without it one is started from Debian's
packages if they are there.
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
from statistics import median, quantiles
from time import perf_counter, process_time

from gazeveil.gatekeeper.ledger.audit.log import AuditLog
from gazeveil.gatekeeper.ledger.ledger import Charge, Ledger
from gazeveil.gatekeeper.service.credentials.tokens import Tokens
from lines import Lines

COSTS = (Charge("device", "epsilon", Fraction(1, 3)), Charge("shop", "epsilon", Fraction(1, 3)))


def timed(work: Callable[[], object]) -> float:
    begin = perf_counter()
    work()
    return (perf_counter() - begin) * 1e3


def measure(
    lines: Lines, engine: str, ledger: Ledger, bare: Callable[[], object], charges: int
) -> None:
    for account in ("device", "shop"):
        ledger.set_limit(account, "epsilon", None, "ever")
    log, tokens = AuditLog(ledger), Tokens(ledger)
    token = tokens.issue("shop")
    rows = []
    for i in range(charges + 50):
        begin = process_time()
        one = timed(partial(ledger.charge, f"bench {i}", COSTS, "lease", 0))
        rows.append((one, (process_time() - begin) * 1e3, timed(bare)))
    cost, busy, alone = zip(*rows[50:], strict=True)
    over = median(cost) / median(alone)
    floor = 3.0 if engine == "sqlite" else None
    row = {
        "figure": f"{engine}: a durable charge of two accounts over a bare durable insert",
        "value": round(over, 2),
        "unit": "times",
        "most": floor,
        "met": floor is None or over <= floor,
        "charge_ms": round(median(cost), 3),
        "charge_p99_ms": round(quantiles(cost, n=100)[98], 3),
        "bare_ms": round(median(alone), 3),
        "bare_p99_ms": round(quantiles(alone, n=100)[98], 3),
        "processor_ms": round(median(busy), 3),
        "audit_row_ms": round(
            median(
                timed(lambda: log.record("answer", "shop", {"what": "tile"}, 0)) for _ in range(100)
            ),
            3,
        ),
        "token_check_ms": round(
            median(timed(lambda: tokens.check(token, 0)) for _ in range(100)), 3
        ),
        "charges": charges,
    }
    lines.keep(row)
    assert ledger.spent("shop", "epsilon", 0) == Fraction(charges + 50, 3)


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
