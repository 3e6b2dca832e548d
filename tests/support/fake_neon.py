"""A phone of Pupil Labs for tests, on real sockets: their package asks its status over HTTP, and
plays its gaze over RTSP. Both have heads of lines, so one port answers both.
"""

from __future__ import annotations

import json
import re
import struct
import threading
from contextlib import ExitStack
from socket import AF_INET, SOCK_DGRAM, socket
from socketserver import StreamRequestHandler, ThreadingTCPServer

#: Steps of a packet's counter in a second, and seconds from 1900, where NTP begins, to 1970.
CLOCK_HZ, FROM_1900_S = 90_000, 2_208_988_800

DESCRIPTION = f"""v=0\r
o=- 0 0 IN IP4 0.0.0.0\r
s=gaze\r
t=0 0\r
m=application 0 RTP/AVP 99\r
a=rtpmap:99 com.pupillabs.gaze1/{CLOCK_HZ}\r
"""


class FakeNeon(ExitStack):
    """The phone; clients that play get what is sent."""

    def __init__(self, version: str = "2.0") -> None:
        super().__init__()
        phone, self.sequence = self, 0
        self.players: list[tuple[str, int]] = []

        class Answering(StreamRequestHandler):
            def handle(self) -> None:
                while head := self.rfile.readline().decode():
                    while line := self.rfile.readline().decode().strip():
                        head += line + "\n"
                    method = head.split()[0]
                    if ports := re.search(r"client_port=(\d+)-\d+", head):
                        player = (self.client_address[0], int(ports[1]))
                    if method == "PLAY":
                        phone.players.append(player)
                    body = {"GET": phone.status(version), "DESCRIBE": DESCRIPTION}.get(method, "")
                    fields = re.findall(r"(?im)^(?:cseq|transport):.*$", head)
                    fields += ["Public: PLAY", "Session: 1", f"Content-Length: {len(body)}"]
                    fields += [f"Content-Type: application/{'json' if body[:1] == '{' else 'sdp'}"]
                    first = "HTTP/1.1 200 OK" if method == "GET" else "RTSP/1.0 200 OK"
                    self.wfile.write("\r\n".join([first, *fields, "", body]).encode())

        self.udp = self.enter_context(socket(AF_INET, SOCK_DGRAM))
        server = self.enter_context(ThreadingTCPServer(("127.0.0.1", 0), Answering))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.callback(server.shutdown)
        self.port = server.server_address[1]
        self.address = f"127.0.0.1:{self.port}"

    def status(self, version: str) -> str:
        """The components of which the package asks."""
        phone = dict.fromkeys(("device_id", "device_name", "memory_state", "battery_state"), "OK")
        numbers = {"battery_level": 100, "memory": 0, "time_echo_port": None, "ip": "127.0.0.1"}
        serials = ("glasses_serial", "world_camera_serial", "module_serial")
        gaze = {"sensor": "gaze", "conn_type": "DIRECT", "connected": True, "protocol": "rtsp"}
        gaze |= {"ip": "127.0.0.1", "port": self.port, "params": "", "stream_error": False}
        components = {
            "Phone": {**phone, **numbers},
            "Hardware": {"version": version, **dict.fromkeys(serials, "")},
            "Sensor": gaze,
        }
        result = [{"model": model, "data": data} for model, data in components.items()]
        return json.dumps({"message": "Success", "result": result})

    def send(self, t_s: float, payload: bytes) -> None:
        """Send a packet, and before it what time its counter stands for."""
        counter = round(t_s * CLOCK_HZ) & 0xFFFFFFFF
        whole, part = divmod(t_s + FROM_1900_S, 1)
        ntp = (int(whole) & 0xFFFFFFFF, int(part * 2**32))
        report = struct.pack("!BBHIIIIII", 0x80, 200, 6, 7, *ntp, counter, 0, 0)
        self.sequence = (self.sequence + 1) & 0xFFFF
        head = struct.pack("!BBHII", 0x80, 99, self.sequence, counter, 7)
        for host, port in tuple(self.players):
            self.udp.sendto(report, (host, port + 1))
            self.udp.sendto(head + payload, (host, port))
