"""RocketMQ's operator commands of both lines move a group of which no member is online."""

from pathlib import Path

import pytest

from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.offsets import QueueOffset
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.reset import ResetOrders, ResetState
from tanist.protocol.headers.offsets import QueryConsumerOffsetRequest, UpdateConsumerOffsetRequest
from tanist.protocol.headers.reset import GetResetOrdersRequest
from tests.support.requests import send_request
from tests.support.rocketmq.cluster import mqadmin_each
from tests.support.rocketmq.jars import CLIENT_LINES
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.topics import create_topic
from tests.support.wire import Wire

pytestmark = pytest.mark.partner("java", "maven")

TOPIC = "Orders"
COUNT = 5
QUEUES = range(4)
NEWEST = CLIENT_LINES[0]


def _ask(wire: Wire, request: Command) -> Command:
    answer = wire.ask(request)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return answer


def _prepare(wire: Wire, group: str, offset: int) -> None:
    """A group that stands at ``offset`` in all queues."""
    config = encode_body(SubscriptionGroupConfig(group_name=group))
    _ask(wire, Command.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=config))
    for queue_id in QUEUES:
        header = UpdateConsumerOffsetRequest(
            consumer_group=group, topic=TOPIC, queue_id=queue_id, consumer_offset=QueueOffset(offset)
        )
        _ask(wire, Command.request(RequestCode.UPDATE_CONSUMER_OFFSET, header))


def _stands(wire: Wire, group: str) -> list[int]:
    headers = [
        QueryConsumerOffsetRequest(consumer_group=group, topic=TOPIC, queue_id=queue_id)
        for queue_id in QUEUES
    ]
    return [
        int(_ask(wire, Command.request(RequestCode.QUERY_CONSUMER_OFFSET, header)).ext["offset"])
        for header in headers
    ]


@pytest.mark.parametrize("line", CLIENT_LINES)
def test_the_tools_of_both_lines_move_an_offline_group_and_take_no_detour(
    own_names: NameServerProcess, tmp_path: Path, line: str
) -> None:
    """A broker that said that nobody is online would have them set each queue's offset by themselves."""
    with BrokerProcess(tmp_path / "tanist", own_names.address) as broker, Wire(broker.address) as wire:
        create_topic(broker.address, TOPIC)
        for queue_id in QUEUES:
            for _ in range(COUNT):
                _ask(wire, send_request(topic=TOPIC, queue_id=queue_id))
        groups = ["back", "skipped"]
        commands = [
            ["resetOffsetByTime", "-g", "back", "-t", TOPIC, "-s", "0"],
            ["skipAccumulatedMessage", "-g", "skipped", "-t", TOPIC],
        ]
        if line == NEWEST:
            groups.append("one")
            one = ("-b", broker.address, "-q", "1", "-o", "2")
            commands.append(["resetOffsetByTime", "-g", "one", "-t", TOPIC, "-s", "0", *one])
        for group in groups:
            _prepare(wire, group, 3)
        mqadmin_each(own_names.address, *commands, home=tmp_path / "mqadmin", line=line)
        assert _stands(wire, "back") == [0] * 4
        assert _stands(wire, "skipped") == [COUNT] * 4
        assert line != NEWEST or _stands(wire, "one") == [3, 2, 3, 3]
        answer = _ask(wire, Command.request(RequestCode.GET_RESET_ORDERS, GetResetOrdersRequest()))
        orders = decode_java_json(answer.body, ResetOrders).orders
        assert [order.group for order in orders] == groups
        assert {order.state for order in orders} == {ResetState.APPLIED}
