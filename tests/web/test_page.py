"""The page about the API: its examples are answered, and it names every path there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import httpx2

from service.ledger.book import Book
from tests.ledger.rows import file
from tests.web.conftest import api_of, client_of

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
EXAMPLES = re.findall(r"^\$ curl -s (.*)$", PAGE, re.MULTILINE)


async def test_every_example_of_the_page_is_answered(book: Book) -> None:
    await file(book, 3)
    async with client_of(api_of(book)) as client:
        answers = [await _asked(client, example) for example in EXAMPLES]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 201, 200, 200]
    assert len(answers[0].json()["items"]) == 2
    assert answers[2].json() == {"letters": 3, "dry_run": True}


async def _asked(client: httpx2.AsyncClient, example: str) -> httpx2.Response:
    words = shlex.split(example)
    url = next(word for word in words if word.startswith("http://127.0.0.1:8000"))
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    body = words[words.index("-d") + 1] if "-d" in words else None
    headers = {"content-type": "application/json"} if body else {}
    path = url.removeprefix("http://127.0.0.1:8000")
    return await client.request(method, path, content=body, headers=headers)


async def test_the_page_names_every_path(door: httpx2.AsyncClient) -> None:
    paths = (await door.get("/api/openapi.json")).json()["paths"]
    last = {path.rstrip("}").rpartition("/")[2].strip("{") for path in paths}
    assert [word for word in last if word not in PAGE] == []
