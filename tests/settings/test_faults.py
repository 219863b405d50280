"""Bad settings: every fault at once, each in a line that says what to do."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from service.settings import BadSettings, load


def faults(root: Path, environ: Mapping[str, str]) -> list[str]:
    with pytest.raises(BadSettings) as caught:
        load(root, environ)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        (
            "DLO_RABBIT__URL",
            "http://bob:secret@host/",
            "rabbit.url: given http://bob:***@host/, expected a URL like "
            "amqp://user:password@host:5672/vhost (from DLO_RABBIT__URL)",
        ),
        (
            "DLO_RABBIT__URL",
            "amqp://bob:sec/ret@host",
            "rabbit.url: given ***, expected a URL like "
            "amqp://user:password@host:5672/vhost (from DLO_RABBIT__URL)",
        ),
        (
            "DLO_DATABASE__URL",
            "mysql://bob:secret@host/x",
            "database.url: given mysql://bob:***@host/x, expected a URL like sqlite:///var/dlo.db "
            "or postgresql://user:password@host:5432/name (from DLO_DATABASE__URL)",
        ),
        (
            "DLO_DATABASE__URL",
            "sqlite://",
            "database.url: given sqlite://, expected a file: the routes must outlive the service "
            "and be seen by others (from DLO_DATABASE__URL)",
        ),
        (
            "DLO_QUEUES__TYPE",
            "quorun",
            "queues.type: given 'quorun', expected 'classic' or 'quorum' (from DLO_QUEUES__TYPE)",
        ),
        (
            "DLO_MARKS__KEY",
            "too short",
            "marks.key: given ***, expected at least 16 characters (from DLO_MARKS__KEY)",
        ),
        (
            "DLO_DLQ_PROCESSOR__TIERS",
            '["10s","soon"]',
            'dlq_processor.tiers.1: given \'soon\', expected a duration like "250ms", "30s" '
            'or "5m" (from DLO_DLQ_PROCESSOR__TIERS)',
        ),
        (
            "DLO_DLQ_PROCESSOR__TIERS",
            '["25h"]',
            "dlq_processor.tiers.0: given '25h', expected 1ms to 1d "
            "(from DLO_DLQ_PROCESSOR__TIERS)",
        ),
        (
            "DLO_DLQ_PROCESSOR__TIERS",
            "[]",
            "dlq_processor.tiers: given [], expected a list of 1 to 20 durations "
            "(from DLO_DLQ_PROCESSOR__TIERS)",
        ),
        (
            "DLO_DLQ_PROCESSOR__TIERS",
            "10s",
            "dlq_processor.tiers: given '10s', expected a list (from DLO_DLQ_PROCESSOR__TIERS)",
        ),
        (
            "DLO_DLQ_PROCESSOR__MAX_RETRIES",
            "-2",
            "dlq_processor.max_retries: given -2, expected -1 to 2147483647 "
            "(from DLO_DLQ_PROCESSOR__MAX_RETRIES)",
        ),
        (
            "DLO_DLQ_PROCESSOR__DRILL",
            "perhaps",
            "dlq_processor.drill: given 'perhaps', expected true or false "
            "(from DLO_DLQ_PROCESSOR__DRILL)",
        ),
        (
            "DLO_LIMITS__MAX_BODY",
            "4MB",
            "limits.max_body: given '4MB', expected a size like 512B, 64KiB or 4MiB "
            "(from DLO_LIMITS__MAX_BODY)",
        ),
        (
            "DLO_LIMITS__MAX_HEADERS",
            "1MiB",
            "limits.max_headers: given '1MiB', expected 1KiB to 128KiB "
            "(from DLO_LIMITS__MAX_HEADERS)",
        ),
        (
            "DLO_WEB__PORT",
            "http",
            "web.port: given 'http', expected a whole number (from DLO_WEB__PORT)",
        ),
        (
            "DLO_FREEFLOW__TIERS",
            '{ "30s" = "1s", "5m" = "2s" }',
            "freeflow.tiers: given a table with 30s, 5m, expected a wait for each of "
            '"30s", "5m", "30m" (from DLO_FREEFLOW__TIERS)',
        ),
        (
            "DLO_FREEFLOW__TIERS",
            '{ "30s" = "2s", "5m" = "2s", "30m" = "3s" }',
            "freeflow.tiers: given a table with 30s, 5m, 30m, expected waits that grow "
            'from tier to tier: "30s", "5m", "30m" (from DLO_FREEFLOW__TIERS)',
        ),
        (
            "DLO_FREEFLOW__TIERS",
            '{ "30s" = "soon", "5m" = "2s", "30m" = "3s" }',
            'freeflow.tiers.30s: given \'soon\', expected a duration like "250ms", "30s" or '
            '"5m" (from DLO_FREEFLOW__TIERS)',
        ),
        (
            "DLO_FREEFLOW__HANDLERS",
            '{ users = "a.b:c" }',
            "freeflow.handlers.users: given 'users', expected one of the domains user, auth, alarm, "
            "document, workflow, notification, audit; did you mean user? "
            "(from DLO_FREEFLOW__HANDLERS)",
        ),
        (
            "DLO_FREEFLOW__RETURN_TO",
            "sender",
            "freeflow.return_to: given 'sender', expected 'queue' or 'exchange' "
            "(from DLO_FREEFLOW__RETURN_TO)",
        ),
        (
            "DLO_FLOWS",
            '["dlq_procesor"]',
            "flows.0: given 'dlq_procesor', expected one of dlq_processor, freeflow, settlement, "
            "event_bus, kdlq; did you mean dlq_processor? (from DLO_FLOWS)",
        ),
        (
            "DLO_ENV",
            "prod",
            "env: given 'prod', expected 'development' or 'production' (from DLO_ENV)",
        ),
        (
            "DLO_RABBIT",
            "5",
            "rabbit: expected a table of settings, given a single value (from DLO_RABBIT)",
        ),
        (
            "DLO_LOG__LEVEL",
            "@int nine",
            "log.level: has a value with an @ token that cannot be read (from DLO_LOG__LEVEL)",
        ),
    ],
)
def test_a_fault_says_key_value_expectation_and_origin(
    tmp_path: Path, variable: str, value: str, line: str
) -> None:
    assert faults(tmp_path, {variable: value}) == [line]


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("DLO_RABIT__URL", "rabit.url: there is no such setting; did you mean rabbit.url?"),
        ("DLO_RABBIT__URI", "rabbit.uri: there is no such setting; did you mean rabbit.url?"),
        (
            "DLO_PUBLISH_TIMEOUT",
            "publish_timeout: there is no such setting; did you mean rabbit.publish_timeout?",
        ),
        (
            "DLO_DRILL",
            "drill: there is no such setting; did you mean dlq_processor.drill?",
        ),
        (
            "DLO_MAX_RETRIES",
            "max_retries: there is no such setting; did you mean "
            "dlq_processor.max_retries or event_bus.max_retries or freeflow.max_retries or "
            "settlement.max_retries?",
        ),
        ("DLO_XYZZY", "xyzzy: there is no such setting"),
    ],
)
def test_an_unknown_variable_is_a_fault_with_the_nearest_name_and_without_its_value(
    tmp_path: Path, variable: str, hint: str
) -> None:
    assert faults(tmp_path, {variable: "hunter2hunter2"}) == [f"{hint} (from {variable})"]


def test_all_faults_of_all_sources_come_at_once(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('[queues]\ntype = "lazy"\n[rabit]\nurl = "amqp://a"\n')
    (tmp_path / ".secrets.toml").write_text('[marks]\nkey = "short"\n')
    lines = faults(tmp_path, {"DLO_WEB__PORT": "70000"})
    assert sorted(line.split(":")[0] for line in lines) == [
        "marks.key",
        "queues.type",
        "rabit.url",
        "web.port",
    ]
    assert sorted(line.rpartition("(from ")[2] for line in lines) == [
        ".secrets.toml)",
        "DLO_WEB__PORT)",
        "settings.toml)",
        "settings.toml)",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[rabbit\n",
            "settings.toml: is not valid TOML: Expected ']' at the end of a table declaration "
            "(at line 1, column 8)",
        ),
        ("production = 1\n", ""),
        (
            'env = "production"\n',
            "env: is chosen by the variable DLO_ENV, not in a file (from settings.toml)",
        ),
        (
            "[default.web]\nport = 1\n",
            "default.web.port: defaults have no table of their own: leave out 'default' "
            "(from settings.toml)",
        ),
        (
            "[rabbit.url]\nhost = 1\n",
            "rabbit.url.host: there is no such setting; did you mean rabbit.url? "
            "(from settings.toml)",
        ),
        (
            "[routes]\n'a.*' = { max_retires = 1 }\n",
            'routes."a.*".max_retires: there is no such setting; did you mean '
            'routes."a.*".max_retries? (from settings.toml)',
        ),
        (
            "[routes]\n'order.created' = { delays = ['11s'] }\n",
            "routes.\"order.created\".delays.0: given '11s', expected one of the tiers: "
            "10s, 15s, 20s (from settings.toml)",
        ),
        (
            "[routes]\n'order.created' = true\n",
            'routes."order.created": given True, expected a number of retries, or a table like '
            "{ max_retries = 2 } (from settings.toml)",
        ),
        (
            "[routes]\n'order.created' = { return_to = 'nowhere' }\n",
            "routes.\"order.created\".return_to: given 'nowhere', expected 'queue' or 'exchange' "
            "(from settings.toml)",
        ),
    ],
)
def test_a_fault_in_the_file(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "settings.toml").write_text(text)
    if line:
        assert faults(tmp_path, {}) == [line]
    else:
        load(tmp_path, {})  # only the tables of the environment in force are looked at


def test_production_refuses_to_start_without_a_key_and_says_how_to_make_one(
    tmp_path: Path,
) -> None:
    (line,) = faults(tmp_path, {"DLO_ENV": "production"})
    assert line.startswith("marks.key: production needs a key")
    assert "secrets.token_urlsafe(32)" in line
    assert load(tmp_path, {"DLO_ENV": "production", "DLO_MARKS__KEY": "k" * 16}).marks.key


def test_a_table_inside_a_table_is_read_and_checked(tmp_path: Path) -> None:
    given = {"DLO_SETTLEMENT__BANK__TIMEOUT": "soon", "DLO_SETTLEMENT__BANK__UR": "x"}
    assert faults(tmp_path, given) == [
        "settlement.bank.ur: there is no such setting; did you mean settlement.bank.url?"
        " (from DLO_SETTLEMENT__BANK__UR)",
        'settlement.bank.timeout: given \'soon\', expected a duration like "250ms", "30s" or'
        ' "5m" (from DLO_SETTLEMENT__BANK__TIMEOUT)',
    ]
    (tmp_path / "settings.toml").write_text(
        '[settlement]\nttl = "0s"\n[settlement.bank]\nfail = ["Nobody"]\nfailure_rate = 0.5\n'
    )
    own = load(tmp_path, {"DLO_SETTLEMENT__BANK__URL": "https://bank.example/pay"}).settlement
    assert (own.bank.fail, own.bank.failure_rate) == (("Nobody",), 0.5)
    assert own.bank.url.get_secret_value() == "https://bank.example/pay"


def test_production_settles_with_a_real_bank_or_not_at_all(tmp_path: Path) -> None:
    production = {"DLO_ENV": "production", "DLO_MARKS__KEY": "sixteen characters"}
    assert load(tmp_path, production).flows == ("dlq_processor", "freeflow", "event_bus", "kdlq")
    with_it = production | {"DLO_FLOWS": '["dlq_processor", "settlement"]'}
    assert faults(tmp_path, with_it) == [
        "settlement.bank.url: production needs a real bank: name its URL, or take settlement out"
        " of flows"
    ]
    named = with_it | {"DLO_SETTLEMENT__BANK__URL": "https://bank.example/pay"}
    assert load(tmp_path, named).flows == ("dlq_processor", "settlement")
