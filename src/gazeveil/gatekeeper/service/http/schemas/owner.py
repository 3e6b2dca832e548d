"""What the owner decides about apps, and what the owner's page shows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gazeveil.gatekeeper.service.http.schemas.device import (
    LevelAnswer,
    SpaceAnswer,
    TrackerAnswer,
    WearerAnswer,
)
from gazeveil.gatekeeper.service.http.schemas.fields import Answer, Body, Name, Origin, State
from gazeveil.gatekeeper.service.http.schemas.grants import GrantAnswer


class AppBody(Body):
    """A new app; origins are the web pages that may use its token, besides the device's own."""

    name: Name
    origins: Annotated[list[Origin], Field(max_length=16)] = Field(default_factory=list)


class TokenAnswer(Answer):
    """The token is shown here and never again."""

    app: str
    token: str


class ConsentBody(Body):
    """Whether anything may leave the device at all."""

    on: bool


class ConsentAnswer(Answer):
    """Whether anything may leave the device at all; where `written` is false it is in force, and is
    written when the disk and the database take it.
    """

    on: bool
    written: bool


class ConfirmBody(Body):
    """The wearer's gesture for a choice."""

    app: Annotated[
        Name | None,
        Field(description="Whose gesture it is, where the page knows which app is in front."),
    ] = None


class TakenAnswer(Answer):
    """Something was taken away; where `written` is false it is in force, and is written when the
    disk and the database take it.
    """

    app: str
    written: bool


class AccessRequestAnswer(Answer):
    """One app's ask that waits for the owner."""

    id: int
    app: str
    want: str
    t_ns: int


class AccessRequestsAnswer(Answer):
    """All asks that wait."""

    asks: list[AccessRequestAnswer]


class UseAnswer(Answer):
    """One app and a scope it uses now."""

    app: str
    what: str


class InUseAnswer(Answer):
    """Who uses the gaze now."""

    in_use: list[UseAnswer]


class PresetAnswer(Answer):
    """A ready grant and what it means."""

    name: str
    sentence: str = Field(description="What the wearer reads, in at most 15 words.")
    recognise: bool = Field(description="Whether a person could be recognised by it.")
    means: str
    platform: str
    scopes: list[str]
    mechanisms: list[str]


class StreamAnswer(Answer):
    """One open subscription of an app."""

    id: int
    what: str
    mechanism: str | None
    sent: int
    dropped: int


class AppAnswer(Answer):
    """One app as its owner sees it."""

    app: str
    origins: list[str]
    has_token: bool
    state: State
    grant: GrantAnswer | None
    streams: list[StreamAnswer]
    calls_last_minute: int
    blocked: bool = Field(
        description="Whether it may not ask any more, because it was dismissed three times."
    )
    in_use: list[str] = Field(
        description="Scopes it uses now: open subscriptions, and answers of the last five seconds."
    )


class RevokedAnswer(AppAnswer):
    """The app without its grant; where `written` is false that is in force, and is written when the
    disk and the database take it.
    """

    written: bool


class DeviceAnswer(Answer):
    """Everything the owner's page begins with."""

    device: str
    consent: bool
    wearer: WearerAnswer
    level: LevelAnswer
    space: SpaceAnswer
    rate_hz: float
    charged_r_deg: str
    tracker: TrackerAnswer
    presets: list[PresetAnswer]
    apps: list[AppAnswer]
    ledger: bool = Field(
        description=(
            "Whether the ledger answers; while it does not, this page is told from memory and no"
            " app gets anything."
        )
    )
    written: bool = Field(
        description=(
            "Whether sharing off is in the database; until then the file taken-back holds it over a"
            " restart."
        )
    )
