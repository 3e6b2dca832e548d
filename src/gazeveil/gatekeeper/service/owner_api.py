"""What the owner of the device does: sign in, decide about apps, see what is in force, and take the
audit log elsewhere.

The owner comes by a link that works once. Its page sends the link's key back with the public half
of a key of its own, and signs every call with it, in the header `X-Gazeveil-Session`
(:mod:`gazeveil.gatekeeper.service.credentials`). No page of another origin has the key or can send
that header. Programs use an owner's token instead, which works for all who read it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from gazeveil.gatekeeper.core.device_state import Arrival
from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.policy.grant import PRESETS
from gazeveil.gatekeeper.policy.policy import NAME_PATTERN, Policy
from gazeveil.gatekeeper.service.answers import certificate_text
from gazeveil.gatekeeper.service.app_api import PROBLEMS, Body, Credentials, service_of
from gazeveil.gatekeeper.service.credentials import NOBODY, Caller, SignedCall, page_key
from gazeveil.gatekeeper.service.decisions import unknown_preset
from gazeveil.gatekeeper.service.guard import FORGET, SESSION_HEADER, bearer, same_origin
from gazeveil.gatekeeper.service.service import HOUR_NS, TOKEN_FILE, Service

_STALE = "This link has been used or has expired. Start the service again for a new one."

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Gazeveil</title>
<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">
<link rel="stylesheet" href="/style.css">{script}</head>
<body><main><p id="entering" class="card narrow" role="status">{words}</p>
<noscript><p class="card narrow">This page needs JavaScript from this device; it loads nothing from
anywhere else.</p></noscript></main></body></html>
"""

_SCRIPT = '<script type="module" src="/dash/enter.js"></script>'

router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["owner"])
login = APIRouter(tags=["owner"])

Signed = Annotated[
    str | None,
    Header(
        alias=SESSION_HEADER,
        max_length=256,
        description="Session, number, milliseconds since 1970, SHA-256 of the body and signature.",
    ),
]
Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=64)]
AppName = Annotated[str, Path(min_length=1, max_length=64, pattern=NAME_PATTERN)]
Origin = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.\-\[\]:]{1,253}$")]
Id = Annotated[str, Path(min_length=16, max_length=16, pattern="^[0-9a-f]{16}$")]


class SignInBody(Body):
    """The public half of the page's key: an uncompressed point of P-256 in base64url."""

    key: Annotated[str, Field(max_length=128)] = ""


class AppBody(Body):
    """A new app; origins are the web pages that may use its token, besides the device's own."""

    name: Name
    origins: Annotated[list[Origin], Field(max_length=16)] = Field(default_factory=list)


class GiveBody(Body):
    """A preset, how long it is given for, and the ask that this answers, where it answers one."""

    preset: Annotated[str, Field(max_length=64)]
    lasts: Literal["visit", "until-stopped"] = "visit"
    ask: Annotated[int, Field(ge=0, le=2**53)] | None = None


class ConsentBody(Body):
    """Whether anything may leave the device at all."""

    on: bool


class ConfirmBody(Body):
    """The wearer's gesture for a choice, and whose it is, where that is known."""

    app: Name | None = None


class WearerBody(Body):
    """Who wears the device now; null where that is not known."""

    name: Name | None


class OwnerTokenBody(Body):
    """A name for a program that acts for the owner, and how long its token lasts."""

    name: Name
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


# --- who is the owner
# --------------------------------------------------------------------------------------------------


def owner_of(service: Service, scope: Scope) -> Caller:
    """The owner who signed a request.

    Raises
    ------
    Refused
        Where it is not signed, or came late or twice.
    """
    call = scope.get("owner_call")
    if not isinstance(call, SignedCall):
        raise call if isinstance(call, Refused) else Refused(*NOBODY)
    return Caller("owner", "owner", call.session.expires_ns, call.session.id)


def _own_page(request: Request, reason: str) -> None:
    public = service_of(request).settings.public_origin
    if not same_origin(request.headers, request.url.scheme, public):
        raise Refused(403, "origin", reason)


async def owner_caller(request: Request, credentials: Credentials, signed: Signed = None) -> Caller:
    """The owner, by token or by a signed call. On the event loop, because all threads may wait for
    a database that hangs.
    """
    service = service_of(request)
    _own_page(request, "Only the device's own pages may act for the owner.")
    if credentials is not None:
        caller = service.caller(credentials.credentials)
    else:
        caller = owner_of(service, request.scope)
    if caller.role != "owner":
        raise Refused(403, "role", "This is for the owner of the device.")
    return caller


async def arrival_of(request: Request) -> Arrival:
    """The number of a command, and what had been taken away when it came: given on the event loop,
    before any thread is waited for.
    """
    return service_of(request).keeper.state.arrival()


Came = Annotated[Arrival, Depends(arrival_of)]
Owner = Annotated[Caller, Depends(owner_caller)]


# --- sessions
# --------------------------------------------------------------------------------------------------


_USED = {"content": {"text/html": {}}, "description": "The link was used or has expired."}


@login.get("/owner", response_class=HTMLResponse, responses={403: _USED})
def enter(request: Request, key: Annotated[str, Query(max_length=256)] = "") -> Response:
    """The page of the one-time link. Reading it uses nothing up, so a program that previews links
    does no harm; its script signs in.
    """
    if not service_of(request).tokens.is_link(key):
        return HTMLResponse(_PAGE.format(script="", words=_STALE), 403)
    return HTMLResponse(_PAGE.format(script=_SCRIPT, words="Signing in."), headers=FORGET)


@router.post("/sign-in", status_code=201)
async def sign_in(request: Request, credentials: Credentials, body: SignInBody) -> dict[str, Any]:
    """Use the key of the one-time link, sent as a Bearer token, and begin a session of this browser
    with the public half of the page's key; the last session ends.
    """
    service, link = service_of(request), bearer(request.headers)
    _own_page(request, "Only the device's own page signs in.")
    if not service.tokens.is_link(link):
        raise Refused(403, "link", _STALE)
    key = page_key(body.key)
    service.tokens.end(role="link")
    service.end_session("Somebody signed in with a new owner's link.")
    expires_ns = service.ledger.now_ns() + round(service.settings.owner_hours * HOUR_NS)
    return {"id": service.sessions.begin(key, expires_ns).id, "expires_ns": expires_ns}


@router.post("/sign-out", status_code=204)
def sign_out(request: Request, owner: Owner) -> None:
    """End the session that calls."""
    service = service_of(request)
    if not service.sessions.is_live(owner.credential, service.ledger.now_ns()):
        raise Refused(
            403,
            "role",
            "Only a browser's session signs out. End a program's token with DELETE"
            " /v1/owner/tokens/{id}.",
        )
    service.end_session("You have signed out.")


@router.get("/owner/tokens")
def owner_tokens(request: Request, owner: Owner) -> dict[str, Any]:
    """Programs that may act for the owner, the newest first, whose secrets are not known here; and
    when the caller's own session or token ends.
    """
    tokens = service_of(request).tokens.of("owner")
    return {
        "tokens": [
            {"id": t.id, "name": t.app, "issued_ns": t.issued_ns, "expires_ns": t.expires_ns}
            for t in tokens
        ],
        "yours_ends_ns": owner.expires_ns,
    }


@router.post("/owner/tokens", status_code=201)
def make_owner_token(request: Request, owner: Owner, body: OwnerTokenBody) -> dict[str, Any]:
    """A token for a program that acts for the owner, told this once. It can do all the owner
    can.
    """
    service = service_of(request)
    if body.name == TOKEN_FILE:
        reason = "This name is the token file's, whose token ends at a start. Choose another name."
        raise Refused(422, "taken", reason)
    days = service.settings.token_days if body.days is None else float(body.days)
    expires_ns = service.ledger.now_ns() + round(days * 24 * HOUR_NS)
    token = service.tokens.issue(body.name, "owner", expires_ns)
    return {"name": body.name, "token": token, "id": service.tokens.id_of(token)}


@router.delete("/owner/tokens/{number}", status_code=204)
def end_owner_token(request: Request, owner: Owner, number: Id) -> None:
    """End a program's token."""
    if not service_of(request).end_owner_token(number):
        raise Refused(404, "unknown", "There is no such token.")


# --- apps
# --------------------------------------------------------------------------------------------------


@router.get("/apps")
async def apps(request: Request, owner: Owner) -> dict[str, Any]:
    """The device, the presets and all apps, from memory: what is in force is shown also while the
    ledger does not answer. `written` says whether sharing off is in the database.
    """
    service = service_of(request)
    return await service.at_once(_device, service)


def _device(service: Service) -> dict[str, Any]:
    asked = service.access_requests
    waiting = (ask.app for ask in asked.waiting())
    with_token, blocked = service.tokens.apps(), asked.blocked_apps()
    names = sorted({*service.policy.apps, *with_token, *waiting, *blocked})
    tracker = service.tracker_input
    return {
        "device": service.settings.device,
        "consent": service.policy.consent,
        "wearer": service.wearer_figures(),
        **service.public(),
        "tracker": {
            "name": service.settings.tracker if service.tracker is None else service.tracker.name,
            "connected": tracker.connected,
            "trouble": tracker.trouble,
        },
        "presets": [
            {"name": name, "sentence": preset.sentence, "recognise": preset.recognise}
            for name, preset in PRESETS.items()
        ],
        "apps": [_app(service, name) for name in names],
        "ledger": service.database_up,
        "written": all(r.kind != "consent" for r in service.revocations.pending),
    }


def _app(service: Service, name: str) -> dict[str, Any]:
    grant = service.policy.apps.get(name)
    shown = ("id", "what", "mechanism", "sent", "dropped")
    return {
        "app": name,
        "origins": list(grant.origins) if grant else [],
        "has_token": name in service.tokens.apps(),
        "state": service.state(name),
        "grant": service.grant_figures(name),
        "streams": [
            {field: getattr(channel, field) for field in shown}
            for connection in service.broadcaster.of(name)
            for channel in tuple(connection.channels.values())
        ],
        "blocked": name in service.access_requests.blocked_apps(),
        "in_use": [scope for app, scope in service.keeper.in_use() if app == name],
    }


def _known(service: Service, app: str) -> None:
    asked = service.access_requests
    known = app in service.policy.apps or asked.of(app) is not None
    if not known and app not in asked.blocked_apps() | service.tokens.apps():
        raise Refused(404, "unknown", "There is no such app. GET /v1/apps lists those there are.")


@router.post("/apps", status_code=201)
def add_app(request: Request, arrival: Came, owner: Owner, body: AppBody) -> dict[str, str]:
    """Make an app known and give out its token, once. It may do nothing until it is granted
    something.
    """
    service = service_of(request)
    if body.name.partition(".")[0] in ("http", "https", "uid", "user"):
        reason = "Names of this kind belong to pages and users, which need no token."
        raise Refused(422, "taken", reason)
    if body.name in service.tokens.apps():
        reason = "There is an app of this name already. Rotate its token, or choose another name."
        raise Refused(403, "taken", reason)
    service.add_app(body.name, tuple(body.origins), arrival)
    token = service.tokens.issue(body.name, "app", service.token_end_ns())
    service.changed("apps")
    return {"app": body.name, "token": token}


@router.post("/apps/{app}/grant")
def grant(
    request: Request, arrival: Came, owner: Owner, app: AppName, body: GiveBody
) -> dict[str, Any]:
    """Grant a preset; in force at once."""
    service = service_of(request)
    _known(service, app)
    waiting = service.access_requests.of(app)
    if body.ask is not None and (waiting is None or waiting.id != body.ask):
        reason = "The app does not ask for this any more. Look at what it asks for now."
        raise Refused(409, "changed", reason)
    if body.preset not in PRESETS:
        raise unknown_preset()
    answered = waiting if body.ask is not None else None
    service.set_grant(app, PRESETS[body.preset].grant(lasts=body.lasts), arrival, answered)
    return _app(service, app)


@router.post("/apps/{app}/revoke")
async def revoke(request: Request, owner: Owner, app: AppName) -> dict[str, Any]:
    """Take the grant back; open subscriptions end within one sample, also while nothing can be
    written. Where `written` is false it is in force, and is written when the database takes it.
    """
    service = service_of(request)
    _known(service, app)
    written = await service.at_once(service.revoke, app)
    return {**_app(service, app), "written": written}


@router.post("/apps/{app}/unblock")
def unblock(request: Request, owner: Owner, app: AppName) -> dict[str, Any]:
    """Let an app ask again whose asks were dismissed three times."""
    service = service_of(request)
    _known(service, app)
    service.unblock(app)
    return _app(service, app)


@router.delete("/apps/{app}")
async def drop_app(request: Request, owner: Owner, app: AppName) -> dict[str, Any]:
    """Remove an app with its token, grant, areas, asks and block; its connections are closed. What
    it has spent stays spent.

    An app that is added later under the same name begins with nothing.
    """
    service = service_of(request)
    _known(service, app)
    return {"app": app, "written": await service.at_once(service.drop, app)}


@router.post("/apps/{app}/token")
def rotate_token(request: Request, owner: Owner, app: AppName) -> dict[str, str]:
    """A new token; the old one stops working and its connections are closed."""
    service = service_of(request)
    _known(service, app)
    token = service.tokens.issue(app, "app", service.token_end_ns(), in_place_of_others=True)
    service.changed("apps")
    reason = "The app's token was replaced. Connect with the new one."
    service.broadcaster.hang_up(service.broadcaster.of(app), "token", reason, 4001)
    return {"app": app, "token": token}


@router.get("/asks")
def asks(request: Request, owner: Owner) -> dict[str, Any]:
    """What apps would like to be granted."""
    shown = ("id", "app", "want", "t_ns")
    waiting = service_of(request).access_requests.waiting()
    return {"asks": [{name: getattr(ask, name) for name in shown} for ask in waiting]}


@router.delete("/asks/{number}", status_code=204)
def dismiss(request: Request, owner: Owner, number: Annotated[int, Path(ge=0, le=2**53)]) -> None:
    """Dismiss an ask; after the third dismissal the app may not ask again."""
    if not service_of(request).dismiss(number):
        raise Refused(404, "unknown", "No such ask waits. It may have been answered already.")


@router.post("/consent")
async def consent(
    request: Request, arrival: Came, owner: Owner, body: ConsentBody
) -> dict[str, bool]:
    """Whether anything may leave the device; off ends everything at once, also while nothing can be
    written.
    """
    service = service_of(request)
    if not body.on:
        return {"on": False, "written": await service.at_once(service.consent, False)}
    return {"on": True, "written": await run_in_threadpool(service.consent, True, arrival)}


@router.post("/confirm", status_code=204)
def confirm(request: Request, owner: Owner, body: ConfirmBody | None = None) -> None:
    """The wearer's gesture for a choice, from the device's own pages where the tracker has none;
    the answer is the same whether something was chosen.
    """
    service_of(request).keeper.confirm(None if body is None else body.app)


# --- the device
# --------------------------------------------------------------------------------------------------


@router.post("/wearer")
async def switch_wearer(request: Request, owner: Owner, body: WearerBody) -> dict[str, Any]:
    """Another person wears the device now: every subscription ends, and consent, grants and budgets
    are theirs.
    """
    service = service_of(request)
    await service.switch_wearer(body.name, stale=True)
    return service.wearer_figures()


@router.get("/budgets")
def budgets(request: Request, owner: Owner) -> dict[str, Any]:
    """Limits and spending of the device and of every app."""
    service = service_of(request)
    return {
        "budgets": [
            row for app in (None, *sorted(service.policy.apps)) for row in service.budgets(app)
        ]
    }


@router.get("/audit")
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


@router.get("/audit/export", response_class=StreamingResponse)
def export_audit(request: Request, owner: Owner) -> StreamingResponse:
    """The whole audit log as JSON lines; `gazeveil verify --audit-key` checks it anywhere."""
    service = service_of(request)
    lines = service.audit.export(service.settings.device, service.ledger.now_ns())
    named = {"content-disposition": 'attachment; filename="audit.jsonl"'}
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=named)


@router.get("/audit/key")
def audit_key(request: Request, owner: Owner) -> dict[str, str]:
    """The key that an export is checked with. Keep it apart from the export: it tells the apps'
    names and can write a log.
    """
    return {"key": service_of(request).audit.key.hex()}


@router.get("/certificate")
def certificate(request: Request, owner: Owner, text: Annotated[bool, Query()] = False) -> Any:
    """What the device promises now, for each app, with what was spent; as JSON or as text."""
    figures = service_of(request).certificate()
    words = certificate_text(figures)
    return PlainTextResponse(words) if text else {"text": words, "certificate": figures}


@router.get("/policy", response_class=PlainTextResponse)
def export_policy(request: Request, owner: Owner) -> PlainTextResponse:
    """All that was decided, for all wearers, as TOML."""
    return PlainTextResponse(service_of(request).policy.text(), media_type="application/toml")


@router.put("/policy")
async def import_policy(request: Request, arrival: Came, owner: Owner) -> dict[str, Any]:
    """Put the TOML of the body in force, in place of all that was decided. What it takes away is
    gone at once.
    """
    service, body = service_of(request), await request.body()
    await run_in_threadpool(
        service.import_policy, Policy.parse(body.decode("utf-8", "replace")), arrival
    )
    return {"consent": service.policy.consent, "apps": len(service.policy.apps)}
