"""Selection by gaze: an app registers targets, and learns which one the wearer chose and nothing
else.

The device alone knows where the eyes are. A selection waits in silence, whether the wearer looks at
its targets or not, until the wearer chooses:

- `confirm`: the platform says that the wearer made its gesture (a pinch, a press) while the eye
  rests on a target, or did so at most :data:`RECENT_MS` before, because eyes leave a thing sooner
  than hands let go;
- `dwell`: the eye has rested on a target for `dwell_ms`, in a fixation that began after the
  selection was opened.

Then the app is told the name of that target, once, and the selection ends. A target is made of
whole cells of the public grid, and a cell that several targets of one app hold belongs to the one
whose middle is nearest. A cell held by targets of several apps belongs to none of them, unless the
platform names the app of the gesture. No app learns of a choice meant for another app.

What an app may try by opening selections again and again is bounded: :data:`MOST_OPEN` are open at
a time, one for each of its tabs, of which one look answers one; at most
:data:`PER_MINUTE` are opened in a minute and at most :data:`DWELLS_PER_MINUTE` choices in a minute
come by dwell, nothing counts for :data:`PAUSE_MS` after a choice, and a fixation that had begun
before the targets were known counts for no dwell, so one look answers one question.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

from gazeveil.gatekeeper.core.app_state import last_minute
from gazeveil.gatekeeper.core.areas import PlacedTarget, PrecisionLevel, Target, moved
from gazeveil.gatekeeper.core.events import tell
from gazeveil.gatekeeper.core.ongoing_fixation import OngoingFixation
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.streams.subscription import Subscription
from gazeveil.gaze.geometry import Grid

#: How a target can be chosen.
BY = ("confirm", "dwell")

#: Shortest, usual and longest fixation that chooses, in milliseconds.
LEAST_DWELL_MS, DWELL_MS, MOST_DWELL_MS = 500, 800, 10_000

#: Selections that an app may have open, as one for each tab.
MOST_OPEN = 4

#: Selections that an app may open in a minute.
PER_MINUTE = 30

#: Choices by dwell that an app may hear in a minute: eyes also rest on things without choosing
#: them.
DWELLS_PER_MINUTE = 10

#: How long after a choice nothing that the same app opens is judged.
PAUSE_MS = 1000

#: How long after a fixation a gesture may still mean it.
RECENT_MS = 300

#: A tracker that was silent for so long does not say where the eye rests.
SILENT_NS = 2_000_000_000

#: `record(kind, app, detail)` writes a row of the audit log.
Record: TypeAlias = Callable[[str, str, dict[str, object]], None]

#: `hover(app, name)` is told which target is looked at, None twice when none is.
Hover: TypeAlias = Callable[[str | None, str | None], None]


@dataclass(eq=False)
class Selection:
    """One open selection of an app.

    Parameters
    ----------
    subscription : Subscription
        What the app holds.
    targets : tuple of PlacedTarget
        On the grid.
    by : str
        One of :data:`BY`.
    dwell_ns : int
        How long a fixation must last, for `dwell`.
    since_ns : int
        Session time from which it is judged, the beginning of a tick.
    callback : callable
        Is told the name of the target.
    chosen : bool
        Whether the choice was made; nothing is judged after it.
    """

    subscription: Subscription
    targets: tuple[PlacedTarget, ...]
    by: str
    dwell_ns: int
    since_ns: int
    callback: Callable[[str], None]
    chosen: bool = False

    @property
    def app(self) -> str:
        """Name of the app that opened the selection."""
        return self.subscription.app

    def tell(self, name: str) -> None:
        """Tell the app which target was chosen, and end."""
        if self.subscription.ended is None:
            tell(self.subscription, self.callback, name)
            self.subscription.end("The wearer has chosen.", "chosen")

    def at(self, grid: Grid, cell: tuple[int, int] | None) -> PlacedTarget | None:
        """The target that holds a cell; of several the one with the nearest middle, then the
        first.
        """
        held = [t for t in self.targets if cell is not None and t.rectangle.has(*cell)]
        if cell is None or not held:
            return None
        x, y = grid.centre(*cell)

        def away(target: PlacedTarget) -> float:
            across = target.x_deg - x
            if grid.sphere:
                across = (across + 180.0) % 360.0 - 180.0
            return math.hypot(across, target.y_deg - y)

        return min(held, key=away)


class Selections:
    """All open selections of a device, on public cells and ticks of the level, and who is told
    what. `lock` is the Gatekeeper's own; `record` writes the audit row that a choice waits for.
    """

    def __init__(
        self, grid: Grid, level: PrecisionLevel, lock: threading.RLock, record: Record | None
    ) -> None:
        self._grid, self._tick_ns = grid, level.tick_ms * 1_000_000
        self._lock, self._record = lock, record
        self._open: dict[Subscription, Selection] = {}
        self._opened_ns: dict[str, deque[int]] = defaultdict(deque)
        self._dwelt_ns: dict[str, deque[int]] = defaultdict(deque)
        self._chosen_ns: dict[str, int] = {}
        self._fixation: OngoingFixation | None = None
        self._fixation_seen_ns = 0
        self._writer: ThreadPoolExecutor | None = None
        #: Of the platform alone.
        self.hovers: dict[Subscription, Hover] = {}
        self._hovered: tuple[str | None, str | None] = (None, None)

    def admit(self, app: str, by: str, dwell_ms: int, now_ns: int) -> None:
        """Count a selection that an app opens.

        Raises
        ------
        Denied
            With the code `parameter`, or `rate` where the app has one open or has opened too many.
        """
        if by not in BY:
            raise Denied("parameter", "A target is chosen by 'confirm' or by 'dwell'.")
        if type(dwell_ms) is not int or not LEAST_DWELL_MS <= dwell_ms <= MOST_DWELL_MS:
            raise Denied(
                "parameter",
                f"The parameter 'dwell_ms' is a whole number from {LEAST_DWELL_MS} to"
                f" {MOST_DWELL_MS}.",
            )
        if sum(subscription.app == app for subscription in self._open) >= MOST_OPEN:
            raise Denied(
                "rate",
                f"The app '{app}' has {MOST_OPEN} selections open. Wait for a choice, or close"
                " one first.",
            )
        if last_minute(self._opened_ns[app], now_ns) >= PER_MINUTE:
            raise Denied(
                "rate", f"The app '{app}' may open {PER_MINUTE} selections a minute. Wait a moment."
            )
        dwelt = last_minute(self._dwelt_ns[app], now_ns)
        if by == "dwell" and dwelt >= DWELLS_PER_MINUTE:
            raise Denied(
                "rate",
                f"The app '{app}' may hear {DWELLS_PER_MINUTE} choices by dwell a minute. Wait a"
                " moment, or let the wearer confirm.",
            )
        self._opened_ns[app].append(now_ns)

    def enter(
        self,
        subscription: Subscription,
        targets: tuple[PlacedTarget, ...],
        by: str,
        dwell_ms: int,
        callback: Callable[[str], None],
        tick: int,
    ) -> None:
        """Begin to judge a selection, from this tick on."""
        since_ns = max(
            tick * self._tick_ns,
            self._chosen_ns.get(subscription.app, -PAUSE_MS * 1_000_000) + PAUSE_MS * 1_000_000,
        )
        self._open[subscription] = Selection(
            subscription, targets, by, dwell_ms * 1_000_000, since_ns, callback
        )

    def move(self, subscription: Subscription, targets: Sequence[Target], tick: int) -> bool:
        """Put targets of a selection at new places; False where there is no such selection."""
        selection = self._open.get(subscription)
        if selection is not None:
            selection.targets = moved(self._grid, selection.targets, targets, tick * self._tick_ns)
        return selection is not None

    def leave(self, subscription: Subscription) -> None:
        """Take a selection off."""
        if self._open.pop(subscription, None) is not None:
            self._hover()

    def forget(self) -> None:
        """The eye is gone, or is not to be looked at."""
        self._fixation = None
        self._hover()

    def anew(self) -> None:
        """Reset the session's time for another wearer.

        The limit of selections per app and minute is not reset.
        """
        self.forget()
        self._chosen_ns.clear()

    def _hover(self) -> None:
        """Tell the platform where the eye rests now, if that has changed."""
        held = self._held(self._fixation, None) if self._fixation and self.hovers else []
        now = (held[0][0].app, held[0][1].name) if held else (None, None)
        if now != self._hovered:
            self._hovered = now
            for subscription, callback in tuple(self.hovers.items()):
                tell(subscription, callback, *now)

    def judge(self, ongoing_fixations: Iterable[OngoingFixation], now_ns: int) -> None:
        """Judge the fixations at the ends of ticks that are over, in their order."""
        for fixation in ongoing_fixations:
            self._fixation, self._fixation_seen_ns = fixation, now_ns
            if self._open:
                self._hover()
                self._judge("dwell", fixation, fixation.end_ns, None)

    def confirmed(self, app: str | None, tick: int, now_ns: int) -> None:
        """Judge the wearer's gesture by where the eye rests, or rested just now.

        Parameters
        ----------
        app : str or None
            Whose gesture it is, where the platform knows.
        tick : int
            The current one.
        now_ns : int
            Wall clock.
        """
        fixation, at_ns = self._fixation, tick * self._tick_ns
        if (
            fixation is None
            or at_ns - fixation.end_ns > RECENT_MS * 1_000_000
            or now_ns - self._fixation_seen_ns > SILENT_NS
        ):
            return
        self._judge("confirm", fixation, at_ns, app)

    def _held(
        self, fixation: OngoingFixation, app: str | None
    ) -> list[tuple[Selection, PlacedTarget]]:
        """Open selections with the target that the eye rests on; none where it belongs to several
        apps and the platform names none.
        """
        held = [
            (selection, target)
            for selection in self._open.values()
            if app in (None, selection.app)
            and (target := selection.at(self._grid, fixation.cell)) is not None
        ]
        return held if len({selection.app for selection, _ in held}) == 1 else []

    def _judge(self, by: str, fixation: OngoingFixation, at_ns: int, app: str | None) -> None:
        held = self._held(fixation, app)
        for selection, target in held:
            if selection.by != by or selection.chosen or selection.subscription.ended is not None:
                continue
            since_ns = max(selection.since_ns, target.since_ns)
            rested_long = (
                fixation.start_ns >= since_ns
                and fixation.end_ns - fixation.start_ns >= selection.dwell_ns
            )
            if at_ns >= since_ns and (by == "confirm" or rested_long):
                selection.chosen = True
                if by == "dwell":
                    self._dwelt_ns[selection.app].append(self._fixation_seen_ns)
                self._chosen_ns[selection.app] = at_ns // self._tick_ns * self._tick_ns
                for other in self._open.values():  # one look answers one question of an app
                    if other.app == selection.app and other is not selection:
                        other.since_ns = max(
                            other.since_ns, self._chosen_ns[selection.app] + PAUSE_MS * 1_000_000
                        )
                self._tell(selection, target.name)

    def _tell(self, selection: Selection, name: str) -> None:
        if self._record is None:
            selection.tell(name)
            return
        # The row is written on a thread of its own: the tracker does not wait for a disk.
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="gazeveil-choices")
        self._writer.submit(self._tell_after_row, selection, name, self._record)

    def _tell_after_row(self, selection: Selection, name: str, record: Record) -> None:
        try:
            # That there was a choice, never which.
            record("choice", selection.app, {"by": selection.by})
        except LedgerError:
            selection.subscription.end(
                "The audit log cannot be written, so the choice is not told.", "ledger"
            )
            return
        with self._lock:  # a grant that is taken back meanwhile ends the selection first
            selection.tell(name)

    def close(self) -> None:
        """End the thread; rows that it was asked for are written first."""
        if self._writer is not None:
            self._writer.shutdown(wait=True)
            self._writer = None
