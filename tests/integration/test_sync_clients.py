"""The blocking clients, against a broker in a thread beside them."""

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from tanist import client
from tanist.sync import (
    ClientClosed,
    Consumer,
    InvalidArgument,
    Message,
    Outcome,
    Producer,
    ReceivedMessage,
    Start,
)
from tanist.testing import EmbeddedBroker

TOPIC = "OrderTopic"
DEADLINE_S = 30.0


@pytest.fixture
def broker() -> Generator[EmbeddedBroker]:
    with EmbeddedBroker(topics={TOPIC: 4}) as broker:
        yield broker


def producer_of(broker: EmbeddedBroker, **settings: Any) -> Producer:
    return Producer(group="orders", namesrv=broker.namesrv, **settings)


def consumer_of(broker: EmbeddedBroker, **settings: Any) -> Consumer:
    settings = {"group": "billing", "topics": {TOPIC: "*"}, "start": Start.FIRST} | settings
    return Consumer(namesrv=broker.namesrv, **settings)


def undecided(_message: ReceivedMessage) -> Outcome:
    return Outcome.UNKNOWN


def thread_names() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_what_is_sent_comes_and_counts_as_acknowledged(broker: EmbeddedBroker) -> None:
    with producer_of(broker) as producer:
        bodies = [b"%d" % n for n in range(20)]
        for body in bodies:
            producer.send(Message(TOPIC, body))
    came: list[bytes] = []
    with consumer_of(broker) as consumer:
        for message in consumer:
            came.append(message.body)
            if len(came) == len(bodies):
                break
    assert sorted(came) == sorted(bodies)
    with consumer_of(broker) as consumer:
        assert sum(consumer.lag().values()) == 0


def test_batches_and_one_way_messages_come_too(broker: EmbeddedBroker) -> None:
    with producer_of(broker) as producer:
        producer.send_batch([Message(TOPIC, b"1"), Message(TOPIC, b"2")])
        producer.send_oneway(Message(TOPIC, b"3"))
        with consumer_of(broker) as consumer:
            messages = iter(consumer)
            assert {next(messages).body for _ in range(3)} == {b"1", b"2", b"3"}


@pytest.mark.takes(10)
def test_a_message_comes_again_if_the_block_ends_with_an_exception(broker: EmbeddedBroker) -> None:
    with producer_of(broker) as producer:
        producer.send(Message(TOPIC, b"x"))
    with suppress(ZeroDivisionError), consumer_of(broker) as consumer:
        for _message in consumer:
            raise ZeroDivisionError
    with consumer_of(broker) as consumer:
        again = next(iter(consumer))
    assert (again.body, again.reconsume_times) == (b"x", 1)


def test_threads_share_a_producer_and_handlers_run_in_threads_of_their_own(broker: EmbeddedBroker) -> None:
    came: set[bytes] = set()
    together = threading.Barrier(2)

    def handle(message: ReceivedMessage) -> None:
        if not came:
            # Two handlers at a time, or this would never end.
            with suppress(threading.BrokenBarrierError):
                together.wait(DEADLINE_S)
        came.add(message.body)
        if len(came) == 40:
            consumer.stop()

    with producer_of(broker) as producer, ThreadPoolExecutor(4) as pool:
        list(pool.map(producer.send, [Message(TOPIC, b"%d" % n) for n in range(40)]))
    with consumer_of(broker) as consumer:
        consumer.run(handle, concurrency=2)
    assert not together.broken
    assert len(came) == 40


def test_messages_that_are_at_work_when_a_run_is_stopped_are_acknowledged(broker: EmbeddedBroker) -> None:
    with producer_of(broker) as producer:
        queue = producer.send(Message(TOPIC, b"first")).queue
        came: list[bytes] = []

        def handle(message: ReceivedMessage) -> None:
            came.append(message.body)
            consumer.stop()

        with consumer_of(broker) as consumer:
            consumer.run(handle)
        producer.send(Message(TOPIC, b"second"), queue=queue)
        with consumer_of(broker) as consumer:
            consumer.run(handle)
    assert came == [b"first", b"second"]


@pytest.mark.parametrize("handler", [None, "handle", asyncio.sleep])
def test_a_handler_that_can_not_be_called_so_is_refused(broker: EmbeddedBroker, handler: Any) -> None:
    with consumer_of(broker) as consumer, pytest.raises(InvalidArgument, match="handler="):
        consumer.run(handler)


@pytest.mark.parametrize("concurrency", [0, "2", 10_001])
def test_a_concurrency_that_can_not_be_is_refused(broker: EmbeddedBroker, concurrency: Any) -> None:
    with consumer_of(broker) as consumer, pytest.raises(InvalidArgument, match="concurrency="):
        consumer.run(print, concurrency=concurrency)


def test_a_transaction_is_seen_once_its_block_has_ended_well(broker: EmbeddedBroker) -> None:
    with producer_of(broker, on_check=undecided) as producer:
        with suppress(ZeroDivisionError), producer.transaction(Message(TOPIC, b"taken back")):
            raise ZeroDivisionError
        with producer.transaction(Message(TOPIC, b"kept")) as receipt:
            assert receipt.transaction_id
    with consumer_of(broker) as consumer:
        assert next(iter(consumer)).body == b"kept"
        assert sum(consumer.lag().values()) == 1


def test_a_request_is_answered(broker: EmbeddedBroker) -> None:
    def answer() -> None:
        with consumer_of(broker) as consumer, producer_of(broker) as replier:
            question = next(iter(consumer))
            replier.reply(question, question.body.upper())

    with producer_of(broker) as producer, ThreadPoolExecutor(1) as pool:
        answering = pool.submit(answer)
        reply = producer.request(Message(TOPIC, b"what?"), timeout_s=DEADLINE_S)
        answering.result(DEADLINE_S)
    assert reply.body == b"WHAT?"


def test_queues_are_looked_into_paused_and_gone_back_in(broker: EmbeddedBroker) -> None:
    with producer_of(broker) as producer:
        receipts = [producer.send(Message(TOPIC, b"%d" % n)) for n in range(2)]
    with consumer_of(broker) as consumer:
        queue = receipts[0].queue
        assert queue in consumer.assignment
        assert [message.body for message in consumer.pull(queue, 0)] == [b"0"]
        messages = iter(consumer)
        assert {next(messages).body, next(messages).body} == {b"0", b"1"}
        consumer.seek(queue, 0)
        assert next(messages).body == b"0"
        consumer.pause()
        consumer.resume()
        consumer.commit()


def test_a_loop_ends_when_another_thread_closes_its_consumer(broker: EmbeddedBroker) -> None:
    consumer = consumer_of(broker)
    with ThreadPoolExecutor(1) as pool:
        with consumer:
            messages = iter(consumer)
            looping = pool.submit(lambda: [message.body for message in messages])
            assert consumer.assignment
        assert looping.result(DEADLINE_S) == []


def test_a_loop_that_asks_for_the_next_message_of_a_closed_consumer_has_ended(broker: EmbeddedBroker) -> None:
    with consumer_of(broker) as consumer:
        messages = iter(consumer)
    assert list(messages) == []


def test_a_client_that_is_not_open_says_so(broker: EmbeddedBroker) -> None:
    producer = producer_of(broker)
    with pytest.raises(ClientClosed, match="producer"):
        producer.send(Message(TOPIC, b"x"))
    with producer:
        pass
    with pytest.raises(ClientClosed, match="producer"):
        producer.send(Message(TOPIC, b"x"))
    with pytest.raises(ClientClosed, match="consumer"):
        consumer_of(broker).lag()


def test_a_wrong_argument_is_told_at_the_call_and_begins_no_thread(broker: EmbeddedBroker) -> None:
    before = thread_names()
    with pytest.raises(InvalidArgument, match="group"):
        Producer(group="no group", namesrv=broker.namesrv)
    with pytest.raises(InvalidArgument, match="on_check"):
        producer_of(broker, on_check="commit")
    with pytest.raises(InvalidArgument, match="topics"):
        consumer_of(broker, topics={})
    assert thread_names() == before


async def answer_nothing(_message: ReceivedMessage) -> Outcome:
    return Outcome.UNKNOWN


@pytest.mark.parametrize("function", [answer_nothing, Outcome.COMMIT])
def test_what_is_called_in_a_thread_must_be_a_plain_function(broker: EmbeddedBroker, function: Any) -> None:
    with pytest.raises(InvalidArgument, match="on_check"):
        producer_of(broker, on_check=function)
    with consumer_of(broker) as consumer, pytest.raises(InvalidArgument, match="handler"):
        consumer.run(function)


@pytest.mark.parametrize("concurrency", [0, "4", 1.5])
def test_a_wrong_concurrency_is_named(broker: EmbeddedBroker, concurrency: Any) -> None:
    with consumer_of(broker) as consumer, pytest.raises(InvalidArgument, match="concurrency"):
        consumer.run(print, concurrency=concurrency)


@pytest.mark.parametrize(("blocking", "native"), [(Producer, client.Producer), (Consumer, client.Consumer)])
def test_the_blocking_clients_have_all_that_the_others_have(blocking: type, native: type) -> None:
    wanted = {name for name in vars(native) if not name.startswith("_")}
    assert wanted <= set(vars(blocking))


def test_a_producer_that_is_opened_twice_goes_on(broker: EmbeddedBroker) -> None:
    with producer_of(broker) as producer:
        with pytest.raises(RuntimeError, match="the producer is open already"):
            producer.__enter__()
        producer.send(Message(TOPIC, b"x"))
    assert "producer" not in thread_names()


def test_closing_ends_the_thread(broker: EmbeddedBroker) -> None:
    with producer_of(broker) as producer:
        producer.send(Message(TOPIC, b"x"))
        assert "producer" in thread_names()
    assert "producer" not in thread_names()
