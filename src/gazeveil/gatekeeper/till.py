"""What samples cost, and where that is paid.

All streams of a device are charged for one change, which the device's policy fixes and no app chooses: every sample of a lease moves by at
most `r_deg` degrees along x and y together. The r and w that an app writes into a mechanism decide how that mechanism works, never at what
change it is charged; so what apps spend in one currency is about the same thing and may be added up. Coordinates are the metric because
every promise on streams bounds it: an arc is never longer than the move of its coordinates, while an arc of one degree at a pole may be
half a turn of x.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from gazeveil.gatekeeper.errors import Denied, OverBudget
from gazeveil.privacy.guarantee import Change, Guarantee, PromiseError
from gazeveil.privacy.promise.stream_map import StreamMap

if TYPE_CHECKING:
    from gazeveil.gatekeeper.ledger import Ledger

#: All that an app is told where the device's own limit is reached: how much is left there depends on what other apps did.
NOT_NOW = "This is not available now. Try again later, or ask for less."

#: Currency and amount.
Cost: TypeAlias = tuple[str, Fraction]

_CURRENCIES = {"pure": "epsilon", "concentrated": "rho"}

_Made = TypeVar("_Made")


def account_of(app: str) -> str:
    """The ledger's account of an app."""
    return f"app:{app}"


def charged_change(samples: int, r_deg: Fraction) -> Change:
    """The change that so many samples are charged for."""
    return Change.window(samples, move_deg=r_deg, metric="coordinates")


def cost_of(promise: Guarantee, samples: int, r_deg: Fraction) -> Cost:
    """What that many samples of a stream cost.

    Parameters
    ----------
    promise : Guarantee
        Of the stream. What is not proved costs no epsilon; its samples are counted.
    samples : int
        In a row.
    r_deg : Fraction
        How far each of them moves in the change that the device charges for, in degrees.

    Raises
    ------
    Denied
        Where the promise has no bound for so many samples.

    Examples
    --------
    >>> from gazeveil.gaze.geometry import Sphere
    >>> from gazeveil.privacy.registry import mechanism
    >>> cost_of(mechanism("kaleido:epsilon=1/2,w=60,r_deg=2").promise(120.0, Sphere()), 90, Fraction(1))
    ('epsilon', Fraction(1, 1))
    """
    if promise.definition == "none" or promise.status != "proved":
        return "samples", Fraction(samples)
    try:
        # Only maps of streams are about so many samples in a row; a promise about all of a recording cannot be paid lease by lease.
        loss = promise.map(charged_change(samples, r_deg)) if isinstance(promise.losses, StreamMap) else None
    except PromiseError:
        loss = None
    if loss is None or loss.measure not in _CURRENCIES:
        raise Denied("mechanism", f"The promise of {promise.mechanism} cannot be added up over an endless stream.")
    return _CURRENCIES[loss.measure], loss.amount


def lease_samples(promise: Guarantee, rate_hz: float) -> int:
    """How many samples one lease is for: a window of its own where a promise has one budget for a window, else a second."""
    if promise.status == "proved" and "epsilon" in promise.numbers and "w_samples" in promise.numbers:
        return int(promise.numbers["w_samples"])
    return max(1, math.ceil(rate_hz))


class Till:
    """Where leases are paid.

    Parameters
    ----------
    ledger : Ledger
        Durable when `charge` returns.
    clock_ns : callable
        Wall clock.
    device : str
        The device's account.
    session : str
        Makes request ids unique.
    """

    def __init__(self, ledger: Ledger, clock_ns: Callable[[], int], device: str, session: str) -> None:
        self._ledger, self._clock_ns, self._device, self._session = ledger, clock_ns, device, session
        self._numbers = itertools.count(1)
        self._worker: ThreadPoolExecutor | None = None

    def pay(self, why: str, device: Cost | None, apps: Iterable[tuple[str, Cost]]) -> None:
        """Charge apps and the device, all or none.

        Raises
        ------
        Denied
            With nothing spent. Who reads the reason is an app: where its own budget suffices and the device's does not, it says neither how
            much is left there nor how much there was.
        LedgerError
            With nothing spent.
        """
        from gazeveil.gatekeeper.ledger import Charge

        # The ledger names the first that cannot pay: an app's own reason goes before the device's.
        charges = [Charge(account_of(app), *cost) for app, cost in apps if cost[1] > 0]
        charges += [] if device is None or device[1] == 0 else [Charge(self._device, *device)]
        if not charges:
            return
        try:
            self._ledger.charge(f"{self._session}:{next(self._numbers)}", charges, why, self._clock_ns())
        except OverBudget as no:
            if no.account == self._device:
                raise Denied("budget", NOT_NOW) from None
            raise

    def later(self, work: Callable[[], _Made]) -> Future[_Made]:
        """Run on the ledger's own thread."""
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="gazeveil-ledger")
        return self._worker.submit(work)

    def close(self) -> None:
        """End the thread; what it was asked for is finished first, so that nothing half-paid stays."""
        if self._worker is not None:
            self._worker.shutdown(wait=True)
            self._worker = None
