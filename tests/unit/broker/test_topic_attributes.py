import pytest

from tanist.broker.topic_attributes import alter_attributes
from tanist.errors import ResponseError
from tanist.protocol.codes import ResponseCode


def test_no_changes_leave_the_attributes_as_they_are() -> None:
    assert alter_attributes({"message.type": "FIFO"}, None) == {"message.type": "FIFO"}
    assert alter_attributes({"message.type": "FIFO"}, "") == {"message.type": "FIFO"}


def test_plus_sets_and_minus_removes() -> None:
    current = {"message.type": "FIFO"}
    altered = alter_attributes(current, "-message.type,+queue.type=SimpleCQ")
    assert altered == {"queue.type": "SimpleCQ"}
    assert alter_attributes(current, "+message.type=DELAY") == {"message.type": "DELAY"}
    assert current == {"message.type": "FIFO"}


@pytest.mark.parametrize(
    "changes",
    [
        "+foo=bar",
        "+message.type=LOUD",
        "+message.type",
        "+queue.type=BatchCQ",
        "+cleanup.policy=COMPACTION",
        "-queue.type",
        "message.type=FIFO",
        "+message.type=FIFO,+message.type=NORMAL",
        "+message.type=FIFO,-message.type",
        "+",
        "-",
    ],
)
def test_a_change_that_can_not_be_made_is_refused(changes: str) -> None:
    with pytest.raises(ResponseError) as refusal:
        alter_attributes({"message.type": "FIFO"}, changes)
    assert refusal.value.code == ResponseCode.SYSTEM_ERROR
