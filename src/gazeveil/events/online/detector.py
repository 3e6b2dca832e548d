"""The online detector: onsets and ends of fixations, saccades and blinks while samples arrive.

It sees the past only. Speed is the distance between the mean of the last k samples and the mean of
the k before them, k samples being about 4 ms (one sample at low rates), and belongs to the first of
the later ones. A saccade begins where the speed rose above `onset_deg_s` on its way to
`peak_deg_s`, at most 40 ms back; it ends when the speed has been below `offset_deg_s` for `tail_ms`
(which belong to it), or after 200 ms. A fixation is all else, told once it has lasted 40 ms or has
ended. Lost samples: up to 75 ms (or one and a half steps) are bridged once the eye is back; longer
ones are a `blink`, from 500 ms on the rest is `undefined`. A step in time of that length without
samples closes the event before it. A sample whose time does not come after the last valid one
counts as lost, until that has gone on for 500 ms: then the clock was set back, and the new one is
believed.

Every edge is decided at most :attr:`OnlineDetector.latency_s` after the sample it belongs to: the
longest bridged gap, plus 40 ms, plus the samples of the speed. With `pursuit=True` the end of a
fixation says `pursuit` where the eye followed something (:mod:`gazeveil.events.online.following`);
what it is becomes known with its end, so its onset was told as `fixation`. The state is a few
hundred numbers and can be pickled. `detect(recording, "online")` pushes the whole recording at
once; any other way of cutting it into blocks gives the same events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import DataError
from gazeveil.events.online.following import way_of
from gazeveil.events.online.kernel import close_stream, new_state, push_samples
from gazeveil.events.trace import BLINK_S, BRIDGE_S
from gazeveil.gaze.events import KINDS, WORD, Events
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.validity import set_back_samples

_LOOK_BACK_S = 0.04
_LONGEST_SACCADE_S = 0.2


@dataclass(frozen=True)
class Edge:
    """The beginning or the end of an event.

    Parameters
    ----------
    kind : str
        A word of `gazeveil.gaze.events.KINDS`.
    edge : {"onset", "offset"}
        First or last sample.
    index : int
        That sample, counted from the first one pushed.
    t_ns : int
        Its time.
    decided : int
        The sample at which this became known.
    """

    kind: str
    edge: str
    index: int
    t_ns: int
    decided: int


class OnlineDetector:
    """Detects events in a stream.

    Parameters
    ----------
    rate_hz : float
        Nominal rate of the stream.
    space : Sphere or Screen
        What the degrees mean.
    peak_deg_s, onset_deg_s, offset_deg_s : float
        Speed a saccade must reach, begins at and ends below.
    tail_ms : float
        How long the speed must stay below `offset_deg_s`.
    pursuit : bool
        Whether the offset of a fixation says `pursuit` where it was one.

    Examples
    --------
    >>> detector = OnlineDetector(250.0, Screen(1680, 1050, 474, 297, 550))
    >>> x = np.r_[np.zeros(50), np.linspace(0, 8, 10), np.full(50, 8.0)]
    >>> edges = detector.push(np.arange(110) * 4_000_000, x, 0 * x) + detector.close()
    >>> [(e.kind, e.edge, e.index) for e in edges][:3]
    [('fixation', 'onset', 0), ('fixation', 'offset', 50), ('saccade', 'onset', 51)]
    """

    def __init__(
        self,
        rate_hz: float,
        space: Space | None = None,
        peak_deg_s: float = 73.0,
        onset_deg_s: float = 22.0,
        offset_deg_s: float = 24.0,
        tail_ms: float = 8.0,
        pursuit: bool = False,
    ) -> None:
        owner = "OnlineDetector"
        self.rate_hz = checks.positive(owner, "rate_hz", rate_hz)
        self.space = Sphere() if space is None else space
        self._sphere = isinstance(self.space, Sphere)
        if not isinstance(self.space, Sphere | Screen):
            checks.refuse(owner, "space", "a Sphere or a Screen", space)
        peak = checks.positive(owner, "peak_deg_s", peak_deg_s)
        onset = checks.positive(owner, "onset_deg_s", onset_deg_s)
        offset = checks.positive(owner, "offset_deg_s", offset_deg_s)
        if peak < max(onset, offset):
            checks.refuse(owner, "peak_deg_s", "at least onset_deg_s and offset_deg_s", peak_deg_s)
        tail = max(1, round(checks.not_negative(owner, "tail_ms", tail_ms) * self.rate_hz / 1000))
        k = max(1, round(0.004 * self.rate_hz))
        bridge_s = max(BRIDGE_S, 1.5 / self.rate_hz)
        back = max(1, round(_LOOK_BACK_S * self.rate_hz))
        bridge = max(
            0, int(bridge_s * self.rate_hz + 1e-9) - 1
        )  # lost samples between two valid ones
        self._speeds = np.array([peak, onset, offset, self.rate_hz])
        self._limits = np.array(
            [
                k,
                back,
                tail,
                max(1, round(_LONGEST_SACCADE_S * self.rate_hz)),
                bridge,
                max(bridge + 1, round(BLINK_S * self.rate_hz)),
                int(1e9 * bridge_s),
                int(1e9 * BLINK_S),
                set_back_samples(self.rate_hz),
            ],
            dtype=np.int64,
        )
        self._state = new_state()
        self._points = np.zeros((2 * k, 3))
        self._place = np.zeros(3)
        # Times are kept as far back as an edge can lie, also over the longest lost run before it is
        # told.
        reach = bridge + back + tail + 2 * k + 8
        self._times = np.zeros(reach, dtype=np.int64)
        self._seen_ns = np.zeros(1, dtype=np.int64)
        # An end lies at most so far behind the newest sample that went through the filter.
        self._way = way_of(self.rate_hz, back + k) if pursuit else np.zeros((0, 3))
        self._longest_reach = bridge + back + tail + k
        self._closed = False

    @property
    def latency_s(self) -> float:
        """The longest time between a sample and the decision that an event begins or ends there, at
        the nominal rate.
        """
        return float(self._longest_reach) / self.rate_hz

    def push(
        self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike | None = None
    ) -> tuple[Edge, ...]:
        """Take samples in, give the edges decided by now.

        Parameters
        ----------
        t_ns, x_deg, y_deg : scalar or array, equal lengths
            Times and gaze.
        valid : bool or array of bool, optional
            Default: where x and y are finite. A sample that is not finite is lost whatever this
            says.
        """
        return _to_edges(self.push_rows(t_ns, x_deg, y_deg, valid))

    def push_rows(
        self, t_ns: ArrayLike, x_deg: ArrayLike, y_deg: ArrayLike, valid: ArrayLike | None = None
    ) -> Ints:
        """As :meth:`push`, for those who have no time for objects.

        Returns
        -------
        array of int64, shape (edges, 4)
            Place of the kind in `KINDS` times two, plus one for an offset; index; time; the sample
            at which it became known.
        """
        if self._closed:
            raise DataError("This OnlineDetector is closed. Make a new one for the next recording.")
        t = np.atleast_1d(np.asarray(t_ns)).astype(np.int64)
        x, y = (
            np.atleast_1d(np.asarray(x_deg, dtype=np.float64)),
            np.atleast_1d(np.asarray(y_deg, dtype=np.float64)),
        )
        mask = (
            np.isfinite(x) & np.isfinite(y) if x.shape == y.shape else np.zeros(0, dtype=np.bool_)
        )
        if valid is not None:
            flags = np.atleast_1d(np.asarray(valid, dtype=np.bool_))
            mask = mask & flags if flags.shape == mask.shape else np.zeros(0, dtype=np.bool_)
        if not (t.ndim == 1 and t.shape == x.shape == y.shape == mask.shape):
            raise DataError("OnlineDetector.push needs t_ns, x_deg, y_deg and valid of one length.")
        return self.push_arrays(t, x, y, mask)

    def push_arrays(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, good: Bools) -> Ints:
        """As :meth:`push_rows`, for arrays of these types and one length that nobody has to look at
        again; a good sample is a finite one.
        """
        if self._closed:
            raise DataError("This OnlineDetector is closed. Make a new one for the next recording.")
        # Each sample closes and opens at most three events; those that wait for the eye to come
        # back are pushed with it.
        edges = np.empty((6 * (len(t_ns) + len(self._times)) + 16, 4), dtype=np.int64)
        count = push_samples(
            t_ns,
            x_deg,
            y_deg,
            good,
            self._sphere,
            self._speeds,
            self._limits,
            self._state,
            self._points,
            self._place,
            self._times,
            self._seen_ns,
            self._way,
            edges,
        )
        return edges[:count]

    def close(self) -> tuple[Edge, ...]:
        """End the stream: give the edges that were still open. Nothing can be pushed afterwards."""
        return _to_edges(self.close_rows())

    def close_rows(self) -> Ints:
        """As :meth:`close`, with rows as :meth:`push_rows` gives them."""
        edges = np.empty((8, 4), dtype=np.int64)
        if self._closed:
            return edges[:0]
        self._closed = True
        count = close_stream(self._speeds, self._state, self._times, self._way, edges)
        return edges[:count]


def detect_online(
    recording: Recording,
    peak_deg_s: float = 73.0,
    onset_deg_s: float = 22.0,
    offset_deg_s: float = 24.0,
    tail_ms: float = 8.0,
    pursuit: bool = False,
) -> Events:
    """The offline twin: the events an :class:`OnlineDetector` tells when it is given the whole
    recording.

    Parameters
    ----------
    recording : Recording
        Any space and rate. Where the rate is not known, all samples are `undefined`.
    peak_deg_s, onset_deg_s, offset_deg_s, tail_ms, pursuit
        As :class:`OnlineDetector` takes them.
    """
    n = len(recording)
    known = bool(recording.rate_hz > 0)
    detector = OnlineDetector(
        recording.rate_hz if known else 1.0,
        recording.space,
        peak_deg_s,
        onset_deg_s,
        offset_deg_s,
        tail_ms,
        pursuit,
    )
    if n == 0:
        return Events.empty("online")
    if not known:
        return Events.from_words(
            np.full(n, "undefined", dtype=WORD), recording.t_ns, source="online"
        )
    return gather(
        detector.push(recording.t_ns, recording.x_deg, recording.y_deg, recording.valid)
        + detector.close()
    )


def gather(edges: tuple[Edge, ...]) -> Events:
    """Events from all edges of a closed detector; onsets and offsets take turns, and the offset
    knows what it was.
    """
    starts, ends = edges[0::2], edges[1::2]
    kind = np.array([e.kind for e in ends], dtype=WORD)
    onset, offset = (np.array([e.index for e in side], dtype=np.int64) for side in (starts, ends))
    onset_ns, offset_ns = (
        np.array([e.t_ns for e in side], dtype=np.int64) for side in (starts, ends)
    )
    return Events(kind, onset, offset, onset_ns, np.maximum(onset_ns, offset_ns), source="online")


def _to_edges(rows: Ints) -> tuple[Edge, ...]:
    # A row is (code and side, index, time, decided at).
    return tuple(
        Edge(KINDS[side // 2], "offset" if side % 2 else "onset", i, t, d)
        for side, i, t, d in rows.tolist()
    )
