"""Stack traces as text → the innermost frame of the application, in the words of its language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

JAVA = re.compile(
    r"^\s*at (?:[\w.@-]+/)*(?P<what>[\w.$<>]+)\("
    r"(?P<file>[\w$-]+\.(?:java|kt|scala|groovy|clj)|Native Method|Unknown Source|<generated>)"
    r"(?::(?P<line>\d+))?\)"
)
DOTNET = re.compile(r"^\s*at (?P<what>[^\s(]+)\(.*?\)(?: in (?P<file>.*?):line (?P<line>\d+))?$")
PYTHON = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<what>.+))?$')
CAUSED_BY = re.compile(r"^(?:Caused by: )?(?P<type>[A-Za-z_$][\w$]*(?:\.[\w$]+)+)(?::|$)")
# What is not the application: languages' own libraries, and the frameworks that carry messages.
FRAMEWORKS = (
    *("java.", "javax.", "jakarta.", "jdk.", "sun.", "com.sun.", "kotlin.", "scala.", "reactor."),
    *("org.springframework.", "org.apache.", "org.hibernate.", "com.rabbitmq.", "io.netty."),
    *("com.fasterxml.", "org.aopalliance.", "io.micrometer.", "com.zaxxer.", "org.postgresql."),
    *("System.", "Microsoft.", "MassTransit.", "NServiceBus.", "GreenPipes.", "RabbitMQ."),
    *("Newtonsoft.", "Npgsql.", "Polly.", "lambda_method"),
)
LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python", "<frozen ", "\\site-packages\\")
GENERATED = re.compile(r"\$[\w$]*")
LONGEST_TRACE = 64 * 1024
LONGEST_LINE, LONGEST_PART = 1024, 255
"""Strangers write traces: however they are made, reading one takes no longer than reading its lines."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Where in the code: `com.acme.Orders.take (Orders.java:12)`."""

    what: str
    file: str = ""
    line: str = ""

    def __str__(self) -> str:
        if not self.file:
            return self.what
        return f"{self.what} ({self.file}{':' if self.line else ''}{self.line})"


def innermost(trace: str) -> str:
    """The innermost frame that is the application's own; "" where the trace shows none."""
    lines = [line[:LONGEST_LINE].rstrip() for line in trace[:LONGEST_TRACE].splitlines()]
    for section in _innermost_first(lines):
        for frame in section:
            if not _is_framework(frame):
                return str(frame)
    return ""


def root_type(trace: str) -> str:
    """The type of the error at the bottom of a Java trace: what wrapped it says less."""
    lines = trace[:LONGEST_TRACE].splitlines()
    named = [found for line in lines if line[:1].strip() and (found := CAUSED_BY.match(line))]
    return named[-1]["type"][:LONGEST_PART] if named else ""


def without_line(place: str) -> str:
    """A place as it is when the file grows above it: line and generated numbers left out."""
    return GENERATED.sub(_without_number, re.sub(r":\d+\)$", ")", place))


def _without_number(found: re.Match[str]) -> str:
    """A name with a digit is the compiler's; the digit is looked for here, for a pattern that looks for
    it takes cubic time over a run of dollars."""
    return "$" if any(map(str.isdecimal, found[0])) else found[0]


def _innermost_first(lines: list[str]) -> Iterator[Iterable[Frame]]:
    """The frames of each error in the trace, that of the root first.

    Java writes the root last, behind "Caused by"; .NET first; Python prints frames outside in.
    """
    if any(PYTHON.match(line) for line in lines):
        yield reversed([_frame(found) for line in lines if (found := PYTHON.match(line))])
        return
    starts = [0, *(n for n, line in enumerate(lines) if line.startswith("Caused by: "))]
    for start, stop in reversed(list(zip(starts, [*starts[1:], len(lines)], strict=True))):
        yield [frame for line in lines[start:stop] if (frame := _at(line)) is not None]


def _at(line: str) -> Frame | None:
    found = JAVA.match(line) or DOTNET.match(line)
    return _frame(found) if found is not None else None


def _frame(found: re.Match[str]) -> Frame:
    file = re.split(r"[/\\]", found["file"] or "")[-1][:LONGEST_PART]
    if found.re is PYTHON and any(name in found["file"] for name in LIBRARIES):
        return Frame("", file)
    what = (found["what"] or "<module>")[:LONGEST_PART]
    return Frame(what, file, (found["line"] or "")[:LONGEST_PART])


def _is_framework(frame: Frame) -> bool:
    return not frame.what or frame.what.startswith(FRAMEWORKS)
