"""A producer and brokers that fail in every way: what is tried again, where, and what the caller is told."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

import pytest

from tanist.client import ClientClosed, InvalidArgument, Message, NoRoute, Producer, SendFailed, SendStatus
from tanist.client.sending.outgoing import Outgoing, OutgoingMaker
from tanist.errors import ConnectFailed, ConnectionLost, RequestTimeout
from tanist.model.route import MessageQueue
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.client import HeartbeatData
from tanist.protocol.headers.client import UnregisterClientRequest
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.response_errors import BrokerBusy, MessageRefused, TopicNotFound
from tests.support.conditions import turns, until
from tests.support.fake_cluster import FakeCluster, accept, refuse
from tests.support.remoting import in_time, silent_address

C = RequestCode
R = ResponseCode
M = Message("T", b"x")


def run(
    scenario: Callable[[FakeCluster, Producer], Awaitable[None]],
    *names: str,
    topics: tuple[str, ...] = ("T",),
    **options: Any,
) -> None:
    async def play() -> None:
        async with FakeCluster(*(names or ("a",)), topics=topics) as cluster:
            async with Producer(group="g", namesrv=cluster.namesrv, **options) as producer:
                await scenario(cluster, producer)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            assert not [task for task in others if "tanist/client" in str(task.get_coro())]

    asyncio.run(play())


def ignore(_request: Command) -> None:
    return None


def test_opening_and_closing_a_producer_uses_no_network() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        await turns()
        assert cluster.asked == []
        assert cluster.brokers["a"].others == []

    run(scenario)


def test_the_first_send_asks_for_the_route_and_later_ones_do_not() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        await asyncio.gather(*(producer.send(M) for _ in range(20)))
        await producer.send(M)
        assert cluster.asked == ["T"]

    run(scenario)


def test_brokers_know_the_producer_from_its_first_route_to_its_end() -> None:
    async def play() -> None:
        async with FakeCluster("a", "b") as cluster:
            async with Producer(group="orders", namesrv=cluster.namesrv, instance="one") as producer:
                await producer.send(M)
                await until(lambda: all(broker.others for broker in cluster.brokers.values()))
            for broker in cluster.brokers.values():
                data = decode_java_json(broker.others[0].body, HeartbeatData)
                assert data.client_id == "127.0.0.1@one"
                assert [member.group_name for member in data.producer_data_set] == ["orders"]
                farewell = broker.others[-1]
                assert farewell.code == C.UNREGISTER_CLIENT
                assert farewell.header(UnregisterClientRequest).producer_group == "orders"

    asyncio.run(play())


def test_messages_go_to_all_queues_in_turn() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        for _ in range(8):
            await producer.send(M)
        for broker in cluster.brokers.values():
            assert sorted(header.queue_id for header in broker.headers()) == [0, 0, 1, 1]
            assert {header.broker_name for header in broker.headers()} == {broker.name}

    run(scenario, "a", "b")


@pytest.mark.parametrize(
    "code",
    [
        *(R.SYSTEM_ERROR, R.SYSTEM_BUSY, R.SERVICE_NOT_AVAILABLE, R.NO_PERMISSION, R.TOPIC_NOT_EXIST),
        *(R.FLOW_CONTROL, R.GO_AWAY),
    ],
)
def test_what_one_broker_refuses_goes_to_another(code: ResponseCode) -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        cluster.brokers["a"].answer = refuse(code)
        receipts = [await producer.send(M) for _ in range(8)]
        assert {receipt.queue.broker_name for receipt in receipts} == {"b"}
        assert len(cluster.brokers["b"].sent) == 8
        assert cluster.brokers["a"].sent

    run(scenario, "a", "b")


def test_a_busy_broker_is_left_alone_for_a_while() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        cluster.brokers["a"].answer = refuse(R.SYSTEM_BUSY)
        for _ in range(20):
            await producer.send(M)
        assert len(cluster.brokers["a"].sent) == 1

    run(scenario, "a", "b")


def test_a_busy_broker_is_asked_again_if_it_is_the_only_one() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        broker = cluster.brokers["a"]

        def second_time_lucky(request: Command) -> Command:
            return accept(request) if len(broker.sent) > 1 else refuse(R.SYSTEM_BUSY)(request) or request

        broker.answer = second_time_lucky
        assert (await producer.send(M)).queue.broker_name == "a"
        assert len(broker.sent) == 2

    run(scenario)


def test_after_all_tries_the_caller_is_told_of_each() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        for broker in cluster.brokers.values():
            broker.answer = refuse(R.SYSTEM_BUSY)
        with pytest.raises(SendFailed) as failed:
            await producer.send(M)
        assert len(failed.value.failures) == 3
        assert {broker for broker, _ in failed.value.failures} == {"a", "b"}
        assert isinstance(failed.value.__cause__, BrokerBusy)
        assert not failed.value.may_be_stored
        assert len(cluster.sent) == 3

    run(scenario, "a", "b")


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_a_producer_tries_as_often_as_it_is_told_to(retries: int) -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        cluster.brokers["a"].answer = refuse(R.SYSTEM_ERROR)
        with pytest.raises(SendFailed):
            await producer.send(M)
        assert len(cluster.sent) == retries + 1

    run(scenario, retries=retries, timeout_s=30)


def test_what_no_broker_would_take_is_not_tried_again() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        for broker in cluster.brokers.values():
            broker.answer = refuse(R.MESSAGE_ILLEGAL)
        with pytest.raises(MessageRefused, match="so the test says"):
            await producer.send(M)
        assert len(cluster.sent) == 1

    run(scenario, "a", "b")


def test_a_broker_that_does_not_answer_leaves_the_caller_in_doubt() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        await producer.send(M)  # Finding the broker takes its time, too.
        cluster.brokers["a"].answer = ignore
        with pytest.raises(SendFailed) as failed:
            await producer.send(M, timeout_s=0.2)
        assert failed.value.may_be_stored
        assert isinstance(failed.value.__cause__, RequestTimeout)

    run(scenario)


def test_a_connection_that_breaks_is_opened_again_and_the_doubt_is_told_if_nothing_helps() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        broker = cluster.brokers["a"]

        def hang_up(request: Command) -> None:
            broker.connections[-1].close("the test hangs up")

        broker.answer = hang_up
        with pytest.raises(SendFailed) as failed:
            await producer.send(M)
        assert failed.value.may_be_stored
        assert isinstance(failed.value.__cause__, ConnectionLost)
        assert len(set(broker.connections)) == 3
        broker.answer = accept
        assert (await producer.send(M)).status is SendStatus.OK

    run(scenario)


def test_a_broker_that_is_gone_is_left_for_the_other_one() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        await asyncio.gather(*(producer.send(M) for _ in range(4)))
        await cluster.brokers["a"].server.close(grace_s=0)
        receipts = [await producer.send(M) for _ in range(20)]
        assert {receipt.queue.broker_name for receipt in receipts} == {"b"}

    run(scenario, "a", "b")


def test_a_host_that_does_not_answer_at_all_leaves_time_for_the_other_one() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        with silent_address() as address:
            cluster.brokers["a"].false_address = address
            receipts = await asyncio.gather(*(producer.send(M) for _ in range(4)))
        assert {receipt.queue.broker_name for receipt in receipts} == {"b"}

    run(scenario, "a", "b", timeout_s=6)


def test_when_all_brokers_are_gone_nothing_is_stored_for_sure() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        await producer.send(M)
        await cluster.brokers["a"].server.close(grace_s=0)
        await turns()
        with pytest.raises(SendFailed) as failed:
            await producer.send(M, timeout_s=0.3)
        assert not failed.value.may_be_stored
        assert isinstance(failed.value.__cause__, ConnectFailed)

    run(scenario)


def test_a_broker_that_is_about_to_stop_is_asked_on_a_new_connection() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        broker = cluster.brokers["a"]
        await producer.send(M)

        def only_on_another(request: Command) -> Command:
            is_old = broker.connections[-1] is broker.connections[0]
            return request.reply(R.GO_AWAY) if is_old else accept(request)

        broker.answer = only_on_another
        await producer.send(M)
        assert len(set(broker.connections)) == 2
        assert broker.connections[0].is_open

    run(scenario)


def test_routes_are_asked_for_again_after_a_failure() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        cluster.brokers["a"].answer = refuse(R.SERVICE_NOT_AVAILABLE)
        for _ in range(4):
            await producer.send(M)
        await until(lambda: cluster.asked.count("T") > 1)

    run(scenario, "a", "b")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (R.FLUSH_DISK_TIMEOUT, SendStatus.FLUSH_DISK_TIMEOUT),
        (R.FLUSH_SLAVE_TIMEOUT, SendStatus.FLUSH_SLAVE_TIMEOUT),
        (R.SLAVE_NOT_AVAILABLE, SendStatus.SLAVE_NOT_AVAILABLE),
    ],
)
def test_a_message_that_is_stored_but_not_safe_is_told_and_not_sent_again(
    code: ResponseCode, status: SendStatus
) -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        cluster.brokers["a"].answer = partial(accept, code=code)
        assert (await producer.send(M)).status is status
        assert len(cluster.sent) == 1

    run(scenario)


def test_a_chosen_queue_is_kept_to_through_all_tries() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        cluster.brokers["a"].answer = refuse(R.SYSTEM_BUSY)
        with pytest.raises(SendFailed):
            await producer.send(M, queue=MessageQueue(topic="T", broker_name="a", queue_id=1))
        assert [header.queue_id for header in cluster.brokers["a"].headers()] == [1, 1, 1]
        assert cluster.brokers["b"].sent == []

    run(scenario, "a", "b")


def test_a_sharding_key_has_one_queue_also_while_its_broker_fails() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        message = Message("T", b"x", sharding_key="hello")
        queues = {(await producer.send(message)).queue for _ in range(5)}
        assert len(queues) == 1
        cluster.brokers[queues.pop().broker_name].answer = refuse(R.SYSTEM_BUSY)
        with pytest.raises(SendFailed) as failed:
            await producer.send(message)
        assert len({broker for broker, _ in failed.value.failures}) == 1

    run(scenario, "a", "b")


def test_sends_with_one_sharding_key_stay_in_order_also_when_one_is_tried_again() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        broker = cluster.brokers["a"]
        stored: list[bytes] = []

        def refuse_every_third(request: Command) -> Command:
            if len(broker.sent) % 3 == 0:
                return request.reply(R.SYSTEM_BUSY)
            stored.append(bytes(request.body))
            return accept(request)

        broker.answer = refuse_every_third
        await asyncio.gather(
            *(producer.send(Message("T", b"%d" % number, sharding_key="k")) for number in range(10))
        )
        assert stored == [b"%d" % number for number in range(10)]
        assert len(producer._parts().sender._key_turns) == 0

    run(scenario)


def test_a_one_way_message_does_not_overtake_others_of_its_sharding_key() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        broker = cluster.brokers["a"]
        stored: list[bytes] = []

        def refuse_the_first(request: Command) -> Command:
            if len(broker.sent) == 1:
                return request.reply(R.SYSTEM_BUSY)
            stored.append(bytes(request.body))
            return accept(request)

        broker.answer = refuse_the_first
        first = asyncio.ensure_future(producer.send(Message("T", b"1", sharding_key="k")))
        second = asyncio.ensure_future(producer.send_oneway(Message("T", b"2", sharding_key="k")))
        await asyncio.gather(first, second)
        await until(lambda: len(broker.sent) == 3)
        assert [request.body for request in broker.sent] == [b"1", b"1", b"2"]
        assert len(producer._parts().sender._key_turns) == 0

    run(scenario)


def test_a_queue_that_the_topic_does_not_have_is_refused_before_it_is_sent() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        with pytest.raises(InvalidArgument, match="queue="):
            await producer.send(M, queue=MessageQueue(topic="T", broker_name="a", queue_id=2))
        assert cluster.sent == []

    run(scenario)


def test_a_chosen_queue_that_goes_while_it_is_tried_leaves_the_caller_in_doubt() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        broker = cluster.brokers["a"]

        def hang_up(_request: Command) -> None:
            cluster.without["T"] = {"a"}
            broker.connections[-1].close("the test hangs up")

        queue = (await producer.send(M)).queue
        queue = MessageQueue(topic="T", broker_name="a", queue_id=queue.queue_id)
        broker.answer = hang_up
        with pytest.raises(SendFailed) as failed:
            await producer.send(M, queue=queue)
        assert failed.value.may_be_stored
        with pytest.raises(NoRoute, match="no queue of it at broker a"):
            await until_refreshed(producer, queue)

    run(scenario, "a", "b", retries=100, timeout_s=9)


async def until_refreshed(producer: Producer, queue: MessageQueue) -> None:
    """Send until the route has been asked for again."""
    while True:
        try:
            await producer.send(M, queue=queue)
        except SendFailed:
            await asyncio.sleep(0)


def test_a_sharding_key_keeps_its_queue_through_all_tries_also_if_the_route_changes() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        message = Message("T", b"x", sharding_key="hello")
        broker = cluster.brokers[(await producer.send(message)).queue.broker_name]

        def lose_the_route(request: Command) -> Command:
            cluster.without["T"] = {broker.name}
            return request.reply(R.SYSTEM_BUSY)

        broker.answer = lose_the_route
        producer._parts().session.routes.suspect()
        with pytest.raises(SendFailed) as failed:
            await producer.send(message)
        assert {name for name, _ in failed.value.failures} == {broker.name}
        assert (await producer.send(message)).queue.broker_name != broker.name

    run(scenario, "a", "b", retries=100, timeout_s=9)


def test_nothing_is_sent_any_more_when_the_time_is_over() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        await producer.send(M)
        cluster.brokers["a"].answer = refuse(R.SYSTEM_BUSY)
        with pytest.raises(SendFailed) as failed:
            await producer.send(M, timeout_s=1.5)
        assert not failed.value.may_be_stored
        assert len(cluster.sent) == len(failed.value.failures) + 1

    run(scenario, retries=100)


def test_a_producer_that_is_opened_again_gives_ids_of_another_kind() -> None:
    """As two processes do that were forked when it was made and not open yet."""

    async def play() -> None:
        kinds: set[str] = set()
        async with FakeCluster("a") as cluster:
            producer = Producer(group="g", namesrv=cluster.namesrv)
            for _ in range(2):
                async with producer:
                    # The address, the process and a number by chance; the time and a count follow.
                    kinds.add((await producer.send(M)).message_id[:20])
        assert len(kinds) == 2

    asyncio.run(play())


def test_an_unknown_topic_borrows_the_brokers_of_the_template_until_its_route_is_known() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        message = Message("New", b"x")
        receipts = [await producer.send(message) for _ in range(4)]
        assert {receipt.queue.queue_id for receipt in receipts} == {0, 1}
        assert {header.default_topic for header in cluster.brokers["a"].headers()} == {"TBW102"}
        cluster.topics.add("New")
        asked = cluster.asked.count("New")
        await until(lambda: cluster.asked.count("New") > asked)
        await producer.send(message)

    run(scenario, topics=("TBW102",))


def test_a_new_topic_is_sent_to_all_brokers_also_if_only_one_has_made_it_yet() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        message = Message("New", b"x")
        await producer.send(message)
        cluster.topics.add("New")
        cluster.without["New"] = {"b"}
        asked = cluster.asked.count("New")
        await until(lambda: cluster.asked.count("New") > asked + 1)
        receipts = [await producer.send(message) for _ in range(4)]
        assert {receipt.queue.broker_name for receipt in receipts} == {"a", "b"}

    run(scenario, "a", "b", topics=("TBW102",))


def test_an_unknown_topic_without_a_template_is_told_so() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        with pytest.raises(TopicNotFound, match="no topic Unknown"):
            await producer.send(Message("Unknown", b"x"))
        cluster.topics.add("Unknown")
        await producer.send(Message("Unknown", b"x"))

    run(scenario)


def test_a_topic_that_takes_no_messages_has_no_route() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        cluster.perm = 4
        with pytest.raises(NoRoute, match="none of its brokers takes messages"):
            await producer.send(M)
        cluster.perm = 6
        await producer.send(M)

    run(scenario)


def test_without_a_name_server_there_is_no_route() -> None:
    async def play() -> None:
        async with Producer(group="g", namesrv="127.0.0.1:1") as producer:
            with pytest.raises(NoRoute, match="no name server answers"):
                await in_time(producer.send(M))

    asyncio.run(play())


def test_ten_thousand_sends_at_once_share_one_connection() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        receipts = await asyncio.gather(*(producer.send(M) for _ in range(10_000)))
        assert len({receipt.message_id for receipt in receipts}) == 10_000
        broker = cluster.brokers["a"]
        assert len(broker.sent) == 10_000
        assert len(set(broker.connections)) == 1

    run(scenario, timeout_s=60)


def test_a_send_that_is_cancelled_at_any_moment_gives_back_its_turn_and_its_room() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        sender = producer._parts().sender
        message = Message("T", b"x", sharding_key="k")
        for count in range(40):
            sends = [asyncio.ensure_future(producer.send(message)) for _ in range(3)]
            await turns(count)
            sends[count % 3].cancel()
            await in_time(asyncio.wait(sends))
            assert sum(not send.cancelled() for send in sends) >= 2
            assert (sender._in_flight.count, sender._in_flight.size_bytes, len(sender._key_turns)) == (
                0,
                0,
                0,
            )

    run(scenario)


def test_closing_that_is_cancelled_at_any_moment_leaves_no_connection_and_no_task() -> None:
    async def play() -> None:
        async with FakeCluster("a", "b") as cluster:
            for count in range(1, 30):
                producer = await Producer(group="g", namesrv=cluster.namesrv, trace=True).__aenter__()
                await producer.send(M)
                remoting = producer._parts().session.wire.remoting
                closing = asyncio.ensure_future(producer.__aexit__(None, None, None))
                await turns(count)
                closing.cancel()
                await in_time(asyncio.wait([closing]))
                await until(lambda remoting=remoting: not len(remoting._connections))
            others = asyncio.all_tasks() - {asyncio.current_task()}
            assert not [task for task in others if "tanist/client" in str(task.get_coro())]

    asyncio.run(play())


def test_a_cancelled_send_leaves_nothing_behind() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        broker = cluster.brokers["a"]
        broker.answer = ignore
        sends = [asyncio.ensure_future(producer.send(M)) for _ in range(2000)]
        await until(lambda: len(broker.sent) > 100)
        for send in sends:
            send.cancel()
        await asyncio.gather(*sends, return_exceptions=True)
        assert all(send.cancelled() for send in sends)
        assert producer._parts().sender._in_flight.count == 0
        broker.answer = accept
        assert (await producer.send(M)).status is SendStatus.OK

    run(scenario)


@pytest.mark.parametrize(("size_bytes", "is_apart"), [(10_000, False), (1_000_000, True)])
def test_large_bodies_are_compressed_without_holding_up_the_event_loop(
    size_bytes: int, is_apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    compress = OutgoingMaker.compress

    def note(maker: OutgoingMaker, outgoing: Outgoing) -> Outgoing:
        threads.append(threading.current_thread())
        return compress(maker, outgoing)

    monkeypatch.setattr(OutgoingMaker, "compress", note)

    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        message = Message("T", bytes(size_bytes))
        await producer.send(message)
        await producer.send_oneway(message)
        await until(lambda: len(cluster.sent) == 2)
        assert all(len(request.body) < size_bytes for request in cluster.sent)
        assert [thread is not threading.main_thread() for thread in threads] == [is_apart] * 2

    run(scenario)


def test_one_way_sends_arrive_and_are_not_answered() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        for _ in range(100):
            await producer.send_oneway(M)
        await until(lambda: len(cluster.sent) == 100)
        assert all(request.is_one_way for request in cluster.sent)

    run(scenario)


def test_one_way_sends_wait_for_a_broker_that_does_not_keep_up() -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        message = Message("T", bytes(1 << 20))
        # Far more than may wait in memory for one peer.
        for _ in range(64):
            await producer.send_oneway(message)
        await until(lambda: len(cluster.sent) == 64)
        assert len(set(cluster.brokers["a"].connections)) == 1

    run(scenario, compression=None, timeout_s=60)


def test_a_producer_that_is_not_open_says_so() -> None:
    async def play() -> None:
        producer = Producer(group="g", namesrv="127.0.0.1:1")
        sends = (producer.send, producer.send_oneway)
        for send in sends:
            with pytest.raises(ClientClosed, match="the producer is not open"):
                await send(M)
        async with producer:
            pass
        with pytest.raises(ClientClosed):
            await producer.send_batch([M])

    asyncio.run(play())


def test_sends_that_are_on_their_way_end_when_the_producer_is_closed() -> None:
    async def play() -> None:
        async with FakeCluster("a") as cluster:
            cluster.brokers["a"].answer = ignore
            async with Producer(group="g", namesrv=cluster.namesrv, timeout_s=60) as producer:
                sends = [asyncio.ensure_future(producer.send(M)) for _ in range(1500)]
                await until(lambda: len(cluster.sent) > 1000)
            errors = await in_time(asyncio.gather(*sends, return_exceptions=True))
            assert {type(error) for error in errors} == {SendFailed, ClientClosed}

    asyncio.run(play())


def test_a_producer_can_be_opened_again() -> None:
    async def play() -> None:
        async with FakeCluster("a") as cluster:
            producer = Producer(group="g", namesrv=cluster.namesrv)
            for _ in range(2):
                async with producer:
                    await producer.send(M)
            assert len(cluster.sent) == 2

    asyncio.run(play())


_Call: TypeAlias = Callable[[Any], Awaitable[object]]
_OTHER_TOPIC = MessageQueue(topic="U", broker_name="a", queue_id=0)
_WRONG_CALLS: list[tuple[str, _Call]] = [
    ("message", lambda producer: producer.send(b"x")),
    ("message", lambda producer: producer.send_oneway("x")),
    ("messages", lambda producer: producer.send_batch([])),
    ("messages", lambda producer: producer.send_batch(M)),
    ("queue", lambda producer: producer.send(M, queue=1)),
    ("queue", lambda producer: producer.send(M, queue=_OTHER_TOPIC)),
    ("timeout_s", lambda producer: producer.send(M, timeout_s=0)),
    ("timeout_s", lambda producer: producer.send(M, timeout_s="3")),
    ("body", lambda producer: producer.send(Message("T", bytes((4 << 20) + 1)))),
]


@pytest.mark.parametrize(("argument", "call"), _WRONG_CALLS)
def test_a_wrong_argument_of_a_send_is_named_before_any_network_use(argument: str, call: _Call) -> None:
    async def scenario(cluster: FakeCluster, producer: Producer) -> None:
        with pytest.raises(InvalidArgument) as refused:
            await call(producer)
        assert refused.value.argument == argument
        assert cluster.asked == []

    run(scenario)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("group", "no blanks"),
        ("group", ""),
        ("group", 7),
        ("group", "DEFAULT_PRODUCER"),
        ("namesrv", "nowhere"),
        ("timeout_s", 0),
        ("retries", -1),
        ("retries", "2"),
        ("retries", 1.5),
        ("max_message_bytes", 1.5),
        ("compress_from_bytes", 1.5),
        ("instance", ""),
        ("credentials", "key"),
        ("max_message_bytes", 0),
        ("compression", "gzip"),
    ],
)
def test_a_wrong_argument_of_a_producer_is_named(argument: str, value: Any) -> None:
    arguments: dict[str, Any] = {"group": "g", argument: value}
    with pytest.raises(InvalidArgument) as refused:
        Producer(**arguments)
    assert refused.value.argument == argument
