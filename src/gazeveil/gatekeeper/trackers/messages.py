"""What trackers say over a WebSocket or on lines of JSON, read into blocks; shared by all sources
that take the Gatekeeper's tracker messages.

A tracker begins with `{"type": "hello", "token": .., "rate_hz": .., "space": ..}` (all but the type
may be left out where the receiver knows them), then sends binary batches, `samples` and `poses`
(:mod:`gazeveil.gatekeeper.blocks`), `{"type": "lost"}` when it sees no eye any more, `{"type":
"confirm"}` when the wearer made the gesture for a choice, and `{"type": "ping"}`.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gatekeeper.blocks import (
    Block,
    from_message,
    parse_json,
    parse_space,
    space_figures,
    unpack,
)
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.gaze.geometry import Space, Sphere

#: A tracker whose rate differs by more from the one expected is refused.
_SAME_RATE = 0.05


class MessageTracker(Tracker):
    """A source that takes the tracker messages.

    Parameters
    ----------
    rate_hz : float
        Nominal samples per second.
    space : Sphere or Screen
        What the degrees mean.
    token : str, optional
        What a tracker must say in its hello.
    identity : str
        `lost`: a pose without rotation means that there was no gaze; `ahead`: it is a gaze straight
        ahead.
    """

    def __init__(
        self, rate_hz: float, space: Space | None, token: str | None, identity: str
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.rate_hz = checks.positive(owner, "rate_hz", rate_hz)
        self.space = Sphere() if space is None else space
        self._token = None if token is None else str(token)
        checks.one_of(owner, "identity", identity, ("lost", "ahead"))
        self._identity_is_lost = identity == "lost"

    def read(self, message: str | bytes, *, line: bool = False) -> Block | str | None:
        """One message, JSON text or a binary batch: a block, `"lost"`, `"ping"`, or None for what
        says nothing about gaze; a gesture is handed on, a malformed one is counted and dropped.
        With `line`, bytes are a line of JSON.
        """
        try:
            if isinstance(message, bytes) and not line:
                received = unpack(message).block
            else:
                parsed = parse_json(message)
                kind = parsed.get("type")
                if kind in ("hello", "welcome", "pong"):
                    return None
                if kind == "confirm":
                    self.confirmed()
                    return None
                if kind in ("lost", "ping"):
                    return str(kind)
                received = self.block_of(parsed)
            if received.form == "poses" and not isinstance(self.space, Sphere):
                raise DataError("Poses are directions on a sphere, and this stream is on a screen.")
        except DataError as error:
            self.malformed(str(error))
            return None
        self.counts["samples"] += len(received)
        return received

    def block_of(self, figures: Mapping[str, object]) -> Block:
        """The block of a parsed message."""
        return from_message(figures, identity_is_lost=self._identity_is_lost)

    def admits(self, figures: Mapping[str, object]) -> str:
        """Why a tracker's hello is refused, as a sentence; empty where it is not."""
        if figures.get("type") != "hello":
            return "A tracker begins with a message of type 'hello'."
        if self._token is not None:
            token = figures.get("token")
            if not isinstance(token, str) or not hmac.compare_digest(
                token.encode("utf-8", "replace"), self._token.encode()
            ):
                return "The token is not the one of this channel."
        rate = figures.get("rate_hz")
        if rate is not None and not (
            type(rate) in (int, float) and abs(float(str(rate)) / self.rate_hz - 1) <= _SAME_RATE
        ):
            return (
                f"This channel expects {self.rate_hz:g} samples per second. Start it with the"
                " tracker's rate."
            )
        if figures.get("space") is not None:
            try:
                same = parse_space(figures["space"]) == self.space
            except DataError as error:
                return str(error)
            if not same:
                return "This channel expects another space. Start it with the tracker's space."
        return ""

    def welcome(self) -> dict[str, object]:
        """The answer to a hello."""
        return {"type": "welcome", "rate_hz": self.rate_hz, "space": space_figures(self.space)}
