"""The running service: where it refuses to listen, and that open streams never keep it from ending."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path

import httpx2
import pytest

from tests.kit.fixtures import sqlite_in
from tests.kit.process import ROOT, Service, compiled, environment, faststream
from tests.servers.waiting import eventually

NOBODY = "amqp://guest:guest@127.0.0.1:1/"  # the API needs no broker
TOKENS = '[{name = "otto", role = "operator", token = "a token for the tests"}]'


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service without a broker."""
    service = Service(environment(NOBODY, sqlite_in(tmp_path)), tmp_path)
    service.spawn()
    yield service
    service.kill()


@pytest.mark.parametrize("more", [(), ("--workers", "2")])
def test_another_bind_refuses_to_start_without_a_login(tmp_path: Path, more: tuple[str]) -> None:
    command = [*faststream(), "--host", "0.0.0.0", "--port", "0", *more]
    env = {**os.environ, **compiled(), **environment(NOBODY, sqlite_in(tmp_path))}
    ended = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.strip() == (
        "auth.mode: is none, and --host 0.0.0.0 may let other machines in:"
        ' set auth.mode to "token" or "proxy", or listen on 127.0.0.1'
    )


async def test_tokens_are_asked_for_and_health_is_not(tmp_path: Path) -> None:
    settings = {"DLO_AUTH__MODE": "token", "DLO_AUTH__TOKENS": TOKENS}
    service = Service(environment(NOBODY, sqlite_in(tmp_path), **settings), tmp_path)
    service.spawn()
    try:
        await eventually(lambda: service.get("/livez")[0] == 200, within=30)
        assert [service.get(path)[0] for path in ("/readyz", "/metrics", "/asyncapi.json")] == [
            503,
            200,
            200,
        ]
        for path in (
            "/api/v1/letters",
            "/api/openapi.json",
            "/api/v1/letters/",
            "//api/v1/letters",
        ):
            assert service.get(path)[0] == 401
        url = f"http://127.0.0.1:{service.port}/api/v1/status"
        async with httpx2.AsyncClient(trust_env=False) as client:
            answer = await client.get(
                url, headers={"Authorization": "Bearer a token for the tests"}
            )
            assert answer.json()["you"] == {"name": "otto", "role": "operator"}
            wrong = await client.get(url, headers={"Authorization": "Bearer hunter2hunter2"})
            assert wrong.status_code == 401
    finally:
        service.stop()
    assert "a token for the tests" not in service.said()
    assert "hunter2" not in service.said()


def listen(url: str) -> HTTPResponse:
    """An open stream."""
    stream = urllib.request.urlopen(url, timeout=20)
    assert isinstance(stream, HTTPResponse)
    return stream


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
async def test_open_streams_do_not_keep_the_service_from_ending(
    service: Service, end: signal.Signals
) -> None:
    await eventually(lambda: service.get("/livez")[0] == 200, within=30)
    url = f"http://127.0.0.1:{service.port}/api/v1/events"
    streams = [listen(url) for _ in range(3)]
    try:
        for stream in streams:
            lines = [stream.readline() for _ in range(4)]
            assert b"retry: 2000\n" in lines
        assert service.process is not None
        asked = time.monotonic()
        service.process.send_signal(end)
        rest = [stream.read() for stream in streams]
        assert service.process.wait(20) == 0
        assert time.monotonic() - asked < 10
    finally:
        for stream in streams:
            stream.close()
    told = [line for line in rest[0].splitlines() if line.startswith(b"data: ")]
    assert all(json.loads(line.removeprefix(b"data: ")) is not None for line in told)
    assert "Traceback" not in service.said()
