"""What is answered by a SYNC_MASTER, and when: each request that writes a message for a client."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tanist.broker import quick_send
from tanist.broker.consumer_group import Client
from tanist.broker.handlers import replies, retries, transactions
from tanist.broker.handlers.send import SendHandler
from tanist.broker.transactions.keeper import TransactionKeeper
from tanist.errors import ResponseError
from tanist.ha.settings import HaSettings
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.message import Message
from tanist.model.offsets import LogOffset
from tanist.model.topics import HALF_TOPIC, TopicConfig, reply_topic, retry_topic
from tanist.protocol import header_json, layout
from tanist.protocol.batch import encode_batch
from tanist.protocol.bodies.client import HeartbeatData, ProducerData
from tanist.protocol.codes import HeaderEncoding, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder, encode_command
from tanist.protocol.headers.send import ConsumerSendBackRequest, SendMessageResponse
from tanist.remoting import RemotingServer
from tests.support.broker_tables import SETTINGS
from tests.support.conditions import turns, until
from tests.support.fake_connection import FakeConnection, decode_answer
from tests.support.partners import require
from tests.support.played_slaves import PlayedSlaves
from tests.support.requests import TOPIC, send_request
from tests.support.working_broker import WorkingBroker, working_broker

R = ResponseCode
PLAIN = "UNIQ_KEY\x01AB12\x02TAGS\x01red\x02WAIT\x01true"
NO_WAIT = "UNIQ_KEY\x01AB12\x02WAIT\x01false"
GROUP = "GroupA"


@pytest.fixture(params=["c", "python"])
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For sends, which C takes if it can."""
    if request.param == "python":
        for module in (quick_send, header_json, layout):
            monkeypatch.setattr(module, "native", None)
    else:
        require("native")


class _Master:
    """A SYNC_MASTER's handlers, asked by one client, with a slave that acks when a test says so."""

    def __init__(self, broker: WorkingBroker, ha: HaSettings) -> None:
        self.broker = broker
        self.state = broker.state
        self.slaves = PlayedSlaves(ha)
        self.state.writer.pending.use(self.slaves.double_write)
        self.slave = self.slaves.join(acked_to=self.log_end)
        self.connection = FakeConnection()
        self.keeper = TransactionKeeper(self.state)
        self.keeper.open()
        self.routes = {
            **SendHandler(self.state).routes(),
            **retries.routes(self.state),
            **replies.routes(self.state),
            **transactions.routes(self.state, self.keeper),
        }
        self.state.topics.put(TopicConfig(topic_name=TOPIC, read_queue_count=4, write_queue_count=4))
        # So that the next send may be quick.
        self.ask(send_request(properties=NO_WAIT))

    @property
    def log_end(self) -> int:
        return self.state.store.log.log_end

    def ask(self, request: Command) -> Command | None:
        """The answer, if it comes at once. The request went over the wire."""
        request.opaque = 7
        (received,) = FrameDecoder().feed(encode_command(request))
        try:
            answer = self.routes[request.code](received, self.connection)
        except ResponseError as refusal:
            return received.reply(refusal.code, remark=refusal.remark)
        if answer is None or received.is_one_way:
            return None
        return answer if isinstance(answer, Command) else decode_answer(answer)[0]

    def late(self) -> list[Command]:
        """What was answered since the last call."""
        return self.connection.take_sent()

    def ack(self) -> None:
        self.slaves.ack(self.slave, self.log_end)

    def assert_waits(self, request: Command) -> Command:
        """Ask; nothing is answered before the slave has acked the last byte, and then at once."""
        before = self.log_end
        assert self.ask(request) is None
        assert self.log_end > before
        self.slaves.ack(self.slave, self.log_end - 1)
        assert self.late() == []
        self.ack()
        (answer,) = self.late()
        assert (answer.opaque, answer.is_response, answer.code) == (7, True, R.SUCCESS)
        return answer


@asynccontextmanager
async def master(root: Path, ha: HaSettings | None = None) -> AsyncGenerator[_Master]:
    async with working_broker(root, SETTINGS) as broker:
        yield _Master(broker, ha or HaSettings())
        # What was appended is dispatched before the store goes.
        await turns()


def run(root: Path, scenario: Callable[[_Master], Awaitable[None]], ha: HaSettings | None = None) -> None:
    async def with_master() -> None:
        async with master(root, ha) as one:
            await scenario(one)

    asyncio.run(with_master())


@pytest.mark.usefixtures("twin")
class TestSends:
    @pytest.mark.behaviour("S1-106", "S1-108")
    @pytest.mark.parametrize("encoding", HeaderEncoding)
    def test_a_send_is_answered_when_a_slave_holds_it(self, tmp_path: Path, encoding: HeaderEncoding) -> None:
        async def scenario(master: _Master) -> None:
            request = send_request(properties=PLAIN)
            request.encoding = encoding
            answer = master.assert_waits(request)
            assert answer.encoding is encoding
            place = answer.header(SendMessageResponse)
            assert (place.queue_id, place.queue_offset, place.transaction_id) == (0, 1, "AB12")

        run(tmp_path, scenario)

    @pytest.mark.behaviour("S1-109")
    @pytest.mark.parametrize("encoding", HeaderEncoding)
    def test_without_a_slave_it_is_stored_and_the_answer_says_both(
        self, tmp_path: Path, encoding: HeaderEncoding
    ) -> None:
        async def scenario(master: _Master) -> None:
            master.slaves.leave(master.slave)
            request = send_request(b"stored", properties=PLAIN)
            request.encoding = encoding
            assert master.ask(request) is None
            (answer,) = master.late()
            assert (answer.code, answer.opaque, answer.encoding) == (R.SLAVE_NOT_AVAILABLE, 7, encoding)
            assert answer.header(SendMessageResponse).queue_offset == 1
            await turns()
            assert bytes(master.state.store.records(TOPIC, 0, 1, 1)[0].body) == b"stored"

        run(tmp_path, scenario)

    @pytest.mark.behaviour("S1-106")
    def test_who_does_not_ask_to_wait_does_not(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            answer = master.ask(send_request(properties=NO_WAIT))
            assert answer is not None
            assert answer.code == R.SUCCESS
            # The same words in a body mean nothing.
            master.assert_waits(send_request(b"a WAIT\x01false b", properties=PLAIN))

        run(tmp_path, scenario)

    def test_a_one_way_send_waits_for_nobody(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            before = master.log_end
            assert master.ask(send_request(is_one_way=True, properties=PLAIN)) is None
            assert master.log_end > before
            assert len(master.state.writer.pending) == 0
            master.ack()
            assert master.late() == []

        run(tmp_path, scenario)

    def test_a_batch_waits_until_its_last_message_is_held(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            packed = encode_batch([(0, b"one", b""), (0, b"two", b"")])
            answer = master.assert_waits(send_request(packed, is_batch=True, properties="WAIT\x01true"))
            assert answer.header(SendMessageResponse).msg_id.count(",") == 1

        run(tmp_path, scenario)

    def test_the_half_of_a_transaction_waits(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.assert_waits(send_request(properties=PLAIN + "\x02TRAN_MSG\x01true\x02PGROUP\x01P"))
            await turns()
            assert len(master.state.store.records(HALF_TOPIC, 0, 0, 10)) == 1

        run(tmp_path, scenario)

    @pytest.mark.parametrize("is_one_way", [False, True])
    def test_with_too_few_in_step_nothing_is_written(self, tmp_path: Path, is_one_way: bool) -> None:
        async def scenario(master: _Master) -> None:
            master.assert_waits(send_request(properties=PLAIN))
            master.slaves.leave(master.slave)
            before = master.log_end
            answer = master.ask(send_request(properties=PLAIN, is_one_way=is_one_way))
            assert answer is not None
            assert answer.code == R.SYSTEM_ERROR
            assert (answer.remark or "").startswith("IN_SYNC_REPLICAS_NOT_ENOUGH")
            assert master.log_end == before
            # Who does not care for replicas is served.
            answer = master.ask(send_request(properties=NO_WAIT))
            assert answer is not None
            assert answer.code == R.SUCCESS

        run(tmp_path, scenario, HaSettings(min_in_sync_replicas=2))

    @pytest.mark.behaviour("S1-120")
    def test_what_one_ack_releases_leaves_at_once_and_in_order(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            server = RemotingServer(master.routes)
            await server.start("127.0.0.1", 0)
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                requests = [send_request(properties=PLAIN) for _ in range(100)]
                for number, request in enumerate(requests):
                    request.opaque = number
                writer.write(b"".join(map(encode_command, requests)))
                await until(lambda: len(master.state.writer.pending) == 100)
                master.ack()
                answers = decode_answer(await reader.read(1 << 20))
                assert [(answer.opaque, answer.code) for answer in answers] == [
                    (number, R.SUCCESS) for number in range(100)
                ]
                writer.close()
                await writer.wait_closed()
            finally:
                await server.close(1)

        run(tmp_path, scenario)


def test_a_send_that_waits_takes_the_quick_way_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("native")

    async def scenario(master: _Master) -> None:
        def fail(*_arguments: object) -> None:
            raise AssertionError("step by step")

        monkeypatch.setattr(SendHandler, "_send", fail)
        master.assert_waits(send_request(properties=PLAIN))

    run(tmp_path, scenario)


class TestOthers:
    def test_a_message_that_is_sent_back_waits_though_its_copy_says_otherwise(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.state.groups.put(SubscriptionGroupConfig(group_name=GROUP))
            await turns()
            master.assert_waits(_sending_back(master))

        run(tmp_path, scenario)

    def test_what_is_sent_back_is_stored_also_without_a_slave_and_not_to_be_sent_again(
        self, tmp_path: Path
    ) -> None:
        async def scenario(master: _Master) -> None:
            master.state.groups.put(SubscriptionGroupConfig(group_name=GROUP))
            await turns()
            request = _sending_back(master)
            master.slaves.leave(master.slave)
            assert master.ask(request) is None
            assert [answer.code for answer in master.late()] == [R.SUCCESS]
            assert master.state.writer.pending.failed == {R.SLAVE_NOT_AVAILABLE: 1}

        run(tmp_path, scenario)

    def test_a_commit_waits_and_a_rollback_has_nothing_to_wait_for(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            for outcome in (8, 12):
                master.assert_waits(send_request(properties=PLAIN + "\x02TRAN_MSG\x01true\x02PGROUP\x01P"))
                await turns()
                end = _ending(master, outcome)
                if outcome == 8:
                    master.assert_waits(end)
                else:
                    answer = master.ask(end)
                    assert answer is not None
                    assert answer.code == R.SUCCESS

        run(tmp_path, scenario)

    def test_a_commit_is_refused_with_too_few_in_step_and_can_be_tried_again(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.assert_waits(send_request(properties=PLAIN + "\x02TRAN_MSG\x01true\x02PGROUP\x01P"))
            await turns()
            master.slaves.leave(master.slave)
            answer = master.ask(_ending(master, 8))
            assert answer is not None
            assert answer.code == R.SYSTEM_ERROR
            master.slave = master.slaves.join(acked_to=master.log_end)
            master.assert_waits(_ending(master, 8))

        run(tmp_path, scenario, HaSettings(min_in_sync_replicas=2))

    def test_a_reply_is_answered_when_it_is_taken_and_its_copy_is_held(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            asker = _Asker("10.0.0.5:40112")
            heartbeat = HeartbeatData(client_id="asker", producer_data_set=[ProducerData(group_name="P")])
            master.state.clients.on_heartbeat(Client(asker, "asker", "JAVA", 1), heartbeat, now_ms=0)
            request = send_request(
                topic=reply_topic(SETTINGS.broker_cluster_name), properties="REPLY_TO_CLIENT\x01asker"
            )
            request.code = RequestCode.SEND_REPLY_MESSAGE_V2
            assert master.ask(request) is None
            asker.taken.set_result(request.reply())
            await turns()
            assert master.late() == []
            master.ack()
            assert [(answer.opaque, answer.code) for answer in master.late()] == [(7, R.SUCCESS)]

        run(tmp_path, scenario)

    def test_a_message_of_the_broker_itself_waits_for_nobody(self, tmp_path: Path) -> None:
        async def scenario(master: _Master) -> None:
            master.state.writer.append(Message(topic=retry_topic(GROUP), queue_id=0, body=b"delivered"))
            assert len(master.state.writer.pending) == 0

        run(tmp_path, scenario)


class _Asker(FakeConnection):
    """The client that waits for a reply, and takes it when a test says so."""

    __slots__ = ("taken",)

    def request(self, command: Command, timeout_s: float) -> asyncio.Future[Command]:
        self.taken: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        return self.taken


def _sending_back(master: _Master) -> Command:
    (record,) = master.state.store.records(TOPIC, 0, 0, 1)
    header = ConsumerSendBackRequest(log_offset=LogOffset(record.log_offset), group=GROUP, delay_level=0)
    return Command.request(RequestCode.CONSUMER_SEND_MSG_BACK, header)


def _ending(master: _Master, outcome: int) -> Command:
    half = master.state.store.records(HALF_TOPIC, 0, 0, 10)[-1]
    ext = {
        "producerGroup": "P",
        "tranStateTableOffset": str(half.queue_offset),
        "commitLogOffset": str(half.log_offset),
        "commitOrRollback": str(outcome),
        "fromTransactionCheck": "false",
        "msgId": "AB12",
    }
    return Command.request(RequestCode.END_TRANSACTION, ext=ext)
