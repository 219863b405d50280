"""RabbitMQ's refusals, as one sentence: what, where, what to do."""

import pytest

from service.edge.declare import difference, permission
from service.edge.sentences import sentence


@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (
            "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'queue.delay.1' in vhost '/': "
            "received '2000' but current is '1000'",
            "queue queue.delay.1 stands with x-message-ttl = 1000, the settings say 2000: ",
        ),
        (
            "PRECONDITION_FAILED - inequivalent arg 'x-dead-letter-exchange' for queue 'q' in vhost '/': "
            "received none but current is the value 'other' of type 'longstr'",
            "queue q stands with x-dead-letter-exchange = other, the settings say none: ",
        ),
        (
            "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'retry-exchange' in vhost '/': "
            "received 'topic' but current is 'direct'",
            "exchange retry-exchange stands with type = direct, the settings say topic: ",
        ),
    ],
)
def test_a_difference_names_both_values_and_what_to_do(refusal: str, says: str) -> None:
    assert difference(refusal).startswith(says)
    assert "nothing was touched" in difference(refusal)


def test_a_missing_right_is_named() -> None:
    refusal = "configure access to queue 'retry-queue' in vhost '/' refused for user 'limited'"
    assert permission(f"ACCESS_REFUSED - {refusal}").startswith(
        "user limited may not configure queue retry-queue"
    )


def test_refusals_nobody_foresaw_are_told_as_they_are() -> None:
    assert "something new" in difference("something new")
    assert "something new" in permission("something new")


def test_no_sentence_shows_the_password() -> None:
    for error in (TimeoutError(), ConnectionRefusedError(), ValueError("x"), OSError()):
        assert "secret" not in sentence(error, "amqp://user:secret@127.0.0.1:5672/")
