"""Missing programs are installed where we may, asked for where we may not, and nothing is started."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from deploy.local import debian, install
from deploy.local.install import AptGet, Ask, Brew, Machine, Step
from deploy.local.needs import NODE, POSTGRESQL, RABBITMQ, Need
from deploy.local.trouble import Trouble

BOTH = (RABBITMQ, POSTGRESQL)
BY_HAND = "install RabbitMQ and PostgreSQL with this machine's package manager"


class Runs:
    """Commands somebody asked for; each ends as it is told to, else well."""

    def __init__(self, *codes: int, during: Callable[[], None] = lambda: None) -> None:
        self.codes = list(codes)
        self.commands: list[list[str]] = []
        self.during = during

    def __call__(self, command: Sequence[str]) -> int:
        self.commands.append(list(command))
        self.during()
        return self.codes.pop(0) if self.codes else 0


@pytest.mark.parametrize(
    ("machine", "step"),
    [
        (Machine(is_root=True, has_apt=True, has_brew=False, may_sudo=False), AptGet(BOTH, False)),
        (Machine(is_root=False, has_apt=True, has_brew=False, may_sudo=True), AptGet(BOTH, True)),
        (
            Machine(is_root=False, has_apt=True, has_brew=False, may_sudo=False),
            Ask(BOTH, "sudo apt-get install rabbitmq-server postgresql"),
        ),
        (Machine(is_root=False, has_apt=False, has_brew=True, may_sudo=True), Brew(BOTH)),
        (
            Machine(is_root=True, has_apt=False, has_brew=False, may_sudo=False),
            Ask(BOTH, BY_HAND),
        ),
    ],
)
def test_how_missing_programs_come_onto_a_machine(machine: Machine, step: Step) -> None:
    assert install.decide(BOTH, machine) == step


def test_it_says_what_it_does_before_it_does_it() -> None:
    runs, said = Runs(), list[str]()
    install.carry_out(Brew((NODE,)), runs, said.append)
    assert said == ["Node.js not found: installing with brew install node"]
    assert runs.commands == [["brew", "install", "node"]]


def test_through_sudo_it_never_asks_for_a_password() -> None:
    runs = Runs()
    install.carry_out(AptGet((RABBITMQ,), sudo=True), runs, print)
    assert runs.commands[0][:2] == ["sudo", "-n"]
    assert runs.commands[0][-2:] == ["deploy.local.debian", "rabbitmq"]


def test_where_we_may_not_the_line_to_type_is_printed_and_nothing_is_run() -> None:
    runs = Runs()
    with pytest.raises(Trouble, match="Type: sudo apt-get install nodejs npm"):
        install.carry_out(Ask((NODE,), "sudo apt-get install nodejs npm"), runs, print)
    assert runs.commands == []


def test_a_failed_installation_is_one_sentence() -> None:
    with pytest.raises(Trouble, match=r"installing RabbitMQ failed \(exit 100\)"):
        install.carry_out(AptGet((RABBITMQ,), sudo=False), Runs(100), print)


def test_what_is_there_is_not_installed() -> None:
    present = Need("Python", lambda: True, ("python3",), ("python",))
    said: list[str] = []
    install.ensure([present], said.append)
    assert said == []


def test_an_unknown_name_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main(["rabitmq"]) == 2
    assert "rabbitmq, postgresql, node" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("codes", "verbs"),
    [
        ([0, 0], ["show", "install"]),
        ([100, 0, 0], ["show", "update", "install"]),  # not in the lists: read them first
        ([0, 100, 0, 0], ["show", "install", "update", "install"]),  # lists older than the archive
        ([100, 100], ["show", "update"]),
    ],
)
def test_the_lists_are_read_only_when_they_must_be(codes: list[int], verbs: list[str]) -> None:
    runs = Runs(*codes)
    code = debian.install_packages(["rabbitmq-server"], runs)
    assert [command[1] for command in runs.commands] == verbs
    assert code == (100 if verbs[-1] == "update" else 0)


def policy_says(policy: Path) -> str:
    return policy.read_text().strip().splitlines()[-1]


def test_meanwhile_no_service_starts_and_afterwards_no_policy_is_left(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    with debian.no_services_started(policy):
        assert policy_says(policy) == "exit 101"
        assert os.access(policy, os.X_OK)
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_was_there_comes_back_as_it_was(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 104\n")
    policy.chmod(0o750)
    before = policy.stat()
    with debian.no_services_started(policy):
        assert policy_says(policy) == "exit 101"
    after = policy.stat()
    assert policy.read_text() == "#!/bin/sh\nexit 104\n"
    assert (after.st_ino, after.st_mode, after.st_mtime) == (
        before.st_ino,
        before.st_mode,
        before.st_mtime,
    )
    assert list(tmp_path.iterdir()) == [policy]


@pytest.mark.parametrize("own", [None, "#!/bin/sh\nexit 104\n"])
def test_a_run_killed_in_the_middle_is_put_right_by_the_next(
    own: str | None, tmp_path: Path
) -> None:
    policy = tmp_path / "policy-rc.d"
    if own:
        policy.write_text(own)
    killed = debian.no_services_started(policy)
    killed.__enter__()
    with debian.no_services_started(policy):
        assert policy_says(policy) == "exit 101"
    assert [path.read_text() for path in tmp_path.iterdir()] == ([own] if own else [])


def test_no_database_server_is_made_by_the_package(tmp_path: Path) -> None:
    folder = tmp_path / "postgresql-common" / "createcluster.d"
    with debian.no_cluster_created(folder):
        assert [path.read_text() for path in folder.iterdir()] == ["create_main_cluster = false\n"]
    assert list(tmp_path.iterdir()) == []


def test_folders_the_package_filled_stay(tmp_path: Path) -> None:
    folder = tmp_path / "postgresql-common" / "createcluster.d"
    with debian.no_cluster_created(folder):
        (folder.parent / "createcluster.conf").touch()
    assert [path.name for path in folder.parent.iterdir()] == ["createcluster.conf"]
