"""Listeners for events and tiles. An app's faulty callback ends only its own subscription."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gazeveil.gatekeeper.core.events.log import PublicEvent
from gazeveil.gatekeeper.streams.subscription import Subscription

#: What a listener may be told of: ends; for saccades starts too, or starts alone.
MODES = ("end", "start-stop", "start")


@dataclass(frozen=True, slots=True)
class SaccadeStart:
    """A saccade has begun: the tick and nothing else.

    Parameters
    ----------
    t_ms : int
        The tick in milliseconds since the session began.
    kind : str
        Always `saccade-start`.
    """

    t_ms: int
    kind: str = "saccade-start"


@dataclass(eq=False)
class Listener:
    """Listener for events of one kind: their starts, their ends, or both.

    A start carries its tick alone. Events before `since_ms`, the time of subscription, are not
    delivered.
    """

    subscription: Subscription
    kind: str
    starts: bool
    ends: bool
    callback: Callable[[PublicEvent | SaccadeStart], None]
    since_ms: int


@dataclass(eq=False)
class TileListener:
    """Listener for tiles."""

    subscription: Subscription
    callback: Callable[[int | None, int], None]


def tell(subscription: Subscription, callback: Callable[..., None], *what: object) -> None:
    """Call a subscriber back, unless its subscription has ended; one that fails ends."""
    if subscription.ended is not None:
        return
    try:
        callback(*what)
    except Exception:  # an app's own fault must not reach the tracker or other apps
        subscription.end("Its callback failed.", "closed")
