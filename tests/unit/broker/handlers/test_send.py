import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from tanist.broker import pending as pending_module
from tanist.broker import quick_send
from tanist.broker.handlers.send import SendHandler
from tanist.broker.settings import BrokerSettings
from tanist.errors import DiskFull, ResponseError
from tanist.model.topics import HALF_TOPIC, RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC, TopicConfig
from tanist.protocol import header_json, layout
from tanist.protocol.batch import encode_batch
from tanist.protocol.codes import FLAG_ONE_WAY, HeaderEncoding, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder, encode_command
from tanist.protocol.headers.send import SendMessageRequest, SendMessageRequestV2, SendMessageResponse
from tanist.protocol.message_id import decode_offset_id
from tanist.protocol.properties import decode_properties
from tanist.protocol.record import Record
from tanist.store import StoreSettings
from tests.support.broker_tables import SETTINGS
from tests.support.conditions import turns, until
from tests.support.fake_connection import FakeConnection
from tests.support.messages import SMALL
from tests.support.partners import require
from tests.support.working_broker import SYNC, WorkingBroker, working_broker

C = ResponseCode
T = "TopicA"


@pytest.fixture(params=["express", "c", "python"], autouse=True)
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here is for all of them."""
    monkeypatch.setattr(_Sending, "is_express", request.param == "express")
    if request.param == "python":
        for module in (quick_send, header_json, layout):
            monkeypatch.setattr(module, "native", None)
    else:
        require("native")


class _Sending:
    """The send handlers of a working broker, asked as a connection asks them."""

    is_express = False
    """Whether they are offered the frame before it is cut."""

    def __init__(self, broker: WorkingBroker) -> None:
        self.broker = broker
        self.state = broker.state
        self.connection = FakeConnection()
        self._handler = SendHandler(broker.state)
        self._routes = self._handler.routes()

    def send(
        self,
        body: bytes = b"body",
        *,
        code: RequestCode = RequestCode.SEND_MESSAGE_V2,
        encoding: HeaderEncoding = HeaderEncoding.JSON,
        is_one_way: bool = False,
        **fields: object,
    ) -> Command | None:
        """The answer, or None if there is none now. The request went over the wire, as views of one read."""
        kind = SendMessageRequest if code is RequestCode.SEND_MESSAGE else SendMessageRequestV2
        given: dict[str, object] = {
            "producer_group": "P",
            "topic": T,
            "default_topic": "TBW102",
            "default_topic_queue_count": 4,
            "queue_id": 0,
            "sys_flag": 0,
            "born_timestamp_ms": 1,
            "flag": 0,
            **fields,
        }
        request = Command.request(
            code, msgspec.convert(given, _Fields).to(kind), body=body, opaque=7, encoding=encoding
        )
        if is_one_way:
            request.flag |= FLAG_ONE_WAY
        frame = encode_command(request)
        (received,) = FrameDecoder().feed(frame)
        try:
            answer = self._handler.express(frame, self.connection) if self.is_express else None
            if answer is None:
                answer = self._routes[code](received, self.connection)
        except ResponseError as refusal:
            return received.reply(refusal.code, remark=refusal.remark)
        if not answer:
            return None
        assert isinstance(answer, bytes)
        (shown,) = FrameDecoder().feed(answer)
        assert (shown.opaque, shown.is_response) == (7, True)
        return shown

    def code(self, body: bytes = b"body", **fields: object) -> int:
        answer = self.send(body, **fields)  # pyright: ignore[reportArgumentType]
        assert answer is not None
        return answer.code

    async def records(self, topic: str = T, queue_id: int = 0) -> list[Record]:
        await asyncio.sleep(0)
        return self.state.store.records(topic, queue_id, 0, 100)


class _Fields(msgspec.Struct, kw_only=True):
    """The fields of a send under their Python names."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_count: int
    queue_id: int
    sys_flag: int
    born_timestamp_ms: int
    flag: int
    properties: str | None = None
    reconsume_times: int | None = None
    is_batch: bool | None = None

    def to(self, kind: type[SendMessageRequest]) -> SendMessageRequest:
        return kind(**msgspec.structs.asdict(self))


def run(
    root: Path,
    scenario: Callable[[_Sending], Awaitable[None]],
    *,
    settings: BrokerSettings = SETTINGS,
    store_settings: StoreSettings = SMALL,
) -> None:
    async def with_broker() -> None:
        async with working_broker(root, settings, store_settings=store_settings) as broker:
            broker.state.topics.put(TopicConfig(topic_name=T, read_queue_count=4, write_queue_count=4))
            await scenario(_Sending(broker))

    asyncio.run(with_broker())


@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2])
@pytest.mark.parametrize("encoding", list(HeaderEncoding))
def test_a_message_is_stored_and_the_answer_says_where(
    tmp_path: Path, code: RequestCode, encoding: HeaderEncoding
) -> None:
    async def scenario(sending: _Sending) -> None:
        sending.send(b"first", code=code)
        answer = sending.send(
            b"second", code=code, encoding=encoding, flag=5, properties="UNIQ_KEY\x01U1\x02", queue_id=0
        )
        assert answer is not None
        assert (answer.code, answer.encoding) == (C.SUCCESS, encoding)
        said = answer.header(SendMessageResponse)
        assert (said.queue_id, said.queue_offset, said.transaction_id) == (0, 1, "U1")
        record = (await sending.records())[1]
        assert (bytes(record.body), record.flag) == (b"second", 5)
        assert record.born_host == sending.connection.peer_host
        assert decode_offset_id(said.msg_id) == (sending.state.store_host, record.log_offset)

    run(tmp_path, scenario)


def test_the_answer_to_a_half_names_the_queue_it_is_for_and_the_place_where_it_waits(tmp_path: Path) -> None:
    async def scenario(sending: _Sending) -> None:
        half: dict[str, object] = {"sys_flag": 4, "properties": "TRAN_MSG\x01true\x02PGROUP\x01P\x02"}
        sending.send(b"first", queue_id=3, **half)  # pyright: ignore[reportArgumentType]
        answer = sending.send(b"second", queue_id=2, **half)  # pyright: ignore[reportArgumentType]
        assert answer is not None
        said = answer.header(SendMessageResponse)
        record = (await sending.records(HALF_TOPIC))[1]
        assert (said.queue_id, said.queue_offset) == (2, 1)
        assert (bytes(record.body), record.queue_offset) == (b"second", 1)
        assert decode_offset_id(said.msg_id).log_offset == record.log_offset
        assert await sending.records(queue_id=2) == []

    run(tmp_path, scenario)


def test_a_message_without_an_id_gets_one(tmp_path: Path) -> None:
    async def scenario(sending: _Sending) -> None:
        answers = [sending.send(), sending.send()]
        ids = [answer.header(SendMessageResponse).transaction_id for answer in answers if answer]
        stored = [decode_properties(record.properties)["UNIQ_KEY"] for record in await sending.records()]
        assert ids == stored
        assert len(set(ids)) == 2

    run(tmp_path, scenario)


def test_the_broker_picks_the_queues_in_turn_if_it_is_asked_to(tmp_path: Path) -> None:
    async def scenario(sending: _Sending) -> None:
        answers = [sending.send(queue_id=-1) for _ in range(8)]
        queues = [answer.header(SendMessageResponse).queue_id for answer in answers if answer]
        assert sorted(queues) == [0, 0, 1, 1, 2, 2, 3, 3]

    run(tmp_path, scenario)


def test_a_first_send_creates_its_topic(tmp_path: Path) -> None:
    async def scenario(sending: _Sending) -> None:
        assert sending.code(topic="fresh", default_topic_queue_count=3, queue_id=2) == C.SUCCESS
        created = sending.state.topics.find("fresh")
        assert created is not None
        assert (created.read_queue_count, created.write_queue_count, created.perm) == (3, 3, 6)
        assert len(await sending.records("fresh", 2)) == 1

    run(tmp_path, scenario)


def test_a_topic_that_may_not_be_created_does_not_exist(tmp_path: Path) -> None:
    async def scenario(sending: _Sending) -> None:
        assert sending.code(topic="fresh") == C.TOPIC_NOT_EXIST
        assert sending.code(topic="fresh", default_topic="nowhere") == C.TOPIC_NOT_EXIST
        assert sending.state.topics.find("fresh") is None

    settings = msgspec.structs.replace(SETTINGS, auto_create_topic_enable=False)
    run(tmp_path, scenario, settings=settings)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "no/slash"}, C.INVALID_PARAMETER),
        ({"topic": "x" * 128}, C.INVALID_PARAMETER),
        ({"topic": ""}, C.INVALID_PARAMETER),
        ({"queue_id": 4}, C.INVALID_PARAMETER),
        ({"topic": SCHEDULE_TOPIC}, C.NO_PERMISSION),
        ({"sys_flag": 4}, C.MESSAGE_ILLEGAL),
        ({"topic": TIMER_TOPIC}, C.NO_PERMISSION),
        ({"properties": "DELAY\x01soon"}, C.SYSTEM_ERROR),
        ({"properties": "TIMER_DELAY_SEC\x01259201"}, C.MESSAGE_ILLEGAL),
        ({"is_batch": True, "properties": "DELAY\x013"}, C.MESSAGE_ILLEGAL),
        ({"is_batch": True, "properties": "TIMER_DELAY_MS\x015000"}, C.MESSAGE_ILLEGAL),
        ({"properties": "K\x01" + "v" * 32_767}, C.MESSAGE_ILLEGAL),
        ({"body": b"." * 4000}, C.MESSAGE_ILLEGAL),
        ({"body": b""}, C.SYSTEM_ERROR),
        ({"is_batch": True, "body": b"no batch"}, C.MESSAGE_ILLEGAL),
        ({"is_batch": True, "body": encode_batch([(0, b"", b"K\x01\x00")])}, C.MESSAGE_ILLEGAL),
    ],
)
def test_what_may_not_be_sent_is_refused_and_not_stored(
    tmp_path: Path, fields: dict[str, object], code: ResponseCode
) -> None:
    async def scenario(sending: _Sending) -> None:
        end = sending.state.store.log.log_end
        assert sending.code(**fields) == code  # pyright: ignore[reportArgumentType]
        assert sending.state.store.log.log_end == end

    run(tmp_path, scenario, store_settings=msgspec.structs.replace(SMALL, max_message_size=3000))


def test_a_delayed_send_is_told_the_queue_that_it_asked_for(tmp_path: Path) -> None:
    async def scenario(sending: _Sending) -> None:
        answer = sending.send(queue_id=2, properties="DELAY\x013")
        assert answer is not None
        header = answer.header(SendMessageResponse)
        assert (answer.code, header.queue_id, header.queue_offset) == (C.SUCCESS, 2, 0)
        (record,) = await sending.records(SCHEDULE_TOPIC, 2)
        assert decode_offset_id(header.msg_id).log_offset == record.log_offset

    run(tmp_path, scenario)


def test_a_broker_that_may_not_be_written_to_refuses_ordered_topics_alone(tmp_path: Path) -> None:
    async def scenario(sending: _Sending) -> None:
        sending.state.topics.put(TopicConfig(topic_name="ordered", is_ordered=True))
        assert sending.code(topic="ordered") == C.NO_PERMISSION
        assert sending.code() == C.SUCCESS

    run(tmp_path, scenario, settings=msgspec.structs.replace(SETTINGS, broker_permission=4))


def test_the_write_bit_of_a_topic_works_through_its_route_and_not_here(tmp_path: Path) -> None:
    async def scenario(sending: _Sending) -> None:
        sending.state.topics.put(TopicConfig(topic_name="closed", perm=4))
        assert sending.code(topic="closed") == C.SUCCESS

    run(tmp_path, scenario)


def test_a_log_that_takes_no_writes_is_a_service_that_is_not_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(sending: _Sending) -> None:
        store = sending.state.store
        for error in (DiskFull("commitlog", 4096), OSError(5, "Input/output error")):

            def append(_message: object, error: Exception = error) -> None:
                raise error

            with monkeypatch.context() as patch:
                patch.setattr(store, "append", append)
                assert sending.code() == C.SERVICE_NOT_AVAILABLE
        store.log.refusal = "the disk is full"
        assert sending.code() == C.SERVICE_NOT_AVAILABLE

    run(tmp_path, scenario)


class TestBatches:
    BODY = encode_batch(
        [(1, b"one", b"UNIQ_KEY\x01I1\x02"), (2, b"two", b"UNIQ_KEY\x01I2"), (3, b"three", b"")]
    )

    def test_each_message_is_its_own_record_and_has_its_own_id(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            sending.send()
            answer = sending.send(
                self.BODY,
                code=RequestCode.SEND_BATCH_MESSAGE,
                is_batch=True,
                properties="WAIT\x01true",
            )
            assert answer is not None
            assert answer.code == C.SUCCESS
            said = answer.header(SendMessageResponse)
            records = (await sending.records())[1:]
            assert [(bytes(record.body), record.flag) for record in records] == [
                (b"one", 1),
                (b"two", 2),
                (b"three", 3),
            ]
            assert said.queue_offset == records[0].queue_offset == 1
            assert [decode_offset_id(one)[1] for one in said.msg_id.split(",")] == [
                record.log_offset for record in records
            ]

        run(tmp_path, scenario)

    def test_the_messages_of_an_older_client_keep_their_own_ids(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            sending.send(self.BODY, is_batch=True, properties="WAIT\x01true")
            found = [decode_properties(record.properties) for record in await sending.records()]
            assert [one.get("UNIQ_KEY") for one in found] == ["I1", "I2", None]
            assert [one["WAIT"] for one in found] == ["true"] * 3
            assert [one["CLUSTER"] for one in found] == ["DefaultCluster"] * 3

        run(tmp_path, scenario)

    def test_the_id_of_a_batch_wins_over_those_in_it(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            answer = sending.send(self.BODY, is_batch=True, properties="UNIQ_KEY\x01B\x02WAIT\x01true\x02")
            assert answer is not None
            assert answer.header(SendMessageResponse).transaction_id == "B"
            found = [decode_properties(record.properties) for record in await sending.records()]
            assert [one["UNIQ_KEY"] for one in found] == ["B"] * 3

        run(tmp_path, scenario)

    def test_the_field_and_not_the_code_says_that_it_is_one(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            sending.send(self.BODY, code=RequestCode.SEND_MESSAGE, is_batch=True)
            sending.send(self.BODY, code=RequestCode.SEND_BATCH_MESSAGE, is_batch=None)
            records = await sending.records()
            assert [len(record.body) for record in records] == [3, 3, 5, len(self.BODY)]

        run(tmp_path, scenario)

    def test_a_retry_topic_takes_none(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            assert sending.code(self.BODY, topic=f"{RETRY_PREFIX}G", is_batch=True) == C.MESSAGE_ILLEGAL

        run(tmp_path, scenario)

    def test_properties_that_are_no_utf_8_are_kept_as_they_came(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            assert sending.code(encode_batch([(0, b"x", b"K\x01\xff\xfe\x02")]), is_batch=True) == C.SUCCESS
            (record,) = await sending.records()
            assert bytes(record.properties).startswith(b"K\x01\xff\xfe\x02")

        run(tmp_path, scenario)


class TestSynchronousFlush:
    def test_the_answer_comes_when_the_message_is_on_disk(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            assert sending.send() is None
            await turns()
            assert sending.connection.sent == []
            sending.broker.start_flushing()
            await until(lambda: len(sending.connection.sent) == 1)
            (answer,) = sending.connection.take_sent()
            assert (answer.code, answer.opaque) == (C.SUCCESS, 7)
            assert answer.header(SendMessageResponse).queue_offset == 0

        run(tmp_path, scenario, store_settings=SYNC)

    def test_a_flush_that_is_not_confirmed_is_told_with_where_the_message_is(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            assert sending.send(encoding=HeaderEncoding.BINARY) is None
            await until(lambda: len(sending.connection.sent) == 1)
            (answer,) = sending.connection.take_sent()
            assert answer.code == C.FLUSH_DISK_TIMEOUT
            assert answer.header(SendMessageResponse).queue_offset == 0

        slow = msgspec.structs.replace(SYNC, sync_flush_timeout=20)
        run(tmp_path, scenario, store_settings=slow)

    def test_a_producer_that_does_not_wait_is_answered_at_once(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            assert sending.code(properties="WAIT\x01false") == C.SUCCESS

        run(tmp_path, scenario, store_settings=SYNC)

    def test_a_one_way_send_is_stored_and_never_answered(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            sending.broker.start_flushing()
            sending.send(b"one-way", is_one_way=True)
            sending.send(b"asked")
            await until(lambda: len(sending.connection.sent) == 1)
            assert [bytes(record.body) for record in await sending.records()] == [b"one-way", b"asked"]
            assert len(sending.connection.take_sent()) == 1

        run(tmp_path, scenario, store_settings=SYNC)

    def test_what_waits_for_the_disk_does_not_keep_the_bytes_it_came_in(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            frame = encode_command(
                Command.request(
                    RequestCode.SEND_MESSAGE_V2,
                    SendMessageRequestV2(
                        producer_group="P",
                        topic=T,
                        default_topic="TBW102",
                        default_topic_queue_count=4,
                        queue_id=0,
                        sys_flag=0,
                        born_timestamp_ms=1,
                        flag=0,
                    ),
                    body=b"body",
                )
            )
            received_bytes = bytearray(frame)
            (received,) = FrameDecoder().feed(received_bytes)  # pyright: ignore[reportArgumentType]
            assert SendHandler(sending.state).send_v2(received, sending.connection) is None
            del received
            await asyncio.sleep(0)
            received_bytes.clear()  # Raises BufferError while anybody has a view of it.
            sending.broker.start_flushing()
            await until(lambda: len(sending.connection.sent) == 1)

        run(tmp_path, scenario, store_settings=SYNC)

    def test_more_sends_than_may_wait_are_told_that_the_broker_is_busy(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending_module, "MAX_WAITING_SENDS", 1)

        async def scenario(sending: _Sending) -> None:
            assert sending.send() is None
            assert sending.code() == C.SYSTEM_BUSY
            sending.broker.start_flushing()
            await until(lambda: len(sending.connection.sent) == 1)
            assert len(await sending.records()) == 1

        run(tmp_path, scenario, store_settings=SYNC)

    def test_sends_are_refused_while_the_disk_is_stuck(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            sending.broker.disk.may_sync.clear()
            sending.broker.start_flushing()
            assert sending.send() is None
            await until(lambda: sending.state.store.log.busy is not None)
            refusal = sending.send()
            assert refusal is not None
            assert (refusal.code, (refusal.remark or "")[:17]) == (C.SYSTEM_BUSY, "[PC_SYNCHRONIZED]")
            sending.broker.disk.may_sync.set()
            await until(lambda: len(sending.connection.sent) == 1)
            assert sending.send() is None
            await until(lambda: len(sending.connection.sent) == 2)

        impatient = msgspec.structs.replace(SYNC, os_page_cache_busy_time_out_mills=20)
        run(tmp_path, scenario, store_settings=impatient)

    def test_a_producer_that_is_gone_disturbs_nobody(self, tmp_path: Path) -> None:
        async def scenario(sending: _Sending) -> None:
            sending.send()
            sending.connection.close("gone")
            sending.broker.start_flushing()
            await sending.state.writer.close(5)
            assert len(await sending.records()) == 1

        run(tmp_path, scenario, store_settings=SYNC)
