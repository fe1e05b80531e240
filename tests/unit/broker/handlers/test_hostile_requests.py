"""Requests that are almost right, thousands of them, at every handler a broker has.

A seed makes each run the same. Whatever comes, a handler answers or refuses; anything else that it
raises is a mistake of ours. And the broker goes on: what is right is served in between and afterwards.
"""

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tanist.broker.handlers import all_routes, clients
from tanist.broker.handlers.pull import PullHandler
from tanist.broker.handlers.send import SendHandler
from tanist.broker.transactions.keeper import TransactionKeeper
from tanist.errors import RemoteProtocolError, ResponseError
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.topics import TopicConfig
from tanist.protocol.batch import encode_batch
from tanist.protocol.bodies.sync import ConsumerOffsetTable, SubscriptionGroupTable, TopicConfigTable
from tanist.protocol.codes import FLAG_ONE_WAY, HeaderEncoding, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder, encode_command
from tanist.protocol.headers.base import NoFields
from tanist.protocol.headers.registry import EXCHANGES
from tanist.remoting import Handler
from tanist.remoting.replies import frame_answer, frame_failure
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tests.support import golden
from tests.support.conditions import turns
from tests.support.fake_connection import FakeConnection, decode_answer
from tests.support.messages import kill, open_store
from tests.support.working_broker import working_broker

C = RequestCode
TOPIC, GROUP = "TopicA", "GroupA"
FOUR_QUEUES = TopicConfig(topic_name=TOPIC, read_queue_count=4, write_queue_count=4)
GROUP_CONFIG = SubscriptionGroupConfig(group_name=GROUP)
SEEDS = range(4)
REQUESTS_A_CODE = 25

# What a field of this name holds in a good request; any other holds what its type suggests.
GOOD_VALUES = {
    "topic": TOPIC,
    "b": TOPIC,
    "defaultTopic": "TBW102",
    "c": "TBW102",
    "topicFilterType": "SINGLE_TAG",
    "consumerGroup": GROUP,
    "group": GROUP,
    "groupName": GROUP,
    "sysFlag": "6",
    "f": "0",
    "perm": "6",
    "subscription": "*",
    "suspendTimeoutMillis": "1000",
    "properties": "KEYS\x01k\x02",
    "i": "KEYS\x01k\x02",
}
# A pull waits, by a subscription of its own; for a send the same bits mean something else.
SEND_VALUES = {"sysFlag": "0"}
NASTY_VALUES = (
    *("", " ", "-1", "0", "1", "7", "65535", "65536", str(2**31 - 1), str(2**31), str(-(2**31))),
    *(str(2**63 - 1), str(2**63), str(-(2**63)), "1e9", "NaN", "1.5", "0x10", "٣", "true", "false", "null"),
    *("\0", "\x01\x02", "a\x01b\x02\x02", "../../etc", "a/b", "a" * 300, "a" * 40_000, "é", "😀", "\n"),
    *("%RETRY%GroupA", "%DLQ%GroupA", "%RETRY%", "rmq_sys_x", "SCHEDULE_TOPIC_XXXX", "TBW102", "TopicA@G"),
    *("*", "||", "a || b", "SQL92", "TAG", "+a=b", "+message.type=FIFO", "-message.type", "DELAY\x0118\x02"),
    *("TRAN_MSG\x01true\x02", "TIMER_DELAY_SEC\x0199999999999\x02", "WAIT\x01false\x02", TOPIC, GROUP),
)
BODIES = golden.load("bodies")
GOOD_BODIES: dict[int, bytes] = {
    C.SEND_MESSAGE: b"hello",
    C.SEND_MESSAGE_V2: b"hello",
    C.SEND_REPLY_MESSAGE: b"hello",
    C.SEND_REPLY_MESSAGE_V2: b"hello",
    C.SEND_BATCH_MESSAGE: encode_batch([(0, b"one", b""), (0, b"two", b"TAGS\x01a\x02")]),
    C.HEART_BEAT: BODIES["heartbeat_data"]["text"].encode(),
    C.LOCK_BATCH_MQ: BODIES["lock_batch_request_body"]["text"].encode(),
    C.UNLOCK_BATCH_MQ: BODIES["lock_batch_request_body"]["text"].encode(),
    C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: b'{"groupName":"GroupB","consumeEnable":true}',
    C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: b'{"groupConfigList":[{"groupName":"GroupB"}]}',
    C.UPDATE_AND_CREATE_TOPIC_LIST: b'{"topicConfigList":[{"topicName":"TopicB","readQueueNums":2}]}',
    C.CHECK_CLIENT_CONFIG: b'{"clientId":"c","group":"G","subscriptionData":{"topic":"T","subString":"a"}}',
    C.APPLY_RESET: b'{"targets":[{"queueId":0,"target":0},{"queueId":1,"expectedOffset":1,"target":0}]}',
    C.RESET_RECEIPT: b'{"queues":[{"queueId":0,"oldOffset":1,"newOffset":0}],"failure":""}',
    C.QUERY_ASSIGNMENT: b'{"topic":"TopicA","consumerGroup":"GroupA","clientId":"c"}',
}
NASTY_JSON: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**63, 1e300, "", "x" * 300, "\0", "é", [], {}, [[]], {"a": {}}, [None]),
)


class Mutant:
    """Makes requests that are wrong somewhere."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def frame(self, code: int) -> bytes:
        """A request of this code, as bytes; now and then they are no frame at all."""
        ext = self._mutated_ext(good_ext(code), [field.encode_name for field in _fields(code)])
        request = Command.request(
            code,
            ext=ext,
            body=self._mutated_body(GOOD_BODIES.get(code, b"")),
            opaque=7,
            encoding=self._random.choice(list(HeaderEncoding)),
        )
        if self._random.random() < 0.1:
            request.flag |= FLAG_ONE_WAY
        frame = bytearray(encode_command(request))
        if self._random.random() < 0.1:
            frame[self._random.randrange(8, len(frame))] = self._random.randrange(256)
        return bytes(frame)

    def _mutated_ext(self, ext: dict[str, str], names: list[str]) -> dict[str, str]:
        count = min(len(names), self._random.choice((0, 1, 1, 2, 3)))
        for name in self._random.sample(names, k=count):
            if self._random.random() < 0.1:
                ext.pop(name, None)
            else:
                ext[name] = self._random.choice(NASTY_VALUES)
        return ext

    def _mutated_body(self, body: bytes) -> bytes:
        ways: list[Callable[[bytes], bytes]] = [
            lambda body: body,
            lambda body: body,
            lambda body: body,
            lambda body: body[: self._random.randrange(len(body) + 1)],
            lambda body: body + self._random.randbytes(9),
            lambda body: self._random.randbytes(self._random.randrange(200)),
            lambda _body: b'{"a":' * 3000,
            self._flipped,
            self._other_json,
            self._other_json,
        ]
        return self._random.choice(ways)(body)

    def _flipped(self, body: bytes) -> bytes:
        flipped = bytearray(body)
        for _ in range(self._random.randrange(1, 4) if body else 0):
            flipped[self._random.randrange(len(flipped))] = self._random.randrange(256)
        return bytes(flipped)

    def _other_json(self, body: bytes) -> bytes:
        try:
            value = json.loads(body)
        except ValueError:
            return body
        return json.dumps(self._other_value(value)).encode()

    def _other_value(self, value: Any) -> Any:
        if self._random.random() < 0.15:
            return self._random.choice(NASTY_JSON)
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {name: self._other_value(member) for name, member in members.items()}
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [self._other_value(item) for item in items * self._random.choice((1, 1, 2))]
        return value


def good_ext(code: int) -> dict[str, str]:
    """The fields that a request of this code must have, with values that make sense."""
    values = GOOD_VALUES | (SEND_VALUES if code == C.SEND_MESSAGE else {})
    return {
        field.encode_name: values.get(field.encode_name) or _plain_value(field)
        for field in _fields(code)
        if field.required or field.encode_name in values
    }


def _fields(code: int) -> tuple[msgspec.inspect.Field, ...]:
    exchange = EXCHANGES.get(RequestCode(code))
    header_type = NoFields if exchange is None else exchange.request
    return cast("msgspec.inspect.StructType", msgspec.inspect.type_info(header_type)).fields


def _plain_value(field: msgspec.inspect.Field) -> str:
    kind = field.type.types[0] if isinstance(field.type, msgspec.inspect.UnionType) else field.type
    return "0" if isinstance(kind, msgspec.inspect.IntType) else "false"


def good_request(code: int, **ext: str) -> Command:
    request = Command.request(code, ext=good_ext(code) | ext, body=GOOD_BODIES.get(code, b""), opaque=8)
    (received,) = FrameDecoder().feed(encode_command(request))
    return received


def serve(routes: dict[int, Handler], frame: bytes, connection: FakeConnection) -> None:
    """What a connection does with what it reads: it answers, refuses, or gives the peer up."""
    try:
        for request in FrameDecoder().feed(frame):
            handler = routes.get(request.code)
            if handler is None or request.is_response:
                continue
            try:
                answer = frame_answer(request, handler(request, connection))
            except (ResponseError, RemoteProtocolError) as refusal:
                answer = frame_failure(request, refusal)
            if answer is not None:
                (decoded,) = decode_answer(answer)
                assert (decoded.is_response, decoded.opaque) == (True, request.opaque)
    except RemoteProtocolError:
        connection.close("it broke the protocol")


def check_still_serves(routes: dict[int, Handler]) -> None:
    connection = FakeConnection("127.0.0.1:99")
    for code, ext in (
        (C.HEART_BEAT, {}),
        (C.SEND_MESSAGE_V2, {"m": "false", "e": "1"}),
        (C.GET_MAX_OFFSET, {}),
        (C.GET_ALL_TOPIC_CONFIG, {}),
        (C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, {}),
        (C.GET_ALL_CONSUMER_OFFSET, {}),
    ):
        request = good_request(code, **ext)
        answer = routes[code](request, connection)
        frame = frame_answer(request, answer)
        assert frame is not None
        (decoded,) = decode_answer(frame)
        assert (code, decoded.code) == (code, ResponseCode.SUCCESS)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_comes_is_answered_or_refused_and_the_broker_goes_on(seed: int, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            state, mutant = broker.state, Mutant(seed)
            pulls = PullHandler(state)
            state.store.dispatcher.listeners.append(pulls.on_indexed)
            keeper = TransactionKeeper(state)
            keeper.open()
            state.store.dispatcher.listeners.append(keeper.on_indexed)
            routes = all_routes(state, SendHandler(state), pulls, keeper)
            for number in range(REQUESTS_A_CODE):
                connection = FakeConnection(f"127.0.0.1:{1000 + number}")
                for code in routes:
                    # The request before may well have asked to delete them.
                    state.topics.put(FOUR_QUEUES)
                    state.groups.put(GROUP_CONFIG)
                    frame = mutant.frame(code)
                    try:
                        serve(routes, frame, connection)
                    except Exception as error:
                        error.add_note(f"seed={seed} code={RequestCode(code).name} frame={frame[:2000]!r}")
                        raise
                await turns(2)
                state.topics.put(FOUR_QUEUES)
                check_still_serves(routes)
                pulls.on_lost(connection)
                clients.on_lost(state, connection)
            pulls.close()
            assert state.clients.member_ids(GROUP) != []
            await turns()
            state.offsets.save()
            check_saved_tables(tmp_path)
            log_end = state.store.log.log_end
        with open_store(tmp_path / "store") as store:
            assert store.log.log_end == log_end
            kill(store)

    asyncio.run(scenario())


def check_saved_tables(root: Path) -> None:
    """What is on disk can be read by the next start."""
    assert ConfigTable(Disk(), root, TopicConfigTable).load().topics
    assert ConfigTable(Disk(), root, SubscriptionGroupTable).load().groups
    ConfigTable(Disk(), root, ConsumerOffsetTable).load()
