"""What goes in and out over HTTP, as pydantic models: they make the OpenAPI page and refuse
everything else.

Exact numbers travel as text (`"3/2"`), so that no budget is ever rounded on its way; null means no
limit. Every error has one shape,
:class:`Problem`, and never quotes what came.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

#: How long a grant lasts, as :data:`gazeveil.gatekeeper.policy.policy.LASTS`.
Lasts = Literal["once", "in-use", "tonight", "for-good"]

#: What a grant is worth now.
State = Literal["none", "granted", "spent", "revoked", "expired"]

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


class AreaBody(Body):
    """A rectangle in degrees of the device's space, x to the right and y down, by its left upper
    corner.
    """

    name: Annotated[str, Field(min_length=1, max_length=64)]
    x_deg: Finite
    y_deg: Finite
    width_deg: Annotated[Finite, Field(gt=0)]
    height_deg: Annotated[Finite, Field(gt=0)]


class AreaAnswer(Answer):
    """A registered rectangle, its edges moved outward to the public grid."""

    id: int | str
    name: str
    x_deg: float
    y_deg: float
    width_deg: float
    height_deg: float


class AreasAnswer(Answer):
    """All rectangles of the app."""

    areas: list[AreaAnswer]


class EventAnswer(Answer):
    """One eye movement, its place the centre of a cell and its times whole ticks."""

    number: int
    kind: str
    x_deg: float
    y_deg: float
    t_ms: int
    duration_ms: int


class FixationsAnswer(Answer):
    """Fixations in a rectangle."""

    fixations: list[EventAnswer]


class SaccadesAnswer(Answer):
    """Saccades that landed in a rectangle."""

    saccades: list[EventAnswer]


class MetricsAnswer(Answer):
    """Numbers of one rectangle."""

    fixations: int
    visits: int
    dwell_ms: int
    order: int | None
    first_fixation_ms: int | None
    first_saccade_ms: int | None


class GuaranteeAnswer(Answer):
    """What is promised, as a sentence and as numbers."""

    text: str
    definition: str
    unit: str
    status: str
    numbers: dict[str, str]


class AreaCounterAnswer(Answer):
    """A noisy count of fixations and what it promises."""

    fixations: int
    epsilon: str
    guarantee: GuaranteeAnswer


class DwellAnswer(Answer):
    """How long one fixation lasted."""

    duration_ms: int


class TileAnswer(Answer):
    """The tile that is looked at, counted row by row from the left upper one."""

    tile: int | None


Bound = Annotated[list[Annotated[str, Field(max_length=64)]], Field(min_length=2, max_length=2)]


class MechanismBody(Body):
    """A mechanism the app may use: each named parameter with its bound, e.g. `{"epsilon": ["<=",
    "1"]}`.
    """

    name: Annotated[str, Field(min_length=1, max_length=64)]
    parameters: dict[str, Bound] = Field(default_factory=dict, max_length=16)
    unproved: bool = False


class AccessRequestBody(Body):
    """What an app would like to be granted: a preset or scopes, and a purpose, all by names of
    closed lists.
    """

    preset: (
        Annotated[str, Field(max_length=64, description="A name of `presets` in `/v1/apps`.")]
        | None
    ) = None
    purpose: Annotated[
        str,
        Field(
            max_length=32, description="A code of `purposes` in `/v1/apps`, for example `choose`."
        ),
    ]
    scopes: Annotated[list[Annotated[str, Field(max_length=32)]], Field(max_length=16)] = Field(
        default_factory=list
    )


class AccessRequestedAnswer(Answer):
    """The owner will see it."""

    asked: bool


class AccessRequestAnswer(Answer):
    """One app's ask that waits for the owner."""

    id: int
    app: str
    preset: str | None
    purpose: str
    scopes: list[str]
    t_ns: int


class AccessRequestsAnswer(Answer):
    """All asks that wait."""

    asks: list[AccessRequestAnswer]


class LevelAnswer(Answer):
    """How fine any answer of this device can be."""

    name: str
    resolution_deg: float
    tick_ms: int
    least_side_deg: float
    tiles: tuple[int, int]


class SpaceAnswer(Answer):
    """What the degrees mean."""

    kind: Literal["sphere", "screen"]
    width_deg: float
    height_deg: float


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


class MeAnswer(Answer):
    """What the app that asks may do now."""

    app: str
    consent: bool
    state: State
    grant: GrantAnswer | None
    budgets: list[BudgetAnswer]
    level: LevelAnswer
    space: SpaceAnswer
    rate_hz: float
    charged_r_deg: str
    asked: bool
    blocked: bool


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


class PresetAnswer(Answer):
    """A ready grant and what it means."""

    name: str
    means: str
    platform: str
    scopes: list[str]
    mechanisms: list[str]


class PurposeAnswer(Answer):
    """What an app may say it wants gaze for."""

    code: str
    means: str


class UseAnswer(Answer):
    """One app and a scope it uses now."""

    app: str
    what: str


class InUseAnswer(Answer):
    """Who uses the gaze now."""

    in_use: list[UseAnswer]


class TakenAnswer(Answer):
    """Something was taken away; where `written` is false it is in force, and is written when the
    disk and the database take it.
    """

    app: str
    written: bool


class TrackerAnswer(Answer):
    """Where gaze comes from."""

    name: str
    connected: bool


class WearerBody(Body):
    """Who wears the device now; null where that is not known."""

    name: Name | None


class NewWearerBody(Body):
    """A person whom the policy is to name."""

    name: Name


class WearerAnswer(Answer):
    """Who wears the device, and whom the policy names. Somebody it does not name has no consent and
    no grants.
    """

    name: str | None
    known: bool
    wearers: list[str]


class AuditKeyAnswer(Answer):
    """The key of the audit log, as hexadecimal digits. Keep it apart from exports: it tells the
    apps' names and can write a log.
    """

    key: str


class ReloadAnswer(Answer):
    """What is in force after the policy file was read again."""

    consent: bool
    apps: int


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
    purposes: list[PurposeAnswer]
    apps: list[AppAnswer]
    ledger: bool = Field(
        description=(
            "Whether the ledger answers; while it does not, this page is told from memory and no"
            " app gets anything."
        )
    )


class AppBody(Body):
    """A new app; origins are the web pages that may use its token, besides the device's own."""

    name: Name
    origins: Annotated[list[Origin], Field(max_length=16)] = Field(default_factory=list)


class TokenAnswer(Answer):
    """The token is shown here and never again."""

    app: str
    token: str


class GrantBody(Body):
    """A grant in full."""

    scopes: Annotated[list[Annotated[str, Field(max_length=32)]], Field(max_length=16)] = Field(
        default_factory=list
    )
    mechanisms: Annotated[list[MechanismBody], Field(max_length=16)] = Field(default_factory=list)
    areas: Annotated[int, Field(ge=0, le=1000)] = 16
    calls_per_minute: Annotated[int, Field(ge=0, le=100_000)] = 600
    streams: Annotated[int, Field(ge=0, le=1000)] = 1
    most_hz: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)] | None = None
    budgets: Annotated[
        dict[Literal["epsilon", "rho", "samples", "place"], Exact], Field(max_length=8)
    ] = Field(default_factory=dict)
    per: Literal["session", "day", "ever"] = "day"
    expires_ns: TimeNs | None = None


class GiveBody(Body):
    """A preset by name, with changes if wanted, or a grant in full."""

    preset: Annotated[str, Field(max_length=64)] | None = None
    budgets: (
        Annotated[dict[Literal["epsilon", "rho", "samples", "place"], Exact], Field(max_length=8)]
        | None
    ) = None
    per: Literal["session", "day", "ever"] | None = None
    expires_ns: TimeNs | None = None
    grant: GrantBody | None = None
    lasts: Lasts = "once"
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


class AuditEntry(Answer):
    """One line of the audit log; the app is a hashed id, and its name stands beside it where it is
    known.
    """

    number: int
    t_ns: int
    kind: str
    app: str | None
    name: str | None
    detail: dict[str, Any]


class AuditAnswer(Answer):
    """Lines of the audit log, and whether its chain of hashes holds."""

    entries: list[AuditEntry]
    verified: bool | None
    last: int


class CertificateAnswer(Answer):
    """What the device promises now."""

    text: str
    certificate: dict[str, Any]


class HealthAnswer(Answer):
    """Whether the service runs, and what of it does not."""

    live: bool
    ready: bool
    database: bool
    tracker: bool
    version: str
    reason: str | None = Field(description="Why nothing can be given now, and what to do.")


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
