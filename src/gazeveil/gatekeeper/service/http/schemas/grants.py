"""Grants and budgets, as the owner gives them and as both sides see them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gazeveil.gatekeeper.service.http.schemas.fields import (
    Answer,
    Body,
    Bound,
    Budgets,
    Lasts,
    Period,
    Scopes,
    TimeNs,
)


class MechanismBody(Body):
    """A mechanism the app may use: each named parameter with its bound, e.g. `{"epsilon": ["<=",
    "1"]}`.
    """

    name: Annotated[str, Field(min_length=1, max_length=64)]
    parameters: dict[str, Bound] = Field(default_factory=dict, max_length=16)
    unproved: bool = False


class GrantBody(Body):
    """A grant in full."""

    scopes: Scopes = Field(default_factory=list)
    mechanisms: Annotated[list[MechanismBody], Field(max_length=16)] = Field(default_factory=list)
    areas: Annotated[int, Field(ge=0, le=1000)] = 16
    calls_per_minute: Annotated[int, Field(ge=0, le=100_000)] = 600
    streams: Annotated[int, Field(ge=0, le=1000)] = 1
    most_hz: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)] | None = None
    budgets: Budgets = Field(default_factory=dict)
    per: Period = "day"
    expires_ns: TimeNs | None = None


class GiveBody(Body):
    """A preset by name, with changes if wanted, or a grant in full."""

    preset: Annotated[str, Field(max_length=64)] | None = None
    budgets: Budgets | None = None
    per: Period | None = None
    expires_ns: TimeNs | None = None
    grant: GrantBody | None = None
    lasts: Lasts = "visit"
    ask: (
        Annotated[
            int,
            Field(
                ge=0,
                le=2**53,
                description="The ask that this answers; refused if another waits now.",
            ),
        ]
        | None
    ) = None


class GrantAnswer(Answer):
    """What an app may do."""

    preset: str | None
    means: str
    scopes: list[str]
    mechanisms: list[str]
    areas: int
    calls_per_minute: int
    streams: int
    most_hz: float | None
    budgets: dict[str, str]
    per: str
    expires_ns: int | None
    lasts: Lasts


class BudgetAnswer(Answer):
    """One account and one currency; how long it lasts is told for the streams that are open, or for
    the dearest that may be opened.
    """

    account: str
    app: str | None
    currency: str
    per: str
    limit: str | None
    spent: str
    reserved: str
    remaining: str | None
    seconds_left: int | None
    words: str = Field(examples=["about 3 hours of use today"])


class BudgetsAnswer(Answer):
    """All accounts."""

    budgets: list[BudgetAnswer]
