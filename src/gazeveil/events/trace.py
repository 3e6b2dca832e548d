"""Samples as the detectors see them: positions whose short distances are degrees, gaps bridged or
cut, runs turned into events.

On a Screen a position is (x_deg, y_deg). On a Sphere it is the unit gaze vector times 180/pi, so
that the distance of two near samples is their angle in degrees everywhere: nothing special happens
at 0/360 or at the poles.

What the detectors start from (`auto`, `dorr` and `is5t` then judge lost samples by rules of their
own, and `online` calls the first 500 ms of a longer gap a `blink`; `docs/reference/events.md` has
them side by side):

* A gap between two valid samples of at most 75 ms (or one and a half sample steps, if that is
  longer) is bridged: the lost samples in it get positions on the straight line and take part like
  the others.
* A longer gap cuts the recording into segments. The lost samples in it become one event: `blink` if
  the gap lasts at most 500 ms, else `undefined`. Lost samples before the first or after the last
  valid one count their own number of samples as the gap.
* Rows that are missing altogether cut in the same way; there are no samples that could be labelled.
* Speeds use the nominal rate, not the single time stamps, which jitter in many trackers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Bools, Codes, Floats, Ints, Texts
from gazeveil.compiled import compiled
from gazeveil.gaze.events import KINDS, WORD, Events
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording

#: Codes of the words, as the compiled kernels write them.
FIXATION, SACCADE, PURSUIT, BLINK, PSO, NOISE, UNDEFINED = range(7)

#: Longest gap in seconds that is bridged, and longest one that is called a blink.
BRIDGE_S = 0.075
BLINK_S = 0.5

_WORDS = np.array(KINDS, dtype=WORD)


@dataclass(frozen=True, eq=False)
class BridgedGaze:
    """A recording ready for detection.

    Parameters
    ----------
    axes : tuple of array of float64, shape (n,)
        Two (screen) or three (sphere) coordinates in degrees, bridged inside the segments.
    segments : array of int64, shape (k, 2)
        First and one past the last sample of each stretch without a long gap; both ends are valid
        samples.
    codes : array of int8, shape (n,)
        `BLINK` or `UNDEFINED` for samples outside the segments, `UNDEFINED` inside them: a detector
        writes over it.
    rate_hz : float
        Nominal rate; NaN where the recording does not know it (then there are no segments).
    seen : array of bool, shape (n,)
        Which samples are trusted; the others are bridged or outside the segments.
    """

    axes: tuple[Floats, ...] = field(repr=False)
    segments: Ints = field(repr=False)
    codes: Codes = field(repr=False)
    rate_hz: float
    seen: Bools = field(repr=False)

    @classmethod
    def of(cls, recording: Recording, valid: Bools | None = None) -> BridgedGaze:
        """Prepare a recording; `valid` replaces its own mask where a
        detector trusts fewer samples.
        """
        mask = recording.valid if valid is None else np.ascontiguousarray(valid & recording.valid)
        rate = recording.rate_hz
        known = bool(rate > 0)
        bridge_ns = int(1e9 * max(BRIDGE_S, 1.5 / rate)) if known else int(1e9 * BRIDGE_S)
        segments = _segments(recording.t_ns, mask, bridge_ns)
        codes = np.full(len(recording), UNDEFINED, dtype=np.int8)
        _label_lost(
            recording.t_ns,
            segments,
            1e9 / rate if known else 0.0,
            int(1e9 * BLINK_S),
            bridge_ns,
            codes,
        )
        axes = tuple(_bridged(a, mask, segments) for a in positions(recording))
        return cls(axes, segments if known else segments[:0], codes, rate, mask)

    @property
    def cuts(self) -> Ints:
        """Samples before which rows are missing: an event never goes across."""
        return self.segments[1:, 0][self.segments[1:, 0] == self.segments[:-1, 1]]

    def bridge(self, channel: Floats) -> Floats:
        """Another channel of the same samples, with the gaps inside the segments bridged."""
        return _bridged(channel, self.seen, self.segments)


def positions(recording: Recording) -> tuple[Floats, ...]:
    """Coordinates in degrees, one array per axis; lost samples hold whatever the recording has
    there.
    """
    if isinstance(recording.space, Sphere):
        return _sphere_axes(recording.x_deg, recording.y_deg)
    return recording.x_deg, recording.y_deg


def to_events(
    codes: Codes, t_ns: Ints, cuts: Ints, source: str, secondary: Texts | None = None
) -> Events:
    """Runs of equal codes (and equal secondary words) as events; a new one also begins at each of
    the samples `cuts`.
    """
    n = len(codes)
    if n == 0:
        return Events.empty(source)
    cut = np.empty(n, dtype=np.bool_)
    cut[0] = True
    np.not_equal(codes[1:], codes[:-1], out=cut[1:])
    cut[cuts] = True
    if secondary is not None:
        cut[1:] |= secondary[1:] != secondary[:-1]
    onset = np.flatnonzero(cut)
    offset = np.append(onset[1:] - 1, n - 1)
    # Lost samples may carry times that go back; an event never ends before it starts.
    second = None if secondary is None else secondary[onset]
    return Events(
        _WORDS[codes[onset]],
        onset,
        offset,
        t_ns[onset],
        np.maximum(t_ns[offset], t_ns[onset]),
        secondary=second,
        source=source,
    )


@compiled
def _sphere_axes(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    n = len(x)
    a, b, c = np.empty(n), np.empty(n), np.empty(n)
    unit, turn = 180.0 / np.pi, np.pi / 180.0
    for i in range(n):
        lon, lat = (x[i] - 180.0) * turn, (90.0 - y[i]) * turn
        level = unit * np.cos(lat)
        a[i], b[i], c[i] = level * np.sin(lon), unit * np.sin(lat), level * np.cos(lon)
    return a, b, c


def _segments(t: Ints, valid: Bools, bridge_ns: int) -> Ints:
    """Stretches of samples whose valid neighbours are at most `bridge_ns` apart."""
    good = np.flatnonzero(valid)
    if len(good) == 0:
        return np.empty((0, 2), dtype=np.int64)
    cuts = np.flatnonzero(np.diff(t[good]) > bridge_ns)
    return np.stack((good[np.append(0, cuts + 1)], good[np.append(cuts, len(good) - 1)] + 1), 1)


def _label_lost(
    t: Ints, segments: Ints, step_ns: float, blink_ns: int, bridge_ns: int, codes: Codes
) -> None:
    edges = [0, *segments.ravel().tolist(), len(t)] if len(segments) else []
    for first, stop in zip(edges[0::2], edges[1::2], strict=True):
        if stop > first:
            inside = first > 0 and stop < len(t)
            lasted = float(t[stop] - t[first - 1]) if inside else (stop - first) * step_ns
            if bridge_ns < lasted <= blink_ns:
                codes[first:stop] = BLINK


def _bridged(axis: Floats, valid: Bools, segments: Ints) -> Floats:
    inside = np.zeros(len(axis) + 1, dtype=np.int64)
    np.add.at(inside, segments.ravel(), np.tile((1, -1), len(segments)))
    lost = np.flatnonzero((np.cumsum(inside[:-1]) > 0) & ~valid)
    if len(lost) == 0:
        return axis
    good = np.flatnonzero(valid)
    at = np.searchsorted(good, lost)
    before, after = good[at - 1], good[at]
    result = axis.copy()
    step = (axis[after] - axis[before]) * (lost - before) / (after - before)
    result[lost] = axis[before] + step
    return result


def runs(mask: Bools) -> list[tuple[int, int]]:
    """First and one past the last place of each run of True."""
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0)).tolist()
    return list(zip(edges[0::2], edges[1::2], strict=True))
