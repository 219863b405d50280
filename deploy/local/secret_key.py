"""The key that signs our marks: made once for this folder, never overwritten."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path


def keep(path: Path) -> bool:
    """Write `.secrets.toml` with a random key where there is none; whether it was written."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(f'[marks]\nkey = "{secrets.token_urlsafe(32)}"\n')
    try:
        # A link appears whole or not at all, and never in the place of a file that is there.
        with suppress(FileExistsError):
            os.link(draft, path)
            return True
    finally:
        draft.unlink()
    return False
