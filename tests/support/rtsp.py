"""A small RTSP server for one stream of gaze: as much of RFC 2326, RTP and RTCP as clients of Pupil
Labs' real-time API use.

A client asks OPTIONS, DESCRIBE, SETUP and PLAY over TCP, and then gets RTP packets over UDP at the
port it named. Before the first packet and once a second comes a sender report, which says which
time a packet's counter stands for.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import socket
import struct
from dataclasses import dataclass

#: Steps of a packet's counter in a second.
CLOCK_HZ = 90_000

_PAYLOAD_TYPE = 99
_MOST_HEAD_BYTES = 8192
_MOST_CLIENTS = 32

#: A client that does not play yet asks the next question within this.
_QUESTION_S = 10.0

#: A client that plays and whose machine answers no more: asked after so long, so often.
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
_REPORT_NS = 10**9
#: Seconds from 1900, where NTP begins, to 1970.
_FROM_1900_S = 2_208_988_800
_METHODS = "OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN"


@dataclass
class _Listener:
    """One client that plays: where its packets go, and what it was sent."""

    host: str
    rtp_port: int
    rtcp_port: int
    source: int
    sequence: int = 0
    octets: int = 0
    #: Time of its first packet, where its counter begins: counted from 1970 the counter would begin
    #: anew every 13 hours for everybody.
    begin_ns: int | None = None
    reported_ns: int | None = None

    def steps(self, t_ns: int) -> int:
        """Steps of the counter from the first packet to a time."""
        if self.begin_ns is None:
            self.begin_ns = t_ns
        return (t_ns - self.begin_ns) * CLOCK_HZ // 10**9

    def is_due(self, t_ns: int) -> bool:
        """Whether a report must come before the packet of a time.

        A client adds the counter, which has 32 bits, to what the last report said. Where the
        counter has begun anew since, its times would be 13 hours off.
        """
        last_ns = self.reported_ns
        if last_ns is None or not 0 <= t_ns - last_ns < _REPORT_NS:
            return True
        return self.steps(t_ns) >> 32 != self.steps(last_ns) >> 32


class GazeRTSPServer:
    """Sends payloads with their times to everybody who plays.

    Parameters
    ----------
    encoding : str
        Name of the payload in the description of the stream.
    """

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._listeners: dict[str, _Listener] = {}
        self._server: asyncio.Server | None = None
        self._udp: asyncio.DatagramTransport | None = None
        # in the order in which they came, with their sessions
        self._connections: dict[asyncio.StreamWriter, str] = {}
        self.port = 0

    @property
    def listening(self) -> int:
        """Clients that play."""
        return len(self._listeners)

    async def start(self, host: str, port: int = 0) -> None:
        """Open the ports; 0 takes a free one."""
        loop = asyncio.get_running_loop()
        self._udp, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, local_addr=(host, 0)
        )
        self._server = await asyncio.start_server(self._serve, host, port, limit=_MOST_HEAD_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    def send(self, t_ns: int, payload: bytes) -> None:
        """Send one packet to everybody who plays."""
        if self._udp is None:
            return
        for listener in self._listeners.values():
            counter = listener.steps(t_ns) & 0xFFFFFFFF
            if listener.is_due(t_ns):
                self._udp.sendto(
                    _sender_report(listener, t_ns, counter), (listener.host, listener.rtcp_port)
                )
                listener.reported_ns = t_ns
            head = struct.pack(
                "!BBHII", 0x80, _PAYLOAD_TYPE, listener.sequence & 0xFFFF, counter, listener.source
            )
            self._udp.sendto(head + payload, (listener.host, listener.rtp_port))
            listener.sequence += 1
            listener.octets += len(payload)

    async def close(self) -> None:
        """Close the ports."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._connections):
            # who does not read would keep a connection that waits for its answers to be taken
            writer.transport.abort()
        if self._udp is not None:
            self._udp.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session, waiting = secrets.token_hex(8), None
        if not self._has_room():
            writer.close()
            return
        self._connections[writer] = session
        try:
            _keep_alive(writer)
            while True:
                # Who plays may be silent for as long as the connection lives.
                async with asyncio.timeout(None if session in self._listeners else _QUESTION_S):
                    asked = await _question(reader)
                if asked is None:
                    return
                method, url, fields = asked
                status, extra, body = "200 OK", {}, ""
                if method == "OPTIONS":
                    extra = {"Public": _METHODS}
                elif method == "DESCRIBE":
                    body = self._describe()
                    extra = {"Content-Base": url, "Content-Type": "application/sdp"}
                elif method == "SETUP":
                    waiting = _listener(writer, fields.get("transport", ""))
                    if waiting is None:
                        status = "461 Unsupported Transport"
                    else:
                        extra = {"Transport": fields["transport"], "Session": session}
                elif method == "PLAY" and waiting is not None:
                    self._listeners[session] = waiting
                    extra = {"Session": session}
                elif method in ("GET_PARAMETER", "TEARDOWN"):
                    extra = {"Session": session}
                else:
                    status = "455 Method Not Valid in This State"
                if method == "TEARDOWN":
                    self._listeners.pop(session, None)
                writer.write(_answer(status, fields.get("cseq", "0"), extra, body))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            self._listeners.pop(session, None)
            self._connections.pop(writer, None)
            with contextlib.suppress(OSError):
                writer.close()

    def _has_room(self) -> bool:
        """Whether one more client may come; the oldest that does not play goes for it."""
        if len(self._connections) < _MOST_CLIENTS:
            return True
        for writer, session in self._connections.items():
            if session not in self._listeners:
                del self._connections[writer]
                writer.transport.abort()
                return True
        return False

    def _describe(self) -> str:
        lines = (
            "v=0",
            "o=- 0 0 IN IP4 0.0.0.0",
            "s=gaze",
            "t=0 0",
            f"m=application 0 RTP/AVP {_PAYLOAD_TYPE}",
            f"a=rtpmap:{_PAYLOAD_TYPE} {self._encoding}/{CLOCK_HZ}",
        )
        return "".join(f"{line}\r\n" for line in lines)


async def _question(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]] | None:
    """The next request; None where it is no RTSP or its body is too long.

    A page of a browser can send HTTP to any port, with requests of RTSP in its body: a body is
    never taken for requests.
    """
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    method, url, fields = _request(head)
    length = fields.get("content-length", "0")
    known = head.partition("\r\n")[0].endswith(" RTSP/1.0")
    if not (known and length.isascii() and length.isdigit() and len(length) < 5):
        return None
    await reader.readexactly(int(length))
    return method, url, fields


def _request(head: str) -> tuple[str, str, dict[str, str]]:
    """Method, address and headers, in lower case, of a request."""
    first, *lines = head.split("\r\n")
    method, _, rest = first.partition(" ")
    fields = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            fields[name.strip().lower()] = value.strip()
    return method.upper(), rest.partition(" ")[0], fields


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Have the connection end when the client's machine is gone: its packets would go on to whoever
    gets its address next.
    """
    own = writer.get_extra_info("socket")
    own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # not on every system
            own.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _listener(writer: asyncio.StreamWriter, transport: str) -> _Listener | None:
    """Where packets go: to the host that asks, never to another one."""
    ports = re.search(r"client_port=(\d{1,5})-(\d{1,5})", transport)
    if ports is None or "interleaved" in transport:
        return None
    rtp, rtcp = int(ports[1]), int(ports[2])
    if not (1024 <= rtp < 65536 and 1024 <= rtcp < 65536):
        return None
    host = writer.get_extra_info("peername")[0]
    return _Listener(host, rtp, rtcp, secrets.randbits(32))


def _answer(status: str, cseq: str, fields: dict[str, str], body: str) -> bytes:
    number = cseq if cseq.isascii() and cseq.isdigit() else "0"
    lines = [f"RTSP/1.0 {status}", f"CSeq: {number}"]
    lines += [f"{name}: {_one_line(value)}" for name, value in fields.items()]
    if body:
        lines.append(f"Content-Length: {len(body.encode())}")
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode("latin-1", "replace")


def _one_line(text: str) -> str:
    return re.sub(r"[\r\n]", "", text)[:512]


def _sender_report(listener: _Listener, t_ns: int, counter: int) -> bytes:
    seconds, rest_ns = divmod(t_ns, 10**9)
    return struct.pack(
        "!BBHIIIIII",
        0x80,
        200,
        6,
        listener.source,
        (seconds + _FROM_1900_S) & 0xFFFFFFFF,
        (rest_ns << 32) // 10**9,
        counter,
        listener.sequence & 0xFFFFFFFF,
        listener.octets & 0xFFFFFFFF,
    )
