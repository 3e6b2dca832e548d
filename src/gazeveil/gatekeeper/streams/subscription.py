"""Subscriptions: what an app holds while the Gatekeeper calls it back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from gazeveil.privacy.guarantee import Guarantee

#: Called once with the reason and its code when a subscription ends.
OnEnd: TypeAlias = Callable[[str, str], None]


class Subscription:
    """Something of an app that goes on until it is closed, or until the Gatekeeper ends it and says
    why. The number counts the subscriptions of the device; `leave` takes it off the Gatekeeper's
    lists.
    """

    def __init__(self, number: int, app: str, leave: Callable[[Subscription], None]) -> None:
        self.id = number
        self.app = app
        self._leave = leave
        self._lock = threading.Lock()
        self._callbacks: list[OnEnd] = []
        self._end: tuple[str, str] | None = None
        self._left = False

    @property
    def ended(self) -> str | None:
        """Why it ended; None while it goes on."""
        return None if self._end is None else self._end[0]

    @property
    def code(self) -> str | None:
        """The word for why it ended; None while it goes on."""
        return None if self._end is None else self._end[1]

    def on_end(self, callback: OnEnd) -> None:
        """Have `callback(reason, code)` called when it ends; at once if it has."""
        with self._lock:
            if self._end is None:
                self._callbacks.append(callback)
                return
            end = self._end
        callback(*end)

    def close(self) -> None:
        """End it; closing twice is allowed."""
        self.end("It was closed by the app.", "closed")

    def end(self, reason: str, code: str) -> None:
        """End it with a reason. For the Gatekeeper; apps call :meth:`close`."""
        self.stop(reason, code)
        with self._lock:
            if self._left:
                return
            self._left = True
        self._leave(self)

    def stop(self, reason: str, code: str) -> None:
        """Have nothing more delivered, and tell whose it is; :meth:`end` takes it off the lists.

        It waits for no lock of the Gatekeeper, so that the wearer can take something away while
        samples wait for the ledger.
        """
        with self._lock:
            if self._end is not None:
                return
            self._end = (reason, code)
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback(reason, code)
            except Exception:  # an app's own fault must not reach the tracker or other apps
                continue


class PrivateStream(Subscription):
    """A protected stream of samples.

    Parameters
    ----------
    mechanism : str
        In the registry's normal form.
    guarantee : Guarantee
        What it promises.
    rate_hz : float
        Samples per second that are released.
    """

    def __init__(
        self,
        number: int,
        app: str,
        leave: Callable[[Subscription], None],
        mechanism: str,
        guarantee: Guarantee,
        rate_hz: float,
    ) -> None:
        super().__init__(number, app, leave)
        self.mechanism = mechanism
        self.guarantee = guarantee
        self.rate_hz = rate_hz
