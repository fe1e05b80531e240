"""RocketMQ's own commands reset groups of stock clients at Tanist, and what is said of each client is true.

A stock client pauses for 10 s before it moves, so all that is reset here is reset at once.
TANIST_SCENARIOS=all has the releases too whose broadcasting clients can not be moved.
"""

import os
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tanist.model.offsets import QueueOffset
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.reset import ReceiptState, ResetOrders, ResetOrderView, ResetState
from tanist.protocol.headers.offsets import QueryConsumerOffsetRequest, UpdateConsumerOffsetRequest
from tanist.protocol.headers.reset import GetResetOrdersRequest
from tanist.protocol.java_json import decode_java_json
from tests.support import partners
from tests.support.rocketmq.cluster import mqadmin_each
from tests.support.rocketmq.jars import CLIENT_LINES, OLDER_CLIENTS
from tests.support.rocketmq.stock_client import Outgoing, PushConsumer, StockClients
from tests.support.site import wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

pytestmark = pytest.mark.partner("java", "maven")

TOPIC = "ResetTopic"
QUEUES = 2
COUNT = 200
SLOW_MS = 3_000
"""A listener this slow has a backlog for as long as the test lasts."""
PAUSE_MS = 9_900
"""How long a stock client waits for its listeners before it moves, but for what two clocks differ."""
IS_ALL = os.environ.get("TANIST_SCENARIOS") == "all"


@dataclass
class ResetSite:
    """A broker of Tanist with one topic, and push consumers of some releases of RocketMQ."""

    names: NameServerProcess
    broker: BrokerProcess
    running: ExitStack
    home: Path
    clients: dict[str, StockClients] = field(default_factory=dict[str, StockClients])

    def start_clients(self, releases: Sequence[str]) -> None:
        try:
            for line in releases:
                started = StockClients(line, self.home / line)
                self.clients[line] = self.running.enter_context(started)
        except partners.PartnerMissing as lack:
            partners.do_without(lack)

    def send(self, count: int) -> None:
        line = next(iter(self.clients))
        with self.clients[line].producer(self.names.address, topicQueues=QUEUES) as producer:
            producer.send(TOPIC, [Outgoing(b"%d" % number) for number in range(count)])

    def consumer(self, line: str, group: str, **options: int) -> PushConsumer:
        given: dict[str, Any] = {**options}
        consumer = self.clients[line].push_consumer(self.names.address, group, TOPIC, **given)
        return self.running.enter_context(consumer)

    def commit(self, group: str, offset: int) -> None:
        """Say where a group stands, which its members say only 10 s after their start."""
        with Wire(self.broker.address) as wire:
            for queue_id in range(QUEUES):
                header = UpdateConsumerOffsetRequest(
                    consumer_group=group, topic=TOPIC, queue_id=queue_id, consumer_offset=QueueOffset(offset)
                )
                answer = wire.ask(Command.request(RequestCode.UPDATE_CONSUMER_OFFSET, header))
                assert answer.code == ResponseCode.SUCCESS, answer.remark

    def committed(self, group: str) -> list[int]:
        with Wire(self.broker.address) as wire:
            answers = [
                wire.ask(
                    Command.request(
                        RequestCode.QUERY_CONSUMER_OFFSET,
                        QueryConsumerOffsetRequest(consumer_group=group, topic=TOPIC, queue_id=queue_id),
                    )
                )
                for queue_id in range(QUEUES)
            ]
        return [int(answer.ext["offset"]) for answer in answers]

    def order(self, group: str) -> ResetOrderView:
        """The only order that there is of a group."""
        with Wire(self.broker.address) as wire:
            answer = wire.ask(
                Command.request(RequestCode.GET_RESET_ORDERS, GetResetOrdersRequest(group=group))
            )
        (order,) = decode_java_json(answer.body, ResetOrders).orders
        return order

    def states(self, group: str) -> list[ReceiptState]:
        return [receipt.state for receipt in self.order(group).receipts]


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[ResetSite]:
    """Its parameter says whether clients are told by the answers to their pulls."""
    is_server_side = str(getattr(request, "param", False)).lower()
    with (
        NameServerProcess(tmp_path / "ns") as names,
        BrokerProcess(tmp_path / "broker", names.address, useServerSideResetOffset=is_server_side) as broker,
        ExitStack() as running,
    ):
        yield ResetSite(names, broker, running, tmp_path / "clients")
        assert "Traceback" not in broker.process.output()


def reset_to_start(group: str) -> list[str]:
    return ["resetOffsetByTime", "-g", group, "-t", TOPIC, "-s", "0"]


def skip_backlog(group: str) -> list[str]:
    return ["skipAccumulatedMessage", "-g", group, "-t", TOPIC]


@pytest.mark.takes(25)
@pytest.mark.behaviour("S4-1", "S4-2", "S4-3", "S4-4", "S4-8", "S4-21", "S4-22", "S4-23", "S4-30", "S4-50")
def test_the_stock_commands_move_the_clients_of_both_lines_and_what_they_did_is_known(
    site: ResetSite,
) -> None:
    site.start_clients(CLIENT_LINES)
    site.send(COUNT)
    lines = {line: line.replace(".", "_") for line in CLIENT_LINES}
    online = {line: site.consumer(line, f"online-{name}") for line, name in lines.items()}
    broadcasting = {
        line: [site.consumer(line, f"broadcasting-{name}", isBroadcasting=True) for _ in range(2)]
        for line, name in lines.items()
    }
    for line, name in lines.items():
        for consumer in (online[line], *broadcasting[line]):
            assert len(consumer.received(COUNT)) == COUNT
        site.commit(f"online-{name}", COUNT // QUEUES)
    with site.clients[CLIENT_LINES[0]].push_consumer(site.names.address, "offline", TOPIC) as passing:
        assert len(passing.received(COUNT)) == COUNT
    assert site.committed("offline") == [COUNT // QUEUES] * QUEUES
    slow = {line: site.consumer(line, f"slow-{name}", consumeMs=SLOW_MS) for line, name in lines.items()}
    slow_broadcasting = {
        line: site.consumer(line, f"slow-all-{name}", consumeMs=SLOW_MS, isBroadcasting=True)
        for line, name in lines.items()
    }
    for name in lines.values():
        site.commit(f"slow-{name}", 0)

    printed: list[str] = []
    for line, name in lines.items():
        # The command of each line, for the clients of its own.
        kinds = ("online", "broadcasting"), ("slow", "slow-all")
        printed += mqadmin_each(
            site.names.address,
            *(reset_to_start(f"{kind}-{name}") for kind in kinds[0]),
            *(skip_backlog(f"{kind}-{name}") for kind in kinds[1]),
            *([reset_to_start("offline")] if line == CLIENT_LINES[0] else []),
            home=site.home / f"mqadmin-{line}",
            line=line,
        )
    assert not [text for text in printed if "xception" in text], printed
    assert site.committed("offline") == [0] * QUEUES
    assert site.order("offline").state is ResetState.APPLIED
    assert site.states("offline") == []

    for name in lines.values():
        for kind, members in (("online", 1), ("broadcasting", 2), ("slow", 1), ("slow-all", 1)):
            group, wanted = f"{kind}-{name}", [ReceiptState.CONFIRMED] * members
            try:
                wait_until(lambda group=group, wanted=wanted: site.states(group) == wanted, timeout_s=150)
            except AssertionError:
                pytest.fail(f"not all of {group} have confirmed: {site.order(group)}")
            # They pause before they move, and nobody was said to have moved before. One whose backlog is
            # skipped may say earlier that it is at the end: with its cache cleared it takes itself for done.
            took_ms = [each.confirmed_ms - each.told_ms for each in site.order(group).receipts]
            assert kind.startswith("slow") or min(took_ms) >= PAUSE_MS, site.order(group)
    for line in lines:
        for consumer in (online[line], *broadcasting[line]):
            wait_until(lambda consumer=consumer: len(consumer.received(0)) == 2 * COUNT)
            assert len({delivery.place for delivery in consumer.received(0)}) == COUNT
    # Whoever comes later begins where the group was sent.
    later = site.consumer(CLIENT_LINES[0], "offline")
    assert len(later.received(COUNT)) == COUNT
    # The backlog is skipped, and what comes after it is not.
    slow_ones = [*slow.values(), *slow_broadcasting.values()]
    seen = [len(consumer.received(0)) for consumer in slow_ones]
    assert max(seen) < COUNT
    site.send(QUEUES)
    for consumer, count in zip(slow_ones, seen, strict=True):
        received = consumer.received(count + QUEUES)
        assert {delivery.queue_offset for delivery in received[count:]} == {COUNT // QUEUES}


@pytest.mark.takes(25)
@pytest.mark.behaviour("S4-30", "S4-50")
def test_a_broadcasting_client_that_is_told_before_it_has_a_queue_is_told_again_and_moves(
    site: ResetSite,
) -> None:
    site.start_clients(CLIENT_LINES)
    site.send(COUNT)
    groups = {line: f"all-{line.replace('.', '_')}" for line in CLIENT_LINES}
    for line, group in groups.items():
        assert len(site.consumer(line, group, isBroadcasting=True).received(COUNT)) == COUNT
    mqadmin_each(site.names.address, *map(skip_backlog, groups.values()), home=site.home / "mqadmin")
    # Whoever comes now is told with its first heartbeat, which it sends before it looks for queues.
    late = {
        line: site.consumer(line, group, consumeMs=SLOW_MS, isBroadcasting=True)
        for line, group in groups.items()
    }
    for group in groups.values():
        wait_until(
            lambda group=group: site.states(group) == [ReceiptState.CONFIRMED] * 2,
            timeout_s=150,
        )
    seen = {line: len(consumer.received(0)) for line, consumer in late.items()}
    assert max(seen.values()) < COUNT
    site.send(QUEUES)
    for line, consumer in late.items():
        received = consumer.received(seen[line] + QUEUES)
        assert {delivery.queue_offset for delivery in received[seen[line] :]} == {COUNT // QUEUES}


@pytest.mark.skipif(
    not IS_ALL, reason="older releases, which are fetched and waited for: TANIST_SCENARIOS=all"
)
@pytest.mark.behaviour("S4-50")
@pytest.mark.parametrize("site", [False, True], indirect=True, ids=["by orders", "by answers to pulls"])
def test_a_broadcasting_client_of_an_older_release_does_not_move_and_is_said_to_have_failed(
    site: ResetSite,
) -> None:
    releases = (*CLIENT_LINES, *OLDER_CLIENTS)
    site.start_clients(releases)
    site.send(COUNT)
    group = "broadcasting"
    members = {line: site.consumer(line, group, isBroadcasting=True) for line in releases}
    groups = {line: f"clustered-{line.replace('.', '_')}" for line in releases}
    clustered = {line: site.consumer(line, groups[line]) for line in releases}
    for consumer in (*members.values(), *clustered.values()):
        assert len(consumer.received(COUNT)) == COUNT
    for each in groups.values():
        site.commit(each, COUNT // QUEUES)
    mqadmin_each(
        site.names.address,
        *map(reset_to_start, (group, *groups.values())),
        home=site.home / "mqadmin",
    )
    # Whoever waits for messages is seen to go on when one comes.
    wait_until(
        lambda: site.send(QUEUES) is None and ReceiptState.TOLD not in site.states(group),
        timeout_s=180,
        pause_s=5,
    )
    for line in releases:
        # In clustering mode all of them move.
        wait_until(lambda line=line: is_twice(clustered[line]))
        assert site.states(groups[line]) == [ReceiptState.CONFIRMED]
        if line in OLDER_CLIENTS:
            assert not is_twice(members[line])
        else:
            wait_until(lambda line=line: is_twice(members[line]))
    failed = [each for each in site.order(group).receipts if each.state is ReceiptState.FAILED]
    assert len(failed) == len(OLDER_CLIENTS)
    assert all("can not be moved in broadcasting mode" in each.reason for each in failed)


def is_twice(consumer: PushConsumer) -> bool:
    """Whether all messages from before a reset to the start have come twice."""
    counts = Counter(delivery.place for delivery in consumer.received(0))
    return all(
        counts[queue_id, offset] >= 2 for queue_id in range(QUEUES) for offset in range(COUNT // QUEUES)
    )
