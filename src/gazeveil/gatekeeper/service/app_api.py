"""What an app may ask over HTTP: its areas, what was seen in them, the tile, and what it is
allowed.

Every path needs the app's token. Numbers of other apps' areas and events are answered like numbers
that do not exist.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

from gazeveil.gatekeeper.core.app import App
from gazeveil.gatekeeper.core.area_metrics import AreaMetrics
from gazeveil.gatekeeper.core.areas import RegisteredArea
from gazeveil.gatekeeper.core.events import PublicEvent
from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.policy.identity import user_app
from gazeveil.gatekeeper.service.credentials import Caller
from gazeveil.gatekeeper.service.guard import same_origin
from gazeveil.gatekeeper.service.peers import peer_of_scope
from gazeveil.gatekeeper.service.service import Service


class Problem(BaseModel):
    """What went wrong, as a word and a sentence."""

    code: str = Field(examples=["no-grant"])
    reason: str = Field(examples=["The app 'reader' has no grant. Ask the owner for one."])


class Failure(BaseModel):
    """The one shape of every error."""

    error: Problem


class Body(BaseModel):
    """A request: unknown fields are refused, types are not guessed."""

    model_config = ConfigDict(extra="forbid", strict=True)


#: What any path may answer instead, by status.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": reason}
    for status, reason in {
        400: "The request cannot be read.",
        401: "No token, or one that is not valid.",
        403: "The policy does not allow it, or the origin or host is not allowed.",
        404: "There is no such thing, or it is not the caller's.",
        409: "Another ask of the app waits, or something was taken away meanwhile.",
        408: "The body came too slowly.",
        413: "The body is too large.",
        422: "A value is not allowed.",
        429: "Too many requests.",
        503: "The ledger cannot be written; nothing is given.",
    }.items()
}

BEARER = HTTPBearer(auto_error=False, description="The token of an app or of the owner.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]
Number = Annotated[int, Path(ge=0, le=2**53)]
Millis = Annotated[
    int | None, Query(ge=0, le=2**53, description="Milliseconds since the session began.")
]
After = Annotated[
    int | None, Query(ge=0, le=2**53, description="Only what comes after this event's number.")
]
Limit = Annotated[int, Query(ge=1, le=1000)]
Degrees = Annotated[float, Field(allow_inf_nan=False, ge=-100_000, le=100_000)]

router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["app"])


class AreaBody(Body):
    """A rectangle in degrees of the device's space, x to the right and y down, by its left upper
    corner.
    """

    name: Annotated[str, Field(min_length=1, max_length=64)]
    x_deg: Degrees
    y_deg: Degrees
    width_deg: Annotated[Degrees, Field(gt=0)]
    height_deg: Annotated[Degrees, Field(gt=0)]


class AskBody(Body):
    """What an app would like to be granted: `choose`, `count`, `follow` or `study`."""

    want: Annotated[str, Field(max_length=64)]


def service_of(request: Request) -> Service:
    """The service behind a request."""
    service: Service = request.app.state.service
    return service


def origin_of(request: Request) -> str | None:
    """The origin of the page that asks, where it is not the service's own."""
    public = service_of(request).settings.public_origin
    return (
        None
        if same_origin(request.headers, request.url.scheme, public)
        else request.headers.get("origin")
    )


def app_caller(request: Request, credentials: Credentials) -> Caller:
    """The app that asks."""
    return service_of(request).app_caller(
        credentials.credentials if credentials is not None else "",
        origin_of(request),
        peer_of_scope(request.scope).local,
    )


def asking(request: Request, credentials: Credentials) -> tuple[str, str | None, int | None]:
    """The app that asks, and the origin or the user of one that brings no token."""
    service, origin, local = (
        service_of(request),
        origin_of(request),
        peer_of_scope(request.scope).local,
    )
    if credentials is None and origin is not None:
        return service.origin_app(origin), origin, None
    if credentials is None and local is not None and service.local_app(local) is None:
        return user_app(local), None, local
    caller = app_caller(request, credentials)
    # A page whose question was answered with no still holds its pass, and asks as its origin anew.
    known = not caller.newcomer or service.access_requests.of(caller.app) is not None
    return caller.app, None if known else origin, None


def app_view(request: Request, caller: Annotated[Caller, Depends(app_caller)]) -> App:
    """The core's view of the app that asks."""
    if caller.newcomer:
        raise Refused(403, "no-grant", "The wearer has not answered yet. Wait, or ask again.")
    return service_of(request).keeper.app(caller.app)


def window_of(
    since_ms: Millis = None, until_ms: Millis = None, after: After = None, limit: Limit = 1000
) -> dict[str, Any]:
    """Which events of an area are asked for, as the core's parameters."""
    return {"since_ms": since_ms, "until_ms": until_ms, "after": after, "limit": limit}


Window = Annotated[dict[str, Any], Depends(window_of)]
Me = Annotated[Caller, Depends(app_caller)]
Asker = Annotated[tuple[str, str | None, int | None], Depends(asking)]
CallingApp = Annotated[App, Depends(app_view)]


def _show(request: Request, app: App, question: str, area: RegisteredArea | None) -> None:
    """Let the owner's page see which question was answered."""
    broadcaster = service_of(request).broadcaster
    if area is not None and broadcaster.viewers:
        broadcaster.show(app.name, {"what": question, "area": vars(area)})


def _about(request: Request, app: App, question: str, area_id: int) -> None:
    states = service_of(request).keeper.state.app_states.get(app.name)
    if states is not None and area_id in states.areas:
        _show(request, app, question, states.areas[area_id].area)


@router.get("/me")
def me(request: Request, caller: Me) -> dict[str, Any]:
    """What the app may do now, and how long; works without a grant."""
    service, app = service_of(request), caller.app
    grant = None if caller.newcomer else service.grant_figures(app)
    return {
        "app": app,
        "consent": service.policy.consent,
        "state": "none" if caller.newcomer else service.state(app),
        "grant": grant,
        "want": None if grant is None else grant["preset"],
        "left_s": None if caller.newcomer else service.left_s(app),
        "t_ms": None if caller.newcomer else service.t_ms(app),
        "answer": service.access_requests.answer(app),
        "budgets": [] if caller.newcomer else service.budgets(app),
        "blocked": app in service.access_requests.blocked_apps(),
        "tracker": service.tracker_here(),
        **service.public(),
    }


@router.post("/ask")
def ask(request: Request, asker: Asker, wish: AskBody) -> dict[str, str]:
    """Ask the wearer for a preset; works without a grant. One question of an app waits at a time.

    A page of another origin, or a program over the Unix socket, needs no token for its first
    question. The token that the page is given works once the wearer has said yes.
    """
    app, origin, uid = asker
    return service_of(request).ask(app, wish.want, origin, uid)


@router.get("/areas")
def areas(app: CallingApp) -> dict[str, list[RegisteredArea]]:
    """All areas of the app."""
    return {"areas": list(app.areas())}


@router.post("/areas", status_code=201)
def register_area(request: Request, app: CallingApp, area: AreaBody) -> RegisteredArea:
    """Register a rectangle; it comes back with its edges moved outward to the public grid. Only
    what happens from now on is counted.
    """
    made = app.register_area(area.name, area.x_deg, area.y_deg, area.width_deg, area.height_deg)
    _show(request, app, "areas", made)
    return made


@router.delete("/areas/{area_id}", status_code=204)
def remove_area(app: CallingApp, area_id: Number) -> None:
    """Remove an area."""
    app.remove_area(area_id)


@router.get("/areas/{area_id}/fixations")
def fixations(
    request: Request, app: CallingApp, area_id: Number, window: Window
) -> dict[str, tuple[PublicEvent, ...]]:
    """Fixations in an area: place of the cell, whole ticks."""
    events = app.get_fixations(area_id, **window)
    _about(request, app, "fixations", area_id)
    return {"fixations": events}


@router.get("/areas/{area_id}/saccades")
def saccades(
    request: Request, app: CallingApp, area_id: Number, window: Window
) -> dict[str, tuple[PublicEvent, ...]]:
    """Saccades that landed in an area: cell and tick of the landing."""
    events = app.get_saccades(area_id, **window)
    _about(request, app, "saccades", area_id)
    return {"saccades": events}


@router.get("/areas/{area_id}/metrics")
def metrics(request: Request, app: CallingApp, area_id: Number) -> AreaMetrics:
    """Count, visits, dwell, order and times to the first fixation and saccade."""
    answer = app.metrics(area_id)
    _about(request, app, "metrics", area_id)
    return answer


@router.get("/fixations/{number}/dwell")
def dwell(app: CallingApp, number: Number) -> dict[str, int]:
    """How long a fixation lasted that the app was shown."""
    return {"duration_ms": app.get_dwell_time(number)}


@router.get("/tile")
def tile(app: CallingApp) -> dict[str, int | None]:
    """The tile that is looked at."""
    return {"tile": app.current_tile()}
