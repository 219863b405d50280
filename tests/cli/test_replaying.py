"""`dlo causes replay` and `dlo replays`: the plan, the job to its end, and what a script reads."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.terminal import COMMAND, dlo, surroundings
from tests.replay.story import Story, office, story
from tests.servers.waiting import eventually

ONE = ("orders",)
# The whole story: DLO_TEST_REPLAY=10000.
LETTERS = int(os.environ.get("DLO_TEST_REPLAY") or 40)


@pytest.fixture
async def teams(rabbit_url: str, sqlite_url: str, tmp_path: Path) -> AsyncIterator[Story]:
    """A service with an SQLite ledger, and a team whose consumer rejects everything."""
    service = office(rabbit_url, sqlite_url, tmp_path)
    async with story(service, rabbit_url) as teams:
        await service.start()
        await teams.open(ONE)
        yield teams
        assert "Traceback" not in service.said()


async def run(teams: Story, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, while the team goes on consuming."""
    url = f"http://127.0.0.1:{teams.service.port}"
    return await asyncio.to_thread(dlo, folder, *words, DLO_URL=url)


async def test_a_cause_comes_home_or_the_job_stops_itself(teams: Story, folder: Path) -> None:
    await teams.send(LETTERS, ONE)
    await teams.parked(LETTERS, within=30 + LETTERS / 200)
    cause = (await run(teams, folder, "causes", "list", "-o", "id")).stdout.strip()

    plan = await run(teams, folder, "causes", "replay", cause, "--rate", "200", "--dry-run")
    assert plan.returncode == 0, plan.stderr
    assert f"{LETTERS} letters, 1 consumers, 0 waiting there" in plan.stdout
    assert "still arriving" in plan.stdout

    stopped = await run(teams, folder, "causes", "replay", cause, "--yes", "-o", "json")
    assert stopped.returncode == 1
    assert json.loads(stopped.stdout)["says"] == "the canary came back: 1 of 1"
    assert len(teams.replayed) == 1

    teams.accepts, before = (lambda _message: True), len(teams.replayed)
    home = await run(teams, folder, "causes", "replay", cause, "--rate", "200", "--yes")
    assert home.returncode == 0, home.stderr
    assert "finished" in home.stdout
    assert len(teams.replayed) - before == LETTERS
    assert teams.states() == {"quiet": LETTERS}

    nothing = await run(teams, folder, "causes", "replay", cause, "--yes")
    assert (nothing.returncode, nothing.stderr) == (0, "there is nothing to send\n")
    jobs = json.loads((await run(teams, folder, "replays", "list", "-o", "json")).stdout)
    assert [job["state"] for job in jobs] == ["finished", "stopped"]


async def test_ctrl_c_leaves_the_job_to_others(teams: Story, folder: Path) -> None:
    await teams.send(60, ONE)
    await teams.parked(60)
    teams.accepts = lambda _message: True
    words = ("letters", "replay", "--origin", "orders", "--rate", "5", "--yes")
    watching = await asyncio.create_subprocess_exec(
        *COMMAND,
        *words,
        cwd=folder,
        env=surroundings({"DLO_URL": f"http://127.0.0.1:{teams.service.port}"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    await teams.sees(3)
    watching.send_signal(signal.SIGINT)
    _, said = await watching.communicate()
    assert watching.returncode == 130
    assert b"the replay goes on without you; stop it with: dlo replays stop" in said
    id_ = (await run(teams, folder, "replays", "list", "-o", "id")).stdout.strip()
    assert (await run(teams, folder, "replays", "pause", id_)).returncode == 0
    await eventually(lambda: teams.job(id_)["state"] == "paused")
    assert (await run(teams, folder, "replays", "resume", id_)).returncode == 0
    assert (await run(teams, folder, "replays", "stop", id_)).returncode == 0
    await eventually(lambda: teams.job(id_)["state"] == "stopped")
    again = await run(teams, folder, "replays", "resume", id_)
    assert again.returncode == 1
    assert "Traceback" not in again.stderr
