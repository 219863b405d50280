"""Whatever the API's description allows, and what it does not: never a 5xx, always as documented.

The real service on PostgreSQL, which is the stricter database; `just fuzz` asks for longer, and of both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.ledger.book import Book
from service.ledger.schema import upgrade
from tests.kit.fixtures import sqlite_in
from tests.kit.process import Service, environment
from tests.ledger.rows import burial_row, cause_row, fill, letter_row, replay_row
from tests.servers.waiting import eventually

NOBODY = "amqp://guest:guest@127.0.0.1:1/"  # the API needs no broker
LONG = int(os.environ.get("DLO_TEST_FUZZ_EXAMPLES", "0"))
CHECKS = (
    *("not_a_server_error", "status_code_conformance", "content_type_conformance"),
    *("response_schema_conformance", "ignored_auth"),
)
PHASES = "examples,coverage,fuzzing" if LONG else "examples,fuzzing"
CAUSE = "4f6c0a1b2c3d4e5f"  # as in the description's examples
HOOKS = """
import schemathesis

@schemathesis.serializer("application/x-ndjson")
def ndjson(context, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
"""
DATABASES = ("postgres", "sqlite") if LONG else ("postgres",)


@pytest.fixture(params=DATABASES)
async def service(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Service]:
    """The service on a ledger that has what the examples name."""
    urls = {"sqlite": lambda: sqlite_in(tmp_path), "postgres": lambda: _postgres(request)}
    url = urls[request.param]()
    await upgrade(url)
    await _file(url)
    settings = {"DLO_LEDGER__EDIT": "true", "DLO_FLOWS": '["dlq_processor", "settlement"]'}
    service = Service(environment(NOBODY, url, **settings), tmp_path)
    service.spawn()
    try:
        await eventually(lambda: service.get("/livez")[0] == 200, within=30)
        yield service
    finally:
        service.kill()


def _postgres(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("postgres_url"))


async def _file(url: str) -> None:
    book = Book(url)
    await fill(book, "causes", cause_row(CAUSE))
    rows = [letter_row(number, cause=CAUSE) for number in range(5)]
    await fill(book, "letters", *rows)
    await fill(book, "burials", burial_row(1, 1, cause=CAUSE))
    await fill(book, "replays", replay_row("0" * 16))
    await book.close()


def test_no_request_is_answered_by_a_fault_of_ours(service: Service, tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "schemathesis"
    asked = [str(program), "run", "--no-color", "--seed", "1"]
    asked += ["--max-examples", str(LONG or 10), "--phases", PHASES]
    asked += ["--checks", ",".join(CHECKS), "--exclude-path", "/api/v1/events", "--no-shrink"]
    asked += ["--continue-on-failure", "--request-timeout", "20", "--warnings", "off"]
    asked += ["--generation-database", "none", "--suppress-health-check", "all"]
    asked += [f"http://127.0.0.1:{service.port}/api/openapi.json"]
    (tmp_path / "hooks.py").write_text(HOOKS)
    ended = subprocess.run(
        asked,
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=3_600,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-8_000:] + ended.stderr[-2_000:]
    assert "Traceback" not in service.said()
