"""What operators have cleaned up at once that is cleaned up anyway, or never.

Queues whose topic is gone and of which the log holds nothing any more (306), messages whose topic is
gone (316), and files of the log that are old enough (329).
"""

import logging

from tanist.broker.state import BrokerState
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.remoting import Connection, Handler

_log = logging.getLogger(__name__)


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = CleaningHandler(state)
    return {
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: handler.clean_queues,
        RequestCode.CLEAN_UNUSED_TOPIC: handler.clean_topics,
        RequestCode.DELETE_EXPIRED_COMMITLOG: handler.clean_log,
    }


class CleaningHandler:
    """Cleans up what nobody can reach."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def clean_queues(self, command: Command, connection: Connection) -> Command:
        """RocketMQ removes the queues of topics that are there too: those then count from 0 again, and the
        offsets of their groups point nowhere. We leave them, a few bytes each.
        """
        count = self._state.store.remove_expired_queues(self._unused_topics())
        _log.info("expired queues removed count=%d by=%s", count, connection.peer)
        return command.reply()

    def clean_topics(self, command: Command, connection: Connection) -> Command:
        unused = self._unused_topics()
        _log.info("unused topics are cleaned count=%d by=%s", len(unused), connection.peer)
        self._state.store.delete_topics(unused)
        return command.reply()

    def clean_log(self, command: Command, connection: Connection) -> Command:
        """Answered before it is done, as by RocketMQ: deleting large files takes a while."""
        _log.info("deletion of old files asked by=%s", connection.peer)
        self._state.upkeep.clean_soon()
        return command.reply()

    def _unused_topics(self) -> set[str]:
        """The topics that have queues and no settings. The broker's own are in use in any case."""
        topics = self._state.topics
        return {
            topic
            for topic in self._state.store.queues.topics()
            if topics.find(topic) is None and not topics.is_system(topic)
        }
