"""`dlo letters|causes|routes|adopt|audit|status` over HTTP, on a running service."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from sqlalchemy import delete, select

from service.ledger.book import Book
from service.ledger.tables import ADOPTED, CAUSES, LETTERS, ROUTES
from tests.cli.office import Terminal
from tests.kit.process import Service
from tests.ledger.rows import CAUSE, file, letter_row

LISTS = (
    ("letters", "list"),
    ("causes", "list"),
    ("causes", "list", "--all"),
    ("replays", "list"),
    ("adopt",),
)
FIRST = letter_row(1)["id"]
DESTRUCTIVE = (
    ("letters", "discard", FIRST),
    ("letters", "discard", "--cause", CAUSE),
    ("letters", "restore", FIRST),
    ("letters", "replay", FIRST),
    ("causes", "discard", CAUSE),
    ("causes", "replay", CAUSE),
    ("routes", "remove", "order.*"),
    ("adopt", "orders.dlq", "--release"),
)


@pytest.fixture
def dlo(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """A terminal, and an empty ledger."""
    asyncio.run(_empty(service))
    return Terminal(monkeypatch, capsys, f"http://127.0.0.1:{service.port}")


async def _empty(service: Service) -> None:
    book = Book(service.environment["DLO_DATABASE__URL"])
    async with book.writing() as connection:
        for table in (LETTERS, CAUSES, ROUTES, ADOPTED):
            await connection.execute(delete(table))
    await book.close()


def fill(service: Service, count: int) -> None:
    async def work() -> None:
        book = Book(service.environment["DLO_DATABASE__URL"])
        await file(book, count)
        await book.close()

    asyncio.run(work())


def states(service: Service) -> list[str]:
    async def work() -> list[str]:
        book = Book(service.environment["DLO_DATABASE__URL"])
        async with book.reading() as connection:
            found = await connection.scalars(select(LETTERS.c.state).order_by(LETTERS.c.number))
            read = list(found)
        await book.close()
        return read

    return asyncio.run(work())


def contents(exported: str) -> dict[str, tuple[str, str, str]]:
    """What the sender wrote, by the letter's id."""
    lines = map(json.loads, exported.splitlines())
    return {one["id"]: (one["body"], one["headers"], one["properties"]) for one in lines}


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_list_of_nothing_is_empty_and_no_error(dlo: Terminal, words: tuple[str, ...]) -> None:
    for form in ("table", "json"):
        said = dlo(*words, "-o", form)
        assert (said.code, said.out.strip()) == (0, "[]"), said.err
    for form in ("ndjson", "id"):
        said = dlo(*words, "-o", form)
        assert (said.code, said.out) == (0, "")


@pytest.mark.parametrize("words", DESTRUCTIVE, ids=" ".join)
def test_without_a_terminal_and_a_yes_nothing_is_done(
    dlo: Terminal, service: Service, words: tuple[str, ...]
) -> None:
    fill(service, 2)
    assert dlo("routes", "set", "order.*", "--max-retries", "2").code == 0
    assert dlo("adopt", "orders.dlq").code == 0
    said = dlo(*words)
    assert said.code == 2
    assert "nothing was done" in said.err
    assert said.err.rstrip().endswith("--yes")
    assert states(service) == ["parked", "parked"]
    assert dlo("routes", "list", "-o", "json").json[0]["name"] == "order.*"
    assert dlo("adopt", "-o", "id").out == "orders.dlq\n"


def test_letters_are_listed_shown_and_read(dlo: Terminal, service: Service) -> None:
    fill(service, 3)
    assert [one["letter"] for one in dlo("letters", "list", "-o", "json").json] == [
        "message-3",
        "message-2",
        "message-1",
    ]
    assert dlo("letters", "list", "--limit", "1", "-o", "id").out == f"{3:032x}\n"
    assert dlo("letters", "list", "--state", "back", "-o", "json").json == []
    assert len(dlo("letters", "list", "--header", "tenant=acme", "-o", "json").json) == 3
    assert dlo("letters", "list", "--since", "1h", "-o", "json").json == []  # they are older
    shown = dlo("letters", "show", FIRST)
    assert "message-1" in shown.out
    assert "delivered 4 times" in shown.out.lower()
    assert dlo("letters", "body", FIRST).out == '{"order": 1}'


def test_letters_are_discarded_and_brought_back(dlo: Terminal, service: Service) -> None:
    fill(service, 3)
    assert dlo("letters", "discard", "--cause", CAUSE, "--dry-run").json == {"letters": 3}
    assert states(service) == ["parked"] * 3
    done = dlo("letters", "discard", FIRST, "--why", "a test", "--yes")
    assert (done.code, done.json) == (0, {"letters": 1})
    assert dlo("causes", "discard", CAUSE, "--yes").json == {"letters": 2}
    assert states(service) == ["discarded"] * 3
    assert dlo("letters", "restore", "--cause", CAUSE, "--yes").json == {"letters": 3}
    assert states(service) == ["parked"] * 3
    deeds = dlo("audit", "--subject", f"letter:{FIRST}", "-o", "json").json
    assert [(deed["action"], deed["how_many"], deed["why"]) for deed in deeds][:1] == [
        ("letters.discard", 1, "a test")
    ]


def test_letters_travel_to_a_file_and_back(dlo: Terminal, service: Service, tmp_path: Path) -> None:
    fill(service, 3)
    exported = dlo("letters", "export").out
    assert len(exported.splitlines()) == 3
    asyncio.run(_empty(service))
    (tmp_path / "letters.ndjson").write_text(exported)
    done = dlo("letters", "import", str(tmp_path / "letters.ndjson"))
    assert (done.code, done.json["letters"]) == (0, 3)
    assert contents(dlo("letters", "export").out) == contents(exported)
    (tmp_path / "letters.ndjson").write_text(f'{exported}{{"no": "letter"}}\n')
    done = dlo("letters", "import", str(tmp_path / "letters.ndjson"))
    assert (done.code, done.json["known"], done.json["faulty"]) == (5, 3, 1)
    assert dlo("letters", "import", "nowhere.ndjson").code == 2


def test_a_cause_lives(dlo: Terminal, service: Service) -> None:
    fill(service, 2)
    (cause,) = dlo("causes", "list", "-o", "json").json
    assert (cause["state"], cause["open"]) == ("new", 2)
    for words, state in (
        (("acknowledge",), "acknowledged"),
        (("mute", "--for", "2h"), "muted"),
        (("unmute",), "acknowledged"),
        (("resolve", "--why", "mended"), "resolved"),
    ):
        said = dlo("causes", words[0], CAUSE, *words[1:])
        assert (said.code, said.err) == (0, f"cause {CAUSE} is {state}\n")
    assert dlo("causes", "note", CAUSE, "the supplier sends nulls", "--owner", "anna").code == 0
    assert dlo("causes", "note", CAUSE, "--owner", "ben").code == 0
    shown = dlo("causes", "show", CAUSE, "-o", "json").json
    assert (shown["note"], shown["owner"]) == ("the supplier sends nulls", "ben")
    assert "the supplier sends nulls" in dlo("causes", "show", CAUSE).out


def test_routes_are_set_tested_and_removed(dlo: Terminal) -> None:
    assert dlo("routes", "set", "order.*", "--max-retries", "1").code == 0
    assert dlo("routes", "set", "order.*", "--max-retries", "2").code == 0
    tested = dlo("routes", "test", "order.created", "-o", "json").json
    assert (tested["route"], len(tested["steps"])) == ("order.*", 2)
    assert dlo("routes", "remove", "order.*", "--yes").code == 0
    assert dlo("routes", "remove", "order.*", "--yes").code == 3
    assert dlo("routes", "set", "order.*", "--delay", "7h").code == 2


def test_the_status_says_how_the_office_stands(dlo: Terminal, service: Service) -> None:
    fill(service, 2)
    said = dlo("status", "-o", "json")
    assert said.code == 0, said.err
    assert said.json["ledger"]["letters"]["parked"] == 2
    assert "open letters" in dlo("status").out


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("letters", "show", "0" * 32), 3, "No such letter"),
        (("letters", "show", "../../livez"), 3, "There is no letter"),
        (("letters", "body", "0" * 32), 3, "No such letter"),
        (("causes", "show", "0" * 16), 3, "No such cause"),
        (("replays", "show", "nobody"), 3, "No such replay"),
        (("letters", "list", "--state", "lost"), 2, "state"),
        (("letters", "discard"), 2, "name letters by their ids"),
        (("letters", "list", "--url", "http://127.0.0.1:1"), 1, "No service answers at"),
        (("letters", "list", "--url", "nonsense"), 2, "'nonsense' is no address"),
        (("letters", "list", "--token", "geheim-ß"), 2, "characters that no token has"),
        (("letters", "export", "--url", "http://127.0.0.1:1"), 1, "No service answers at"),
        (("letters", "body", FIRST, "--url", "http://127.0.0.1:1"), 1, "No service answers at"),
        (("letters", "replay", "nonsense", "--yes"), 3, "There is no letter 'nonsense'"),
        (("routes", "remove", "no.such", "--yes"), 3, "The table has no route"),
    ],
)
def test_a_mistake_is_one_sentence_and_a_code(
    dlo: Terminal, words: tuple[str, ...], code: int, sentence: str
) -> None:
    said = dlo(*words)
    assert (said.code, said.out) == (code, ""), said
    assert sentence in " ".join(said.err.replace("│", " ").split())
    assert "Traceback" not in said.err


def test_options_of_the_root_may_stand_anywhere(dlo: Terminal) -> None:
    url = dlo.url
    elsewhere = {"DLO_URL": "http://127.0.0.1:1"}
    for words in (("--url", url, "letters", "list"), ("letters", "list", f"--url={url}")):
        assert json.loads(dlo(*words, **elsewhere).out) == []
