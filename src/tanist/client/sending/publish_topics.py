"""The queues that a producer sends to, by topic; and how a topic that is not there yet comes to be.

A topic that the name servers do not know borrows the brokers of TBW102, as with RocketMQ's clients: the
first message that each of them takes makes the topic there. Its real route is asked for soon after, and
used once it has all of these brokers: the first one to make the topic is not to get all messages.
"""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from tanist.backoff import Backoff
from tanist.client.errors import NoRoute
from tanist.client.sending.queue_choice import QueueRound
from tanist.client.session.route_keeper import RouteKeeper
from tanist.client.session.routes import TopicRoute
from tanist.client.session.tasks import OwnedTasks
from tanist.errors import MQError
from tanist.model.route import MessageQueue
from tanist.model.topics import AUTO_CREATE_TOPIC
from tanist.protocol.response_errors import TopicNotFound

DEFAULT_QUEUE_COUNT = 4
"""How many queues a topic gets at most that a send creates."""
_LEARN_TRIES = 8


class PublishTopic:
    """One topic's queues, and whose turn it is."""

    def __init__(self, queues: Sequence[MessageQueue], *, is_borrowed: bool = False) -> None:
        self.queues = queues
        self.is_borrowed = is_borrowed
        self.broker_names = frozenset(queue.broker_name for queue in queues)
        self.round = QueueRound(queues, start=random.randrange(len(queues)))  # noqa: S311


class PublishTopics:
    """All topics that a producer has sent to."""

    def __init__(self, routes: RouteKeeper, tasks: OwnedTasks) -> None:
        self._routes = routes
        self._tasks = tasks
        self._topics: dict[str, PublishTopic] = {}
        self._learning: set[str] = set()
        routes.on_change(self._on_change)

    def get(self, topic: str) -> PublishTopic | None:
        """The topic, if it is known already."""
        return self._topics.get(topic)

    async def find(self, topic: str) -> PublishTopic:
        """The topic as routes give it now. Raises NoRoute, or TopicNotFound if none makes it."""
        try:
            route = await self._routes.ask(topic)
        except TopicNotFound as unknown:
            known = self._topics.get(topic)
            if known is not None:
                return known  # It is new, or the name server is.
            return self._borrow(topic, await self._template(unknown))
        if not route.publish_queues:
            raise NoRoute(topic, "none of its brokers takes messages now")
        return self._topics.get(topic) or self._put(topic, PublishTopic(route.publish_queues))

    def on_stored(self, topic: str) -> None:
        """A broker took a message. If the topic was borrowed it is real now, and has a route to learn."""
        if self._is_borrowed(topic) and topic not in self._learning:
            self._learning.add(topic)
            self._tasks.start(self._learn(topic), f"new topic {topic}")

    async def _template(self, unknown: TopicNotFound) -> TopicRoute:
        try:
            return await self._routes.find(AUTO_CREATE_TOPIC)
        except TopicNotFound:
            raise unknown from None

    def _borrow(self, topic: str, template: TopicRoute) -> PublishTopic:
        queues = tuple(
            MessageQueue(topic=topic, broker_name=queue.broker_name, queue_id=queue.queue_id)
            for queue in template.publish_queues
            if queue.queue_id < DEFAULT_QUEUE_COUNT
        )
        if not queues:
            raise NoRoute(topic, f"it does not exist, and no broker of {AUTO_CREATE_TOPIC} takes messages")
        return self._put(topic, PublishTopic(queues, is_borrowed=True))

    def _put(self, name: str, topic: PublishTopic) -> PublishTopic:
        self._topics[name] = topic
        return topic

    async def _learn(self, topic: str) -> None:
        """Ask until the route has all brokers. A broker tells name servers of a new topic in its own time."""
        backoff = Backoff()
        try:
            for _ in range(_LEARN_TRIES):
                with suppress(MQError):
                    await self._routes.ask(topic)
                if not self._is_borrowed(topic):
                    return
                await asyncio.sleep(backoff.next_s(random.random()))  # noqa: S311
            # Some broker was sent nothing, or is gone: it is not in the route, and that is right.
            self._use_route(topic)
        finally:
            self._learning.discard(topic)

    def _is_borrowed(self, topic: str) -> bool:
        known = self._topics.get(topic)
        return known is not None and known.is_borrowed

    def _on_change(self, topic: str) -> None:
        known, route = self._topics.get(topic), self._routes.table.get(topic)
        if known is None or route is None:
            return
        is_whole = known.broker_names <= {queue.broker_name for queue in route.publish_queues}
        if is_whole or not known.is_borrowed:
            self._use_route(topic)

    def _use_route(self, topic: str) -> None:
        """Take the queues of the route. If it has none, sends ask for it again."""
        route = self._routes.table.get(topic)
        if route is None:
            return
        if route.publish_queues:
            self._topics[topic] = PublishTopic(route.publish_queues)
        else:
            self._topics.pop(topic, None)
