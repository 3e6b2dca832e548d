"""Protected gaze over ZeroMQ in Pupil's format, so that a client written for Pupil Capture connects
to the relay's port and needs no change.

A request port answers what clients ask Pupil Remote: `SUB_PORT`, `PUB_PORT`, `t` (the time of the
clock that timestamps are on) and `v` (Pupil's version). Everything else (starting recordings,
calibrations, setting the time) is answered with `Unknown command.`, as Pupil answers what it does
not know. What clients publish on PUB_PORT is thrown away.

A gaze message is written anew from five values and nothing of the tracker's message is copied:
`topic` (always the same one, because which eye was seen is not for clients), `norm_pos`,
`timestamp`, `confidence` (1 or 0) and a `base_data` with an entry for each eye, whose numbers are
all NaN. There are no pupil diameters, eye centres, gaze normals and 3-d points. With a surface, the
same places also go out as gaze on it: clients such as PsychoPy's plugin read that. Where a sample
is lost its confidence is 0 and `norm_pos` repeats the place released last: clients that forget to
look at the confidence see gaze that stands still, as with Pupil itself, and no NaN. No other
topic is passed on.
"""

from __future__ import annotations

import asyncio
import time

import numpy as np
import zmq
import zmq.asyncio

from gazeveil import checks
from gazeveil.errors import DataError, ParameterError
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.gaze.geometry import Screen
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.relay.picture import ImagePlane, picture_of
from gazeveil.relay.sink import OPEN, Sink
from gazeveil.relay.trackers.connecting import LOCAL, host_and_port, in_brackets
from gazeveil.relay.trackers.pupil import (
    PORT,
    PupilTracker,
    checked_surface,
    encode,
    encode_surface,
)

_MOST_QUESTION_BYTES = 1 << 16

#: Of a subscription.
_MOST_TOPIC_BYTES = 1 << 10


class PupilSink(Sink):
    """A port that answers like Pupil Remote, and a publisher of protected gaze.

    Parameters
    ----------
    place : str
        `host:port` of the request port; port 0 takes a free one, then :attr:`port` says which.
    topic : str
        Topic of every gaze message.
    surface : str
        Name of a surface that the screen is shown as; by default that of the tracker, if it reads
        one. The tracker's gaze must be on a screen.
    """

    def __init__(self, place: str, topic: str = "gaze.3d.01.", surface: str = "") -> None:
        super().__init__()
        self.host, self.port = host_and_port("pupil", place, PORT)
        if not isinstance(topic, str) or not topic.startswith("gaze."):
            checks.refuse("relay", "topic", "a gaze topic such as gaze.3d.01.", topic)
        self.topic = topic
        self.surface = checked_surface("relay", surface)
        self.sub_port = self.pub_port = 0
        self._last = (0.5, 0.5)
        self._picture: ImagePlane | None = None
        self._tracker: Tracker | None = None
        self._context: zmq.asyncio.Context | None = None
        self._plain = zmq.Context()
        self._bin: zmq.asyncio.Socket | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def seen_by(self) -> str:
        """Who gets the gaze beside this machine's users."""
        return "" if self.host in LOCAL else OPEN.format(host=self.host)

    async def start(
        self, tracker: Tracker, guarantee: Guarantee, rate_hz: float | None = None
    ) -> str:
        """Bind the ports and answer questions."""
        self._tracker = tracker
        if isinstance(tracker, PupilTracker):
            self.surface = self.surface or tracker.surface
        # a scene camera's picture is a Screen too
        on_screen = getattr(tracker, "on_screen", isinstance(tracker.space, Screen))
        if self.surface and not on_screen:
            raise ParameterError(
                "A surface shows gaze on a screen, and this tracker's is not on one. Name the"
                " screen with --screen, or leave ?surface= out.",
                name="surface",
                got=self.surface,
            )
        self._picture = picture_of(tracker)
        self._context = zmq.asyncio.Context()
        remote = self._context.socket(zmq.REP)
        remote.setsockopt(zmq.MAXMSGSIZE, _MOST_QUESTION_BYTES)
        # PUB sends at once or drops, so it needs no event loop
        self._publisher = self._plain.socket(zmq.PUB)
        # kept, or the port would close again, and another program could take it
        self._bin = bin_socket = self._context.socket(zmq.SUB)
        # without a limit any client can have memory allocated for a message of any size
        self._publisher.setsockopt(zmq.MAXMSGSIZE, _MOST_TOPIC_BYTES)
        bin_socket.setsockopt(zmq.MAXMSGSIZE, _MOST_QUESTION_BYTES)
        where = f"tcp://{in_brackets(self.host)}"
        try:
            for socket in (remote, self._publisher, bin_socket):
                socket.setsockopt(zmq.IPV6, int(":" in self.host))
            if self.port:
                remote.bind(f"{where}:{self.port}")
            else:
                self.port = remote.bind_to_random_port(where)
            self.sub_port = self._publisher.bind_to_random_port(where)
            self.pub_port = bin_socket.bind_to_random_port(where)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            self._plain.destroy(linger=0)
            raise DataError(
                f"The relay cannot listen on {self.host}:{self.port} ({error.strerror}). Choose"
                " another port with --out."
            ) from None
        self._task = asyncio.ensure_future(self._answer(remote))
        return f"pupil://{in_brackets(self.host)}:{self.port}"

    async def _answer(self, remote: zmq.asyncio.Socket) -> None:
        while True:
            frames: list[bytes] = await remote.recv_multipart()
            self.counts["questions"] += 1
            tracker = self._tracker if isinstance(self._tracker, PupilTracker) else None
            offset_s = tracker.offset_s if tracker else None
            now_s = time.time() if offset_s is None else time.monotonic() + offset_s
            question = frames[0][:64].decode("utf-8", "replace") if len(frames) == 1 else ""
            answers = {
                "SUB_PORT": str(self.sub_port),
                "PUB_PORT": str(self.pub_port),
                "v": (tracker.version if tracker else "") or "3.5.0",
                "t": repr(now_s),
            }
            await remote.send_string(answers.get(question, "Unknown command."))

    def send(self, samples: Block) -> None:
        """Publish one message for each sample."""
        assert self._picture is not None
        norm_x, norm_y = self._picture.norm(samples.x_deg, samples.y_deg)
        valid = samples.valid & np.isfinite(norm_x) & np.isfinite(norm_y)
        topic = self.topic.encode()
        sent = []
        for t, x, y, ok in zip(
            samples.t_ns.tolist(), norm_x.tolist(), norm_y.tolist(), valid.tolist(), strict=True
        ):
            if ok:
                self._last = (x, y)
            self._publisher.send_multipart((topic, encode(self.topic, t, *self._last, ok)))
            sent.append((t, *self._last, ok))
        if self.surface:
            # after the gaze messages that it names
            payload = encode_surface(self.surface, self.topic, sent)
            self._publisher.send_multipart((f"surfaces.{self.surface}".encode(), payload))
        self.counts["sent"] += len(samples)

    async def close(self) -> None:
        """Close the ports."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._context is not None:
            self._context.destroy(linger=0)
        self._plain.destroy(linger=200)
