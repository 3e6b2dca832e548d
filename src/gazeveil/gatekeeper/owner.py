"""What the owner of the device does: apps and their tokens, grants, consent, budgets, the audit log, the certificate.

The owner comes by a link that works once and sets a cookie no script can read and no other site can send; calls that change something
also need the header `X-Gazeveil: 1`, which no other site's form can set. Programs use an owner's token instead.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Cookie, Depends, Header, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper import bodies
from gazeveil.gatekeeper.api import PROBLEMS, Credentials, service_of
from gazeveil.gatekeeper.certificate import certificate, certificate_text
from gazeveil.gatekeeper.guard import address, same_origin
from gazeveil.gatekeeper.policy import Grant
from gazeveil.gatekeeper.policy_text import grant_of
from gazeveil.gatekeeper.presets import PRESETS
from gazeveil.gatekeeper.service import HOUR_NS, Caller, Refused, Service, rule_text

COOKIE = "gazeveil_owner"

_WELCOME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Gazeveil</title><meta http-equiv="refresh" content="0; url=/">
<meta name="viewport" content="width=device-width"></head><body><p><a href="/">Open the dashboard</a></p></body></html>
"""

_STALE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Gazeveil</title><meta name="viewport" content="width=device-width"></head>
<body><p>This link has been used or has expired. Start <code>gazeveil serve</code> again for a new one.</p></body></html>
"""

router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["owner"])
door = APIRouter(tags=["owner"])


def owner_caller(
    request: Request,
    credentials: Credentials,
    cookie: Annotated[str | None, Cookie(alias=COOKIE, max_length=256)] = None,
    header: Annotated[str | None, Header(alias="X-Gazeveil", description="`1`; needed with the cookie for calls that change something.")] = None,
) -> Caller:
    """The owner, by token or by cookie."""
    service = service_of(request)
    if not same_origin(request.headers, request.url.scheme):
        raise Refused(403, "origin", "Only the device's own pages may act for the owner.")
    if credentials is not None:
        caller = service.caller(credentials.credentials, address(request.scope))
    else:
        caller = service.caller(cookie or "", address(request.scope))
        if request.method not in ("GET", "HEAD") and header != "1":
            raise Refused(403, "header", "Calls that change something need the header X-Gazeveil: 1.")
    if caller.role != "owner":
        raise Refused(403, "role", "This is for the owner of the device.")
    return caller


Owner = Annotated[Caller, Depends(owner_caller)]
AppName = Annotated[str, Path(min_length=1, max_length=64, pattern=bodies.APP_PATTERN)]


@door.get("/owner", response_class=HTMLResponse, responses={403: {"content": {"text/html": {}}, "description": "The link was used or has expired."}})
def enter(request: Request, key: Annotated[str, Query(max_length=256)] = "") -> Response:
    """Take the one-time link and set the owner's cookie."""
    service = service_of(request)
    # Wrong tokens from this address must not lock the owner out: only the rate of all requests limits the keys that are tried here.
    if not key or not service.tokens.take_link(key, time.time_ns()):
        return HTMLResponse(_STALE, 403)
    seconds = service.settings.owner_hours * 3600
    token = service.tokens.issue("owner", "owner", time.time_ns() + round(seconds * 1e9))
    service.guesses.right(token)
    # A page that leads on, not a redirect: browsers hold back a strict cookie on a redirect that began elsewhere.
    answer = HTMLResponse(_WELCOME)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, token, max_age=round(seconds), httponly=True, samesite="strict", secure=secure, path="/")
    return answer


@router.get("/apps", response_model=bodies.DeviceAnswer)
def apps(request: Request, owner: Owner) -> dict[str, Any]:
    """The device, the presets and all apps."""
    service = service_of(request)
    with_token = set(service.tokens.apps())
    names = sorted({*service.policy.apps, *with_token, *service.asks})
    calls = service.keeper.status()["calls"]
    assert isinstance(calls, dict)
    return {
        "device": service.settings.device,
        "consent": service.policy.consent,
        **service.public(),
        "tracker": {"name": service.settings.tracker if service.tracker is None else service.tracker.name, "connected": service.tracker_connected},
        "presets": [
            {"name": p.name, "means": p.means, "platform": p.platform, "scopes": sorted(p.scopes), "mechanisms": [rule_text(r) for r in p.mechanisms]}
            for p in PRESETS.values()
        ],
        "apps": [_app(service, name, name in with_token, int(calls.get(name, 0))) for name in names],
    }


def _app(service: Service, name: str, has_token: bool, calls: int) -> dict[str, Any]:
    grant = service.policy.apps.get(name)
    feeds = [feed for line in service.hub.of(name) for feed in tuple(line.feeds.values())]
    return {
        "app": name,
        "origins": list(grant.origins) if grant else [],
        "has_token": has_token,
        "state": service.state(name),
        "grant": service.grant_figures(name),
        "streams": [{"id": f.id, "what": f.what, "mechanism": f.mechanism, "sent": f.sent, "dropped": f.dropped} for f in feeds],
        "calls_last_minute": calls,
    }


@router.post("/apps", response_model=bodies.TokenAnswer, status_code=201)
def add_app(request: Request, owner: Owner, body: bodies.AppBody) -> dict[str, str]:
    """Make an app known and give out its token, once. It may do nothing until it is granted something."""
    service = service_of(request)
    if body.name in service.tokens.apps():
        raise Refused(403, "taken", "There is an app of this name already. Rotate its token, or choose another name.")
    grant = service.policy.apps.get(body.name, Grant())
    service.set_grant(body.name, _changed(grant, origins=tuple(body.origins)), keep_ask=True)
    return _token(service, body.name)


def _token(service: Service, app: str, rotate: bool = False) -> dict[str, str]:
    expires = time.time_ns() + round(service.settings.token_days * 24 * HOUR_NS)
    token = (service.tokens.rotate if rotate else service.tokens.issue)(app, "app", expires)
    service.guesses.right(token)
    service.changed("apps")
    return {"app": app, "token": token}


def _known(service: Service, app: str) -> None:
    if app not in service.policy.apps and app not in service.tokens.apps():
        raise Refused(404, "unknown", "There is no such app.")


def _changed(grant: Grant, **changes: object) -> Grant:
    names = ("scopes", "mechanisms", "areas", "calls_per_minute", "streams", "most_hz", "budgets", "per", "expires_ns", "origins", "revoked")
    return Grant(**{**{name: getattr(grant, name) for name in names}, **changes})


def _bound(sign: str, value: str) -> object:
    """A bound as policy files write it."""
    if sign not in ("<=", ">=", "=", "..", "in", "any"):
        raise Refused(422, "grant", "A bound is one of <=, >=, =, .., in and any.")
    return {"=": value, "..": value, "any": "any", "in": value.split("|")}.get(sign, f"{sign} {value}")


@router.post("/apps/{app}/grant", response_model=bodies.AppAnswer)
def grant(request: Request, owner: Owner, app: AppName, body: bodies.GiveBody) -> dict[str, Any]:
    """Grant a preset, with changes if wanted, or a grant in full; in force at once."""
    service = service_of(request)
    _known(service, app)
    if (body.preset is None) == (body.grant is None):
        raise Refused(422, "body", "Give either a preset or a grant.")
    before = service.policy.apps.get(app, Grant())
    try:
        if body.grant is not None:
            table = body.grant.model_dump(exclude_none=True)
            table["mechanisms"] = [
                {"name": m.name, "unproved": m.unproved, "parameters": {k: _bound(*bound) for k, bound in m.parameters.items()}} for m in body.grant.mechanisms
            ]
            given = grant_of(table)
        else:
            preset = PRESETS.get(str(body.preset))
            if preset is None:
                raise Refused(422, "preset", "There is no such preset. Presets are: " + ", ".join(PRESETS) + ".")
            changes = {name: value for name, value in (("budgets", body.budgets), ("per", body.per), ("expires_ns", body.expires_ns)) if value is not None}
            given = preset.grant(**changes)
        service.set_grant(app, _changed(given, origins=before.origins, revoked=False))
    except GazeveilError as error:
        if isinstance(error, Refused):
            raise
        raise Refused(422, "grant", str(error)) from None
    return _app(service, app, app in service.tokens.apps(), 0)


@router.post("/apps/{app}/revoke", response_model=bodies.AppAnswer)
def revoke(request: Request, owner: Owner, app: AppName) -> dict[str, Any]:
    """Take the grant back; open subscriptions end within one sample."""
    service = service_of(request)
    _known(service, app)
    service.revoke(app)
    return _app(service, app, app in service.tokens.apps(), 0)


@router.post("/apps/{app}/token", response_model=bodies.TokenAnswer)
def rotate_token(request: Request, owner: Owner, app: AppName) -> dict[str, str]:
    """A new token; the old one stops working and its connections are closed."""
    service = service_of(request)
    _known(service, app)
    answer = _token(service, app, rotate=True)
    service.hub.hang_up(service.hub.of(app), "token", "The app's token was replaced. Connect with the new one.", 4001)
    return answer


@router.delete("/apps/{app}/token", status_code=204)
def drop_token(request: Request, owner: Owner, app: AppName) -> None:
    """Take the token away; its connections are closed."""
    service = service_of(request)
    _known(service, app)
    service.tokens.revoke(app, "app")
    service.hub.hang_up(service.hub.of(app), "token", "The app's token was taken away.", 4001)
    service.changed("apps")


@router.post("/tracker/token", response_model=bodies.TokenAnswer)
def tracker_token(request: Request, owner: Owner) -> dict[str, str]:
    """A token for the tracker's own channel `/v1/tracker`; the last one stops working and its connection is closed."""
    service = service_of(request)
    expires = time.time_ns() + round(service.settings.token_days * 24 * HOUR_NS)
    token = service.tokens.rotate("tracker", "tracker", expires)
    service.guesses.right(token)
    if (end := service.end_tracker) is not None:
        end()
    return {"app": "tracker", "token": token}


@router.get("/asks", response_model=bodies.AsksAnswer)
def asks(request: Request, owner: Owner) -> dict[str, Any]:
    """What apps would like to be granted."""
    return {"asks": sorted(service_of(request).asks.values(), key=lambda one: one.id)}


@router.delete("/asks/{number}", status_code=204)
def dismiss(request: Request, owner: Owner, number: Annotated[int, Path(ge=0, le=2**53)]) -> None:
    """Dismiss a wish."""
    if not service_of(request).dismiss(number):
        raise Refused(404, "unknown", "There is no such wish.")


@router.post("/consent", response_model=bodies.ConsentAnswer)
def consent(request: Request, owner: Owner, body: bodies.ConsentBody) -> dict[str, bool]:
    """Whether anything may leave the device; off ends everything at once."""
    service_of(request).consent(body.on)
    return {"on": body.on}


@router.get("/budgets", response_model=bodies.BudgetsAnswer)
def budgets(request: Request, owner: Owner) -> dict[str, Any]:
    """Limits and spending of the device and of every app."""
    service = service_of(request)
    rows = service.budgets(None)
    for app in sorted(service.policy.apps):
        rows += service.budgets(app)
    return {"budgets": rows}


@router.get("/audit", response_model=bodies.AuditAnswer)
def audit(
    request: Request,
    owner: Owner,
    after: Annotated[int, Query(ge=-1, le=2**53)] = -1,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    last: Annotated[int | None, Query(ge=1, le=1000, description="The newest lines instead.")] = None,
    verify: Annotated[bool, Query(description="Whether to check the chain of hashes, which reads all of it.")] = False,
) -> dict[str, Any]:
    """Lines of the audit log."""
    return service_of(request).audit_page(after, limit, last, verify)


@router.get(
    "/certificate",
    response_model=bodies.CertificateAnswer,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "What the device promises now."}},
)
def promise(request: Request, owner: Owner, format: Annotated[Literal["json", "text"], Query()] = "json") -> Any:  # noqa: A002 - the name of the query
    """What the device promises now, for each app, with what was spent; as JSON or as text."""
    figures = certificate(service_of(request))
    text = certificate_text(figures)
    return PlainTextResponse(text) if format == "text" else {"text": text, "certificate": figures}
