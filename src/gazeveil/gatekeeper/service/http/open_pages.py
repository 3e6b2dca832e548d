"""Whether the service runs, for everybody, and its counters, for the owner."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from gazeveil import __version__
from gazeveil.gatekeeper.service.http.api import failures, service_of
from gazeveil.gatekeeper.service.http.owner_session import Owner
from gazeveil.gatekeeper.service.http.schemas.device import HealthAnswer
from gazeveil.gatekeeper.service.metrics_page import CONTENT_TYPE

router = APIRouter()

_CLOSED = failures(
    {
        401: "No token or session, or one that is not valid.",
        403: "The token is not the owner's, or the page not the device's own.",
        422: "A value is not allowed.",
        429: "Too many requests or wrong tokens.",
        503: "The token cannot be looked up now.",
    }
)


def _health(request: Request) -> dict[str, Any]:
    service = service_of(request)
    reason = service.why_not_ready()
    return {
        "live": True,
        "ready": reason is None,
        "database": service.database_up,
        "tracker": service.tracker_input.connected,
        "version": __version__,
        "reason": reason,
    }


@router.get("/health", response_model=HealthAnswer, tags=["open"])
async def live_page(request: Request) -> dict[str, Any]:
    """Whether the service runs; `ready` says whether it can give anything now."""
    return _health(request)


@router.get(
    "/health/ready",
    response_model=HealthAnswer,
    tags=["open"],
    responses={503: {"model": HealthAnswer, "description": "Not ready."}},
)
async def ready_page(request: Request) -> JSONResponse:
    """The same, with status 503 while the service cannot give anything."""
    shown = _health(request)
    return JSONResponse(shown, 200 if shown["ready"] else 503)


@router.get(
    "/metrics",
    tags=["owner"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **_CLOSED},
)
def metrics_page(request: Request, caller: Owner) -> Response:
    """Counters for Prometheus, for the owner's token or session; renewed once a minute, so that
    they do not tell when eyes move.
    """
    service = service_of(request)
    return Response(service.metrics.page(service.refresh_metrics), media_type=CONTENT_TYPE)
