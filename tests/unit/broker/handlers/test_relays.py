import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tanist.broker.handlers import relays
from tanist.broker.state import BrokerState
from tanist.errors import ConnectionLost, RemoteProtocolError, RequestTimeout, ResponseError, TooBusy
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.topics import TopicConfig
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.client import ConsumeMessageDirectlyRequest, ConsumerRunningInfoRequest
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.record import decode_record
from tests.support.broker_tables import join, open_state
from tests.support.fake_connection import FakeConnection
from tests.support.messages import TOPIC, make_message

RUNNING_INFO = ConsumerRunningInfoRequest(consumer_group="G", client_id="c", is_jstack_enabled=False)


class AskedConnection(FakeConnection):
    """A client that is asked: the test answers when it likes."""

    __slots__ = ("awaited", "questions", "refusal")

    def __init__(self) -> None:
        super().__init__("10.0.0.5:40112")
        self.questions: list[Command] = []
        self.awaited: list[asyncio.Future[Command]] = []
        self.refusal: Exception | None = None

    def request(self, command: Command, timeout_s: float) -> asyncio.Future[Command]:
        assert timeout_s == 10.0
        if self.refusal is not None:
            raise self.refusal
        self.questions.append(command)
        self.awaited.append(asyncio.get_running_loop().create_future())
        return self.awaited[-1]


class Desk:
    """An operator, a broker, and a consumer of group G behind it."""

    def __init__(self, state: BrokerState) -> None:
        self.state = state
        self.operator = FakeConnection()
        self.client = AskedConnection()
        self._routes = relays.routes(state)
        join(state, "G", client_id="c", connection=self.client)

    def ask(self, header: ConsumerRunningInfoRequest | ConsumeMessageDirectlyRequest, **ext: str) -> None:
        is_info = isinstance(header, ConsumerRunningInfoRequest)
        code = RequestCode.GET_CONSUMER_RUNNING_INFO if is_info else RequestCode.CONSUME_MESSAGE_DIRECTLY
        request = Command.request(code, header, opaque=7)
        request.ext.update(ext)
        assert self._routes[code](request, self.operator) is None

    async def answer(self) -> Command:
        """What the operator gets."""
        await asyncio.sleep(0)
        (answer,) = self.operator.take_sent()
        assert answer.opaque == 7
        return answer


@pytest.fixture
def state(tmp_path: Path) -> Iterator[BrokerState]:
    state = open_state(tmp_path)
    state.topics.put(TopicConfig(topic_name=TOPIC, topic_sys_flag=1))
    state.groups.put(SubscriptionGroupConfig(group_name="G", group_sys_flag=2))
    state.store.append(make_message(0))
    state.store.append(make_message(1))
    state.store.dispatch()
    with state.store:
        yield state


def _play(state: BrokerState, scenario: Callable[[Desk], Awaitable[None]]) -> None:
    async def play() -> None:
        await scenario(Desk(state))

    asyncio.run(play())


def _directly(state: BrokerState, number: int = 1) -> ConsumeMessageDirectlyRequest:
    record = state.store.records(TOPIC, 0, number, 1)[0]
    message_id = encode_offset_id(record.store_host, record.log_offset)
    return ConsumeMessageDirectlyRequest(consumer_group="G", client_id="c", msg_id=message_id, topic=TOPIC)


def test_a_question_goes_to_the_client_and_its_answer_back(state: BrokerState) -> None:
    async def scenario(desk: Desk) -> None:
        desk.ask(RUNNING_INFO, Signature="secret")
        (question,) = desk.client.questions
        assert question.code == RequestCode.GET_CONSUMER_RUNNING_INFO
        assert question.ext == {"consumerGroup": "G", "clientId": "c", "jstackEnable": "false"}
        assert desk.operator.sent == []
        desk.client.awaited[0].set_result(question.reply(body=b"{}", remark="fine", ext={"a": "b"}))
        answer = await desk.answer()
        assert (answer.code, answer.body, answer.remark, answer.ext) == (0, b"{}", "fine", {"a": "b"})

    _play(state, scenario)


def test_a_message_goes_along_with_what_the_client_needs_to_know(state: BrokerState) -> None:
    async def scenario(desk: Desk) -> None:
        desk.ask(_directly(state))
        (question,) = desk.client.questions
        assert bytes(decode_record(memoryview(question.body)).body) == b"message 1 "
        given = question.header(ConsumeMessageDirectlyRequest)
        assert (given.broker_name, given.topic_sys_flag, given.group_sys_flag) == ("broker-a", 1, 2)
        desk.client.awaited[0].set_result(question.reply(ResponseCode.SYSTEM_ERROR, remark="no"))
        assert (await desk.answer()).code == ResponseCode.SYSTEM_ERROR

    _play(state, scenario)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RequestTimeout("10.0.0.5:40112", 307, 10.0), ResponseCode.CONSUME_MSG_TIMEOUT),
        (ConnectionLost("10.0.0.5:40112", "it left"), ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_client_that_does_not_answer_is_told(
    state: BrokerState, error: Exception, code: ResponseCode
) -> None:
    async def scenario(desk: Desk) -> None:
        desk.ask(RUNNING_INFO)
        desk.client.awaited[0].set_exception(error)
        answer = await desk.answer()
        assert answer.code == code
        assert "consumer c" in (answer.remark or "")

    _play(state, scenario)


@pytest.mark.parametrize(("group", "client_id"), [("G", "d"), ("H", "c")])
def test_who_is_not_there_can_not_be_asked(state: BrokerState, group: str, client_id: str) -> None:
    async def scenario(desk: Desk) -> None:
        with pytest.raises(ResponseError) as refused:
            desk.ask(ConsumerRunningInfoRequest(consumer_group=group, client_id=client_id))
        assert refused.value.code == ResponseCode.SYSTEM_ERROR

    _play(state, scenario)


def test_a_client_that_can_not_be_asked_is_told(state: BrokerState) -> None:
    async def scenario(desk: Desk) -> None:
        desk.client.refusal = TooBusy("10.0.0.5:40112", "much waits for it")
        with pytest.raises(ResponseError) as refused:
            desk.ask(RUNNING_INFO)
        assert refused.value.code == ResponseCode.SYSTEM_ERROR
        desk.client.refusal = None
        desk.ask(RUNNING_INFO)

    _play(state, scenario)


def test_only_a_message_that_is_there_can_be_consumed(state: BrokerState) -> None:
    nowhere = encode_offset_id(state.store_host, 1)

    async def scenario(desk: Desk) -> None:
        with pytest.raises(ResponseError):
            desk.ask(ConsumeMessageDirectlyRequest(consumer_group="G", client_id="c", msg_id=nowhere))
        for message_id in ("what", None):
            with pytest.raises(RemoteProtocolError):
                desk.ask(ConsumeMessageDirectlyRequest(consumer_group="G", client_id="c", msg_id=message_id))
        assert desk.client.questions == []

    _play(state, scenario)


@pytest.mark.parametrize("limit", ["MAX_WAITING", "MAX_WAITING_PER_CLIENT"])
def test_so_many_questions_wait_and_no_more(
    state: BrokerState, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relays, limit, 5)

    async def scenario(desk: Desk) -> None:
        for _ in range(5):
            desk.ask(RUNNING_INFO)
        with pytest.raises(ResponseError) as refused:
            desk.ask(RUNNING_INFO)
        assert refused.value.code == ResponseCode.SYSTEM_BUSY
        desk.client.awaited[0].set_result(desk.client.questions[0].reply())
        await desk.answer()
        desk.ask(RUNNING_INFO)

    _play(state, scenario)


def test_one_client_that_does_not_answer_leaves_room_for_the_others() -> None:
    assert 4 * relays.MAX_WAITING_PER_CLIENT < relays.MAX_WAITING


def test_a_broker_that_stops_answers_nobody_any_more(state: BrokerState) -> None:
    async def scenario(desk: Desk) -> None:
        desk.ask(RUNNING_INFO)
        desk.client.awaited[0].cancel()
        await asyncio.sleep(0)
        assert desk.operator.sent == []

    _play(state, scenario)
