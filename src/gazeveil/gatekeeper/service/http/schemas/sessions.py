"""Browsers and programs that act for the owner."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gazeveil.gatekeeper.service.http.schemas.fields import Answer, Body, Name


class SignedInAnswer(Answer):
    """A session of the owner's browser that has begun; the secret is told this once."""

    session: str = Field(
        description=(
            "The page's half of the session, for the header X-Gazeveil-Session. The cookie is the"
            " other half."
        )
    )
    id: str
    expires_ns: int


class SessionAnswer(Answer):
    """A browser that is signed in."""

    id: str
    browser: str = Field(examples=["Firefox on Linux"])
    begun_ns: int
    used_ns: int | None = Field(
        description="When it was used last; null where that was before the service started."
    )
    expires_ns: int
    this: bool = Field(description="Whether it is the one that asks.")


class SessionsAnswer(Answer):
    """Browsers that are signed in."""

    sessions: list[SessionAnswer]


class EndedAnswer(Answer):
    """How many sessions have ended."""

    ended: int


class OwnerTokenBody(Body):
    """A name for a program that acts for the owner, and how long its token lasts."""

    name: Name
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class OwnerTokenAnswer(Answer):
    """A token of a program that acts for the owner, without its secret."""

    id: str
    name: str
    issued_ns: int
    expires_ns: int | None


class OwnerTokensAnswer(Answer):
    """Programs that may act for the owner."""

    tokens: list[OwnerTokenAnswer]


class OwnerTokenMadeAnswer(Answer):
    """A new token for a program that acts for the owner; it is told this once."""

    id: str
    name: str
    token: str
