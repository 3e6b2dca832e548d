"""Pushing on an event loop: what `push_now` takes is what `push` would have told, and it never
waits.
"""

from __future__ import annotations

import threading
import time
from fractions import Fraction

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper import Gatekeeper, Grant, Ledger, MechanismRule, Policy

RATE_HZ = 100.0
STEP_NS = round(1e9 / RATE_HZ)
SCOPES = frozenset({"events", "samples"})


def policy() -> Policy:
    rule = MechanismRule("gaussian", {"sigma_deg": (">=", 1)})
    return Policy(
        {"app": Grant(SCOPES, (rule,), streams=4, budgets={"rho": Fraction(10**6)})}, consent=True
    )


def block(first: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rests of a third of a second, forty degrees apart."""
    index = np.arange(first, first + count)
    return (
        index * STEP_NS,
        100.0 + 40.0 * (index // 33 % 3),
        np.full(count, 90.0),
        np.ones(count, dtype=np.bool_),
    )


class Heard:
    """A Gatekeeper with a test seed, one stream and one listener, and what they were told."""

    def __init__(self, ledger: Ledger) -> None:
        self.keeper = Gatekeeper(policy(), ledger, rate_hz=RATE_HZ, seed=5)
        self.samples: list[np.ndarray] = []
        self.events: list[object] = []
        app = self.keeper.app("app")
        app.open_private_stream(
            "gaussian:sigma_deg=3", lambda t, x, y, v: self.samples.append(np.stack([t, x, y, v]))
        )
        app.add_event_listener("fixation", self.events.append)


def test_what_is_taken_at_once_is_what_push_would_have_told() -> None:
    with Ledger.open("sqlite://") as one, Ledger.open("sqlite://") as other:
        plain, quick = Heard(one), Heard(other)
        at_once = 0
        for first in range(0, 1200, 12):
            plain.keeper.push(*block(first, 12))
            taken = quick.keeper.push_now(*block(first, 12))
            at_once += taken
            if not taken:
                quick.keeper.push(*block(first, 12))
        plain.keeper.close()
        quick.keeper.close()
    # One block in eight begins a lease of a second, and the first is compiled for.
    assert 70 <= at_once <= 95
    assert np.array_equal(
        np.concatenate(plain.samples, axis=1), np.concatenate(quick.samples, axis=1)
    )
    assert plain.events == quick.events
    assert plain.events


def test_the_first_block_the_end_of_a_lease_and_a_lock_are_waited_for_elsewhere() -> None:
    with Ledger.open("sqlite://") as ledger:
        heard = Heard(ledger)
        keeper = heard.keeper
        assert not keeper.push_now(*block(0, 10)), "nothing is compiled yet"
        keeper.push(*block(0, 10))
        assert keeper.push_now(*block(10, 80))
        assert not keeper.push_now(*block(90, 20)), "ten samples are paid for"
        keeper.push(*block(90, 20))
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            with keeper._state.lock:
                held.set()
                let_go.wait(120)

        holder = threading.Thread(target=hold)
        holder.start()
        assert held.wait(60)
        began = time.monotonic()
        assert not keeper.push_now(*block(110, 10))
        assert time.monotonic() - began < 60, "the lock is held for two minutes"
        let_go.set()
        holder.join()
        assert keeper.push_now(*block(110, 10))
        keeper.close()


def test_single_samples_are_compiled_for_apart_from_blocks() -> None:
    with Ledger.open("sqlite://") as ledger:
        heard = Heard(ledger)
        heard.keeper.push(*block(0, 10))
        assert not heard.keeper.push_now(*block(10, 1))
        heard.keeper.push(*block(10, 1))
        assert heard.keeper.push_now(*block(11, 1))
        assert sum(part.shape[1] for part in heard.samples) == 12
        heard.keeper.close()


def test_without_consent_nothing_is_looked_at() -> None:
    with Ledger.open("sqlite://") as ledger:
        heard = Heard(ledger)
        heard.keeper.push(*block(0, 10))
        heard.keeper.consent(False)
        told = len(heard.samples)
        assert heard.keeper.push_now(*block(10, 10))
        assert len(heard.samples) == told
        heard.keeper.close()


def test_arrays_of_another_kind_are_refused_as_push_does() -> None:
    with (
        Ledger.open("sqlite://") as ledger,
        Gatekeeper(policy(), ledger, rate_hz=RATE_HZ) as keeper,
    ):
        keeper.push(*block(0, 4))  # before the first, push_now only says that it does not take it
        t, x, y, valid = block(4, 4)
        with pytest.raises(ParameterError, match="t_ns"):
            keeper.push_now(t.astype(np.float64), x, y, valid)
        with pytest.raises(ParameterError, match="equal length"):
            keeper.push_now(t, x[:3], y, valid)


def test_a_caller_who_changes_his_arrays_changes_nothing() -> None:
    with Ledger.open("sqlite://") as ledger:
        heard = Heard(ledger)
        heard.keeper.push(*block(0, 10))
        arrays = block(10, 10)
        assert heard.keeper.push_now(*arrays)
        before = np.concatenate(heard.samples, axis=1).copy()
        for array in arrays:
            array[:] = 0
        assert np.array_equal(np.concatenate(heard.samples, axis=1), before)
        heard.keeper.close()
