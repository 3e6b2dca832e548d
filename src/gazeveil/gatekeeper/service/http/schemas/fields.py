"""What all bodies and answers are made of: the shapes of requests and errors, and the fields that
several of them have.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

#: How long a grant lasts, as :data:`gazeveil.gatekeeper.policy.grant.LASTS`.
Lasts = Literal["visit", "until-stopped"]

#: What a grant is worth now.
State = Literal["none", "granted", "spent", "revoked", "expired"]

#: When a budget is whole again.
Period = Literal["session", "day", "ever"]

Finite = Annotated[float, Field(allow_inf_nan=False, ge=-100_000, le=100_000)]

#: Names of apps, as policies have them.
APP_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

Name = Annotated[
    str,
    Field(
        pattern=APP_PATTERN,
        max_length=64,
        description="Letters, digits, dots, dashes and underscores.",
    ),
]
Exact = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{1,18}(/[1-9][0-9]{0,17}|\.[0-9]{1,18})?$",
        description="An exact number as text: 3, 3/2 or 1.5.",
        max_length=40,
    ),
]
Origin = Annotated[
    str,
    Field(
        pattern=r"^https?://[A-Za-z0-9.\-\[\]:]{1,253}$",
        description="Scheme, host and port, as a browser writes them.",
    ),
]
TimeNs = Annotated[int, Field(ge=0, le=2**63 - 1)]

Scopes = Annotated[list[Annotated[str, Field(max_length=32)]], Field(max_length=16)]
Budgets = Annotated[dict[Literal["epsilon", "rho", "samples"], Exact], Field(max_length=8)]
Bound = Annotated[list[Annotated[str, Field(max_length=64)]], Field(min_length=2, max_length=2)]


class Body(BaseModel):
    """A request: unknown fields are refused, types are not guessed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Problem(BaseModel):
    """What went wrong, as a word and a sentence."""

    code: str = Field(examples=["no-grant"])
    reason: str = Field(examples=["The app 'reader' has no grant. Ask the owner for one."])


class Failure(BaseModel):
    """The one shape of every error."""

    error: Problem


class Answer(BaseModel):
    """A response; core values are read by their attributes."""

    model_config = ConfigDict(from_attributes=True)
