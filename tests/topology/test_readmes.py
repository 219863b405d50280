"""The drawings in the flows' READMEs are those of their topologies."""

import pytest

from service.flows.drawings import ROOMS, page, topologies


@pytest.mark.parametrize("room", topologies())
def test_the_drawing_is_current(room: str) -> None:
    current = (ROOMS / room / "README.md").read_text()
    assert current == page(room, topologies()[room]), "stale: run `uv run just drawings`"
