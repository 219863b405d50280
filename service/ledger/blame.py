"""Whose fault it is that a transaction failed: the database's, or that of one row in it."""

from __future__ import annotations

import sqlite3

from service.ledger.contention import causes

# SQLSTATE classes: data that cannot be stored, constraints, limits of a row or an index.
ABOUT_A_ROW = ("22", "23", "54")
SQLITE = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError)


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
