import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import msgspec
import pytest

from tanist.broker.handlers import retries
from tanist.broker.handlers.send import SendHandler
from tanist.broker.placing import Placing
from tanist.broker.settings import BrokerSettings
from tanist.clock import steady_ms
from tanist.errors import DiskFull, ResponseError
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.message import Message, SysFlag
from tanist.model.offsets import LogOffset
from tanist.model.route import MessageQueue
from tanist.model.topics import TopicConfig, dlq_topic, retry_topic
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.send import ConsumerSendBackRequest, SendMessageRequestV2
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.properties import decode_properties
from tanist.protocol.record import Record
from tests.support.broker_tables import SETTINGS
from tests.support.fake_connection import FakeConnection
from tests.support.messages import make_message
from tests.support.working_broker import working_broker

C = ResponseCode
T, G = "TopicA", "G"
RETRY, DLQ = retry_topic(G), dlq_topic(G)
BEFORE_LIMITS = 120
"""The last version of clients that does not say how often it tries."""


class _NoDelays:
    """Lays every message where it is to go in the end, as if its time had come."""

    def place(self, message: Message, _now_ms: int) -> Message:
        return message


class _Retrying:
    """The handlers of a working broker that take what a group could not consume."""

    def __init__(self, state: retries.BrokerState) -> None:
        state.placing = cast("Placing", _NoDelays())
        self.state = state
        self.connection = FakeConnection()
        self._routes = retries.routes(state) | SendHandler(state).routes()

    def append(self, message: Message | None = None) -> int:
        """Put a message into the log and return its place."""
        return self.state.store.append(message or make_message(tag="A", UNIQ_KEY="U1")).log_offset

    def send_back(
        self,
        log_offset: int,
        *,
        delay_level: int = 0,
        max_reconsume_times: int | None = None,
        version: int | None = None,
    ) -> int:
        header = ConsumerSendBackRequest(
            log_offset=LogOffset(log_offset),
            group=G,
            delay_level=delay_level,
            max_reconsume_times=max_reconsume_times,
        )
        return self._ask(Command.request(RequestCode.CONSUMER_SEND_MSG_BACK, header, opaque=7), version)

    def send_to_retry(
        self,
        *,
        reconsume_times: int | None = None,
        max_reconsume_times: int | None = None,
        is_batch: int = False,
    ) -> int:
        header = SendMessageRequestV2(
            producer_group="CLIENT_INNER_PRODUCER",
            topic=RETRY,
            default_topic="TBW102",
            default_topic_queue_count=4,
            queue_id=0,
            sys_flag=0,
            born_timestamp_ms=1,
            flag=0,
            properties="DELAY\x013\x02",
            reconsume_times=reconsume_times,
            max_reconsume_times=max_reconsume_times,
            is_batch=bool(is_batch),
        )
        return self._ask(Command.request(RequestCode.SEND_MESSAGE_V2, header, body=b"body"), None)

    async def records(self, topic: str, queue_id: int = 0) -> list[Record]:
        await asyncio.sleep(0)
        return self.state.store.records(topic, queue_id, 0, 100)

    def _ask(self, request: Command, version: int | None) -> int:
        if version is not None:
            request.version = version
        try:
            answer = self._routes[request.code](request, self.connection)
        except ResponseError as refusal:
            return refusal.code
        assert answer is not None
        return C.SUCCESS


def run(
    root: Path, scenario: Callable[[_Retrying], Awaitable[None]], *, settings: BrokerSettings = SETTINGS
) -> None:
    async def with_broker() -> None:
        async with working_broker(root, settings) as broker:
            await scenario(_Retrying(broker.state))

    asyncio.run(with_broker())


def with_settings(**changes: object) -> BrokerSettings:
    return msgspec.structs.replace(SETTINGS, **changes)


class TestSendBack:
    def test_the_copy_says_where_it_comes_from_and_how_often_it_came(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            original = msgspec.structs.replace(
                make_message(3, tag="A", keys="k", UNIQ_KEY="U1"), flag=5, born_timestamp_ms=77
            )
            retrying.state.topics.put(TopicConfig(topic_name=T))
            place = retrying.append(original)
            assert retrying.send_back(place) == C.SUCCESS
            (copy,) = await retrying.records(RETRY)
            assert (bytes(copy.body), copy.flag, copy.born_timestamp_ms) == (original.body, 5, 77)
            assert (copy.born_host, copy.reconsume_times) == (original.born_host, 1)
            origin_id = encode_offset_id(retrying.state.store_host, place)
            assert decode_properties(copy.properties) == {
                "KEYS": "k",
                "TAGS": "A",
                "UNIQ_KEY": "U1",
                "RETRY_TOPIC": T,
                "ORIGIN_MESSAGE_ID": origin_id,
                "DELAY": "3",
                "WAIT": "false",
            }
            assert retrying.send_back(copy.log_offset) == C.SUCCESS
            assert retrying.state.counters.find("SNDBCK_PUT_NUMS", f"{T}@{G}") is not None
            again = (await retrying.records(RETRY))[1]
            said = decode_properties(again.properties)
            assert (again.reconsume_times, said["DELAY"]) == (2, "4")
            assert (said["RETRY_TOPIC"], said["ORIGIN_MESSAGE_ID"]) == (T, origin_id)

        run(tmp_path, scenario)

    def test_what_comes_from_a_topic_that_there_is_not_gets_no_counter(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            place = retrying.append(make_message(3, RETRY_TOPIC="no such topic"))
            assert retrying.send_back(place) == C.SUCCESS
            assert retrying.state.counters.find("SNDBCK_PUT_NUMS", f"no such topic@{G}") is None

        run(tmp_path, scenario)

    def test_the_retry_topic_has_as_many_queues_as_the_group_wants(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            retrying.state.groups.put(SubscriptionGroupConfig(group_name=G, retry_queue_count=3))
            place = retrying.append()
            for _ in range(6):
                assert retrying.send_back(place) == C.SUCCESS
            topic = retrying.state.topics.find(RETRY)
            assert topic is not None
            assert (topic.read_queue_count, topic.write_queue_count, topic.perm) == (3, 3, 6)
            assert [len(await retrying.records(RETRY, queue_id)) for queue_id in range(3)] == [2, 2, 2]

        run(tmp_path, scenario)

    def test_nothing_goes_to_a_queue_that_the_retry_topic_does_not_have(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            place = retrying.append()
            retrying.send_back(place)
            retrying.state.groups.put(SubscriptionGroupConfig(group_name=G, retry_queue_count=4))
            for _ in range(3):
                assert retrying.send_back(place) == C.SUCCESS
            assert len(await retrying.records(RETRY)) == 4

        run(tmp_path, scenario)

    @pytest.mark.parametrize(
        ("asked", "retries_before", "level"), [(0, 0, "3"), (0, 5, "8"), (7, 0, "7"), (2, 5, "2")]
    )
    def test_a_retry_waits_as_asked_or_longer_each_time(
        self, tmp_path: Path, asked: int, retries_before: int, level: str
    ) -> None:
        async def scenario(retrying: _Retrying) -> None:
            message = msgspec.structs.replace(make_message(DELAY="18"), reconsume_times=retries_before)
            assert retrying.send_back(retrying.append(message), delay_level=asked) == C.SUCCESS
            (copy,) = await retrying.records(RETRY)
            assert decode_properties(copy.properties)["DELAY"] == level

        run(tmp_path, scenario)

    @pytest.mark.parametrize(
        ("fields", "retries_before"),
        [
            ({"delay_level": -1}, 0),
            ({}, 16),
            ({"max_reconsume_times": 2}, 2),
            ({"max_reconsume_times": 0}, 0),
            ({"max_reconsume_times": 99, "version": BEFORE_LIMITS}, 16),
        ],
    )
    def test_what_came_often_enough_is_a_dead_letter_at_once(
        self, tmp_path: Path, fields: dict[str, int], retries_before: int
    ) -> None:
        async def scenario(retrying: _Retrying) -> None:
            message = msgspec.structs.replace(make_message(), reconsume_times=retries_before)
            assert retrying.send_back(retrying.append(message), **fields) == C.SUCCESS
            (letter,) = await retrying.records(DLQ)
            said = decode_properties(letter.properties)
            assert (said["DELAY"], said["RETRY_TOPIC"]) == ("0", T)
            assert letter.reconsume_times == retries_before + 1
            assert await retrying.records(RETRY) == []
            topic = retrying.state.topics.find(DLQ)
            assert topic is not None
            assert (topic.read_queue_count, topic.write_queue_count, topic.perm) == (1, 1, 6)

        run(tmp_path, scenario)

    @pytest.mark.parametrize(
        ("fields", "retries_before"),
        [
            ({}, 15),
            ({"max_reconsume_times": 17}, 16),
            ({"max_reconsume_times": 1, "version": BEFORE_LIMITS}, 15),
        ],
    )
    def test_what_has_tries_left_comes_again(
        self, tmp_path: Path, fields: dict[str, int], retries_before: int
    ) -> None:
        async def scenario(retrying: _Retrying) -> None:
            message = msgspec.structs.replace(make_message(), reconsume_times=retries_before)
            assert retrying.send_back(retrying.append(message), **fields) == C.SUCCESS
            assert len(await retrying.records(RETRY)) == 1
            assert retrying.state.topics.find(DLQ) is None

        run(tmp_path, scenario)

    def test_a_group_says_how_often_its_messages_come_again(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            retrying.state.groups.put(SubscriptionGroupConfig(group_name=G, retry_max_times=1))
            retrying.send_back(retrying.append())
            (copy,) = await retrying.records(RETRY)
            retrying.send_back(copy.log_offset)
            assert len(await retrying.records(DLQ)) == 1

        run(tmp_path, scenario)

    def test_a_group_without_retry_queues_gets_nothing_again(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            retrying.state.groups.put(SubscriptionGroupConfig(group_name=G, retry_queue_count=0))
            place = retrying.append()
            end = retrying.state.store.log.log_end
            assert retrying.send_back(place) == C.SUCCESS
            assert retrying.send_back(place, delay_level=-1) == C.SUCCESS
            assert retrying.state.store.log.log_end == end

        run(tmp_path, scenario)

    def test_a_copy_waits_by_its_level_alone_and_is_no_half_of_a_transaction(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            original = make_message(
                sys_flag=int(SysFlag.COMMIT), TRAN_MSG="true", TIMER_DELAY_SEC="9", TIMER_OUT_MS="1"
            )
            assert retrying.send_back(retrying.append(original)) == C.SUCCESS
            (copy,) = await retrying.records(RETRY)
            assert {"TRAN_MSG", "TIMER_DELAY_SEC"}.isdisjoint(decode_properties(copy.properties))

        run(tmp_path, scenario)

    def test_properties_that_nobody_could_encode_go_through_as_they_are(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            odd = b"K\x01a\x01b\x02\xff\x01\xfe"
            place = retrying.append(msgspec.structs.replace(make_message(), properties=odd))
            assert retrying.send_back(place) == C.SUCCESS
            (copy,) = await retrying.records(RETRY)
            assert bytes(copy.properties).startswith(odd + b"\x02")

        run(tmp_path, scenario)

    def test_what_is_not_there_can_not_be_sent_back(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            place = retrying.append()
            prepared = retrying.append(make_message(sys_flag=int(SysFlag.PREPARED)))
            end = retrying.state.store.log.log_end
            for wrong in (place + 1, end, 1 << 62, -1, prepared):
                assert retrying.send_back(wrong) == C.SYSTEM_ERROR
            assert retrying.state.store.log.log_end == end

        run(tmp_path, scenario)

    def test_an_unknown_group_is_refused_where_groups_do_not_come_by_themselves(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            assert retrying.send_back(retrying.append()) == C.SUBSCRIPTION_GROUP_NOT_EXIST
            assert retrying.send_to_retry() == C.SUBSCRIPTION_GROUP_NOT_EXIST

        run(tmp_path, scenario, settings=with_settings(auto_create_subscription_group=False))

    def test_a_broker_that_may_not_be_written_to_takes_nothing_back(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            assert retrying.send_back(retrying.append()) == C.NO_PERMISSION

        run(tmp_path, scenario, settings=with_settings(broker_permission=4))

    def test_a_retry_topic_that_may_not_be_written_to_takes_nothing_back(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            retrying.state.topics.put(TopicConfig(topic_name=RETRY, perm=4))
            assert retrying.send_back(retrying.append()) == C.NO_PERMISSION

        run(tmp_path, scenario)

    def test_a_copy_that_can_not_be_written_is_an_error_of_the_system(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def scenario(retrying: _Retrying) -> None:
            place = retrying.append()
            # It fits into a file of the log, and its copy, which says more, does not.
            full = retrying.append(
                msgspec.structs.replace(make_message(), properties=b"K\x01" + b"v" * 3_900)
            )
            assert retrying.send_back(full) == C.SYSTEM_ERROR

            def append(_message: object) -> None:
                raise DiskFull("commitlog", 4096)

            monkeypatch.setattr(retrying.state.store, "append", append)
            assert retrying.send_back(place) == C.SYSTEM_ERROR

        run(tmp_path, scenario)


class TestSendsToARetryTopic:
    @pytest.mark.parametrize(
        ("fields", "topic"),
        [
            ({}, RETRY),
            ({"reconsume_times": 16}, RETRY),
            ({"reconsume_times": 17}, DLQ),
            ({"reconsume_times": 2, "max_reconsume_times": 2}, RETRY),
            ({"reconsume_times": 3, "max_reconsume_times": 2}, DLQ),
        ],
    )
    def test_one_that_came_too_often_is_a_dead_letter(
        self, tmp_path: Path, fields: dict[str, int], topic: str
    ) -> None:
        async def scenario(retrying: _Retrying) -> None:
            assert retrying.send_to_retry(**fields) == C.SUCCESS
            (record,) = await retrying.records(topic)
            assert record.reconsume_times == fields.get("reconsume_times", 0)
            level = decode_properties(record.properties)["DELAY"]
            assert level == ("3" if topic == RETRY else "-1")

        run(tmp_path, scenario)

    def test_a_group_that_consumes_in_order_gets_nothing_again(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            queue = MessageQueue(topic=T, broker_name="broker-a", queue_id=0)
            retrying.state.locks.lock(G, [queue], client_id="C", now_ms=steady_ms(retrying.state.clock))
            assert retrying.send_to_retry(reconsume_times=1, max_reconsume_times=5) == C.SUCCESS
            assert len(await retrying.records(DLQ)) == 1
            retrying.state.locks.unlock(G, [queue], client_id="C")
            assert retrying.send_to_retry(reconsume_times=1, max_reconsume_times=5) == C.SUCCESS
            assert len(await retrying.records(RETRY)) == 1

        run(tmp_path, scenario)

    def test_it_is_taken_also_where_sends_create_no_topics(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            assert retrying.send_to_retry() == C.SUCCESS
            topic = retrying.state.topics.find(RETRY)
            assert topic is not None
            assert (topic.write_queue_count, topic.perm) == (1, 6)

        run(tmp_path, scenario, settings=with_settings(auto_create_topic_enable=False))

    def test_no_batch_is_taken_not_even_as_a_dead_letter(self, tmp_path: Path) -> None:
        async def scenario(retrying: _Retrying) -> None:
            assert retrying.send_to_retry(reconsume_times=17, is_batch=True) == C.MESSAGE_ILLEGAL

        run(tmp_path, scenario)
