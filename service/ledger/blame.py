"""Whose fault it is that a transaction failed: the database's, another's, or that of one row in it."""

from __future__ import annotations

import sqlite3

CLASHES = frozenset({"40P01", "40001"})  # a deadlock, a serialization that failed
# SQLSTATE classes: data that cannot be stored, constraints, limits of a row or an index.
ABOUT_A_ROW = ("22", "23", "54")
SQLITE = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError)


def is_clash(away: Exception) -> bool:
    """Whether two transactions were in each other's way: nobody's fault."""
    return any(getattr(error, "sqlstate", None) in CLASHES for error in causes(away))


def refuses_a_row(away: Exception) -> bool:
    """Whether the database answers, and will not have something that is in the transaction."""
    return any(
        isinstance(error, (UnicodeError, ValueError, *SQLITE))
        or str(getattr(error, "sqlstate", None) or "").startswith(ABOUT_A_ROW)
        for error in causes(away)
    )


def named(fault: Exception) -> str:
    """What the database has against it, without the words: they may quote a letter's body."""
    root = causes(fault)[-1]
    state = getattr(root, "sqlstate", None)
    return f"{type(root).__name__} {state}" if state else type(root).__name__


def causes(error: BaseException) -> list[BaseException]:
    """An error, and those that it was raised from."""
    found: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and len(found) < 10:
        found.append(step)
        step = step.__cause__
    return found
