"""A phone of Pupil Labs for tests: their own package connects to it and streams gaze from it.

The HTTP port answers the status that clients ask for: a phone, glasses and one sensor, gaze. The
stream is RTSP, each packet a place in pixels of the scene camera's picture and whether there is
gaze. There are no pupils, eyeballs and eyelids, no scene video, no recordings and no events:
whoever asks for them gets an error. The names and serial numbers are the relay's own.
"""

from __future__ import annotations

import json
import struct
from http import HTTPStatus

import numpy as np
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from gazeveil.errors import DataError
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.newcomers import Newcomers
from gazeveil.gatekeeper.trackers.address import host_and_port, in_brackets, is_local
from gazeveil.gatekeeper.trackers.picture import ImagePlane, ScenePicture, picture_of
from gazeveil.gatekeeper.trackers.tracker import QUIET, Tracker
from gazeveil.gaze.geometry import Screen
from gazeveil.io.vendors.pupil_cloud import NEON
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.relay.sink import OPEN, Sink
from tests.support.rtsp import GazeRTSPServer

#: Port of the Companion app.
PORT = 8080

_MOST_QUESTION_BYTES = 1 << 16

#: A packet: x and y in pixels, and 255 where there is gaze.
_PACKET = struct.Struct("!ffB")


class NeonSink(Sink):
    """A port that answers like the Companion app, and a stream of protected gaze.

    Parameters
    ----------
    place : str
        `host:port` of the HTTP port; port 0 takes a free one, then :attr:`port` says which.
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        self.host, self.port = host_and_port("neon", place, PORT)
        self._stream = GazeRTSPServer("com.pupillabs.gaze1")
        self._server: Server | None = None
        self._picture: ImagePlane | None = None
        self._last = (0.0, 0.0)

    @property
    def seen_by(self) -> str:
        """Who gets the gaze beside this machine's users."""
        return "" if is_local(self.host) else OPEN.format(host=self.host)

    async def start(
        self, tracker: Tracker, guarantee: Guarantee, rate_hz: float | None = None
    ) -> str:
        """Open the ports."""
        # directions that no camera's picture belongs to are shown in that of a Neon
        self._picture = tracker.picture or (
            picture_of(tracker.space)
            if isinstance(tracker.space, Screen)
            else ScenePicture(NEON.width_px, NEON.height_px, NEON.focal_px)
        )
        width, height = self._picture.size_px
        self._last = (width / 2, height / 2)
        try:
            await self._stream.start(self.host)
            self._server = await serve(
                self._updates,
                self.host,
                self.port,
                origins=[None],
                max_size=_MOST_QUESTION_BYTES,
                create_connection=Newcomers().connection,
                process_request=self._answer,
                logger=QUIET,
            )
        except OSError as error:
            await self._stream.close()
            raise DataError(
                f"The relay cannot listen on {self.host}:{self.port} ({error.strerror}). Choose"
                " another port with --out."
            ) from None
        self.port = next(iter(self._server.sockets)).getsockname()[1]
        return f"neon://{in_brackets(self.host)}:{self.port}"

    def _components(self, host: str) -> list[dict[str, object]]:
        """What the status holds; `host` is the address under which the client found us."""
        phone = {
            "battery_level": 100,
            "battery_state": "OK",
            "device_id": "gazeveil",
            "device_name": "gazeveil relay",
            "ip": host,
            "memory": 0,
            "memory_state": "OK",
            "time_echo_port": None,
        }
        hardware = {
            "version": "2.0",
            "glasses_serial": "unknown",
            "world_camera_serial": "unknown",
            "module_serial": "gazeveil",
        }
        gaze = {
            "sensor": "gaze",
            "conn_type": "DIRECT",
            "connected": True,
            # clients put it into an address as it is
            "ip": in_brackets(host),
            "params": "camera=gaze&audioenable=off",
            "port": self._stream.port,
            "protocol": "rtsp",
            "stream_error": False,
        }
        return [
            {"model": model, "data": data}
            for model, data in (("Phone", phone), ("Hardware", hardware), ("Sensor", gaze))
        ]

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a question over HTTP; None for a WebSocket."""
        self.counts["questions"] += 1
        if "Origin" in request.headers:
            # a page of any site could otherwise read gaze
            return _json(HTTPStatus.FORBIDDEN, {"message": "Pages of a browser are refused."})
        if request.path != "/api/status":
            return _json(HTTPStatus.NOT_FOUND, {"message": "The relay gives gaze alone."})
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return None
        components = self._components(connection.local_address[0])
        return _json(HTTPStatus.OK, {"message": "Success", "result": components})

    async def _updates(self, connection: ServerConnection) -> None:
        """Say the status once; it never changes. What a client sends is not looked at."""
        try:
            for component in self._components(connection.local_address[0]):
                await connection.send(json.dumps(component))
            async for _ in connection:
                pass
        except (ConnectionClosed, OSError):
            return

    def send(self, samples: Block) -> None:
        """Send one packet for each sample; where gaze is lost the place released last, not worn."""
        assert self._picture is not None
        norm_x, norm_y = self._picture.norm(samples.x_deg, samples.y_deg)
        valid = samples.valid & np.isfinite(norm_x) & np.isfinite(norm_y)
        width, height = self._picture.size_px
        for t, x, y, ok in zip(
            samples.t_ns.tolist(),
            (norm_x * width).tolist(),
            ((1.0 - norm_y) * height).tolist(),
            valid.tolist(),
            strict=True,
        ):
            if ok:
                self._last = (x, y)
            self._stream.send(t, _PACKET.pack(*self._last, 255 if ok else 0))
        self.counts["sent"] += len(samples)

    async def close(self) -> None:
        """Close the ports."""
        await self._stream.close()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()


def _json(status: HTTPStatus, content: object) -> Response:
    body = json.dumps(content).encode()
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    return Response(status.value, status.phrase, Headers({**fields, "Connection": "close"}), body)
