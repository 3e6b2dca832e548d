"""A web server of another origin, for tests of what its pages and cookies may do.

A test module imports the fixture: `from tests.support.other_origin import other_origin`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class OtherOrigin:
    """A server on another port of the same host: it serves an empty page, notes the cookies it is
    sent, and under `/replace` puts junk in their place.
    """

    def __init__(self) -> None:
        self.cookies: list[str] = []
        noted = self.cookies

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                cookies = self.headers.get("Cookie", "")
                noted.append(cookies)
                body = b"<!doctype html><title>shop</title>"
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                for cookie in cookies.split("; ") if self.path == "/replace" else ():
                    self.send_header("Set-Cookie", f"{cookie.partition('=')[0]}=junk; Path=/")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
