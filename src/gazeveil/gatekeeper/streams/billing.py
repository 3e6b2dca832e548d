"""What samples cost, and where that is paid.

All streams of a device are charged for one change, which the device's policy fixes and no app
chooses: every sample of a lease moves by at most `r_deg` degrees along x and y together. The r and
w of a mechanism decide how that mechanism works, never at what change it is charged; so what apps
spend in one currency is about the same thing and may be added up. Coordinates are the metric
because every promise on streams bounds it: an arc is never longer than the move of its coordinates,
while an arc of one degree at a pole may be half a turn of x.

What averaging gives: how far off the best estimate is of where resting eyes are, by the law of a
mechanism's noise.

Noise that is drawn anew falls with the square root of how often it is drawn. For an angle with
Gaussian noise of s along x and y the median error is 1.18 s.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from gazeveil.gatekeeper.errors import Denied, LedgerError, OverBudget
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy, account_of, device_account
from gazeveil.privacy.guarantee import Change, Guarantee, PromiseError
from gazeveil.privacy.promise.privacy_map import StreamMap
from gazeveil.privacy.stream.gaussian import Gaussian

if TYPE_CHECKING:
    from gazeveil.gatekeeper.ledger.ledger import Ledger
#: All that an app is told where the device's own limit is reached: how much is left there depends
#: on what other apps did.
NOT_NOW = "This is not available now. Try again later, or ask for less."

#: How often a stream that waits for the ledger looks whether it is still wanted, in seconds.
LOOK_S = 0.02

#: A look that takes longer than this, in seconds, was not waiting but standing still.
STALL_S = 0.2

#: Currency and amount.
Cost: TypeAlias = tuple[str, Fraction]

_CURRENCIES = {"pure": "epsilon", "concentrated": "rho"}

_Value = TypeVar("_Value")


def charged_change(samples: int, r_deg: Fraction) -> Change:
    """The change that so many samples are charged for."""
    return Change.window(samples, move_deg=r_deg, metric="coordinates")


def cost_of(promise: Guarantee, samples: int, r_deg: Fraction) -> Cost:
    """What that many samples of a stream cost.

    Parameters
    ----------
    promise : Guarantee
        Of the stream.
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
    >>> promise = mechanism("kaleido:epsilon=1/2,w=60,r_deg=2").promise(120.0, Sphere())
    >>> cost_of(promise, 90, Fraction(1))
    ('epsilon', Fraction(1, 1))
    """
    loss = None
    # Only maps of streams are about so many samples in a row; a promise about all of a recording
    # cannot be paid lease by lease.
    if isinstance(promise.losses, StreamMap):
        with suppress(PromiseError):
            loss = promise.claimed_loss(charged_change(samples, r_deg))
    if loss is None or loss.measure not in _CURRENCIES:
        reason = f"The promise of {promise.mechanism} cannot be added up over an endless stream."
        raise Denied("mechanism", reason)
    return _CURRENCIES[loss.measure], loss.amount


def lease_samples(promise: Guarantee, rate_hz: float) -> int:
    """How many samples one lease is for: a window of its own where a promise has one budget for a
    window, else a second.
    """
    if {"epsilon", "w_samples"} <= set(promise.numbers):
        return int(promise.numbers["w_samples"])
    return max(1, math.ceil(rate_hz))


class Billing:
    """Where leases are paid.

    Parameters
    ----------
    ledger : Ledger
        Durable when `charge` returns.
    clock_ns : callable
        Wall clock.
    device : str
        The device's name.
    session : str
        Makes request ids unique.
    wearer : str, optional
        Whose accounts pay. A lease that is asked for under one wearer is never paid by the next:
        another wearer has another billing.
    policy : callable
        The policy now, which says the limits.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock_ns: Callable[[], int],
        device: str,
        session: str,
        wearer: str | None,
        policy: Callable[[], Policy],
    ) -> None:
        self._ledger, self._clock_ns, self._session = ledger, clock_ns, session
        self._wearer, self._device = wearer, device_account(device, wearer)
        self._policy = policy
        self._numbers = itertools.count(1)
        self._waiting_since_s: float | None = None

    def pay(self, why: str, device: Cost | None, apps: Iterable[tuple[str, Cost]]) -> None:
        """Charge apps and the device, all or none.

        Parameters
        ----------
        why : str
            For the ledger's reader.
        device : Cost, optional
            What the device pays.
        apps : iterable of (str, Cost)
            What apps pay.

        Raises
        ------
        Denied
            With nothing spent. Who reads the reason is an app: where its own budget suffices and
            the device's does not, it says neither how much is left there nor how much there was.
        LedgerError
            With nothing spent.
        """
        from gazeveil.gatekeeper.ledger.ledger import Charge

        policy = self._policy()
        # The ledger names the first that cannot pay: an app's own reason goes before the device's.
        charges = [
            Charge(
                account_of(app, self._wearer), *cost, policy.apps.get(app, Grant()).limit(cost[0])
            )
            for app, cost in apps
            if cost[1] > 0
        ]
        if device is not None and device[1] > 0:
            charges.append(Charge(self._device, *device, policy.device.limit(device[0])))
        if not charges:
            return
        request = f"{self._session}:{next(self._numbers)}"
        try:
            self._ledger.charge(request, charges, why, self._clock_ns())
        except OverBudget as no:
            if no.account == self._device:
                raise Denied("budget", NOT_NOW) from None
            raise
        self._waiting_since_s = None

    def later(self, work: Callable[[], _Value]) -> Future[_Value]:
        """Run on the ledger's own thread."""
        return self._ledger.database.later(work)

    def wait(self, asked: Future[_Value], is_open: Callable[[], bool], patience_s: float) -> _Value:
        """Wait for the ledger's thread, as the tracker's samples do.

        All streams together wait so long, counted from when the first of them began to: a device
        with many streams must not wait for each in turn. Time in which this process itself stood
        still does not count: the ledger may have stood still with it.

        Parameters
        ----------
        asked : Future
            What :meth:`later` gave.
        is_open : callable
            Whether anybody still wants it; the wearer may take it away meanwhile.
        patience_s : float
            How long.

        Raises
        ------
        LedgerError
            Where it does not answer in time, or the answer is no longer wanted.
        """
        since_s = self._waiting_since_s = self._waiting_since_s or time.monotonic()
        while not asked.done():
            left_s = since_s + patience_s - time.monotonic()
            if left_s <= 0 or not is_open():
                raise LedgerError("The ledger did not answer in time, so nothing is given.")
            began_s = time.monotonic()
            wait([asked], timeout=min(left_s, LOOK_S))
            stood_still_s = time.monotonic() - began_s - STALL_S
            if stood_still_s > 0:
                since_s = self._waiting_since_s = since_s + stood_still_s
        made = asked.result()
        self._waiting_since_s = None
        return made


LONG_S = 10.0

#: Median of the length of a pair of independent Gaussian errors, for sigma = 1.
_MEDIAN = math.sqrt(2 * math.log(2))


def steady_error_deg(mechanism: Any, rate_hz: float, seconds: float = LONG_S) -> float | None:
    """Median error of the mean over so many seconds of resting eyes, in degrees; None where no
    formula is known.

    Parameters
    ----------
    mechanism : StreamMechanism
        As granted.
    rate_hz : float
        Samples that it is given in a second.
    seconds : float
        How long.

    Examples
    --------
    >>> from gazeveil.privacy.registry import mechanism
    >>> round(steady_error_deg(mechanism("gaussian:sigma_deg=2"), 120.0), 3)
    0.068
    """
    if isinstance(mechanism, Gaussian):
        return _MEDIAN * float(mechanism.sigma_deg) / math.sqrt(max(1.0, rate_hz * seconds))
    return None


def averaging_words(mechanism: Any, rate_hz: float) -> str:
    """What averaging gives, in a sentence.

    Examples
    --------
    >>> from gazeveil.privacy.registry import mechanism
    >>> averaging_words(mechanism("gaussian:sigma_deg=2"), 120.0)
    'Averaging this stream alone: who watches resting eyes for ten seconds finds them to about 0.07
    degrees.'
    """
    error = steady_error_deg(mechanism, rate_hz)
    if error is None:
        return (
            "Averaging this stream alone: who watches resting eyes for long takes its noise away."
        )
    return (
        "Averaging this stream alone: who watches resting eyes for ten seconds finds them to about"
        f" {error:.1g} degrees."
    )
