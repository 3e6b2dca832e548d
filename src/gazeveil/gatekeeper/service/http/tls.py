"""TLS by the service itself: a certificate file that may be renewed while it runs, and handshakes
with a deadline.

The handshake runs behind the count of connections
(:mod:`gazeveil.gatekeeper.service.sockets.peers`): half a handshake is a stranger like half a head,
and is cut like one.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import uvicorn

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.service.settings import Settings
from gazeveil.gatekeeper.service.sockets.protocol import Config, HeadProtocol, address_of_peer


class CertificateFiles:
    """A certificate (PEM, with its chain) and its key (PEM, without a password), read again when
    their files change.

    Raises
    ------
    ParameterError
        Where they cannot be used, with one sentence.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate, self.key = certificate, key
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.set_alpn_protocols(["http/1.1"])
        self._changed_ns = self._times()
        self._load()

    def _times(self) -> tuple[int, ...]:
        try:
            return tuple(path.stat().st_mtime_ns for path in (self.certificate, self.key))
        except OSError:
            return ()

    def _load(self) -> None:
        try:
            # A key with a password would ask for it on the terminal.
            self._context.load_cert_chain(self.certificate, self.key, password="")
        except (OSError, ValueError) as error:
            reason = (
                getattr(error, "reason", None)
                or getattr(error, "strerror", None)
                or "it cannot be read"
            )
            raise ParameterError(
                f"The certificate {self.certificate} and the key {self.key} cannot be used"
                f" ({str(reason).lower().replace('_', ' ')}). Give tls_certificate and tls_key as"
                " PEM files that belong together, without a password."
            ) from None

    def context(self) -> ssl.SSLContext:
        """What new connections use; where renewed files cannot be used, what was there before."""
        times = self._times()
        if times and times != self._changed_ns:
            try:
                self._load()
            except ParameterError:
                # The two files of a renewal are not written in one step: tried again with the next
                # connection.
                return self._context
            self._changed_ns = times
        return self._context


class _Decrypted(HeadProtocol):
    """HTTP inside TLS: the first bytes may come before the connection is made known."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._first: list[bytes] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, with what has come already."""
        super().connection_made(transport)
        first, self._first = b"".join(self._first), []
        if first:
            self.data_received(first)

    def data_received(self, data: bytes) -> None:
        """Take bytes, or keep them until the connection is made."""
        if self.transport is None:
            self._first.append(data)
        else:
            super().data_received(data)


class TlsProtocol(asyncio.Protocol):
    """A connection until its TLS handshake is done, then
    :class:`~gazeveil.gatekeeper.service.sockets.protocol.HeadProtocol`.
    """

    #: Gives the certificate; set for a service by :func:`tls_protocol`.
    context: Callable[[], ssl.SSLContext]

    def __init__(
        self,
        config: uvicorn.Config,
        *arguments: Any,
        _loop: asyncio.AbstractEventLoop | None = None,
        **options: Any,
    ) -> None:
        self._loop = _loop or asyncio.get_event_loop()
        own = cast("Config", config)
        self._settings, self._peers = own.settings, own.peers
        self._inner = _Decrypted(config, *arguments, _loop=_loop, **options)
        self._task: asyncio.Task[None] | None = None
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        raw = cast("asyncio.Transport", transport)
        self._peers.enter(raw, address_of_peer(raw))
        self._task = self._loop.create_task(self._shake_hands(raw))

    def connection_lost(self, exc: Exception | None) -> None:
        """The handshake's own transport is gone."""

    def data_received(self, data: bytes) -> None:
        """Keep what comes before the handshake has begun: the event loop reads at once."""
        self._early.append(data)

    async def _shake_hands(self, raw: asyncio.Transport) -> None:
        starting = self._loop.start_tls(
            raw,
            self._inner,
            type(self).context(),
            server_side=True,
            ssl_handshake_timeout=self._settings.head_s,
        )
        handshake = self._loop.create_task(starting)
        # After its first step the handshake has taken the transport over and has stopped reading;
        # what came before goes first.
        await asyncio.sleep(0)
        early = b"".join(self._early)
        if early and raw.get_protocol() is not self:
            taker = cast("asyncio.BufferedProtocol", raw.get_protocol())
            while early:
                room = memoryview(cast("bytearray", taker.get_buffer(len(early))))[: len(early)]
                room[:] = early[: len(room)]
                taker.buffer_updated(len(room))
                early = early[len(room) :]
        try:
            made = await handshake
        except (OSError, RuntimeError):
            made = None
        peer = self._peers.at(raw)
        if made is None or peer is None:
            # It failed, or it was cut meanwhile.
            self._peers.leave(raw)
            raw.abort()
            return
        self._peers.moved(peer, made)
        self._inner.connection_made(made)


def tls_protocol(settings: Settings) -> type[asyncio.Protocol]:
    """The protocol class of a service: with TLS where it has a certificate."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return HeadProtocol
    files = CertificateFiles(settings.tls_certificate, settings.tls_key)
    return type("OwnTlsProtocol", (TlsProtocol,), {"context": staticmethod(files.context)})
