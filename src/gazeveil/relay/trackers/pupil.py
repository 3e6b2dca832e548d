"""Pupil Core over ZeroMQ: ask Pupil Remote (port 50020) for its SUB_PORT, then subscribe to the
gaze topics.

A Pupil that is started again has another SUB_PORT, so after a silence the whole handshake is made
anew, with back-off. What the positions mean in degrees is told in
:mod:`gazeveil.relay.picture`. Pupil's binocular mapper sends `gaze.3d.01.` when
it sees both eyes and `gaze.3d.0.` or `gaze.3d.1.` when it sees one; all are one stream here. A pair
of monocular mappers sends each eye for itself at full rate: name one eye with `topic`, or say the
rate of both together.

Pupil's messages over ZeroMQ: msgpack maps with `norm_pos`, `confidence` and `timestamp`, of gaze
in the scene camera's picture and of gaze on a surface.

What `norm_pos` means in degrees is told in :mod:`gazeveil.relay.picture`.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import TypeAlias

import msgpack  # type: ignore[import-untyped]
import numpy as np
import zmq
import zmq.asyncio

from gazeveil import checks
from gazeveil.errors import DataError, ParameterError
from gazeveil.gatekeeper.blocks import MOST_BYTES, Block, block
from gazeveil.gatekeeper.trackers.tracker import LOG
from gazeveil.relay.picture import MIN_CONFIDENCE, ImagePlane, picture_for, screen_of
from gazeveil.relay.trackers.connecting import ReconnectingTracker, host_and_port, in_brackets

#: Whole nanoseconds of a time in seconds fit in 63 bits below this.
_MOST_S = 4.0e9

#: Time (ns), norm_x, norm_y and confidence of one sample of Pupil.
PupilSample: TypeAlias = tuple[int, float, float, float]

_NO_PLACE = [math.nan, math.nan]
_NO_POINT = [math.nan, math.nan, math.nan]

#: A surface that is the picture itself.
_SAME = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def decode(payload: bytes) -> PupilSample:
    """Time (ns), norm_x, norm_y and confidence of a gaze message; NaN where the message has no
    number.

    Raises
    ------
    DataError
        For bytes that are no such message. The sentence holds nothing of it.
    """
    return _sample(_message(payload))


def decode_surface(payload: bytes) -> list[PupilSample]:
    """The samples of a surface message, in the order of their times.

    Raises
    ------
    DataError
        For bytes that are no such message. The sentence holds nothing of it.
    """
    places = _message(payload).get("gaze_on_surfaces")
    if not isinstance(places, list) or not all(isinstance(place, dict) for place in places):
        raise DataError("A surface message has a list 'gaze_on_surfaces'; this one has none.")
    return sorted(map(_sample, places), key=lambda sample: sample[0])


def encode(topic: str, t_ns: int, norm_x: float, norm_y: float, valid: bool) -> bytes:
    """A gaze message that holds nothing but what is given: the keys a client of Pupil's expects.
    Its `base_data` has one entry for each eye, because clients look there for the eyes that were
    seen; all their numbers are NaN.
    """
    t_s, sure = t_ns / 1e9, 1.0 if valid else 0.0
    return msgpack.packb(
        {
            "topic": topic,
            "norm_pos": [norm_x, norm_y],
            "confidence": sure,
            "timestamp": t_s,
            "base_data": [_eye(eye, t_s, sure) for eye in (0, 1)],
        },
        use_bin_type=True,
    )


def encode_surface(
    surface: str, gaze_topic: str, samples: Sequence[tuple[int, float, float, bool]]
) -> bytes:
    """A surface message of samples (time in ns, norm_x, norm_y, whether there is gaze) that went
    out as gaze messages before. The surface is the picture itself, so its transforms are those
    that change nothing: the real ones would tell how the head moved.
    """
    topic, latest_s = f"surfaces.{surface}", samples[-1][0] / 1e9
    return msgpack.packb(
        {
            "topic": topic,
            "name": surface,
            "timestamp": latest_s,
            "surf_to_img_trans": _SAME,
            "img_to_surf_trans": _SAME,
            "surf_to_dist_img_trans": _SAME,
            "dist_img_to_surf_trans": _SAME,
            "gaze_on_surfaces": [
                {
                    "topic": f"{gaze_topic}_on_surface",
                    "norm_pos": [x, y],
                    "confidence": 1.0 if valid else 0.0,
                    "on_surf": bool(valid and 0.0 <= x <= 1.0 and 0.0 <= y <= 1.0),
                    "base_data": [gaze_topic, t_ns / 1e9],
                    "timestamp": t_ns / 1e9,
                }
                for t_ns, x, y, valid in samples
            ],
            "fixations_on_surfaces": [],
        },
        use_bin_type=True,
    )


def _eye(eye: int, t_s: float, sure: float) -> dict[str, object]:
    """A pupil datum without a number of the eye."""
    return {
        "id": eye,
        "topic": f"pupil.{eye}.3d",
        "method": "not told",
        "norm_pos": _NO_PLACE,
        "diameter": math.nan,
        "diameter_3d": math.nan,
        "confidence": sure,
        "timestamp": t_s,
        "ellipse": {"center": _NO_PLACE, "axes": _NO_PLACE, "angle": math.nan},
        "sphere": {"center": _NO_POINT, "radius": math.nan},
        "circle_3d": {"center": _NO_POINT, "normal": _NO_POINT, "radius": math.nan},
        "theta": math.nan,
        "phi": math.nan,
    }


def _message(payload: bytes) -> dict[object, object]:
    if len(payload) > MOST_BYTES:
        raise DataError(f"A message has at most {MOST_BYTES} bytes.")
    try:
        # The C decoder has a stack of its own and refuses deep nesting; the one in Python turns its
        # RecursionError into the same.
        message = msgpack.unpackb(payload, raw=False, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, OverflowError, msgpack.UnpackException):
        raise DataError("A gaze message is a msgpack map; this one is not.") from None
    if not isinstance(message, dict):
        raise DataError("A gaze message is a msgpack map; this one is not.")
    return message


def _sample(message: dict[object, object]) -> PupilSample:
    t = _number(message.get("timestamp"))
    if not abs(t) < _MOST_S:
        raise DataError("A gaze message has a 'timestamp' in seconds; this one has none.")
    place = message.get("norm_pos")
    if not isinstance(place, list) or len(place) != 2:
        raise DataError("A gaze message has a 'norm_pos' of two numbers; this one has none.")
    return round(t * 1e9), _number(place[0]), _number(place[1]), _number(message.get("confidence"))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


#: Port of Pupil Remote.
PORT = 50020

_SLICE_MS = 100
_MOST_AT_ONCE = 256


class PupilTracker(ReconnectingTracker):
    """Gaze of Pupil Capture or Pupil Service.

    Parameters
    ----------
    place : str
        `host:port` of Pupil Remote.
    rate_hz : float
        Nominal rate of its gaze.
    screen : Screen or five numbers, optional
        Where `norm_pos` is a fraction of a real screen; otherwise it is one of the scene camera's
        picture.
    width_px, height_px, focal_px : float
        The scene camera.
    sphere : bool
        Whether directions of the scene camera are those of a sphere around the head, instead of a
        screen.
    min_confidence : float
        Samples below it are lost.
    topic : str
        Beginning of the topics to take.
    surface : str
        Name of a surface: its gaze is taken instead, as fractions of the screen, which must be
        named.
    silence_s : float
        A tracker that sends no gaze for so long has vanished.
    answer_s : float
        How long Pupil Remote may take to answer.
    """

    picture: ImagePlane

    def __init__(
        self,
        place: str = f"127.0.0.1:{PORT}",
        rate_hz: float = 120.0,
        screen: object = None,
        width_px: float = 1280.0,
        height_px: float = 720.0,
        focal_px: float = 829.0,
        sphere: bool = False,
        min_confidence: float = MIN_CONFIDENCE,
        topic: str = "gaze.",
        surface: str = "",
        silence_s: float = 2.0,
        answer_s: float = 1.0,
    ) -> None:
        super().__init__()
        self.name = "pupil"
        self.host, self.port = host_and_port("pupil", place, PORT)
        self.rate_hz = checks.positive("pupil tracker", "rate_hz", rate_hz)
        known = screen_of("pupil tracker", screen)
        camera = [
            checks.positive("pupil tracker", n, v)
            for n, v in (("width_px", width_px), ("height_px", height_px), ("focal_px", focal_px))
        ]
        self.picture = picture_for(known, sphere, *camera)
        self.space = self.picture.space
        self._least = checks.not_negative("pupil tracker", "min_confidence", min_confidence)
        if not isinstance(topic, str) or not topic.startswith("gaze"):
            checks.refuse(
                "pupil tracker", "topic", "the beginning of a gaze topic, e.g. gaze.3d.01.", topic
            )
        self.surface = checked_surface("pupil tracker", surface)
        #: Whether places are fractions of a real screen, not of the scene camera's picture.
        self.on_screen = known is not None
        if self.surface and not self.on_screen:
            raise ParameterError(
                "Gaze on a surface is a fraction of it, so its size and distance are needed. Name"
                " them with --screen, e.g. 1920x1080px,530x300mm,600mm.",
                name="screen",
                got=None,
            )
        self._topic = f"surfaces.{self.surface}".encode() if self.surface else topic.encode()
        self._silence_s = checks.positive("pupil tracker", "silence_s", silence_s)
        self._answer_s = checks.positive("pupil tracker", "answer_s", answer_s)
        #: Pupil's time minus this machine's monotonic clock, in seconds; known once connected.
        self.offset_s: float | None = None
        #: What Pupil says its version is; known once connected.
        self.version = ""

    async def connection(self) -> AsyncGenerator[Block | None, None]:
        """Gaze as it comes, until it is silent."""
        context = zmq.asyncio.Context()
        try:
            socket = await self._connect(context)
            if socket is not None:
                async for part in self._listen(socket):
                    yield part
        finally:
            context.destroy(linger=0)

    async def _connect(self, context: zmq.asyncio.Context) -> zmq.asyncio.Socket | None:
        """Perform the handshake; return None without an answer."""
        remote = context.socket(zmq.REQ)
        remote.setsockopt(zmq.MAXMSGSIZE, MOST_BYTES)
        host = in_brackets(self.host)
        try:
            remote.setsockopt(zmq.IPV6, int(":" in self.host))
            remote.connect(f"tcp://{host}:{self.port}")
            port = await self._ask(remote, "SUB_PORT")
            if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
                self.malformed("the answer to SUB_PORT is not a port")
                return None
            before = time.monotonic()
            try:
                self.offset_s = (
                    float(await self._ask(remote, "t")) - (before + time.monotonic()) / 2
                )
            except ValueError:
                self.malformed("the answer to t is not a time")
            self.version = (await self._ask(remote, "v"))[:64]
        except (TimeoutError, zmq.ZMQError):
            LOG.info("pupil: nobody answers")
            return None
        finally:
            remote.close(linger=0)
        socket = context.socket(zmq.SUB)
        socket.setsockopt(zmq.MAXMSGSIZE, MOST_BYTES)
        socket.setsockopt(zmq.IPV6, int(":" in self.host))
        socket.setsockopt(zmq.SUBSCRIBE, self._topic)
        socket.connect(f"tcp://{host}:{port}")
        return socket

    async def _ask(self, remote: zmq.asyncio.Socket, question: str) -> str:
        async with asyncio.timeout(self._answer_s):
            await remote.send(question.encode())
            answer: list[bytes] = await remote.recv_multipart()
        return answer[0].decode("utf-8", "replace") if answer else ""

    async def _listen(self, socket: zmq.asyncio.Socket) -> AsyncIterator[Block]:
        """Blocks of gaze until it is silent."""
        last = time.monotonic()
        while not self._closing and time.monotonic() - last < self._silence_s:
            if not await socket.poll(_SLICE_MS):
                continue
            decoded: list[PupilSample] = []
            for _ in range(_MOST_AT_ONCE):
                if not await socket.poll(0):
                    break
                frames: list[bytes] = await socket.recv_multipart()
                # one surface's name may begin another's
                taken = (
                    frames[0] == self._topic if self.surface else frames[0].startswith(self._topic)
                )
                if not taken:
                    continue
                try:
                    if len(frames) != 2:
                        raise DataError(
                            "a gaze message has two frames; this one has another number of them"
                        )
                    if self.surface:
                        decoded += decode_surface(frames[1])
                    else:
                        decoded.append(decode(frames[1]))
                except DataError as error:
                    self.malformed(str(error))
            if decoded:
                last = time.monotonic()
                self.counts["samples"] += len(decoded)
                t, norm_x, norm_y, confidence = (
                    np.array(column) for column in zip(*decoded, strict=True)
                )
                x, y = self.picture.degrees(norm_x, norm_y)
                yield block(t.astype(np.int64), x, y, confidence >= self._least)


def checked_surface(owner: str, surface: object) -> str:
    """A name that a surface of Pupil may have; empty for none.

    Examples
    --------
    >>> checked_surface("pupil tracker", "psychopy_iohub_surface")
    'psychopy_iohub_surface'
    """
    text = str(surface)
    if not re.fullmatch(r"[\w .-]{0,64}", text):
        checks.refuse(
            owner, "surface", "up to 64 letters, digits, spaces, '_', '-' and '.'", surface
        )
    return text
