import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from tanist.broker.consumer_group import Client
from tanist.broker.handlers import replies
from tanist.broker.settings import BrokerSettings
from tanist.errors import DiskFull, RequestTimeout, ResponseError, TooBusy
from tanist.model.topics import SCHEDULE_TOPIC, TopicConfig
from tanist.protocol.bodies.client import HeartbeatData, ProducerData
from tanist.protocol.codes import FLAG_ONE_WAY, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder, encode_command
from tanist.protocol.headers.send import (
    PushReplyMessageRequest,
    SendMessageRequest,
    SendMessageRequestV2,
    SendMessageResponse,
)
from tanist.protocol.message_id import decode_offset_id
from tanist.protocol.properties import decode_properties
from tests.support.broker_tables import SETTINGS
from tests.support.conditions import turns
from tests.support.fake_connection import FakeConnection
from tests.support.working_broker import WorkingBroker, working_broker

C = ResponseCode
REPLIES = "DefaultCluster_REPLY_TOPIC"
ASKER = "10.0.0.5@asker"


class _Asker(FakeConnection):
    """The connection of the client that waits for a reply; it answers when a test says so."""

    __slots__ = ("pushed", "refusal")

    def __init__(self) -> None:
        super().__init__("10.0.0.5:40112")
        self.pushed: list[tuple[Command, asyncio.Future[Command]]] = []
        self.refusal: Exception | None = None

    def request(self, command: Command, timeout_s: float) -> asyncio.Future[Command]:
        assert 0 < timeout_s <= 10
        if self.refusal is not None:
            raise self.refusal
        answer: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        (sent,) = FrameDecoder().feed(encode_command(command))
        self.pushed.append((sent, answer))
        return answer


class _Replying:
    """The reply handlers of a working broker, at which one client is known as a producer."""

    def __init__(self, broker: WorkingBroker) -> None:
        self.state = broker.state
        self.connection = FakeConnection("10.0.0.6:5")
        self.asker = _Asker()
        self._routes = replies.routes(broker.state)
        heartbeat = HeartbeatData(client_id=ASKER, producer_data_set=[ProducerData(group_name="P")])
        self.state.clients.on_heartbeat(Client(self.asker, ASKER, "JAVA", 1), heartbeat, now_ms=0)

    def reply(
        self,
        body: bytes = b"answer",
        *,
        code: RequestCode = RequestCode.SEND_REPLY_MESSAGE_V2,
        topic: str = REPLIES,
        properties: str = f"REPLY_TO_CLIENT\x01{ASKER}\x02CORRELATION_ID\x01c1\x02",
        queue_id: int = 0,
        is_one_way: bool = False,
    ) -> Command | None:
        """The answer if there is one at once."""
        kind = SendMessageRequest if code is RequestCode.SEND_REPLY_MESSAGE else SendMessageRequestV2
        header = kind(
            producer_group="R",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_count=4,
            queue_id=queue_id,
            sys_flag=1,
            born_timestamp_ms=77,
            flag=5,
            properties=properties,
        )
        request = Command.request(code, header, body=body, opaque=7, is_one_way=is_one_way)
        (received,) = FrameDecoder().feed(encode_command(request))
        assert bool(received.flag & FLAG_ONE_WAY) == is_one_way
        try:
            answer = self._routes[code](received, self.connection)
        except ResponseError as refusal:
            return received.reply(refusal.code, remark=refusal.remark)
        assert answer is None
        return None

    async def answered(self) -> Command:
        """The one answer that was sent later."""
        await turns()
        (answer,) = self.connection.take_sent()
        assert (answer.opaque, answer.is_response) == (7, True)
        return answer

    def stored_count(self) -> int:
        self.state.store.dispatch()
        return len(self.state.store.records(REPLIES, 0, 0, 100))


def run(
    root: Path, scenario: Callable[[_Replying], Awaitable[None]], *, settings: BrokerSettings = SETTINGS
) -> None:
    async def with_broker() -> None:
        async with working_broker(root, settings) as broker:
            await scenario(_Replying(broker))

    asyncio.run(with_broker())


@pytest.mark.parametrize("code", [RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2])
def test_a_reply_is_pushed_to_the_client_that_asked(tmp_path: Path, code: RequestCode) -> None:
    async def scenario(replying: _Replying) -> None:
        assert replying.reply(code=code) is None
        ((push, taken),) = replying.asker.pushed
        assert (push.code, bytes(push.body)) == (RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, b"answer")
        header = push.header(PushReplyMessageRequest)
        assert (header.producer_group, header.topic, header.sys_flag, header.flag) == ("R", REPLIES, 1, 5)
        assert (header.born_host, header.store_host) == ("10.0.0.6:5", "127.0.0.1:10911")
        said = decode_properties((header.properties or "").encode())
        now_ms = replying.state.clock.now_ms()
        assert (said["CORRELATION_ID"], said["PUSH_REPLY_TIME"]) == ("c1", str(now_ms))
        assert header.store_timestamp_ms == now_ms
        assert replying.connection.sent == []  # The client has not taken it yet.
        taken.set_result(push.reply())
        answer = await replying.answered()
        assert answer.code == C.SUCCESS
        place = answer.header(SendMessageResponse)
        (record,) = replying.state.store.records(REPLIES, 0, 0, 10)
        assert decode_offset_id(place.msg_id) == (replying.state.store_host, record.log_offset)
        assert (place.queue_id, place.queue_offset) == (0, 0)

    run(tmp_path, scenario)


def test_a_reply_is_not_kept_if_that_is_off(tmp_path: Path) -> None:
    async def scenario(replying: _Replying) -> None:
        replying.reply()
        ((push, taken),) = replying.asker.pushed
        taken.set_result(push.reply())
        place = (await replying.answered()).header(SendMessageResponse)
        assert (place.msg_id, place.queue_id, place.queue_offset) == ("0", 0, 0)
        assert replying.stored_count() == 0

    run(tmp_path, scenario, settings=msgspec.structs.replace(SETTINGS, store_reply_message_enable=False))


def test_a_full_disk_keeps_no_reply_from_who_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(replying: _Replying) -> None:
        def append(_message: object) -> None:
            raise DiskFull("commitlog", 4096)

        monkeypatch.setattr(replying.state.store, "append", append)
        replying.reply()
        ((push, taken),) = replying.asker.pushed
        taken.set_result(push.reply())
        assert (await replying.answered()).code == C.SUCCESS

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("properties", "remark"),
    [
        ("REPLY_TO_CLIENT\x01nobody\x02", "push reply message fail, channel of <nobody> not found."),
        ("CORRELATION_ID\x01c1\x02", "reply message properties[REPLY_TO_CLIENT] is null"),
    ],
)
def test_a_reply_that_nobody_waits_for_fails_and_is_kept(
    tmp_path: Path, properties: str, remark: str
) -> None:
    async def scenario(replying: _Replying) -> None:
        answer = replying.reply(properties=properties)
        assert answer is not None
        assert (answer.code, answer.remark) == (C.SYSTEM_ERROR, remark)
        assert replying.stored_count() == 1

    run(tmp_path, scenario)


def test_a_client_that_went_away_is_not_found_any_more(tmp_path: Path) -> None:
    async def scenario(replying: _Replying) -> None:
        replying.state.clients.on_lost(replying.asker)
        answer = replying.reply()
        assert answer is not None
        assert answer.code == C.SYSTEM_ERROR

    run(tmp_path, scenario)


def test_a_client_that_keeps_silent_or_refuses_fails_the_reply_and_holds_up_no_other(tmp_path: Path) -> None:
    async def scenario(replying: _Replying) -> None:
        for _ in range(3):
            assert replying.reply() is None
        (_, silent), (refused, no), (taken, yes) = replying.asker.pushed
        yes.set_result(taken.reply())
        assert (await replying.answered()).code == C.SUCCESS
        no.set_result(refused.reply(C.SYSTEM_ERROR))
        assert (await replying.answered()).code == C.SYSTEM_ERROR
        silent.set_exception(RequestTimeout("10.0.0.5:40112", 326, 10.0))
        answer = await replying.answered()
        assert answer.code == C.SYSTEM_ERROR
        assert ASKER in (answer.remark or "")

    run(tmp_path, scenario)


def test_a_push_that_is_cancelled_answers_nobody_and_breaks_nothing(tmp_path: Path) -> None:
    async def scenario(replying: _Replying) -> None:
        broken = list[dict[str, object]]()
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: broken.append(context))
        replying.reply()
        ((_, pushed),) = replying.asker.pushed
        pushed.cancel()
        await turns()
        assert broken == []

    run(tmp_path, scenario)


def test_a_client_for_which_too_much_waits_already_fails_the_reply(tmp_path: Path) -> None:
    async def scenario(replying: _Replying) -> None:
        replying.asker.refusal = TooBusy("10.0.0.5:40112", "64 requests wait")
        answer = replying.reply()
        assert answer is not None
        assert answer.code == C.SYSTEM_ERROR

    run(tmp_path, scenario)


def test_a_one_way_reply_is_pushed_and_never_answered(tmp_path: Path) -> None:
    async def scenario(replying: _Replying) -> None:
        replying.reply(is_one_way=True)
        ((push, taken),) = replying.asker.pushed
        taken.set_result(push.reply())
        await turns()
        assert replying.connection.sent == []

    run(tmp_path, scenario)


def test_a_reply_goes_to_the_topic_of_replies_alone_and_stores_nothing_else(tmp_path: Path) -> None:
    async def scenario(replying: _Replying) -> None:
        replying.state.topics.put(TopicConfig(topic_name="Orders"))
        log_end = replying.state.store.log.log_end
        for topic in (SCHEDULE_TOPIC, "fresh", "Orders", "t" * 100_000):
            answer = replying.reply(topic=topic)
            assert answer is not None
            assert answer.code == C.TOPIC_NOT_EXIST
            assert len(answer.remark or "") < 500
        assert replying.state.store.log.log_end == log_end
        assert replying.state.topics.find("fresh") is None
        assert replying.asker.pushed == []

    run(tmp_path, scenario)


@pytest.mark.parametrize("queue_id", [-1, 0, 99])
def test_a_reply_lies_in_a_queue_that_there_is(tmp_path: Path, queue_id: int) -> None:
    async def scenario(replying: _Replying) -> None:
        assert replying.reply(queue_id=queue_id) is None
        assert replying.stored_count() == 1

    run(tmp_path, scenario)
