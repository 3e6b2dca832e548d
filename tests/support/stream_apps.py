"""Apps that take shared streams, and a ledger that fails or is slow."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gazeveil.gatekeeper import Ledger, LedgerError
from gazeveil.gatekeeper.ledger.ledger import Charge

KALEIDO = "kaleido:epsilon=1/2,w=20,r_deg=2"


class Taken:
    """What an app got."""

    def __init__(self) -> None:
        self.blocks: list[tuple[np.ndarray, ...]] = []

    def __call__(self, *block: np.ndarray) -> None:
        self.blocks.append(block)

    def __len__(self) -> int:
        return sum(len(b[0]) for b in self.blocks)

    def column(self, i: int) -> np.ndarray:
        return np.concatenate([b[i] for b in self.blocks]) if self.blocks else np.empty(0)


class Faulty:
    """A ledger whose N-th charge fails, and which remembers what it committed."""

    def __init__(
        self,
        fails: Sequence[int] | range = (),
        error: type[Exception] = LedgerError,
        slow_s: float = 0.0,
    ) -> None:
        self.ledger = Ledger.open("sqlite://")
        self.fails, self.error, self.slow_s = fails, error, slow_s
        self.calls = 0
        self.committed: list[tuple[Charge, ...]] = []
        self.lock = threading.Lock()

    def charge(self, request_id: str, charges: Sequence[Charge], why: str, now_ns: int) -> None:
        with self.lock:
            self.calls += 1
            number = self.calls
        if number in self.fails:
            raise self.error("disk full")
        time.sleep(self.slow_s)
        self.ledger.charge(request_id, charges, why, now_ns)
        self.committed.append(tuple(charges))

    def total(self, account: str, currency: str = "epsilon") -> Fraction:
        return sum(
            (
                c.amount
                for charges in self.committed
                for c in charges
                if c.account == account and c.currency == currency
            ),
            Fraction(0),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)


def one_by_one(k: Any, trace: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    for a, b, c in zip(*(column.tolist() for column in trace), strict=True):
        k.push(a, b, c)


def push_still(k: Any, first: int, count: int) -> None:
    k.push(
        np.arange(first, first + count) * 10_000_000, np.full(count, 100.0), np.full(count, 80.0)
    )
