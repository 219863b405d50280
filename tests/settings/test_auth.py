"""The door's settings: who may come in, what is wrong with them, and where we may listen."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from service.settings import BadSettings, load, shown
from service.settings.bind import bind_faults

SECRET = "hunter2hunter2hunter2"
TOKENS = f'[{{name = "anna", role = "operator", token = "{SECRET}"}}]'


def lines(root: Path, environ: Mapping[str, str]) -> list[str]:
    with pytest.raises(BadSettings) as caught:
        load(root, environ)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("tokens", "line"),
    [
        ("[]", "auth.tokens: auth.mode is token and there is none: nobody could come in"),
        (
            '[{name = "anna", role = "operator"}]',
            "auth.tokens.0: given a table with name, role, expected a token or its sha256, "
            "and not both (from DLO_AUTH__TOKENS)",
        ),
        (
            '[{name = "anna", role = "operator", token = "short"}]',
            "auth.tokens.0.token: given ***, expected at least 16 characters, of ASCII "
            "(from DLO_AUTH__TOKENS)",
        ),
        (
            f'[{{name = "anna", role = "operator", sha256 = "{SECRET}"}}]',
            "auth.tokens.0.sha256: given ***, expected the sha256 of a token: 64 hex digits "
            "(from DLO_AUTH__TOKENS)",
        ),
        (
            f'[{{name = "anna", role = "boss", token = "{SECRET}"}}]',
            "auth.tokens.0.role: given 'boss', expected 'viewer' or 'operator' "
            "(from DLO_AUTH__TOKENS)",
        ),
        (
            f'[{{name = "anna", role = "viewer", tokn = "{SECRET}"}}]',
            "auth.tokens.0.tokn: there is no such setting; did you mean auth.tokens.0.token? "
            "(from DLO_AUTH__TOKENS)",
        ),
        (SECRET, "auth.tokens: given ***, expected a list (from DLO_AUTH__TOKENS)"),
    ],
)
def test_faults_of_tokens_are_told_without_the_token(
    tmp_path: Path, tokens: str, line: str
) -> None:
    said = lines(tmp_path, {"DLO_AUTH__MODE": "token", "DLO_AUTH__TOKENS": tokens})
    assert line in said
    assert SECRET not in "".join(said)


def test_a_former_key_that_is_too_short_is_not_shown(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, {"DLO_MARKS__OLD_KEYS": '["hunter2"]'})
    assert "hunter2" not in line


def test_tokens_are_masked(tmp_path: Path) -> None:
    (tmp_path / ".secrets.toml").write_text(
        f'[[auth.tokens]]\nname = "anna"\nrole = "operator"\ntoken = "{SECRET}"\n'
    )
    settings = load(tmp_path, {"DLO_AUTH__MODE": "token"})
    assert shown(settings)["auth"] == {
        "mode": "token",
        "tokens": [{"name": "anna", "role": "operator", "token": "***", "sha256": None}],
        "proxy_header": "X-Forwarded-User",
        "proxy_role_header": "X-Forwarded-Role",
        "trusted": ["127.0.0.1/32", "::1/128"],
    }
    assert SECRET not in repr(settings)


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ("run service.app:app", False),
        ("run service.app:app --host 127.0.0.1 --port 0", False),
        ("run service.app:app --host localhost", False),
        ("run service.app:app --host ::1", False),
        ("run service.app:app --host 0.0.0.0 --workers 2", True),
        ("run service.app:app --host=0.0.0.0", True),
        ("run service.app:app --host ::", True),
        ("run service.app:app --host 10.0.0.1", True),
        ("run service.app:app --host office.example", True),
        ("run service.app:app --uds /tmp/socket", True),
        ("service.app:app --fd 3", True),
    ],
)
def test_without_a_login_only_this_machine_is_served(
    tmp_path: Path, arguments: str, refused: bool
) -> None:
    faults = [str(fault) for fault in bind_faults(load(tmp_path, {}), arguments.split())]
    assert [fault.startswith("auth.mode: is none, and --") for fault in faults] == [True] * refused
    guarded = load(tmp_path, {"DLO_AUTH__MODE": "token", "DLO_AUTH__TOKENS": TOKENS})
    assert list(bind_faults(guarded, arguments.split())) == []
