"""Stores that take turns as master, as a controller would have them, over sockets."""

import asyncio
import logging
from pathlib import Path

import pytest

from tanist.ha.follower import Follower
from tanist.store import MessageStore, plain_records
from tests.support.conditions import until
from tests.support.ha_ends import following, make_follower, serving_log
from tests.support.messages import TOPIC, bodies, kill, make_message, numbered, open_store


def _fill(store: MessageStore, *numbers: int) -> None:
    for number in numbers:
        store.append(make_message(number, body_bytes=300))
    store.dispatch()


def _log_bytes(store: MessageStore) -> bytes:
    return b"".join(segment.view for segment in store.log.segments)[: store.log.log_end]


def _reign(store: MessageStore, epoch: int, *numbers: int) -> None:
    store.dispatcher.confirmed_to = None
    store.dispatch()
    store.log.next_queue_offsets = store.queues.next_offsets()
    store.begin_epoch(epoch)
    _fill(store, *numbers)


async def _follow(
    slave: MessageStore, master: MessageStore, epoch: int, *, told: int | None = None
) -> Follower:
    """Have one store follow another until it has all of it, or does not get on."""
    follower = make_follower(slave, epoch=told or epoch)
    async with serving_log(master, epoch=epoch) as (address, _), following(follower):
        follower.use_master(address)
        await until(lambda: slave.log.log_end == master.log.log_end or follower.status.failure is not None)
        if follower.status.failure is None:
            await until(lambda: slave.dispatcher.confirmed_to == master.log.log_end)
            slave.dispatch()
    return follower


@pytest.mark.behaviour("S2-25", "S2-31", "S2-34")
def test_replicas_that_take_turns_have_the_same_log_and_the_same_epochs(tmp_path: Path) -> None:
    async def run() -> None:
        with open_store(tmp_path / "a") as one, open_store(tmp_path / "b") as other:
            _reign(one, 1, *range(20))
            await _follow(other, one, 1)
            # What the first master takes in now nobody gets.
            _fill(one, 100, 101, 102)
            _reign(other, 2, *range(20, 30))
            # A reign without a message leaves nothing.
            _reign(other, 3)
            _reign(other, 5, *range(30, 40))
            await _follow(one, other, 5)
            _reign(one, 6, *range(40, 50))
            await _follow(other, one, 6)
            assert bodies(one) == bodies(other) == numbered(*range(50))
            assert _log_bytes(one) == _log_bytes(other)
            assert [epoch.epoch for epoch in one.epochs.epochs] == [1, 2, 5, 6]
            assert one.epochs.epochs == other.epochs.epochs

    asyncio.run(run())


@pytest.mark.behaviour("S2-17", "S2-18", "S2-19", "S2-20", "S2-30")
def test_a_slave_first_cuts_the_part_of_a_record_that_its_lost_master_had_sent(tmp_path: Path) -> None:
    async def run() -> None:
        with (
            open_store(tmp_path / "a") as lost,
            open_store(tmp_path / "b") as slave,
            open_store(tmp_path / "c") as heir,
        ):
            _reign(lost, 1, *range(5))
            for store in (slave, heir):
                await _follow(store, lost, 1)
            whole_to = slave.log.log_end
            # Of the last two records one came whole, and of the other the half.
            _fill(lost, 5)
            ends_at = lost.log.log_end
            _fill(lost, 6)
            slave.append_raw(whole_to, lost.log.read(whole_to, ends_at + 100 - whole_to))
            assert slave.whole_to == ends_at
            follower = make_follower(slave, epoch=2)
            await follower._cut_torn_end()
            assert slave.log.log_end == ends_at
            await follower._cut_torn_end()
            assert slave.log.log_end == ends_at
            _reign(heir, 2, 7, 8)
            await _follow(slave, heir, 2)
            assert bodies(slave) == numbered(*range(5), 7, 8)
            assert _log_bytes(slave) == _log_bytes(heir)

    asyncio.run(run())


@pytest.mark.behaviour("S2-19", "S2-21")
@pytest.mark.parametrize("is_native", [True, False], ids=["with C", "in Python"])
@pytest.mark.parametrize("damage", ["body", "magic"])
def test_a_slave_cuts_what_it_has_not_indexed_at_the_first_message_that_is_not_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str, is_native: bool
) -> None:
    if not is_native:
        monkeypatch.setattr(plain_records, "native", None)

    async def run() -> None:
        with open_store(tmp_path / "a") as master, open_store(tmp_path / "b") as slave:
            _reign(master, 1, *range(5))
            await _follow(slave, master, 1)
            start = slave.log.log_end
            places = [
                master.append(make_message(number, body_bytes=300)).log_offset for number in range(5, 8)
            ]
            master.begin_epoch(2)
            later = master.log.log_end
            _fill(master, 8, 9)
            came = bytearray(master.log.read(start, master.log.log_end - start))
            position = places[1] - start + (150 if damage == "body" else 4)
            came[position] ^= 1
            slave.append_raw(start, bytes(came[: later - start]))
            slave.follow_epoch(2, later)
            slave.append_raw(later, bytes(came[later - start :]))
            follower = make_follower(slave, epoch=2)
            await follower._cut_torn_end()
            assert slave.log.log_end == places[1]
            assert [epoch.epoch for epoch in slave.epochs.epochs] == [1]
            await _follow(slave, master, 2)
            assert bodies(slave) == numbered(*range(10))
            assert _log_bytes(slave) == _log_bytes(master)
            assert slave.epochs.epochs == master.epochs.epochs

    asyncio.run(run())


@pytest.mark.behaviour("S2-19", "S2-20", "S2-21")
def test_a_slave_that_lost_a_page_is_in_order_before_it_calls_a_master(tmp_path: Path) -> None:
    async def run() -> None:
        with open_store(tmp_path / "a") as master:
            slave = open_store(tmp_path / "b")
            _reign(master, 1, *range(6))
            await _follow(slave, master, 1)
            lost_at = slave.records(TOPIC, 0, 4, 1)[0].log_offset
            _reign(master, 2, *range(6, 10))
            await _follow(slave, master, 2)
            slave.queues.write()
            assert len(bodies(slave)) == 10
            # Queues and epochs came to the disk before the power failed, and a page of the log did not.
            segment = slave.log.segments.at(lost_at)
            segment.put_raw(lost_at - segment.start, bytes(50))
            kill(slave)
            with open_store(tmp_path / "b") as slave:
                assert slave.log.log_end == lost_at
                assert bodies(slave) == numbered(*range(4))
                queue = slave.queues.find(TOPIC, 0)
                assert queue is not None
                assert queue.max_offset == 4
                assert [epoch.epoch for epoch in slave.epochs.epochs] == [1]
                await _follow(slave, master, 2)
                assert bodies(slave) == numbered(*range(10))
                assert _log_bytes(slave) == _log_bytes(master)
                assert slave.epochs.epochs == master.epochs.epochs

    asyncio.run(run())


@pytest.mark.parametrize("is_torn", [True, False], ids=["torn there", "whole there"])
def test_a_record_of_which_a_part_was_confirmed_does_not_shut_out_who_has_it(
    tmp_path: Path, is_torn: bool
) -> None:
    async def run() -> None:
        with (
            open_store(tmp_path / "a") as lost,
            open_store(tmp_path / "b") as slave,
            open_store(tmp_path / "c") as heir,
        ):
            _reign(lost, 1, *range(5))
            for store in (slave, heir):
                await _follow(store, lost, 1)
            start = lost.log.log_end
            _fill(lost, 5)
            # All had acked the first part of the record, and one of them all of it.
            end = start + 200 if is_torn else lost.log.log_end
            slave.append_raw(start, lost.log.read(start, end - start))
            slave.dispatcher.confirmed_to = start + 200
            _reign(heir, 2, 7, 8)
            follower = await _follow(slave, heir, 2)
            assert follower.status.failure is None
            assert bodies(slave) == numbered(*range(5), 7, 8)
            assert _log_bytes(slave) == _log_bytes(heir)

    asyncio.run(run())


@pytest.mark.behaviour("S2-55")
def test_a_log_tells_each_state_both_lists_of_epochs_and_where_it_was_cut(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def run() -> None:
        with open_store(tmp_path / "a") as one, open_store(tmp_path / "b") as other:
            _reign(one, 1, *range(5))
            await _follow(other, one, 1)
            agreed_to = other.log.log_end
            _fill(one, 5)
            log_end = one.log.log_end
            _reign(one, 2, 5)
            log_end, begun = one.log.log_end, log_end
            _reign(other, 3, 6)
            caplog.clear()
            await _follow(one, other, 3)
            told = [record.getMessage() for record in caplog.records]
            assert (
                f"epochs compared own={{1@0, 2@{begun}}} master={{1@0, 3@{agreed_to}}} log_end={log_end} "
                f"agreed_to={agreed_to}"
            ) in told
            assert any(line.startswith(f"truncated truncate_to={agreed_to} ") for line in told)
            states = [line.rpartition("=")[2] for line in told if line.startswith("slave state ")]
            assert states[-3:] == ["CONNECTING", "HANDSHAKE", "TRANSFER"]

    asyncio.run(run())


def test_epochs_are_told_once_while_links_fail_because_of_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="tanist.ha.follower")

    def told(beginning: str, level: int = logging.DEBUG) -> int:
        return sum(
            record.levelno >= level and record.getMessage().startswith(beginning) for record in caplog.records
        )

    async def run() -> None:
        with open_store(tmp_path / "a") as one, open_store(tmp_path / "b") as other:
            _reign(one, 1, 1)
            _reign(other, 2, 2)
            follower = make_follower(other, epoch=3)
            async with serving_log(one, epoch=3) as (address, _), following(follower):
                follower.use_master(address)
                await until(lambda: told("slave state from=HANDSHAKE to=PAUSED") >= 3)

    asyncio.run(run())
    assert told("epochs compared own={2@0} master={1@0} ") == 1
    assert told("slave state ", logging.INFO) <= 3


def test_a_log_that_can_not_be_cut_is_not_followed(tmp_path: Path) -> None:
    async def run() -> None:
        with open_store(tmp_path / "a") as one, open_store(tmp_path / "b") as other:
            _reign(one, 1, *range(5))
            await _follow(other, one, 1)
            _fill(one, 5)
            _reign(other, 2, 6)
            before = _log_bytes(one)
            follower = make_follower(one, refuses_cuts=True, epoch=2)
            async with serving_log(other, epoch=2) as (address, _), following(follower):
                follower.use_master(address)
                await until(lambda: follower.status.failure is not None)
                assert not follower.is_transferring
            assert "is not cut at" in str(follower.status.failure)
            assert _log_bytes(one) == before

    asyncio.run(run())


def test_a_master_that_was_replaced_learns_it_from_the_slave_that_calls_it(tmp_path: Path) -> None:
    async def run() -> None:
        told: list[int] = []
        with open_store(tmp_path / "a") as one, open_store(tmp_path / "b") as other:
            _reign(one, 1, 1, 2)
            follower = make_follower(other, epoch=4)
            async with (
                serving_log(one, epoch=1, on_newer_epoch=told.append) as (address, _),
                following(follower),
            ):
                follower.use_master(address)
                await until(lambda: follower.status.is_refused)
                assert told[0] == 4
            assert follower.status.failure is not None
            assert "STALE_EPOCH" in follower.status.failure
            assert other.log.log_end == 0

    asyncio.run(run())


def test_a_slave_with_nothing_to_read_is_told_soon_what_was_confirmed(tmp_path: Path) -> None:
    async def run() -> None:
        with open_store(tmp_path / "a") as one, open_store(tmp_path / "b") as other:
            _reign(one, 1, *range(3))
            confirmed_to, ends = 0, [record.log_offset for record in one.records("TopicA", 0, 1, 2)]
            follower = make_follower(other, epoch=1)
            async with (
                serving_log(one, epoch=1, confirmed_to=lambda: confirmed_to) as (address, acceptor),
                following(follower),
            ):
                follower.use_master(address)
                await until(lambda: other.log.log_end == one.log.log_end)
                other.dispatch()
                assert bodies(other) == []
                for count, end in enumerate(ends):
                    confirmed_to = end
                    acceptor.on_confirmed()
                    await until(lambda end=end: other.dispatcher.confirmed_to == end)
                    other.dispatch()
                    assert bodies(other) == numbered(*range(count + 1))
                assert follower.is_transferring

    asyncio.run(run())


def test_logs_without_a_common_epoch_stay_as_they_are(tmp_path: Path) -> None:
    async def run() -> None:
        with open_store(tmp_path / "a") as one, open_store(tmp_path / "b") as other:
            _reign(one, 1, 1, 2)
            _reign(other, 2, 3, 4, 5)
            before = _log_bytes(other)
            follower = await _follow(other, one, 3, told=3)
            assert follower.status.failure is not None
            assert "no epoch in common" in follower.status.failure
            assert follower.status.is_refused
            assert _log_bytes(other) == before

    asyncio.run(run())


@pytest.mark.behaviour("S2-22", "S2-24", "S2-38")
def test_a_link_that_does_not_come_about_or_breaks_is_made_anew(tmp_path: Path) -> None:
    calls = 0

    def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        writer.close()

    async def run() -> None:
        with open_store(tmp_path / "a") as one, open_store(tmp_path / "b") as other:
            _reign(one, 1, *range(5))
            follower = make_follower(other, epoch=1)
            async with following(follower):
                async with await asyncio.start_server(hang_up, "127.0.0.1") as deaf:
                    host, port = deaf.sockets[0].getsockname()
                    follower.use_master(f"{host}:{port}")
                    await until(lambda: calls >= 2)
                    assert not follower.is_transferring
                for number in (5, 6):
                    async with serving_log(one, epoch=1) as (address, _):
                        follower.use_master(address)
                        await until(lambda: other.log.log_end == one.log.log_end)
                    # The port is closed, and with it the link.
                    await until(lambda: not follower.is_transferring)
                    _fill(one, number)
            assert _log_bytes(one).startswith(_log_bytes(other))
            assert other.epochs.epochs == one.epochs.epochs

    asyncio.run(run())
