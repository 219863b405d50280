"""Pins are exact versions without hosts, and replace the old ones in place."""

from __future__ import annotations

import tomllib

from deploy.local.pin import pinned, pins

EXPORTED = """\
# a comment
aio-pika==10.2.1
colorama==0.4.6 ; sys_platform == 'win32'
faststream[rabbit]==0.7.8
numpy==2.2.6 ; python_full_version < '3.11'
numpy==2.4.1 ; python_full_version >= '3.11'
"""
PROJECT = '[project]\nname = "x"\n\n[tool.ruff]\nline-length = 100\n'


def constraints(pyproject: str) -> object:
    return tomllib.loads(pyproject)["tool"]["uv"].get("constraint-dependencies")


def test_one_exact_version_per_package_and_markers_where_there_are_two() -> None:
    assert pins(EXPORTED) == [
        "aio-pika==10.2.1",
        "colorama==0.4.6",
        "faststream==0.7.8",
        "numpy==2.2.6 ; python_full_version < '3.11'",
        "numpy==2.4.1 ; python_full_version >= '3.11'",
    ]


def test_they_are_added_where_there_were_none() -> None:
    assert constraints(pinned(PROJECT, ["a==1"])) == ["a==1"]


def test_they_join_a_table_that_is_there() -> None:
    written = pinned(f"{PROJECT}\n[tool.uv]\npackage = true\n", ["a==1"])
    assert tomllib.loads(written)["tool"]["uv"] == {
        "package": True,
        "constraint-dependencies": ["a==1"],
    }


def test_they_replace_the_old_ones_and_nothing_else() -> None:
    once = pinned(f"{PROJECT}\n[tool.uv]\npackage = true\n\n[tool.mypy]\nstrict = true\n", ["a==1"])
    twice = pinned(once, ["a==2", "b==1"])
    assert constraints(twice) == ["a==2", "b==1"]
    assert pinned(twice, ["a==1"]) == once


def test_without_pins_everything_may_move() -> None:
    assert constraints(pinned(pinned(PROJECT, ["a==1"]), [])) is None
