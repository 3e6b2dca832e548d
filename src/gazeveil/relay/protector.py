"""The mechanism inside a relay: blocks of raw gaze in, blocks of protected gaze out, and clocks
that clients can go on using.

Clients of a tracker put its times beside their own clocks, so a relay stays on the tracker's clock.
It lets no time of a sample through, though: the released times lie on the regular grid of the
nominal rate, and that grid begins at a whole multiple of the period before the first sample. (Only
the `published` readings pass the tracker's times on, as their papers do; their guarantee says so.)

When the tracker's clock goes back, as it does when the tracker was started again, or jumps by more
than a day, as it does when another tracker takes its place, the session goes on: its own time
continues, the difference between its time and the tracker's changes by whole periods, and the
mechanism forgets nothing. So a window that spans the break costs what any window costs, and nothing
is lost: after a reset a mechanism with a budget per window would be silent until the budget is free
again.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.streams.shared import MOST_NS, most_step_ns
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import SET_BACK_S
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.registry import mechanism as mechanism_of
from gazeveil.privacy.stream.mechanism import StreamMechanism

#: A clock that goes back by more was set back; by less, samples came in the wrong order, and the
#: late ones are lost.
_SET_BACK_NS = round(1e9 * SET_BACK_S)


class Protector:
    """One stream under protection.

    Parameters
    ----------
    mechanism : StreamMechanism or str
        Or the command line's text, e.g. `kaleido:epsilon=1,w=60,r_deg=2`.
    rate_hz : float
        Nominal samples per second of the tracker.
    space : Sphere or Screen
        What the tracker's degrees mean.
    seed : int, optional
        For tests only: repeatable noise, which gives no protection.
    """

    def __init__(
        self,
        mechanism: StreamMechanism | str,
        rate_hz: float,
        space: Space,
        seed: int | None = None,
    ) -> None:
        chosen = mechanism_of(mechanism) if isinstance(mechanism, str) else mechanism
        if not isinstance(chosen, StreamMechanism):
            checks.refuse(
                "relay",
                "mechanism",
                "one that takes a stream",
                chosen.name,
                "See gazeveil list mechanisms for those of kind stream.",
            )
        self.mechanism = chosen
        self.session = chosen.open(rate_hz, space, seed=seed)
        self.counts: Counter[str] = Counter()
        self._period_ns = 1e9 / self.session.rate_hz
        self._in_ns = 0  # tracker's time minus the session's
        self._out_ns = 0  # released time minus the session's
        self._last_ns: int | None = None
        self._broke = False

    @property
    def guarantee(self) -> Guarantee:
        """What the stream promises."""
        return self.session.guarantee.with_not_covered(
            "when the tracker comes, goes and comes back",
            "when a message is sent, which is soon after the tracker sent its own",
        )

    @property
    def rate_hz(self) -> float:
        """Samples released in a second."""
        return self.session.rate_hz / self.mechanism.stride

    def warm(self) -> None:
        """Compile what is compiled, on a session that is thrown away, so that the first sample is
        as fast as the others.
        """
        other = self.mechanism.open(self.session.rate_hz, self.session.space, seed=0)
        other.push(
            np.zeros(1, dtype=np.int64),
            np.full(1, np.nan),
            np.full(1, np.nan),
            np.zeros(1, dtype=np.bool_),
        )

    def lost(self) -> None:
        """The tracker vanished; the next sample may come from another clock."""
        self._broke = True
        self.counts["breaks"] += 1

    def push(self, samples: Block) -> Block:
        """What may leave now; maybe fewer samples than came, or none."""
        keep = np.abs(samples.t_ns.astype(np.float64)) < MOST_NS
        t, x, y, valid = (
            samples.t_ns[keep],
            samples.x_deg[keep],
            samples.y_deg[keep],
            samples.valid[keep],
        )
        self.counts["in"] += len(samples)
        self.counts["impossible times"] += len(samples) - len(t)
        parts = []
        for part in self._parts(t):
            begin_ns = int(t[part.start])
            self._follow(begin_ns)
            # Both clocks by their difference to the part's begin: that of two wild clocks may not
            # fit 64 bits.
            session_ns = begin_ns - self._in_ns
            released = self.session.push(
                t[part] - begin_ns + session_ns, x[part], y[part], valid[part]
            )
            parts.append((released[0] - session_ns + (session_ns + self._out_ns), *released[1:]))
            self._last_ns = int(t[part.stop - 1])
        if not parts:
            return Block(t, x, y, valid)
        t, x, y, valid = (np.concatenate(column) for column in zip(*parts, strict=True))
        out = Block(t, x, y, valid)
        self.counts["out"] += len(out)
        self.counts["out, lost"] += int(np.count_nonzero(~out.valid))
        return out

    def _parts(self, t_ns: Ints) -> list[slice]:
        """A block, cut where its times are no longer those of one clock."""
        if not len(t_ns):
            return []
        # As far as the session's time may come in this block.
        far_ns = self._session_ns() + int(t_ns.max()) - int(t_ns.min())
        other = _other_clock(np.diff(t_ns), far_ns)
        edges = [0, *(np.flatnonzero(other) + 1).tolist(), len(t_ns)]
        return [slice(begin, end) for begin, end in pairwise(edges)]

    def _session_ns(self) -> int:
        """The session's time of the last sample."""
        return 0 if self._last_ns is None else self._last_ns - self._in_ns

    def _follow(self, t_ns: int) -> None:
        """Keep the session's time going where the tracker's clock begins, was set back, or is
        another one.
        """
        other = self._last_ns is not None and (
            _other_clock(t_ns - self._last_ns, self._session_ns())
            or (self._broke and t_ns <= self._last_ns)
        )
        if self.mechanism.keeps_tracker_times:
            if other and self._last_ns is not None:
                self._in_ns += t_ns - self._last_ns - round(self._period_ns)
                self._out_ns = self._in_ns
                self.counts["clocks set back"] += 1
        elif self._last_ns is None:
            self._in_ns = t_ns - self._grid(t_ns)
        elif other:
            # the first whole step after everything the session has seen
            following = self._grid(self._last_ns - self._in_ns + round(2 * self._period_ns))
            self._in_ns, self._out_ns = t_ns - following, self._grid(t_ns) - following
            self.counts["clocks set back"] += 1
        self._broke = False

    def _grid(self, t_ns: int) -> int:
        """The last multiple of the period that is not after a time."""
        # in whole numbers: a float near 10**18 has steps of 128 ns
        period = round(self._period_ns * 1024)
        return (t_ns * 1024 // period) * period // 1024


def _other_clock(step_ns: Any, session_ns: int) -> Any:
    """Whether a step of the tracker's time, or each of several, is no step of one clock."""
    return (step_ns < -_SET_BACK_NS) | (step_ns > most_step_ns(min(session_ns, MOST_NS)))
