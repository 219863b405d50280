"""The command line in this process, speaking to a running service: a process each would take minutes."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from service.cli.main import main


@dataclass(frozen=True)
class Said:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The data."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Terminal:
    """Runs commands against one service; nobody sits at it."""

    patch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]
    url: str

    def __call__(self, *words: str, **variables: str) -> Said:
        self.capture.readouterr()
        with self.patch.context() as patch:
            patch.setattr(sys, "argv", ["dlo", *words])
            patch.setattr(sys, "stdin", open("/dev/null"))  # noqa: SIM115  # as in a script
            for name, value in {"DLO_URL": self.url, **variables}.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        said = self.capture.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err)
