"""How the Python client reaches a service, on a port or a Unix socket: calls that are answered
once, as JSON over HTTP, and one subscription as an iterator, over a WebSocket.

A connection that fails is tried again with a back-off that doubles from 0.25 s to 10 s, and the
subscription is asked for anew, so the policy decides again. What the Gatekeeper refuses or ends is
raised as :class:`gazeveil.gatekeeper.errors.Denied`; a token that is not accepted is never tried
again.
"""

from __future__ import annotations

import json
import os
import random
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import numpy as np
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, unix_connect
from websockets.sync.client import connect as connect_port

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gatekeeper.blocks import unpack
from gazeveil.gatekeeper.errors import Denied

#: Where a service listens unless its address is named.
LOCAL = "http://127.0.0.1:8765"

FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 10.0

#: Close codes after which trying again is useless: messages that cannot be read, a token that is
#: not accepted, an app that may not come.
FINAL = (1008, 4001, 4003)

#: The id of the one subscription a connection of this client carries.
SUBSCRIPTION = 1


def default_url() -> str:
    """The address of this machine's service: its Unix socket, where the environment names one.

    Examples
    --------
    >>> default_url() in (LOCAL, f"unix:{os.environ.get('GAZEVEIL_UNIX_SOCKET')}")
    True
    """
    path = os.environ.get("GAZEVEIL_UNIX_SOCKET")
    return f"unix:{path}" if path else LOCAL


def unix_path(url: str) -> str | None:
    """The path of a Unix socket, None for any other address.

    Examples
    --------
    >>> unix_path("unix:/run/gazeveil/gaze.sock")
    '/run/gazeveil/gaze.sock'
    """
    return url.removeprefix("unix:") if url.startswith("unix:") else None


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _connection(url: str, timeout_s: float) -> HTTPConnection:
    path = unix_path(url)
    if path is not None:
        return _UnixConnection(path, timeout_s)
    parts = urlsplit(url)
    if parts.scheme == "https":
        return HTTPSConnection(
            parts.netloc, timeout=timeout_s, context=ssl.create_default_context()
        )
    return HTTPConnection(parts.netloc, timeout=timeout_s)


def call(
    url: str,
    token: str,
    timeout_s: float,
    method: str,
    path: str,
    body: object = None,
    parameters: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """One call and its answer.

    Raises
    ------
    Denied
        With the service's code and reason; the code is `token` where the token is not accepted and
        `network` where no service answers.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if body is not None:
        headers["Content-Type"] = "application/json"
    target = f"{path}?{urlencode(parameters)}" if parameters else path
    connection = _connection(url, timeout_s)
    try:
        connection.request(
            method, target, None if body is None else json.dumps(body), headers=headers
        )
        answer = connection.getresponse()
        status, content = answer.status, answer.read()
    except (OSError, HTTPException):
        raise Denied(
            "network", f"The Gatekeeper at {url} does not answer. Check that it runs and try again."
        ) from None
    finally:
        connection.close()
    try:
        value = json.loads(content) if content else {}
    except ValueError:
        value = {}
    if 200 <= status < 300:
        return dict(value)
    problem = value.get("error", {}) if isinstance(value, dict) else {}
    code = "token" if status == 401 else str(problem.get("code", "unknown"))
    raise Denied(code, str(problem.get("reason", f"The Gatekeeper answered with status {status}.")))


@dataclass(frozen=True)
class Batch:
    """Protected samples that came in one message.

    Parameters
    ----------
    sequence : int
        Number of the first sample, counted from 0 over all that the subscription was given, dropped
        ones too.
    dropped : int
        Samples the Gatekeeper left out so far because this reader was slow.
    t_ns : ndarray of int64
        Times in nanoseconds.
    x_deg, y_deg : ndarray of float64
        Places in degrees, NaN where gaze was lost.
    valid : ndarray of bool
        Where gaze was not lost.
    """

    sequence: int
    dropped: int
    t_ns: Ints
    x_deg: Floats
    y_deg: Floats
    valid: Bools

    def __len__(self) -> int:
        return len(self.t_ns)


Message = Mapping[str, object]


def stream_address(url: str) -> str:
    """Address of the WebSocket of a service.

    Examples
    --------
    >>> stream_address("http://127.0.0.1:8765/")
    'ws://127.0.0.1:8765/v1/stream'
    """
    parts = urlsplit(url)
    return urlunsplit(
        ("wss" if parts.scheme in ("https", "wss") else "ws", parts.netloc, "/v1/stream", "", "")
    )


class WireProtocol:
    """What is said on one connection after the other: hello with the token, subscribe with the
    fields of `wish`, where it has any, then listen. It gives up after `patience` failures in a
    row; None never does.
    """

    def __init__(self, token: str, wish: Message, patience: int | None = None) -> None:
        self.token, self.wish, self.patience = token, dict(wish), patience
        self.failures = 0
        self.guarantee: Message | None = None
        self._said: tuple[str, str] | None = None

    @property
    def opening(self) -> tuple[str, ...]:
        """The messages a connection begins with; the first one is answered before the second is
        sent.
        """
        self._said = None
        hello = {"type": "hello", **({"token": self.token} if self.token else {})}
        subscribe = {"type": "subscribe", "id": SUBSCRIPTION, **self.wish}
        return (json.dumps(hello), *([json.dumps(subscribe)] if self.wish else []))

    def heard(self, data: str | bytes) -> Batch | Message | None:
        """What a message brings to the app; None where it is none of its business.

        Raises
        ------
        Denied
            Where the subscription was refused or has ended.
        """
        if isinstance(data, bytes):
            batch = unpack(data)
            block = batch.block
            return Batch(
                batch.sequence, batch.dropped, block.t_ns, block.x_deg, block.y_deg, block.valid
            )
        message = json.loads(data)
        kind = message.get("type")
        if kind == "error":
            self._said = (str(message.get("code")), str(message.get("reason")))
        elif kind == "welcome" and not self.wish:
            self.failures = 0
        elif kind == "subscribed":
            self.failures = 0
            self.guarantee = message.get("guarantee")
        elif kind == "refused" or (kind == "ended" and message.get("code") != "shutdown"):
            raise Denied(str(message.get("code")), str(message.get("reason")))
        elif kind == "samples":
            return _batch(message)
        elif kind in (("event", "saccade-start", "tile") if self.wish else ("paused", "resumed")):
            return {name: value for name, value in message.items() if name != "id"}
        return None

    def lost(self, error: Exception) -> float:
        """Seconds to wait before the next try.

        Raises
        ------
        Denied
            Where trying again is useless.
        """
        close = error.rcvd if isinstance(error, ConnectionClosed) else None
        code = None if close is None else close.code
        self.failures += 1
        if code in FINAL or (self.patience is not None and self.failures > self.patience):
            word, reason = self._said or (
                "network",
                "The Gatekeeper does not answer. Check that it runs, and connect again.",
            )
            raise Denied(word, reason) from None
        # Apps that lost the same service do not come back all at once. Nothing protective hangs on
        # this.
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self.failures - 1, 30))
        return wait_s * random.uniform(0.75, 1.25)


def _batch(message: Mapping[str, list[object]]) -> Batch:
    # None, which stands where gaze was lost, becomes NaN.
    x_deg, y_deg = (np.array(message[name], dtype=np.float64) for name in ("x_deg", "y_deg"))
    t_ns = np.round(np.array(message["t_ms"], dtype=np.float64) * 1e6).astype(np.int64)
    sequence, dropped = int(str(message["sequence"])), int(str(message["dropped"]))
    return Batch(sequence, dropped, t_ns, x_deg, y_deg, np.array(message["valid"], dtype=np.bool_))


#: Largest message that is taken.
MOST_BYTES = 2**24


def _open(url: str, timeout_s: float) -> ClientConnection:
    options: dict[str, Any] = {
        "open_timeout": timeout_s,
        "close_timeout": 1.0,
        "max_size": MOST_BYTES,
    }
    path = unix_path(url)
    return (
        connect_port(stream_address(url), **options)
        if path is None
        else unix_connect(path, uri="ws://localhost/v1/stream", **options)
    )


def listen(url: str, talk: WireProtocol, timeout_s: float) -> Iterator[Batch | Message]:
    """What a subscription brings; leaving the loop ends it."""
    while True:
        try:
            with _open(url, timeout_s) as socket:
                hello, *wishes = talk.opening
                socket.send(hello)
                # A refusal is read before anything else is said, or its reason would be lost.
                talk.heard(socket.recv())
                for wish in wishes:
                    socket.send(wish)
                while True:
                    received = talk.heard(socket.recv())
                    if received is not None:
                        yield received
        except (OSError, WebSocketException) as error:
            time.sleep(talk.lost(error))
