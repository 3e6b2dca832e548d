"""The Gatekeeper's client for apps in Python: the calls of :class:`gazeveil.gatekeeper.App`, over
HTTP and WebSocket.

::

    from gazeveil.gatekeeper.client.client import connect

    with connect("http://127.0.0.1:8765", token) as gaze:
        gaze.ask(preset="aoi-analytics", purpose="count-looks")
        gaze.wait_for_grant()
        poster = gaze.register_area("poster", 150, 70, 40, 30)
        print(gaze.metrics(poster))

What is refused raises :class:`gazeveil.gatekeeper.errors.Denied` with a code and a reason, as it
does in the process of the Gatekeeper; the code is `token` where the token is not accepted, and
`network` where nobody answers.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple
from fractions import Fraction
from typing import Any, Literal
from urllib.parse import quote

from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.client.answers import CountAnswer, Rect, area_of, event_of
from gazeveil.gatekeeper.core.area_metrics import AreaMetrics
from gazeveil.gatekeeper.core.areas import RegisteredArea
from gazeveil.gatekeeper.core.events.log import PublicEvent
from gazeveil.gatekeeper.core.selection import DWELL_MS
from gazeveil.gatekeeper.core.targets import Target
from gazeveil.gatekeeper.errors import Denied

try:
    import httpx

    from gazeveil.gatekeeper.client.stream import Batch, Message, WireProtocol, listen, listen_async
except ImportError as error:  # the core needs none of this
    raise MissingExtraError(error.name or "httpx", "service") from error

__all__ = ["Batch", "CountAnswer", "Gaze", "Rect", "Target", "connect"]

Encoding = Literal["binary", "json"]
Mode = Literal["end", "start-stop", "start"]
By = Literal["confirm", "dwell"]


def connect(url: str, token: str, timeout_s: float = 10.0) -> Gaze:
    """Connect an app; returns when the token is accepted, whether or not anything is granted yet.

    Parameters
    ----------
    url : str
        Address of the Gatekeeper, as `http://127.0.0.1:8765`.
    token : str
        The app's token.
    timeout_s : float
        Seconds that an answer may take.

    Raises
    ------
    Denied
        With code `token` where the token is not accepted, `network` where nobody answers.
    """
    gaze = Gaze(url, token, timeout_s)
    try:
        gaze.me()
    except Denied:
        gaze.close()
        raise
    return gaze


class Gaze:
    """What an app may ask about gaze.

    Parameters
    ----------
    url, token, timeout_s
        As :func:`connect` takes them.
    """

    def __init__(self, url: str, token: str, timeout_s: float = 10.0) -> None:
        self.url, self.timeout_s = url, timeout_s
        self._token = token
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=timeout_s
        )
        self._rects: dict[Rect, RegisteredArea] = {}

    def __enter__(self) -> Gaze:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections for questions; iterators end when they are left."""
        self._http.close()

    def __repr__(self) -> str:
        return f"Gaze({self.url!r})"  # never the token

    # Grants.

    def me(self) -> dict[str, Any]:
        """What the app may do now: its grant, its budgets, the public level."""
        return self._call("GET", "/v1/me")

    def ask(
        self, preset: str | None = None, purpose: str = "choose", scopes: tuple[str, ...] = ()
    ) -> None:
        """Ask the owner for a preset, or for scopes; the owner decides on their page.

        Parameters
        ----------
        preset : str, optional
            A name of a preset.
        purpose : str
            What for: `choose`, `hands-free`, `sharp-view`, `avatar`, `game`, `reading`,
            `count-looks` or `study`. The owner reads its sentence.
        scopes : tuple of str
            Single scopes instead of a preset, or besides it.

        Raises
        ------
        Denied
            With code `waiting` while an ask of the app waits, and `blocked` after the owner has
            dismissed three.
        """
        wish = {"preset": preset, "purpose": purpose, "scopes": list(scopes)}
        self._call("POST", "/v1/ask", wish)

    def wait_for_grant(
        self, timeout_s: float | None = None, every_s: float = 1.0
    ) -> dict[str, Any]:
        """Wait until something is granted and consent is on; returns what :meth:`me` does.

        Raises
        ------
        Denied
            With code `no-grant` or `no-consent` where the time has passed.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            me = self.me()
            granted = me["state"] == "granted"
            if granted and me["consent"]:
                return me
            if until is not None and time.monotonic() >= until:
                if granted:
                    raise Denied("no-consent", "The wearer has not switched sharing on in time.")
                raise Denied("no-grant", "The owner has not granted anything in time.")
            time.sleep(every_s)

    # Areas.

    def register_area(
        self, name: str, x_deg: float, y_deg: float, width_deg: float, height_deg: float
    ) -> RegisteredArea:
        """Register a rectangle; it comes back with its edges moved outward to the public grid."""
        sides = asdict(Rect(x_deg, y_deg, width_deg, height_deg))
        return area_of(self._call("POST", "/v1/areas", {"name": name, **sides}))

    def areas(self) -> tuple[RegisteredArea, ...]:
        """All areas of the app."""
        return tuple(map(area_of, self._call("GET", "/v1/areas")["areas"]))

    def remove_area(self, area: RegisteredArea) -> None:
        """Remove an area."""
        self._call("DELETE", f"/v1/areas/{quote(str(area.id), safe='')}")
        self._rects = {rect: known for rect, known in self._rects.items() if known.id != area.id}

    def get_fixations(
        self,
        area: RegisteredArea | Rect,
        since_ms: int | None = None,
        until_ms: int | None = None,
        after: int | None = None,
        limit: int = 1000,
    ) -> tuple[PublicEvent, ...]:
        """Fixations in an area; a bare :class:`Rect` is registered the first time it is used."""
        return self._events(
            area, "fixations", since_ms=since_ms, until_ms=until_ms, after=after, limit=limit
        )

    def get_saccades(
        self,
        area: RegisteredArea | Rect,
        since_ms: int | None = None,
        until_ms: int | None = None,
        after: int | None = None,
        limit: int = 1000,
    ) -> tuple[PublicEvent, ...]:
        """Saccades that landed in an area: cell and tick of the landing."""
        return self._events(
            area, "saccades", since_ms=since_ms, until_ms=until_ms, after=after, limit=limit
        )

    def get_dwell_time(self, fixation: PublicEvent | int) -> int:
        """Milliseconds of a fixation that the app was shown."""
        number = fixation if isinstance(fixation, int) else fixation.number
        return int(self._call("GET", f"/v1/fixations/{number}/dwell")["duration_ms"])

    def metrics(self, area: RegisteredArea | Rect) -> AreaMetrics:
        """Count, visits, dwell, order and times to the first fixation and saccade."""
        return AreaMetrics(**self._call("GET", self._path(area, "metrics")))

    def counter(self, area: RegisteredArea | Rect) -> CountAnswer:
        """A differentially private count of fixations."""
        answer = self._call("GET", self._path(area, "counter"))
        return CountAnswer(
            int(answer["fixations"]), Fraction(answer["epsilon"]), answer["guarantee"]
        )

    def current_tile(self) -> int | None:
        """The tile that is looked at, counted row by row; None while gaze is lost."""
        tile = self._call("GET", "/v1/tile")["tile"]
        return None if tile is None else int(tile)

    # Selection.

    def select(
        self,
        targets: Sequence[Target],
        by: By = "confirm",
        dwell_ms: int = DWELL_MS,
        patience: int | None = None,
    ) -> str:
        """Wait until the wearer has chosen one of the targets; gives its name. Nothing is told
        before.

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
        for received in self._listen(patience, **_selection(targets, by, dwell_ms)):
            if not isinstance(received, Batch):
                return str(received["target"])
        raise Denied("network", "The connection ended before a choice was made.")

    async def select_async(
        self,
        targets: Sequence[Target],
        by: By = "confirm",
        dwell_ms: int = DWELL_MS,
        patience: int | None = None,
    ) -> str:
        """As :meth:`select`, in an event loop; cancel it to stop waiting."""
        async for received in self._listen_async(patience, **_selection(targets, by, dwell_ms)):
            if not isinstance(received, Batch):
                return str(received["target"])
        raise Denied("network", "The connection ended before a choice was made.")

    # Streams.

    def events(
        self, kind: str, mode: Mode = "end", patience: int | None = None
    ) -> Iterator[Message]:
        """Movements (`fixation`, `saccade`, `pursuit`) or changes of `tile` as they come; ends by
        :class:`Denied` with the reason.

        Parameters
        ----------
        kind : str
            What to be told of.
        mode : str
            `start-stop` also tells the start of a saccade, by its time alone; `start` tells
            nothing else.
        patience : int, optional
            Failed connections in a row after which it gives up.
        """
        for received in self._listen(patience, what=kind, mode=mode):
            if not isinstance(received, Batch):
                yield received

    async def events_async(
        self, kind: str, mode: Mode = "end", patience: int | None = None
    ) -> AsyncIterator[Message]:
        """As :meth:`events`, in an event loop."""
        async for received in self._listen_async(patience, what=kind, mode=mode):
            if not isinstance(received, Batch):
                yield received

    def samples(
        self,
        mechanism: str,
        encoding: Encoding = "binary",
        batch: int = 12,
        patience: int | None = None,
    ) -> Iterator[Batch]:
        """Protected samples through a mechanism the owner allows; ends by :class:`Denied` with the
        reason, as when a budget is used up.

        Parameters
        ----------
        mechanism : str
            As on the command line: `kaleido-uniform:epsilon=1,w=60,r_deg=5`.
        encoding : str
            `binary` is compact, `json` readable.
        batch : int
            Samples in one message.
        patience : int, optional
            Failed connections in a row after which it gives up.
        """
        for received in self._listen(patience, **_samples(mechanism, encoding, batch)):
            if isinstance(received, Batch):
                yield received

    async def samples_async(
        self,
        mechanism: str,
        encoding: Encoding = "binary",
        batch: int = 12,
        patience: int | None = None,
    ) -> AsyncIterator[Batch]:
        """As :meth:`samples`, in an event loop."""
        async for received in self._listen_async(patience, **_samples(mechanism, encoding, batch)):
            if isinstance(received, Batch):
                yield received

    # Carrying.

    def _listen(self, patience: int | None, **wish: object) -> Iterator[Batch | Message]:
        return listen(self.url, WireProtocol(self._token, wish, patience), self.timeout_s)

    def _listen_async(self, patience: int | None, **wish: object) -> AsyncIterator[Batch | Message]:
        return listen_async(self.url, WireProtocol(self._token, wish, patience), self.timeout_s)

    def _path(self, area: RegisteredArea | Rect, resource: str) -> str:
        if isinstance(area, Rect):
            if area not in self._rects:
                name = f"{area.x_deg:g},{area.y_deg:g},{area.width_deg:g},{area.height_deg:g}"
                self._rects[area] = self.register_area(name, *astuple(area))
            area = self._rects[area]
        return f"/v1/areas/{quote(str(area.id), safe='')}/{resource}"

    def _events(
        self, area: RegisteredArea | Rect, resource: str, **limits: int | None
    ) -> tuple[PublicEvent, ...]:
        parameters = {name: value for name, value in limits.items() if value is not None}
        answer = self._call("GET", self._path(area, resource), parameters=parameters)
        return tuple(map(event_of, answer[resource]))

    def _call(
        self,
        method: str,
        path: str,
        body: object = None,
        parameters: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        try:
            answer = self._http.request(method, path, json=body, params=parameters)
        except httpx.HTTPError:
            raise Denied(
                "network",
                f"The Gatekeeper at {self.url} does not answer. Check that it runs and try again.",
            ) from None
        try:
            value = answer.json() if answer.content else {}
        except ValueError:
            value = {}
        if answer.is_success:
            return dict(value)
        problem = value.get("error", {}) if isinstance(value, dict) else {}
        code = "token" if answer.status_code == 401 else str(problem.get("code", "unknown"))
        unknown = f"The Gatekeeper answered with status {answer.status_code}."
        raise Denied(code, str(problem.get("reason", unknown)))


def _samples(mechanism: str, encoding: Encoding, batch: int) -> dict[str, object]:
    return {"what": "samples", "mechanism": mechanism, "encoding": encoding, "batch": batch}


def _selection(targets: Sequence[Target], by: By, dwell_ms: int) -> dict[str, object]:
    places = [asdict(target) for target in targets]
    return {"what": "select", "targets": places, "by": by, "dwell_ms": dwell_ms}
