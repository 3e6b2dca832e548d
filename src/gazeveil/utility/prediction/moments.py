"""Moments of a recording: what of the release is known at each, and where raw gaze was then.

Geometry. Everything is measured in the plane that touches the sphere of directions at the newest
released sample (angle and bearing kept), axes right and down, so that there is no seam and no pole;
a screen is a part of that sphere.

Rates. The past is read at 50 equally spaced moments, each holding the newest released sample of
that time: a stream of fewer samples per second is held, nothing is interpolated into it. Raw gaze
between two samples is interpolated. A moment counts if the newest released sample is at most 75 ms
old (or 1.5 samples, where that is more), there is a sample before the whole past, and raw gaze is
known on both sides of the target within the same limit. A released sample is known at the time of
the raw sample it stands for, whatever its own time says, as in a live stream; only where a release
has neither every sample nor every K-th of the recording do its own times count.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.gaze.recording import Recording

#: Moments at which the past is read.
LAGS = 50

#: How old the newest sample may be.
LONGEST_GAP_S = 0.075


@dataclass(frozen=True, eq=False)
class Moments:
    """What is known at some moments of one recording, and what came.

    Parameters
    ----------
    past_deg : array of float64, shape (moments, lags, 2)
        The released gaze, newest first, right and down of the newest one (which is therefore 0).
    now : array of float64, shape (moments, 3)
        The newest released gaze as unit vectors.
    truth : array of float64, shape (moments, 3)
        The raw gaze to be told, as unit vectors.
    now_ns : array of int64, shape (moments,)
        When they are, by the clock of the recording.
    """

    past_deg: Floats
    now: Floats
    truth: Floats
    now_ns: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.now)

    def where(self, rows: Ints) -> Moments:
        """Some of the moments."""
        return Moments(self.past_deg[rows], self.now[rows], self.truth[rows], self.now_ns[rows])

    def went_deg(self) -> Floats:
        """Where gaze went, in degrees right and down of the newest sample, shape (moments, 2)."""
        return to_plane(self.now, self.truth[:, None, :])[:, 0]


def moments_of(
    recorded: Recording, release: Recording, horizon_s: float, past_s: float, every_s: float
) -> Moments:
    """The moments of one recording at which something can be told and checked."""
    t, v = _known(recorded, recorded.t_ns)
    s, u = _known(release, arrivals(recorded, release))
    none = Moments(np.empty((0, LAGS, 2)), np.empty((0, 3)), np.empty((0, 3)))
    if len(t) < 2 or len(s) == 0:
        return none
    first, last = int(t[0]) + round(past_s * 1e9), int(t[-1]) - round(horizon_s * 1e9)
    if last < first:
        return none
    now = np.arange(first, last + 1, max(1, round(every_s * 1e9)))
    moments = lag_times_ns(now, past_s)
    held = np.searchsorted(s, moments, side="right") - 1
    ok = (held[:, -1] >= 0) & (now - s[np.maximum(held[:, 0], 0)] <= gap_ns(release))
    target = now + round(horizon_s * 1e9)
    after = np.minimum(np.searchsorted(t, target, side="left"), len(t) - 1)
    before = np.where(t[after] == target, after, np.maximum(after - 1, 0))
    ok &= t[after] - t[before] <= gap_ns(recorded)
    if not ok.any():
        return none
    held, target, after, before = held[ok], target[ok], after[ok], before[ok]
    share = ((target - t[before]) / np.maximum(t[after] - t[before], 1))[:, None]
    truth = v[before] * (1.0 - share) + v[after] * share
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    newest = u[held[:, 0]]
    return Moments(to_plane(newest, u[held]), newest, truth, now[ok])


def lag_times_ns(now_ns: Ints, past_s: float) -> Ints:
    """The times at which the past of some moments is read, newest first; shape (moments, lags)."""
    back_ns = np.round(np.arange(LAGS) * (past_s * 1e9 / LAGS)).astype(np.int64)
    return np.asarray(now_ns[:, None] - back_ns[None, :])


def _known(recording: Recording, t_ns: Ints) -> tuple[Ints, Floats]:
    """Times and unit vectors of the valid samples."""
    valid = recording.valid
    return t_ns[valid], recording.space.vectors(
        recording.x_deg[valid], recording.y_deg[valid]
    ).reshape(-1, 3)


def arrivals(recorded: Recording, release: Recording) -> Ints:
    """When each released sample is known, never decreasing."""
    stride = -(-len(recorded) // max(len(release), 1))
    if len(recorded) == 0 or -(-len(recorded) // stride) != len(release):
        # A release on a public clock begins at 0, whenever the recording did.
        on_clock = len(recorded) > 0 and len(release) > 0 and release.t_ns[0] == 0
        begin = recorded.t_ns[0] if on_clock else np.int64(0)
        return np.maximum.accumulate(release.t_ns + begin)
    t = recorded.t_ns
    if (np.diff(t) < 0).any():
        # Lost samples may carry wild times: they count as known when the next good one came, so
        # that nothing is known too early.
        t = np.minimum.accumulate(np.where(recorded.valid, t, np.iinfo(np.int64).max)[::-1])[::-1]
    return t[::stride]


def gap_ns(recording: Recording) -> float:
    """How old the newest sample may be, in nanoseconds."""
    return 1e9 * max(LONGEST_GAP_S, 1.5 / recording.rate_hz if recording.rate_hz > 0 else 0.0)


def _axes(centre: Floats) -> tuple[Floats, Floats]:
    """Right and down at each direction; at a pole right is x."""
    flat = np.hypot(centre[:, 0], centre[:, 2])
    pole = flat < 1e-12
    safe = np.where(pole, 1.0, flat)
    right = np.stack(
        (
            np.where(pole, 1.0, centre[:, 2] / safe),
            np.zeros(len(centre)),
            np.where(pole, 0.0, -centre[:, 0] / safe),
        ),
        axis=1,
    )
    return right, np.cross(right, centre)


def to_plane(centre: Floats, directions: Floats) -> Floats:
    """Directions (n, m, 3) as degrees right and down of centres (n, 3), shape (n, m, 2): angle and
    bearing are kept.
    """
    right, down = _axes(centre)
    across = np.stack(
        (np.einsum("nmk,nk->nm", directions, right), np.einsum("nmk,nk->nm", directions, down)),
        axis=2,
    )
    sine = np.linalg.norm(across, axis=2)
    angle = np.degrees(np.arctan2(sine, np.einsum("nmk,nk->nm", directions, centre)))
    # Near 0 the ratio is 180 / pi; a direction opposite the centre has no bearing and gets none.
    scale = np.where(sine > 1e-12, angle / np.where(sine > 1e-12, sine, 1.0), np.degrees(1.0))
    return across * scale[:, :, None]


def from_plane(centre: Floats, offsets_deg: Floats) -> Floats:
    """Unit vectors (n, 3) of offsets (n, 2) in degrees right and down of centres: the way back from
    :func:`to_plane`.
    """
    right, down = _axes(centre)
    angle = np.radians(np.linalg.norm(offsets_deg, axis=1))[:, None]
    heading = np.radians(offsets_deg[:, :1]) * right + np.radians(offsets_deg[:, 1:]) * down
    return np.cos(angle) * centre + np.sinc(angle / np.pi) * heading
