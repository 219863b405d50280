"""A Kafka broker for tests: librdkafka's mock cluster, out of the confluent-kafka wheel, by ctypes.

Real TCP listeners on loopback and the real protocol, so that other processes can connect; errors and
outages on demand. It forgets everything when it ends, and creates no topics by itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka

PRODUCE, COMMIT = 0, 8
NOT_ENOUGH_REPLICAS = 19
PRODUCER, SIZE = 0, 512


class MockKafka:
    """One broker."""

    def __init__(self) -> None:
        self._lib = _library()
        said = ctypes.create_string_buffer(SIZE)
        conf = self._lib.rd_kafka_conf_new()
        self._client = self._lib.rd_kafka_new(PRODUCER, conf, said, SIZE)
        assert self._client, said.value.decode()
        self._cluster = self._lib.rd_kafka_mock_cluster_new(self._client, 1)
        self._lib.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)
        self.address: str = self._lib.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def create(self, *topics: str, partitions: int = 1) -> None:
        """Topics must be made before anybody asks for them."""
        for topic in topics:
            failed = self._lib.rd_kafka_mock_topic_create(
                self._cluster, topic.encode(), partitions, 1
            )
            assert not failed, f"{topic}: error {failed}"

    def refuse(self, request: int, times: int, error: int = NOT_ENOUGH_REPLICAS) -> None:
        """Answer the next requests of a kind with an error."""
        errors = (ctypes.c_int * times)(*[error] * times)
        self._lib.rd_kafka_mock_push_request_errors_array(self._cluster, request, times, errors)

    def stop_refusing(self, request: int) -> None:
        """Answer as usual again."""
        self._lib.rd_kafka_mock_clear_request_errors(self._cluster, request)

    @contextmanager
    def down(self) -> Iterator[None]:
        """The broker is away for a while."""
        self._lib.rd_kafka_mock_broker_set_down(self._cluster, 1)
        try:
            yield
        finally:
            self._lib.rd_kafka_mock_broker_set_up(self._cluster, 1)

    def close(self) -> None:
        """End it."""
        self._lib.rd_kafka_mock_cluster_destroy(self._cluster)
        self._lib.rd_kafka_destroy(self._client)


def _library() -> ctypes.CDLL:
    """The librdkafka that confluent-kafka brings along."""
    folder = Path(confluent_kafka.__file__).parent
    places = (folder.parent / "confluent_kafka.libs", folder / ".dylibs")
    found = [file for place in places for file in place.glob("librdkafka*")]
    lib = ctypes.CDLL(str(found[0]))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    signatures: dict[str, tuple[object, list[object]]] = {
        "rd_kafka_conf_new": (pointer, []),
        "rd_kafka_new": (pointer, [ctypes.c_int, pointer, text, ctypes.c_size_t]),
        "rd_kafka_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_new": (pointer, [pointer, ctypes.c_int]),
        "rd_kafka_mock_cluster_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_bootstraps": (text, [pointer]),
        "rd_kafka_mock_topic_create": (
            ctypes.c_int,
            [pointer, text, ctypes.c_int, ctypes.c_int],
        ),
        "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, [pointer, ctypes.c_int32]),
        "rd_kafka_mock_push_request_errors_array": (
            None,
            [pointer, ctypes.c_int16, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int)],
        ),
        "rd_kafka_mock_clear_request_errors": (None, [pointer, ctypes.c_int16]),
        "rd_kafka_mock_broker_set_down": (ctypes.c_int, [pointer, ctypes.c_int32]),
        "rd_kafka_mock_broker_set_up": (ctypes.c_int, [pointer, ctypes.c_int32]),
    }
    for name, (answers, takes) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = answers, takes
    return lib
