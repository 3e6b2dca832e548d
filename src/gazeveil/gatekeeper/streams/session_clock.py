"""The time that shared streams are given: it goes on, whatever the tracker's clock does.

A session would have to forget its past to believe a clock that went back, and with it what it has
spent in the current window; and one that followed every jump of a clock to another one, from the
time since a start to the time since 1970, would soon be at the end of 64 bits. So a session's time
is the tracker's plus a shift. A time that does not come after the last one, or comes more than a
day after it, is of another clock, which is believed after half a second of such samples, or at once
after a pause; then the shift changes so that the session's time goes on by one period. Until then
such samples are lost.

Released times follow the tracker's clock where that goes forward, by whole periods, and never go
back.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gazeveil.arrays import Bools, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.validity import set_back_samples
from gazeveil.privacy.stream.session import Samples

#: Beyond this a time leaves no room to count on in 64 bits.
MOST_NS = 4 * 10**18

_SECOND_NS, _DAY_NS = 10**9, 86_400 * 10**9

# Places in the state.
_BEGUN, _LAST, _SHIFT, _BEHIND, _STATE = range(5)


class SessionClock:
    """The time of the shared streams of a device.

    Parameters
    ----------
    rate_hz : float
        Of the tracker.
    """

    def __init__(self, rate_hz: float) -> None:
        self._period_ns, self._believe = round(1e9 / rate_hz), set_back_samples(rate_hz)
        self._state = np.zeros(_STATE, dtype=np.int64)
        self._released_ns = 0  # released time minus the session's

    def pause(self) -> None:
        """The tracker vanished: another clock is believed at once."""
        self._state[_BEHIND] = self._believe

    def runs(self, samples: Samples) -> Iterator[tuple[Samples, int]]:
        """The samples with the session's times, cut where another clock is believed, each run with
        what is to be added to the times that are released of it.
        """
        t, x, y, valid = samples[0].copy(), samples[1], samples[2], samples[3].copy()
        begin = 0
        while begin < len(t):
            shift_ns = int(self._state[_SHIFT])
            end = _follow(t, valid, begin, self._believe, self._period_ns, self._state)
            if (now_ns := int(self._state[_SHIFT])) != shift_ns:
                ahead_ns = max(0, -now_ns - self._released_ns)
                self._released_ns += ahead_ns // self._period_ns * self._period_ns
            run = slice(begin, end)
            yield (t[run], x[run], y[run], valid[run]), self._released_ns
            begin = end


@compiled
def most_step_ns(last_ns: int) -> int:
    """What comes later than this after a time of a session is of another clock. Steps of just below
    a day bring no session to the end of 64 bits.
    """
    return _DAY_NS if last_ns < MOST_NS else _SECOND_NS


@compiled
def _follow(t_ns: Ints, valid: Bools, begin: int, believe: int, period_ns: int, state: Ints) -> int:
    """Put times on the session's, in place, and mark what has none as lost; says where the run
    ends, before the first sample of a clock that is believed from there on.
    """
    for i in range(begin, len(t_ns)):
        t = t_ns[i]
        if t <= -MOST_NS or t >= MOST_NS:
            t_ns[i], valid[i] = state[_LAST], False
            continue
        if state[_BEGUN] == 0:
            state[_BEGUN], state[_LAST], state[_BEHIND] = 1, t, 0
            continue
        # In floating point first: the difference of two wild clocks may not fit 64 bits.
        near = abs(float(t) + float(state[_SHIFT]) - float(state[_LAST])) < 2.0 * _DAY_NS
        step = t + state[_SHIFT] - state[_LAST] if near else np.int64(0)
        if 0 < step <= most_step_ns(state[_LAST]):
            state[_LAST] += step
            state[_BEHIND] = 0
            t_ns[i] = state[_LAST]
            continue
        state[_BEHIND] += 1
        if state[_BEHIND] > believe:
            if i > begin:
                state[_BEHIND] = believe
                return i
            state[_LAST] += period_ns
            state[_SHIFT], state[_BEHIND] = state[_LAST] - t, 0
            t_ns[i] = state[_LAST]
        elif near and step <= 0:
            t_ns[i] = state[_LAST] + step  # it came late: the session has it lost
        else:
            t_ns[i], valid[i] = state[_LAST], False
    return len(t_ns)
