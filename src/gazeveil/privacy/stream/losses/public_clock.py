"""Recordings on a public clock: as many steps as their time takes, each with one sample of gaze or
with none.

Step k is at k / rate seconds. The first good sample keeps its number; after it samples take one
step after the other, as they come. A good sample that comes more than one step after its place goes
to the step nearest to its time, and the steps between have no gaze: so a pause becomes lost
samples. A good sample that comes more than one step before its place is left out: so a tracker that
is faster than the clock, or told to be slower, does not run ahead of it. No sample serves two
steps. Which step a sample takes is a function of times and losses, never of where gaze is.

The words of the option `losses`, and what a release then covers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled, inlined
from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Bounds, Recording
from gazeveil.gaze.validity_kernels import bounds_deg, is_plain
from gazeveil.privacy.guarantee import Guarantee

#: Most steps of a recording whose duration is not said: 18 hours at 250 Hz.
MOST_STEPS = 1 << 24

# Times beyond this cannot be subtracted from one another in 64 bits.
_LATEST_NS = 4 * 10**18


@inlined
def _is_good(t_ns: int, x_deg: float, y_deg: float, valid: bool, bounds: Bounds) -> bool:
    return valid & is_plain(x_deg, y_deg, bounds) & (t_ns > -_LATEST_NS) & (t_ns < _LATEST_NS)


@compiled
def _are_regular(t_ns: Ints, first: int, period_ns: float) -> bool:
    """Whether every sample takes the step of its number: times go up, and none is off by a step
    from where sample `first` has it. Without branches, so that several are looked at a time.
    """
    good = 0
    for i in range(len(t_ns)):
        off = float(t_ns[i] - t_ns[first]) - float(i - first) * period_ns
        good += abs(off) < 0.99 * period_ns
    for i in range(1, len(t_ns)):
        good += t_ns[i] > t_ns[i - 1]
    return good == 2 * len(t_ns) - 1


@compiled
def take_steps(
    t_ns: Ints,
    x_deg: Floats,
    y_deg: Floats,
    valid: Bools,
    sphere: bool,
    period_ns: float,
    most: int,
    steps: Ints,
) -> int:
    """Write the step of every good sample, -1 for the others.

    Returns
    -------
    int
        How many steps all samples take, lost ones included; -1 where they are more than `most`.
    """
    bounds = bounds_deg(sphere)
    n, i = len(t_ns), 0
    while i < n and not _is_good(t_ns[i], x_deg[i], y_deg[i], valid[i], bounds):
        i += 1
    if i < n <= most and _are_regular(t_ns, i, period_ns):
        for i in range(n):
            steps[i] = i if _is_good(t_ns[i], x_deg[i], y_deg[i], valid[i], bounds) else -1
        return n
    begun, first, last, origin = False, np.int64(0), np.int64(0), 0.0
    step = np.int64(-1)
    for i in range(n):
        t = t_ns[i]
        ok = _is_good(t, x_deg[i], y_deg[i], valid[i], bounds) and (not begun or t > last)
        step += 1
        steps[i] = -1
        if not ok:
            continue
        if not begun:
            begun, first, origin = True, t, float(step)
        last = t
        due = origin + float(t - first) / period_ns
        if due > step + 1.0:
            if due >= most:
                return -1
            step = np.int64(np.rint(due))
        elif due < step - 1.0:
            step -= 1
            continue
        steps[i] = step
    return int(step + 1)


def steps_of(recording: Recording, rate_hz: float, duration_s: Fraction | None) -> tuple[Ints, int]:
    """The step of every sample of a recording, -1 for samples without one, and how many steps there
    are.

    Parameters
    ----------
    recording : Recording
        Raw gaze.
    rate_hz : float
        Of the clock.
    duration_s : Fraction, optional
        The public duration; the recording's own where it is left out.

    Raises
    ------
    DataError
        For a recording without a stated duration whose times need more than :data:`MOST_STEPS`.
    """
    steps = np.empty(len(recording), dtype=np.int64)
    count = take_steps(
        recording.t_ns,
        recording.x_deg,
        recording.y_deg,
        recording.valid,
        isinstance(recording.space, Sphere),
        1e9 / rate_hz,
        MOST_STEPS if duration_s is None else 1 << 62,
        steps,
    )
    if duration_s is not None:
        count = math.ceil(duration_s * Fraction(repr(float(rate_hz))))
        steps[steps >= count] = -1
    elif count < 0:
        raise DataError(
            f"The times of {recording.title} take more than {MOST_STEPS} samples at"
            f" {rate_hz:g} Hz, because of a pause or of a wrong time. Say how long it is:"
            " duration_s, or losses='keep'."
        )
    return steps, int(count)


def on_clock(
    recording: Recording, rate_hz: float, duration_s: Fraction | None
) -> tuple[Ints, Floats, Floats, Bools]:
    """Times, places and validity of all steps; parameters as of :func:`steps_of`."""
    steps, count = steps_of(recording, rate_hz, duration_s)
    t, x, y = np.empty(count, dtype=np.int64), np.full(count, np.nan), np.full(count, np.nan)
    valid = np.zeros(count, dtype=np.bool_)
    _put(steps, recording.x_deg, recording.y_deg, 1e9 / rate_hz, t, x, y, valid)
    return t, x, y, valid


@compiled
def _put(
    steps: Ints,
    from_x: Floats,
    from_y: Floats,
    period_ns: float,
    t: Ints,
    x: Floats,
    y: Floats,
    valid: Bools,
) -> None:
    """Put every sample that has a step there, and write the times of all steps."""
    for k in range(len(t)):
        t[k] = np.int64(np.rint(k * period_ns))
    for i in range(len(steps)):
        if steps[i] >= 0:
            x[steps[i]], y[steps[i]], valid[steps[i]] = from_x[i], from_y[i], True


#: `keep`: a lost sample is released as lost, a pause as a pause. `fill`: every step of a public
#: clock has a sample, and gaze is put where there was none.
LOSSES = ("keep", "fill")

#: From what a mechanism fills: from what it has `released` before, which costs nothing, or from
#: what was `recorded` before.
FILLS = ("released", "recorded")

LOST = "which samples are lost"

#: What no stream hides that keeps its losses.
NEVER_COVERED = (
    "how long the stream is and when it begins",
    LOST,
    "pauses of the tracker of more than two samples, and when it is faster than its rate",
)

#: What filling leaves uncovered of losses, by :data:`FILLS`.
TOLD_BY_FILL = {
    "released": (),
    "recorded": ("which samples are lost, where filled ones can be told from recorded ones",),
}

PROOF = "proofs/losses.md"

#: How samples are counted on the clock.
CLOCK_ASSUMPTION = (
    "samples are those of the public clock, lost ones and the time of pauses included"
)


def on_the_clock(
    promise: Guarantee, fills: str, rate_is_public: bool, length_is_public: bool
) -> Guarantee:
    """The promise of recordings whose losses are filled.

    Parameters
    ----------
    promise : Guarantee
        Of the mechanism about gaze.
    fills : str
        One of :data:`FILLS`.
    rate_is_public, length_is_public : bool
        Whether the rate of the clock and the duration were stated, and not taken from recordings.
    """
    promise = promise.with_not_covered(
        *(() if rate_is_public else ("the rate of each recording",)),
        *(() if length_is_public else ("how long each recording is",)),
        "which recordings have no gaze at all",
        *TOLD_BY_FILL[fills],
    )
    change = promise.change
    if promise.losses is None or change is None:
        return promise
    losses = promise.losses
    promise = replace(
        promise,
        assumptions=(*promise.assumptions, CLOCK_ASSUMPTION),
        reason=f"{promise.reason}, {PROOF}" if promise.status == "proved" else promise.reason,
    )
    if fills != "released" or change.unit not in ("sample", "window"):
        return promise
    # To be lost, or lost no more, is to be somewhere else (proofs/losses.md).
    loss = losses.loss(replace(change, move_deg=None))
    which = "that sample" if change.unit == "sample" else "any samples of that window"
    lost = (f"{which} lost, or no longer lost, or anywhere", loss)
    return replace(promise, also=(*promise.also, lost))
