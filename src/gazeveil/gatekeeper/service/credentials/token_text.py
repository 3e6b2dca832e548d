"""A token as text: `gv_<role>_<id>_<secret>`, with a secret of 256 random bits.

Such a secret cannot be guessed, so its SHA-256 can be stored as it is: slow hashes (argon2, bcrypt)
make the guessing of weak passwords dear, and would only make every honest request dear here.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import NamedTuple

_TOKEN = re.compile(r"gv_(app|tracker|owner|link)_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_DUMMY_HASH = bytes(32)


class TokenText(NamedTuple):
    """The parts of a token; all empty where it is none. The role may be `link`, for the key of an
    owner's link; the id is public and finds the row; the secret is known to its holder alone.
    """

    role: str
    id: str
    secret: str

    @classmethod
    def new(cls, role: str) -> TokenText:
        """Generate a new random token."""
        return cls(role, token_hex(8), token_urlsafe(32))

    @classmethod
    def parse(cls, token: object) -> TokenText:
        """The parts of what came as a token."""
        parts = _TOKEN.fullmatch(token) if isinstance(token, str) else None
        return cls(*parts.groups()) if parts else cls("", "", "")

    def __str__(self) -> str:
        return f"gv_{self.role}_{self.id}_{self.secret}"

    @property
    def hash(self) -> bytes:
        """What is stored of the secret."""
        return sha256(b"gazeveil token\x00" + self.secret.encode()).digest()

    def fits(self, stored: bytes | None) -> bool:
        """Whether the secret is the one of a stored hash. Without one it takes as long, and is
        compared with a hash that nothing has.
        """
        right = hmac.compare_digest(self.hash, _DUMMY_HASH if stored is None else stored)
        return right and stored is not None
