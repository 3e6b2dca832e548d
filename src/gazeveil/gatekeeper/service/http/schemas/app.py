"""What an app asks over HTTP, and what it is answered."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gazeveil.gatekeeper.service.http.schemas.device import LevelAnswer, SpaceAnswer, TrackerHere
from gazeveil.gatekeeper.service.http.schemas.fields import Answer, Body, Finite, State
from gazeveil.gatekeeper.service.http.schemas.grants import BudgetAnswer, GrantAnswer


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


class AccessRequestBody(Body):
    """What an app would like to be granted: `choose`, `count`, `follow` or `study`."""

    want: Annotated[str, Field(max_length=64)]


class AccessRequestedAnswer(Answer):
    """How the question stands, and the token of a page that brought none; it is worth nothing until
    its question is granted.
    """

    state: Literal["waiting", "granted"]
    token: str | None = None


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
    want: str | None = Field(description="The preset that is granted.")
    left_s: int | None = Field(description="Seconds until the grant or its budget ends.")
    answer: Literal["waiting", "granted", "refused", "dismissed"] | None
    tracker: TrackerHere
