import msgspec
import pytest

from tanist.broker.transactions.halves import Half, Rules, prepare
from tanist.errors import ResponseError
from tanist.model.host import pack_host
from tanist.model.message import Message, SysFlag
from tanist.model.property_names import (
    CHECK_IMMUNITY_TIME_IN_SECONDS,
    PGROUP,
    TRAN_MSG,
    TRAN_PREPARED_QUEUE_OFFSET,
    TRANSACTION_CHECK_TIMES,
    UNIQ_KEY,
)
from tanist.model.topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC
from tanist.protocol.codes import ResponseCode
from tanist.protocol.properties import decode_properties, encode_properties
from tanist.protocol.record import MAX_PROPERTIES_BYTES, Record, decode_record, encode_record

HOST = pack_host("127.0.0.1", 10911)
BORN_MS = 1_700_000_000_000
STORED_MS = BORN_MS + 5
RULES = Rules(timeout_ms=6_000, interval_ms=30_000, max_checks=3, reserved_hours=72)


def message(**properties: str) -> Message:
    named = {TRAN_MSG: "true", PGROUP: "P", UNIQ_KEY: "id-1", **properties}
    return Message(
        topic="Orders",
        queue_id=3,
        body=b"body",
        properties=encode_properties({name: value for name, value in named.items() if value}),
        flag=9,
        sys_flag=int(SysFlag.PREPARED | SysFlag.COMPRESSED),
        born_timestamp_ms=BORN_MS,
    )


def recorded(stored: Message, *, log_offset: int = 700, queue_offset: int = 4) -> Record:
    data = encode_record(
        stored,
        queue_offset=queue_offset,
        log_offset=log_offset,
        store_timestamp_ms=STORED_MS,
        store_host=HOST,
    )
    return decode_record(memoryview(data))


def half_of(properties: dict[str, str] | None = None, *, said: dict[str, str] | None = None) -> Half:
    """``said`` are the properties that only brokers add."""
    stored = prepare(message(**(properties or {})))
    stored.properties += encode_properties(said or {})
    return Half(recorded(stored))


def test_a_half_waits_in_the_half_topic_and_remembers_where_it_is_to_go() -> None:
    half = prepare(message(KEYS="k"))
    assert (half.topic, half.queue_id, half.sys_flag) == (HALF_TOPIC, 0, int(SysFlag.COMPRESSED))
    assert (half.body, half.flag, half.born_timestamp_ms) == (b"body", 9, BORN_MS)
    assert decode_properties(half.properties) == {
        "TRAN_MSG": "true",
        "PGROUP": "P",
        "UNIQ_KEY": "id-1",
        "KEYS": "k",
        "__transactionId__": "id-1",
        "REAL_TOPIC": "Orders",
        "REAL_QID": "3",
    }


def test_what_only_a_broker_says_is_not_taken_from_a_producer() -> None:
    half = half_of({TRANSACTION_CHECK_TIMES: "9", TRAN_PREPARED_QUEUE_OFFSET: "1", "REAL_TOPIC": "Other"})
    assert half.check_count == 0
    assert half.first_queue_offset is None
    assert half.target == ("Orders", 3)


@pytest.mark.parametrize(
    "properties", [{PGROUP: ""}, {"K": "v" * (MAX_PROPERTIES_BYTES - 150)}], ids=["no group", "too long"]
)
def test_a_half_that_could_not_be_asked_for_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(ResponseError) as refusal:
        prepare(message(**properties))
    assert refusal.value.code == ResponseCode.MESSAGE_ILLEGAL


def test_a_committed_message_is_the_half_in_its_own_queue() -> None:
    half = half_of()
    committed = half.committed()
    assert (committed.topic, committed.queue_id) == ("Orders", 3)
    assert committed.sys_flag == int(SysFlag.COMMIT | SysFlag.COMPRESSED)
    assert committed.prepared_transaction_offset == 700
    assert committed.properties == half.properties
    assert (bytes(committed.body), committed.flag, committed.born_timestamp_ms) == (b"body", 9, BORN_MS)


def test_a_copy_counts_the_question_and_names_the_first_half() -> None:
    first = half_of()
    assert first.origin == 700
    copy = first.copied(first.origin)
    second = Half(recorded(copy, log_offset=1900))
    third = Half(recorded(second.copied(second.origin), log_offset=3100))
    assert (copy.topic, copy.queue_id, copy.flag) == (HALF_TOPIC, 0, 9)
    assert [one.check_count for one in (first, second, third)] == [0, 1, 2]
    assert [one.origin for one in (first, second, third)] == [700, 700, 700]
    assert third.properties.count(b"TRANSACTION_CHECK_TIMES") == 1
    assert third.target == ("Orders", 3)


def test_a_copy_names_the_first_half_also_where_the_log_begins() -> None:
    first = Half(recorded(prepare(message()), log_offset=0))
    assert Half(recorded(first.copied(first.origin))).origin == 0


def test_a_copy_that_rocketmq_made_names_no_other_half() -> None:
    assert half_of(said={TRANSACTION_CHECK_TIMES: "1"}).origin == 700


def test_the_largest_half_leaves_room_for_its_copies() -> None:
    spare = MAX_PROPERTIES_BYTES - len(prepare(message(K="v")).properties)
    with pytest.raises(ResponseError):
        prepare(message(K="v" * (spare + 1)))
    half = half_of({"K": "v" * (spare - 64)})
    copy = half.copied(half.origin)
    for _ in range(1_000):
        copy = Half(recorded(copy)).copied(700)
    assert len(copy.properties) <= MAX_PROPERTIES_BYTES


def test_a_producer_is_shown_the_message_as_it_sent_it() -> None:
    half = half_of()
    shown = half.shown(half.copied(700))
    assert (shown.topic, shown.queue_id) == ("Orders", 3)
    assert decode_properties(shown.properties)[PGROUP] == "P"


def test_what_is_given_up_keeps_its_properties() -> None:
    half = half_of()
    given_up = half.given_up()
    assert (given_up.topic, given_up.queue_id) == (CHECK_MAX_TIME_TOPIC, 0)
    assert given_up.properties == half.properties


@pytest.mark.parametrize(
    ("immunity", "said", "due_ms"),
    [
        ("", {}, STORED_MS + 6_000),
        ("20", {}, STORED_MS + 20_000),
        ("1", {}, STORED_MS + 1_000),
        ("soon", {}, STORED_MS + 6_000),
        ("-1", {}, STORED_MS + 6_000),
        ("9" * 30, {}, STORED_MS + 6_000),
        ("", {TRANSACTION_CHECK_TIMES: "1"}, STORED_MS + 30_000),
        ("20", {TRANSACTION_CHECK_TIMES: "1"}, STORED_MS + 30_000),
        ("20", {TRAN_PREPARED_QUEUE_OFFSET: "2"}, BORN_MS + 20_000),
    ],
)
def test_when_a_producer_is_asked(immunity: str, said: dict[str, str], due_ms: int) -> None:
    half = half_of({CHECK_IMMUNITY_TIME_IN_SECONDS: immunity}, said=said)
    assert half.due_ms(RULES) == due_ms


@pytest.mark.parametrize(("immunity", "late_ms"), [("", None), ("20", 20_001), ("1", 6_001), ("soon", None)])
def test_only_a_producer_that_set_a_time_can_be_too_late(immunity: str, late_ms: int | None) -> None:
    half = half_of({CHECK_IMMUNITY_TIME_IN_SECONDS: immunity})
    if late_ms is None:
        assert not half.is_too_late(RULES, now_ms=BORN_MS + 10**9)
    else:
        assert not half.is_too_late(RULES, now_ms=BORN_MS + late_ms - 1)
        assert half.is_too_late(RULES, now_ms=BORN_MS + late_ms)


def test_a_half_is_given_up_after_so_many_questions_or_when_its_file_may_go() -> None:
    three_days_ms = 72 * 3_600_000
    assert not half_of(said={TRANSACTION_CHECK_TIMES: "2"}).is_hopeless(RULES, now_ms=BORN_MS)
    assert half_of(said={TRANSACTION_CHECK_TIMES: "3"}).is_hopeless(RULES, now_ms=BORN_MS)
    assert not half_of().is_hopeless(RULES, now_ms=BORN_MS + three_days_ms)
    assert half_of().is_hopeless(RULES, now_ms=BORN_MS + three_days_ms + 1)


def test_a_message_that_says_no_target_is_no_half() -> None:
    stray = Message(topic=HALF_TOPIC, queue_id=0, body=b"b", properties=b"REAL_TOPIC\x01T\x02REAL_QID\x01x")
    assert Half(recorded(stray)).target is None
    for properties in (b"", b"REAL_TOPIC\x01T\x02", b"REAL_TOPIC\x01T\x02REAL_QID\x012147483648\x02"):
        assert Half(recorded(msgspec.structs.replace(stray, properties=properties))).target is None
