"""Neon and Pupil Invisible over Pupil Labs' real-time API, by the package
`pupil-labs-realtime-api`.

The Companion app says on an HTTP port where its gaze stream is; the stream is RTSP, each packet one
place in pixels of the scene camera's picture and whether the glasses are worn. What else a packet
holds (pupils, eyeballs, eyelids) is not looked at. Times are the phone's, since 1970. The scene
camera is taken as a pinhole with the nominal focal length of its model.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator
from importlib import import_module
from typing import Any, ClassVar

from gazeveil import checks
from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers.tracker import LOG
from gazeveil.io.vendors.pupil import INVISIBLE, NEON, Camera
from gazeveil.relay.picture import ImagePlane, picture_for
from gazeveil.relay.trackers.connecting import ReconnectingTracker, host_and_port
from gazeveil.relay.trackers.rate import RateWatch

#: Port of the Companion app.
PORT = 8080


def load_realtime_api() -> Any:
    """The package `pupil_labs.realtime_api`.

    Raises
    ------
    MissingExtraError
        Where it is missing.
    """
    try:
        return import_module("pupil_labs.realtime_api")
    except ImportError:
        raise MissingExtraError("pupil-labs-realtime-api", "neon") from None


class NeonTracker(ReconnectingTracker):
    """Gaze of a Neon.

    Parameters
    ----------
    place : str
        `host:port` of the Companion app.
    rate_hz : float
        Nominal rate of its gaze.
    sphere : bool
        Whether directions of the scene camera are those of a sphere around the head, instead of a
        screen.
    silence_s : float
        A tracker that sends no gaze for so long has vanished.
    answer_s : float
        How long the app may take to answer.
    """

    picture: ImagePlane
    #: The scene camera, and how the app writes the version of its hardware.
    camera: ClassVar[Camera] = NEON
    hardware: ClassVar[str] = "2"
    scheme: ClassVar[str] = "neon"

    def __init__(
        self,
        place: str,
        rate_hz: float = 200.0,
        sphere: bool = False,
        silence_s: float = 2.0,
        answer_s: float = 5.0,
    ) -> None:
        super().__init__()
        self._api = load_realtime_api()
        self.name = self.scheme
        self.host, self.port = host_and_port(self.scheme, place, PORT)
        self.rate_hz = checks.positive("neon tracker", "rate_hz", rate_hz)
        camera = self.camera
        self.picture = picture_for(None, sphere, camera.width_px, camera.height_px, camera.focal_px)
        self.space = self.picture.space
        self._silence_s = checks.positive("neon tracker", "silence_s", silence_s)
        self._answer_s = checks.positive("neon tracker", "answer_s", answer_s)

    async def _find(self) -> str | None:
        """Address of the gaze stream; None where there is none."""
        try:
            device = self._api.Device(self.host, self.port)
            async with device, asyncio.timeout(self._answer_s):
                status = await device.get_status()
        except Exception as error:
            # the package passes on whatever its HTTP and JSON readers raise
            LOG.info("%s: nobody answers (%s)", self.name, type(error).__name__)
            return None
        version = str(status.hardware.version)
        if version != "unknown" and not version.startswith(self.hardware):
            self.malformed(
                "the glasses are of another kind; neon:// is for Neon, invisible:// for Pupil"
                " Invisible"
            )
            return None
        sensor = status.direct_gaze_sensor()
        return str(sensor.url) if sensor is not None and sensor.connected else None

    async def connection(self) -> AsyncGenerator[Block | None, None]:
        """Blocks of gaze until it is silent."""
        if (url := await self._find()) is None:
            return
        watch = RateWatch(self.name, self.rate_hz)
        async with self._api.RTSPGazeStreamer(url) as streamer:
            packets = aiter(streamer.receive())
            while not self._closing:
                try:
                    # Not wait_for: before Python 3.12 it may lose that the reader is cancelled.
                    async with asyncio.timeout(self._silence_s):
                        datum = await anext(packets)
                except (TimeoutError, StopAsyncIteration, OSError):
                    LOG.info("%s: the stream is silent", self.name)
                    break
                except (KeyError, ValueError, TypeError, struct.error):
                    self.malformed("a packet is not gaze")
                    break
                part = self._block(datum)
                watch.see(part.t_ns)
                self.trouble = watch.slow
                yield part
            _take_error(streamer)

    def _block(self, datum: Any) -> Block:
        """The place of one packet: that of both eyes, or the middle of the eyes' own."""
        x, y = getattr(datum, "x", None), getattr(datum, "y", None)
        if x is None or y is None:
            x, y = (datum.left.x + datum.right.x) / 2, (datum.left.y + datum.right.y) / 2
        width, height = self.picture.size_px
        x_deg, y_deg = self.picture.degrees([x / width], [1.0 - y / height])
        self.counts["samples"] += 1
        return block([int(datum.timestamp_unix_ns)], x_deg, y_deg, bool(datum.worn))


def _take_error(streamer: Any) -> None:
    """Take the error of a connection that broke, which asyncio would print as never looked at."""
    runner = getattr(streamer.reader, "_runner", None)
    if runner is not None and runner.done() and not runner.cancelled():
        runner.exception()


class InvisibleTracker(NeonTracker):
    """Gaze of a Pupil Invisible."""

    camera = INVISIBLE
    hardware = "1"
    scheme = "invisible"
