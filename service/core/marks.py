"""The headers we stamp: readable by anyone, believed only when our own key signed them."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

RETRY_COUNT = "x-retry-count"
ORIGINAL_EXCHANGE = "x-original-exchange"
ORIGINAL_ROUTING_KEY = "x-original-routing-key"
ORIGINAL_QUEUE = "x-original-queue"
LETTER = "x-dlo-id"
FLOW = "x-dlo-flow"
FIRST_FAILURE = "x-dlo-first-failure"
DEATHS = "x-dlo-deaths"
ERROR = "x-dlo-error"
ERROR_TYPE = "x-dlo-error-type"
REASON = "x-dlo-reason"
DUE = "x-dlo-due"
DROPPED = "x-dlo-dropped-headers"
SIGNATURE = "x-dlo-signature"
REPLAY = "x-dlo-replay"
FINAL_STATUS = "x-final-status-code"
FINAL_ERROR = "x-final-error"
FINAL_RETRIES = "x-final-retry-count"
REDELIVERED = "KDLQ_Redelivered"
KILLS = "KDLQ_Kills"
MARKER = "KDLQ_PrcMarker"
ORIG_OFFSET = "KDLQ_OrigOffset"
ORIG_PARTITION = "KDLQ_OrigPartition"
ORIG_TS = "KDLQ_OrigTs"

OURS = frozenset(
    {RETRY_COUNT, ORIGINAL_EXCHANGE, ORIGINAL_ROUTING_KEY, ORIGINAL_QUEUE, LETTER, FLOW}
    | {FIRST_FAILURE, DEATHS, ERROR, ERROR_TYPE, REASON, DUE, DROPPED, SIGNATURE, REPLAY}
    | {FINAL_STATUS, FINAL_ERROR, FINAL_RETRIES}
)
# Names that others use too: on a letter that we did not mark they are the sender's own.
SHARED = frozenset(name for name in OURS if not name.startswith("x-dlo-"))
# The marks of KDLQ, which other programs count on too: a copy of ours carries them on, or its own instead.
KDLQ = frozenset({REDELIVERED, KILLS, MARKER, ORIG_OFFSET, ORIG_PARTITION, ORIG_TS})
# The broker's own history (3.x goes on counting from a copied x-death; a quorum queue shows a copied
# delivery count as its own) and the sender's carbon copies (the default exchange would deliver them
# to any queue) never travel on.
NEVER_REPUBLISHED = frozenset({"x-death", "x-delivery-count", "x-acquired-count", "CC", "BCC"})
DEATH_PREFIXES = ("x-first-death-", "x-last-death-")
LONGEST_ERROR = 1024
LONGEST_REPLAY = 160
LONGEST_MOMENT = 32
LONGEST_NAMES = 4 * 255

MarkValue = str | int | Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Origin:
    """The queue a letter failed in, and the address under which it had come there first."""

    queue: str
    exchange: str
    routing_key: str


@dataclass(frozen=True, slots=True)
class Marks:
    """What we remember of a letter between two of its deliveries."""

    letter: str
    flow: str
    origin: Origin
    retries: int
    first_failure: datetime
    deaths: Mapping[str, int] = field(default_factory=dict)
    replay: str = ""
    """The mark of the job that sent it back last, as it was read: it has a signature of its own."""

    def counting(self, retries: int) -> Marks:
        """The same, after so many retries."""
        known = self.letter, self.flow, self.origin
        return Marks(*known, retries, self.first_failure, self.deaths, self.replay)


@dataclass(frozen=True, slots=True)
class Unmarked:
    """No marks that may be believed, and why."""

    reason: str


ABSENT = Unmarked("no marks")


@dataclass(frozen=True, slots=True)
class Seal:
    """The key that signs marks; without one (bare development) marks are believed as read."""

    key: bytes = field(default=b"", repr=False)
    old: tuple[bytes, ...] = field(default=(), repr=False)
    """Keys that signed letters which may still be waiting: believed, no longer used."""

    def sign(self, marks: Marks, key: bytes | None = None) -> str:
        """HMAC-SHA256 over letter, flow, origin, count and first failure, each with its length."""
        return self.sign_as(marks.letter, common(marks), moment(marks.first_failure), key)

    def sign_as(self, letter: str, said: str, when: str, key: bytes | None = None) -> str:
        """The same, where what letters have in common was put into words before."""
        return self._hmac(f"{len(letter)}:{letter}{said}{len(when)}:{when}", key)

    def prove(self, *said: str, key: bytes | None = None) -> str:
        """HMAC-SHA256 over these words, each with its length."""
        return self._hmac(_with_lengths(said), key)

    def _hmac(self, text: str, key: bytes | None) -> str:
        return hmac.digest(self.key if key is None else key, _bytes(text), "sha256").hex()

    def proves(self, proof: str, *said: str) -> bool:
        """Whether a holder of the key, or of a former one, said these words."""
        given = _bytes(proof)
        proofs = (self.prove(*said, key=key).encode() for key in (self.key, *self.old))
        return any(hmac.compare_digest(given, each) for each in proofs)

    def vouches(self, marks: Marks, signature: object) -> bool:
        """Whether these marks were stamped by a holder of the key."""
        if not self.key:
            return True
        if not isinstance(signature, str):
            return False
        given = _bytes(signature)
        if hmac.compare_digest(given, self.sign(marks).encode()):
            return True
        signed = (self.sign(marks, key).encode() for key in self.old)
        return any(hmac.compare_digest(given, each) for each in signed)


def stamp(marks: Marks, seal: Seal) -> dict[str, MarkValue]:
    """The headers that carry these marks; the next stamp replaces every one of them."""
    stamped: dict[str, MarkValue] = {
        RETRY_COUNT: marks.retries,
        ORIGINAL_EXCHANGE: marks.origin.exchange,
        ORIGINAL_ROUTING_KEY: marks.origin.routing_key,
        ORIGINAL_QUEUE: marks.origin.queue,
        LETTER: marks.letter,
        FLOW: marks.flow,
        FIRST_FAILURE: moment(marks.first_failure),
        DEATHS: dict(marks.deaths),
    }
    if marks.replay:
        stamped[REPLAY] = marks.replay
    if seal.key:
        stamped[SIGNATURE] = seal.sign(marks)
    return stamped


def common(marks: Marks) -> str:
    """What is signed and is the same for letters that failed alike: flow, origin and count."""
    origin = marks.origin
    return _common(
        marks.flow, origin.queue, origin.exchange, origin.routing_key, str(marks.retries)
    )


@lru_cache(maxsize=1024)
def _common(*said: str) -> str:
    return _with_lengths(said)


def _with_lengths(said: Iterable[str]) -> str:
    return "".join([f"{len(part)}:{part}" for part in said])


def read(headers: Mapping[str, object], seal: Seal) -> Marks | Unmarked:
    """The marks of a letter, if it has any and they may be believed; never an exception."""
    if LETTER not in headers:
        return ABSENT
    marks = _parse(headers)
    if marks is None:
        return Unmarked("marks that cannot be read")
    if not seal.vouches(marks, headers.get(SIGNATURE)):
        return Unmarked("marks that our key did not sign")
    return marks


def replay_in(headers: Mapping[str, object]) -> str:
    """The mark of a replay as it is written there, not believed yet; it travels with retries."""
    text = headers.get(REPLAY)
    return text if isinstance(text, str) and len(text) <= LONGEST_REPLAY else ""


def is_dropped(name: str) -> bool:
    """Whether a header of the original is left out when we publish the letter again."""
    return name in OURS or name in NEVER_REPUBLISHED or name.startswith(DEATH_PREFIXES)


def strip(headers: Mapping[str, object]) -> dict[str, object]:
    """The sender's own headers: what a letter wears that is sent back with fresh attempts."""
    kept = ((name, value) for name, value in headers.items() if name not in KDLQ)
    return {name: value for name, value in kept if not is_dropped(name)}


def shorten(text: str, limit: int = LONGEST_ERROR) -> str:
    """Error text small enough to travel: headers over 128 KiB would close the connection."""
    if len(text) * 4 <= limit or len(data := _bytes(text)) <= limit:
        return text
    return data[: limit - 3].decode("utf-8", "ignore") + "…"


def _parse(headers: Mapping[str, object]) -> Marks | None:
    letter, flow = headers.get(LETTER), headers.get(FLOW)
    queue, exchange = headers.get(ORIGINAL_QUEUE), headers.get(ORIGINAL_EXCHANGE)
    key, retries = headers.get(ORIGINAL_ROUTING_KEY), headers.get(RETRY_COUNT)
    since = _when(headers.get(FIRST_FAILURE))
    if not (isinstance(letter, str) and isinstance(flow, str) and isinstance(queue, str)):
        return None
    if not (isinstance(exchange, str) and isinstance(key, str) and since is not None):
        return None
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        return None
    if len(flow) + len(queue) + len(exchange) + len(key) > LONGEST_NAMES:
        return None  # no broker has such names, and none of them is remembered below
    deaths, replay = _deaths(headers), replay_in(headers)
    return Marks(letter, flow, _origin(queue, exchange, key), retries, since, deaths, replay)


@lru_cache(maxsize=1024)
def _origin(queue: str, exchange: str, routing_key: str) -> Origin:
    """Letters that failed together share where they failed."""
    return Origin(queue, exchange, routing_key)


def _deaths(headers: Mapping[str, object]) -> dict[str, int]:
    counts = headers.get(DEATHS)
    if not counts or not isinstance(counts, dict) or len(counts) > 8:
        return {}
    return {str(reason)[:32]: n for reason, n in counts.items() if type(n) is int and 0 < n < 2**31}


@lru_cache(maxsize=64)
def moment(when: datetime) -> str:
    """Always the same length, so that marks do not grow."""
    return when.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _when(text: object) -> datetime | None:
    return _parsed(text) if isinstance(text, str) and len(text) <= LONGEST_MOMENT else None


@lru_cache(maxsize=1024)
def _parsed(text: str) -> datetime | None:
    """Letters that failed together share their moment."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _bytes(text: str) -> bytes:
    """Any text has bytes, names that were no UTF-8 (they arrive as lone surrogates) included."""
    return text.encode("utf-8", "surrogatepass")
