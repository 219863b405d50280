"""`settings.toml` holds every key, with the default the code has."""

import itertools
import tomllib
from itertools import pairwise
from pathlib import Path

from service.settings import Settings, load, shown
from service.settings.event_bus import ServiceSetting
from service.settings.model import PRODUCTION, known_keys

ROOT = Path(__file__).parents[2]
FILE = ROOT / "settings.toml"
TEXT = FILE.read_text("utf-8")
WRITTEN = tomllib.loads(TEXT)
# Lists of tables, each with a head of its own: an empty one in the file could not be added to.
SERVICES, ADOPT = ("event_bus", "services"), ("adopt",)


def test_the_file_and_the_model_agree(tmp_path: Path) -> None:
    plain = {key: value for key, value in WRITTEN.items() if key != "production"}
    assert Settings.model_validate(plain) == Settings()
    assert WRITTEN["production"] == PRODUCTION


def test_every_key_is_in_the_file_as_it_is_shown() -> None:
    default = shown(Settings())
    for path in known_keys() - {("marks", "key"), ("rabbit", "url"), ("flows",), SERVICES, ADOPT}:
        section = default[path[0]]
        assert isinstance(section, dict)
        assert WRITTEN[path[0]][path[1]] == section[path[1]]
    assert {"key", "url", "flows"} <= WRITTEN["marks"].keys() | WRITTEN["rabbit"] | WRITTEN.keys()
    assert "routes" in WRITTEN


def test_every_key_has_a_comment_above_it() -> None:
    plain = TEXT.partition("\n[production")[0].splitlines()
    above = {line.split(" = ")[0]: before for before, line in pairwise(plain)}
    keys = [path[-1] for path in known_keys() - {SERVICES, ADOPT}]
    assert [key for key in keys if not above[key].startswith("#")] == []


def test_the_example_of_a_service_names_every_key_of_it() -> None:
    _, _, after = TEXT.partition("# [[event_bus.services]]\n")
    lines = itertools.takewhile(lambda line: line.startswith("# "), after.splitlines())
    example = tomllib.loads("\n".join(line.removeprefix("# ") for line in lines))
    assert example.keys() == ServiceSetting.model_fields.keys()
    plain = ServiceSetting.model_validate({"name": "a-b", "handler": "a:b"})
    del example["handler"]
    given = ServiceSetting.model_validate(example)
    for key in ("prefetch", "timeout", "refuse_client_errors"):
        assert getattr(given, key) == getattr(plain, key)


def test_the_example_of_secrets_can_be_used(tmp_path: Path) -> None:
    example = (ROOT / ".secrets.toml.example").read_text("utf-8")
    (tmp_path / ".secrets.toml").write_text(example)
    assert load(tmp_path, {}).marks.key is None
