"""What differs between two datasets that an attacker tries to tell apart.

A promise without its change is half a sentence: "epsilon = 1" for a sample that moves by a degree
and "epsilon = 1" for a person who is replaced are different things. A :class:`Change` says which
unit, how many of them, how long, and how far gaze moves.

Streams of gaze: a `sample`, a `window` (so many samples, or so many seconds at the nominal rate, in
a row), a `recording`, everything of a `user`, or a `place`: all gaze in one public cell, however
often it is looked at. Tables: a `chunk` of rows of one feature, a `recording-feature`, a
`recording`, a `user`. Of events: one `event` more or less.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gazeveil import checks
from gazeveil.privacy.rational import Number, exact, format_exact

#: Units of privacy from the smallest to the largest.
UNITS = ("sample", "event", "window", "chunk", "recording-feature", "recording", "user")

#: How a move is measured: by the space's own distance (along a great circle on a sphere, in the
#: plane of the two angles on a screen), or by the coordinates x and y as numbers (x going round on
#: a sphere).
METRICS = ("space", "coordinates")

#: Units that a change of gaze can have.
GAZE_UNITS = ("sample", "window", "recording", "user")


@dataclass(frozen=True)
class Change:
    """One change of the data; times and losses of samples stay as they are unless a unit is said to
    be replaced.

    Parameters
    ----------
    unit : str
        One of :data:`UNITS`.
    count : int
        How many of that unit change. They may overlap, so that what lies in several of them moves
        several times as far.
    samples, seconds : int, Fraction, optional
        Of a window: how long it is; one of them.
    rows : int, optional
        Of a chunk: its rows.
    move_deg : Fraction, optional
        How far every changed sample moves at most, in degrees; None is anywhere.
    metric : str
        One of :data:`METRICS`.
    start_deg : Fraction, optional
        Of a window on the public grid of windows: all of it is replaced, and only its first place
        moves by at most this many degrees.

    Examples
    --------
    >>> print(Change.window(seconds="1/2", move_deg=2))
    the gaze of any 0.5 s of one recording, counted in samples at its nominal rate, is moved by at
    most 2 degrees, times and losses being the same
    >>> print(Change.person())
    all gaze of one person is replaced by any other, times and losses being the same
    """

    unit: str
    count: int = 1
    samples: int | None = None
    seconds: Fraction | None = None
    rows: int | None = None
    move_deg: Fraction | None = None
    metric: str = "space"
    start_deg: Fraction | None = None

    def __post_init__(self) -> None:
        checks.one_of("Change", "unit", self.unit, UNITS)
        checks.one_of("Change", "metric", self.metric, METRICS)
        checks.count("Change", "count", self.count)
        if self.unit == "window":
            if (self.samples is None) == (self.seconds is None):
                checks.refuse(
                    "Change",
                    "samples",
                    "given for a window, or seconds instead",
                    (self.samples, self.seconds),
                )
        elif self.samples is not None or self.seconds is not None or self.start_deg is not None:
            checks.refuse(
                "Change",
                "samples",
                "left out for anything but a window",
                (self.samples, self.seconds, self.start_deg),
            )
        if (self.unit == "chunk") != (self.rows is not None):
            checks.refuse("Change", "rows", "given for a chunk, and for nothing else", self.rows)
        for name in ("samples", "rows"):
            if getattr(self, name) is not None:
                checks.count("Change", name, getattr(self, name))
        for name in ("move_deg", "start_deg", "seconds"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, exact("Change", name, getattr(self, name), least=0))
        if self.unit not in GAZE_UNITS and self.move_deg is not None:
            checks.refuse("Change", "move_deg", f"left out for a {self.unit}", self.move_deg)

    @classmethod
    def sample(
        cls, move_deg: Number | None = None, metric: str = "space", count: int = 1
    ) -> Change:
        """One sample of one recording."""
        return cls("sample", count, move_deg=_degrees(move_deg), metric=metric)

    @classmethod
    def window(
        cls,
        samples: int | None = None,
        seconds: Number | None = None,
        move_deg: Number | None = None,
        metric: str = "space",
        start_deg: Number | None = None,
        count: int = 1,
    ) -> Change:
        """So many samples, or seconds at the nominal rate, in a row of one recording."""
        long = None if seconds is None else exact("Change", "seconds", seconds, above=0)
        return cls(
            "window", count, samples, long, None, _degrees(move_deg), metric, _degrees(start_deg)
        )

    @classmethod
    def chunk(cls, rows: int) -> Change:
        """So many rows of one feature of one recording, on the public grid of chunks."""
        return cls("chunk", rows=rows)

    @classmethod
    def recording_feature(cls) -> Change:
        """All values of one feature of one recording."""
        return cls("recording-feature")

    @classmethod
    def recording(
        cls, move_deg: Number | None = None, metric: str = "space", count: int = 1
    ) -> Change:
        """A whole recording."""
        return cls("recording", count, move_deg=_degrees(move_deg), metric=metric)

    @classmethod
    def person(
        cls, move_deg: Number | None = None, metric: str = "space", count: int = 1
    ) -> Change:
        """Everything of one person."""
        return cls("user", count, move_deg=_degrees(move_deg), metric=metric)

    @classmethod
    def event(cls) -> Change:
        """One event is there or is not."""
        return cls("event")

    def clause(self, spaces: frozenset[str] = frozenset(), table: bool = False) -> str:
        """The change as a clause.

        Parameters
        ----------
        spaces : frozenset of str
            `sphere`, `screen` or both: what degrees mean where the change is made.
        table : bool
            Whether the data are the values of a table.
        """
        if self.unit == "event":  # also where larger units are those of a table: counters
            return self._many + "one event is there or is not, all others being the same"
        if table and self.unit in _TABLE_CLAUSES:
            return self._many + _TABLE_CLAUSES[self.unit].format(rows=self.rows)
        if self.start_deg is not None:
            where = (
                f"anything else that begins at most {degrees(self.start_deg)}{self._along(spaces)}"
                " from where it began"
            )
            return (
                f"{self._many}the gaze of one window of {_length(self)} of one recording on the"
                f" public grid of windows is replaced by {where}"
            )
        moved = (
            "replaced by any other"
            if self.move_deg is None
            else f"moved by at most {degrees(self.move_deg)}{self._along(spaces)}"
        )
        return f"{self._many}{self._what()} is {moved}, times and losses being the same"

    def __str__(self) -> str:
        return self.clause()

    @property
    def _many(self) -> str:
        return "" if self.count == 1 else f"{self.count} times: "

    def _what(self) -> str:
        if self.unit == "sample":
            return "one sample of one recording"
        if self.unit == "window":
            if self.samples is not None:
                return f"the gaze of any {self.samples} samples in a row of one recording"
            # In samples: from the first to the last of 30 samples at 60 Hz it is less than half a
            # second, of 31 it is half a second.
            return (
                f"the gaze of any {_length(self)} of one recording, counted in samples at its"
                " nominal rate,"
            )
        return "all gaze of one person" if self.unit == "user" else f"all gaze of one {self.unit}"

    def _along(self, spaces: frozenset[str]) -> str:
        if self.metric == "coordinates":
            return " along x and y together" + (
                " (x goes round on a sphere)" if spaces != {"screen"} else ""
            )
        along = {
            "sphere": " along a great circle",
            "screen": " in the plane of the two angles of the screen",
        }
        if len(spaces) == 2:
            return " (along a great circle on a sphere, in the plane of the two angles on a screen)"
        return "".join(along[s] for s in spaces)


_OTHERS = "are replaced by any others within the public bounds"

#: What is replaced in a table, per unit.
_TABLE_CLAUSES = {
    "chunk": f"all values of one chunk of {{rows}} rows of one feature of one recording {_OTHERS}",
    "recording-feature": (
        f"all values of one feature of one recording {_OTHERS}, in any number up to the public"
        " length"
    ),
    "recording": f"all values of one recording {_OTHERS}, in any number up to the public length",
    "user": (
        f"all values of all recordings of one person {_OTHERS}, in any number up to the public"
        " length"
    ),
}


def degrees(value: Fraction) -> str:
    """A distance in words, rounded down: a larger one would be the better promise."""
    return "1 degree" if value == 1 else f"{format_exact(value, down=True)} degrees"


def _degrees(value: Number | None) -> Fraction | None:
    return None if value is None else exact("Change", "move_deg", value, least=0)


def _length(change: Change) -> str:
    return (
        f"{change.samples} samples"
        if change.samples is not None
        else f"{format_exact(change.seconds or Fraction(0), down=True)} s"
    )
