import pytest

from tanist.broker.intake import Intake
from tanist.errors import ResponseError
from tanist.model.message import Message, SysFlag
from tanist.model.topics import TopicConfig
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.send import SendMessageRequest
from tanist.protocol.properties import decode_properties
from tanist.protocol.record import MAX_PROPERTIES_BYTES

INTAKE = Intake(cluster="C", max_body_bytes=100)
STAMP = b"CLUSTER\x01C\x02MSG_REGION\x01DefaultRegion\x02TRACE_ON\x01true\x02"


def accept(
    properties: str | None = None, *, body: bytes = b"body", sys_flag: int = 0, is_batch: bool = False
) -> tuple[Message, str]:
    request = SendMessageRequest(
        producer_group="P",
        topic="T",
        default_topic="TBW102",
        default_topic_queue_count=4,
        queue_id=0,
        sys_flag=sys_flag,
        born_timestamp_ms=5,
        flag=9,
        properties=properties,
        reconsume_times=2,
    )
    return INTAKE.accept(
        request,
        body,
        topic=TopicConfig(topic_name="T"),
        queue_id=3,
        born_host=bytes(8),
        make_id=None if is_batch else lambda: "F1",
    )


def refused(properties: str | None = None, *, body: bytes = b"body", sys_flag: int = 0) -> int:
    with pytest.raises(ResponseError) as refusal:
        accept(properties, body=body, sys_flag=sys_flag)
    return refusal.value.code


def test_a_message_keeps_what_its_producer_said() -> None:
    message, _ = accept("KEYS\x01k\x02UNIQ_KEY\x01U1\x02", sys_flag=0x301)
    assert (message.topic, message.queue_id, message.body) == ("T", 3, b"body")
    assert (message.flag, message.sys_flag, message.born_timestamp_ms, message.reconsume_times) == (
        *(9, 0x301),
        *(5, 2),
    )
    assert message.properties == b"KEYS\x01k\x02UNIQ_KEY\x01U1\x02" + STAMP


@pytest.mark.parametrize("properties", ["A\x01b", "A\x01b\x02"])
def test_properties_are_ended_where_older_clients_do_not(properties: str) -> None:
    message, _ = accept(properties)
    assert message.properties == b"A\x01b\x02UNIQ_KEY\x01F1\x02" + STAMP


def test_the_unique_id_is_the_producers_or_a_fresh_one() -> None:
    assert accept("UNIQ_KEY\x01U1")[1] == "U1"
    assert accept("UNIQ_KEY\x01U1\x02UNIQ_KEY\x01U2\x02")[1] == "U2"
    assert accept(None)[1] == "F1"


def test_a_batch_gets_no_fresh_id() -> None:
    message, unique_key = accept("WAIT\x01true", is_batch=True)
    assert unique_key == ""
    assert message.properties == b"WAIT\x01true\x02" + STAMP


def test_the_brokers_own_properties_win_over_the_producers() -> None:
    message, _ = accept("CLUSTER\x01elsewhere\x02")
    assert decode_properties(message.properties)["CLUSTER"] == "C"


def test_an_empty_body_is_a_system_error() -> None:
    assert refused(body=b"") == ResponseCode.SYSTEM_ERROR


def test_a_long_body_is_illegal() -> None:
    accept(body=b"." * 100)
    assert refused(body=b"." * 101) == ResponseCode.MESSAGE_ILLEGAL


def test_long_properties_and_those_with_a_nul_are_illegal() -> None:
    room = MAX_PROPERTIES_BYTES - len(STAMP) - len("UNIQ_KEY\x01F1\x02") - len("K\x01\x02")
    message, _ = accept(f"K\x01{'v' * room}\x02")
    assert len(message.properties) == MAX_PROPERTIES_BYTES
    assert refused(f"K\x01{'v' * (room + 1)}\x02") == ResponseCode.MESSAGE_ILLEGAL
    assert refused("K\x01a\x00b") == ResponseCode.MESSAGE_ILLEGAL


def test_text_that_is_no_utf_8_is_stored_as_something_that_is() -> None:
    message, unique_key = accept("K\x01\ud800\x02UNIQ_KEY\x01\ud801\x02")
    assert b"K\x01?\x02" in message.properties
    assert unique_key == "?"


@pytest.mark.parametrize("bits", [SysFlag.COMMIT, SysFlag.ROLLBACK])
def test_a_send_can_not_end_a_transaction(bits: int) -> None:
    assert refused(sys_flag=int(bits)) == ResponseCode.MESSAGE_ILLEGAL
