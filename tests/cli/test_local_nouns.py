"""The command line, run as people run it: exit codes, data on stdout, sentences on stderr."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal import dlo


def test_version(folder: Path) -> None:
    done = dlo(folder, "--version")
    assert done.returncode == 0
    assert done.stdout.startswith("Dead Letter Office ")


def test_config_is_shown_with_secrets_masked(folder: Path) -> None:
    secrets = {"DLO_MARKS__KEY": "hunter2hunter2hunter2", "DLO_RABBIT__URL": "amqp://u:hunter2@h/"}
    table = dlo(folder, "config", "show", **secrets)
    document = dlo(folder, "config", "show", "-o", "json", **secrets)
    assert table.returncode == document.returncode == 0
    assert ["rabbit.url", "amqp://u:***@h/"] in [line.split() for line in table.stdout.splitlines()]
    assert json.loads(document.stdout)["marks"] == {"key": "***", "old_keys": []}
    assert "hunter2" not in table.stdout + document.stdout


def test_bad_settings_are_a_list_and_exit_2(folder: Path) -> None:
    done = dlo(folder, "config", "show", DLO_RABIT__URL="x", DLO_WEB__PORT="high")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "The settings cannot be used:",
        "  rabit.url: there is no such setting; did you mean rabbit.url? (from DLO_RABIT__URL)",
        "  web.port: given 'high', expected a whole number (from DLO_WEB__PORT)",
    ]


def test_the_schema_is_upgraded_and_shown(folder: Path) -> None:
    before = dlo(folder, "db", "current", "-o", "json")
    assert json.loads(before.stdout)["current"] is None
    assert before.stderr == "the database is not up to date; run: dlo db upgrade\n"
    upgraded = dlo(folder, "db", "upgrade")
    assert (upgraded.returncode, upgraded.stdout) == (0, "0003\n")
    assert upgraded.stderr == f"SQLite {folder}/var/dlo.db: migrated from nothing\n"
    again = dlo(folder, "db", "upgrade")
    assert again.stderr == f"SQLite {folder}/var/dlo.db: was up to date\n"
    after = json.loads(dlo(folder, "db", "current", "-o", "json").stdout)
    assert after["current"] == after["newest"]


def test_a_database_that_is_away_is_one_sentence_and_exit_1(folder: Path) -> None:
    done = dlo(folder, "db", "upgrade", DLO_DATABASE__URL="postgresql://u:hunter2@127.0.0.1:1/d")
    assert done.returncode == 1
    assert done.stderr == (
        "PostgreSQL 127.0.0.1:1/d refuses connections; is it running, and is database.url right?\n"
    )


@pytest.mark.parametrize("words", [["nonsense"], ["config", "show", "-o", "xml"], ["db", "drop"]])
def test_a_command_that_does_not_exist_is_exit_2(folder: Path, words: list[str]) -> None:
    done = dlo(folder, *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
