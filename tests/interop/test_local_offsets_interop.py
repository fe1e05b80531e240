"""A broadcasting consumer of either kind goes on where one of the other kind stood."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from tanist.client.offsets.local_offsets import LocalOffsets
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.reset import QueueOffsetRow
from tests.support.rocketmq.stock_client import StockClients

pytestmark = pytest.mark.partner("java", "maven")

CLIENT_ID = "10.0.0.5@DEFAULT"

Offsets = dict[MessageQueue, int]

OFFSETS: Offsets = {
    MessageQueue(topic=topic, broker_name=broker, queue_id=number): offset + number
    for topic in ("T", "%RETRY%G", "ns%T")
    for broker, offset in (("broker-a", 0), ("größe \U0001f600", 2**62), ('a"b\\c', 999_999_999))
    for number in range(8)
}


class Member:
    """A group's member on this machine, which runs now on Java and now on Tanist."""

    def __init__(self, clients: StockClients, group: str) -> None:
        self._process = clients.process
        self._group = group
        self._files = Path(clients.process.do("offset-files"))
        self.path = self._files / CLIENT_ID / group / "offsets.json"

    def java_writes(self, offsets: Offsets) -> None:
        rows = [
            QueueOffsetRow(
                topic=queue.topic,
                broker_name=queue.broker_name,
                queue_id=queue.queue_id,
                queue_offset=QueueOffset(offset),
            )
            for queue, offset in offsets.items()
        ]
        self._process.do("write-offsets", clientId=CLIENT_ID, group=self._group, rows=rows)

    def java_reads(self) -> Offsets:
        rows = self._process.do("read-offsets", clientId=CLIENT_ID, group=self._group)
        return {
            MessageQueue(
                topic=row.topic, broker_name=row.broker_name, queue_id=row.queue_id
            ): row.queue_offset
            for row in msgspec.convert(rows, list[QueueOffsetRow])
        }

    def tanist_writes(self, offsets: Offsets) -> None:
        asyncio.run(self._tanist_writes(offsets))

    def tanist_reads(self) -> Offsets:
        return asyncio.run(self._tanist_reads())

    async def _tanist_writes(self, offsets: Offsets) -> None:
        store = await self._store()
        for queue, offset in offsets.items():
            store.update(queue, QueueOffset(offset), increase_only=False)
        assert not await store.persist(offsets)

    async def _tanist_reads(self) -> Offsets:
        store = await self._store()
        return {
            queue: found for queue in OFFSETS if (found := await store.read_for_rebalance(queue)) is not None
        }

    async def _store(self) -> LocalOffsets:
        store = LocalOffsets.of_member(CLIENT_ID, self._group, directory=self._files)
        await store.load()
        return store


@pytest.mark.behaviour("S4-34", "S4-35")
def test_tanist_reads_what_java_wrote(clients: StockClients) -> None:
    member = Member(clients, "tanist-reads")
    member.java_writes(OFFSETS)
    assert member.tanist_reads() == OFFSETS


@pytest.mark.behaviour("S4-35")
def test_java_reads_what_tanist_wrote(clients: StockClients) -> None:
    member = Member(clients, "java-reads")
    member.tanist_writes(OFFSETS)
    assert member.java_reads() == OFFSETS


def test_both_write_the_same_text(clients: StockClients) -> None:
    """Of one queue: the order of several is chance in Java."""
    for queue in (MessageQueue(topic="T", broker_name="größe \U0001f600", queue_id=3), *[*OFFSETS][:1]):
        member = Member(clients, f"same-text-{queue.queue_id}")
        member.java_writes({queue: 42})
        theirs = member.path.read_bytes()
        member.path.unlink()
        member.tanist_writes({queue: 42})
        assert member.path.read_bytes() == theirs


def test_they_take_turns_and_lose_nothing(clients: StockClients) -> None:
    member = Member(clients, "turns")
    first, second, *rest = OFFSETS
    member.tanist_writes(OFFSETS)
    member.java_writes({first: 5})
    member.tanist_writes({second: 7})
    expected = OFFSETS | {first: 5, second: 7}
    assert member.java_reads() == expected
    assert member.tanist_reads() == expected
    assert rest


def test_each_falls_back_to_the_others_backup(clients: StockClients) -> None:
    member = Member(clients, "backups")
    (queue, *_) = OFFSETS
    for writes, reads in (
        (member.java_writes, member.tanist_reads),
        (member.tanist_writes, member.java_reads),
    ):
        writes({queue: 5})
        writes({queue: 6})
        member.path.write_bytes(member.path.read_bytes()[:30])
        assert reads() == {queue: 5}
