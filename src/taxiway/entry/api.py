"""The control API on loopback: the status page and what the command line can do, over HTTP.

Reading is open to whoever can reach loopback; changing needs the platform's own API token. A page in somebody's
browser cannot use it either way: the Host header must be a loopback name, and the token is never in a cookie.
"""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from taxiway.app import status, traffic
from taxiway.app.history import history
from taxiway.app.wire import Platform
from taxiway.core import split as splits
from taxiway.core.errors import Refused, Usage
from taxiway.core.revision import model_name

Handler = Callable[[Request], Awaitable[Response]]


def application(platform: Platform) -> Starlette:
    """The ASGI application for one platform."""

    def page(_request: Request) -> Response:
        return HTMLResponse(resources.files("taxiway.entry.console").joinpath("status.html").read_text())

    def health(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    def read_status(_request: Request) -> Response:
        return JSONResponse(status.to_json(status.collect(platform)))

    def read_history(request: Request) -> Response:
        return JSONResponse(history(platform, model_name(request.path_params["model"])))

    async def change(request: Request) -> Response:
        _authorize(request, platform)
        body = await _body(request)
        model = model_name(request.path_params["model"])
        action = _split if request.path_params["action"] == "traffic" else _rollback
        return JSONResponse(await run_in_threadpool(action, platform, model, body))

    return Starlette(
        routes=[
            Route("/", page),
            Route("/healthz", health),
            Route("/api/status", read_status),
            Route("/api/models/{model}/history", read_history),
            Route("/api/models/{model}/{action:str}", change, methods=["POST"]),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
        exception_handlers={Refused: _refused, Usage: _usage, HTTPException: _http},
    )


def _split(platform: Platform, model: str, body: dict[str, Any]) -> dict[str, Any]:
    words = [f"{n}={percent}" for n, percent in _object(body, "split").items()]
    done = traffic.set_split(platform, model, splits.parse(words), _reason(body), lambda _: None)
    return traffic.change_json(done)


def _rollback(platform: Platform, model: str, body: dict[str, Any]) -> dict[str, Any]:
    to = body.get("to")
    if to is not None and (not isinstance(to, int) or isinstance(to, bool)):
        raise Usage(f"field 'to': expected a revision number, got {to!r}")
    return traffic.change_json(traffic.roll_back(platform, model, to, _reason(body), lambda _: None))


def _reason(body: dict[str, Any]) -> str:
    reason = body.get("reason", "by API")
    if not isinstance(reason, str):
        raise Usage(f"field 'reason': expected text, got {reason!r}")
    return reason


def _object(body: dict[str, Any], field: str) -> dict[str, Any]:
    value = body.get(field)
    if not isinstance(value, dict):
        raise Usage(f'field {field!r}: expected an object such as {{"2": 90, "3": 10}}, got {value!r}')
    return value


def _authorize(request: Request, platform: Platform) -> None:
    if request.path_params["action"] not in ("traffic", "rollback"):
        raise HTTPException(404, "no such action; there are: traffic, rollback")
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(given.encode(), platform.api_token().encode()):
        raise HTTPException(401, f"the API token is missing or wrong; it is in {platform.places.api_token}")


async def _body(request: Request) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        body = await request.json()
        if isinstance(body, dict):
            return body
    raise Usage("the body must be a JSON object")


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _error(409, "; ".join(error.reasons))


async def _usage(_request: Request, error: Exception) -> Response:
    return _error(400, str(error))


async def _http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, error.detail)


def _error(status_code: int, message: str) -> Response:
    return JSONResponse({"error": message, "code": status_code}, status_code)
