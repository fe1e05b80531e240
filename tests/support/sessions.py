"""A consumer's session without a consumer: a member of a group that does nothing by itself."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from tanist.client.session import Session
from tanist.client.settings import make_settings
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.route import MessageQueue
from tanist.model.subscription import SubscriptionData
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData
from tests.support.requests import GROUP, send_request


@asynccontextmanager
async def open_session(
    namesrv: str, *subscriptions: SubscriptionData, group: str = GROUP, timeout_s: float = 10.0
) -> AsyncGenerator[Session]:
    """A member of ``group``. It knows no route and tells no broker of itself unless the test does."""
    settings = make_settings(namesrv=namesrv, credentials=None, tls=None, timeout_s=timeout_s, instance=None)

    def describe(client_id: str) -> HeartbeatData:
        member = ConsumerData(
            group_name=group,
            consume_type=ConsumeType.PASSIVELY,
            message_model=MessageModel.CLUSTERING,
            consume_from_where=ConsumeFromWhere.FIRST_OFFSET,
            subscription_data_set=list(subscriptions),
        )
        return HeartbeatData(client_id=client_id, consumer_data_set=[member])

    session = Session(settings, handlers={}, describe=describe)
    try:
        yield session
    finally:
        await session.close()


async def send(
    session: Session, queue: MessageQueue, bodies: Sequence[bytes], *, properties: str = "", sys_flag: int = 0
) -> None:
    """Put messages into a queue, one after the other."""
    await session.routes.find(queue.topic)
    master = session.routes.table.master_of(queue.broker_name)
    assert master is not None
    for body in bodies:
        request = send_request(
            body, topic=queue.topic, queue_id=queue.queue_id, properties=properties, sys_flag=sys_flag
        )
        await session.wire.ask(master, request)
