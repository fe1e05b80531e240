"""What both kinds of offset store do alike."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tanist.client.offsets.local_offsets import LocalOffsets
from tanist.client.offsets.offset_store import OffsetStore
from tanist.client.offsets.remote_offsets import RemoteOffsets
from tanist.model.offsets import QueueOffset
from tests.support.clocks import FakeClock
from tests.support.offset_stores import FakeBroker, queue_of

Q = queue_of(0)

Reopen = Callable[[], OffsetStore]


@pytest.fixture(params=["local", "remote"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Reopen:
    """Opens a store again, as the next process would."""
    broker = FakeBroker()

    def local() -> OffsetStore:
        return LocalOffsets(tmp_path / "offsets.json")

    def remote() -> OffsetStore:
        return RemoteOffsets(broker, FakeClock())

    return local if request.param == "local" else remote


@pytest.mark.behaviour("S4-19")
def test_both_kinds_read_update_persist_and_remove(reopen: Reopen) -> None:
    async def scenario() -> None:
        store = reopen()
        await store.load()
        assert await store.read(Q) is None
        assert await store.read_for_rebalance(Q) is None

        store.update(Q, QueueOffset(5), increase_only=True)
        assert (store.in_memory(Q), await store.read(Q)) == (5, 5)
        assert await store.persist([Q]) == frozenset()

        store.remove(Q)
        assert store.in_memory(Q) is None
        assert await store.read(Q) == 5

        later = reopen()
        await later.load()
        assert await later.read_for_rebalance(Q) == 5
        assert later.in_memory(Q) == 5

    asyncio.run(scenario())


def test_an_acknowledgement_moves_forward_only_and_a_seek_anywhere(reopen: Reopen) -> None:
    store = reopen()
    store.update(Q, QueueOffset(5), increase_only=True)
    store.update(Q, QueueOffset(3), increase_only=True)
    assert store.in_memory(Q) == 5
    store.update(Q, QueueOffset(3), increase_only=False)
    assert store.in_memory(Q) == 3


@pytest.mark.behaviour("S4-18")
@pytest.mark.parametrize("increase_only", [True, False])
def test_an_acknowledgement_under_way_can_not_undo_a_reset(reopen: Reopen, *, increase_only: bool) -> None:
    async def scenario() -> None:
        store = reopen()
        await store.load()
        store.update(Q, QueueOffset(9), increase_only=True)
        await store.persist([Q])

        store.freeze(Q, QueueOffset(3))
        store.update(Q, QueueOffset(10), increase_only=increase_only)
        assert store.in_memory(Q) == 3
        await store.persist([Q])
        store.remove(Q)
        store.update(Q, QueueOffset(11), increase_only=increase_only)
        assert store.in_memory(Q) is None
        assert await store.read_for_rebalance(Q) == 3

        # Taken again, the queue moves on.
        store.update(Q, QueueOffset(4), increase_only=True)
        assert store.in_memory(Q) == 4

    asyncio.run(scenario())


def test_a_reset_leaves_other_queues_alone(reopen: Reopen) -> None:
    store = reopen()
    store.freeze(Q, QueueOffset(3))
    store.update(queue_of(1), QueueOffset(10), increase_only=True)
    assert store.in_memory(queue_of(1)) == 10


def test_only_the_queues_named_are_persisted(reopen: Reopen) -> None:
    async def scenario() -> None:
        store = reopen()
        for number in range(3):
            store.update(queue_of(number), QueueOffset(number + 1), increase_only=True)
        await store.persist([queue_of(0), queue_of(2), queue_of(7)])

        later = reopen()
        await later.load()
        assert [await later.read(queue_of(number)) for number in range(3)] == [1, None, 3]

    asyncio.run(scenario())
