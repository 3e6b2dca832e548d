"""Which apps use the gaze now, for the indicator that a platform shows beside its camera light.

An app is in use while it has a subscription, and for five seconds after an answer. What it uses is
told by the name of the scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

#: An answer counts as use for so long.
ANSWER_NS = 5 * 10**9

#: Pairs of an app and the scope it uses, sorted.
InUse: TypeAlias = tuple[tuple[str, str], ...]

#: Told whenever that changes.
OnUse: TypeAlias = Callable[[InUse], None]


def scope_of(action: str) -> str:
    """The scope that an action of a request belongs to."""
    return "samples" if action == "stream" else action


class Indicator:
    """Gaze in use by apps, and callbacks for changes. Guarded by the Gatekeeper's lock."""

    def __init__(self) -> None:
        self._until_ns: dict[tuple[str, str], int] = {}
        self._callbacks: list[OnUse] = []
        self._last: InUse = ()

    def on_use(self, callback: OnUse) -> None:
        """Have `callback(in_use)` called when it changes; it runs on whatever thread changed it and
        must be quick.
        """
        self._callbacks.append(callback)

    def answered(self, app: str, action: str, now_ns: int) -> None:
        """An answer was given."""
        self._until_ns[app, scope_of(action)] = now_ns + ANSWER_NS

    def forget(self) -> None:
        """Drop recent answers, because they belong to the last wearer."""
        self._until_ns.clear()

    @property
    def waiting(self) -> bool:
        """Whether an answer still counts, so that time alone may change what is in use."""
        return bool(self._until_ns)

    def look(
        self, subscriptions: Iterable[tuple[str, str]], now_ns: int, tell: bool = True
    ) -> InUse:
        """Return the present use, and call the callbacks if it has changed.

        Without the Gatekeeper's lock only reading is allowed.
        """
        # A clock that was put back must not keep the indicator on: what counts for longer than it
        # can has ended.
        until_ns = {
            use: until
            for use, until in self._until_ns.copy().items()
            if now_ns < until <= now_ns + ANSWER_NS
        }
        now = tuple(sorted({*subscriptions, *until_ns}))
        if tell:
            self._until_ns = until_ns
            self._tell(now)
        return now

    def _tell(self, now: InUse) -> None:
        if now == self._last:
            return
        self._last = now
        for callback in tuple(self._callbacks):
            try:
                callback(now)
            except Exception:  # the indicator's own fault must not reach the tracker or the apps
                self._callbacks.remove(callback)
