"""A consumer's session without a consumer: a member of a group that does nothing by itself."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from tanist.client.pulling.fetched import Fetched
from tanist.client.pulling.fetching import Fetcher
from tanist.client.session.session import Session
from tanist.client.settings import make_settings
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.subscription import SubscriptionData, subscribe
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData
from tests.support.received import at
from tests.support.remoting import in_time
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


class Reader:
    """A member of the group that fetches from the first queue of a topic."""

    def __init__(self, session: Session, topic: str, broker_name: str) -> None:
        self.session = session
        self.fetcher = Fetcher(session, GROUP)
        self.queue = MessageQueue(topic=topic, broker_name=broker_name, queue_id=0)

    async def send(self, *bodies: bytes, properties: str = "", sys_flag: int = 0) -> None:
        await send(self.session, self.queue, bodies, properties=properties, sys_flag=sys_flag)

    async def fetch(
        self,
        offset: int,
        subscription: SubscriptionData | None = None,
        *,
        max_count: int = 32,
        suspend_s: float = 0,
        consumer_offset: QueueOffset | None = None,
        is_by_hand: bool = True,
    ) -> Fetched:
        return await in_time(
            self.fetcher.fetch(
                self.queue,
                at(offset),
                subscription=subscription or subscribe(self.queue.topic, "*", sub_version=1),
                max_count=max_count,
                suspend_s=suspend_s,
                consumer_offset=consumer_offset,
                is_by_hand=is_by_hand,
            )
        )


def bodies(fetched: Fetched) -> list[bytes]:
    return [message.body for message in fetched.messages]
