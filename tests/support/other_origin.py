"""A web server of another origin, for tests of what its pages may do.

A test module imports the fixture: `from tests.support.other_origin import other_origin`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class OtherOrigin:
    """A server on another port of the same host: it serves an empty page, or scripts by their
    paths, for ever, and notes the cookies it is sent.
    """

    def __init__(self, port: int = 0, scripts: Mapping[str, str] | None = None) -> None:
        self.cookies: list[str] = []
        noted = self.cookies

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                noted.append(self.headers.get("Cookie", ""))
                script = (scripts or {}).get(self.path)
                body = (script or "<!doctype html><title>shop</title>").encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/javascript" if script else "text/html")
                self.send_header("Cache-Control", "max-age=31536000, immutable" if script else "")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def other_origin() -> Iterator[OtherOrigin]:
    made = OtherOrigin()
    yield made
    made.close()
