# Two commands do everything: `uv run just up` and `uv run just test`.

set shell := ["bash", "-euo", "pipefail", "-c"]

# For runs that are meant to take long: no test is taken for hung.
patience := "--timeout 0"

# What there is to do.
default:
    @just --list --unsorted

# RabbitMQ, the ledger and the service on this machine; Ctrl-C stops them.
[no-exit-message]
up:
    @exec python -m deploy.local.up

# Everything: style, types, import law, every test against a real RabbitMQ and a real PostgreSQL.
[positional-arguments]
test *pytest_arguments: servers check
    python -m pytest "$@"

# rabbitmqctl for the private node that `just up` runs.
[positional-arguments]
ctl *arguments:
    @python -m deploy.local.ctl "$@"

# Style, types and the import law, with nothing started.
check:
    ruff check
    ruff format --check
    mypy
    lint-imports

# The servers the tests start, installed where they are missing.
servers:
    @python -m deploy.local.install rabbitmq postgresql node

# Measure: `just bench relay`, `just bench growth`.
bench name *arguments: servers
    python -m benchmarks.{{ name }} {{ arguments }}

# The fuzz of 100 000 letters: they come out byte for byte as they went in, but for the marks.
fuzz: servers
    DLO_TEST_FUZZ=100000 python -m pytest tests/poison/test_fuzz.py -s {{ patience }}

# A slow broker at full length: an alarm of 30 s, a silence of 60 s, 50 resets.
slow: servers
    DLO_TEST_SLOW=1 python -m pytest tests/crash/test_alarm.py tests/crash/test_network.py -s {{ patience }}

# Ask the API for everything its description allows, and more, for minutes: `just fuzz-api 100`.
fuzz-api examples="50": servers
    DLO_TEST_FUZZ_EXAMPLES={{ examples }} python -m pytest tests/web/test_schemathesis.py {{ patience }}

# Fill the ledger that the settings name with made-up letters: `just seed 1000000`.
[positional-arguments]
seed *arguments:
    python -m benchmarks.seeding "$@"

# Write asyncapi/asyncapi.yaml anew from the service.
asyncapi:
    python -m service.edge.asyncapi

# Draw every flow's topology anew into its README.
drawings:
    python -m service.flows.drawings

# Write the exact version of every package into pyproject.toml; `just pin --upgrade` takes newer ones.
[positional-arguments]
pin *arguments:
    python -m deploy.local.pin "$@"

# The tests against the broker that DLO_TEST_RABBIT_URL names.
[positional-arguments]
matrix *pytest_arguments:
    @test -n "${DLO_TEST_RABBIT_URL:-}" || { echo "name a broker: DLO_TEST_RABBIT_URL=amqp://… just matrix" >&2; exit 2; }
    python -m pytest "$@"
