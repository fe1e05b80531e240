import pytest

from tanist.errors import RemoteProtocolError
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.protocol.bodies.client import decode_heartbeat


def heartbeat(consume_type: str, message_model: str, consume_from_where: str) -> bytes:
    return (
        '{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"T"}],'
        f'"consumeType":{consume_type},"messageModel":{message_model},"consumeFromWhere":{consume_from_where}'
        "}]}"
    ).encode()


def test_numbers_stand_for_the_names_in_javas_order_as_clients_in_cpp_write_them() -> None:
    (consumer,) = decode_heartbeat(heartbeat("1", "1", "4")).consumer_data_set
    assert consumer.consume_type is ConsumeType.PASSIVELY
    assert consumer.message_model is MessageModel.CLUSTERING
    assert consumer.consume_from_where is ConsumeFromWhere.FIRST_OFFSET
    (consumer,) = decode_heartbeat(heartbeat("0", "0", "0")).consumer_data_set
    assert consumer.message_model is MessageModel.BROADCASTING
    assert consumer.subscription_data_set[0].topic == "T"


@pytest.mark.parametrize(
    "wrong",
    [
        heartbeat("9", '"CLUSTERING"', '"CONSUME_FROM_LAST_OFFSET"'),
        heartbeat("-1", "1", "0"),
        heartbeat('"x"', "1", "0"),
        b'{"clientID":"c","consumerDataSet":[7]}',
        b'{"clientID":"c","consumerDataSet":{"consumeType":1}}',
        b"[1]",
        b"nothing",
    ],
)
def test_a_heartbeat_that_is_none_is_refused(wrong: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="HeartbeatData"):
        decode_heartbeat(wrong)
