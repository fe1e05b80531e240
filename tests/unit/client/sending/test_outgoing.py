"""A message as it goes out: its id, its property string, its body."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tanist.client.errors import InvalidArgument
from tanist.client.message import Message
from tanist.client.sending.outgoing import OutgoingMaker, check_batch, property_text
from tanist.model.message import SysFlag
from tanist.protocol.batch import decode_batch
from tanist.protocol.compression import Compression, decompress_body
from tanist.protocol.message_id import decode_unique_id
from tanist.protocol.properties import decode_properties
from tests.support.clocks import FakeClock

ZEROS = bytes(5000)


def maker(**options: Any) -> OutgoingMaker:
    return OutgoingMaker(FakeClock(), local_address="10.0.0.7", **options)


def properties(message: Message, **extra: str) -> dict[str, str]:
    return decode_properties(property_text(message, "ID", extra).encode())


def test_a_plain_message_has_an_id_and_waits_to_be_stored() -> None:
    assert properties(Message("T", b"x")) == {"WAIT": "true", "UNIQ_KEY": "ID"}


def test_all_that_a_message_says_is_in_its_properties() -> None:
    message = Message(
        "T", b"x", tags="paid", keys=["o-17", "c-3"], sharding_key="o-17", properties={"näme": "wert"}
    )
    assert properties(message, TTL="3000") == {
        "WAIT": "true",
        "UNIQ_KEY": "ID",
        "TAGS": "paid",
        "KEYS": "o-17 c-3",
        "__SHARDINGKEY": "o-17",
        "näme": "wert",
        "TTL": "3000",
    }


@pytest.mark.parametrize(
    ("delay", "name", "value"),
    [
        ({"delay_level": 3}, "DELAY", "3"),
        ({"delay_s": 1.5}, "TIMER_DELAY_MS", "1500"),
        ({"deliver_at": datetime(2030, 1, 1, tzinfo=UTC)}, "TIMER_DELIVER_MS", "1893456000000"),
    ],
)
def test_a_delay_has_the_property_that_brokers_know_it_by(
    delay: dict[str, Any], name: str, value: str
) -> None:
    assert properties(Message("T", b"x", **delay))[name] == value


def test_no_delay_at_all_is_no_timer() -> None:
    assert properties(Message("T", b"x", delay_s=0)) == {"WAIT": "true", "UNIQ_KEY": "ID"}


def test_properties_that_no_record_has_room_for_are_refused() -> None:
    message = Message("T", b"x", properties={"long": "ä" * 16_380})
    with pytest.raises(InvalidArgument, match=r"properties=.* may have 32767 bytes"):
        property_text(message, "ID", {})
    assert property_text(Message("T", b"x", properties={"long": "ä" * 16_350}), "ID", {})


def test_each_message_has_an_id_of_its_own_that_tells_its_producer() -> None:
    making = maker()
    ids = [making.make(Message("T", b"x"), extra={}, sys_flag=0).message_id for _ in range(100)]
    assert len(set(ids)) == 100
    assert decode_unique_id(ids[0]).address == bytes([10, 0, 0, 7])


def test_a_producer_with_an_ipv6_address_has_longer_ids() -> None:
    making = OutgoingMaker(FakeClock(), local_address="fe80::1%eth0")
    assert len(making.make(Message("T", b"x"), extra={}, sys_flag=0).message_id) == 56


@pytest.mark.parametrize("kind", list(Compression))
def test_a_large_body_is_compressed_as_asked(kind: Compression) -> None:
    making = maker(compression=kind.name.lower(), compress_from_bytes=len(ZEROS))
    outgoing = making.make(Message("T", ZEROS), extra={}, sys_flag=int(SysFlag.PREPARED))
    assert making.is_to_compress(outgoing)
    outgoing = making.compress(outgoing)
    assert outgoing.sys_flag == SysFlag.COMPRESSED | SysFlag.PREPARED | kind
    assert len(outgoing.body) < 100
    assert decompress_body(outgoing.body, outgoing.sys_flag, max_bytes=len(ZEROS)) == ZEROS


@pytest.mark.parametrize("options", [{"compress_from_bytes": len(ZEROS) + 1}, {"compression": None}])
def test_a_body_that_is_too_small_or_whose_producer_does_not_want_it_is_not_compressed(
    options: dict[str, Any],
) -> None:
    making = maker(**options)
    outgoing = making.make(Message("T", ZEROS), extra={}, sys_flag=0)
    assert not making.is_to_compress(outgoing)
    assert outgoing.sys_flag == 0


def test_a_body_that_compression_makes_no_smaller_stays_as_it_is() -> None:
    making = maker(compress_from_bytes=1)
    outgoing = making.make(Message("T", bytes(range(256))), extra={}, sys_flag=0)
    assert making.is_to_compress(outgoing)
    assert making.compress(outgoing) is outgoing


def test_a_body_that_is_too_large_is_refused_with_its_size_and_the_limit() -> None:
    with pytest.raises(InvalidArgument, match=r"body=.* 11 bytes, and max_message_bytes is 10") as refused:
        maker(max_message_bytes=10).make(Message("T", b"x" * 11), extra={}, sys_flag=0)
    assert refused.value.argument == "body"


def test_each_message_of_a_batch_keeps_its_own_id() -> None:
    outgoing = maker().make_batch([Message("T", b"1", tags="a"), Message("T", b"2")], extra={})
    items = decode_batch(outgoing.body)
    assert [bytes(item.body) for item in items] == [b"1", b"2"]
    found = [decode_properties(item.properties) for item in items]
    assert ",".join(each["UNIQ_KEY"] for each in found) == outgoing.message_id
    assert found[0]["TAGS"] == "a"
    # An id of the batch would be appended to every message, and hide its own.
    assert decode_properties(outgoing.properties.encode()) == {"WAIT": "true"}


def test_a_batch_is_never_compressed() -> None:
    making = maker(compress_from_bytes=0)
    outgoing = making.make_batch([Message("T", ZEROS)], extra={})
    assert not making.is_to_compress(outgoing)
    assert outgoing.sys_flag == 0
    assert ZEROS in outgoing.body


def test_a_batch_that_is_too_large_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"messages=.* max_message_bytes is 100"):
        maker(max_message_bytes=100).make_batch([Message("T", b"x" * 50)] * 2, extra={})


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "at least one"),
        ("text", "give a list"),
        ([Message("T", b"1"), b"2"], "list of Messages"),
        ([Message("T", b"1"), Message("U", b"2")], "one topic, and the first is for T"),
        ([Message("T", b"1", sharding_key="a"), Message("T", b"2")], "the same sharding_key"),
        ([Message("T", b"1", delay_level=1)], "can not be delayed"),
        ([Message("T", b"1", delay_s=1)], "can not be delayed"),
        ([Message("%RETRY%g", b"1")], "no batches"),
    ],
)
def test_what_can_not_be_one_batch_is_refused(messages: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said) as refused:
        check_batch(messages)
    assert refused.value.argument == "messages"


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"max_message_bytes": 0}, "max_message_bytes"),
        ({"max_message_bytes": 1 << 30}, "max_message_bytes"),
        ({"compress_from_bytes": -1}, "compress_from_bytes"),
        ({"compression": "gzip"}, "compression"),
        ({"compression": 9}, "compression"),
    ],
)
def test_wrong_settings_are_refused_by_name(options: dict[str, Any], argument: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        maker(**options)
    assert refused.value.argument == argument
