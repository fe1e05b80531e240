import asyncio
import logging
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tanist.broker import offsets as offsets_module
from tanist.broker.transactions import keeper as transaction_keeper
from tanist.broker.transactions.halves import Half
from tanist.broker.transactions.open_transactions import OpenTransactions
from tanist.errors import LocalProtocolError, RemoteProtocolError, StoreError
from tanist.model.groups import TRANSACTION_GROUP
from tanist.model.message import Appended, Message, SysFlag
from tanist.model.property_names import (
    TRAN_PREPARED_QUEUE_OFFSET,
    TRANSACTION_CHECK_TIMES,
)
from tanist.model.topics import CHECK_MAX_TIME_TOPIC, HALF_OP_TOPIC, HALF_TOPIC
from tanist.protocol.codes import ResponseCode
from tanist.protocol.properties import decode_properties, replace_properties
from tanist.protocol.record import Record, decode_record, encode_record
from tests.support.broker_tables import SETTINGS
from tests.support.conditions import until
from tests.support.messages import SMALL
from tests.support.transacting import ROLLBACK, T, Transacting, asked, run

TIMEOUT_MS = SETTINGS.transaction_time_out
INTERVAL_MS = SETTINGS.transaction_check_interval
NOTE_MS = SETTINGS.transaction_op_batch_interval


def test_a_half_is_not_seen_before_its_commit(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        half = transactions.prepare(b"order")
        transactions.turn()
        assert transactions.visible() == []
        assert transactions.end(half) == 0
        assert transactions.visible() == [b"order"]

    run(tmp_path, scenario)


def test_a_committed_message_tells_where_its_half_lies(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        half = transactions.prepare(b"order", KEYS="k")
        transactions.end(half)
        (record,) = transactions.state.store.records(T, 1, 0, 8)
        assert record.prepared_transaction_offset == half.log_offset
        assert record.sys_flag == SysFlag.COMMIT
        assert decode_properties(record.properties)["KEYS"] == "k"

    run(tmp_path, scenario)


def test_a_rolled_back_half_is_never_seen_and_never_asked_for(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        half = transactions.prepare()
        assert transactions.end(half, ROLLBACK) == 0
        transactions.pass_ms(TIMEOUT_MS)
        transactions.pass_ms(INTERVAL_MS)
        assert asked(producer) == []
        assert transactions.visible() == []

    run(tmp_path, scenario)


def test_a_transaction_ends_once(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        half = transactions.prepare(b"order")
        transactions.turn()
        assert transactions.end(half) == 0
        assert transactions.end(half) == ResponseCode.SYSTEM_ERROR
        assert transactions.end(half, ROLLBACK) == ResponseCode.SYSTEM_ERROR
        assert transactions.visible() == [b"order"]

    run(tmp_path, scenario)


def test_who_does_not_know_a_transaction_can_not_end_it(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        half = transactions.prepare()
        assert transactions.end(half, group="others") == ResponseCode.SYSTEM_ERROR
        assert transactions.end(half, queue_offset=7) == ResponseCode.SYSTEM_ERROR
        for log_offset in (-1, 0, half.log_offset + 1, 1 << 40):
            elsewhere = msgspec.structs.replace(half, log_offset=log_offset)
            assert transactions.end(elsewhere) == ResponseCode.SYSTEM_ERROR
        assert transactions.visible() == []

    run(tmp_path, scenario)


def test_a_body_that_looks_like_a_half_can_not_be_committed(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        store = transactions.state.store
        real = store.records(HALF_TOPIC, 0, transactions.prepare().queue_offset, 1)[0]
        forged = Half(real).copied(0)
        # The body of a message begins 88 bytes behind its start.
        place = store.log.log_end + 88
        data = encode_record(
            forged, queue_offset=1, log_offset=place, store_timestamp_ms=1, store_host=b"\0" * 8
        )
        appended = store.append(Message(topic=T, queue_id=0, body=data))
        store.dispatch()
        assert store.record_at(place) is not None
        claimed = msgspec.structs.replace(appended, log_offset=place, queue_offset=1)
        assert transactions.end(claimed) == ResponseCode.SYSTEM_ERROR

    run(tmp_path, scenario)


def test_a_producer_of_the_group_is_asked_and_its_answer_counts(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer, stranger = transactions.connect(), transactions.connect("10.0.0.6:1", group="others")
        half = transactions.prepare(b"order")
        assert transactions.turn() == TIMEOUT_MS
        transactions.pass_ms(TIMEOUT_MS - 1)
        assert asked(producer) == []
        transactions.pass_ms(1)
        (request,) = producer.take_sent()
        assert stranger.take_sent() == []
        shown = decode_record(memoryview(request.body))
        assert (shown.topic, shown.queue_id, bytes(shown.body)) == (T, 1, b"order")
        assert decode_properties(shown.properties)["PGROUP"] == "producers"
        assert request.ext["topic"] == HALF_TOPIC
        assert request.ext["bname"] == "broker-a"
        assert request.ext["msgId"] == request.ext["transactionId"] == "id-1"
        producer.sent.append(request)
        (question,) = asked(producer)
        assert (question.half_queue_offset, question.half_log_offset) != (half.queue_offset, half.log_offset)
        transactions.turn()
        assert transactions.end(question) == 0
        assert transactions.visible() == [b"order"]
        transactions.pass_ms(INTERVAL_MS)
        assert asked(producer) == []

    run(tmp_path, scenario)


def test_a_half_can_be_ended_before_it_is_indexed(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        half = transactions.prepare(b"order", is_indexed=False)
        assert transactions.end(half) == 0
        assert transactions.end(half) == ResponseCode.SYSTEM_ERROR
        transactions.turn()
        assert transactions.visible() == [b"order"]

    run(tmp_path, scenario)


def test_the_former_half_can_be_ended_as_soon_as_its_producer_was_asked(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        half = transactions.prepare(b"order")
        transactions.clock.advance_ms(TIMEOUT_MS)
        # Nothing happens between the question and the end, which was on its way before.
        transactions.keeper.turn()
        (question,) = asked(producer)
        assert transactions.end(half) == 0
        assert transactions.end(question) == ResponseCode.SYSTEM_ERROR
        assert transactions.visible() == [b"order"]

    run(tmp_path, scenario)


def test_a_commit_that_comes_after_the_question_ends_the_transaction_once(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        half = transactions.prepare(b"order")
        transactions.turn()
        transactions.pass_ms(TIMEOUT_MS)
        (question,) = asked(producer)
        transactions.turn()
        assert transactions.end(half) == 0
        assert transactions.end(question) == ResponseCode.SYSTEM_ERROR
        transactions.pass_ms(INTERVAL_MS)
        assert asked(producer) == []
        assert transactions.visible() == [b"order"]

    run(tmp_path, scenario)


def test_producers_of_a_group_are_asked_in_turn(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producers = [transactions.connect(f"10.0.0.{number}:1") for number in range(3)]
        for _ in range(20):
            transactions.prepare()
        transactions.turn()
        transactions.pass_ms(TIMEOUT_MS)
        rounds: list[dict[str | None, int]] = []
        for _ in range(3):
            rounds.append(
                {asked_for.msg_id: number for number in range(3) for asked_for in asked(producers[number])}
            )
            transactions.turn()
            transactions.pass_ms(INTERVAL_MS)
        assert set(rounds[0].values()) == {0, 1, 2}
        assert len(rounds[0]) == 20
        for unique_id in rounds[0]:
            assert {asked_in[unique_id] for asked_in in rounds} == {0, 1, 2}

    run(tmp_path, scenario)


@pytest.mark.behaviour("S1-3")
def test_after_the_last_question_a_half_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        transactions.prepare(b"order")
        transactions.turn()
        questions = 0
        transactions.pass_ms(TIMEOUT_MS)
        for _ in range(10):
            questions += len(asked(producer))
            transactions.turn()
            transactions.pass_ms(INTERVAL_MS)
        assert questions == 3
        assert transactions.visible(CHECK_MAX_TIME_TOPIC, 0) == [b"order"]
        assert transactions.state.topics.find(CHECK_MAX_TIME_TOPIC) is not None
        assert transactions.visible() == []

    with caplog.at_level(logging.INFO):
        run(tmp_path, scenario, settings=msgspec.structs.replace(SETTINGS, transaction_check_max=3))
    assert "transaction given up topic=TopicA group=producers id=id-1 checks=3" in caplog.text


def test_questions_count_although_nobody_is_there(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        transactions.prepare(b"order")
        transactions.turn()
        transactions.pass_ms(TIMEOUT_MS)
        transactions.turn()
        transactions.pass_ms(INTERVAL_MS)
        transactions.turn()
        assert transactions.visible(CHECK_MAX_TIME_TOPIC, 0) == [b"order"]

    run(tmp_path, scenario, settings=msgspec.structs.replace(SETTINGS, transaction_check_max=1))


def test_a_producer_that_set_a_time_is_asked_after_it_and_can_end_before_it(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        first = transactions.prepare(b"first", CHECK_IMMUNITY_TIME_IN_SECONDS="20")
        second = transactions.prepare(b"second", CHECK_IMMUNITY_TIME_IN_SECONDS="20")
        transactions.turn()
        transactions.pass_ms(20_000 - 1)
        assert asked(producer) == []
        assert transactions.end(first) == 0
        transactions.pass_ms(2)
        assert transactions.end(second) == ResponseCode.ILLEGAL_OPERATION
        transactions.turn()
        (question,) = asked(producer)
        assert transactions.end(question) == 0
        assert transactions.visible() == [b"first", b"second"]

    run(tmp_path, scenario)


def test_ends_are_noted_together_and_in_time(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        halves = [transactions.prepare() for _ in range(4)]
        transactions.turn()
        transactions.end(halves[2])
        transactions.pass_ms(1_000)
        transactions.end(halves[0], ROLLBACK)
        transactions.pass_ms(NOTE_MS - 1_001)
        assert transactions.noted() == []
        transactions.pass_ms(1)
        assert transactions.noted() == [b"2,0,"]

    run(tmp_path, scenario)


@pytest.mark.behaviour("S1-3")
def test_how_far_all_is_done_with_is_kept_once_the_log_is_durable(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        halves = [transactions.prepare() for _ in range(3)]
        transactions.turn()
        transactions.end(halves[0])
        transactions.end(halves[2])
        transactions.pass_ms(NOTE_MS)
        transactions.pass_ms(1)
        assert transactions.progress() == (None, None)
        transactions.state.store.flush()
        transactions.turn()
        # The note names the third half, so it is needed as long as the second one is open.
        assert transactions.progress() == (1, 0)
        transactions.end(halves[1])
        transactions.pass_ms(NOTE_MS)
        transactions.state.store.flush()
        transactions.turn()
        assert transactions.progress() == (3, 2)

    run(tmp_path, scenario)


def test_a_half_that_was_asked_for_holds_nothing_up(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        transactions.prepare()
        for half in [transactions.prepare() for _ in range(3)]:
            transactions.end(half)
        transactions.turn()
        transactions.pass_ms(TIMEOUT_MS)
        transactions.turn()
        transactions.keeper.close()
        transactions.state.store.dispatch()
        assert transactions.progress() == (4, 2)
        assert transactions.noted() == [b"1,2,3,", b"0,"]

    run(tmp_path, scenario)


def test_open_transactions_survive_a_kill(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        halves = [transactions.prepare(b"order %d" % number) for number in range(4)]
        transactions.turn()
        transactions.end(halves[0])
        transactions.end(halves[1], ROLLBACK)
        transactions.pass_ms(NOTE_MS)
        transactions.restart_after_kill()
        producer = transactions.connect()
        assert transactions.end(halves[0]) == ResponseCode.SYSTEM_ERROR
        assert transactions.end(halves[1]) == ResponseCode.SYSTEM_ERROR
        assert transactions.end(halves[2]) == 0
        transactions.pass_ms(INTERVAL_MS)
        (question,) = asked(producer)
        transactions.turn()
        assert transactions.end(question) == 0
        assert transactions.visible() == [b"order 0", b"order 2", b"order 3"]

    run(tmp_path, scenario)


def test_a_commit_whose_note_was_lost_is_not_delivered_again(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        first, second = transactions.prepare(b"first"), transactions.prepare(b"second")
        transactions.turn()
        transactions.end(first)
        transactions.end(second)
        transactions.restart_after_kill()
        producer = transactions.connect()
        # The one is committed again, as a client does that had no answer; the other is not even asked for.
        assert transactions.end(first) == 0
        transactions.pass_ms(INTERVAL_MS)
        assert asked(producer) == []
        assert transactions.visible() == [b"first", b"second"]
        transactions.pass_ms(NOTE_MS)
        assert transactions.noted() == [b"0,", b"1,"]

    run(tmp_path, scenario)


def test_a_commit_whose_note_was_lost_is_not_given_up_either(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        transactions.prepare(b"order")
        transactions.turn()
        transactions.pass_ms(TIMEOUT_MS)
        (question,) = asked(producer)
        transactions.end(question)
        transactions.restart_after_kill()
        transactions.pass_ms(INTERVAL_MS)
        assert transactions.visible() == [b"order"]
        assert transactions.visible(CHECK_MAX_TIME_TOPIC, 0) == []

    run(tmp_path, scenario, settings=msgspec.structs.replace(SETTINGS, transaction_check_max=1))


def test_a_commit_of_a_copy_whose_note_was_lost_is_not_delivered_again(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        half = transactions.prepare(b"order")
        transactions.turn()
        transactions.pass_ms(TIMEOUT_MS)
        (question,) = asked(producer)
        transactions.end(question)
        transactions.restart_after_kill()
        assert transactions.end(half) == 0
        transactions.pass_ms(INTERVAL_MS)
        transactions.turn()
        assert asked(producer) == []
        assert transactions.visible() == [b"order"]

    run(tmp_path, scenario)


def test_a_kill_between_the_copy_and_the_note_of_the_former_half_asks_once(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        transactions.prepare(b"order")
        transactions.turn()
        transactions.pass_ms(TIMEOUT_MS)
        assert len(asked(producer)) == 1
        transactions.restart_after_kill()
        assert transactions.noted() == []
        transactions.pass_ms(INTERVAL_MS)
        (question,) = asked(producer)
        transactions.turn()
        assert transactions.end(question) == 0
        transactions.pass_ms(INTERVAL_MS)
        assert asked(producer) == []
        assert transactions.visible() == [b"order"]

    run(tmp_path, scenario)


@pytest.mark.parametrize("is_noted", [False, True])
def test_a_half_that_rocketmq_appended_again_before_asking_is_the_same_transaction(
    tmp_path: Path, is_noted: bool
) -> None:
    async def scenario(transactions: Transacting) -> None:
        store = transactions.state.store
        transactions.end(transactions.prepare(), ROLLBACK)
        first = transactions.prepare(b"order", CHECK_IMMUNITY_TIME_IN_SECONDS="60")
        again = Half(store.records(HALF_TOPIC, 0, first.queue_offset, 1)[0]).copied(0)
        properties = {TRANSACTION_CHECK_TIMES: None, TRAN_PREPARED_QUEUE_OFFSET: str(first.queue_offset)}
        again.properties = replace_properties(again.properties, properties)
        again.prepared_transaction_offset = 0
        store.append(again)
        if is_noted:
            note = Message(topic=HALF_OP_TOPIC, queue_id=0, body=b"1,", properties=b"TAGS\x01d\x02")
            store.append(note)
        store.dispatch()
        transactions.state.offsets.commit(TRANSACTION_GROUP, HALF_TOPIC, 0, 2)
        transactions.state.offsets.save()
        transactions.restart_after_kill()
        assert transactions.end(first) == (ResponseCode.SYSTEM_ERROR if is_noted else 0)
        assert transactions.visible() == ([] if is_noted else [b"order"])
        producer = transactions.connect()
        transactions.pass_ms(60_000)
        assert asked(producer) == []

    run(tmp_path, scenario)


def test_two_messages_with_one_unique_id_are_two_transactions(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        halves = [transactions.prepare(b"order", UNIQ_KEY="same") for _ in range(2)]
        transactions.turn()
        transactions.end(halves[0])
        transactions.restart_after_kill()
        assert transactions.end(halves[1]) == 0
        assert transactions.visible() == [b"order", b"order"]

    run(tmp_path, scenario)


def test_an_offset_ahead_of_the_log_is_taken_back(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        transactions.state.offsets.commit(TRANSACTION_GROUP, HALF_TOPIC, 0, 50)
        transactions.state.offsets.commit(TRANSACTION_GROUP, HALF_OP_TOPIC, 0, 9)
        transactions.state.offsets.save()
        transactions.restart_after_kill()
        half = transactions.prepare(b"order")
        transactions.turn()
        assert transactions.end(half) == 0
        transactions.keeper.close()
        assert transactions.progress() == (1, 1)
        assert transactions.visible() == [b"order"]

    run(tmp_path, scenario)


def test_what_is_no_half_is_taken_out_of_the_half_topic(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        store = transactions.state.store
        store.append(Message(topic=HALF_TOPIC, queue_id=0, body=b"stray"))
        half = transactions.prepare(b"order")
        transactions.turn()
        transactions.pass_ms(TIMEOUT_MS)
        assert transactions.visible(CHECK_MAX_TIME_TOPIC, 0) == [b"stray"]
        assert transactions.end(half) == 0

    run(tmp_path, scenario)


def test_halves_that_the_log_has_deleted_are_forgotten(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        store = transactions.state.store
        transactions.prepare(b"." * 1500)
        transactions.turn()
        for _ in range(4):
            transactions.end(transactions.prepare(b"." * 1500), ROLLBACK)
        transactions.turn()
        store.flush()
        store.finish_clean([store.log.take_first_segment()])
        transactions.pass_ms(TIMEOUT_MS)
        transactions.keeper.close()
        assert transactions.progress() == (5, 1)

    run(tmp_path, scenario)


def test_more_halves_than_there_is_room_for_are_asked_for_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(transactions: Transacting) -> None:
        monkeypatch.setattr(transaction_keeper, "OpenTransactions", partial(OpenTransactions, max_open=200))
        transactions.restart_after_kill()
        producer = transactions.connect()
        for number in range(700):
            transactions.prepare(b"%d" % number)
        transactions.turn()
        questions = 0
        for _ in range(60):
            transactions.pass_ms(TIMEOUT_MS)
            while transactions.turn() == 0:
                pass
            questions += len(asked(producer))
            assert len(transactions.keeper._open) < 200 + 128
        assert questions >= 700

    run(tmp_path, scenario)


def test_a_disk_that_refuses_costs_time_and_no_transaction(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        log = transactions.state.store.log
        half = transactions.prepare(b"order")
        transactions.turn()
        log.refusal = "the disk is full"
        assert transactions.end(half) == ResponseCode.SERVICE_NOT_AVAILABLE
        with pytest.raises(StoreError):
            transactions.pass_ms(TIMEOUT_MS)
        log.refusal = None
        transactions.pass_ms(1_000)
        (question,) = asked(producer)
        assert transactions.end(question) == 0
        assert transactions.visible() == [b"order"]

    run(tmp_path, scenario)


def test_a_stored_half_wakes_the_keeper_and_a_time_that_has_come_too(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        keeper = transactions.keeper
        producer = transactions.connect()
        transactions.state.store.dispatcher.listeners.append(keeper.on_indexed)
        assert transactions.turn() is None
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(keeper.run())
            await asyncio.sleep(0)
            transactions.prepare(b"order")
            await until(lambda: len(keeper._open) == 1)
            transactions.clock.advance_ms(TIMEOUT_MS)
            transactions.prepare(b"next")
            await until(lambda: len(producer.sent) == 1)
            task.cancel()

    run(tmp_path, scenario)


def test_an_end_wakes_the_keeper_to_note_it(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, transaction_op_batch_interval=1)

    async def scenario(transactions: Transacting) -> None:
        half = transactions.prepare(b"order")
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(transactions.keeper.run())
            await asyncio.sleep(0)
            transactions.end(half)
            transactions.clock.advance_ms(1)
            await until(lambda: transactions.noted() == [b"0,"])
            task.cancel()

    run(tmp_path, scenario, settings=settings)


def test_a_half_that_can_not_be_given_up_for_lack_of_topics_is_given_up_all_the_same(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, transaction_check_max=1)

    async def scenario(transactions: Transacting) -> None:
        topics = transactions.state.topics
        transactions.prepare(b"hangs")
        transactions.turn()
        transactions.pass_ms(TIMEOUT_MS)
        topics.settings = msgspec.structs.replace(settings, max_topic_count=len(topics.table.topics))
        transactions.turn()
        transactions.pass_ms(INTERVAL_MS)
        assert transactions.visible(CHECK_MAX_TIME_TOPIC, 0) == [b"hangs"]

    run(tmp_path, scenario, settings=settings)


def test_a_half_that_can_be_neither_asked_for_nor_kept_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        writer = transactions.state.writer
        append = writer.append

        def refuse(message: Message) -> Appended:
            if message.body == b"bad":
                raise LocalProtocolError("no room in a record")
            return append(message)

        transactions.prepare(b"bad")
        transactions.prepare(b"good")
        transactions.end(transactions.prepare(b"ended"), ROLLBACK)
        transactions.turn()
        monkeypatch.setattr(writer, "append", refuse)
        transactions.pass_ms(TIMEOUT_MS)
        transactions.pass_ms(NOTE_MS)
        assert len(asked(producer)) == 1
        assert b"".join(transactions.noted()) == b"2,0,1,"

    run(tmp_path, scenario)
    assert "transaction is lost queue_offset=0" in caplog.text


def test_a_half_that_can_not_be_read_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(transactions: Transacting) -> None:
        store = transactions.state.store
        for body in (b"first", b"bad", b"last"):
            transactions.prepare(body)
        records = store.records

        def read(topic: str, queue_id: int, queue_offset: int, max_count: int) -> list[Record]:
            if topic == HALF_TOPIC and queue_offset <= 1 < queue_offset + max_count:
                raise RemoteProtocolError("no record")
            return records(topic, queue_id, queue_offset, max_count)

        monkeypatch.setattr(store, "records", read)
        producer = transactions.connect()
        transactions.turn()
        transactions.pass_ms(TIMEOUT_MS)
        assert [question.msg_id for question in asked(producer)] == ["id-1", "id-3"]

    run(tmp_path, scenario)
    assert "can not be read" in caplog.text


def test_a_stored_half_can_be_ended_or_asked_for_also_if_it_is_larger_than_what_is_taken_now(
    tmp_path: Path,
) -> None:
    async def before(transactions: Transacting) -> None:
        transactions.prepare(b"." * 2000)
        transactions.prepare(b"." * 2000)
        transactions.state.store.checkpoint()

    async def after(transactions: Transacting) -> None:
        producer = transactions.connect()
        transactions.turn()
        transactions.pass_ms(INTERVAL_MS)
        first, _ = asked(producer)
        assert transactions.end(first) == 0
        assert len(transactions.visible()) == 1

    run(tmp_path, before)
    run(tmp_path, after, store_settings=msgspec.structs.replace(SMALL, max_message_size=1000))


@pytest.mark.parametrize("delay", ["TIMER_DELIVER_MS", "DELAY"])
def test_a_delayed_commit_whose_note_was_lost_comes_once_also_when_its_time_is_over(
    tmp_path: Path, delay: str
) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        time_ms = transactions.clock.now_ms() + 5_000
        value = "2" if delay == "DELAY" else str(time_ms)
        half = transactions.prepare(b"order", **{delay: value})  # pyright: ignore[reportArgumentType]
        transactions.turn()
        assert transactions.end(half) == 0
        transactions.restart_after_kill()
        transactions.pass_ms(INTERVAL_MS)
        assert asked(producer) == []
        assert transactions.end(half) == ResponseCode.SYSTEM_ERROR
        assert transactions.visible() == []

    run(tmp_path, scenario)


def test_a_commit_whose_note_was_lost_is_found_also_if_its_topic_was_deleted(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        transactions.end(transactions.prepare(b"order"))
        transactions.state.store.delete_topics([T])
        transactions.restart_after_kill()
        transactions.pass_ms(INTERVAL_MS)
        assert asked(producer) == []

    run(tmp_path, scenario)


def test_an_end_that_names_a_copy_which_is_not_taken_in_yet_ends_the_transaction(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        store = transactions.state.store
        first = transactions.prepare(b"order")
        transactions.turn()
        copy = store.append(Half(store.records(HALF_TOPIC, 0, 0, 1)[0]).copied(first.log_offset))
        store.dispatch()
        assert transactions.end(copy, ROLLBACK) == 0
        transactions.turn()
        assert len(transactions.keeper._open) == 0
        transactions.pass_ms(NOTE_MS)
        assert transactions.noted() == [b"0,1,"]

    run(tmp_path, scenario)


def test_no_half_keeps_others_from_being_forgotten_for_longer_than_the_log_keeps_its_files(
    tmp_path: Path,
) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        transactions.prepare(b"pin", CHECK_IMMUNITY_TIME_IN_SECONDS="999999999999")
        transactions.turn()
        transactions.pass_ms(SMALL.file_reserved_time * 3_600_000)
        assert len(asked(producer)) == 1

    run(tmp_path, scenario)


def test_how_long_halves_are_kept_follows_the_settings(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        store = transactions.state.store
        store.settings = msgspec.structs.replace(store.settings, file_reserved_time=1)
        transactions.prepare(b"old")
        transactions.turn()
        transactions.pass_ms(3_600_001)
        assert transactions.visible(CHECK_MAX_TIME_TOPIC, 0) == [b"old"]

    run(tmp_path, scenario)


def test_a_full_table_of_offsets_holds_no_transaction_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(transactions: Transacting) -> None:
        monkeypatch.setattr(offsets_module, "MAX_OFFSETS", 0)
        transactions.end(transactions.prepare())
        transactions.turn()
        transactions.keeper.close()
        assert transactions.progress() == (1, 1)

    run(tmp_path, scenario)


def test_what_somebody_did_to_the_offsets_is_put_right_at_the_end(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        half = transactions.prepare(b"order")
        transactions.turn()
        transactions.keeper.close()
        transactions.state.offsets.commit(TRANSACTION_GROUP, HALF_TOPIC, 0, 1000)
        transactions.keeper.close()
        transactions.state.offsets.save()
        transactions.restart_after_kill()
        assert transactions.end(half) == 0

    run(tmp_path, scenario)


def test_a_producer_is_asked_when_the_copy_is_confirmed_and_can_be_ended(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        producer = transactions.connect()
        transactions.prepare(b"order")
        transactions.turn()
        store = transactions.state.store
        store.dispatcher.confirmed_to = store.log.log_end
        transactions.pass_ms(TIMEOUT_MS)
        # The copy is written.
        assert store.log.log_end > store.dispatcher.confirmed_to
        assert asked(producer) == []
        store.dispatcher.confirmed_to = store.log.log_end
        store.dispatch()
        transactions.turn()
        (question,) = asked(producer)
        assert transactions.end(question) == 0

    run(tmp_path, scenario)


def test_halves_are_done_with_when_that_is_confirmed(tmp_path: Path) -> None:
    async def scenario(transactions: Transacting) -> None:
        half = transactions.prepare(b"order")
        transactions.turn()
        store = transactions.state.store
        store.dispatcher.confirmed_to = store.log.log_end
        assert transactions.end(half) == 0
        before = transactions.progress()
        for _ in range(3):
            transactions.pass_ms(NOTE_MS)
            store.flush()
        transactions.keeper.close()
        assert transactions.progress() == before
        store.dispatcher.confirmed_to = store.log.log_end
        store.dispatch()
        transactions.turn()
        transactions.turn()
        assert transactions.progress() == (1, 1)

    run(tmp_path, scenario)
