"""What operators are told of consumers that had to be corrected: events, lines of log, figures, and an alarm.

An event is a message of the topic OFFSET_MOVED_EVENT, as RocketMQ writes them, and a warning. A consumer that
does not take its correction is an error in the log, when it is seen and every minute as long as it lasts.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator

from prometheus_client import Metric

from tanist.broker.resets.corrections import Place, Run
from tanist.broker.state import BrokerState
from tanist.errors import MQError
from tanist.metrics import Sampler, names
from tanist.model.message import Message
from tanist.model.offsets import QueueOffset
from tanist.model.property_names import KEYS, TAGS
from tanist.model.route import MessageQueue
from tanist.model.topics import OFFSET_MOVED_TOPIC
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.reset import OffsetMovedEvent
from tanist.protocol.properties import encode_properties
from tanist.remoting.line_budget import LineBudget

_log = logging.getLogger(__name__)

_EVERY_S = 60.0
_MOST_TOLD = 20


class CorrectionEvents:
    """One broker's."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._lines = LineBudget()

    def on_corrected(self, place: Place, run: Run) -> None:
        """A run of corrections begins. Nothing escapes: whoever pulls can not help it."""
        unwritten = self._lines.spend(self._state.clock.monotonic_s())
        if unwritten is not None:
            _log.warning(
                "PULL_OFFSET_MOVED:correction offset. topic=%s, groupId=%s, clientId=%s, queueId=%d, "
                "requestOffset=%d, newOffset=%d unwritten_lines=%d",
                *(place.topic, place.group, place.client, place.queue_id),
                *(run.asked, run.corrected, unwritten),
            )
        if self._state.settings.is_slave:
            return
        try:
            self._state.writer.append(_event(self._state, place, run))
        except (MQError, OSError) as error:
            _log.warning("offset moved event is not written topic=%s reason=%s", place.topic, error)

    def on_loop(self, place: Place, run: Run) -> None:
        _log.error(
            "consumer does not take its correction group=%s client=%s topic=%s queue=%d asks=%d times=%d; it "
            "consumes nothing there: reset the group, or mend its offsets.json and start it again",
            *(place.group, place.client, place.topic, place.queue_id, run.asked, run.count),
        )

    async def run(self) -> None:
        """Tell every minute of those who still loop, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            self.tell()

    def tell(self) -> None:
        """Tell of them, of some if there are many."""
        loops = self._state.corrections.loops()
        for place, run in [*loops.items()][:_MOST_TOLD]:
            self.on_loop(place, run)
        if len(loops) > _MOST_TOLD:
            _log.error("more consumers do not take their corrections count=%d", len(loops) - _MOST_TOLD)


def correction_metrics(sampler: Sampler, state: BrokerState) -> Iterator[Metric]:
    """How often consumers were corrected, and in how many queues of a group they do not take it."""
    yield sampler.one(names.OFFSET_CORRECTIONS, state.corrections.count)
    loops = Counter((place.group, place.topic) for place in state.corrections.loops())
    yield sampler.many(names.OFFSET_CORRECTION_LOOPS, loops)


def _event(state: BrokerState, place: Place, run: Run) -> Message:
    queue = MessageQueue(topic=place.topic, broker_name=state.settings.broker_name, queue_id=place.queue_id)
    event = OffsetMovedEvent(
        consumer_group=place.group,
        queue=queue,
        asked=QueueOffset(run.asked),
        corrected=QueueOffset(run.corrected),
    )
    return Message(
        topic=OFFSET_MOVED_TOPIC,
        queue_id=0,
        body=encode_body(event),
        properties=encode_properties({KEYS: place.group, TAGS: place.group}),
        born_timestamp_ms=state.clock.now_ms(),
        born_host=state.store_host,
    )
