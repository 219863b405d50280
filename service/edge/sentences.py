"""What stands between us and RabbitMQ, in one sentence: what, where, what to do."""

from __future__ import annotations

from aiormq.exceptions import (
    AMQPConnectionError,
    AuthenticationError,
    ChannelAccessRefused,
    ConnectionClosed,
    InvalidFrameError,
    ProbableAuthenticationError,
)
from yarl import URL

from service.edge.declare import NotDeclared, permission
from service.edge.wire.errors import NO_ACCESS, Refused


def place(url: str) -> str:
    """Which broker, without its password."""
    parsed = URL(url)
    vhost = parsed.path.removeprefix("/").replace("%2F", "/")
    return f"RabbitMQ {parsed.host}:{parsed.port or 5672}" + (f"/{vhost}" if vhost else "")


def sentence(error: BaseException, url: str) -> str:
    """Why the broker cannot be used, for a person."""
    user = URL(url).user or "guest"
    where = place(url)
    match error:
        case NotDeclared():
            return f"{where}: {error}"
        case ChannelAccessRefused():
            return f"{where}: {permission(str(error))}"
        case AuthenticationError() | ProbableAuthenticationError():
            return f"{where} refuses user {user}; check name and password in rabbit.url"
        # aiormq keeps only the frame that it waited for, not why the broker hung up instead.
        case ConnectionClosed() | InvalidFrameError() if _is_about_vhost(str(error)):
            return (
                f"{where} does not let user {user} into this vhost; create it or change rabbit.url"
            )
        case Refused(code=code) if code == NO_ACCESS and "login" in error.text.lower():
            return f"{where} refuses user {user}; check name and password in rabbit.url"
        case Refused(code=code) if code == NO_ACCESS:
            return f"{where}: {permission(error.text)}"
        case Refused():
            return f"{where} refuses: {error}"
        case TimeoutError():
            return f"{where} did not answer in time; is it running, and is rabbit.url right?"
        case AMQPConnectionError() | OSError():
            return f"{where} cannot be reached; is it running, and is rabbit.url right?"
        case _:
            return f"{where} cannot be used: {type(error).__name__}: {error}"


def _is_about_vhost(said: str) -> bool:
    return "vhost" in said or "Connection.OpenOk" in said
