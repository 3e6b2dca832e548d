"""How the owner signs in, who is signed in, and who acts in the owner's name.

The owner comes by a link that works once. Its page sends the link's key back and gets the two
halves of a session (:mod:`gazeveil.gatekeeper.service.credentials.sessions`): a secret that it
keeps in its own storage and sends as the header `X-Gazeveil-Session` with every call, and a cookie.
No page of another origin can send that header, so no call can be made in the owner's name from
elsewhere. Programs use an owner's token instead.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool

from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.service.credentials.callers import Caller
from gazeveil.gatekeeper.service.credentials.sessions import browser_words
from gazeveil.gatekeeper.service.http.api import PROBLEMS, Credentials, service_of
from gazeveil.gatekeeper.service.http.cookies import cookie_name, owner_cookies
from gazeveil.gatekeeper.service.http.middleware import address, same_origin
from gazeveil.gatekeeper.service.http.rate_limiter import SESSION_HEADER, bearer
from gazeveil.gatekeeper.service.http.schemas.sessions import (
    EndedAnswer,
    OwnerTokenBody,
    OwnerTokenMadeAnswer,
    OwnerTokensAnswer,
    SessionsAnswer,
    SignedInAnswer,
)
from gazeveil.gatekeeper.service.service import HOUR_NS, Service

_STALE = "This link has been used or has expired. Start the service again for a new one."

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Gazeveil</title>
<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">
<link rel="stylesheet" href="/style.css"><script type="module" src="/dash/enter.js"></script></head>
<body><main><p id="entering" class="card narrow" role="status">Signing in.</p>
<noscript><p class="card narrow">This page needs JavaScript from this device; it loads nothing from
anywhere else.</p></noscript></main></body></html>
"""

_STALE_PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Gazeveil</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css"></head>
<body><main><p class="card narrow">{_STALE}</p></main></body></html>
"""

router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["owner"])
login = APIRouter(tags=["owner"])

Secret = Annotated[
    str | None,
    Header(
        alias=SESSION_HEADER,
        max_length=256,
        description="The page's half of the owner's session; its cookie must come beside it.",
    ),
]


def owner_of(service: Service, secret: str, cookies: list[str]) -> Caller:
    """The owner of a session, whether or not the cookie came beside the secret.

    Raises
    ------
    Refused
        Where the secret is wrong, stale or ended.
    """
    now_ns = service.ledger.now_ns()
    session = service.sessions.check(secret, None, now_ns)
    if session is None:
        raise Refused(401, "session", "Nobody is signed in here. Open the owner's link.")
    service.sessions.used(session, now_ns)
    whole = service.sessions.check(secret, cookies, now_ns) is not None
    return Caller("owner", "owner", session.expires_ns, session.id, whole)


def need_both_halves(caller: Caller) -> None:
    """Refuse a session whose cookie did not come."""
    if not caller.whole:
        raise Refused(
            401,
            "cookie",
            "The session's cookie is missing: cookies are blocked, or another server on this"
            " machine has replaced it. Open a new owner's link.",
        )


async def taking_caller(
    request: Request, credentials: Credentials, session: Secret = None
) -> Caller:
    """The owner, by token or by session, for calls that only take away: the session's secret is
    enough.

    A remembered caller is accepted on the event loop, because all threads may wait for a database
    that hangs.
    """
    service = service_of(request)
    if not same_origin(request.headers, request.url.scheme, service.settings.public_origin):
        raise Refused(403, "origin", "Only the device's own pages may act for the owner.")
    if credentials is not None:
        token, who = credentials.credentials, address(request.scope)
        known = service.tokens.live.holder(token, service.ledger.now_ns())
        remembered = known is not None and known.role == "owner"
        caller = (
            service.callers.of_token(token, who)
            if remembered
            else await run_in_threadpool(service.callers.of_token, token, who)
        )
    else:
        caller = owner_of(service, session or "", owner_cookies(request.headers))
    if caller.role != "owner":
        raise Refused(403, "role", "This is for the owner of the device.")
    return caller


async def owner_caller(caller: Annotated[Caller, Depends(taking_caller)]) -> Caller:
    """The owner, by token or by both halves of a session."""
    need_both_halves(caller)
    return caller


async def taken_before(request: Request) -> int:
    """How often something had been taken away when the request came: read on the event loop, before
    any thread is waited for.
    """
    return service_of(request).keeper.taken


TakenBefore = Annotated[int, Depends(taken_before)]
Owner = Annotated[Caller, Depends(owner_caller)]
Taker = Annotated[Caller, Depends(taking_caller)]
Number = Annotated[str, Path(min_length=16, max_length=16, pattern="^[0-9a-f]{16}$")]


@login.get(
    "/owner",
    response_class=HTMLResponse,
    responses={
        403: {"content": {"text/html": {}}, "description": "The link was used or has expired."}
    },
)
def enter(request: Request, key: Annotated[str, Query(max_length=256)] = "") -> Response:
    """The page of the one-time link. Reading it uses nothing up, so a program that previews links
    does no harm; its script signs in.
    """
    service = service_of(request)
    holder = service.tokens.live.holder(key, service.ledger.now_ns())
    return (
        HTMLResponse(_PAGE)
        if holder is not None and holder.role == "link"
        else HTMLResponse(_STALE_PAGE, 403)
    )


def _secure(request: Request) -> bool:
    """Whether the browser speaks TLS with us or with our proxy: the origin was compared with ours
    and the public ones before.
    """
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


def _cookie_name(request: Request, secure: bool) -> str:
    server = request.scope.get("server") or ("", 0)
    return cookie_name(server[1] or 0, secure)


@router.post("/sign-in", response_model=SignedInAnswer, status_code=201)
def sign_in(request: Request, response: Response, credentials: Credentials) -> dict[str, Any]:
    """Use the key of the one-time link, sent as a Bearer token, and begin a session of this
    browser.
    """
    service = service_of(request)
    if not same_origin(request.headers, request.url.scheme, service.settings.public_origin):
        raise Refused(403, "origin", "Only the device's own page signs in.")
    now_ns = service.ledger.now_ns()
    # Wrong tokens of others must not lock the owner out: only the rate of all requests limits the
    # keys that are tried here.
    if not service.tokens.take_link(bearer(request.headers), now_ns):
        raise Refused(403, "link", _STALE)
    seconds = service.settings.owner_hours * 3600
    begun = service.sessions.begin(
        browser_words(request.headers.get("user-agent", "")), now_ns, now_ns + round(seconds * 1e9)
    )
    if service.settings.new_link_ends_sessions:
        _end_others(service, begun.session.id, "Somebody signed in with a new owner's link.")
    secure = _secure(request)
    response.set_cookie(
        _cookie_name(request, secure),
        begun.cookie,
        max_age=round(seconds),
        httponly=True,
        samesite="strict",
        secure=secure,
        path="/",
    )
    return {"session": begun.secret, "id": begun.session.id, "expires_ns": begun.session.expires_ns}


def _end_others(service: Service, mine: str, reason: str) -> int:
    others = [s.id for s in service.sessions.listed(service.ledger.now_ns()) if s.id != mine]
    return sum(service.end_session(number, reason) for number in others)


@router.post("/sign-out", status_code=204)
def sign_out(request: Request, response: Response, owner: Taker) -> None:
    """End the session that calls; its cookie is taken back."""
    service = service_of(request)
    if not service.end_session(owner.credential, "You have signed out."):
        raise Refused(
            403,
            "role",
            "Only a browser's session signs out. End a program's token with DELETE"
            " /v1/owner/tokens/{id}.",
        )
    secure = _secure(request)
    response.delete_cookie(
        _cookie_name(request, secure), path="/", secure=secure, httponly=True, samesite="strict"
    )


@router.get("/sessions", response_model=SessionsAnswer)
def sessions(request: Request, owner: Owner) -> dict[str, Any]:
    """Browsers that are signed in, the newest first."""
    service = service_of(request)
    return {
        "sessions": [
            {
                "id": session.id,
                "browser": session.browser,
                "begun_ns": session.begun_ns,
                "used_ns": service.sessions.used_ns(session),
                "expires_ns": session.expires_ns,
                "this": session.id == owner.credential,
            }
            for session in service.sessions.listed(service.ledger.now_ns())
        ]
    }


@router.delete("/sessions", response_model=EndedAnswer)
def end_others(request: Request, owner: Taker) -> dict[str, int]:
    """End all sessions but the one that calls."""
    return {
        "ended": _end_others(
            service_of(request), owner.credential, "The owner has ended this session."
        )
    }


@router.delete("/sessions/{number}", status_code=204)
def end_one(request: Request, owner: Taker, number: Number) -> None:
    """End a session."""
    if not service_of(request).end_session(number, "The owner has ended this session."):
        raise Refused(404, "unknown", "There is no such session.")


@router.get("/owner/tokens", response_model=OwnerTokensAnswer)
def owner_tokens(request: Request, owner: Owner) -> dict[str, Any]:
    """Programs that may act for the owner, the newest first; their secrets are not known here."""
    service = service_of(request)
    return {"tokens": list(service.tokens.live.owner_tokens(service.ledger.now_ns()))}


@router.post("/owner/tokens", response_model=OwnerTokenMadeAnswer, status_code=201)
def make_owner_token(request: Request, owner: Owner, body: OwnerTokenBody) -> dict[str, Any]:
    """A token for a program that acts for the owner, told this once. It can do
    all the owner can.
    """
    service = service_of(request)
    days = service.settings.token_days if body.days is None else float(body.days)
    expires_ns = service.ledger.now_ns() + round(days * 24 * HOUR_NS)
    token = service.tokens.issue(body.name, "owner", expires_ns)
    return {"name": body.name, "token": token, "id": service.tokens.live.id_of(token)}


@router.delete("/owner/tokens/{number}", status_code=204)
def end_owner_token(request: Request, owner: Taker, number: Number) -> None:
    """End a program's token."""
    service = service_of(request)
    if not service.tokens.end_owner_token(number):
        raise Refused(404, "unknown", "There is no such token.")
    service.hang_up_owner(number, "The owner has ended this token.")
    if service.database_up:
        service.tokens.ends.write()
