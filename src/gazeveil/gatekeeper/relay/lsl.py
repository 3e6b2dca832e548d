"""Protected gaze over the Lab Streaming Layer: a stream of type Gaze with the same channel labels
as the one that came in.

Places are protected, the confidence is 1 or 0, and every other channel (pupil diameters, eye
centres, 3-d points) is NaN, so that clients find the columns they expect. Lost samples are NaN.
`pylsl` and liblsl are optional (:mod:`gazeveil.gatekeeper.trackers.lsl`).

LSL shows every stream to everybody on the network: the raw stream must stay on a network of its own
(the KnownPeers and SessionID settings of LSL), or clients find it beside the protected one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.relay.sink import Sink
from gazeveil.gatekeeper.trackers.lsl import SOURCE, LSLTracker, load_pylsl
from gazeveil.gatekeeper.trackers.pupil import PupilTracker
from gazeveil.gatekeeper.trackers.pupil_format import ImagePlane, picture_of
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.privacy.guarantee import Guarantee

#: Channels where the input has no labels of its own.
LABELS = ("confidence", "norm_pos_x", "norm_pos_y")


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
        self._outlet: Any = None
        self._labels: list[str] = []

    async def start(self, tracker: Tracker, guarantee: Guarantee) -> str:
        """Remember where gaze comes from; the stream appears with the first samples, when its
        channels are known.
        """
        if isinstance(tracker, LSLTracker) and tracker.stream == self.name:
            raise ParameterError(
                f"The protected stream needs another name than the raw one, '{self.name}'. Write"
                " --out lsl:NAME.",
                name="out",
                got=self.name,
            )
        self._tracker = tracker
        self._picture = (
            tracker.picture
            if isinstance(tracker, PupilTracker | LSLTracker)
            else picture_of(tracker.space)
        )
        return f"lsl:{self.name}"

    def _open(self) -> None:
        assert self._tracker is not None
        self._labels = list(
            self._tracker.labels if isinstance(self._tracker, LSLTracker) else LABELS
        )
        info = self._pylsl.StreamInfo(
            self.name,
            "Gaze",
            len(self._labels),
            self._pylsl.IRREGULAR_RATE,
            self._pylsl.cf_double64,
            f"{SOURCE}-{self.name}",
        )
        channels = info.desc().append_child("channels")
        for label in self._labels:
            channels.append_child("channel").append_child_value("label", label)
        self._outlet = self._pylsl.StreamOutlet(info)

    def send(self, samples: Block) -> None:
        """Push one row for each sample."""
        if self._outlet is None:
            self._open()
        assert self._picture is not None
        norm_x, norm_y = self._picture.norm(samples.x_deg, samples.y_deg)
        # a stream in degrees has no picture to leave
        in_picture = "norm_pos_x" in self._labels
        valid = samples.valid & (np.isfinite(norm_x) & np.isfinite(norm_y) if in_picture else True)
        truth = valid.astype(np.float64)
        known = {
            "norm_pos_x": norm_x,
            "norm_pos_y": norm_y,
            "x_deg": samples.x_deg,
            "y_deg": samples.y_deg,
        }
        columns = {name: np.where(valid, values, np.nan) for name, values in known.items()} | {
            "confidence": truth,
            "valid": truth,
        }
        nothing = np.full(len(samples), np.nan)
        rows = np.stack([columns.get(label, nothing) for label in self._labels], axis=1)
        for t, row in zip(samples.t_ns.tolist(), rows.tolist(), strict=True):
            self._outlet.push_sample(row, t / 1e9)
        self.counts["sent"] += len(samples)

    async def close(self) -> None:
        """Let the stream go."""
        self._outlet = None
