"""The AsyncAPI document: what an integrator publishes or dead-letters where, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import yaml
from faststream.asgi import AsgiResponse, get
from faststream.asgi.handlers import HttpHandler
from faststream.asgi.response import JSONResponse
from faststream.asgi.types import ASGIApp, Scope
from faststream.specification import AsyncAPI
from faststream.specification.base import Specification, SpecificationFactory

from service.edge.document import Json, assemble
from service.edge.pages import chapters_of
from service.topology.tables import Topology

FILE = Path(__file__).resolve().parents[2] / "asyncapi" / "asyncapi.yaml"
BANNER = "# Written by `just asyncapi` from the service itself: change the service, then write it anew.\n"


def specification(topology: Topology, version: str) -> AsyncAPI:
    """The document's factory, for FastStream's application."""
    return Document(topology, version)


class Document(AsyncAPI):
    """FastStream's channels and operations, with the pages of the flows and the broker's tables."""

    def __init__(self, topology: Topology, version: str) -> None:
        super().__init__(title="Dead Letter Office", version=version)
        self._topology = topology

    def add_http_route(self, path: str, handler: HttpHandler) -> SpecificationFactory:
        """Health and metrics are no channels of letters: left out."""
        return self

    def to_specification(self) -> Specification:
        """The whole document, in the same order every time."""
        chapters = [chapter for broker in self.brokers for chapter in chapters_of(broker)]
        found: Json = super().to_specification().to_jsonable()
        return Printed(assemble(found, chapters, self._topology))


@dataclass(frozen=True, slots=True)
class Printed:
    """The finished document, in the forms FastStream asks for."""

    content: Json

    @property
    def title(self) -> str:
        """Its title."""
        return str(self.content["info"]["title"])

    def to_jsonable(self) -> Json:
        """As plain values."""
        return self.content

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.content, ensure_ascii=False, indent=2)

    def to_yaml(self) -> str:
        """As YAML that people read: several lines of text stay several lines."""
        return yaml.dump(
            self.content, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=100
        )


def json_route(document: Callable[[], object]) -> ASGIApp:
    """`GET /asyncapi.json`; written once, because the channels of a running service do not change."""
    once = cache(document)

    @get
    async def asyncapi(scope: Scope) -> AsgiResponse:
        return JSONResponse(once(), 200)

    return asyncapi


def current() -> str:
    """What `asyncapi/asyncapi.yaml` must hold: the service with every setting at its default."""
    # Named, as `faststream run` names an application: the edge imports nothing that stands above it.
    create = resolve_name("service.composition:create")
    settings = resolve_name("service.settings:Settings")
    return BANNER + str(create(settings()).schema.to_specification().to_yaml())


class _Readable(yaml.SafeDumper):
    """Block text for paragraphs, and no anchors: every part can be read where it stands."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _text)


def main() -> None:
    """Write `asyncapi/asyncapi.yaml` anew."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(current(), encoding="utf-8")
    print(f"wrote {FILE}")


if __name__ == "__main__":
    main()
