"""What becomes of consumers when their broker is read no more."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tanist.broker.handlers import clients
from tanist.broker.slave_consume import gate as gate_module
from tanist.broker.slave_consume.gate import ReadGate
from tanist.broker.slave_consume.live_view import HeldLock, LiveView
from tanist.broker.state import BrokerState
from tanist.clock import steady_ms
from tanist.model.route import MessageQueue
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.client import ConsumerList
from tanist.protocol.codes import RequestCode
from tanist.protocol.headers.common import ConsumerGroupRequest
from tanist.protocol.response_errors import NotReadable
from tests.support.broker_tables import Asker, join, open_state
from tests.support.conditions import until
from tests.support.fake_connection import FakeConnection
from tests.support.read_rights import NOBODY_KNOWN, OTHER, OTHER_IS_READ, OWN, SLAVE_IS_READ, GivenRight

Q0 = MessageQueue(topic="Orders", broker_name="broker-a", queue_id=0)
VIEW = LiveView(
    members={"billing": ("a", "b")}, locks={"billing": (HeldLock(queue=Q0, client_id="b", left_ms=60_000),)}
)


class _Gated:
    """A gate over a broker's tables; the pulls that it refuses are written down."""

    def __init__(self, root: Path) -> None:
        self.state: BrokerState = open_state(root)
        self.right = self.state.read_right = GivenRight(SLAVE_IS_READ)
        self.refused: list[Exception] = []
        self.are_relayed: list[bool] = []
        self.gate = ReadGate(self.state, self._refuse)
        self.right.listeners.append(self.gate.on_permitted)
        self.asker = Asker(clients.routes(self.state))

    def _refuse(self, error: Exception, *, is_relayed: bool) -> None:
        self.refused.append(error)
        self.are_relayed.append(is_relayed)

    def members(self) -> list[str]:
        answer = self.asker.ask(
            RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupRequest(consumer_group="billing")
        )
        return decode_java_json(answer.body, ConsumerList).client_ids


def run(root: Path, scenario: Callable[[_Gated], Awaitable[None]]) -> None:
    async def with_gate() -> None:
        gated = _Gated(root)
        try:
            await scenario(gated)
        finally:
            gated.gate.close()
            gated.state.store.close()

    asyncio.run(with_gate())


def test_pulls_are_refused_and_then_the_connections_of_consumers_are_closed(tmp_path: Path) -> None:
    async def scenario(gated: _Gated) -> None:
        connection = FakeConnection()
        join(gated.state, "billing", client_id="a", connection=connection, language="PYTHON")
        gated.right.give(OTHER_IS_READ)
        assert connection.is_open
        await until(lambda: not connection.is_open)
        assert connection.closed_for == f"{OWN} is not readable: another one is read"
        (refusal,) = gated.refused
        assert isinstance(refusal, NotReadable)
        assert (refusal.reader_address, refusal.term) == (OTHER, 2)

    run(tmp_path, scenario)


def test_nobody_is_sent_away_twice_and_nobody_who_may_stay(tmp_path: Path) -> None:
    async def scenario(gated: _Gated) -> None:
        gated.right.give(SLAVE_IS_READ._replace(term=3))
        assert gated.refused == []
        gated.right.give(OTHER_IS_READ)
        gated.right.give(OTHER_IS_READ._replace(term=3))
        assert len(gated.refused) == 1
        gated.right.give(SLAVE_IS_READ)
        gated.right.give(OTHER_IS_READ)
        assert len(gated.refused) == 2

    run(tmp_path, scenario)


def test_who_consumed_here_is_known_after_they_were_sent_away_and_they_hold_nothing(tmp_path: Path) -> None:
    async def scenario(gated: _Gated) -> None:
        for client_id in ("a", "b"):
            join(gated.state, "billing", client_id=client_id, language="PYTHON")
        gated.state.locks.lock("billing", [Q0], client_id="b", now_ms=steady_ms(gated.state.clock))
        assert gated.gate.view() == VIEW
        gated.right.give(OTHER_IS_READ)
        assert gated.gate.view() == VIEW
        assert len(gated.state.locks) == 0
        gated.right.give(SLAVE_IS_READ)
        assert gated.gate.view() == LiveView()

    run(tmp_path, scenario)


def test_stock_clients_stay_and_are_members_again_when_the_broker_is_read_again(tmp_path: Path) -> None:
    async def scenario(gated: _Gated) -> None:
        stock, ours = FakeConnection(), FakeConnection()
        join(gated.state, "billing", client_id="stock", connection=stock)
        join(gated.state, "billing", client_id="ours", connection=ours, language="PYTHON")
        gated.right.give(OTHER_IS_READ)
        assert gated.are_relayed == [True]
        await until(lambda: not ours.is_open)
        assert stock.is_open
        # Nobody is told of who comes and goes here meanwhile.
        join(gated.state, "billing", client_id="another")
        assert stock.take_sent() == []
        gated.right.give(SLAVE_IS_READ)
        assert gated.members() == ["another", "stock"]

    run(tmp_path, scenario)


def test_stock_clients_go_too_where_nobody_is_known_who_is_read(tmp_path: Path) -> None:
    async def scenario(gated: _Gated) -> None:
        stock = FakeConnection()
        join(gated.state, "billing", client_id="stock", connection=stock)
        gated.right.give(NOBODY_KNOWN)
        assert gated.are_relayed == [False]
        await until(lambda: not stock.is_open)

    run(tmp_path, scenario)


def test_who_comes_by_way_of_another_broker_is_sent_back_there(tmp_path: Path) -> None:
    async def scenario(gated: _Gated) -> None:
        relayed, direct = FakeConnection(), FakeConnection()
        join(gated.state, "billing", client_id="relayed", connection=relayed)
        join(gated.state, "billing", client_id="direct", connection=direct)
        gated.gate.is_from_relay = lambda connection: connection is relayed
        gated.right.give(OTHER_IS_READ)
        await until(lambda: not relayed.is_open)
        assert direct.is_open

    run(tmp_path, scenario)


def test_the_groups_of_noted_members_are_made_when_a_master_is_read(tmp_path: Path) -> None:
    async def scenario(gated: _Gated) -> None:
        gated.right.give(OTHER_IS_READ)
        join(gated.state, "billing", client_id="stock")
        assert gated.state.groups.find("billing") is None
        gated.right.give(SLAVE_IS_READ)
        assert gated.state.groups.find("billing") is not None

    run(tmp_path, scenario)


def test_who_consumed_elsewhere_keeps_its_queues_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_module, "EXPECTED_S", 0.05)

    async def scenario(gated: _Gated) -> None:
        gated.gate.take_view(VIEW)
        here = FakeConnection()
        join(gated.state, "billing", client_id="a", connection=here)
        assert gated.members() == ["a", "b"]
        now_ms = steady_ms(gated.state.clock)
        assert gated.state.locks.lock("billing", [Q0], client_id="a", now_ms=now_ms) == []
        # It is told when the other one has not come, and asks for the list again.
        await until(lambda: len(here.sent) == 1)
        assert here.sent[0].code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
        assert gated.members() == ["a"]

    run(tmp_path, scenario)


def test_nobody_is_expected_where_nobody_may_come(tmp_path: Path) -> None:
    async def scenario(gated: _Gated) -> None:
        gated.gate.take_view(VIEW)
        gated.right.give(OTHER_IS_READ)
        gated.right.give(SLAVE_IS_READ)
        join(gated.state, "billing", client_id="a")
        assert gated.members() == ["a"]

    run(tmp_path, scenario)
