"""Who is asking: every request has a person, and the person a role."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fastapi import Request


class Role(StrEnum):
    """A viewer looks; an operator also acts."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Person:
    """Who the audit names."""

    name: str
    role: Role


NOBODY_IN_PARTICULAR = Person("local", Role.OPERATOR)


def person(request: Request) -> Person:
    """For `Depends(person)`: whom the guard at the door let in."""
    found: Person = getattr(request.state, "person", NOBODY_IN_PARTICULAR)
    return found
