"""The page's server: Python's own, on the loopback interface of this machine.

Recordings are raw here. So the server answers to this machine's own host names alone. Figures
require the secret in the link. The secret stands behind a `#`, which browsers do not send.

The page as one file, for sending on.

A page that is sent on must not hold a participant's gaze. Several releases of the same gaze add up:
their average undoes the noise. So its pictures are of simulated people; of real ones it gives only
the number re-identified.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from gazeveil import __version__
from gazeveil.errors import DataError, GazeveilError, ParameterError
from gazeveil.explore.board import Board, Limits, page, policy, take
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.simulate import simulate
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


#: Whose traces, and of how many stimuli, a saved page has.
TRACES, STIMULI = 2, 2

_STAND_INS, _SECONDS, _SEED = 8, 10.0, 2026
_RATE_STEP_HZ = 10.0

_NOT_COMPUTED = "It could not be computed for these recordings; `gazeveil explore` says why."

#: Called with what is done and all there is.
Progress = Callable[[int, int], None]


def save(board: Board, path: str | Path, progress: Progress = lambda done, total: None) -> Path:
    """Write the page with every value of every parameter computed. `progress` is called with
    releases done and all releases.

    Raises
    ------
    ParameterError
        If the path is not that of an HTML file.
    """
    target = Path(path)
    if target.suffix.lower() not in {".html", ".htm"} or target.is_dir():
        raise ParameterError(
            f"The page is saved as one HTML file. Got '{path}' instead. Name one such as"
            " explore.html.",
            name="path",
            got=str(path),
        )
    shown = Board(stand_ins(board.cohort), board.sliders)
    try:
        figures = _figures(board, shown, progress)
    finally:
        shown.close()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(figures), encoding="utf-8")
    return target


def stand_ins(cohort: Cohort) -> Cohort:
    """Simulate people at about the rate of a cohort, on a screen or a sphere as it is. Nothing else
    of it is used: an exact rate or a viewing distance can identify a person.
    """
    first = cohort[0]
    task = "free-viewing" if isinstance(first.space, Sphere) else "reading"
    rate_hz = max(_RATE_STEP_HZ, round(first.rate_hz / _RATE_STEP_HZ) * _RATE_STEP_HZ)
    people = simulate(_STAND_INS, STIMULI, _SECONDS, rate_hz, task=task, seed=_SEED)
    return take(people, Limits(_STAND_INS, STIMULI, _SECONDS))


def _figures(board: Board, shown: Board, progress: Progress) -> dict[str, object]:
    # Long: what a saved page holds, in one place, so that a reader sees that nothing else is.
    everybody = list(range(len(board.people)))
    viewers = list(range(len(shown.people)))
    traced = [(p, s) for p in viewers[:TRACES] for s in range(min(STIMULI, len(shown.stimuli)))]
    total = 1 + sum(len(slider.texts) for slider in board.sliders)
    done = 0

    def release(text: str | None) -> tuple[dict[str, object], dict[str, object]]:
        nonlocal done
        pictures: dict[str, object] = {
            f"{p}/{s}": shown.picture(viewers, p, s, text) for p, s in traced
        }
        found = board.attack(everybody, text)
        if "refusal" in found:
            found = {"refusal": _NOT_COMPUTED}  # its own sentence may name people
        done += 1
        progress(done, total)
        return pictures, found

    progress(0, total)
    baseline = release(None)
    values = [[release(text) for text in slider.texts] for slider in board.sliders]
    return {
        "board": {
            **board.describe(),
            "people": _numbered("Person", {p for p, _ in traced}),
            "stimuli": _numbered("Stimulus", {s for _, s in traced}),
            "stimuli_attacked": len(board.stimuli),
            "people_attacked": len(board.people),
            "version": __version__,
        },
        "recorded": baseline[0],
        "pictures": [[pictures for pictures, _ in row] for row in values],
        "attacks": [
            {"baseline": baseline[1], "values": [found for _, found in row], "left": 0}
            for row in values
        ],
    }


def _numbered(word: str, numbers: Iterable[int]) -> list[str]:
    return [f"{word} {number + 1}" for number in sorted(numbers)]
