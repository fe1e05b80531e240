"""What a master under a controller answers and shows: with its lease, without it, and after its reign."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tanist.broker import quick_send
from tanist.broker.handlers import messages, retries
from tanist.broker.handlers.send import SendHandler
from tanist.broker.reign import Reign
from tanist.errors import ConnectionLost, MQError, ResponseError
from tanist.ha.replicas import Replica
from tanist.ha.settings import HaSettings
from tanist.ha.sync_state import Propose
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.offsets import LogOffset
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder, encode_command
from tanist.protocol.headers.send import ConsumerSendBackRequest
from tanist.store import StoreSettings
from tests.support.clocks import FakeClock
from tests.support.conditions import turns, until
from tests.support.fake_connection import FakeConnection, decode_answer
from tests.support.messages import SMALL
from tests.support.played_slaves import PlayedSlaves
from tests.support.requests import TOPIC, send_request
from tests.support.working_broker import SYNC, WorkingBroker, working_broker

R = ResponseCode
PLAIN = "UNIQ_KEY\x01AB12\x02WAIT\x01true"
NO_WAIT = "UNIQ_KEY\x01AB12\x02WAIT\x01false"
GROUP = "GroupA"
LEASE_S = 3.0


class _Master(PlayedSlaves):
    """Replica 1, master of epoch 2, and one client that sends to it."""

    def __init__(self, broker: WorkingBroker, clock: FakeClock, ha: HaSettings, members: set[int]) -> None:
        super().__init__(ha)
        self.broker, self.state, self.clock = broker, broker.state, clock
        store = self.state.store
        store.dispatcher.confirmed_to = store.log.log_end
        self.state.writer.pending.use(self.double_write)
        self.reign = Reign.begin(
            1,
            epoch=2,
            members=members,
            set_epoch=1,
            store=store,
            flusher=broker.flusher,
            replicas=self.table,
            settings=ha,
            clock=clock,
        )
        self.state.writer.follow(self.reign)
        self.state.topics.put(TopicConfig(topic_name=TOPIC, read_queue_count=4, write_queue_count=4))
        self.state.groups.put(SubscriptionGroupConfig(group_name=GROUP))
        self.connection = FakeConnection()
        self.routes = {**SendHandler(self.state).routes(), **retries.routes(self.state)}

    def grant(self) -> None:
        self.reign.lease.on_granted(2, sent_s=self.clock.monotonic_s(), timeout_s=LEASE_S)

    def join(
        self, broker_id: int = 2, *, acked_to: int = 0, counts: bool = True, held_from: int = 0
    ) -> Replica:
        replica = super().join(broker_id, acked_to=acked_to, counts=counts, held_from=held_from)
        self.reign.on_replicas()
        return replica

    def ack(self, replica: Replica, acked_to: int) -> None:
        replica.acked_to = acked_to
        self.reign.on_replicas()

    def leave(self, replica: Replica) -> None:
        self.table.leave(replica)
        self.reign.on_replicas()

    @property
    def log_end(self) -> int:
        return self.state.store.log.log_end

    def ask(self, request: Command | None = None) -> None:
        request = request or send_request(properties=PLAIN)
        (received,) = FrameDecoder().feed(encode_command(request))
        try:
            answer = self.routes[request.code](received, self.connection)
        except ResponseError as refusal:
            answer = received.reply(refusal.code, remark=refusal.remark)
        if isinstance(answer, bytes):
            (answer,) = decode_answer(answer)
        if isinstance(answer, Command):
            self.connection.sent.append(answer)

    @property
    def members(self) -> list[int]:
        return sorted(self.reign.sync_state.members)

    def codes(self) -> list[int]:
        """What was answered since the last call."""
        return [answer.code for answer in self.connection.take_sent()]

    @property
    def shown(self) -> int:
        """How many messages a consumer finds."""
        queue = self.state.store.queues.find(TOPIC, 0)
        return 0 if queue is None else queue.max_offset


def run(
    root: Path,
    scenario: Callable[[_Master], Awaitable[None]],
    *,
    members: set[int],
    ha: HaSettings | None = None,
    store_settings: StoreSettings = SMALL,
) -> None:
    async def with_broker() -> None:
        clock = FakeClock()
        async with working_broker(root, store_settings=store_settings, clock=clock) as broker:
            await scenario(_Master(broker, clock, ha or HaSettings(), members))
            await turns()

    asyncio.run(with_broker())


@pytest.fixture(params=["c", "python"], autouse=True)
def _twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sends are taken by C if it is there, and else step by step."""
    if request.param == "python":
        monkeypatch.setattr(quick_send, "native", None)


class TestSet:
    def test_a_replica_whose_acks_do_not_count_is_in_no_set_and_waited_for_by_nobody(
        self, tmp_path: Path
    ) -> None:
        async def scenario(master: _Master) -> None:
            master.grant()
            stranger = master.join(2, acked_to=master.log_end, counts=False)
            master.ask()
            assert master.codes() == [R.SUCCESS]
            master.ack(stranger, master.log_end)
            assert master.reign._proposal is None
            assert master.reign.sync_state.counted == {1}

        run(tmp_path, scenario, members={1})

    def test_a_member_that_comes_back_with_acks_that_do_not_count_leaves_the_set(
        self, tmp_path: Path
    ) -> None:
        async def scenario(master: _Master) -> None:
            master.join(2, acked_to=master.log_end, counts=False)
            assert master.reign._proposal == Propose(frozenset({1}), 1)
            assert not master.reign.sync_state.is_linked

        run(tmp_path, scenario, members={1, 2})

    @pytest.mark.behaviour("S2-51")
    def test_a_send_is_answered_and_shown_when_all_of_the_set_hold_it(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.grant()
            slaves = [master.join(broker_id, acked_to=master.log_end) for broker_id in (2, 3)]
            master.ask()
            master.ack(slaves[0], master.log_end)
            await turns()
            assert (master.codes(), master.shown) == ([], 0)
            master.ack(slaves[1], master.log_end)
            assert master.codes() == [R.SUCCESS]
            await turns()
            assert master.shown == 1

        run(tmp_path, scenario, members={1, 2, 3})

    def test_a_master_that_is_alone_answers_and_shows_at_once(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.ask()
            assert master.codes() == [R.SUCCESS]
            await turns()
            assert master.shown == 1

        run(tmp_path, scenario, members={1})

    def test_one_that_flushes_first_shows_what_is_on_disk(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.broker.disk.may_sync.clear()
            master.broker.start_flushing()
            master.ask(send_request(properties=PLAIN, is_one_way=True))
            # The answer of a one-way send goes nowhere.
            master.connection.take_sent()
            await turns()
            assert master.shown == 0
            master.broker.disk.may_sync.set()
            await until(lambda: master.shown == 1)
            master.ask()
            await until(lambda: bool(master.connection.sent))
            assert master.codes() == [R.SUCCESS]
            await until(lambda: master.shown == 2)

        run(tmp_path, scenario, members={1}, store_settings=SYNC)

    def test_too_small_a_set_takes_nothing(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.grant()
            before = master.log_end
            master.ask()
            (answer,) = master.connection.take_sent()
            assert answer.code == R.SYSTEM_ERROR
            assert str(answer.remark).startswith("IN_SYNC_REPLICAS_NOT_ENOUGH: 1 of the 2")
            assert master.log_end == before

        run(tmp_path, scenario, members={1}, ha=HaSettings(min_in_sync_replicas=2))

    def test_without_all_acks_fewer_are_waited_for_and_consumers_wait_for_all(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.grant()
            slaves = [master.join(broker_id, acked_to=master.log_end) for broker_id in (2, 3)]
            master.ask()
            master.ack(slaves[0], master.log_end)
            assert master.codes() == [R.SUCCESS]
            await turns()
            assert master.shown == 0
            master.ack(slaves[1], master.log_end)
            await turns()
            assert master.shown == 1

        run(tmp_path, scenario, members={1, 2, 3}, ha=HaSettings(all_ack_in_sync_state_set=False))

    def test_a_message_that_is_not_confirmed_can_not_be_looked_at(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.grant()
            slave = master.join(acked_to=master.log_end)
            place = master.log_end
            master.ask()
            with pytest.raises(ResponseError):
                messages.find_message(master.state, place)
            master.ack(slave, master.log_end)
            assert messages.find_message(master.state, place)

        run(tmp_path, scenario, members={1, 2})


class TestLease:
    @pytest.mark.behaviour("S2-53")
    @pytest.mark.parametrize("properties", [PLAIN, NO_WAIT])
    def test_without_it_and_without_a_replica_nothing_is_written(
        self, tmp_path: Path, properties: str
    ) -> None:
        async def scenario(master: _Master) -> None:
            master.grant()
            slave = master.join(acked_to=master.log_end)
            master.ask()
            master.ack(slave, master.log_end)
            assert master.codes() == [R.SUCCESS]
            master.leave(slave)
            master.clock.advance_ms(2_800)
            before = master.log_end
            master.ask(send_request(properties=properties))
            (answer,) = master.connection.take_sent()
            assert answer.code == R.SERVICE_NOT_AVAILABLE
            assert "no controller has answered for 2.8 s, and replica 2" in str(answer.remark)
            assert master.log_end == before
            # It comes back by itself.
            master.grant()
            master.ask(send_request(properties=NO_WAIT))
            assert master.codes() == [R.SUCCESS]

        run(tmp_path, scenario, members={1, 2})

    @pytest.mark.behaviour("S2-54")
    def test_without_it_a_group_whose_replicas_are_connected_goes_on(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.clock.advance_ms(3_600_000)
            slave = master.join(acked_to=master.log_end)
            master.ask()
            master.ack(slave, master.log_end)
            assert master.codes() == [R.SUCCESS]

        run(tmp_path, scenario, members={1, 2})

    @pytest.mark.behaviour("S2-53")
    def test_a_send_that_fewer_hold_is_no_success_if_the_lease_ended_meanwhile(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.grant()
            slaves = [master.join(broker_id, acked_to=master.log_end) for broker_id in (2, 3)]
            master.ask()
            # The process was stopped, and finds an ack when it wakes.
            master.clock.advance_ms(2_701)
            master.ack(slaves[0], master.log_end)
            assert master.codes() == [R.FLUSH_SLAVE_TIMEOUT]
            assert master.state.writer.pending.failed[R.FLUSH_SLAVE_TIMEOUT] == 1

        run(tmp_path, scenario, members={1, 2, 3}, ha=HaSettings(all_ack_in_sync_state_set=False))

    def test_a_send_that_waits_for_nobody_passes_too(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.grant()
            master.ask()
            assert master.codes() == [R.SUCCESS]
            master.clock.advance_ms(2_701)
            master.ask()
            assert master.codes() == [R.SERVICE_NOT_AVAILABLE]

        ha = HaSettings(all_ack_in_sync_state_set=False, in_sync_replicas=1)
        run(tmp_path, scenario, members={1, 2}, ha=ha)

    def test_a_consumer_is_told_that_what_it_sent_back_is_not_confirmed(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.grant()
            slave = master.join(acked_to=master.log_end)
            place = master.log_end
            master.ask()
            master.ack(slave, master.log_end)
            header = ConsumerSendBackRequest(log_offset=LogOffset(place), group=GROUP, delay_level=1)
            master.ask(Command.request(RequestCode.CONSUMER_SEND_MSG_BACK, header))
            master.state.writer.follow(None)
            assert master.codes() == [R.SUCCESS, R.FLUSH_SLAVE_TIMEOUT]

        run(tmp_path, scenario, members={1, 2})


class TestEnd:
    def test_who_waits_when_the_reign_ends_is_told_so(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.grant()
            slave = master.join(acked_to=master.log_end)
            master.ask()
            master.state.writer.follow(None)
            assert master.codes() == [R.FLUSH_SLAVE_TIMEOUT]
            confirmed_to = master.state.store.dispatcher.confirmed_to
            master.ack(slave, master.log_end)
            master.reign.hold()
            await turns()
            assert master.state.store.dispatcher.confirmed_to == confirmed_to
            assert master.shown == 0

        run(tmp_path, scenario, members={1, 2})

    def test_also_who_comes_from_the_disk_later(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.grant()
            master.ask()
            master.state.writer.follow(None)
            master.broker.start_flushing()
            await until(lambda: bool(master.connection.sent))
            assert master.codes() == [R.FLUSH_SLAVE_TIMEOUT]

        run(tmp_path, scenario, members={1}, store_settings=SYNC)


class _Keeper:
    """Answers proposals as it is told to."""

    def __init__(self) -> None:
        self.current = SyncStateSet(broker_ids=frozenset({1}), epoch=1)
        self.failures: list[MQError] = []
        self.asked: list[Propose] = []

    async def alter_sync_state_set(self, proposal: Propose, *, epoch: int) -> SyncStateSet:
        assert epoch == 2
        self.asked.append(proposal)
        if self.failures:
            raise self.failures.pop(0)
        self.current = SyncStateSet(broker_ids=proposal.members, epoch=proposal.set_epoch + 1)
        return self.current

    async def sync_state_set(self, *, epoch: int) -> SyncStateSet | None:
        assert epoch == 2
        return self.current


class TestProposals:
    def _run(self, root: Path, keeper: _Keeper, scenario: Callable[[_Master], Awaitable[None]]) -> None:
        async def kept(master: _Master) -> None:
            running = master.broker.tasks.create_task(master.reign.run(keeper))
            await scenario(master)
            running.cancel()

        run(root, kept, members={1}, ha=HaSettings(ha_max_time_slave_not_catchup=40))

    @pytest.mark.behaviour("S2-50")
    def test_who_comes_and_goes_is_in_the_set_and_out_of_it(self, tmp_path: Path) -> None:
        keeper = _Keeper()

        async def scenario(master: _Master) -> None:
            slave = master.join(acked_to=master.log_end)
            await until(lambda: master.members == [1, 2])
            master.ask()
            master.leave(slave)
            assert master.codes() == []
            # The answer waits for the controller, no longer for the slave.
            await until(lambda: bool(master.connection.sent))
            assert master.codes() == [R.SUCCESS]
            assert keeper.asked == [Propose(frozenset({1, 2}), 1), Propose(frozenset({1}), 2)]

        self._run(tmp_path, keeper, scenario)

    @pytest.mark.parametrize(
        "failure",
        [
            ConnectionLost("10.0.0.9:9878", "it is gone"),
            ResponseError(R.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH, "older"),
        ],
    )
    def test_when_one_fails_the_controllers_set_is_asked_for(self, tmp_path: Path, failure: MQError) -> None:
        keeper = _Keeper()
        keeper.failures.append(failure)
        keeper.current = SyncStateSet(broker_ids=frozenset({1, 3}), epoch=4)

        async def scenario(master: _Master) -> None:
            master.join(acked_to=master.log_end)
            await until(lambda: len(keeper.asked) == 2)
            assert keeper.asked[1] == Propose(frozenset({1, 2, 3}), 4)

        self._run(tmp_path, keeper, scenario)

    def test_who_is_in_the_set_by_an_earlier_try_counts_when_the_next_one_is_refused(
        self, tmp_path: Path
    ) -> None:
        class _Taken(_Keeper):
            async def alter_sync_state_set(self, proposal: Propose, *, epoch: int) -> SyncStateSet:
                try:
                    return await super().alter_sync_state_set(proposal, epoch=epoch)
                finally:
                    await may_answer.wait()

        may_answer, keeper = asyncio.Event(), _Taken()
        keeper.failures.append(ResponseError(R.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH, "older"))
        keeper.current = SyncStateSet(broker_ids=frozenset({1, 2}), epoch=2)

        async def scenario(master: _Master) -> None:
            slave = master.join(acked_to=master.log_end)
            await until(lambda: bool(keeper.asked))
            master.ask()
            may_answer.set()
            await until(lambda: master.members == [1, 2])
            await turns()
            assert master.codes() == []
            master.ack(slave, master.log_end)
            assert master.codes() == [R.SUCCESS]

        self._run(tmp_path, keeper, scenario)

    def test_who_was_proposed_and_may_be_master_by_now_counts(self, tmp_path: Path) -> None:
        class _Deposing(_Keeper):
            async def sync_state_set(self, *, epoch: int) -> SyncStateSet | None:
                assert epoch == 2

        keeper = _Deposing()
        keeper.failures += [ResponseError(R.CONTROLLER_FENCED_MASTER_EPOCH, "epoch 3")] * 9

        async def scenario(master: _Master) -> None:
            master.join(acked_to=master.log_end)
            await until(lambda: bool(keeper.asked))
            await turns()
            master.ask()
            await turns()
            assert master.codes() == []
            assert master.reign.sync_state.counted == {1, 2}

        self._run(tmp_path, keeper, scenario)

    def test_one_that_is_behind_is_seen_by_the_clock(self, tmp_path: Path) -> None:
        keeper = _Keeper()

        async def scenario(master: _Master) -> None:
            master.join(acked_to=master.log_end)
            await until(lambda: master.members == [1, 2])
            master.ask()

            def has_left() -> bool:
                master.clock.advance_ms(10)
                return master.members == [1]

            await until(has_left)
            assert master.codes() == [R.SUCCESS]

        self._run(tmp_path, keeper, scenario)
