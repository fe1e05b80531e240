import pytest

from tanist.broker.delays.rules import (
    DelayRules,
    NotDeliverable,
    deliver_by_level,
    deliver_by_timer,
    postpone,
)
from tanist.errors import ResponseError
from tanist.model.message import Message, SysFlag
from tanist.model.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from tanist.protocol.codes import ResponseCode
from tanist.protocol.properties import decode_properties, encode_properties
from tanist.protocol.record import Record, decode_record, encode_record

NOW_MS = 1_700_000_000_500
DAY_S = 86_400
RULES = DelayRules(
    levels=(1_000, 5_000, 10_000), is_timer_enabled=True, max_timer_ms=3 * DAY_S * 1000, precision_ms=1_000
)
HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


def message(**properties: str) -> Message:
    return Message(
        topic="Orders",
        queue_id=3,
        body=b"body",
        properties=encode_properties({"TAGS": "A", "UNIQ_KEY": "U1", **properties}),
        flag=7,
        sys_flag=int(SysFlag.COMPRESSED),
        born_timestamp_ms=5,
        reconsume_times=2,
    )


def stored(placed: Message, store_timestamp_ms: int = NOW_MS) -> Record:
    raw = encode_record(
        placed, queue_offset=0, log_offset=0, store_timestamp_ms=store_timestamp_ms, store_host=HOST
    )
    return decode_record(memoryview(raw))


def place(rules: DelayRules = RULES, /, **properties: str) -> tuple[str, int, dict[str, str]]:
    placed = postpone(message(**properties), rules, now_ms=NOW_MS)
    return placed.topic, placed.queue_id, decode_properties(placed.properties)


@pytest.mark.parametrize(("level", "queue_id"), [("1", 0), ("2", 1), ("3", 2)])
def test_a_delay_level_is_a_queue_and_the_real_one_is_kept(level: str, queue_id: int) -> None:
    assert place(DELAY=level) == (
        SCHEDULE_TOPIC,
        queue_id,
        {"TAGS": "A", "UNIQ_KEY": "U1", "DELAY": level, "REAL_TOPIC": "Orders", "REAL_QID": "3"},
    )


def test_a_level_past_the_last_counts_as_the_last() -> None:
    topic, queue_id, properties = place(DELAY="99")
    assert (topic, queue_id, properties["DELAY"]) == (SCHEDULE_TOPIC, 2, "3")


@pytest.mark.parametrize("level", ["0", "-2", "+0"])
def test_a_level_of_none_delays_nothing(level: str) -> None:
    original = message(DELAY=level)
    assert postpone(original, RULES, now_ms=NOW_MS) is original


@pytest.mark.parametrize(
    ("name", "value", "slot_ms"),
    [
        ("TIMER_DELAY_SEC", "3", 1_700_000_003_000),
        ("TIMER_DELAY_MS", "2600", 1_700_000_003_000),
        ("TIMER_DELAY_MS", "100", 1_700_000_000_000),
        ("TIMER_DELIVER_MS", "1700000004000", 1_700_000_003_000),
        ("TIMER_DELIVER_MS", "1700000004001", 1_700_000_004_000),
    ],
)
def test_a_timer_message_lies_in_the_slot_that_ends_at_its_time_or_around_it(
    name: str, value: str, slot_ms: int
) -> None:
    assert place(RULES, **{name: value}) == (
        TIMER_TOPIC,
        0,
        {
            "TAGS": "A",
            "UNIQ_KEY": "U1",
            name: value,
            "TIMER_OUT_MS": str(slot_ms),
            "REAL_TOPIC": "Orders",
            "REAL_QID": "3",
        },
    )


def test_seconds_go_before_milliseconds_and_both_before_a_time() -> None:
    _, _, properties = place(TIMER_DELIVER_MS="1700000090000", TIMER_DELAY_MS="5000", TIMER_DELAY_SEC="2")
    assert properties["TIMER_OUT_MS"] == "1700000002000"
    _, _, properties = place(TIMER_DELIVER_MS="1700000090000", TIMER_DELAY_MS="5000")
    assert properties["TIMER_OUT_MS"] == "1700000005000"


def test_a_level_goes_before_a_timer_which_is_taken_off() -> None:
    topic, queue_id, properties = place(
        DELAY="1", TIMER_DELAY_SEC="3", TIMER_DELAY_MS="4", TIMER_DELIVER_MS="5"
    )
    assert (topic, queue_id) == (SCHEDULE_TOPIC, 0)
    assert not [name for name in properties if name.startswith("TIMER_")]


@pytest.mark.parametrize("value", ["1700000000500", "1", "-5"])
def test_a_time_that_is_over_delays_nothing(value: str) -> None:
    original = message(TIMER_DELIVER_MS=value)
    assert postpone(original, RULES, now_ms=NOW_MS) is original


def test_a_message_that_has_waited_does_not_wait_again() -> None:
    original = message(TIMER_DELAY_SEC="3", TIMER_OUT_MS="1700000003000")
    assert postpone(original, RULES, now_ms=NOW_MS) is original


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"TIMER_DELAY_SEC": str(3 * DAY_S + 1)}, ResponseCode.MESSAGE_ILLEGAL),
        ({"TIMER_DELAY_SEC": "soon"}, ResponseCode.MESSAGE_ILLEGAL),
        ({"TIMER_DELAY_MS": "9" * 30}, ResponseCode.MESSAGE_ILLEGAL),
        ({"TIMER_DELIVER_MS": "1.5"}, ResponseCode.MESSAGE_ILLEGAL),
        ({"TIMER_DELIVER_MS": "5", "TIMER_DEL_UNIQKEY": "Orders+U1"}, ResponseCode.MESSAGE_ILLEGAL),
        ({"TIMER_DELAY_SEC": "3", "K": "v" * 32_600}, ResponseCode.MESSAGE_ILLEGAL),
        ({"DELAY": "1", "K": "v" * 32_730}, ResponseCode.MESSAGE_ILLEGAL),
        ({"DELAY": "soon"}, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_delay_that_can_not_be_is_refused(properties: dict[str, str], code: ResponseCode) -> None:
    with pytest.raises(ResponseError) as refusal:
        place(RULES, **properties)
    assert refusal.value.code == code


def test_the_longest_timer_is_taken() -> None:
    assert place(TIMER_DELAY_SEC=str(3 * DAY_S))[0] == TIMER_TOPIC


def test_without_the_timer_its_messages_are_refused_and_levels_are_not() -> None:
    rules = DelayRules(levels=(1_000,), is_timer_enabled=False, max_timer_ms=1, precision_ms=1_000)
    with pytest.raises(ResponseError) as refusal:
        place(rules, TIMER_DELAY_SEC="3")
    assert refusal.value.code == ResponseCode.SYSTEM_ERROR
    assert place(rules, DELAY="1")[0] == SCHEDULE_TOPIC


def test_what_waited_for_its_level_comes_as_it_lay() -> None:
    original = message(DELAY="2")
    placed = postpone(original, RULES, now_ms=NOW_MS)
    delivered = deliver_by_level(stored(placed))
    assert (delivered.topic, delivered.queue_id) == ("Orders", 3)
    # RocketMQ leaves the properties of the waiting on the record as well.
    assert delivered.properties == placed.properties
    for name in ("body", "flag", "sys_flag", "born_timestamp_ms", "born_host", "reconsume_times"):
        assert getattr(delivered, name) == getattr(original, name), name


@pytest.mark.parametrize(("delay_ms", "enqueue_ms"), [("2000", "1700000000000"), ("100", "1700000000000")])
def test_what_waited_for_its_time_says_when_the_timer_took_it_and_let_it_go(
    delay_ms: str, enqueue_ms: str
) -> None:
    placed = postpone(message(TIMER_DELAY_MS=delay_ms), RULES, now_ms=NOW_MS)
    delivered = deliver_by_timer(stored(placed), precision_ms=1_000, now_ms=NOW_MS + 2_500)
    assert (delivered.topic, delivered.queue_id) == ("Orders", 3)
    assert decode_properties(delivered.properties) == decode_properties(placed.properties) | {
        "TIMER_ENQUEUE_MS": enqueue_ms,
        "TIMER_DEQUEUE_MS": "1700000003000",
    }


def test_what_was_late_for_the_timer_says_so() -> None:
    placed = postpone(message(TIMER_DELAY_MS="100"), RULES, now_ms=NOW_MS)
    late = stored(placed, store_timestamp_ms=NOW_MS + 1_000)
    delivered = deliver_by_timer(late, precision_ms=1_000, now_ms=NOW_MS + 1_000)
    assert decode_properties(delivered.properties)["TIMER_ENQUEUE_MS"] == str(2**63 - 1)


@pytest.mark.parametrize(
    "properties", [{}, {"REAL_TOPIC": "T"}, {"REAL_QID": "0"}, {"REAL_TOPIC": "T", "REAL_QID": "x"}]
)
def test_a_record_that_names_no_target_is_not_delivered(properties: dict[str, str]) -> None:
    with pytest.raises(NotDeliverable):
        deliver_by_level(stored(message(**properties)))


@pytest.mark.parametrize("slot", [None, "soon", "-5", "9" * 30])
def test_a_record_without_a_time_is_not_delivered(slot: str | None) -> None:
    properties = {"REAL_TOPIC": "T", "REAL_QID": "0"} | ({"TIMER_OUT_MS": slot} if slot else {})
    with pytest.raises(NotDeliverable):
        deliver_by_timer(stored(message(**properties)), precision_ms=1_000, now_ms=NOW_MS)
