"""Signatures of certificates (Ed25519, RFC 8032): the publisher of a release, and its unedited
certificate.

A signature proves only that the holder of a key signed. Whose key it is, a reader must know from
elsewhere: the lab's page, the paper. So verification without a pinned key names the key and does
not call it anybody's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from gazeveil.errors import DataError, FormatError, ParameterError

ALGORITHM = "ed25519"
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64


@dataclass(frozen=True)
class SigningKey:
    """The secret half of a key: 32 bytes, never printed."""

    secret: bytes = field(repr=False)

    @property
    def public(self) -> str:
        """The public half, as hexadecimal digits."""
        key = Ed25519PrivateKey.from_private_bytes(self.secret).public_key()
        raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
        return key.public_bytes(*raw).hex()


def new_key(path: Path) -> SigningKey:
    """Make a key: the secret half goes to `path` with mode 0600, the public half to `path`.pub.

    Raises
    ------
    DataError
        If one of them exists: a lost key cannot sign again.
    """
    key = SigningKey(os.urandom(_KEY_BYTES))
    public = path.with_name(path.name + ".pub")
    for place, text, mode in ((path, key.secret.hex(), 0o600), (public, key.public, 0o644)):
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            raise DataError(
                f"{place} exists already, and a key that is overwritten is lost. Name another file."
            ) from None
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text + "\n")
    return key


def read_key(path: Path) -> SigningKey:
    """A secret key that :func:`new_key` wrote.

    Raises
    ------
    FormatError
        If the file holds none.
    """
    secret = _hexadecimal(path)
    if secret is None:
        raise FormatError(
            path,
            "this is not a signing key, which is 64 hexadecimal digits",
            "Make one: `gazeveil verify --new-key FILE`.",
        )
    return SigningKey(secret)


def read_public_key(key: str | Path) -> str:
    """A public key, from the digits themselves or from a file that holds them.

    Raises
    ------
    ParameterError
        If it is neither.
    """
    text = str(key).strip().lower()
    if len(text) == 2 * _KEY_BYTES and set(text) <= set("0123456789abcdef"):
        return text
    found = _hexadecimal(Path(key))
    if found is None:
        raise ParameterError(
            "The '--key' option must be a public key of 64 hexadecimal digits, or a file that holds"
            f" one. Got '{text[:80]}' instead. Ask whoever published the release for it.",
            name="key",
            got=text[:80],
        )
    return found.hex()


def _hexadecimal(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = bytes.fromhex(file.read(4096).decode("ascii").strip())
    except (OSError, ValueError):
        return None
    return data if len(data) == _KEY_BYTES else None


def sign(key: SigningKey, data: bytes) -> dict[str, str]:
    """The signature of some bytes, as JSON has it."""
    signature = Ed25519PrivateKey.from_private_bytes(key.secret).sign(data)
    return {"algorithm": ALGORITHM, "public_key": key.public, "signature": signature.hex()}


def signer(signature: Mapping[str, object], data: bytes) -> str | None:
    """The public key that signed those bytes, or None where the signature does not fit them."""
    if signature.get("algorithm") != ALGORITHM:
        return None
    try:
        public = bytes.fromhex(str(signature["public_key"]))
        value = bytes.fromhex(str(signature["signature"]))
        if len(public) != _KEY_BYTES or len(value) != _SIGNATURE_BYTES:
            return None
        Ed25519PublicKey.from_public_bytes(public).verify(value, data)
    except (KeyError, ValueError, InvalidSignature):
        return None
    return public.hex()
