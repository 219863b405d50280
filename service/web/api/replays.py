"""`/api/v1/replays`: letters sent back by a job that plans, tries some first, and stops itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Annotated, Any, assert_never
from uuid import uuid4

from fastapi import APIRouter, Body, Header, Query, Response

from service.core.replay import Terms
from service.core.standing import Sight
from service.core.states import Wanted
from service.ledger.audit import Deed
from service.ledger.book import Book
from service.ledger.outlook import outlook
from service.ledger.replay_pages import find, items, newest
from service.ledger.replays import (
    Draft,
    KeyTaken,
    Nothing,
    Over,
    Replay,
    Unknown,
    open_replay,
    want,
)
from service.web.access import Person
from service.web.api.asking import Said, is_id
from service.web.api.cursors import cursor, number_of
from service.web.api.letters import Clock, Who, utc_now
from service.web.api.replay_plan import plan_body
from service.web.api.replay_shapes import (
    Items,
    ItemsAsked,
    NewReplay,
    PlanBody,
    ReplayBody,
    ReplayPath,
    Replays,
    ReplaysAsked,
    item_line,
    replay_body,
    replay_line,
)
from service.web.problems import Problem, documented

PATH = "/api/v1/replays"
KIND, LETTERS = "replays", "replay letters"
LATELY = timedelta(minutes=5)
PLANNED: dict[int | str, dict[str, Any]] = {
    200: {"model": PlanBody, "description": "The plan, with `dry_run`"}
}

Optional = Annotated[Said | None, Body()]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="Sent twice, the request makes one job and gets the same answer.",
    ),
]


@dataclass(frozen=True, slots=True)
class Runs:
    """What replays need beside the ledger; the broker's part is handed in."""

    usual: Terms
    look: Callable[[Iterable[str]], Awaitable[Mapping[str, Sight]]]
    wake: Callable[[], None]
    """There is something to do."""
    intake: bool = True
    """Whether letters that die again are seen."""
    clock: Clock = utc_now


def router(book: Book, runs: Runs) -> APIRouter:
    """Plan, start, look, pause, resume, stop."""
    routes = APIRouter(prefix=PATH, tags=["replays"])

    @routes.post("", status_code=202, responses=PLANNED | documented(401, 403, 409, 413, 422, 503))
    async def start(
        asked: NewReplay, who: Who, response: Response, key: Key = None
    ) -> ReplayBody | PlanBody:
        """Start a replay, and follow it at the Location; with `dry_run` only say what it would do."""
        terms = asked.terms(runs.usual)
        if asked.dry_run:
            response.status_code = 200
            return await _plan(asked, terms)
        made = await open_replay(book, draft_of(asked, terms, who, key), runs.clock())
        match made:
            case Replay():
                runs.wake()
                response.headers["Location"] = f"{PATH}/{made.id}"
                return replay_body(made)
            case KeyTaken(by):
                raise _taken(by)
            case Nothing():
                raise await _nothing(asked)
            case never:
                assert_never(never)

    @routes.get("", responses=documented(401, 403, 422, 503))
    async def list_(asked: Annotated[ReplaysAsked, Query()]) -> Replays:
        """Replays, newest first."""
        below = number_of(asked.cursor, KIND)
        found = await newest(book, tuple(asked.state), asked.limit + 1, below)
        page, more = found[: asked.limit], found[asked.limit :]
        next_ = cursor(KIND, page[-1].number) if more else None
        return Replays(items=[replay_line(replay) for replay in page], next=next_)

    @routes.get("/{id}", responses=documented(401, 403, 404, 503))
    async def show(id: ReplayPath) -> ReplayBody:
        """One replay, and how many letters had which result; true after it has ended, too."""
        return replay_body(await _known(id))

    @routes.get("/{id}/letters", responses=documented(401, 403, 404, 422, 503))
    async def letters(id: ReplayPath, asked: Annotated[ItemsAsked, Query()]) -> Items:
        """What became of each letter, in the order in which they are sent."""
        replay = await _known(id)
        above = number_of(asked.cursor, LETTERS) or 0
        found = await items(book, replay.id, tuple(asked.state), asked.limit + 1, above)
        page, more = found[: asked.limit], found[asked.limit :]
        next_ = cursor(LETTERS, page[-1].position) if more else None
        return Items(items=[item_line(item) for item in page], next=next_)

    @routes.post("/{id}/pause", status_code=202, responses=documented(401, 403, 404, 409, 413, 503))
    async def pause(id: ReplayPath, who: Who, said: Optional = None) -> ReplayBody:
        """Send no more for now; the position is kept."""
        return await _want(id, Wanted.PAUSE, "pause", who, said or Said())

    @routes.post(
        "/{id}/resume", status_code=202, responses=documented(401, 403, 404, 409, 413, 503)
    )
    async def resume(id: ReplayPath, who: Who, said: Optional = None) -> ReplayBody:
        """Go on where it was."""
        return await _want(id, Wanted.RUN, "resume", who, said or Said())

    @routes.post("/{id}/stop", status_code=202, responses=documented(401, 403, 404, 409, 413, 503))
    async def stop(id: ReplayPath, who: Who, said: Optional = None) -> ReplayBody:
        """Send no more, ever; what was not sent stays parked."""
        return await _want(id, Wanted.STOP, "stop", who, said or Said())

    async def _plan(asked: NewReplay, terms: Terms) -> PlanBody:
        lately = runs.clock() - LATELY
        known = await outlook(book, asked.filter.filter(), asked.target or "", lately)
        return plan_body(known, await runs.look(known.queues), terms, intake=runs.intake)

    async def _known(id_: str) -> Replay:
        found = await find(book, id_) if is_id(id_, 16) else Unknown()
        if isinstance(found, Unknown):
            raise _unknown()
        return found

    async def _want(id_: str, wanted: Wanted, verb: str, who: Person, said: Said) -> ReplayBody:
        deed = Deed(who.name, f"replay.{verb}", f"replay:{id_}", why=said.why)
        known = is_id(id_, 16)
        done = await want(book, id_, wanted, deed, runs.clock()) if known else Unknown()
        match done:
            case Replay():
                runs.wake()
                return replay_body(done)
            case Over(state):
                raise _over(state.value)
            case Unknown():
                raise _unknown()
            case never:
                assert_never(never)

    async def _nothing(asked: NewReplay) -> Problem:
        now = runs.clock()
        homeless = (await outlook(book, asked.filter.filter(), "", now)).homeless
        return _nothing_to_send(0 if asked.target else homeless)

    return routes


def draft_of(asked: NewReplay, terms: Terms, who: Person, key: str | None) -> Draft:
    """The job that is asked for."""
    request = f"{who.name}\n{asked.model_dump_json(exclude={'dry_run'})}"
    return Draft(
        id=uuid4().hex[:16],
        who=who.name,
        selection=asked.filter.filter(),
        asked=asked.filter.said(),
        terms=terms,
        digest=sha256(request.encode("utf-8", "replace")).digest(),
        target=asked.target or "",
        attempts=asked.attempts,
        why=asked.why,
        key=key,
    )


def _taken(by: str) -> Problem:
    return Problem(
        409,
        "The Idempotency-Key is taken",
        f"Another request with this key made replay {by}.",
        hint="A new request needs a new key; to repeat the old one, send exactly the same body.",
    )


def _nothing_to_send(homeless: int) -> Problem:
    detail = "No open letter of this filter can be sent."
    hint = "Only parked and returned letters are sent; look at them with GET /api/v1/letters."
    if homeless:
        detail = f"Nobody knows where the {homeless} letters of this filter died."
        hint = "Name the queue to send them to as `target`."
    return Problem(409, "There is nothing to send", detail, hint=hint)


def _over(state: str) -> Problem:
    return Problem(
        409,
        "The replay is over",
        f"It is {state} and sends no more letters.",
        hint="Start another one for the letters that are left.",
    )


def _unknown() -> Problem:
    return Problem(
        404,
        "No such replay",
        "There is no replay with this id.",
        hint="GET /api/v1/replays has them all.",
    )
