"""What went wrong, in one sentence for the person at the terminal."""


class Trouble(Exception):
    """Something is missing or would not start; the message says what, where and what to do."""
