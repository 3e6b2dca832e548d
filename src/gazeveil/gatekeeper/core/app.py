"""An app's view of the Gatekeeper: every call asks the policy anew, and none gives raw gaze."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice

from gazeveil.gatekeeper.core.area_metrics import MOST_AREAS, AreaMetrics, MeasuredArea, Observation
from gazeveil.gatekeeper.core.areas import RegisteredArea, Target, area_of, moved, place, snap
from gazeveil.gatekeeper.core.device_state import AllowedRequest, DeviceState
from gazeveil.gatekeeper.core.events import KINDS, MODES, Listener, PublicEvent, SaccadeStart, tell
from gazeveil.gatekeeper.core.selection import DWELL_MS
from gazeveil.gatekeeper.errors import Denied
from gazeveil.gatekeeper.policy.grant import granted_mechanism
from gazeveil.gatekeeper.streams.shared import Deliver, Subscriber
from gazeveil.gatekeeper.streams.subscription import PrivateStream, Subscription

#: Longest name of an area.
LONGEST_NAME = 200

#: Most events of one answer.
MOST_EVENTS = 1000


class App:
    """Interface of one app; made by :meth:`gazeveil.gatekeeper.core.gatekeeper.Gatekeeper.app`.

    Every method raises :class:`~gazeveil.gatekeeper.errors.Denied` where the policy or the budget
    does not allow it, and :class:`~gazeveil.gatekeeper.errors.LedgerError` where the charge or the
    audit row cannot be made durable; nothing is given then. An area or an event that is not the
    app's own is "unknown", as if it were not there.
    """

    __slots__ = ("_origin", "_state", "name")

    def __init__(self, state: DeviceState, name: str, origin: str | None) -> None:
        self._state = state
        self.name = name
        self._origin = origin

    def _ask(self, action: str, call: str, areas: int | None = None) -> AllowedRequest:
        state = self._state
        with state.lock:
            request = state.request(self.name, action, self._origin, areas=areas)
        return state.ask(request, call)

    # Areas.

    def register_area(
        self, name: str, x_deg: float, y_deg: float, width_deg: float, height_deg: float
    ) -> RegisteredArea:
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
        RegisteredArea
            With the edges moved outward to the public grid.
        """
        state = self._state
        with state.lock:
            app_state = state.app_states.get(self.name)
            count = 0 if app_state is None else len(app_state.areas)
        allowed = self._ask("areas", "register_area", areas=count)
        if not isinstance(name, str) or len(name) > LONGEST_NAME:
            raise Denied(
                "area", f"The name of an area is a text of at most {LONGEST_NAME} characters."
            )
        with state.answering(allowed):
            rectangle = snap(state.grid, state.level, x_deg, y_deg, width_deg, height_deg)
            app_state = state.app_state(self.name)
            most = state.policy.apps[self.name].areas if self.name in state.policy.apps else 0
            # Another thread of the app may have registered one since.
            if len(app_state.areas) >= most:
                raise Denied(
                    "area",
                    f"The app '{self.name}' may have {most} areas at a time. Remove one first.",
                )
            app_state.area_count += 1
            area = area_of(state.grid, rectangle, app_state.area_count, name, state.t_ms)
            app_state.areas[area.id] = MeasuredArea(area, rectangle)
            return area

    def areas(self) -> tuple[RegisteredArea, ...]:
        """The app's own areas."""
        with self._state.answering(self._ask("areas", "areas")):
            return tuple(
                measured.area for measured in self._state.app_state(self.name).areas.values()
            )

    def remove_area(self, area_id: int) -> None:
        """Forget an area and its sums; its id is not used again."""
        with self._state.answering(self._ask("areas", "remove_area")):
            self._area(area_id)
            del self._state.app_state(self.name).areas[area_id]

    def _area(self, area_id: int) -> MeasuredArea:
        areas = self._state.app_state(self.name).areas
        if type(area_id) is not int or area_id not in areas:
            raise Denied("unknown", "This app has no such area. Register it first.")
        return areas[area_id]

    # Queries.

    def get_fixations(
        self,
        area_id: int,
        since_ms: int | None = None,
        until_ms: int | None = None,
        after: int | None = None,
        limit: int = MOST_EVENTS,
    ) -> tuple[PublicEvent, ...]:
        """Fixations in an area, oldest first.

        Parameters
        ----------
        area_id : int
            One of the app's own.
        since_ms, until_ms : int, optional
            Only those that began in a tick from `since_ms` on and before `until_ms`.
        after : int, optional
            Only those that came after this one: pass the last number of the answer before. A number
            the app was not told of leaves nothing out.
        limit : int
            At most so many, up to 1000.
        """
        allowed = self._ask("fixations", "get_fixations")
        return self._events(allowed, "fixation", area_id, since_ms, until_ms, after, limit)

    def get_saccades(
        self,
        area_id: int,
        since_ms: int | None = None,
        until_ms: int | None = None,
        after: int | None = None,
        limit: int = MOST_EVENTS,
    ) -> tuple[PublicEvent, ...]:
        """Saccades that landed in an area, oldest first; their landing cell and tick alone.
        Parameters as for fixations.
        """
        allowed = self._ask("saccades", "get_saccades")
        return self._events(allowed, "saccade", area_id, since_ms, until_ms, after, limit)

    def _events(
        self,
        allowed: AllowedRequest,
        kind: str,
        area_id: int,
        since_ms: int | None,
        until_ms: int | None,
        after: int | None,
        limit: int,
    ) -> tuple[PublicEvent, ...]:
        limits = {"since_ms": since_ms, "until_ms": until_ms, "after": after, "limit": limit}
        for name, value in limits.items():
            if value is not None and type(value) is not int:
                raise Denied("parameter", f"The parameter '{name}' must be a whole number.")
        most = min(max(limit, 0), MOST_EVENTS)
        state = self._state
        with state.answering(allowed):
            measured, events = self._area(area_id), state.app_state(self.name).events
            wanted = (
                entry
                for entry in state.event_log.after(events.device_number(after) or 0)
                if entry.event.kind == kind
                and (since_ms is None or entry.event.t_ms >= since_ms)
                and (until_ms is None or entry.event.t_ms < until_ms)
                and measured.has(entry)
            )
            return tuple(
                events.told(entry, state.event_log.oldest) for entry in islice(wanted, most)
            )

    def get_dwell_time(self, number: int) -> int:
        """How long a fixation lasted, in milliseconds; only of those the app was told of."""
        with self._state.answering(self._ask("fixations", "get_dwell_time")):
            there = self._state.app_state(self.name).events.device_number(number)
            entry = None if there is None else self._state.event_log.get(there)
            if entry is None or entry.event.kind != "fixation":
                raise Denied("unknown", "This app was told of no such fixation.")
            return entry.event.duration_ms

    def metrics(self, area_id: int) -> AreaMetrics:
        """Counts, dwell, visits, order and times to first look of an area,
        since it was registered.
        """
        with self._state.answering(self._ask("areas", "metrics")):
            return self._area(area_id).metrics()

    def current_tile(self) -> int | None:
        """The tile that is looked at, row by row from the upper left; None while
        it is not known.
        """
        with self._state.answering(self._ask("tile", "current_tile")):
            return self._state.tile.now

    # Subscriptions.

    def add_event_listener(
        self, kind: str, callback: Callable[[PublicEvent | SaccadeStart], None], mode: str = "end"
    ) -> Subscription:
        """Have a callback told of every event of a kind, when the tick in which it was decided is
        over. A look that began before is not told.

        Parameters
        ----------
        kind : str
            `fixation`, `saccade` or `pursuit`.
        callback : callable
            Takes a :class:`~gazeveil.gatekeeper.PublicEvent`; in the mode `start-stop` also a
            :class:`~gazeveil.gatekeeper.SaccadeStart`, which carries the tick alone, and in the
            mode `start` only that. It runs on the tracker's thread and must be quick.
        mode : str
            `end`, or `start-stop` or `start` for saccades.
        """
        allowed = self._ask("events", "add_event_listener")
        if kind not in KINDS:
            raise Denied("parameter", f"Events that can be listened to: {', '.join(KINDS)}.")
        if mode not in MODES or (mode != "end" and kind != "saccade"):
            raise Denied(
                "parameter",
                "The mode of a listener is 'end', or for saccades 'start-stop' or 'start'.",
            )
        with self._state.answering(allowed):
            subscription = self._subscribe("events")
            self._state.listeners.append(
                Listener(
                    subscription, kind, mode != "end", mode != "start", callback, self._state.t_ms
                )
            )
            return subscription

    def on_tile(self, callback: Callable[[int | None, int], None]) -> Subscription:
        """Have `callback(tile, t_ms)` called when another tile is looked at; `tile` is None when
        the tracker is gone.
        """
        allowed = self._ask("tile", "on_tile")
        with self._state.answering(allowed):
            subscription = self._subscribe("tile")
            self._state.tile.enter(subscription, callback)
            return subscription

    def select(
        self,
        targets: Sequence[Target],
        callback: Callable[[str], None],
        by: str = "confirm",
        dwell_ms: int = DWELL_MS,
    ) -> Subscription:
        """Have `callback(name)` called once, with the target that the wearer chooses; nothing is
        told before.

        Parameters
        ----------
        targets : sequence of Target
            1 to 32 rectangles; their edges are moved outward to the public grid, and a cell of
            several belongs to the one whose middle is nearest.
        callback : callable
            Takes the name of the target. It runs on a thread of the Gatekeeper and must be quick.
        by : str
            `confirm`: by the platform's gesture while the eye rests on a target. `dwell`: by
            resting on it.
        dwell_ms : int
            How long the eye must rest, from 500 to 10000 ms; for `dwell` alone.

        Returns
        -------
        Subscription
            Ends with the code `chosen` after the callback. An app has one open at a time.
        """
        allowed = self._ask("select", "select")
        state = self._state
        placed = place(state.grid, targets)
        with state.answering(allowed):
            state.selections.admit(self.name, by, dwell_ms, state.clock_ns())
            subscription = self._subscribe("select")
            state.selections.enter(subscription, placed, by, dwell_ms, callback, state.tick)
            return subscription

    def observe(
        self, targets: Sequence[Target], callback: Callable[[str, AreaMetrics], None]
    ) -> Subscription:
        """Have `callback(name, metrics)` called with the metrics of areas whenever they change, at
        most four times a second; the areas live with the subscription.

        Parameters
        ----------
        targets : sequence of Target
            1 to 16 rectangles; one that is smaller than the level's `least_side_deg` is widened
            around its middle, and the edges are moved outward to the public grid.
        callback : callable
            Runs on a thread of the Gatekeeper and must be quick.
        """
        allowed, state = self._ask("areas", "observe"), self._state
        placed = place(state.grid, targets)
        if len(placed) > MOST_AREAS:
            raise Denied("area", f"A subscription may have {MOST_AREAS} areas.")
        placed = moved(state.grid, placed, targets, 0, state.level.least_side_deg)
        with state.answering(allowed):
            subscription = self._subscribe("areas")
            observation = Observation(subscription, state.grid, placed, callback, state.t_ms)
            state.observations[subscription] = observation
            observation.push(state.t_ms)
            return subscription

    def move(self, subscription: Subscription, targets: Sequence[Target]) -> None:
        """Put targets of a selection, or areas of an observation, at new places. For a choice by
        dwell, fixations that began before count no more for a target that has moved.
        """
        state = self._state
        with state.lock:
            if not state.selections.move(subscription, targets, state.tick):
                observation = state.observations.get(subscription)
                if observation is None:
                    raise Denied("unknown", "There is nothing to move.")
                observation.move(targets, state.t_ms * 1_000_000, state.level.least_side_deg)

    def on_region(self, callback: Callable[[str, int], None]) -> Subscription:
        """Have `callback(region, t_ms)` called with `at-you`, `left`, `right`, `up`, `down` or
        `closed`, at once and whenever it changes.
        """
        allowed = self._ask("region", "on_region")
        with self._state.answering(allowed):
            subscription = self._subscribe("region")
            self._state.regions.enter(subscription, callback)
            tell(subscription, callback, self._state.regions.now, self._state.t_ms)
            return subscription

    def _subscribe(self, scope: str) -> Subscription:
        state = self._state
        subscription = Subscription(next(state.numbers), self.name, state.leave)
        state.enter(subscription, state.request(self.name, scope, self._origin))
        return subscription

    def open_private_stream(self, mechanism: str, callback: Deliver) -> PrivateStream:
        """Have protected samples delivered.

        Parameters
        ----------
        mechanism : str
            One that the grant names, word for word.
        callback : callable
            `callback(t_ns, x_deg, y_deg, valid)` with read-only arrays, on the tracker's thread;
            must be quick.

        Returns
        -------
        PrivateStream
            With the guarantee in force.
        """
        state = self._state
        with state.lock:
            request = state.request(self.name, "samples", self._origin, mechanism)
            # Counted from here on: of several calls at the same moment only as many get through as
            # may be open.
            state.opening[self.name] += 1
        try:
            return self._opened(state.ask(request, "open_private_stream"), mechanism, callback)
        finally:
            with state.lock:
                state.opening -= Counter((self.name,))

    def _opened(self, allowed: AllowedRequest, mechanism: str, callback: Deliver) -> PrivateStream:
        state = self._state
        with state.answering(allowed):
            pool = state.pool
            shared, view = pool.reserve(granted_mechanism(mechanism))
            pay = shared.first_lease(view, self.name)
        try:
            paid = pay()
        except BaseException:
            with state.lock:
                pool.give_back(shared)
            raise
        with state.lock:
            stream = PrivateStream(
                next(state.numbers),
                self.name,
                state.leave,
                mechanism,
                view.guarantee,
                shared.rate_hz,
            )
            state.pool.subscribe(shared, Subscriber(self.name, callback, stream, view), paid)
            state.enter(stream, allowed.request)
        return stream
