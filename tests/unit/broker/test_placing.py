import pytest

from tanist.broker.placing import Placing
from tanist.errors import ResponseError
from tanist.model.message import Message, SysFlag
from tanist.model.topics import HALF_TOPIC
from tanist.protocol.codes import ResponseCode

NOW_MS = 1_700_000_000_000
PLACING = Placing(delay_levels=(1_000, 5_000))


def refused(properties: bytes) -> int:
    with pytest.raises(ResponseError) as refusal:
        placed(properties)
    return refusal.value.code


def placed(properties: bytes, *, sys_flag: int = 0, reconsume_times: int = 0) -> Message:
    message = Message(
        topic="T",
        queue_id=2,
        body=b"b",
        properties=properties,
        sys_flag=sys_flag,
        reconsume_times=reconsume_times,
    )
    return PLACING.place(message, NOW_MS)


@pytest.mark.parametrize("value", [b"true", b"TRUE"])
def test_a_prepared_message_is_known_by_its_property_and_by_its_flag(value: bytes) -> None:
    assert placed(b"PGROUP\x01P\x02TRAN_MSG\x01" + value + b"\x02").topic == HALF_TOPIC
    assert placed(b"PGROUP\x01P\x02", sys_flag=int(SysFlag.PREPARED)).topic == HALF_TOPIC


def test_a_committed_message_is_not_prepared_again() -> None:
    committed = placed(b"PGROUP\x01P\x02TRAN_MSG\x01true\x02", sys_flag=int(SysFlag.COMMIT))
    assert (committed.topic, committed.queue_id) == ("T", 2)


def test_a_message_that_an_old_consumer_sends_back_is_not_prepared_again() -> None:
    words = b"PGROUP\x01P\x02TRAN_MSG\x01true\x02DELAY\x01%d\x02"
    assert placed(words % 0, reconsume_times=1).topic == "T"
    assert placed(words % 0).topic == HALF_TOPIC


def test_a_broker_may_take_no_transactions() -> None:
    placing = Placing(delay_levels=(), takes_transactions=False)
    half = Message(topic="T", queue_id=0, body=b"b", properties=b"PGROUP\x01P\x02TRAN_MSG\x01true\x02")
    with pytest.raises(ResponseError) as refusal:
        placing.place(half, NOW_MS)
    assert refusal.value.code == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize(
    "properties", [b"DELAY\x013", b"DELAY\x0110\x02", b"TIMER_DELAY_SEC\x011", b"TIMER_DELIVER_MS\x019\x02"]
)
def test_delayed_messages_are_refused_and_not_delivered_early(properties: bytes) -> None:
    assert refused(properties) == ResponseCode.MESSAGE_ILLEGAL


@pytest.mark.parametrize(
    "properties", [b"", b"DELAY\x010\x02", b"TRAN_MSG\x01false\x02", b"KEYS\x01DELAY\x02"]
)
def test_all_others_lie_in_their_own_queue(properties: bytes) -> None:
    message = Message(topic="T", queue_id=0, body=b"b", properties=properties)
    assert PLACING.place(message, NOW_MS) is message
