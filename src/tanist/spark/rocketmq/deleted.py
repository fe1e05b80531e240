"""Tells a topic that was deleted from one whose brokers are away: for the first nobody need wait."""

import asyncio
import re
import time
from collections.abc import Iterable

from tanist.admin.cluster import cluster_info, topic_configs
from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.model.route import MessageQueue
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.cluster import WAITS_S, wired
from tanist.spark.rocketmq.options import RocketMQOptions


class TopicDeleted(SparkError):
    """A topic that was being read is there no more."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"topic {topic} was deleted: the brokers that it was read from say that they have no such topic; "
            "leave it out to go on with the others"
        )
        self.topic = topic


def check_not_deleted(queues: Iterable[MessageQueue], options: RocketMQOptions) -> None:
    """Raise TopicDeleted if what was read up to now is gone for good, so that it would be waited for in vain.

    That is so if the master of every broker that had the topic is there and says for half a minute that it
    does not know it: one that has just taken over may hear of a topic some time after it has its messages.
    """
    asked = {queue for queue in queues if _is_asked(queue, options)}
    gone = asyncio.run(_deleted(asked, options))
    for wait_s in WAITS_S:
        if gone is None:
            return
        time.sleep(wait_s)
        gone = asyncio.run(_deleted(asked, options))
    if gone is not None:
        raise TopicDeleted(gone)


def _is_asked(queue: MessageQueue, options: RocketMQOptions) -> bool:
    if options.assign:
        return queue in options.assign
    if options.pattern is not None:
        return re.fullmatch(options.pattern, queue.topic) is not None
    return queue.topic in options.subscribe


async def _deleted(queues: set[MessageQueue], options: RocketMQOptions) -> str | None:
    """A topic of these that is deleted and missed; None if there is none, or nobody can tell."""
    try:
        async with wired(options.client_settings) as wire:
            known = await _known(queues, options, wire)
    except MQError:
        return None
    topics = {queue.topic for queue in queues}
    gone = topics - known
    # Of a pattern some topics may go while others stay. It has nothing to read when all are gone.
    is_missed = gone == topics if options.pattern is not None else bool(gone)
    return min(gone) if gone and is_missed else None


async def _known(queues: set[MessageQueue], options: RocketMQOptions, wire: Wire) -> set[str]:
    """The topics that the masters of these queues have, and those of which a master is away."""
    cluster = await cluster_info(wire, options.namesrv[0])
    known: set[str] = set()
    for name in sorted({queue.broker_name for queue in queues}):
        broker = cluster.broker_addr_table.get(name)
        master = None if broker is None else broker.master_addr
        if master is None:
            known |= {queue.topic for queue in queues if queue.broker_name == name}
        else:
            known |= (await topic_configs(wire, master)).keys()
    return known
