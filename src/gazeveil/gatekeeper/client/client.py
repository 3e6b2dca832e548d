"""The Gatekeeper's client for apps in Python: six calls, over HTTP and WebSocket.

::

    from gazeveil.gatekeeper.client import Target, connect

    with connect(token="gv_app_...") as gaze:
        if gaze.ask("choose") == "granted":
            lamp, radio = Target("lamp", -15, -5, 10, 10), Target("radio", 5, -5, 10, 10)
            print(gaze.choose([lamp, radio], by="dwell").name)

A program that comes over the service's Unix socket needs no token: its user is its name. What is
refused raises :class:`gazeveil.gatekeeper.errors.Denied` with a code and a reason, as it does in
the process of the Gatekeeper; the code is `token` where the token is not accepted, and `network`
where no service answers. Calls that wait block their thread: in an event loop run them with
`asyncio.to_thread`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, cast
from urllib.parse import quote

from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.core.area_metrics import AreaMetrics
from gazeveil.gatekeeper.core.areas import RegisteredArea, Target
from gazeveil.gatekeeper.core.events import PublicEvent
from gazeveil.gatekeeper.errors import Denied

try:
    from gazeveil.gatekeeper.client.transport import (
        Batch,
        Message,
        WireProtocol,
        call,
        default_url,
        listen,
    )
except ImportError as error:  # the core needs none of this
    raise MissingExtraError(error.name or "websockets", "service") from error

__all__ = ["Batch", "Gaze", "Rect", "Target", "connect"]

Want = Literal["choose", "count", "follow", "study"]
Answer = Literal["granted", "refused", "dismissed"]
By = Literal["confirm", "dwell"]
Mode = Literal["end", "start-stop", "start"]
Kind = Literal[
    "fixation",
    "saccade",
    "pursuit",
    "saccade-start",
    "region",
    "tile",
    "paused",
    "resumed",
    "ended",
]

#: How long the eyes must rest on a target that is chosen by dwell, in milliseconds.
DWELL_MS = 800

#: Samples in one message.
BATCH = 6


@dataclass(frozen=True)
class Rect:
    """A rectangle in degrees of the device's space, x to the right and y down, by its left upper
    corner.
    """

    x_deg: float
    y_deg: float
    width_deg: float
    height_deg: float


def connect(url: str | None = None, token: str = "", timeout_s: float = 10.0) -> Gaze:
    """Connect an app.

    Parameters
    ----------
    url : str, optional
        Address of the Gatekeeper, as `http://127.0.0.1:8765` or `unix:/run/gazeveil/gaze.sock`;
        without one, the Unix socket that `GAZEVEIL_UNIX_SOCKET` names, or the usual port.
    token : str
        The app's token; a program on the Unix socket needs none.
    timeout_s : float
        Seconds that an answer may take.

    Raises
    ------
    Denied
        With code `token` where the token is not accepted, `network` where no service answers.
    """
    gaze = Gaze(url or default_url(), token, timeout_s)
    if token:
        gaze.me()
    return gaze


class Gaze:
    """The calls of an app.

    Parameters
    ----------
    url, token, timeout_s
        As :func:`connect` takes them.
    """

    def __init__(self, url: str, token: str = "", timeout_s: float = 10.0) -> None:
        self.url, self.timeout_s = url, timeout_s
        self._token = token
        self._rects: dict[Rect, RegisteredArea] = {}

    def __enter__(self) -> Gaze:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing open: iterators end when they are left."""

    def __repr__(self) -> str:
        return f"Gaze({self.url!r})"  # never the token

    # The six calls.

    def ask(self, want: Want, timeout_s: float | None = None, every_s: float = 0.5) -> Answer:
        """Open the wearer's question and wait for the answer; where the answer was yes before,
        there is no question.

        Parameters
        ----------
        want : str
            `choose`, `count`, `follow` or `study`.
        timeout_s : float, optional
            Seconds to wait; the answer is `dismissed` then.
        every_s : float
            Seconds between looks.

        Returns
        -------
        str
            `granted`, `refused` or `dismissed`.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            answer = self._call("POST", "/v1/ask", {"want": want})["state"]
        except Denied as denied:
            if denied.code != "blocked":
                raise
            return "refused"
        while answer == "waiting":
            if until is not None and time.monotonic() >= until:
                return "dismissed"
            time.sleep(every_s)
            answer = self.me()["answer"] or "dismissed"
        return cast(Answer, answer)

    def choose(
        self,
        targets: Sequence[Target],
        by: By = "confirm",
        dwell_ms: int = DWELL_MS,
        patience: int | None = None,
    ) -> Target:
        """Wait until the wearer has chosen one of the targets. Nothing is told before.

        Parameters
        ----------
        targets : sequence of Target
            1 to 32 rectangles with names; their edges are moved outward to the public grid.
        by : str
            `confirm`: by the device's own gesture while the eyes rest on a target. `dwell`: by
            resting on it.
        dwell_ms : int
            How long the eyes must rest, from 500 to 10000 ms; for `dwell` alone.
        patience : int, optional
            Failed connections in a row after which it gives up.

        Raises
        ------
        Denied
            Where it is refused, or ended before a choice was made.
        """
        places = [asdict(target) for target in targets]
        how = {"by": by, "dwell_ms": dwell_ms}
        for message in self._events(patience, what="select", targets=places, **how):
            return _named(targets, message["target"])
        raise Denied("network", "The connection ended before a choice was made.")

    def observe(
        self, targets: Sequence[Target], patience: int | None = None
    ) -> Iterator[tuple[Target, AreaMetrics]]:
        """Each target's numbers, at once and after each change; targets as in :meth:`choose`, at
        most 16.
        """
        places = [asdict(target) for target in targets]
        for message in self._events(patience, what="areas", targets=places):
            yield _named(targets, message["name"]), _metrics(message)

    def on(self, kind: Kind, mode: Mode = "end", patience: int | None = None) -> Iterator[Message]:
        """Messages as they come; ends by :class:`Denied` with the reason, also where the grant
        ends while nothing is heard.

        Parameters
        ----------
        kind : str
            Movements (`fixation`, `saccade`, `pursuit`, `saccade-start`), an avatar's `region`,
            `paused` and `resumed`, when gaze stops and comes back, or `ended`, when the grant
            does: its one message has the code and the reason, and nothing is raised.
        mode : str
            Of `saccade`: `start-stop` also tells the start, by its time alone; `start` tells
            nothing else.
        patience : int, optional
            Failed connections in a row after which it gives up.
        """
        wish: dict[str, object] = {} if kind in _NEWS else {"what": kind, "mode": mode}
        if kind == "saccade-start":
            wish = {"what": "saccade", "mode": "start"}
        try:
            for message in self._events(patience, **wish):
                if kind not in _NEWS or message["type"] == kind:
                    yield message
        except Denied as denied:
            if kind != "ended":
                raise
            yield {"type": "ended", "code": denied.code, "reason": denied.reason}

    def follow(
        self, mechanism: str | None = None, batch: int = BATCH, patience: int | None = None
    ) -> Iterator[Batch | Message]:
        """Where the eyes go: an avatar's regions, or in a study protected samples.

        Parameters
        ----------
        mechanism : str, optional
            For samples, as on the command line (`gaussian:sigma_deg=2`); without one the device
            picks what protects them.
        batch : int
            Samples in one message.
        patience : int, optional
            Failed connections in a row after which it gives up.
        """
        wish: dict[str, object] = {"what": "region"}
        if mechanism is not None or self.me()["want"] != "follow":
            named = {} if mechanism is None else {"mechanism": mechanism}
            wish = {"what": "samples", **named, "encoding": "binary", "batch": batch}
        yield from self._listen(patience, **wish)

    def left(self) -> float:
        """Seconds until the grant ends or is used up; infinite where only the wearer ends it, 0
        without a grant.
        """
        me = self.me()
        if me["want"] is None:
            return 0.0
        return float("inf") if me["left_s"] is None else float(me["left_s"])

    def me(self) -> dict[str, Any]:
        """What the app may do now: its grant, the public level, the space."""
        return self._call("GET", "/v1/me")

    # The names of David-John et al. (2021).

    def register_area(
        self, name: str, x_deg: float, y_deg: float, width_deg: float, height_deg: float
    ) -> RegisteredArea:
        """Register a rectangle; it comes back with its edges moved outward to the public grid."""
        sides = asdict(Rect(x_deg, y_deg, width_deg, height_deg))
        return _area(self._call("POST", "/v1/areas", {"name": name, **sides}))

    def areas(self) -> tuple[RegisteredArea, ...]:
        """All areas of the app."""
        return tuple(map(_area, self._call("GET", "/v1/areas")["areas"]))

    def remove_area(self, area: RegisteredArea) -> None:
        """Remove an area."""
        self._call("DELETE", f"/v1/areas/{quote(str(area.id), safe='')}")
        self._rects = {rect: known for rect, known in self._rects.items() if known.id != area.id}

    def get_fixations(self, area: RegisteredArea | Rect, **limits: int) -> tuple[PublicEvent, ...]:
        """Fixations in an area; a bare :class:`Rect` is registered the first time it is used.

        Parameters
        ----------
        area : RegisteredArea or Rect
            Where.
        **limits : int
            `since_ms`, `until_ms`, `after` (the number of an event), `limit`.
        """
        return self._seen(area, "fixations", limits)

    def get_saccades(self, area: RegisteredArea | Rect, **limits: int) -> tuple[PublicEvent, ...]:
        """Saccades that landed in an area; parameters as for :meth:`get_fixations`."""
        return self._seen(area, "saccades", limits)

    def get_dwell_time(self, fixation: PublicEvent | int) -> int:
        """Milliseconds of a fixation that the app was shown."""
        number = fixation if isinstance(fixation, int) else fixation.number
        return int(self._call("GET", f"/v1/fixations/{number}/dwell")["duration_ms"])

    def metrics(self, area: RegisteredArea | Rect) -> AreaMetrics:
        """Count, visits, dwell, order and times to the first fixation and saccade."""
        return _metrics(self._call("GET", self._path(area, "metrics")))

    def current_tile(self) -> int | None:
        """The tile that is looked at, counted row by row; None while gaze is lost."""
        tile = self._call("GET", "/v1/tile")["tile"]
        return None if tile is None else int(tile)

    def add_event_listener(
        self, kind: Kind, callback: Callable[[Message], None], mode: Mode = "end"
    ) -> threading.Thread:
        """Call back on what :meth:`on` tells, on a thread of its own; the last call is an `ended`
        message with the code and the reason.
        """

        def listen() -> None:
            try:
                for message in self.on(kind, mode):
                    callback(message)
            except Denied as denied:
                callback({"type": "ended", "code": denied.code, "reason": denied.reason})

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        return thread

    # Carrying.

    def _listen(self, patience: int | None, **wish: object) -> Iterator[Batch | Message]:
        return listen(self.url, WireProtocol(self._token, wish, patience), self.timeout_s)

    def _events(self, patience: int | None, **wish: object) -> Iterator[Message]:
        for received in self._listen(patience, **wish):
            if not isinstance(received, Batch):
                yield received

    def _path(self, area: RegisteredArea | Rect, resource: str) -> str:
        if isinstance(area, Rect):
            if area not in self._rects:
                sides = asdict(area)
                name = ",".join(f"{side:g}" for side in sides.values())
                self._rects[area] = self.register_area(name, **sides)
            area = self._rects[area]
        return f"/v1/areas/{quote(str(area.id), safe='')}/{resource}"

    def _seen(
        self, area: RegisteredArea | Rect, resource: str, limits: dict[str, int]
    ) -> tuple[PublicEvent, ...]:
        answer = self._call("GET", self._path(area, resource), parameters=limits)
        names = [field.name for field in fields(PublicEvent)]
        return tuple(PublicEvent(**{name: one[name] for name in names}) for one in answer[resource])

    def _call(
        self, method: str, path: str, body: object = None, parameters: dict[str, int] | None = None
    ) -> dict[str, Any]:
        return call(self.url, self._token, self.timeout_s, method, path, body, parameters)


#: Kinds that belong to no subscription.
_NEWS = ("paused", "resumed", "ended")


def _named(targets: Sequence[Target], name: object) -> Target:
    return next(target for target in targets if target.name == name)


def _metrics(answer: Message) -> AreaMetrics:
    return AreaMetrics(**{f.name: cast(Any, answer[f.name]) for f in fields(AreaMetrics)})


def _area(answer: Message) -> RegisteredArea:
    names = ("id", "name", "x_deg", "y_deg", "width_deg", "height_deg")
    return RegisteredArea(**{name: cast(Any, answer[name]) for name in names})
