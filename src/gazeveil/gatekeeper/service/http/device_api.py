"""What the platform and the operator do: who wears the device, reading the policy file again, and
taking the audit log elsewhere.

All of it needs the owner's session or an owner's token. A tracker on the service's own channel may
say who wears the device there.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import StreamingResponse

from gazeveil.gatekeeper.service.http.api import PROBLEMS, failures, service_of
from gazeveil.gatekeeper.service.http.owner_session import Owner, TakenBefore
from gazeveil.gatekeeper.service.http.schemas.device import (
    AuditKeyAnswer,
    NewWearerBody,
    ReloadAnswer,
    WearerAnswer,
    WearerBody,
)
from gazeveil.gatekeeper.service.http.schemas.fields import APP_PATTERN

router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["device"])

WearerName = Annotated[str, Path(min_length=1, max_length=64, pattern=APP_PATTERN)]


@router.get("/wearer", response_model=WearerAnswer)
def wearer(request: Request, owner: Owner) -> dict[str, Any]:
    """Who wears the device."""
    return service_of(request).wearer_figures()


@router.post("/wearer", response_model=WearerAnswer)
async def switch_wearer(request: Request, owner: Owner, body: WearerBody) -> dict[str, Any]:
    """Somebody else wears the device now: every subscription ends, and consent, grants and budgets
    are theirs.
    """
    service = service_of(request)
    await service.switch_wearer(body.name, stale=True)
    return service.wearer_figures()


@router.post("/wearers", response_model=WearerAnswer, status_code=201)
def add_wearer(
    request: Request, taken: TakenBefore, owner: Owner, body: NewWearerBody
) -> dict[str, Any]:
    """Name one more person in the policy. Nothing is allowed in their name until they give consent
    while they wear the device.
    """
    service = service_of(request)
    service.add_wearer(body.name, taken)
    return service.wearer_figures()


@router.delete("/wearers/{name}", status_code=204)
def drop_wearer(request: Request, taken: TakenBefore, owner: Owner, name: WearerName) -> None:
    """Take a person out of the policy. What was spent in their name stays spent."""
    service_of(request).drop_wearer(name, taken)


@router.get(
    "/audit/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
            "description": "One JSON object on each line.",
        }
    },
)
def export_audit(request: Request, owner: Owner) -> StreamingResponse:
    """The whole audit log as JSON lines; `gazeveil verify --audit-key` checks it anywhere."""
    service = service_of(request)
    lines = service.audit.export(service.settings.device, service.ledger.now_ns())
    return StreamingResponse(
        lines,
        media_type="application/x-ndjson",
        headers={"content-disposition": 'attachment; filename="audit.jsonl"'},
    )


@router.get("/audit/key", response_model=AuditKeyAnswer)
def audit_key(request: Request, owner: Owner) -> dict[str, str]:
    """The key that an export is checked with. Keep it apart from the export: it tells the apps'
    names and can write a log.
    """
    return {"key": service_of(request).audit.key.hex()}


@router.post(
    "/policy/reload",
    response_model=ReloadAnswer,
    responses=failures({409: "The file cannot be read."}),
)
def reload_policy(request: Request, taken: TakenBefore, owner: Owner) -> dict[str, Any]:
    """Read the policy file again. What it takes away is gone at once; one that cannot be read
    leaves the old policy in force.
    """
    service = service_of(request)
    service.reload_policy(taken)
    return {"consent": service.policy.consent, "apps": len(service.policy.apps)}
