"""Protected gaze over the Lab Streaming Layer: a stream that describes itself as the one that came
in does, with the same channels, rate, number format, units, types and manufacturer.

Places are protected and stand in the columns of every eye, the confidence is 1 or 0, and every
other channel (pupil diameters, eye centres, 3-d points) is NaN, so that clients find the columns
they expect. Lost samples are NaN. `pylsl` and liblsl are optional
(:mod:`gazeveil.relay.trackers.lsl`).

LSL shows every stream to everybody on the network: the raw stream must stay on a network of its own
(the KnownPeers and SessionID settings of LSL), or clients find it beside the protected one.
"""

from __future__ import annotations

from typing import Any

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.relay.picture import ImagePlane, picture_of
from gazeveil.relay.sink import Sink
from gazeveil.relay.trackers.lsl.columns import (
    GazeColumns,
    StreamChannel,
    StreamDescription,
    find_columns,
    write_description,
)
from gazeveil.relay.trackers.lsl.tracker import SOURCE, LSLTracker, load_pylsl

#: What a stream of gaze that came over another protocol says of itself.
PLAIN = StreamDescription(
    name="",
    type="Gaze",
    rate_hz=0.0,
    double=True,
    manufacturer="",
    model="",
    channels=(
        StreamChannel("confidence", "normalized", "confidence"),
        StreamChannel("norm_pos_x", "normalized", "eyegaze", "both", "ScreenX"),
        StreamChannel("norm_pos_y", "normalized", "eyegaze", "both", "ScreenY"),
    ),
)


class LSLSink(Sink):
    """A stream of protected gaze.

    Parameters
    ----------
    place : str
        Name of the stream; it must not be that of the raw one.
    """

    def __init__(self, place: str = "gazeveil") -> None:
        super().__init__()
        self._pylsl = load_pylsl()
        self.name = place or "gazeveil"
        self._tracker: Tracker | None = None
        self._picture: ImagePlane | None = None
        self._rate_hz = 0.0
        self._outlet: Any = None
        self._columns: GazeColumns | None = None
        self._channels = 0

    @property
    def seen_by(self) -> str:
        """LSL has no ports of one machine alone."""
        return "LSL shows the protected stream to everybody on the network."

    async def start(
        self, tracker: Tracker, guarantee: Guarantee, rate_hz: float | None = None
    ) -> str:
        """Open the stream, or, where the channels of the raw one are not known yet, remember where
        gaze comes from: then it appears with the first samples.
        """
        if isinstance(tracker, LSLTracker) and tracker.stream == self.name:
            raise ParameterError(
                f"The protected stream needs another name than the raw one, '{self.name}'. Write"
                " --out lsl:NAME.",
                name="out",
                got=self.name,
            )
        self._tracker = tracker
        self._rate_hz = rate_hz or tracker.rate_hz
        self._picture = picture_of(tracker)
        if not isinstance(tracker, LSLTracker) or tracker.columns is not None:
            self._open()
        return f"lsl:{self.name}"

    def _open(self) -> None:
        """Open a stream that describes itself as the raw one does, except for its name, its source
        and the rate.
        """
        raw, columns = PLAIN, None
        if isinstance(self._tracker, LSLTracker):
            assert self._tracker.description is not None
            raw, columns = self._tracker.description, self._tracker.columns
        self._columns = columns or find_columns(raw.channels, None, 0.5)
        self._channels = len(raw.channels)
        info = self._pylsl.StreamInfo(
            self.name,
            raw.type,
            self._channels,
            self._rate_hz,
            self._pylsl.cf_double64 if raw.double else self._pylsl.cf_float32,
            f"{SOURCE}-{self.name}",
        )
        write_description(info, raw)
        self._outlet = self._pylsl.StreamOutlet(info)

    def send(self, samples: Block) -> None:
        """Push one row for each sample."""
        if self._outlet is None:
            self._open()
        assert self._picture is not None
        assert self._columns is not None
        rows = self._columns.rows(
            self._channels, samples.x_deg, samples.y_deg, samples.valid, self._picture
        )
        for t, row in zip(samples.t_ns.tolist(), rows.tolist(), strict=True):
            self._outlet.push_sample(row, t / 1e9)
        self.counts["sent"] += len(samples)

    async def close(self) -> None:
        """Let the stream go."""
        self._outlet = None
