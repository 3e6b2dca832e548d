"""The online detector: onsets and ends of fixations, saccades and blinks while samples arrive.

It is the twin of `auto` (:mod:`gazeveil.events.auto.detector`) that sees the past only: a causal
network on the same numbers, which adapts to the noise of the stream as it goes. What it says is
about the grid sample `DELAY` before the newest one, 8 ms at 250 Hz. A saccade, its settling
included, begins where the network sees one with a probability above one half and ends where that
falls below 0.4. A fixation is all else, told once it has lasted 40 ms or has ended. Lost samples:
up to 75 ms (or one and a half steps) belong to what is running; longer ones are a `blink`, from 500
ms on the rest is `undefined`. A step in time of that length without samples closes the event before
it. A sample whose time does not come after the last valid one counts as lost, until that has gone
on for 500 ms: then the clock was set back, and the new one is believed.

Every edge is decided at most :attr:`OnlineDetector.latency_s` after the sample it belongs to. With
`pursuit=True` the end of a fixation says `pursuit` where the eye followed something; what it is
becomes known with its end, so its onset was told as `fixation`. The state is about 40 kB and can be
pickled. `detect(recording, "online")` pushes the whole recording at once; any other way of cutting
it into blocks gives the same events.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Singles
from gazeveil.errors import DataError
from gazeveil.events.auto.network import DELAY, Network, grid_factor, shipped
from gazeveil.events.online.kernel import LIMITS, close_stream, new_floats, new_state, push_samples
from gazeveil.events.online.streaming import new_memory, packed
from gazeveil.events.quality import SLOWEST_HZ, QualityWarning
from gazeveil.events.trace import BLINK_S, BRIDGE_S
from gazeveil.gaze.events import KINDS, WORD, Events
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording, set_back_samples

_REPORT_AFTER_S = 0.04


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
    pursuit : bool
        Whether the offset of a fixation says `pursuit` where it was one; needs 32 Hz.
    network : Network, optional
        Other weights than those that come with the package.

    Warns
    -----
    QualityWarning
        For `pursuit` below 32 Hz: none is told.

    Examples
    --------
    >>> detector = OnlineDetector(250.0, Screen(1680, 1050, 474, 297, 550))
    >>> x = np.r_[np.zeros(50), np.linspace(0, 8, 10), np.full(50, 8.0)]
    >>> edges = detector.push(np.arange(110) * 4_000_000, x, 0 * x) + detector.close()
    >>> [(e.kind, e.edge, e.index) for e in edges][:3]
    [('fixation', 'onset', 0), ('fixation', 'offset', 49), ('saccade', 'onset', 50)]
    """

    def __init__(
        self,
        rate_hz: float,
        space: Space | None = None,
        pursuit: bool = False,
        network: Network | None = None,
    ) -> None:
        owner = "OnlineDetector"
        self.rate_hz = checks.positive(owner, "rate_hz", rate_hz)
        self.space = Sphere() if space is None else space
        self._sphere = isinstance(self.space, Sphere)
        if not isinstance(self.space, Sphere | Screen):
            checks.refuse(owner, "space", "a Sphere or a Screen", space)
        if not isinstance(pursuit, bool):
            checks.refuse(owner, "pursuit", "True or False", pursuit)
        self._network = network
        self._weights = _shipped_weights() if network is None else packed(network)
        merge, split = grid_factor(self.rate_hz)
        bridge_s = max(BRIDGE_S, 1.5 / self.rate_hz)
        back = max(1, round(_REPORT_AFTER_S * self.rate_hz))
        # Lost samples between two valid ones.
        bridge = max(0, int(bridge_s * self.rate_hz + 1e-9) - 1)
        self._limits = np.zeros(LIMITS, dtype=np.int64)
        self._limits[:] = (
            back,
            bridge,
            max(bridge + 1, round(BLINK_S * self.rate_hz)),
            int(1e9 * bridge_s),
            int(1e9 * BLINK_S),
            set_back_samples(self.rate_hz),
            merge,
            split,
        )
        # A grid sample is whole with its last sample, and spoken of DELAY grid samples later.
        late = (DELAY + 1) * merge if merge > 1 else -(-DELAY // split) + 1
        self._longest_reach = bridge + back + late
        self._state = new_state()
        self._memory = new_memory(self.rate_hz * split / merge)
        # Slower streams show too little of a pursuit to tell it from trembling.
        told = pursuit and self.rate_hz >= SLOWEST_HZ
        if pursuit and not told:
            warnings.warn(
                f"{owner} tells no pursuit below {SLOWEST_HZ:.0f} Hz, and rate_hz is"
                f" {self.rate_hz:.4g}: what is followed is a fixation. Leave out pursuit=True to be"
                " rid of this warning.",
                QualityWarning,
                stacklevel=2,
            )
        self._floats = new_floats(self.rate_hz, told)
        # Times are kept as far back as an edge can lie.
        self._times = np.zeros(self._longest_reach + 8, dtype=np.int64)
        self._lost = np.zeros(self._longest_reach + 8, dtype=np.bool_)
        self._most_waiting = 6 * len(self._times) + 16
        self._closed = False

    def __getstate__(self) -> dict[str, object]:
        # The weights that come with the package are not sent along.
        return {k: v for k, v in vars(self).items() if k != "_weights"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        network = self._network
        self._weights = _shipped_weights() if network is None else packed(network)

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
        if isinstance(x_deg, float) and isinstance(y_deg, float) and isinstance(t_ns, int):
            # One sample, as a tracker gives it: half of the time went into looking at arrays.
            good = math.isfinite(x_deg) and math.isfinite(y_deg) and (valid is None or bool(valid))
            return self.push_arrays(
                np.array([t_ns], dtype=np.int64),
                np.array([x_deg]),
                np.array([y_deg]),
                np.array([good]),
            )
        t = np.array(t_ns, ndmin=1).astype(np.int64, copy=False)
        x, y = (np.array(axis, dtype=np.float64, ndmin=1) for axis in (x_deg, y_deg))
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
        """As :meth:`push_rows`, for arrays of these types and one length, without further checks. A
        good sample is a finite one.
        """
        if self._closed:
            raise DataError("This OnlineDetector is closed. Make a new one for the next recording.")
        # Each sample closes and opens at most three events, and so does each one that waits.
        edges = np.empty((6 * len(t_ns) + self._most_waiting, 4), dtype=np.int64)
        count = push_samples(
            t_ns,
            x_deg,
            y_deg,
            good,
            self._sphere,
            self._limits,
            self._state,
            self._floats,
            *self._memory,
            self._weights,
            self._times,
            self._lost,
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
        count = close_stream(self._state, self._floats, self._times, edges)
        return edges[:count]


@cache
def _shipped_weights() -> Singles:
    return packed(shipped("online"))


def detect_online(
    recording: Recording, pursuit: bool = False, network: Network | None = None
) -> Events:
    """The offline twin: the events an :class:`OnlineDetector` tells when it is given the whole
    recording. Where the rate is not known, all samples are `undefined`.
    """
    n = len(recording)
    known = bool(recording.rate_hz > 0)
    # Where no rate is known nothing is pushed, and any that needs no warning does.
    rate_hz = recording.rate_hz if known else SLOWEST_HZ
    detector = OnlineDetector(rate_hz, recording.space, pursuit, network)
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
