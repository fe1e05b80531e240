"""Brokers in this process that order a consumer to do something, as a test says."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tanist.broker import Broker
from tanist.broker.state import BrokerState
from tanist.client import Consumer, MessageQueue, Start
from tanist.clock import SystemClock
from tanist.model.offsets import QueueOffset
from tanist.protocol import Command, RequestCode
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.reset import OffsetTable
from tanist.protocol.headers.reset import ResetOffsetRequest
from tanist.protocol.java_json import ObjectKeyed
from tanist.testing import EmbeddedBroker
from tests.support.consuming import TOPIC
from tests.support.virtual_time import VirtualClock

GROUP = "billing"
States: TypeAlias = list[BrokerState]


def keep_states(monkeypatch: pytest.MonkeyPatch) -> States:
    """What the brokers of a test know: their connections to clients are in it."""
    made: States = []
    make: Callable[..., Any] = Broker._make_state  # pyright: ignore[reportPrivateUsage]

    def make_and_keep(broker: Broker, *arguments: object) -> BrokerState:
        made.append(make(broker, *arguments))
        return made[-1]

    monkeypatch.setattr(Broker, "_make_state", make_and_keep)
    return made


def use_virtual_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have everybody read the time of the loop that runs."""
    monkeypatch.setattr(SystemClock, "now_ms", VirtualClock.now_ms)
    monkeypatch.setattr(SystemClock, "monotonic_s", VirtualClock.monotonic_s)


def make_consumer(broker: EmbeddedBroker, **arguments: object) -> Consumer:
    given: dict[str, object] = {
        "group": GROUP,
        "namesrv": broker.namesrv,
        "topics": {TOPIC: "*"},
        "start": Start.FIRST,
        **arguments,
    }
    return Consumer(**given)  # pyright: ignore[reportArgumentType]


def queue_of(broker: EmbeddedBroker, queue_id: int, *, topic: str = TOPIC) -> MessageQueue:
    return MessageQueue(topic=topic, broker_name=broker.broker_name, queue_id=queue_id)


def order_reset(
    states: States,
    consumer: Consumer,
    offsets: dict[MessageQueue, int],
    *,
    order_id: str | None = None,
    applied_ms: int = 0,
    master_epoch: int | None = None,
) -> None:
    """What a broker sends each member when an operator resets the group; RocketMQ's have no order id."""
    table = ObjectKeyed({queue: QueueOffset(offset) for queue, offset in offsets.items()})
    order = Command.request(
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
        ResetOffsetRequest(
            topic=TOPIC,
            group=GROUP,
            timestamp_ms=0,
            is_force=True,
            order_id=order_id,
            applied_ms=applied_ms,
            master_epoch=master_epoch,
        ),
        body=encode_body(OffsetTable(offset_table=table)),
        is_one_way=True,
    )
    client = states[-1].clients.find_consumer(GROUP, consumer.client_id)
    assert client is not None
    client.connection.send(order)
