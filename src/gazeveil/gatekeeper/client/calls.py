"""Calls of the Python client that are answered once: JSON over HTTP, on a port or a Unix socket."""

from __future__ import annotations

import json
import os
import socket
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

from gazeveil.gatekeeper.errors import Denied

#: Where a service listens unless its address is named.
LOCAL = "http://127.0.0.1:8765"


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
        context = ssl.create_default_context()
        return HTTPSConnection(parts.netloc, timeout=timeout_s, context=context)
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
