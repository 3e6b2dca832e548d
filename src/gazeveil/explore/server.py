"""The page's server: Python's own, on the loopback interface of this machine.

Recordings are raw here. So the server answers to this machine's own host names alone. Figures
require the secret in the link. The secret stands behind a `#`, which browsers do not send.
"""

from __future__ import annotations

import json
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from gazeveil.errors import DataError, GazeveilError, ParameterError
from gazeveil.explore.board import Board
from gazeveil.explore.view import page, policy
from gazeveil.pages import HEADERS, LOCAL_NAMES, host_name

#: The header in which the page sends the secret of its link.
SECRET = "X-Gazeveil-Session"

HOST = "127.0.0.1"


class ExploreServer(ThreadingHTTPServer):
    """Serves one board; port 0 takes a free one."""

    daemon_threads = True

    def __init__(self, board: Board, port: int = 0) -> None:
        self.board, self.secret = board, secrets.token_urlsafe(24)
        self.page = page().encode()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise DataError(
                f"Port {port} of {HOST} cannot be used: {(error.strerror or str(error)).lower()}."
                " Choose another with --port."
            ) from error

    @property
    def link(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.server_address[1]}/#{self.secret}"


class _Handler(BaseHTTPRequestHandler):
    server: ExploreServer
    server_version, sys_version = "gazeveil", ""
    protocol_version = "HTTP/1.1"
    #: Seconds that a sender may take for a line.
    timeout = 30

    def do_GET(self) -> None:
        """Answer a question of the page."""
        place = urlsplit(self.path)
        if host_name(self.headers.get("Host", "")) not in LOCAL_NAMES:
            self._problem(403, "host", "This page does not answer to that host name.")
        elif place.path == "/":
            self._answer(200, "text/html; charset=utf-8", self.server.page)
        elif not place.path.startswith("/api/"):
            self._problem(404, "unknown", "There is no such page.")
        elif not secrets.compare_digest(
            self.headers.get(SECRET, "").encode(), self.server.secret.encode()
        ):
            self._problem(401, "secret", "Open the link that gazeveil explore has printed.")
        else:
            self._figures(place.path.removeprefix("/api/"), parse_qs(place.query))

    def _figures(self, what: str, query: dict[str, list[str]]) -> None:
        board = self.server.board
        try:
            if what == "board":
                answer = board.describe()
            elif what == "picture":
                group, text = _group(board, query), _text(board, query)
                person = _number(query, "person", len(board.people))
                stimulus = _number(query, "stimulus", len(board.stimuli))
                answer = board.picture(group, person, stimulus, text)
            elif what == "attack":
                slider = _number(query, "mechanism", len(board.sliders))
                value = _number(query, "value", len(board.sliders[slider].values))
                answer = board.attacked(_group(board, query), slider, value)
            else:
                self._problem(404, "unknown", "There is no such figure.")
                return
        except GazeveilError as error:
            self._problem(422, "value", str(error))
            return
        self._answer(200, "application/json", json.dumps(answer).encode())

    def _problem(self, status: int, code: str, reason: str) -> None:
        """The one shape of every error."""
        body = json.dumps({"error": {"code": code, "reason": reason}}).encode()
        self._answer(status, "application/json", body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Errors of the protocol, in the same shape; nothing that was sent is sent back."""
        self.close_connection = True
        self._problem(code, "request", f"{HTTPStatus(code).phrase}.")

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        own = policy(live=True) + "; frame-ancestors 'none'"
        for name, value in {**HEADERS, "content-security-policy": own}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is logged: the terminal belongs to the one who reads the link."""


def _number(query: dict[str, list[str]], name: str, below: int) -> int:
    text = query.get(name, [""])[0]
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) < below):
        raise ParameterError(
            f"'{name}' must be a number from 0 to {below - 1}. Got '{text[:20]}' instead.",
            name=name,
            got=text,
        )
    return int(text)


def _group(board: Board, query: dict[str, list[str]]) -> list[int]:
    texts = query.get("people", [""])[0].split(",")
    return sorted({_number({"people": [text]}, "people", len(board.people)) for text in texts})


def _text(board: Board, query: dict[str, list[str]]) -> str | None:
    """The mechanism that is asked for; none where no number is given."""
    if "mechanism" not in query:
        return None
    slider = board.sliders[_number(query, "mechanism", len(board.sliders))]
    return slider.texts[_number(query, "value", len(slider.texts))]
