"""A send on the wire, and what its answer says."""

import msgspec
import pytest

from tanist.client.message import SendStatus
from tanist.client.sending.outgoing import Outgoing
from tanist.client.sending.send_request import make_request, read_receipt
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.send import SendMessageRequestV2, SendMessageResponse

QUEUE = MessageQueue(topic="T", broker_name="a", queue_id=3)
OUTGOING = Outgoing(
    topic="T", message_id="ID", body=b"x", properties="k\1v\2", born_timestamp_ms=17, sys_flag=1, flag=5
)


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_request_says_all_that_a_broker_wants_to_know(is_batch: bool) -> None:
    outgoing = msgspec.structs.replace(OUTGOING, is_batch=is_batch)
    request = make_request("g", outgoing, RequestCode.SEND_MESSAGE_V2, QUEUE)
    assert request.body == b"x"
    assert request.header(SendMessageRequestV2) == SendMessageRequestV2(
        producer_group="g",
        topic="T",
        default_topic="TBW102",
        default_topic_queue_count=4,
        queue_id=3,
        sys_flag=1,
        born_timestamp_ms=17,
        flag=5,
        properties="k\1v\2",
        reconsume_times=0,
        is_unit_mode=False,
        is_batch=is_batch,
        broker_name="a",
    )


@pytest.mark.parametrize(
    ("code", "status"),
    [(ResponseCode.SUCCESS, SendStatus.OK), (ResponseCode.FLUSH_DISK_TIMEOUT, SendStatus.FLUSH_DISK_TIMEOUT)],
)
def test_a_receipt_says_where_the_message_lies_and_how_safely(code: ResponseCode, status: SendStatus) -> None:
    header = SendMessageResponse(msg_id="AB", queue_id=1, queue_offset=QueueOffset(7), transaction_id="")
    receipt = read_receipt(Command(0).reply(code, header), OUTGOING, QUEUE)
    assert (receipt.message_id, receipt.offset_id, receipt.queue_offset) == ("ID", "AB", 7)
    # The broker put it into another queue than it was asked to.
    assert receipt.queue == MessageQueue(topic="T", broker_name="a", queue_id=1)
    assert receipt.status is status
    assert receipt.transaction_id is None
