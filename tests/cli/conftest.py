"""What these tests may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.fixtures import lane, service, settings

__all__ = ["folder", "lane", "service", "settings"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose ledger is in its own folder."""
    (tmp_path / "settings.toml").write_text('[database]\nurl = "sqlite:///var/dlo.db"\n')
    return tmp_path
