"""The settings of the door: who may look, and who may act."""

import ipaddress
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, SecretStr, StrictStr, model_validator

from service.settings.section import Section

DIGEST = re.compile(r"[0-9a-fA-F]{64}")
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _token(value: SecretStr | None) -> SecretStr | None:
    if value is None or not value.get_secret_value():
        return None
    if len(value.get_secret_value()) < 16 or not value.get_secret_value().isascii():
        raise ValueError("at least 16 characters, of ASCII")
    return value


def _digest(value: SecretStr | None) -> SecretStr | None:
    if value is None or not value.get_secret_value():
        return None
    if not DIGEST.fullmatch(value.get_secret_value()):
        raise ValueError("the sha256 of a token: 64 hex digits")
    return value


def _name(name: str) -> str:
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise ValueError("a name for the audit, 1 to 100 characters")
    return name


def _header(name: str) -> str:
    if not HEADER.fullmatch(name):
        raise ValueError("the name of a header, like X-Forwarded-User")
    return name


def _network(address: str) -> str:
    try:
        return str(ipaddress.ip_network(address))
    except ValueError:
        raise ValueError("an address or a network, like 10.0.0.7 or 10.0.0.0/24") from None


class TokenSetting(Section):
    """An entry of `[[auth.tokens]]`: who has it, what they may do, and the token or its sha256."""

    name: Annotated[StrictStr, AfterValidator(_name)]
    role: Literal["viewer", "operator"]
    token: Annotated[SecretStr | None, AfterValidator(_token)] = None
    sha256: Annotated[SecretStr | None, AfterValidator(_digest)] = None

    @model_validator(mode="after")
    def _one_secret(self) -> Self:
        if (self.token is None) == (self.sha256 is None):
            raise ValueError("a token or its sha256, and not both")
        return self


class Auth(Section):
    """The door of the API."""

    mode: Literal["none", "token", "proxy"] = "none"
    tokens: tuple[TokenSetting, ...] = ()
    proxy_header: Annotated[StrictStr, AfterValidator(_header)] = "X-Forwarded-User"
    proxy_role_header: Annotated[StrictStr, AfterValidator(_header)] = "X-Forwarded-Role"
    trusted: tuple[Annotated[StrictStr, AfterValidator(_network)], ...] = (
        "127.0.0.1/32",
        "::1/128",
    )
