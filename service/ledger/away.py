"""The database is away."""


class LedgerAway(Exception):
    """The database cannot be used now; the text is for a person."""
