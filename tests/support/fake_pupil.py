"""A Pupil on real ZeroMQ sockets for tests: Pupil Remote's questions on one port, gaze on another,
and a client as Pupil's manual writes it.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

import msgpack  # type: ignore[import-untyped]
import zmq

from tests.support.ports import free_port


def gaze(
    t_s: float,
    x: float,
    y: float,
    confidence: float = 1.0,
    topic: str = "gaze.3d.01.",
    mark: float = 0.0,
) -> dict[str, object]:
    """A binocular 3-d gaze datum as Pupil Capture 3 sends it; `mark` is added to every number that
    a relay must not pass on.
    """

    def pupil(eye: int) -> dict[str, object]:
        return {
            "id": eye,
            "topic": f"pupil.{eye}.3d",
            "method": "pye3d 0.3.0 real-time",
            "norm_pos": [0.4321 + mark, 0.5678 + mark],
            "diameter": 45.25 + mark,
            "diameter_3d": 3.125 + mark,
            "confidence": 0.98765 + mark,
            "timestamp": t_s - 0.001,
            "ellipse": {
                "center": [96.5 + mark, 97.5 + mark],
                "axes": [30.25 + mark, 45.25 + mark],
                "angle": 12.5 + mark,
            },
            "sphere": {"center": [0.5 + mark, 1.5 + mark, 35.5 + mark], "radius": 10.39 + mark},
            "circle_3d": {
                "center": [1.25 + mark, 2.25 + mark, 3.25 + mark],
                "normal": [0.1 + mark, 0.2 + mark, -0.97 + mark],
                "radius": 1.5625 + mark,
            },
            "theta": 1.75 + mark,
            "phi": -1.25 + mark,
        }

    return {
        "topic": topic,
        "norm_pos": [x, y],
        "confidence": confidence,
        "timestamp": t_s,
        "eye_centers_3d": {
            "0": [20.5 + mark, 15.5 + mark, -20.5 + mark],
            "1": [-40.5 + mark, 15.25 + mark, -20.25 + mark],
        },
        "gaze_normals_3d": {
            "0": [0.11 + mark, 0.12 + mark, 0.98 + mark],
            "1": [0.13 + mark, 0.14 + mark, 0.97 + mark],
        },
        "gaze_point_3d": [11.5 + mark, 22.5 + mark, 333.5 + mark],
        "base_data": [pupil(0), pupil(1)],
    }


class FakePupil:
    """Pupil Remote and its publisher; times are told as `clock_s` plus the time since the start."""

    def __init__(self, port: int = 0, clock_s: float = 1000.0) -> None:
        self.context = zmq.Context()
        self.remote = self.context.socket(zmq.REP)
        self.remote.setsockopt(zmq.LINGER, 0)
        # Not a port that the system gives out: one that starts again finds its port free.
        self.port = port or free_port()
        self.remote.bind(f"tcp://127.0.0.1:{self.port}")
        self.publisher = self.context.socket(zmq.XPUB)
        self.publisher.setsockopt(zmq.LINGER, 0)
        self.publisher.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.sub_port = self.publisher.bind_to_random_port("tcp://127.0.0.1")
        self.clock_s, self.began = clock_s, time.monotonic()
        self.asked: list[str] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        while not self._end.is_set():
            if not self.remote.poll(20):
                continue
            question = self.remote.recv().decode()
            self.asked.append(question)
            answers = {
                "SUB_PORT": str(self.sub_port),
                "PUB_PORT": "1",
                "t": str(self.now_s()),
                "v": "3.5.1",
            }
            self.remote.send_string(answers.get(question, "Unknown command."))

    def now_s(self) -> float:
        return self.clock_s + time.monotonic() - self.began

    def wait_for_subscriber(self) -> None:
        """Wait for the next subscription; what somebody no longer wants (a byte 0) passes by."""
        while True:
            assert self.publisher.poll(60_000), "nobody subscribed"
            if self.publisher.recv()[:1] == b"\x01":
                return

    def send(self, datum: dict[str, object]) -> None:
        self.send_frames(str(datum["topic"]).encode(), msgpack.packb(datum, use_bin_type=True))

    def send_frames(self, *frames: bytes) -> None:
        self.publisher.send_multipart(frames)

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self.context.destroy(linger=0)

    def __enter__(self) -> FakePupil:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class PupilClient:
    """What Pupil's manual tells people to write, and nothing else."""

    def __init__(self, port: int, topic: str = "gaze.") -> None:
        self.context = zmq.Context()
        pupil_remote = self.context.socket(zmq.REQ)
        pupil_remote.setsockopt(zmq.RCVTIMEO, 30_000)
        pupil_remote.connect(f"tcp://127.0.0.1:{port}")
        pupil_remote.send_string("SUB_PORT")
        sub_port = pupil_remote.recv_string()
        pupil_remote.send_string("PUB_PORT")
        self.pub_port = pupil_remote.recv_string()
        pupil_remote.send_string("t")
        self.time_s = float(pupil_remote.recv_string())
        pupil_remote.send_string("v")
        self.version = pupil_remote.recv_string()
        self.remote = pupil_remote
        self.subscriber = self.context.socket(zmq.SUB)
        self.subscriber.setsockopt(zmq.RCVTIMEO, 30_000)
        monitor = self.subscriber.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self.subscriber.connect(f"tcp://127.0.0.1:{sub_port}")
        self.subscriber.subscribe(topic)
        # only for the test: nobody tells a subscriber that it is one, so messages sent now might be
        # missed
        assert monitor.poll(30_000), "the publisher is not there"
        self.subscriber.disable_monitor()
        time.sleep(0.3)

    def receive(self) -> tuple[str, dict[str, object], bytes]:
        topic, payload = self.subscriber.recv_multipart()
        return topic.decode(), msgpack.loads(payload), topic + payload

    def close(self) -> None:
        self.context.destroy(linger=0)
