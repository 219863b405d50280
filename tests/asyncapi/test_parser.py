"""The official parser accepts the document, and would not accept a wrong one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from service.edge.asyncapi import FILE
from tests.asyncapi.official import parse

Json = dict[str, Any]


def test_the_official_parser_accepts_it() -> None:
    (verdict,) = parse(FILE)
    assert verdict.errors == []
    assert (verdict.messages, verdict.examples) == (15, 24)
    # We write AsyncAPI 3.0, which every tool reads; the parser mentions that there is a 3.1.
    assert verdict.hints == ["asyncapi-latest-version"]


def _operation_without_channel(document: Json) -> None:
    document["operations"]["send-dlq-queue"]["channel"]["$ref"] = "#/channels/nowhere"


def _unknown_action(document: Json) -> None:
    document["operations"]["send-dlq-queue"]["action"] = "shout"


def _example_with_a_wrong_count(document: Json) -> None:
    example = document["components"]["messages"]["DeadLetter"]["examples"][0]
    example["headers"]["x-retry-count"] = "twice"


def _example_without_a_reason(document: Json) -> None:
    del document["components"]["messages"]["DeadLetter"]["examples"][0]["headers"]["x-dlo-reason"]


SPOILT: dict[str, tuple[Callable[[Json], None], str]] = {
    "an operation without a channel": (_operation_without_channel, "channels/nowhere"),
    "an unknown action": (_unknown_action, "action"),
    "an example with a wrong count": (_example_with_a_wrong_count, "must be integer"),
    "an example without a reason": (_example_without_a_reason, "x-dlo-reason"),
}


def test_spoilt_documents_are_refused(document: Json, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.yaml" for number, _ in enumerate(SPOILT)]
    for file, (spoil, _) in zip(files, SPOILT.values(), strict=True):
        spoilt = copy.deepcopy(document)
        spoil(spoilt)
        file.write_text(yaml.safe_dump(spoilt))
    for what, verdict in zip(SPOILT, parse(*files), strict=True):
        assert any(SPOILT[what][1] in line for line in verdict.errors), (what, verdict.errors)
