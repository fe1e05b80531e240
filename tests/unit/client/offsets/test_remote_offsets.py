import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tanist.client.offsets.remote_offsets import MAX_COMMITS, RemoteOffsets
from tanist.errors import RequestTimeout
from tanist.model.offsets import QueueOffset
from tests.support.clocks import FakeClock
from tests.support.conditions import turns, until
from tests.support.offset_stores import FakeBroker, queue_of

Q, R = queue_of(0), queue_of(1)


def scenario(run: Callable[[FakeBroker, FakeClock, RemoteOffsets], Awaitable[None]]) -> None:
    async def with_broker() -> None:
        broker, clock = FakeBroker(), FakeClock()
        await run(broker, clock, RemoteOffsets(broker, clock))

    asyncio.run(with_broker())


@pytest.mark.behaviour("S4-20", "S4-25")
def test_rebalance_reads_the_broker_and_not_memory() -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        offsets.update(Q, QueueOffset(50), increase_only=True)
        broker.offsets[Q] = 7
        assert await offsets.read(Q) == 50
        assert await offsets.read_for_rebalance(Q) == 7
        assert offsets.in_memory(Q) == 7

    scenario(run)


@pytest.mark.parametrize("answer", [None, -1])
def test_a_queue_that_the_broker_does_not_know_has_no_offset(answer: int | None) -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        if answer is not None:
            broker.offsets[Q] = answer
        offsets.update(Q, QueueOffset(50), increase_only=True)
        assert await offsets.read_for_rebalance(Q) is None
        assert offsets.in_memory(Q) is None
        assert await offsets.persist([Q]) == frozenset()
        assert not broker.commits

    scenario(run)


def test_a_broker_that_does_not_answer_is_an_error_and_not_a_queue_without_offset() -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        broker.silent.add(Q)
        offsets.update(Q, QueueOffset(50), increase_only=True)
        with pytest.raises(RequestTimeout):
            await offsets.read_for_rebalance(Q)
        assert offsets.in_memory(Q) == 50

    scenario(run)


def test_only_what_moved_is_committed() -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        broker.offsets |= {Q: 5, R: 5}
        await offsets.read_for_rebalance(Q)
        await offsets.read_for_rebalance(R)
        offsets.update(Q, QueueOffset(6), increase_only=True)
        await offsets.persist([Q, R])
        await offsets.persist([Q, R])
        assert broker.commits == [(Q, 6)]

    scenario(run)


def test_a_broker_that_lost_offsets_hears_all_of_them_within_half_a_minute() -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        broker.offsets |= {Q: 5, R: 7}
        await offsets.read_for_rebalance(Q)
        await offsets.read_for_rebalance(R)
        broker.offsets.clear()
        for _ in range(30 // 5):
            assert not broker.offsets
            clock.advance_ms(5_000)
            await offsets.persist([Q, R])
            if broker.offsets:
                break
        assert broker.offsets == {Q: 5, R: 7}
        await offsets.persist([Q, R])
        assert len(broker.commits) == 2

    scenario(run)


def test_a_queue_that_fails_stops_no_other_and_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        broker.silent.add(Q)
        for queue in (Q, R):
            offsets.update(queue, QueueOffset(5), increase_only=True)
        assert await offsets.persist([Q, R]) == {Q}
        assert broker.offsets == {R: 5}

        broker.silent.clear()
        assert await offsets.persist([Q, R]) == frozenset()
        assert broker.commits == [(R, 5), (Q, 5)]

    scenario(run)
    assert [record.getMessage()[:31] for record in caplog.records] == ["offsets not committed queues=1 "]


def test_of_two_commits_of_a_queue_the_older_never_arrives_last() -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        broker.is_free.clear()
        offsets.update(Q, QueueOffset(9), increase_only=True)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(offsets.persist([Q]))
            await until(lambda: broker.waiting == 1)
            offsets.update(Q, QueueOffset(12), increase_only=True)
            tasks.create_task(offsets.persist([Q]))
            await turns()
            assert broker.waiting == 1
            broker.is_free.set()
        assert broker.commits == [(Q, 9), (Q, 12)]

    scenario(run)


@pytest.mark.behaviour("S4-18")
def test_a_commit_under_way_does_not_survive_a_reset() -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        broker.offsets[Q] = 3
        await offsets.read_for_rebalance(Q)
        broker.is_free.clear()
        offsets.update(Q, QueueOffset(9), increase_only=True)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(offsets.persist([Q]))
            await until(lambda: broker.waiting == 1)
            # Back to where the broker was said to be: it must be told all the same.
            offsets.freeze(Q, QueueOffset(3))
            tasks.create_task(offsets.persist([Q]))
            await turns()
            broker.is_free.set()
        assert broker.commits == [(Q, 9), (Q, 3)]
        offsets.remove(Q)
        assert await offsets.read_for_rebalance(Q) == 3

    scenario(run)


def test_what_the_broker_has_is_unknown_after_a_commit_without_an_answer() -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        broker.offsets[Q] = 3
        await offsets.read_for_rebalance(Q)
        offsets.update(Q, QueueOffset(9), increase_only=True)
        broker.silent.add(Q)
        await offsets.persist([Q])
        broker.silent.clear()
        broker.offsets[Q] = 9
        offsets.update(Q, QueueOffset(3), increase_only=False)
        await offsets.persist([Q])
        assert broker.offsets[Q] == 3

    scenario(run)


def test_a_queue_that_comes_back_is_read_after_its_last_commit() -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        broker.offsets[Q] = 3
        offsets.update(Q, QueueOffset(9), increase_only=True)
        broker.is_free.clear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(offsets.persist([Q]))
            await until(lambda: broker.waiting == 1)
            offsets.remove(Q)
            found = tasks.create_task(offsets.read_for_rebalance(Q))
            await turns()
            assert broker.waiting == 1
            broker.is_free.set()
        assert found.result() == 9

    scenario(run)


def test_a_queue_removed_while_its_commit_waits_is_not_committed() -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        broker.is_free.clear()
        offsets.update(Q, QueueOffset(9), increase_only=True)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(offsets.persist([Q]))
            await until(lambda: broker.waiting == 1)
            offsets.update(Q, QueueOffset(10), increase_only=True)
            tasks.create_task(offsets.persist([Q]))
            await turns()
            offsets.remove(Q)
            broker.is_free.set()
        assert broker.commits == [(Q, 9)]

    scenario(run)


def test_not_all_queues_are_committed_at_once() -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        queues = [queue_of(number) for number in range(3 * MAX_COMMITS)]
        for queue in queues:
            offsets.update(queue, QueueOffset(1), increase_only=True)
        broker.is_free.clear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(offsets.persist(queues))
            await until(lambda: broker.waiting == MAX_COMMITS)
            await turns()
            broker.is_free.set()
        assert broker.most_waiting == MAX_COMMITS
        assert broker.offsets == dict.fromkeys(queues, 1)

    scenario(run)


def test_a_cancelled_persist_leaves_the_store_usable() -> None:
    async def run(broker: FakeBroker, clock: FakeClock, offsets: RemoteOffsets) -> None:
        offsets.update(Q, QueueOffset(9), increase_only=True)
        broker.is_free.clear()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(offsets.persist([Q]), timeout=0.01)
        assert broker.waiting == 0
        broker.is_free.set()
        assert await offsets.persist([Q]) == frozenset()
        assert broker.commits == [(Q, 9)]

    scenario(run)
