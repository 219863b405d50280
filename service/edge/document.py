"""One AsyncAPI document out of three sources: FastStream's channels, the flows' pages, the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from service.edge.pages import Chapter, Kind, Page
from service.topology.tables import Topology

ANY_TYPE = "application/octet-stream"

Json = dict[str, Any]


def assemble(found: Json, chapters: list[Chapter], topology: Topology) -> Json:
    """The document, in the order of the chapters and their pages."""
    pages = {name: page for chapter in chapters for name, page in chapter.pages.items()}
    names = _in_order(found["channels"], pages)
    kinds = {pages[name].carries.name: pages[name].carries for name in names}
    return {
        "asyncapi": found["asyncapi"],
        "info": _info(found["info"], chapters),
        "defaultContentType": ANY_TYPE,
        "servers": {"rabbitmq": _server(found["servers"])},
        "channels": {n: _channel(n, found["channels"][n], pages[n], topology) for n in names},
        "operations": dict(_operations(found["operations"], names, pages)),
        "components": {
            "messages": {name: _message(kind) for name, kind in kinds.items()},
            "schemas": _schemas(kind.headers for kind in kinds.values()),
        },
    }


def _in_order(channels: Json, pages: Mapping[str, Page]) -> list[str]:
    """FastStream keeps subscribers in no order: the chapters' order is the document's."""
    if unwritten := sorted(set(channels) - set(pages)):
        raise LookupError(f"no page says what these channels are for: {', '.join(unwritten)}")
    return [name for name in pages if name in channels]


def _info(info: Json, chapters: list[Chapter]) -> Json:
    return {
        "title": info["title"],
        "version": info["version"],
        "description": "\n\n".join(chapter.introduction for chapter in chapters),
        "license": {
            "name": "Apache-2.0",
            "url": "https://www.apache.org/licenses/LICENSE-2.0",
        },
    }


def _server(servers: Json) -> Json:
    (server,) = servers.values()
    about = "The RabbitMQ that your services use already; host and virtual host are your own."
    return {"host": server["host"], "protocol": server["protocol"]} | {
        "protocolVersion": server["protocolVersion"],
        "description": about,
    }


def _channel(name: str, channel: Json, page: Page, topology: Topology) -> Json:
    kind = page.carries.name
    written: Json = {
        # FastStream has no address for a fanout, which looks at no key: its name is where to send.
        "address": channel.get("address") or name,
        "title": page.title,
        "description": channel["description"],
        "messages": {kind: {"$ref": f"#/components/messages/{kind}"}},
    }
    if page.parameters:
        written["parameters"] = {
            key: {"description": part.description, "examples": list(part.examples)}
            for key, part in page.parameters.items()
        }
    return written | {"bindings": _binding(channel)} | _tables(name, topology)


def _binding(channel: Json) -> Json:
    """As FastStream writes it, but for the virtual host: an empty one is not the default one."""
    amqp = dict(channel["bindings"]["amqp"])
    place = amqp["is"] if amqp["is"] == "queue" else "exchange"
    return {"amqp": amqp | {place: amqp[place] | {"vhost": amqp[place].get("vhost") or "/"}}}


def _tables(name: str, topology: Topology) -> Json:
    """What AsyncAPI has no words for: the queue's arguments and every binding that leads to it."""
    if not topology.has_queue(name):
        return {}
    bindings = [
        {"exchange": row.exchange.name, "type": row.exchange.type.value, "key": row.key}
        for row in topology.bindings
        if row.queue.name == name
    ]
    return {
        "x-queue": name,
        "x-queue-arguments": dict(sorted(topology.queue(name).arguments.items())),
        "x-queue-bindings": bindings,
    }


def _operations(
    operations: Json, names: list[str], pages: Mapping[str, Page]
) -> Iterable[tuple[str, Json]]:
    for name in names:
        page, operation = pages[name], operations[name]
        messages = [{"$ref": f"#/channels/{name}/messages/{page.carries.name}"}]
        yield (
            f"{operation['action']}-{name}",
            {
                "action": operation["action"],
                "channel": {"$ref": f"#/channels/{name}"},
                "title": page.title,
                "summary": page.summary,
                "description": page.does,
                "bindings": {"amqp": _handling(operation)},
                "messages": messages,
            },
        )


def _handling(operation: Json) -> Json:
    """Less what FastStream means otherwise: its `cc` is the binding key, not a carbon copy."""
    wanted = ("ack",) if operation["action"] == "receive" else ("deliveryMode", "mandatory")
    amqp = operation["bindings"]["amqp"]
    return {key: amqp[key] for key in (*wanted, "bindingVersion")}


def _message(kind: Kind) -> Json:
    return {
        "name": kind.name,
        "title": kind.title,
        "summary": kind.description.partition("\n\n")[0].replace("\n", " "),
        "description": kind.description,
        "contentType": ANY_TYPE,
        "headers": {"$ref": f"#/components/schemas/{kind.headers.__name__}"},
        "payload": {"$ref": "#/components/schemas/Body"},
        "examples": [
            {
                "name": example.name,
                "summary": example.summary,
                "headers": dict(example.headers),
                "payload": example.body,
            }
            for example in kind.examples
        ],
    }


BODY: Json = {
    "title": "Body",
    "type": "string",
    "format": "binary",
    "description": (
        "Any bytes, in any encoding, compressed or not: the service never opens a body and returns it"
        " byte for byte, with the content type and the other properties that its sender gave it."
    ),
    "examples": ['{"order": 42, "total": "19.90"}'],
}


class _Untitled(GenerateJsonSchema):
    """A header's name says enough: no title made from it."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schemas(models: Iterable[type[BaseModel]]) -> Json:
    wanted = [(model, "validation") for model in dict.fromkeys(models)]
    _, made = models_json_schema(
        wanted,  # type: ignore[arg-type]  # a list of pairs with that literal
        ref_template="#/components/schemas/{model}",
        schema_generator=_Untitled,
    )
    return {"Body": BODY, **made["$defs"]}
