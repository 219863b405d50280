"""Health: `/livez` says the process runs, `/readyz` whether letters move, with a sentence for each part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from faststream.asgi import AsgiResponse, get
from faststream.asgi.response import JSONResponse
from faststream.asgi.types import ASGIApp, Scope


@dataclass(frozen=True, slots=True)
class Health:
    """One dependency, now."""

    ok: bool
    says: str


Check = Callable[[], Health]


@get
async def livez(scope: Scope) -> AsgiResponse:
    """The process answers."""
    return AsgiResponse(b"ok\n", 200, headers={"content-type": "text/plain"})


def readyz(checks: Mapping[str, Check]) -> ASGIApp:
    """`GET /readyz`: 200 when every part is well, else 503; JSON per part either way."""

    @get
    async def ready(scope: Scope) -> AsgiResponse:
        parts = {name: check() for name, check in checks.items()}
        well = all(part.ok for part in parts.values())
        body = {name: {"ok": part.ok, "says": part.says} for name, part in parts.items()}
        return JSONResponse({"ready": well, **body}, 200 if well else 503)

    return ready
