import pytest

from tanist.broker.delays.rules import DelayRules
from tanist.broker.placing import Placing
from tanist.broker.retries import to_dead_letter
from tanist.errors import ResponseError
from tanist.model.message import Message, SysFlag
from tanist.model.topics import HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from tanist.protocol.codes import ResponseCode

NOW_MS = 1_700_000_000_000
DELAYS = DelayRules(levels=(1_000, 5_000), is_timer_enabled=True, max_timer_ms=60_000, precision_ms=1_000)
PLACING = Placing(delays=DELAYS)


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
    flagged = placed(words % 2, sys_flag=int(SysFlag.PREPARED), reconsume_times=1)
    assert (flagged.topic, flagged.sys_flag) == (SCHEDULE_TOPIC, 0)


def test_a_dead_letter_that_an_old_consumer_sends_is_no_half() -> None:
    words = b"PGROUP\x01P\x02TRAN_MSG\x01true\x02DELAY\x012\x02"
    sent_back = Message(
        topic="%RETRY%G",
        queue_id=0,
        body=b"b",
        properties=words,
        sys_flag=int(SysFlag.PREPARED),
        reconsume_times=17,
    )
    letter = PLACING.place(to_dead_letter(sent_back, "%DLQ%G"), NOW_MS)
    assert (letter.topic, letter.sys_flag) == ("%DLQ%G", 0)


@pytest.mark.parametrize(
    ("delay", "code"),
    [
        (b"TIMER_DELAY_SEC\x01864000\x02", ResponseCode.MESSAGE_ILLEGAL),
        (b"TIMER_DELIVER_MS\x01tomorrow\x02", ResponseCode.MESSAGE_ILLEGAL),
        (b"DELAY\x01soon\x02", ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_half_that_could_not_wait_when_it_is_committed_is_refused(delay: bytes, code: int) -> None:
    assert refused(b"PGROUP\x01P\x02TRAN_MSG\x01true\x02" + delay) == code


def test_a_broker_may_take_no_transactions() -> None:
    placing = Placing(delays=DELAYS, takes_transactions=False)
    half = Message(topic="T", queue_id=0, body=b"b", properties=b"PGROUP\x01P\x02TRAN_MSG\x01true\x02")
    with pytest.raises(ResponseError) as refusal:
        placing.place(half, NOW_MS)
    assert refusal.value.code == ResponseCode.NO_PERMISSION


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
