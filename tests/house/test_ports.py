"""Free ports are free, taken ones are not, and all stay below what the kernel lends out."""

from __future__ import annotations

import socket

from deploy.local import ports


def test_a_port_somebody_listens_on_is_not_free() -> None:
    with socket.create_server((ports.LOOPBACK, 0)) as listening:
        port = listening.getsockname()[1]
        assert ports.answers(port)
        assert not ports.is_free(port)
        assert ports.first_free(port) > port


def test_a_port_bound_but_silent_is_not_free() -> None:
    with socket.socket() as bound:
        bound.bind((ports.LOOPBACK, 0))
        assert not ports.is_free(bound.getsockname()[1])


def test_a_chosen_port_is_free_and_never_one_the_kernel_lends() -> None:
    chosen = ports.free_port()
    assert ports.is_free(chosen)
    assert chosen < 32_768
    assert ports.first_free(chosen) == chosen
