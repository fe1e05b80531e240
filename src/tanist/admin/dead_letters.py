"""Dead letters: what a group gave up on, given to it once more.

The broker is asked to take the dead letter back as a consumer would (CONSUMER_SEND_MSG_BACK), and copies it
from its own log into the group's retry topic, which every clustering consumer of RocketMQ reads. So nobody
has to be online, no body travels, groups that consume in order get it too, and other groups do not. It is
tried once: it has used up its retries, so a consumer that fails again makes it a dead letter again.
RocketMQ's dashboard has one client that is online consume it instead, and what that client does with it
nobody remembers.
"""

from tanist.client.received import ReceivedMessage
from tanist.client.session.wire import Wire
from tanist.model.integers import INT32_MAX
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.send import ConsumerSendBackRequest

_DELAY_LEVEL = 1
"""The shortest, a second: 0 would have the broker choose by how often it was tried, which is two hours."""


async def resend_dead_letter(wire: Wire, master: str, message: ReceivedMessage, group: str) -> None:
    """Have the master that holds a dead letter give it to its group again. Raises ResponseError."""
    header = ConsumerSendBackRequest(
        log_offset=message.log_offset,
        group=group,
        delay_level=_DELAY_LEVEL,
        origin_msg_id=message.message_id,
        origin_topic=message.topic,
        max_reconsume_times=INT32_MAX,
        broker_name=message.queue.broker_name,
    )
    await wire.ask(master, Command.request(RequestCode.CONSUMER_SEND_MSG_BACK, header))
