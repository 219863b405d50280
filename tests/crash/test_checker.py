"""The checker sees every kind of accident; a checker that cannot fail proves nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.crash.checker import Checker, Report


def reckon(sent: str, confirmed: str, handled: str = "", dead: str = "", left: str = "") -> Report:
    """A letter of the alphabet is a letter."""
    return Checker(
        set(sent), set(confirmed), Counter(handled), Counter(dead), Counter(left)
    ).report()


@pytest.mark.parametrize(
    ("story", "what", "value"),
    [
        (reckon("ab", "ab", handled="a"), "lost", ("b",)),
        (reckon("ab", "ab", handled="a", left="b"), "unfinished", ("b",)),
        (reckon("ab", "a", handled="ab"), "recovered", ("b",)),
        (reckon("a", "a", handled="ab"), "unexpected", ("b",)),
        (reckon("a", "a", handled="a", dead="a"), "unexpected", ("a",)),
        (reckon("ab", "ab", handled="aaab"), "duplicates", 2),
        (reckon("ab", "ab", handled="a", dead="bb"), "duplicates", 1),
        (reckon("ab", "ab", handled="a", dead="b", left="ab"), "duplicates", 2),
        (reckon("a", "a", left="aa"), "duplicates", 1),
    ],
)
def test_what_the_checker_sees(story: Report, what: str, value: object) -> None:
    assert getattr(story, what) == value
    with pytest.raises(AssertionError):
        story.demand(most=-1)


def test_one_end_for_each_is_all_it_asks() -> None:
    reckon("abcd", "abc", handled="ab", dead="c").demand(most=0)


def test_no_letters_prove_nothing() -> None:
    with pytest.raises(AssertionError, match="nothing was tried"):
        reckon("", "").demand(most=0)
