"""What the owner of the device does: apps and their tokens, grants, consent, budgets, the audit
log, the certificate.

Who the owner is says :mod:`gazeveil.gatekeeper.service.http.owner_session`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper.errors import Denied, LedgerError, Refused
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.presets import PRESETS
from gazeveil.gatekeeper.policy.rules import rule_text
from gazeveil.gatekeeper.policy.text import grant_of
from gazeveil.gatekeeper.service.certificate import certificate, certificate_text
from gazeveil.gatekeeper.service.decisions import unknown_name
from gazeveil.gatekeeper.service.http.api import PROBLEMS, service_of
from gazeveil.gatekeeper.service.http.owner_session import (
    Owner,
    TakenBefore,
    Taker,
    need_both_halves,
)
from gazeveil.gatekeeper.service.http.schemas.device import AuditAnswer, CertificateAnswer
from gazeveil.gatekeeper.service.http.schemas.fields import APP_PATTERN
from gazeveil.gatekeeper.service.http.schemas.grants import BudgetsAnswer, GiveBody
from gazeveil.gatekeeper.service.http.schemas.owner import (
    AccessRequestsAnswer,
    AppAnswer,
    AppBody,
    ConfirmBody,
    ConsentAnswer,
    ConsentBody,
    DeviceAnswer,
    InUseAnswer,
    RevokedAnswer,
    TakenAnswer,
    TokenAnswer,
)
from gazeveil.gatekeeper.service.service import Service

router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["owner"])


AppName = Annotated[str, Path(min_length=1, max_length=64, pattern=APP_PATTERN)]


@router.get("/apps", response_model=DeviceAnswer)
async def apps(request: Request, owner: Owner) -> dict[str, Any]:
    """The device, the presets and all apps, from memory: what is in force is shown also while the
    ledger does not answer.
    """
    service = service_of(request)
    return await service.from_memory(_device, service)


def _device(service: Service) -> dict[str, Any]:
    with_token = service.tokens.live.apps(service.ledger.now_ns())
    asking = (ask.app for ask in service.access_requests.waiting())
    blocked = service.access_requests.blocked_apps()
    names = sorted({*service.policy.apps, *with_token, *asking, *blocked})
    calls = service.keeper.calls()
    return {
        "device": service.settings.device,
        "consent": service.policy.consent,
        "wearer": service.wearer_figures(),
        **service.public(),
        "tracker": {
            "name": service.settings.tracker if service.tracker is None else service.tracker.name,
            "connected": service.tracker_input.connected,
            "trouble": service.tracker_input.trouble,
        },
        "presets": [
            {
                "name": p.name,
                "sentence": p.sentence,
                "recognise": p.recognise,
                "means": p.means,
                "platform": p.platform,
                "scopes": sorted(p.scopes),
                "mechanisms": [rule_text(r) for r in p.mechanisms],
            }
            for p in PRESETS.values()
        ],
        "apps": [_app(service, name, name in with_token, calls.get(name, 0)) for name in names],
        "ledger": service.database_up,
        # That a database answers says nothing of what was written while it did not.
        "written": service.revocations.consent_written,
    }


def _app(service: Service, name: str, has_token: bool, calls: int) -> dict[str, Any]:
    grant = service.policy.apps.get(name)
    shown = ("id", "what", "mechanism", "sent", "dropped")
    streams = [
        {field: getattr(channel, field) for field in shown}
        for connection in service.broadcaster.of(name)
        for channel in tuple(connection.channels.values())
    ]
    return {
        "app": name,
        "origins": list(grant.origins) if grant else [],
        "has_token": has_token,
        "state": service.state(name),
        "grant": service.grant_figures(name),
        "streams": streams,
        "calls_last_minute": calls,
        "blocked": service.access_requests.blocked(name),
        "in_use": [scope for app, scope in service.keeper.in_use() if app == name],
    }


@router.post("/apps", response_model=TokenAnswer, status_code=201)
def add_app(request: Request, taken: TakenBefore, owner: Owner, body: AppBody) -> dict[str, str]:
    """Make an app known and give out its token, once. It may do nothing until it is granted
    something.
    """
    service = service_of(request)
    if body.name.partition(".")[0] in ("http", "https", "uid", "user"):
        reason = "Names of this kind belong to pages and users, which need no token."
        raise Refused(422, "taken", reason)
    if _has_token(service, body.name):
        reason = "There is an app of this name already. Rotate its token, or choose another name."
        raise Refused(403, "taken", reason)
    service.add_app(body.name, tuple(body.origins), taken)
    token = service.tokens.issue(body.name, "app", service.token_end_ns())
    service.changed("apps")
    return {"app": body.name, "token": token}


def _known(service: Service, app: str) -> None:
    asked = service.access_requests
    named = app in service.policy.apps or asked.of(app) is not None or asked.blocked(app)
    if not named and not _has_token(service, app):
        raise Refused(404, "unknown", "There is no such app. GET /v1/apps lists those there are.")


def _has_token(service: Service, app: str) -> bool:
    return app in service.tokens.live.apps(service.ledger.now_ns())


def _bound(sign: str, value: str) -> object:
    """A bound as policy files write it."""
    if sign not in ("<=", ">=", "=", "..", "in", "any"):
        raise Refused(422, "grant", "A bound is one of <=, >=, =, .., in and any.")
    written = {"=": value, "..": value, "any": "any", "in": value.split("|")}
    return written.get(sign, f"{sign} {value}")


@router.post("/apps/{app}/grant", response_model=AppAnswer)
def grant(
    request: Request, taken: TakenBefore, owner: Owner, app: AppName, body: GiveBody
) -> dict[str, Any]:
    """Grant a preset, with changes if wanted, or a grant in full; in force at once."""
    service = service_of(request)
    _known(service, app)
    if (body.preset is None) == (body.grant is None):
        raise Refused(422, "body", "Give either a preset or a grant.")
    waiting = service.access_requests.of(app)
    if body.ask is not None and (waiting is None or waiting.id != body.ask):
        reason = "The app does not ask for this any more. Look at what it asks for now."
        raise Refused(409, "changed", reason)
    before = service.policy.apps.get(app, Grant())
    try:
        if body.grant is not None:
            table = body.grant.model_dump(exclude_none=True)
            table["mechanisms"] = [
                {
                    "name": m.name,
                    "unproved": m.unproved,
                    "parameters": {k: _bound(*bound) for k, bound in m.parameters.items()},
                }
                for m in body.grant.mechanisms
            ]
            chosen = grant_of(table)
        else:
            preset = PRESETS.get(str(body.preset))
            if preset is None:
                raise unknown_name("preset", PRESETS)
            changes = {"budgets": body.budgets, "per": body.per, "expires_ns": body.expires_ns}
            chosen = preset.grant(**{n: value for n, value in changes.items() if value is not None})
        kept = replace(chosen, origins=before.origins, identity=before.identity, revoked=False)
        answered = waiting if body.ask is not None else None
        service.set_grant(app, replace(kept, lasts=body.lasts), taken, answered)
    except GazeveilError as error:
        if isinstance(error, Refused | Denied | LedgerError):
            raise
        raise Refused(422, "grant", str(error)) from None
    return _app(service, app, _has_token(service, app), 0)


@router.post("/apps/{app}/revoke", response_model=RevokedAnswer)
async def revoke(request: Request, owner: Taker, app: AppName) -> dict[str, Any]:
    """Take the grant back; open subscriptions end within one sample, also while nothing can be
    written.
    """
    service = service_of(request)
    _known(service, app)
    written = await service.at_once(service.revoke, app)
    return {**_app(service, app, _has_token(service, app), 0), "written": written}


@router.post("/apps/{app}/unblock", response_model=AppAnswer)
def unblock(request: Request, owner: Owner, app: AppName) -> dict[str, Any]:
    """Let an app ask again whose asks were dismissed three times."""
    service = service_of(request)
    _known(service, app)
    service.unblock(app)
    return _app(service, app, _has_token(service, app), 0)


@router.delete("/apps/{app}", response_model=TakenAnswer)
async def drop_app(request: Request, owner: Taker, app: AppName) -> dict[str, Any]:
    """Remove an app with its token, grant, areas, asks and block; its connections are closed. What
    it has spent stays spent.

    An app that is added later under the same name begins with nothing.
    """
    service = service_of(request)
    _known(service, app)
    return {"app": app, "written": await service.at_once(service.drop, app)}


@router.post("/apps/{app}/token", response_model=TokenAnswer)
def rotate_token(
    request: Request, taken: TakenBefore, owner: Owner, app: AppName
) -> dict[str, str]:
    """A new token; the old one stops working and its connections are closed."""
    service = service_of(request)
    _known(service, app)
    token = service.rotate_token(app, service.token_end_ns(), taken)
    service.changed("apps")
    reason = "The app's token was replaced. Connect with the new one."
    service.broadcaster.hang_up(service.broadcaster.of(app), "token", reason, 4001)
    return {"app": app, "token": token}


@router.delete("/apps/{app}/token", response_model=TakenAnswer)
async def drop_token(request: Request, owner: Taker, app: AppName) -> dict[str, Any]:
    """Take the token away and the grant back; the app stays on the list, and its connections are
    closed.
    """
    service = service_of(request)
    _known(service, app)
    return {"app": app, "written": await service.at_once(service.drop_token, app)}


@router.post("/tracker/token", response_model=TokenAnswer)
def tracker_token(request: Request, owner: Owner) -> dict[str, str]:
    """A token for the tracker's own channel `/v1/tracker`; the last one stops working and its
    connection is closed.
    """
    return {"app": "tracker", "token": service_of(request).new_tracker_token()}


@router.get("/asks", response_model=AccessRequestsAnswer)
def asks(request: Request, owner: Owner) -> dict[str, Any]:
    """What apps would like to be granted."""
    return {"asks": list(service_of(request).access_requests.waiting())}


@router.delete("/asks/{number}", status_code=204)
def dismiss(request: Request, owner: Owner, number: Annotated[int, Path(ge=0, le=2**53)]) -> None:
    """Dismiss an ask; after the third dismissal the app may not ask again."""
    if not service_of(request).dismiss(number):
        raise Refused(404, "unknown", "No such ask waits. It may have been answered already.")


@router.get("/in-use", response_model=InUseAnswer)
def in_use(request: Request, owner: Owner) -> dict[str, Any]:
    """Which apps use the gaze now, and by which scopes."""
    in_use = service_of(request).keeper.in_use()
    return {"in_use": [{"app": app, "what": scope} for app, scope in in_use]}


@router.post("/consent", response_model=ConsentAnswer)
async def consent(
    request: Request, taken: TakenBefore, owner: Taker, body: ConsentBody
) -> dict[str, bool]:
    """Whether anything may leave the device; off ends everything at once, also while nothing can be
    written.
    """
    service = service_of(request)
    if not body.on:
        return {"on": False, "written": await service.at_once(service.consent, False)}
    need_both_halves(owner)
    return {"on": True, "written": await run_in_threadpool(service.consent, True, taken)}


@router.post("/confirm", status_code=204)
def confirm(request: Request, owner: Owner, body: ConfirmBody | None = None) -> None:
    """The wearer's gesture for a choice, from the device's own pages where the tracker has none;
    the answer is the same whether something was chosen.
    """
    service_of(request).keeper.confirm(None if body is None else body.app)


@router.get("/budgets", response_model=BudgetsAnswer)
def budgets(request: Request, owner: Owner) -> dict[str, Any]:
    """Limits and spending of the device and of every app."""
    service = service_of(request)
    rows = service.budgets(None)
    for app in sorted(service.policy.apps):
        rows += service.budgets(app)
    return {"budgets": rows}


@router.get("/audit", response_model=AuditAnswer)
def audit(
    request: Request,
    owner: Owner,
    after: Annotated[int, Query(ge=-1, le=2**53)] = -1,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    last: Annotated[
        int | None, Query(ge=1, le=1000, description="The newest lines instead.")
    ] = None,
    verify: Annotated[
        bool, Query(description="Whether to check the chain of hashes, which reads all of it.")
    ] = False,
) -> dict[str, Any]:
    """Lines of the audit log."""
    return service_of(request).audit_page(after, limit, last, verify)


@router.get(
    "/certificate",
    response_model=CertificateAnswer,
    responses={
        200: {
            "content": {"text/plain": {"schema": {"type": "string"}}},
            "description": "What the device promises now.",
        }
    },
)
def promise(
    request: Request,
    owner: Owner,
    format: Annotated[Literal["json", "text"], Query()] = "json",  # noqa: A002 - of the query
) -> Any:
    """What the device promises now, for each app, with what was spent; as JSON or as text."""
    fields = certificate(service_of(request))
    text = certificate_text(fields)
    return PlainTextResponse(text) if format == "text" else {"text": text, "certificate": fields}
