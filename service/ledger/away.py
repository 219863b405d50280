"""The database is away."""


class LedgerAway(Exception):
    """The database cannot be used now; the text is for a person."""


class InDoubt(LedgerAway):
    """It went away over the last word: what was written may be kept, or not."""
