"""A Kafka record → the facts about it, whatever its headers hold; and the headers of its copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from service.core.delivery import Envelope
from service.core.marks import KDLQ, ORIG_OFFSET, ORIG_TS, RETRY_COUNT, MarkValue, is_dropped
from service.edge.letter import Letter

if TYPE_CHECKING:
    from confluent_kafka import Message

Wire = Literal["text", "java"]
Header = tuple[str, str | bytes | None]
LONGEST_NAME = 255  # bytes: AMQP takes no longer names, and a copy may go to RabbitMQ
NO_TIMESTAMP = 0
LONGS = frozenset({ORIG_OFFSET, ORIG_TS})


@dataclass(frozen=True, slots=True)
class Record(Letter):
    """A letter from Kafka, with what only a copy for Kafka needs: the record as it was."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    wired: tuple[Header, ...]
    fault: str = ""
    """Why its headers could not be read."""


def record_of(raw: Message) -> Record:
    """Everything about a record, read once and without trust in its shape."""
    wired, fault = _wired(raw)
    kind, timestamp = raw.timestamp()
    key, value = _bytes(raw.key()), _bytes(raw.value())
    return Record(
        value or b"",
        {name: _read(name, value) for name, value in wired if len(name.encode()) <= LONGEST_NAME},
        {} if key is None else {"key": key},
        raw.topic() or "",
        raw.partition() or 0,
        raw.offset() or 0,
        None if kind == NO_TIMESTAMP else timestamp,
        key,
        value,
        wired,
        fault,
    )


def envelope_of(record: Record, at: datetime) -> Envelope:
    """What the record says of itself. Kafka has no message ids: its place is one, the same whenever
    it is read again."""
    place = {"partition": record.partition, "offset": record.offset}
    if record.timestamp is not None:
        place["timestamp"] = record.timestamp
    fresh = f"{record.topic}/{record.partition}/{record.offset}"
    return Envelope(None, record.headers, fresh, at, place=place)


def headers_for(record: Record, marks: Mapping[str, MarkValue], wire: Wire) -> list[Header]:
    """The original's headers as they were, less those that these marks replace, plus the marks."""
    kept = (header for header in record.wired if not _is_replaced(header[0], marks))
    return [*kept, *_written(marks.items(), wire)]


def _is_replaced(name: str, marks: Mapping[str, MarkValue]) -> bool:
    return name in marks or is_dropped(name)


def _written(marks: Iterable[tuple[str, MarkValue]], wire: Wire) -> Iterator[Header]:
    for name, value in marks:
        match value:
            case str():
                yield name, value.encode("utf-8", "backslashreplace")
            case int() if wire == "java" and name in KDLQ:
                yield name, _big_endian(name, value)
            case int():
                yield name, str(value).encode()
            case _:
                pass  # a table: it counts deaths by RabbitMQ's queues, of which there are none


def _big_endian(name: str, value: int) -> bytes:
    """As the Java library writes it: counters and partitions are ints, offsets and times longs."""
    width = 8 if name in LONGS or value >= 2**31 else 4
    return value.to_bytes(width, "big", signed=True)


def _wired(raw: Message) -> tuple[tuple[Header, ...], str]:
    try:
        given = raw.headers() or ()
        pairs = given.items() if isinstance(given, dict) else given
        return tuple((name, _bytes(value)) for name, value in pairs), ""
    except Exception as error:  # noqa: BLE001  # a name that is no UTF-8: the client raises what it likes
        return (), f"its headers cannot be read: {type(error).__name__}: {error}"


def _read(name: str, given: str | bytes | None) -> object:
    """Text where it is text; RabbitMQ's library takes no plain bytes, but a bytearray."""
    if (value := _bytes(given)) is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return bytearray(value)
    return int(text) if name == RETRY_COUNT and text.isdecimal() and len(text) < 10 else text


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
