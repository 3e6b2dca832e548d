"""Every error in one shape: a word and a sentence, which never quote what came."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.errors import Denied, LedgerError, Refused
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.policy.wearers import NAMES
from gazeveil.gatekeeper.service.http.api import service_of
from gazeveil.gatekeeper.service.http.middleware import problem
from gazeveil.gatekeeper.service.http.schemas.fields import APP_PATTERN

#: HTTP status of a refusal; what is not listed is 403.
STATUS = {"unknown": 404, "changed": 409, "rate": 429, "ledger": 503, "closed": 503}

#: Headers that a status wants beside its sentence.
_HEADERS = {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "60"}}

#: Code and sentence of what the framework refuses.
_HTTP = {
    400: ("request", "The body cannot be read."),
    401: ("token", "The request cannot be answered."),
    403: ("forbidden", "The request cannot be answered."),
    404: ("unknown", "There is no such page."),
    405: ("method", "This path does not take this method."),
    415: ("type", "The request cannot be answered."),
    422: ("value", "The request cannot be answered."),
}


def _count(request: Request, code: str) -> None:
    service_of(request).metrics.refusals.labels(code).inc()


async def _refused(request: Request, error: Refused) -> JSONResponse:
    _count(request, error.code)
    return problem(error.status, error.code, error.reason, _HEADERS.get(error.status))


async def _denied(request: Request, error: Denied) -> JSONResponse:
    _count(request, error.code)
    return problem(STATUS.get(error.code, 403), error.code, error.reason)


async def _ledger(request: Request, _: LedgerError) -> JSONResponse:
    lost = service_of(request).database_lost()
    _count(request, lost.code)
    return problem(lost.status, lost.code, lost.reason)


async def _parameter(request: Request, error: ParameterError) -> JSONResponse:
    _count(request, "parameter")
    return problem(422, "parameter", str(error))


async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
    # The parser's own words quote the body; only where and what kind is told.
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])[:100]
    if first["type"] == "json_invalid":
        return problem(400, "json", "The body is not JSON. Send one JSON object.")
    allowed = first.get("ctx", {}).get("expected")  # of our own schema
    hint = f"Allowed: {str(allowed)[:200]}." if isinstance(allowed, str) else "See /openapi.json."
    if first.get("ctx", {}).get("pattern") == APP_PATTERN:
        hint = f"A name has {NAMES}."
    reason = f"The value at '{where}' is not allowed. {hint}"
    return problem(422, "value", reason)


async def _http(_: Request, error: HTTPException) -> JSONResponse:
    code, reason = _HTTP.get(error.status_code, ("request", "The request cannot be answered."))
    return problem(error.status_code, code, reason, dict(error.headers) if error.headers else None)


async def _unexpected(_: Request, error: Exception) -> JSONResponse:
    LOG.error("a request failed by a mistake of ours", exc_info=error)
    return problem(500, "internal", "The service made a mistake. Nothing was given.")


_HANDLERS: dict[type[Exception], Callable[[Request, Any], Awaitable[JSONResponse]]] = {
    Refused: _refused,
    Denied: _denied,
    LedgerError: _ledger,
    ParameterError: _parameter,
    RequestValidationError: _invalid,
    HTTPException: _http,
    Exception: _unexpected,
}


def add_error_handlers(app: FastAPI) -> None:
    """Have an application answer its errors so."""
    for kind, handler in _HANDLERS.items():
        app.exception_handler(kind)(handler)
