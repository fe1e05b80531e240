import asyncio
from pathlib import Path

import pytest

from tanist.client.errors import InvalidArgument
from tanist.client.offsets import offset_file
from tanist.client.offsets.local_offsets import LocalOffsets
from tanist.client.offsets.offset_file import OffsetFile, encode_offsets
from tanist.errors import ForeignFile, StoreLocked
from tanist.model.offsets import QueueOffset
from tests.support.conditions import turns
from tests.support.offset_stores import offsets_of, queue_of

Q, R = queue_of(0), queue_of(1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "client" / "group" / "offsets.json"


def put(path: Path, *pairs: tuple[int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_offsets(offsets_of(pairs)))


def in_file(path: Path) -> dict[int, int]:
    return {queue.queue_id: offset for queue, offset in OffsetFile(path).read().offsets.items()}


def is_there(path: Path) -> bool:
    return path.exists()


def identity(path: Path) -> tuple[int, int]:
    """What changes when a file is replaced or written."""
    return path.stat().st_ino, path.stat().st_mtime_ns


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


async def opened(path: Path) -> LocalOffsets:
    offsets = LocalOffsets(path)
    await offsets.load()
    return offsets


@pytest.mark.behaviour("S4-34")
def test_at_start_the_offsets_of_the_file_are_loaded(path: Path) -> None:
    async def scenario() -> None:
        put(path, (0, 5), (1, 7))
        offsets = await opened(path)
        assert (offsets.in_memory(Q), offsets.in_memory(R)) == (5, 7)

    asyncio.run(scenario())


def test_at_start_a_file_that_can_not_be_read_is_an_error(path: Path) -> None:
    put(path, (0, 5))
    damage(path)
    with pytest.raises(ForeignFile, match=r"client/group/offsets\.json: "):
        asyncio.run(opened(path))


@pytest.mark.behaviour("S4-25", "S4-26")
def test_rebalance_reads_memory_first_and_then_the_file(path: Path) -> None:
    async def scenario() -> None:
        put(path, (0, 5), (1, 7))
        offsets = await opened(path)
        offsets.update(Q, QueueOffset(3), increase_only=False)
        offsets.remove(R)
        put(path, (0, 100), (1, 8))
        assert await offsets.read_for_rebalance(Q) == 3
        assert offsets.in_memory(R) is None
        assert await offsets.read_for_rebalance(R) == 8
        assert offsets.in_memory(R) == 8

    asyncio.run(scenario())


@pytest.mark.behaviour("S4-46")
@pytest.mark.parametrize("wrong", [999_999_999, 0])
def test_corrected_offsets_are_what_rebalance_reads_though_the_whole_file_is_wrong(
    path: Path, wrong: int
) -> None:
    """The broker said where each queue can go on, the queues were given up, and are now taken again."""

    async def scenario() -> None:
        put(path, (0, wrong), (1, wrong))
        offsets = await opened(path)
        for queue in (Q, R):
            offsets.freeze(queue, QueueOffset(50))
        # Nothing is owned at the moment, so nothing is persisted.
        await offsets.persist([])
        assert in_file(path) == {0: wrong, 1: wrong}
        for queue in (Q, R):
            offsets.remove(queue)
        assert [await offsets.read_for_rebalance(queue) for queue in (Q, R)] == [50, 50]

        await offsets.persist([Q, R])
        assert in_file(path) == {0: 50, 1: 50}

    asyncio.run(scenario())


@pytest.mark.behaviour("S4-46")
def test_without_a_queue_nothing_is_written(path: Path) -> None:
    async def scenario() -> None:
        offsets = await opened(path)
        offsets.update(Q, QueueOffset(5), increase_only=True)
        assert await offsets.persist([]) == frozenset()
        assert await offsets.persist([R]) == frozenset()
        assert not is_there(path)

    asyncio.run(scenario())


def test_a_file_that_has_it_all_is_not_written_again(path: Path) -> None:
    async def scenario() -> None:
        offsets = await opened(path)
        offsets.update(Q, QueueOffset(5), increase_only=True)
        await offsets.persist([Q])
        written = identity(path)
        await offsets.persist([Q])
        assert identity(path) == written

    asyncio.run(scenario())


@pytest.mark.behaviour("S4-28")
def test_queues_persisted_at_once_are_all_in_the_file(path: Path) -> None:
    async def scenario() -> None:
        offsets = await opened(path)
        async with asyncio.TaskGroup() as tasks:
            for number in range(40):
                offsets.update(queue_of(number), QueueOffset(number), increase_only=True)
                tasks.create_task(offsets.persist([queue_of(number)]))
        assert in_file(path) == {number: number for number in range(40)}

    asyncio.run(scenario())


@pytest.mark.behaviour("S4-28")
def test_consumption_does_not_wait_for_the_file(path: Path) -> None:
    """While a write is held up offsets move on, and what is written in the end is the newest."""

    async def scenario() -> None:
        offsets = await opened(path)
        offsets.update(Q, QueueOffset(5), increase_only=True)
        async with asyncio.TaskGroup() as tasks:
            with OffsetFile(path).locked():
                tasks.create_task(offsets.persist([Q]))
                await turns()
                offsets.update(Q, QueueOffset(6), increase_only=True)
                assert await offsets.read_for_rebalance(Q) == 6
                tasks.create_task(offsets.persist([Q]))
                await turns()
                assert not is_there(path)
        assert in_file(path) == {0: 6}

    asyncio.run(scenario())


def test_what_another_process_wrote_for_other_queues_is_kept(path: Path) -> None:
    """Members of one group on one machine share the file unless they were named apart."""

    async def scenario() -> None:
        ours, theirs = await opened(path), await opened(path)
        ours.update(Q, QueueOffset(5), increase_only=True)
        theirs.update(R, QueueOffset(7), increase_only=True)
        await theirs.persist([R])
        await ours.persist([Q])
        assert in_file(path) == {0: 5, 1: 7}

    asyncio.run(scenario())


@pytest.mark.parametrize("has_backup", [True, False])
def test_a_file_broken_while_running_is_made_anew(path: Path, *, has_backup: bool) -> None:
    async def scenario() -> None:
        put(path, (0, 5), (1, 7))
        offsets = await opened(path)
        if has_backup:
            put(path.with_name("offsets.json.bak"), (0, 4), (1, 7))
        damage(path)
        assert await offsets.persist([Q]) == frozenset()
        assert in_file(path) == {0: 5, 1: 7}

    asyncio.run(scenario())


def unwritable(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.with_name("offsets.json.tmp").mkdir()


@pytest.mark.behaviour("S4-29")
def test_a_reset_holds_though_the_file_could_not_be_written(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        unwritable(path)
        offsets = await opened(path)
        offsets.update(Q, QueueOffset(9), increase_only=True)
        offsets.freeze(Q, QueueOffset(3))
        assert await offsets.persist([Q, R]) == {Q}
        offsets.remove(Q)
        assert await offsets.read_for_rebalance(Q) == 3

        path.with_name("offsets.json.tmp").rmdir()
        assert await offsets.persist([Q]) == frozenset()
        assert in_file(path) == {0: 3}

    asyncio.run(scenario())
    assert f"offsets not saved path={path} queues=2" in caplog.text


@pytest.mark.behaviour("S4-29")
def test_a_reset_of_one_queue_is_durable_by_itself(path: Path) -> None:
    async def scenario() -> None:
        put(path, (0, 9), (1, 7))
        offsets = await opened(path)
        offsets.freeze(Q, QueueOffset(3))
        await offsets.persist([Q])
        offsets.remove(Q)
        assert await (await opened(path)).read_for_rebalance(Q) == 3
        assert await offsets.read_for_rebalance(Q) == 3
        assert in_file(path) == {0: 3, 1: 7}

    asyncio.run(scenario())


def test_a_cancelled_persist_writes_nothing_that_is_older_than_a_later_one(path: Path) -> None:
    async def scenario() -> None:
        offsets = await opened(path)
        offsets.update(Q, QueueOffset(5), increase_only=True)
        async with asyncio.TaskGroup() as tasks:
            with OffsetFile(path).locked():
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(offsets.persist([Q]), timeout=0.01)
                offsets.update(Q, QueueOffset(6), increase_only=True)
                tasks.create_task(offsets.persist([Q]))
                await turns()

    asyncio.run(scenario())
    # The loop has waited for its threads.
    assert in_file(path) == {0: 6}


def test_the_file_lies_where_java_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def persisted(offsets: LocalOffsets) -> None:
        offsets.update(Q, QueueOffset(5), increase_only=True)
        await offsets.persist([Q])

    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    asyncio.run(persisted(LocalOffsets.of_member("10.0.0.5@DEFAULT", "billing")))
    place = Path("10.0.0.5@DEFAULT", "billing", "offsets.json")
    assert in_file(tmp_path / "home" / ".rocketmq_offsets" / place) == {0: 5}
    asyncio.run(persisted(LocalOffsets.of_member("10.0.0.5@DEFAULT", "billing", directory=tmp_path / "own")))
    assert in_file(tmp_path / "own" / place) == {0: 5}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "a\0"])
def test_a_name_that_is_no_folder_is_refused_by_the_argument(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^client_id="):
        LocalOffsets.of_member(name, "billing")
    with pytest.raises(InvalidArgument, match=r"^group="):
        LocalOffsets.of_member("10.0.0.5@DEFAULT", name)


def test_a_process_that_never_lets_go_of_the_file_stops_nobody_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset_file, "_LOCK_PAUSE_S", 0.001)
    file = offset_file.OffsetFile(tmp_path / "offsets.json")
    with file.locked(), pytest.raises(StoreLocked, match="held by another process"), file.locked():
        pass
    with file.locked():
        pass
