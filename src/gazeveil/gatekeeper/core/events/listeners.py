"""Who is told of events and tiles, and how: an app's faulty callback harms nobody but itself."""

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
    """Somebody who wants to be told of events of one kind: that one has begun, by its tick alone
    (`starts`), that one has ended (`ends`), or both; of none before `since_ms`, when it began to
    listen.
    """

    subscription: Subscription
    kind: str
    starts: bool
    ends: bool
    callback: Callable[[PublicEvent | SaccadeStart], None]
    since_ms: int


@dataclass(eq=False)
class TileListener:
    """Somebody who wants to be told of tiles."""

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
