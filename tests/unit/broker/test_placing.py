import pytest

from tanist.broker.delays import DelayRules
from tanist.broker.placing import Placing
from tanist.errors import ResponseError
from tanist.model.message import Message, SysFlag
from tanist.model.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from tanist.protocol.codes import ResponseCode

NOW_MS = 1_700_000_000_000
PLACING = Placing(
    delays=DelayRules(levels=(1_000, 5_000), is_timer_enabled=True, max_timer_ms=60_000, precision_ms=1_000)
)


def refused(properties: bytes = b"", *, sys_flag: int = 0) -> int:
    with pytest.raises(ResponseError) as refusal:
        PLACING.place(
            Message(topic="T", queue_id=0, body=b"b", properties=properties, sys_flag=sys_flag), NOW_MS
        )
    return refusal.value.code


@pytest.mark.parametrize("value", [b"true", b"TRUE"])
def test_a_prepared_message_is_known_by_its_property_and_by_its_flag(value: bytes) -> None:
    assert refused(b"TRAN_MSG\x01" + value + b"\x02") == ResponseCode.NO_PERMISSION
    assert refused(sys_flag=int(SysFlag.PREPARED)) == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize(
    ("properties", "topic"),
    [
        (b"DELAY\x012", SCHEDULE_TOPIC),
        (b"TIMER_DELAY_SEC\x013\x02", TIMER_TOPIC),
        (b"A\x01b\x02TIMER_DELIVER_MS\x011700000009000", TIMER_TOPIC),
    ],
)
def test_delayed_messages_lie_where_they_wait(properties: bytes, topic: str) -> None:
    message = Message(topic="T", queue_id=0, body=b"b", properties=properties)
    assert PLACING.place(message, NOW_MS).topic == topic


@pytest.mark.parametrize(
    "properties", [b"", b"DELAY\x010\x02", b"TRAN_MSG\x01false\x02", b"KEYS\x01DELAY\x02"]
)
def test_all_others_lie_in_their_own_queue(properties: bytes) -> None:
    message = Message(topic="T", queue_id=0, body=b"b", properties=properties)
    assert PLACING.place(message, NOW_MS) is message
