import asyncio
import logging
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tanist.broker.handlers.pull import PullHandler
from tanist.broker.operating.broker_metrics import broker_sampler
from tanist.broker.operating.correction_events import CorrectionEvents, correction_metrics
from tanist.metrics import OnDemand
from tanist.model.offsets import QueueOffset
from tanist.model.topics import OFFSET_MOVED_TOPIC, TopicConfig
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.pull import PullMessageRequest, PullSysFlag
from tests.support.conditions import turns
from tests.support.fake_connection import FakeConnection
from tests.support.messages import TOPIC, make_message
from tests.support.working_broker import WorkingBroker, working_broker

EVENT = (
    b'{"consumerGroup":"G","messageQueue":{"brokerName":"broker-a","queueId":0,"topic":"TopicA"},'
    b'"offsetNew":1,"offsetRequest":999999999}'
)
"""As RocketMQ writes it."""


def _pull(pulls: PullHandler, offset: int) -> None:
    header = PullMessageRequest(
        consumer_group="G",
        topic=TOPIC,
        queue_id=0,
        queue_offset=QueueOffset(offset),
        max_message_count=32,
        sys_flag=int(PullSysFlag.SUBSCRIPTION),
        consumer_offset=QueueOffset(0),
        suspend_timeout_ms=0,
        subscription="*",
        sub_version=0,
    )
    pulls.pull(Command.request(RequestCode.PULL_MESSAGE, header, opaque=9), FakeConnection())


async def _events(broker: WorkingBroker) -> list[bytes]:
    await turns()
    return [bytes(record.body) for record in broker.state.store.records(OFFSET_MOVED_TOPIC, 0, 0, 32)]


@pytest.mark.behaviour("S4-38", "S4-39", "S4-48", "S4-51")
def test_a_consumer_that_loops_is_one_event_one_alarm_and_a_figure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            state = broker.state
            state.topics.put(TopicConfig(topic_name=TOPIC, read_queue_count=1, write_queue_count=1))
            state.groups.ensure("G")
            state.store.append(make_message())
            state.store.dispatch()
            events, pulls = CorrectionEvents(state), PullHandler(state)
            state.corrections.listeners.append(events.on_corrected)
            state.corrections.loop_listeners.append(events.on_loop)
            for _ in range(4):
                _pull(pulls, 999_999_999)
            assert await _events(broker) == [EVENT]
            errors = [record for record in caplog.records if record.levelno == logging.ERROR]
            assert len(errors) == 1
            assert "does not take its correction group=G" in errors[0].getMessage()
            registry = CollectorRegistry()
            registry.register(OnDemand(lambda: correction_metrics(broker_sampler(state), state)))
            figures = generate_latest(registry).decode()
            assert 'tanist_offset_corrections_total{broker_id="0"' in figures
            assert 'topic="TopicA"} 1.0' in figures
            events.tell()
            assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 2
            _pull(pulls, 0)
            assert state.corrections.watched == {}
            pulls.close()

    asyncio.run(scenario())
