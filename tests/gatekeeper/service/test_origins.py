"""The documented ways from elsewhere, in a real browser: client.js from a page of another origin,
and a TLS proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from playwright.sync_api import Browser, expect, sync_playwright

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.service.settings import load_settings
from tests.support.chromium import chromium
from tests.support.gatekeeper_running import Running, running, sign_in, until
from tests.support.other_origin import OtherOrigin, other_origin  # noqa: F401

WAIT_MS = 60_000
NAME = "gaze.example"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium that finds gaze.example on this machine, knows no other host, and takes any
    certificate.
    """
    with sync_playwright() as playwright:
        rules = f"--host-resolver-rules=MAP {NAME} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        made = playwright.chromium.launch(
            executable_path=chromium(),
            args=["--no-sandbox", "--disable-dev-shm-usage", "--ignore-certificate-errors", rules],
        )
        yield made
        made.close()


def self_signed(folder: Path, name: str = "one") -> tuple[Path, Path]:
    """A certificate for gaze.example and 127.0.0.1, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName(
        [x509.DNSName(NAME), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
    )
    made = (
        builder.not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(names, critical=False)
    )
    signed = made.sign(key, hashes.SHA256())
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    paths[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    return paths


class TlsProxy:
    """A reverse proxy that ends TLS and hands on to the service, with the Host it was sent or, as
    many proxies do, with the service's own.
    """

    def __init__(self, certificate: Path, key: Path, keep_host: bool) -> None:
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(certificate, key)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.origin = f"https://{NAME}:{self.port}"
        self.keep_host, self.upstream = keep_host, 0
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(
            asyncio.start_server(self._serve, sock=self.socket, ssl=self.context)
        )
        self.loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            inner, outer = await asyncio.open_connection("127.0.0.1", self.upstream)
            mine = f"Host: {NAME}:{self.port}\r\n".encode()
            there = (
                mine
                if self.keep_host
                else (
                    f"Host: 127.0.0.1:{self.upstream}\r\nX-Forwarded-Proto:"
                    " https\r\nX-Forwarded-For: 10.0.0.1\r\n".encode()
                )
            )
            await asyncio.gather(
                self._carry(reader, outer, (mine, there)), self._carry(inner, writer, None)
            )

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        swap: tuple[bytes, bytes] | None,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data.replace(*swap) if swap else data)
                await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.socket.close()


# --- client.js from another origin
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("origins") / "home", tracker="simulated") as found:
        yield found


#: Runs in the other page: an app as the manual has it.
APP = """async ([service, token]) => {
  const { connect } = await import(service + "/client.js");
  try {
    const gaze = await connect(service, { token });
    const me = await gaze.me();
    const tile = await new Promise((resolve, reject) =>
      gaze.addEventListener("tile", resolve).catch(reject));
    const sides = { x_deg: 150, y_deg: 70, width_deg: 40, height_deg: 30 };
    const area = await gaze.registerArea("poster", sides);
    await gaze.removeArea(area);
    gaze.close();
    return { app: me.app, tile: tile.type, area: area.name };
  } catch (error) { return { code: error.code }; }
}"""


def test_a_page_of_another_origin_imports_the_client_and_gets_an_answer(
    browser: Browser, here: Running, other_origin: OtherOrigin
) -> None:
    token = here.owner.post(
        "/v1/apps", json={"name": "shop", "origins": [other_origin.address]}
    ).json()["token"]
    assert here.owner.post("/v1/consent", json={"on": True}).status_code == 200
    granted = here.owner.post(
        "/v1/apps/shop/grant",
        json={"grant": {"scopes": ["tile", "areas"], "areas": 4}, "lasts": "until-stopped"},
    )
    assert granted.status_code == 200, granted.text
    other = here.app("other")  # its owner named no origin
    page = browser.new_page()
    page.goto(other_origin.address)
    assert page.evaluate(APP, [here.address, token]) == {
        "app": "shop",
        "tile": "tile",
        "area": "poster",
    }
    assert page.evaluate(APP, [here.address, other])["code"] in ("network", "origin")
    page.close()


def test_all_of_the_client_may_be_imported_and_has_the_type_that_modules_need(
    here: Running,
) -> None:
    from gazeveil.gatekeeper.service.http.pages import WEB

    paths = ["/client.js", *(f"/lib/{path.name}" for path in (WEB / "lib").glob("*.js"))]
    assert len(paths) > 5
    for path in paths:
        answer = httpx.get(here.address + path, headers={"Origin": "https://shop.example"})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*"), (
            path
        )
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8", path
    for path in ("/dash/owner.js", "/dashboard.js", "/"):  # the owner's page is nobody else's
        assert (
            "access-control-allow-origin"
            not in httpx.get(
                here.address + path, headers={"Origin": "https://shop.example"}
            ).headers
        )


# --- behind a TLS proxy
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep_host", [True, False])
def test_behind_a_tls_proxy_the_owner_signs_in_looks_and_changes(
    browser: Browser, tmp_path: Path, keep_host: bool
) -> None:
    proxy = TlsProxy(*self_signed(tmp_path), keep_host)
    with running(tmp_path / "home", tracker="simulated", public_origin=[proxy.origin]) as here:
        assert here.service is not None
        proxy.upstream = int(here.address.rpartition(":")[2])
        link = here.service.owner_link(here.address)
        assert link.startswith(proxy.origin)
        context = browser.new_context(ignore_https_errors=True)
        page = context.new_page()
        page.goto(link)
        expect(page.locator("#board")).to_be_visible(timeout=WAIT_MS)
        assert page.url == proxy.origin + "/"
        page.click("#consent")
        expect(page.locator("#consent")).to_have_attribute("aria-checked", "true", timeout=WAIT_MS)
        assert here.owner.get("/v1/apps").json()["consent"] is True
        until(
            lambda: here.service is not None and len(here.service.broadcaster.viewers) == 1,
            WAIT_MS / 1000,
        )
        (cookie,) = context.cookies()
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
        assert cookie["name"] == f"__Host-gazeveil_owner_{proxy.upstream}"
        # An app's page behind the same proxy is one of the device's own.
        token = here.app("demo", grant={"scopes": ["tile", "areas"], "areas": 4})
        assert page.evaluate(APP, [proxy.origin, token]) == {
            "app": "demo",
            "tile": "tile",
            "area": "poster",
        }
        page.click("#sign-out")
        expect(page.locator("#locked")).to_be_visible(timeout=WAIT_MS)
        context.close()
    proxy.close()


def test_what_a_proxy_says_in_headers_is_not_believed(here: Running, tmp_path: Path) -> None:
    claims = {
        "Origin": f"https://{NAME}",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": NAME,
        "Forwarded": f"proto=https;host={NAME}",
    }
    assert here.owner.post("/v1/consent", json={"on": True}, headers=claims).status_code == 403
    assert httpx.get(here.address + "/health", headers={"Host": NAME}).status_code == 403
    with running(tmp_path / "home", public_origin=[f"https://{NAME}"]) as public:
        assert (
            public.owner.post("/v1/consent", json={"on": True}, headers=claims).status_code == 200
        )
        assert (
            public.owner.post(
                "/v1/consent", json={"on": True}, headers={"Origin": f"http://{NAME}"}
            ).status_code
            == 403
        )
        assert httpx.get(public.address + "/health", headers={"Host": NAME}).status_code == 200
        assert (
            httpx.get(public.address + "/health", headers={"Host": "evil.example"}).status_code
            == 403
        )
        assert public.service is not None
        # On the machine itself, without the proxy, the cookie cannot be Secure: a browser would not
        # send it back.
        plain = sign_in(public.address, public.service.owner_link(public.address))
        assert [cookie.secure for cookie in plain.cookies.jar] == [False]
        plain.close()


@pytest.mark.parametrize(
    "origin",
    [
        "gaze.example",
        "https://gaze.example/",
        "ftp://gaze.example",
        "https://GAZE.example",
        "https://a b",
        "https://*.example",
    ],
)
def test_a_public_origin_that_no_browser_would_send_is_refused(origin: str) -> None:
    with pytest.raises(ParameterError, match="public_origin"):
        load_settings(public_origin=[origin])
