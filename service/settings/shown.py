"""The settings as they may be shown to anyone: secrets masked."""

from collections.abc import Mapping
from datetime import timedelta

from pydantic import BaseModel, SecretStr

from service.core import duration
from service.settings import size
from service.settings.masking import HIDDEN, masked_url
from service.settings.model import Settings

URLS = frozenset({"url", "endpoint"})
SIZES = frozenset({"max_body", "max_headers"})


def shown(settings: Settings) -> dict[str, object]:
    """Every key as one would write it in `settings.toml`, but secrets."""
    return {name: _said(name, getattr(settings, name)) for name in type(settings).model_fields}


def _said(name: str, value: object) -> object:
    match value:
        case BaseModel():
            return {key: _said(key, getattr(value, key)) for key in type(value).model_fields}
        case Mapping():
            return {key: _said(key, inner) for key, inner in value.items()}
        case tuple():
            return [_said(name, item) for item in value]
        case SecretStr() if not value.get_secret_value():
            return ""
        case SecretStr():
            return masked_url(value.get_secret_value()) if name in URLS else HIDDEN
        case timedelta():
            return duration.say(value)
        case int() if name in SIZES:
            return size.say(value)
        case _:
            return value
