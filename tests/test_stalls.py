"""The clock of tests that say how long something may take."""

from __future__ import annotations

import time

from tests.support.stalls import SteadyClock


def test_time_in_which_nothing_ran_is_left_out_and_waiting_is_not() -> None:
    with SteadyClock() as clock:
        time.sleep(0.3)
        waited_s = clock()
        clock._began_s -= 10.0  # the machine stood still for ten seconds: no tick came
        clock._tick_s -= 10.0
        # Where a tick was late already, both times end with it: equal but for their rounding.
        assert -1e-9 < clock() - waited_s < 5.0
    # On a machine that does stand still now it is less than was slept, never more.
    assert 0.0 < waited_s <= time.monotonic() - clock._began_s - 10.0
