"""One sentence that says why a letter lies here."""

from __future__ import annotations

from collections.abc import Callable

from service.core.judge import times
from service.ledger.letters import Letter, Whole

Rule = Callable[[Letter], str]
"""What the route or the flow of a letter allows, in words; "" where nobody knows."""


def no_rule(_letter: Letter) -> str:
    """Nobody knows."""
    return ""


def why(whole: Whole, rule: Rule) -> str:
    """What was allowed, how often it was tried, how it ended, and whether it has been here before."""
    letter = whole.letter
    deliveries = f"delivered {times(letter.retries + 1)}"
    parts = [rule(letter), f"{deliveries}, {_ended(letter)}", _before(whole)]
    sentence = "; ".join(part for part in parts if part)
    return sentence[:1].upper() + sentence[1:] + "."


def _ended(letter: Letter) -> str:
    said = letter.reason or letter.error or "it was dead-lettered without a reason"
    words = " ".join(said.split())
    return words if len(words) <= 300 else f"{words[:300]}…"


def _before(whole: Whole) -> str:
    if not whole.earlier:
        return ""
    buried = f"buried {times(len(whole.earlier) + 1)}"
    alike = {burial.cause for burial in whole.earlier} == {whole.letter.cause}
    return f"{buried}, each time alike" if alike else f"{buried}, not always for the same cause"
