"""A topology for people: a Mermaid drawing, and the three tables as plain rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from faststream.rabbit import RabbitExchange, RabbitQueue

from service.core.duration import say
from service.topology.arguments import dead_letter_exchange, dead_letter_key, time_to_live
from service.topology.tables import DEFAULT, Topology


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title; every cell is a text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(topology: Topology) -> tuple[Table, ...]:
    """Exchanges, queues and bindings, as the documents write them."""
    exchanges = tuple((exchange.name, exchange.type.value) for exchange in topology.exchanges)
    queues = tuple((queue.name, _arguments(queue)) for queue in topology.queues)
    bindings = tuple(
        (b.exchange.name, b.exchange.type.value, b.queue.name, b.key) for b in topology.bindings
    )
    return (
        Table("Exchanges", ("Exchange", "Type"), exchanges),
        Table("Queues", ("Queue", "Arguments"), queues),
        Table("Bindings", ("Exchange", "Type", "Queue", "Routing Key"), bindings),
    )


def markdown(table: Table) -> str:
    """A table for a README."""
    rows = (table.columns, tuple("---" for _ in table.columns), *table.rows)
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    )


def mermaid(topology: Topology) -> str:
    """A flowchart: exchanges round, queues square, the ways of dead letters dotted."""
    names = _Names(topology)
    lines = ["flowchart LR", *names.nodes(), *_bound(topology, names), *_dying(topology, names)]
    return "\n".join(f"    {line}" if number else line for number, line in enumerate(lines)) + "\n"


class _Names:
    """Short node names: Mermaid stumbles over dots, hashes and words like `end`."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        missing = {dead_letter_exchange(queue) for queue in topology.queues} - {None, DEFAULT.name}
        known = [exchange.name for exchange in topology.exchanges]
        known += sorted(str(name) for name in missing if name not in known)
        self._exchanges = {name: f"x{number}" for number, name in enumerate(known)}
        self._queues = {queue.name: f"q{number}" for number, queue in enumerate(topology.queues)}

    def nodes(self) -> Iterator[str]:
        for name, node in self._exchanges.items():
            yield f'{node}(["{_label(name)}<br/>{self._type(name)}"])'
        for queue in self._topology.queues:
            wait = time_to_live(queue)
            yield f'{self.queue(queue)}["{_label(queue.name)}{_waits(wait)}"]'

    def exchange(self, exchange: RabbitExchange | str) -> str:
        return self._exchanges[exchange if isinstance(exchange, str) else exchange.name]

    def queue(self, queue: RabbitQueue | str) -> str:
        return self._queues[queue if isinstance(queue, str) else queue.name]

    def has_queue(self, name: str) -> bool:
        return name in self._queues

    def _type(self, name: str) -> str:
        known = self._topology.has_exchange(name)
        return self._topology.exchange(name).type.value if known else "not declared"


def _bound(topology: Topology, names: _Names) -> Iterator[str]:
    for binding in topology.bindings:
        if topology.has_exchange(binding.exchange.name) and topology.has_queue(binding.queue.name):
            yield f"{names.exchange(binding.exchange)} -->{_on(binding.key)} {names.queue(binding.queue)}"
    for exchange in topology.exchanges:
        if exchange.bind_to is not None and topology.has_exchange(exchange.bind_to.name):
            source = names.exchange(exchange.bind_to)
            yield f"{source} -->{_on(exchange.routing())} {names.exchange(exchange)}"


def _dying(topology: Topology, names: _Names) -> Iterator[str]:
    for queue in topology.queues:
        exchange, key = dead_letter_exchange(queue), dead_letter_key(queue) or ""
        if exchange == DEFAULT.name and names.has_queue(key):
            yield f"{names.queue(queue)} -.->{_on('')} {names.queue(key)}"
        elif exchange:
            yield f"{names.queue(queue)} -.->{_on(key)} {names.exchange(exchange)}"


def _on(key: str) -> str:
    return f'|"{_label(key)}"|' if key else ""


def _waits(wait: timedelta | None) -> str:
    return "" if wait is None else f"<br/>waits {say(wait)}"


def _label(text: str) -> str:
    """A text as Mermaid shows it untouched: `#` begins an entity there."""
    escaped = text.replace("#", "#35;").replace('"', "#quot;")
    return escaped.replace("<", "#lt;").replace(">", "#gt;")


def _arguments(queue: RabbitQueue) -> str:
    return ", ".join(f"{name}: {value}" for name, value in queue.arguments.items())
