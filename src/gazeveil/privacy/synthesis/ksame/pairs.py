"""Recordings as sequences of (fixation, following saccade), the averages of several such sequences,
and the way back to a :class:`Motion`.

A pair holds eleven numbers: where the fixation lies (a unit vector on a sphere, else x, y and 0),
sigma_x and sigma_y, its seconds, a, b, c and the seconds of the saccade that follows it, and the
lost seconds until the next fixation. Averaging whole pairs keeps fixations and saccades in turn;
places on a sphere are averaged as directions.

* A fixation that no saccade follows (a gap, another fixation, the end of the recording) gets the
  mean of the recording's own saccades; a recording without any gets :data:`PUBLIC_SACCADE`.
* A saccade after another one counts as lost time. What comes before the first fixation is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Space, Sphere, angle_deg
from gazeveil.privacy.synthesis.motion import Motion

#: a (deg/s), b, c and seconds of the saccade that replaces a missing one: about 5 degrees on the
#: main sequence.
PUBLIC_SACCADE = (250.0, 0.5, 0.3, 0.04)

#: Lost time is saved up and released as one stretch once it comes to this, as a blink: a sample
#: lost here and there is nothing a tracker does.
BLINK_S = 0.1

#: Longest lost time that counts on the common clock.
LONGEST_BLINK_S = 0.5

#: How near two people's gaze must be to count as looking at one thing: about the width of the
#: parafovea.
NEAR_DEG = 5.0

#: Columns of a pair.
PLACE = slice(0, 3)
SPREAD = slice(3, 5)
FIXATION_S = 5
CURVE = slice(6, 9)
SACCADE_S = 9
LOST_S = 10

_COLUMNS = 11


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of one recording.

    Parameters
    ----------
    values : array, shape (pairs, 11)
        See the module.
    onset_s : array, shape (pairs,)
        When each fixation begins, in seconds from the recording's first sample.
    length_s : float
        The whole recording in seconds.
    """

    values: Floats = field(repr=False)
    onset_s: Floats = field(repr=False)
    length_s: float

    def __len__(self) -> int:
        return len(self.values)


def pairs(motion: Motion) -> Pairs:
    """The pairs of a recording; none where its rate is not known."""
    if not motion.rate_hz > 0:
        return Pairs(np.empty((0, _COLUMNS)), np.empty(0), 0.0)
    rate, looked = motion.rate_hz, motion.is_fixation
    follows = np.append(~looked[1:], False)[looked] if len(motion) else np.empty(0, dtype=np.bool_)
    index = (np.cumsum(~looked) - 1)[np.flatnonzero(looked)[follows] + 1]
    values = np.empty((len(motion.fixations), _COLUMNS))
    values[:, PLACE] = places(motion.space, motion.fixations[:, 0], motion.fixations[:, 1])
    values[:, SPREAD] = motion.fixations[:, 2:4]
    values[:, FIXATION_S] = motion.fixations[:, 4] / rate
    saccades = motion.saccades * np.array([1.0, 1.0, 1.0, 1.0 / rate])
    values[:, 6:10] = saccades.mean(axis=0) if len(saccades) else np.array(PUBLIC_SACCADE)
    values[follows, 6:10] = saccades[index]
    onset = motion.onset[looked] / rate
    until = np.append(onset[1:], motion.samples / rate)
    values[:, LOST_S] = np.maximum(
        until - onset - values[:, FIXATION_S] - np.where(follows, values[:, SACCADE_S], 0.0), 0.0
    )
    return Pairs(values, onset, motion.samples / rate)


def places(space: Space, x_deg: Floats, y_deg: Floats) -> Floats:
    """Places as they are averaged, shape (n, 3): unit vectors on a sphere, (x, y,
    0) on a screen.
    """
    if isinstance(space, Sphere):
        return space.vectors(x_deg, y_deg)
    return np.column_stack((x_deg, y_deg, np.zeros(len(x_deg))))


def degrees(space: Space, mean: Floats) -> tuple[Floats, Floats]:
    """The way back from averages of :func:`places`; directions that
    cancel become straight ahead.
    """
    if not isinstance(space, Sphere):
        return mean[:, 0], mean[:, 1]
    gone = np.linalg.norm(mean, axis=1) < 1e-9
    return space.degrees(np.where(gone[:, None], np.array([0.0, 0.0, 1.0]), mean))


def average(members: Sequence[Pairs], k: int) -> Floats:
    """Pair i is the mean over the members who have a pair i, for as many pairs as at least k of
    them have.
    """
    lengths = sorted((len(m) for m in members), reverse=True)
    total = np.zeros((lengths[k - 1], _COLUMNS))
    count = np.zeros(len(total))
    for m in members:
        part = m.values[: len(total)]
        total[: len(part)] += part
        count[: len(part)] += 1
    return total / count[:, None]


def average_in_time(members: Sequence[Pairs], k: int, on_sphere: bool) -> Floats:
    """Pairs that follow one another on a common clock, each the mean over the members of what they
    do at that time.

    At the clock's time s a pair lasts as long as the members' next pairs from s on do on average.
    It lies where they look between s and the end of its fixation, each member weighted by the
    square of how many look there: the sum over all members of exp(-d**2 / (2 h**2)), with d the
    distance from the member's place and h = :data:`NEAR_DEG`. Without agreement all weigh the same.
    Where some look at one thing, the mean lies near it and not between it and the others. Then the
    clock moves on, until fewer than k members go on.

    A saccade that goes less far than the members' saccades do on average is shortened along the
    main sequence (:func:`_shortened`).
    """
    having = [m for m in members if len(m)]
    if len(having) < k:
        return np.empty((0, _COLUMNS))
    starts = np.cumsum([0] + [len(m) for m in having])
    last_s = np.array([m.length_s for m in having])
    end_s = float(np.sort(last_s)[-k])
    values = np.concatenate([m.values for m in having])
    onset = np.concatenate([m.onset_s for m in having])
    near = math.radians(NEAR_DEG) if on_sphere else NEAR_DEG
    return _shortened(
        _in_time(values, onset, starts, last_s, end_s, near, LONGEST_BLINK_S), on_sphere
    )


@compiled
def _in_time(
    values: Floats,
    onset: Floats,
    starts: Ints,
    last_s: Floats,
    end_s: float,
    near: float,
    longest_s: float,
) -> Floats:
    members = len(starts) - 1
    out = np.empty((1024, values.shape[1]))
    rows, s = 0, 0.0
    next_one, here = starts[:-1].copy(), starts[:-1].copy()
    place = np.empty((members, 3))
    while s < end_s:
        if rows == len(out):
            more = np.empty((2 * len(out), out.shape[1]))
            more[:rows] = out
            out = more
        row = out[rows]
        row[:] = 0.0
        count = 0
        for m in range(members):
            if last_s[m] <= s:
                continue
            # the first pair that begins now or later, not the one under way: among those under way
            # long ones are too frequent
            while next_one[m] + 1 < starts[m + 1] and onset[next_one[m]] < s - 1e-9:
                next_one[m] += 1
            row[3:10] += values[next_one[m], 3:10]
            # Who is lost for longer than a blink, or to the end, does not make the others wait.
            if onset[next_one[m]] >= s - 1e-9:
                row[10] += min(values[next_one[m], 10], longest_s)
            count += 1
        row[3:] /= count
        until = s + row[5]
        for m in range(members):
            if last_s[m] <= s:
                continue
            while here[m] + 1 < starts[m + 1] and onset[here[m] + 1] <= s:
                here[m] += 1
            _look(values, onset, here[m], starts[m + 1], s, until, place[m])
        weights = 0.0
        for m in range(members):
            if last_s[m] <= s:
                continue
            agree = 0.0
            for n in range(members):
                if last_s[n] > s:
                    away = (
                        (place[m, 0] - place[n, 0]) ** 2
                        + (place[m, 1] - place[n, 1]) ** 2
                        + (place[m, 2] - place[n, 2]) ** 2
                    )
                    agree += math.exp(-away / (2.0 * near * near))
            row[:3] += agree * agree * place[m]
            weights += agree * agree
        row[:3] /= weights
        s = until + row[9] + row[10]
        rows += 1
    return out[:rows].copy()


@compiled
def _look(
    values: Floats, onset: Floats, first: int, stop: int, s: float, until: float, out: Floats
) -> None:
    """Mean place of the fixations from s to until, weighted by time; between two fixations the next
    one, after the last one that.
    """
    out[:] = 0.0
    seconds = 0.0
    j = first
    while j < stop and onset[j] < until:
        part = min(until, onset[j] + values[j, 5]) - max(s, onset[j])
        if part > 0.0:
            out += part * values[j, :3]
            seconds += part
        j += 1
    if seconds > 0.0:
        out /= seconds
    else:
        out[:] = values[first if onset[first] >= until else min(first + 1, stop - 1), :3]


def _shortened(values: Floats, on_sphere: bool) -> Floats:
    """Saccades that go less far than a, c and their seconds say last that much shorter on the main
    sequence, and their fixations longer.

    Means of places lie nearer to one another than the places do: without this, saccades would go
    half the way in the whole time, at half the speed. The main sequence is the public one, (21 +
    2.2 A) ms for A degrees (Carpenter 1988).
    """
    if len(values) < 2:
        return values
    from scipy.special import erf

    out = values.copy()
    went = (
        angle_deg(values[:-1, PLACE], values[1:, PLACE])
        if on_sphere
        else np.linalg.norm(np.diff(values[:, PLACE], axis=0), axis=1)
    )
    a, b, c, seconds = (values[:-1, i] for i in (6, 7, 8, 9))
    meant = a * c * seconds * math.sqrt(math.pi) / 2 * (erf((1 - b) / c) + erf(b / c))
    share = np.minimum((21 + 2.2 * went) / (21 + 2.2 * meant), 1.0)
    out[:-1, SACCADE_S] = seconds * share
    out[:-1, FIXATION_S] += seconds * (1 - share)
    return out


def laid_out(values: Floats, space: Space, rate_hz: float, samples: int) -> Motion:
    """Pairs one after the other, as a recording of that many samples.

    Seconds become samples by rounding half to even, a fixation at least one and a saccade at least
    two; lost time is saved up (see :data:`BLINK_S`). The saccade of the last pair has no fixation
    to land on and is left out. What does not fit is cut off, what is missing is lost.
    """
    fixation = np.maximum(np.rint(values[:, FIXATION_S] * rate_hz), 1.0)
    saccade = np.maximum(np.rint(values[:, SACCADE_S] * rate_hz), 2.0)
    # Saved-up time is spent whenever it has passed another BLINK_S.
    saved = np.cumsum(values[:, LOST_S])
    spent = np.floor(saved / BLINK_S + 1e-9) * BLINK_S
    lost = np.rint(np.diff(spent, prepend=0.0) * rate_hz)
    starts = np.concatenate(([0.0], np.cumsum(fixation + saccade + lost)))[:-1]
    fits = starts < samples
    n = int(fits.sum())
    x, y = degrees(space, values[:n, PLACE])
    onset = np.empty(2 * n, dtype=np.int64)
    onset[0::2], onset[1::2] = starts[:n], starts[:n] + fixation[:n]
    fixations = np.column_stack(
        (x, y, values[:n, SPREAD], np.minimum(fixation[:n], samples - starts[:n]))
    )
    saccades = np.column_stack(
        (values[:n, CURVE], np.maximum(np.minimum(saccade[:n], samples - onset[1::2]), 0))
    )
    events = max(2 * n - 1, 0)
    return Motion(
        space,
        rate_hz,
        samples,
        fixations,
        saccades[: max(n - 1, 0)],
        np.arange(events) % 2 == 0,
        onset[:events],
    )
