"""Which refusals get a row of the audit log: so many a minute, and the others are counted.

An app may be refused thousands of times a minute. With a row for each it would fill the disk, and
other apps would wait for its rows.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Refusals of an app in a minute that have a row of the audit log each.
ROWS_PER_MINUTE = 60

_MINUTE_NS = 60_000_000_000


@dataclass
class RefusalRows:
    """Counts the refusals of one app, those with a row in this minute and those without.

    Examples
    --------
    >>> rows = RefusalRows()
    >>> [rows.refused(0) for _ in range(62)][-3:], rows.refused(_MINUTE_NS), rows.unrecorded
    ([0, None, None], 2, 0)
    """

    unrecorded: int = 0
    recorded: int = 0
    minute: int = 0

    def refused(self, now_ns: int) -> int | None:
        """Count a refusal; gives how many before it have no row, or None where this one gets none
        either.
        """
        minute = now_ns // _MINUTE_NS
        if minute != self.minute:
            self.minute, self.recorded = minute, 0
        if self.recorded >= ROWS_PER_MINUTE:
            self.unrecorded += 1
            return None
        unrecorded, self.unrecorded = self.unrecorded, 0
        self.recorded += 1
        return unrecorded
