"""The request of a send, and the receipt that its answer is. Pure."""

from tanist.client.message import Receipt, SendStatus
from tanist.client.sending.outgoing import Outgoing
from tanist.client.sending.publish_topics import DEFAULT_QUEUE_COUNT
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.topics import AUTO_CREATE_TOPIC
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.send import SendMessageResponse

_DEFAULT_QUEUES = str(DEFAULT_QUEUE_COUNT)
STATUSES = {
    int(ResponseCode.SUCCESS): SendStatus.OK,
    int(ResponseCode.FLUSH_DISK_TIMEOUT): SendStatus.FLUSH_DISK_TIMEOUT,
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT): SendStatus.FLUSH_SLAVE_TIMEOUT,
    int(ResponseCode.SLAVE_NOT_AVAILABLE): SendStatus.SLAVE_NOT_AVAILABLE,
}
"""The answers that say that a message is stored, and how safely."""


def make_request(group: str, outgoing: Outgoing, code: RequestCode, queue: MessageQueue) -> Command:
    """The request of one try. ``code`` is one of those whose headers have a letter a field."""
    # The wire names of SendMessageRequestV2. A header object would be written field by field into
    # the same dict, at several times the cost.
    ext = {
        "a": group,
        "b": outgoing.topic,
        "c": AUTO_CREATE_TOPIC,
        "d": _DEFAULT_QUEUES,
        "e": str(queue.queue_id),
        "f": str(outgoing.sys_flag),
        "g": str(outgoing.born_timestamp_ms),
        "h": str(outgoing.flag),
        "i": outgoing.properties,
        "j": "0",
        "k": "false",
        "m": "true" if outgoing.is_batch else "false",
        "n": queue.broker_name,
    }
    return Command(code, body=outgoing.body, ext_fields=ext)


def read_receipt(answer: Command, outgoing: Outgoing, queue: MessageQueue) -> Receipt:
    """What the answer says. A broker that is asked to may have put the message into another queue."""
    header = answer.header(SendMessageResponse)
    if header.queue_id != queue.queue_id:
        queue = MessageQueue(topic=queue.topic, broker_name=queue.broker_name, queue_id=header.queue_id)
    return Receipt(
        message_id=outgoing.message_id,
        offset_id=header.msg_id,
        queue=queue,
        queue_offset=QueueOffset(header.queue_offset),
        status=STATUSES[answer.code],
        transaction_id=header.transaction_id or None,
        region=header.region,
        is_traced=header.is_trace_on,
    )
