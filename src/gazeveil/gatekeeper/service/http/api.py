"""What an app may ask over HTTP: its areas, what was seen in them, the tile, and what it is
allowed.

Every path needs the app's token. Numbers of other apps' areas and events are answered like numbers
that do not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from gazeveil.gatekeeper.core.app import App
from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.policy.identity import LocalIdentity, user_app
from gazeveil.gatekeeper.service.credentials.callers import Caller
from gazeveil.gatekeeper.service.http.middleware import address, same_origin
from gazeveil.gatekeeper.service.http.schemas.app import (
    AccessRequestBody,
    AccessRequestedAnswer,
    AreaAnswer,
    AreaBody,
    AreaCounterAnswer,
    AreasAnswer,
    DwellAnswer,
    FixationsAnswer,
    MeAnswer,
    MetricsAnswer,
    SaccadesAnswer,
    TileAnswer,
)
from gazeveil.gatekeeper.service.http.schemas.fields import Failure
from gazeveil.gatekeeper.service.service import Service
from gazeveil.gatekeeper.service.sockets.local_socket import local_of


def failures(reasons: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """What paths may answer instead, by status, as the OpenAPI page has it."""
    return {status: {"model": Failure, "description": reason} for status, reason in reasons.items()}


#: What any path may answer instead.
PROBLEMS = failures(
    {
        400: "The request cannot be read.",
        401: "No token, or one that is not valid.",
        403: "The policy does not allow it, or the origin or host is not allowed.",
        404: "There is no such thing, or it is not the caller's.",
        409: "Another ask of the app waits, or the ask has changed.",
        408: "The body came too slowly.",
        413: "The body is too large.",
        422: "A value is not allowed.",
        429: "Too many requests or wrong tokens.",
        503: "The ledger or the disk cannot be written; nothing is given.",
    }
)

BEARER = HTTPBearer(auto_error=False, description="The token of an app, a tracker or the owner.")

Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]

Number = Annotated[int, Path(ge=0, le=2**53)]
Millis = Annotated[
    int | None, Query(ge=0, le=2**53, description="Milliseconds since the session began.")
]
After = Annotated[
    int | None, Query(ge=0, le=2**53, description="Only what comes after this event's number.")
]
Limit = Annotated[int, Query(ge=1, le=1000)]

router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["app"])


def service_of(request: Request) -> Service:
    """The service behind a request."""
    service: Service = request.app.state.service
    return service


def app_caller(request: Request, credentials: Credentials) -> Caller:
    """The app that asks."""
    token = credentials.credentials if credentials is not None else ""
    service, where = service_of(request), address(request.scope)
    return service.callers.of_app(token, where, origin_of(request), local_of(request.scope))


def origin_of(request: Request) -> str | None:
    """The origin of the page that asks, where it is not the service's own."""
    public = service_of(request).settings.public_origin
    own = same_origin(request.headers, request.url.scheme, public)
    return None if own else request.headers.get("origin")


def asking(
    request: Request, credentials: Credentials
) -> tuple[str, str | None, LocalIdentity | None]:
    """The app that asks, and the origin or the user of one that brings no token."""
    service, origin, local = service_of(request), origin_of(request), local_of(request.scope)
    if credentials is None and origin is not None:
        return service.origin_app(origin), origin, None
    if credentials is None and local is not None and service.callers.local_app(local) is None:
        return user_app(local.uid), None, LocalIdentity(uid=local.uid)
    return app_caller(request, credentials).app, None, None


def app_view(request: Request, caller: Annotated[Caller, Depends(app_caller)]) -> App:
    """The core's view of the app that asks."""
    if caller.newcomer:
        raise Refused(403, "no-grant", "The wearer has not answered yet. Wait, or ask again.")
    return service_of(request).keeper.app(caller.app)


def _show(request: Request, app: App, question: str, area_id: int) -> None:
    """Let the owner's page see which question was answered."""
    service = service_of(request)
    area = service.areas.get((app.name, area_id))
    if area is not None and service.broadcaster.viewers:
        sides = {
            "x_deg": area.x_deg,
            "y_deg": area.y_deg,
            "width_deg": area.width_deg,
            "height_deg": area.height_deg,
        }
        service.broadcaster.show(
            app.name, {"what": question, "area": {"id": area.id, "name": area.name, **sides}}
        )


def window_of(
    since_ms: Millis = None, until_ms: Millis = None, after: After = None, limit: Limit = 1000
) -> dict[str, Any]:
    """Which events of an area are asked for, as the core's parameters."""
    return {"since_ms": since_ms, "until_ms": until_ms, "after": after, "limit": limit}


Window = Annotated[dict[str, Any], Depends(window_of)]
Me = Annotated[Caller, Depends(app_caller)]
Asker = Annotated[tuple[str, str | None, LocalIdentity | None], Depends(asking)]
CallingApp = Annotated[App, Depends(app_view)]


@router.get("/me", response_model=MeAnswer)
def me(request: Request, caller: Me) -> dict[str, Any]:
    """What the app may do now and what of its budget is left; works without a grant."""
    service = service_of(request)
    budgets = [] if caller.newcomer else service.budgets(caller.app)
    grant = None if caller.newcomer else service.grant_figures(caller.app)
    return {
        "app": caller.app,
        "consent": service.policy.consent,
        "state": "none" if caller.newcomer else service.state(caller.app),
        "grant": grant,
        "want": None if grant is None else grant["preset"],
        "left_s": service.left_s(caller.app, budgets),
        "answer": service.access_requests.answer(caller.app),
        "budgets": budgets,
        "asked": service.access_requests.of(caller.app) is not None,
        "blocked": service.access_requests.blocked(caller.app),
        "tracker": service.tracker_here(),
        **service.public(),
    }


@router.post("/ask", response_model=AccessRequestedAnswer, response_model_exclude_none=True)
def ask(request: Request, asker: Asker, wish: AccessRequestBody) -> dict[str, str]:
    """Ask the wearer for a preset; works without a grant. One question of an app waits at a time.

    A page of another origin, or a program over the Unix socket, needs no token for its first
    question. The token that the page is given works once the wearer has said yes.
    """
    app, origin, identity = asker
    return service_of(request).ask(app, wish.want, origin, identity)


@router.get("/areas", response_model=AreasAnswer)
def areas(app: CallingApp) -> dict[str, Any]:
    """All areas of the app."""
    return {"areas": list(app.areas())}


@router.post("/areas", response_model=AreaAnswer, status_code=201)
def register_area(request: Request, app: CallingApp, area: AreaBody) -> Any:
    """Register a rectangle; it comes back with its edges moved outward to the public grid. Only
    what happens from now on is counted.
    """
    made = app.register_area(area.name, area.x_deg, area.y_deg, area.width_deg, area.height_deg)
    service_of(request).areas[app.name, made.id] = made
    _show(request, app, "areas", made.id)
    return made


@router.delete("/areas/{area_id}", status_code=204)
def remove_area(request: Request, app: CallingApp, area_id: Number) -> None:
    """Remove an area."""
    app.remove_area(area_id)
    service_of(request).areas.pop((app.name, area_id), None)


@router.get("/areas/{area_id}/fixations", response_model=FixationsAnswer)
def fixations(request: Request, app: CallingApp, area_id: Number, window: Window) -> dict[str, Any]:
    """Fixations in an area: place of the cell, whole ticks."""
    events = app.get_fixations(area_id, **window)
    _show(request, app, "fixations", area_id)
    return {"fixations": events}


@router.get("/areas/{area_id}/saccades", response_model=SaccadesAnswer)
def saccades(request: Request, app: CallingApp, area_id: Number, window: Window) -> dict[str, Any]:
    """Saccades that landed in an area: cell and tick of the landing."""
    events = app.get_saccades(area_id, **window)
    _show(request, app, "saccades", area_id)
    return {"saccades": events}


@router.get("/areas/{area_id}/metrics", response_model=MetricsAnswer)
def metrics(request: Request, app: CallingApp, area_id: Number) -> Any:
    """Count, visits, dwell, order and times to the first fixation and saccade."""
    answer = app.metrics(area_id)
    _show(request, app, "metrics", area_id)
    return answer


@router.get("/areas/{area_id}/counter", response_model=AreaCounterAnswer)
def counter(request: Request, app: CallingApp, area_id: Number) -> dict[str, Any]:
    """A differentially private count of fixations since the app first asked; costs budget when it
    is new.
    """
    answer = app.counter(area_id)
    _show(request, app, "counter", area_id)
    return {
        "fixations": answer.fixations,
        "epsilon": str(answer.epsilon),
        "guarantee": service_of(request).guarantee(answer.guarantee),
    }


@router.get("/fixations/{number}/dwell", response_model=DwellAnswer)
def dwell(app: CallingApp, number: Number) -> dict[str, int]:
    """How long a fixation lasted that the app was shown."""
    return {"duration_ms": app.get_dwell_time(number)}


@router.get("/tile", response_model=TileAnswer)
def tile(app: CallingApp) -> dict[str, int | None]:
    """The tile that is looked at."""
    return {"tile": app.current_tile()}
