"""Selection by gaze: an app registers targets, and learns which one the wearer chose and nothing
else.

The device alone knows where the eyes are. A selection waits in silence, whether the wearer looks at
its targets or not, until the wearer chooses:

- `confirm`: the platform says that the wearer made its gesture (a pinch, a press) while the eye
  rests on a target, or did so at most :data:`RECENT_MS` before, because eyes leave a thing sooner
  than hands let go;
- `dwell`: the eye has rested on a target for `dwell_ms`, in a fixation that began after the selection
  was opened.

Then the app is told the name of that target, once, and the selection ends. A target is made of
whole cells of the public grid, and a cell that several targets of one app hold belongs to the one
whose middle is nearest. A place that targets of several apps hold belongs to none of them, unless
the platform says whose gesture it was: nobody hears of choices that were meant for another.

What an app may try by opening selections again and again is bounded: one is open at a time, at most
:data:`PER_MINUTE` are opened in a minute and at most :data:`DWELLS_PER_MINUTE` choices in a minute
come by dwell, nothing counts for :data:`PAUSE_MS` after a choice, and a fixation that had begun
before the targets were known counts for no dwell, so one look answers one question.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from gazeveil.gatekeeper.core.areas import Rectangle
from gazeveil.gatekeeper.core.level import Grid, Level
from gazeveil.gatekeeper.core.ongoing_fixation import OngoingFixation
from gazeveil.gatekeeper.errors import Denied, LedgerError
from gazeveil.gatekeeper.streams.subscription import Subscription

#: How a target can be chosen.
BY = ("confirm", "dwell")

#: Most targets of a selection.
MOST_TARGETS = 32

#: Longest name of a target.
LONGEST_NAME = 64

#: Shortest, usual and longest fixation that chooses, in milliseconds.
LEAST_DWELL_MS, DWELL_MS, MOST_DWELL_MS = 500, 800, 10_000

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

_MINUTE_NS = 60_000_000_000


@dataclass(frozen=True)
class Target:
    """Something that an app draws and the wearer may choose.

    Parameters
    ----------
    name : str
        For the app itself, 1 to 64 characters; no two targets of a selection have the same.
    x_deg, y_deg : float
        Left and upper edge in degrees of the space; on a sphere x may go round.
    width_deg, height_deg : float
        Sides. The edges are moved outward to the public grid.
    """

    name: str
    x_deg: float
    y_deg: float
    width_deg: float
    height_deg: float


@dataclass(frozen=True)
class Placed:
    """A target on the grid: its cells, and the middle it was asked for."""

    name: str
    rectangle: Rectangle
    x_deg: float
    y_deg: float


def place(grid: Grid, targets: Sequence[Target]) -> tuple[Placed, ...]:
    """Targets on the public grid.

    Raises
    ------
    Denied
        With the code `area` or `parameter`: too many or none, names that are no names or come
        twice, sides that are no sides, or a target without a cell.
    """
    if (
        not isinstance(targets, list | tuple)
        or not 1 <= len(targets) <= MOST_TARGETS
        or not all(isinstance(one, Target) for one in targets)
    ):
        raise Denied(
            "parameter",
            f"The targets of a selection are a list of 1 to {MOST_TARGETS} rectangles with names.",
        )
    names = [one.name for one in targets]
    if not all(isinstance(name, str) and 1 <= len(name) <= LONGEST_NAME for name in names) or len(
        set(names)
    ) < len(names):
        raise Denied(
            "parameter",
            f"The names of targets are texts of 1 to {LONGEST_NAME} characters, each different from"
            " the others.",
        )
    return tuple(_placed(grid, one) for one in targets)


def _placed(grid: Grid, target: Target) -> Placed:
    try:
        x, y, width, height = (
            float(v) for v in (target.x_deg, target.y_deg, target.width_deg, target.height_deg)
        )
    except (TypeError, ValueError, OverflowError):
        x = y = width = height = math.nan
    if (
        not all(math.isfinite(v) and abs(v) <= 1e6 for v in (x, y, width, height))
        or width <= 0
        or height <= 0
    ):
        raise Denied(
            "area",
            "A target is a name and four finite numbers in degrees: x_deg, y_deg, width_deg,"
            " height_deg, both sides above 0.",
        )
    top, bottom = _outward(y - grid.top_deg, height, grid.row_deg)
    left, right = _outward(x - grid.left_deg, width, grid.column_deg)
    top, bottom = max(0, top), min(grid.rows, bottom)
    if grid.sphere:
        columns = min(right - left, grid.columns)
        left = 0 if columns == grid.columns else left % grid.columns
    else:
        left, right = max(0, left), min(grid.columns, right)
        columns = right - left
    rectangle = Rectangle(top, left, bottom - top, columns, grid.columns)
    if columns < 1 or bottom <= top or not _holds_a_cell(grid, rectangle):
        raise Denied(
            "area",
            "A target must hold at least one cell of the device's grid. Move it into the space, or"
            " near a pole make it wider.",
        )
    return Placed(target.name, rectangle, x + width / 2, y + height / 2)


def _outward(start: float, side: float, step: float) -> tuple[int, int]:
    # A hair less than asked for: edges that come from the grid itself stay where they are.
    first = math.floor(start / step + 1e-9)
    return first, max(first + 1, math.ceil((start + side) / step - 1e-9))


def _holds_a_cell(grid: Grid, rectangle: Rectangle) -> bool:
    """Whether the middle of a cell lies inside: towards the poles of a sphere cells are several
    columns wide.
    """
    together = grid.numbers[5]
    for row in range(rectangle.row, rectangle.row + rectangle.rows):
        wide = int(together[row])
        if rectangle.columns >= wide or any(
            (rectangle.column + i) % grid.columns % wide == wide // 2
            for i in range(rectangle.columns)
        ):
            return True
    return False


@dataclass(eq=False)
class Selection:
    """One open selection of an app.

    Parameters
    ----------
    subscription : Subscription
        What the app holds.
    targets : tuple of Placed
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
    targets: tuple[Placed, ...]
    by: str
    dwell_ns: int
    since_ns: int
    callback: Callable[[str], None]
    chosen: bool = False

    def at(self, grid: Grid, cell: tuple[int, int] | None) -> str | None:
        """The name of the target that holds a cell; of several the one with the nearest middle,
        then the first.
        """
        held = [one for one in self.targets if cell is not None and one.rectangle.has(*cell)]
        if cell is None or not held:
            return None
        x, y = grid.centre(*cell)

        def away(one: Placed) -> float:
            across = (one.x_deg - x + 180.0) % 360.0 - 180.0 if grid.sphere else one.x_deg - x
            return math.hypot(across, one.y_deg - y)

        return min(held, key=away).name


def _last_minute(times_ns: dict[str, list[int]], app: str, now_ns: int) -> list[int]:
    """An app's times of the last minute; where the clock was put back, those from before count as
    now, and are forgotten a minute from now.
    """
    times_ns[app] = [min(at, now_ns) for at in times_ns.get(app, ()) if at > now_ns - _MINUTE_NS]
    return times_ns[app]


class Selections:
    """All open selections of a device, and who is told what.

    Parameters
    ----------
    grid : Grid
        Public cells.
    level : Level
        Says how long a tick is.
    lock : RLock
        The Gatekeeper's own.
    record : callable, optional
        `record(kind, app, detail)` writes the audit row that a choice waits for; None where there
        is no audit log.
    """

    def __init__(
        self,
        grid: Grid,
        level: Level,
        lock: threading.RLock,
        record: Callable[[str, str, dict[str, object]], None] | None,
    ) -> None:
        self._grid, self._tick_ns = grid, level.tick_ms * 1_000_000
        self._lock, self._record = lock, record
        self._open: dict[Subscription, Selection] = {}
        self._opened_ns: dict[str, list[int]] = {}
        self._dwelt_ns: dict[str, list[int]] = {}
        self._chosen_ns: dict[str, int] = {}
        self._fixation: OngoingFixation | None = None
        self._fixation_seen_ns = 0
        self._writer: ThreadPoolExecutor | None = None

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
        if any(subscription.app == app for subscription in self._open):
            raise Denied(
                "rate",
                f"The app '{app}' has a selection open. Wait for its choice, or close it first.",
            )
        opened, dwelt = (
            _last_minute(self._opened_ns, app, now_ns),
            _last_minute(self._dwelt_ns, app, now_ns),
        )
        if len(opened) >= PER_MINUTE:
            raise Denied(
                "rate", f"The app '{app}' may open {PER_MINUTE} selections a minute. Wait a moment."
            )
        if by == "dwell" and len(dwelt) >= DWELLS_PER_MINUTE:
            raise Denied(
                "rate",
                f"The app '{app}' may hear {DWELLS_PER_MINUTE} choices by dwell a minute. Wait a"
                " moment, or let the wearer confirm.",
            )
        opened.append(now_ns)

    def enter(
        self,
        subscription: Subscription,
        targets: tuple[Placed, ...],
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

    def leave(self, subscription: Subscription) -> None:
        """Take a selection off."""
        self._open.pop(subscription, None)

    def forget(self) -> None:
        """The eye is gone, or is not to be looked at."""
        self._fixation = None

    def anew(self) -> None:
        """Somebody else wears the device, and the session's time begins anew; what apps may open in
        a minute does not.
        """
        self._fixation = None
        self._chosen_ns.clear()

    def judge(self, ongoing_fixations: Iterable[OngoingFixation], now_ns: int) -> None:
        """Judge the fixations at the ends of ticks that are over, in their order."""
        for fixation in ongoing_fixations:
            self._fixation, self._fixation_seen_ns = fixation, now_ns
            if self._open:
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

    def _judge(self, by: str, fixation: OngoingFixation, at_ns: int, app: str | None) -> None:
        held = [
            (one, name)
            for one in self._open.values()
            if (name := one.at(self._grid, fixation.cell)) is not None
        ]
        if app is not None:
            held = [(one, name) for one, name in held if one.subscription.app == app]
        elif len({one.subscription.app for one, _ in held}) > 1:
            return
        for one, name in held:
            if one.by != by or one.chosen or one.subscription.ended is not None:
                continue
            rested_long = (
                fixation.start_ns >= one.since_ns
                and fixation.end_ns - fixation.start_ns >= one.dwell_ns
            )
            if at_ns >= one.since_ns and (by == "confirm" or rested_long):
                one.chosen = True
                if by == "dwell":
                    self._dwelt_ns.setdefault(one.subscription.app, []).append(
                        self._fixation_seen_ns
                    )
                self._chosen_ns[one.subscription.app] = at_ns // self._tick_ns * self._tick_ns
                self._tell(one, name)

    def _tell(self, one: Selection, name: str) -> None:
        if self._record is None:
            self._say(one, name)
            return
        # The row is written on a thread of its own: the tracker does not wait for a disk.
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="gazeveil-choices")
        self._writer.submit(partial(self._say_after_row, one, name, self._record))

    def _say_after_row(
        self, one: Selection, name: str, record: Callable[[str, str, dict[str, object]], None]
    ) -> None:
        try:
            record(
                "choice", one.subscription.app, {"by": one.by}
            )  # that there was one, never which
        except LedgerError:
            one.subscription.end(
                "The audit log cannot be written, so the choice is not told.", "ledger"
            )
            return
        with self._lock:  # a grant that is taken back meanwhile ends the selection first
            self._say(one, name)

    def _say(self, one: Selection, name: str) -> None:
        if one.subscription.ended is not None:
            return
        try:
            one.callback(name)
        except Exception:  # an app's own fault must not reach the tracker or other apps
            one.subscription.end("Its callback failed.", "closed")
            return
        one.subscription.end("The wearer has chosen.", "chosen")

    def close(self) -> None:
        """End the thread; rows that it was asked for are written first."""
        if self._writer is not None:
            self._writer.shutdown(wait=True)
            self._writer = None
