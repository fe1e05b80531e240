"""Consumers of a group whose reader changes: they go on where it is read next, with what they have."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tanist.client import Consumer, Start
from tanist.model.reading import FULL, NONE
from tanist.model.route import MASTER_ID
from tanist.model.topics import READ
from tanist.protocol import RequestCode
from tanist.protocol.headers.offsets import UpdateConsumerOffsetRequest
from tests.support.conditions import turns, until
from tests.support.consuming import Handled, own_queues
from tests.support.messages import TOPIC
from tests.support.played_readers import QUEUE, PlayedReader, PlayedReaders
from tests.support.remoting import in_time

STANDING = RequestCode.GET_READ_STANDING
Scenario = Callable[[PlayedReaders, Consumer, Handled], Awaitable[None]]


def consume(scenario: Scenario, *, is_foreign: bool = False, queue_count: int = 1, **options: Any) -> None:
    """Play a scenario with a consumer that has handled three messages."""

    async def play() -> None:
        handled = Handled()
        async with PlayedReaders(queue_count=queue_count).serving() as group:
            group.master.is_foreign = group.slave.is_foreign = is_foreign
            group.put(3)
            async with Consumer(
                group="g", namesrv=group.namesrv, topics={TOPIC: "*"}, start=Start.FIRST, **options
            ) as consumer:
                running = asyncio.create_task(consumer.run(handled))
                await until(lambda: len(handled.messages) == 3)
                await scenario(group, consumer, handled)
            await running
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left

    asyncio.run(play())


def offsets(handled: Handled) -> list[int]:
    return [message.queue_offset for message in handled.messages]


def switch(group: PlayedReaders) -> None:
    """The slave has seen the registry's record."""
    group.slave.become(READ, reader=group.slave, term=1)


def hand_back(group: PlayedReaders) -> None:
    """As a slave does: parked pulls are refused in favour of the master, then connections are closed."""
    group.slave.become(NONE, reader=group.master, term=1)
    group.slave.hang_up()


def waiting_at(broker: PlayedReader) -> list[int]:
    """The requests that are parked there."""
    return [request.code for request, _ in broker.parked]


def commits(broker: PlayedReader) -> list[int]:
    headers = (
        request.header(UpdateConsumerOffsetRequest)
        for code, request in broker.asked
        if code == RequestCode.UPDATE_CONSUMER_OFFSET
    )
    return [header.consumer_offset for header in headers if header.topic == TOPIC]


@pytest.mark.behaviour("S3-13")
@pytest.mark.behaviour("S3-14")
def test_a_consumer_goes_on_at_the_slave_as_soon_as_that_may_be_read() -> None:
    async def scenario(group: PlayedReaders, consumer: Consumer, handled: Handled) -> None:
        await group.kill(group.master)
        # The slave does not know yet. Somebody waits there for it to change.
        await until(lambda: STANDING in waiting_at(group.slave))
        group.log_count += 2
        switch(group)
        await until(lambda: len(handled.messages) == 5)
        assert offsets(handled) == [0, 1, 2, 3, 4]
        # It was asked no more than needed: whether it knows the question, and to tell when it is read.
        assert group.slave.count(STANDING) == 2
        await until(lambda: group.slave.pulls()[-1] == 5)
        # Once before it was read, and then it knew of the subscription already.
        assert group.slave.pulls()[:-2] == [3]
        await consumer.commit()
        assert group.slave.offsets[TOPIC] == 5

    consume(scenario)


@pytest.mark.behaviour("S3-17")
@pytest.mark.behaviour("S3-18")
def test_one_that_refuses_is_asked_whether_it_may_be_read_and_left_if_it_may_not() -> None:
    async def scenario(group: PlayedReaders, _consumer: Consumer, handled: Handled) -> None:
        group.master.become(NONE, reader=None, term=0)
        await until(lambda: group.master.count(STANDING) > 0)
        group.log_count += 1
        switch(group)
        await until(lambda: offsets(handled) == [0, 1, 2, 3])
        await until(lambda: not group.master.connections)

    consume(scenario)


@pytest.mark.parametrize("is_named", [False, True], ids=["nobody is named", "they name each other"])
def test_while_nobody_is_read_a_consumer_waits_without_asking_all_the_time(is_named: bool) -> None:
    async def scenario(group: PlayedReaders, _consumer: Consumer, handled: Handled) -> None:
        master, slave = group.master, group.slave
        master.become(NONE, reader=slave if is_named else None, term=0)
        slave.become(NONE, reader=master if is_named else None, term=0)
        await until(lambda: STANDING in waiting_at(master) and STANDING in waiting_at(slave))
        asked = len(master.asked) + len(slave.asked)
        await turns(3000)
        assert len(master.asked) + len(slave.asked) - asked < 20
        assert master.count(STANDING) + slave.count(STANDING) <= 6
        group.log_count += 1
        master.become(FULL, reader=master, term=0)
        await until(lambda: offsets(handled) == [0, 1, 2, 3])

    consume(scenario)


def test_a_pull_that_is_refused_goes_to_the_reader_that_the_refusal_names_at_once() -> None:
    async def scenario(group: PlayedReaders, consumer: Consumer, handled: Handled) -> None:
        switch(group)
        group.log_count += 1
        group.master.become(NONE, reader=group.slave, term=1)
        await until(lambda: offsets(handled) == [0, 1, 2, 3])
        # Nobody had to be asked, and the slave's first pull was served.
        assert group.slave.count(STANDING) == group.master.count(STANDING) == 0
        assert group.slave.pulls()[0] == 3
        assert group.slave.refused[RequestCode.PULL_MESSAGE] == 0
        await consumer.commit()
        assert group.slave.offsets[TOPIC] == 4

    consume(scenario)


def test_locks_and_the_members_are_asked_for_where_the_group_is_read_next() -> None:
    async def scenario(group: PlayedReaders, _consumer: Consumer, handled: Handled) -> None:
        switch(group)
        group.log_count += 1
        group.master.become(NONE, reader=group.slave, term=1)
        await until(lambda: offsets(handled) == [0, 1, 2, 3])
        # Long before they are renewed anyway.
        await until(lambda: group.slave.count(RequestCode.LOCK_BATCH_MQ) > 0)
        await until(lambda: group.slave.count(RequestCode.GET_CONSUMER_LIST_BY_GROUP) > 0)

    consume(scenario, orderly=True)


def test_the_queues_of_others_are_left_to_them_until_they_have_come_to_the_next_reader() -> None:
    async def scenario(group: PlayedReaders, consumer: Consumer, _handled: Handled) -> None:
        rebalancer = consumer._open().rebalancer
        group.master.others = {"zz@other"}
        await rebalancer.rebalance()
        assert own_queues(consumer) == {QUEUE}
        switch(group)
        group.master.become(NONE, reader=group.slave, term=1)
        await until(lambda: group.slave.count(RequestCode.GET_CONSUMER_LIST_BY_GROUP) > 0)
        assert not await rebalancer.rebalance()
        assert own_queues(consumer) == {QUEUE}

    consume(scenario, queue_count=2)


@pytest.mark.behaviour("S3-53")
@pytest.mark.known_bug("RMQ #1390", "RMQ #7790")
def test_at_hand_back_a_consumer_keeps_its_queues_and_reads_nothing_twice() -> None:
    async def scenario(group: PlayedReaders, consumer: Consumer, handled: Handled) -> None:
        switch(group)
        group.master.become(NONE, reader=group.slave, term=1)
        group.put(2)
        await until(lambda: len(handled.messages) == 5)
        queues = own_queues(consumer)
        asked_before = len(group.master.pulls())
        # The slave ends before the master has seen that: for a moment nobody is read.
        hand_back(group)
        await until(lambda: STANDING in waiting_at(group.master))
        group.log_count += 2
        group.master.become(FULL, reader=group.master, term=1)
        await until(lambda: len(handled.messages) == 7)
        assert offsets(handled) == list(range(7))
        assert own_queues(consumer) == queues == {QUEUE}
        await until(lambda: group.master.pulls()[-1] == 7)
        # It may have been refused while nobody was read.
        assert group.master.pulls()[asked_before:] in ([5, 7], [5, 5, 7])
        await consumer.commit()
        assert group.master.offsets[TOPIC] == 7

    consume(scenario)


@pytest.mark.behaviour("S3-53")
def test_a_closed_connection_alone_brings_a_consumer_back_to_the_master() -> None:
    async def scenario(group: PlayedReaders, _consumer: Consumer, handled: Handled) -> None:
        switch(group)
        group.ids = {MASTER_ID: group.slave}
        group.master.become(NONE, reader=group.slave, term=1)
        group.put(1)
        await until(lambda: len(handled.messages) == 4)
        group.master.become(FULL, reader=group.master, term=1)
        # No refusal is sent any more. The slave is not reached again, and its route is old.
        await group.kill(group.slave)
        group.put(1)
        await until(lambda: offsets(handled) == [0, 1, 2, 3, 4])

    consume(scenario)


def test_a_commit_that_is_refused_is_committed_where_the_group_is_read_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(group: PlayedReaders, consumer: Consumer, _handled: Handled) -> None:
        switch(group)
        group.master.become(NONE, reader=group.slave, term=1)
        await consumer.commit()
        assert group.slave.offsets[TOPIC] == 3
        assert group.slave.refused[RequestCode.UPDATE_CONSUMER_OFFSET] == 0

    with caplog.at_level(logging.INFO):
        consume(scenario)
    assert not [record for record in caplog.records if "not committed" in record.message]


def test_a_commit_waits_for_a_reader_if_nobody_is_read_now(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(group: PlayedReaders, consumer: Consumer, _handled: Handled) -> None:
        group.master.become(NONE, reader=None, term=0)
        committing = asyncio.create_task(consumer.commit())
        await until(lambda: STANDING in waiting_at(group.slave))
        assert not committing.done()
        switch(group)
        await in_time(committing)
        assert group.slave.offsets[TOPIC] == 3

    with caplog.at_level(logging.INFO):
        consume(scenario, timeout_s=10.0)
    assert not [record for record in caplog.records if "not committed" in record.message]


def test_a_commit_whose_connection_is_closed_is_repeated_at_the_next_reader() -> None:
    async def scenario(group: PlayedReaders, consumer: Consumer, _handled: Handled) -> None:
        group.master.is_deaf = True
        committing = asyncio.create_task(consumer.commit())
        await until(lambda: commits(group.master) == [3])
        await group.kill(group.master)
        switch(group)
        await in_time(committing)
        assert group.slave.offsets[TOPIC] == 3

    consume(scenario, timeout_s=10.0)


def test_queues_are_kept_where_a_broker_does_not_list_the_member_or_refuses_to_list_any() -> None:
    async def scenario(group: PlayedReaders, consumer: Consumer, handled: Handled) -> None:
        group.master.unlisted = {consumer.client_id}
        consumption = consumer._open()
        assert not await consumption.rebalancer.rebalance()
        assert own_queues(consumer) == {QUEUE}
        group.master.become(NONE, reader=None, term=0)
        assert not await consumption.rebalancer.rebalance()
        assert own_queues(consumer) == {QUEUE}
        group.master.become(FULL, reader=group.master, term=0)
        group.put(1)
        await until(lambda: offsets(handled) == [0, 1, 2, 3])

    consume(scenario)


def test_brokers_that_do_not_know_who_is_read_are_asked_once() -> None:
    async def scenario(group: PlayedReaders, _consumer: Consumer, handled: Handled) -> None:
        await group.kill(group.master)
        await until(lambda: group.slave.count(STANDING) == 1)
        group.log_count += 1
        switch(group)
        await until(lambda: offsets(handled) == [0, 1, 2, 3])
        assert group.slave.count(STANDING) <= 3

    consume(scenario, is_foreign=True)


@pytest.mark.behaviour("S3-12")
@pytest.mark.behaviour("S3-13")
def test_a_consumer_that_is_not_let_in_leaves_and_finds_who_is_read() -> None:
    async def play() -> None:
        handled = Handled()
        async with PlayedReaders().serving() as group:
            group.put(3)
            group.master.become(NONE, reader=None, term=0)
            async with Consumer(
                group="g", namesrv=group.namesrv, topics={TOPIC: "*"}, start=Start.FIRST
            ) as consumer:
                running = asyncio.create_task(consumer.run(handled))
                await until(lambda: group.master.refused[RequestCode.HEART_BEAT] > 0)
                switch(group)
                await until(lambda: offsets(handled) == [0, 1, 2])
                await until(lambda: not group.master.connections)
            await running

    asyncio.run(play())


@pytest.mark.behaviour("S3-8")
def test_a_client_that_can_not_ask_for_routes_keeps_what_it_knows_and_follows_the_reader() -> None:
    async def scenario(group: PlayedReaders, consumer: Consumer, handled: Handled) -> None:
        await group.names.close(grace_s=0)
        routes = consumer._open().session.routes
        assert not await routes._ask_for_all()
        assert routes.table.replicas[QUEUE.broker_name] == {
            MASTER_ID: group.master.address,
            1: group.slave.address,
        }
        group.put(1)
        await until(lambda: len(handled.messages) == 4)
        await group.kill(group.master)
        switch(group)
        group.put(1)
        await until(lambda: offsets(handled) == [0, 1, 2, 3, 4])

    consume(scenario)
