"""Words for describing headers in the AsyncAPI document: there always, there sometimes, text, number."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

Text = str | SkipJsonSchema[None]
Number = int | SkipJsonSchema[None]
Count = Annotated[int, Field(ge=0)]


def always(name: str, description: str) -> Any:
    """A header that every letter of its kind carries."""
    return Field(alias=name, description=description)


def sometimes(name: str, description: str) -> Any:
    """A header that may be missing: then it has no value, not even null."""
    return Field(None, alias=name, description=description, json_schema_extra=_no_default)


def _no_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)
