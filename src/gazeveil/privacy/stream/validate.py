"""The validation of samples before a mechanism sees them; the rules are those of
:mod:`gazeveil.privacy.stream.session`.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.validity import Bounds
from gazeveil.gaze.validity_kernels import bounds_deg, is_plain

#: Samples that are looked at together.
PIECE = 512


@compiled
def _plain(x_deg: Floats, y_deg: Floats, valid: Bools, bounds: Bounds) -> bool:
    """Whether all of these samples are plain gaze; without branches, so that several are looked at
    a time.
    """
    inside = 0
    for i in range(len(x_deg)):
        inside += is_plain(x_deg[i], y_deg[i], bounds)
    for i in range(len(x_deg)):
        inside += valid[i]
    return inside == 2 * len(x_deg)


@compiled
def _regular(
    t_ns: Ints,
    grid_ns: Ints,
    last: int,
    origin: int,
    step: int,
    half_ns: float,
    two_periods_ns: int,
) -> bool:
    """Whether times go up from `last` and are at most two periods from the grid after `step`, which
    is written.
    """
    for i in range(len(t_ns)):
        grid_ns[i] = origin + np.int64(np.rint(np.float64(step + 2 * (i + 1)) * half_ns))
    good = t_ns[0] > last
    for i in range(len(t_ns)):
        good += abs(t_ns[i] - grid_ns[i]) <= two_periods_ns
    for i in range(1, len(t_ns)):
        good += t_ns[i] > t_ns[i - 1]
    return good == 2 * len(t_ns)


@compiled
def validate_samples(
    t_ns: Ints,
    x_deg: Floats,
    y_deg: Floats,
    valid: Bools,
    sphere: bool,
    keeps_tracker_times: bool,
    hides_losses: bool,
    period_ns: float,
    clock: Ints,
) -> None:
    """Validate in place: what is not plain gaze becomes lost, and times become those that are
    released.

    `clock` has per stream: bits (1 begun, 2 a good sample was seen), time of the first sample, time
    of the last good one (with `hides_losses` of the last one), place on the grid in half steps,
    latest time of any sample.

    With `hides_losses` the grid follows the times of all samples, good or not: if it waited for a
    good one after a pause, released times would tell which samples were lost. A time must then come
    after that of the sample before, good or not: if it were compared with the last good one, a
    sample with a time far ahead, lost or not, would decide whether all later ones are looked at.
    """
    # Long: one compiled loop over samples; calls would hand all of its state on.
    bounds = bounds_deg(sphere)
    two_periods_ns, half_ns = int(2.0 * period_ns), 0.5 * period_ns
    n = x_deg.shape[1]
    grids_ns = np.empty(PIECE if n >= PIECE else 0, dtype=np.int64)
    for s in range(x_deg.shape[0]):
        begun, origin, last, step = clock[s, 0], clock[s, 1], clock[s, 2], clock[s, 3]
        latest = clock[s, 4]
        i = 0
        while i < n:
            # Nearly always whole pieces are plain gaze at regular times, and looked at together.
            end = min(i + PIECE, n)
            if (
                begun == 3
                and end - i == PIECE
                and _plain(x_deg[s, i:end], y_deg[s, i:end], valid[s, i:end], bounds)
                and _regular(
                    t_ns[s, i:end],
                    grids_ns,
                    latest if hides_losses else last,
                    origin,
                    step,
                    half_ns,
                    two_periods_ns,
                )
            ):
                last, step = t_ns[s, end - 1], step + 2 * PIECE
                latest = max(latest, last)
                if not keeps_tracker_times:
                    t_ns[s, i:end] = grids_ns
                i = end
                continue
            while i < end:
                t, x, y = t_ns[s, i], x_deg[s, i], y_deg[s, i]
                first = begun == 0 if hides_losses else begun < 2
                ok = valid[s, i] and is_plain(x, y, bounds) and (first or t > last)
                if begun == 0:
                    # a clock near the end of 64 bits could not be counted on from
                    begun, origin, step = 1, (t if -4.0e18 < t < 4.0e18 else np.int64(0)), 0
                    latest = origin
                else:
                    step += 2
                believed = t > latest if hides_losses else ok
                latest = max(latest, t)
                grid = origin + np.int64(np.rint(step * half_ns))
                if believed and t - grid > two_periods_ns:
                    due = (float(t) - float(origin)) / period_ns
                    if due * period_ns + abs(float(origin)) < 4.0e18:
                        step = 2 * np.int64(np.rint(due))
                        grid = origin + np.int64(np.rint(step * half_ns))
                elif believed and grid - t > two_periods_ns and step > 1:
                    # a tracker that is faster than it says: half a step at a time, until its
                    # samples are no longer ahead of the grid
                    step -= 1
                    grid = origin + np.int64(np.rint(step * half_ns))
                if ok:
                    begun, last = 3, t
                else:
                    x_deg[s, i], y_deg[s, i] = np.nan, np.nan
                    last = t if hides_losses else last
                valid[s, i] = ok
                if not keeps_tracker_times:
                    t_ns[s, i] = grid
                i += 1
        clock[s, 0], clock[s, 1], clock[s, 2], clock[s, 3] = begun, origin, last, step
        clock[s, 4] = latest
