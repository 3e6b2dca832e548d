"""An app's view of the Gatekeeper: every call asks the policy anew, and none gives raw gaze."""

from __future__ import annotations

from collections.abc import Callable

from gazeveil.gatekeeper.areas import Area, area_of, snap
from gazeveil.gatekeeper.counters import CounterAnswer
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.metrics import AreaMetrics, Watched
from gazeveil.gatekeeper.pool import every_of, mechanism_of
from gazeveil.gatekeeper.room import Listener, Room, SaccadeStart, TileListener
from gazeveil.gatekeeper.rules import judge
from gazeveil.gatekeeper.sheet import KINDS, SeenEvent
from gazeveil.gatekeeper.streams import Deliver, Seat
from gazeveil.gatekeeper.subscription import PrivateStream, Subscription

#: Longest name of an area.
LONGEST_NAME = 200

#: Most events of one answer.
MOST_EVENTS = 1000


class App:
    """What one app may call; made by :meth:`gazeveil.gatekeeper.core.Gatekeeper.app`.

    Every method raises :class:`~gazeveil.gatekeeper.errors.Denied` where the policy or the budget does not allow it, and
    :class:`~gazeveil.gatekeeper.errors.LedgerError` where the charge or the audit row cannot be made durable; nothing is given then. An area
    or an event that is not the app's own is "unknown", as if it were not there.
    """

    __slots__ = ("_origin", "_room", "name")

    def __init__(self, room: Room, name: str, origin: str | None) -> None:
        self._room = room
        self.name = name
        self._origin = origin

    def _ask(self, action: str, what: str, areas: int | None = None) -> None:
        room = self._room
        with room.lock:
            request = room.request(self.name, action, self._origin, areas=areas)
        room.ask(request, what)

    # Areas.

    def register_area(self, name: str, x_deg: float, y_deg: float, width_deg: float, height_deg: float) -> Area:
        """Register a rectangle; what is looked at from now on counts.

        Parameters
        ----------
        name : str
            For the app itself, at most 200 characters.
        x_deg, y_deg : float
            Left and upper edge in degrees of the space; on a sphere x may go round.
        width_deg, height_deg : float
            Sides, at least the level's `least_side_deg`.

        Returns
        -------
        Area
            With the edges moved outward to the public grid.
        """
        room = self._room
        with room.lock:
            guest = room.guests.get(self.name)
            count = 0 if guest is None else len(guest.areas)
        self._ask("areas", "register_area", areas=count)
        if not isinstance(name, str) or len(name) > LONGEST_NAME:
            raise Denied("area", f"The name of an area is a text of at most {LONGEST_NAME} characters.")
        with room.lock:
            rectangle = snap(room.grid, room.level, x_deg, y_deg, width_deg, height_deg)
            guest = room.guest(self.name)
            most = room.policy.apps[self.name].areas if self.name in room.policy.apps else 0
            if len(guest.areas) >= most:  # another thread of the app may have registered one since
                raise Denied("area", f"The app '{self.name}' may have {most} areas at a time; remove one first.")
            guest.area_count += 1
            area = area_of(room.grid, rectangle, guest.area_count, name, room.tick * room.level.tick_ms)
            guest.areas[area.id] = Watched(area, rectangle)
            return area

    def areas(self) -> tuple[Area, ...]:
        """The app's own areas."""
        self._ask("areas", "areas")
        with self._room.lock:
            return tuple(watched.area for watched in self._room.guest(self.name).areas.values())

    def remove_area(self, area_id: int) -> None:
        """Forget an area and its sums; its id is not used again."""
        self._ask("areas", "remove_area")
        with self._room.lock:
            self._area(area_id)
            del self._room.guest(self.name).areas[area_id]

    def _area(self, area_id: int) -> Watched:
        areas = self._room.guest(self.name).areas
        if type(area_id) is not int or area_id not in areas:
            raise Denied("unknown", "This app has no such area.")
        return areas[area_id]

    # Queries.

    def get_fixations(
        self, area_id: int, since_ms: int | None = None, until_ms: int | None = None, after: int | None = None, limit: int = MOST_EVENTS
    ) -> tuple[SeenEvent, ...]:
        """Fixations in an area, oldest first.

        Parameters
        ----------
        area_id : int
            One of the app's own.
        since_ms, until_ms : int, optional
            Only those that began in a tick from `since_ms` on and before `until_ms`.
        after : int, optional
            Only those with a larger number: pass the last number of the answer before.
        limit : int
            At most so many, up to 1000.
        """
        self._ask("fixations", "get_fixations")
        return self._events("fixation", area_id, since_ms, until_ms, after, limit)

    def get_saccades(
        self, area_id: int, since_ms: int | None = None, until_ms: int | None = None, after: int | None = None, limit: int = MOST_EVENTS
    ) -> tuple[SeenEvent, ...]:
        """Saccades that landed in an area, oldest first; their landing cell and tick alone. Parameters as for fixations."""
        self._ask("saccades", "get_saccades")
        return self._events("saccade", area_id, since_ms, until_ms, after, limit)

    def _events(self, kind: str, area_id: int, since_ms: int | None, until_ms: int | None, after: int | None, limit: int) -> tuple[SeenEvent, ...]:
        for value, what in ((since_ms, "since_ms"), (until_ms, "until_ms"), (after, "after"), (limit, "limit")):
            if value is not None and type(value) is not int:
                raise Denied("parameter", f"The parameter '{what}' must be a whole number.")
        most = min(max(limit, 0), MOST_EVENTS)
        room = self._room
        with room.lock:
            watched = self._area(area_id)
            found: list[SeenEvent] = []
            if most:
                for entry in room.sheet.after(after if after is not None else 0):
                    event = entry.event
                    wanted = event.kind == kind and (since_ms is None or event.t_ms >= since_ms) and (until_ms is None or event.t_ms < until_ms)
                    if wanted and watched.has(entry):
                        found.append(event)
                        if len(found) == most:
                            break
            room.guest(self.name).show([event.number for event in found], room.sheet.oldest)
            return tuple(found)

    def get_dwell_time(self, number: int) -> int:
        """How long a fixation lasted, in milliseconds; only of those the app was told of."""
        self._ask("fixations", "get_dwell_time")
        with self._room.lock:
            known = type(number) is int and number in self._room.guest(self.name).shown
            entry = self._room.sheet.get(number) if known else None
            if entry is None or entry.event.kind != "fixation":
                raise Denied("unknown", "This app was told of no such fixation.")
            return entry.event.duration_ms

    def metrics(self, area_id: int) -> AreaMetrics:
        """Counts, dwell, visits, order and times to first look of an area, since it was registered."""
        self._ask("areas", "metrics")
        with self._room.lock:
            return self._area(area_id).metrics()

    def counter(self, area_id: int) -> CounterAnswer:
        """The differentially private number of fixations in an area since its counter began, with its first call by any app."""
        self._ask("counter", "counter")
        room = self._room
        with room.lock:
            rectangle = self._area(area_id).rectangle
            counter = room.counters.get(rectangle)
            horizon = 0 if counter is None else counter.tree_of(room.tick)
            guest = room.guest(self.name)
            last = guest.horizons.get(rectangle)
            device_last = room.charged.get(rectangle)
            owed = 1 if last is None else horizon - last
            device_owed = 1 if device_last is None else horizon - device_last
        epsilon = room.counters.epsilon
        room.till.pay("counter", ("epsilon", epsilon * max(0, device_owed)), [(self.name, ("epsilon", epsilon * max(0, owed)))])
        with room.lock:
            counter = room.counters.begin(rectangle, room.tick)
            guest.horizons[rectangle] = max(horizon, guest.horizons.get(rectangle, 0))
            room.charged[rectangle] = max(horizon, room.charged.get(rectangle, 0))
            # The tick that was paid for: if the next horizon began meanwhile, the answer is that of the last tick before it.
            tick = min(room.tick, counter.first_tick + (horizon + 1) * counter.horizon - 1)
            return CounterAnswer(counter.count(tick), epsilon, room.counters.guarantee)

    def current_tile(self) -> int | None:
        """The tile that is looked at, row by row from the upper left; None while it is not known."""
        self._ask("tile", "current_tile")
        self._room.follow_tile()
        with self._room.lock:
            return self._room.tiles.tile

    # Subscriptions.

    def add_event_listener(self, kind: str, callback: Callable[[SeenEvent | SaccadeStart], None], mode: str = "end") -> Subscription:
        """Have a callback told of every event of a kind, when the tick in which it was decided is over.

        Parameters
        ----------
        kind : str
            `fixation`, `saccade` or `pursuit`.
        callback : callable
            Takes a :class:`~gazeveil.gatekeeper.sheet.SeenEvent`; in the mode `start-stop` also a
            :class:`~gazeveil.gatekeeper.room.SaccadeStart`, which carries the tick alone. It runs on the tracker's thread and must be quick.
        mode : str
            `end`, or `start-stop` for saccades.
        """
        self._ask("events", "add_event_listener")
        if kind not in KINDS:
            raise Denied("parameter", f"Events that can be listened to: {', '.join(KINDS)}.")
        if mode not in ("end", "start-stop") or (mode == "start-stop" and kind != "saccade"):
            raise Denied("parameter", "The mode of a listener is 'end', or for saccades 'start-stop'.")
        if not callable(callback):
            raise Denied("parameter", "A listener is something that can be called.")
        with self._room.lock:
            subscription = self._subscribe("events")
            self._room.listeners.append(Listener(subscription, kind, mode == "start-stop", callback))
            return subscription

    def on_tile(self, callback: Callable[[int | None, int], None]) -> Subscription:
        """Have `callback(tile, t_ms)` called when another tile is looked at; `tile` is None when the tracker is gone."""
        self._ask("tile", "on_tile")
        if not callable(callback):
            raise Denied("parameter", "A listener is something that can be called.")
        self._room.follow_tile()
        with self._room.lock:
            subscription = self._subscribe("tile")
            self._room.tile_listeners.append(TileListener(subscription, callback))
            return subscription

    def _subscribe(self, action: str) -> Subscription:
        room = self._room
        subscription = Subscription(next(room.numbers), self.name, room.leave)
        room.enter(subscription, room.request(self.name, action, self._origin))
        return subscription

    def open_private_stream(self, mechanism: str, callback: Deliver) -> PrivateStream:
        """Have protected samples delivered.

        Parameters
        ----------
        mechanism : str
            `name:parameter=value,...`, within what the policy grants.
        callback : callable
            `callback(t_ns, x_deg, y_deg, valid)` with read-only arrays, on the tracker's thread; must be quick.

        Returns
        -------
        PrivateStream
            With the guarantee in force. Where the grant bounds the rate, samples are left out before the mechanism sees them.
        """
        room = self._room
        with room.lock:
            grant = room.policy.apps.get(self.name)
            # Judged before it is made: a text of an app may be hostile.
            verdict = judge(grant.mechanisms, mechanism) if grant is not None and isinstance(mechanism, str) else None
            every = 1 if grant is None or verdict is None else every_of(room.rate_hz, verdict.stride, grant.most_hz)
            request = room.request(self.name, "stream", self._origin, mechanism, room.rate_hz / every)
        room.ask(request, "open_private_stream")
        if not callable(callback):
            raise Denied("parameter", "A stream is delivered to something that can be called.")
        made = mechanism_of(mechanism)
        with room.lock:
            base, view = room.pool.find(made, every)
            owed = base.owed(view)
        room.till.pay(f"first lease of {made.name}", owed, [(self.name, base.priced(view))])
        with room.lock:
            stream = PrivateStream(next(room.numbers), self.name, room.leave, str(made), view.guarantee, base.rate_hz / made.stride / view.every)
            room.pool.sit(base, Seat(self.name, callback, stream, view), owed[1])
            room.enter(stream, request)
            room.review()  # the policy may have changed while the ledger wrote
            if room.closed:
                stream.end("The Gatekeeper is closed.", "closed")
        if stream.ended is not None:
            raise Denied(stream.code or "closed", stream.ended)
        return stream
