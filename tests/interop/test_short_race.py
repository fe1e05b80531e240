"""The race in short: both sides are given the same work, and did all of it. How fast is for ``make race``."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.common import QueueOffsetResponse
from tanist.protocol.headers.offsets import GetMaxOffsetRequest
from tests.support.rocketmq.cluster import Broker, RocketMQ
from tests.support.rocketmq.stock_client import Outgoing, StockClients
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

_TOPIC = "ShortRace"
_QUEUES = 4
_MODES = ("sync", "async", "batch", "one-way")
_COUNT = 100
_BODIES = {mode: [b"%b-%d" % (mode.encode(), number) for number in range(_COUNT)] for mode in _MODES}
_ALL = Counter(body for bodies in _BODIES.values() for body in bodies)


@pytest.fixture
def sides(
    tmp_path_factory: pytest.TempPathFactory, rocketmq_broker: tuple[RocketMQ, Broker]
) -> Iterator[dict[str, tuple[str, str]]]:
    """Name server and broker of each side."""
    home = tmp_path_factory.mktemp("short-race")
    rocketmq, theirs = rocketmq_broker
    with NameServerProcess(home / "ns") as names, BrokerProcess(home / "broker", names.address) as ours:
        yield {
            "Tanist": (names.address, ours.address),
            "RocketMQ": (rocketmq.name_server, theirs.address),
        }


@pytest.mark.takes(20)
@pytest.mark.partner("java", "maven")
def test_both_sides_did_the_same_work(
    sides: dict[str, tuple[str, str]], started_clients: Callable[[str], StockClients]
) -> None:
    clients = started_clients("5.3.3")
    drained: dict[str, Counter[bytes]] = {}
    stored: dict[str, int] = {}
    for side, (name_server, broker) in sides.items():
        with clients.producer(name_server, topicQueues=_QUEUES) as producer:
            for mode, bodies in _BODIES.items():
                messages = [Outgoing(body) for body in bodies]
                if mode == "one-way":
                    producer.send_one_way(_TOPIC, messages)
                else:
                    sent = producer.send(_TOPIC, messages, mode=mode)
                    assert {one.status for one in sent} == {"SEND_OK"}
        with clients.push_consumer(name_server, f"short-race-{side}", _TOPIC) as consumer:
            received = {one.place: one.body for one in consumer.received(len(_ALL))}
        drained[side] = Counter(received.values())
        stored[side] = sum(_queue_end(broker, queue_id) for queue_id in range(_QUEUES))
    assert drained == {"Tanist": _ALL, "RocketMQ": _ALL}
    assert stored == {"Tanist": _ALL.total(), "RocketMQ": _ALL.total()}


def _queue_end(address: str, queue_id: int) -> int:
    request = GetMaxOffsetRequest(topic=_TOPIC, queue_id=queue_id)
    with Wire(address) as wire:
        answer = wire.ask(Command.request(RequestCode.GET_MAX_OFFSET, request))
    assert answer.code == ResponseCode.SUCCESS
    return answer.header(QueueOffsetResponse).queue_offset
