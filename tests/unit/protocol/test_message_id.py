from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.host import pack_host
from tanist.model.offsets import LogOffset
from tanist.protocol.message_id import (
    OffsetId,
    UniqueId,
    UniqueIds,
    decode_offset_id,
    decode_unique_id,
    encode_offset_id,
)

ADDRESS = bytes((10, 0, 0, 7))


def _ms(year: int, month: int, day: int, *time: int, zone: tzinfo = UTC) -> int:
    return int(datetime(year, month, day, *time, tzinfo=zone).timestamp() * 1000)


def test_the_offset_id_of_the_golden_record() -> None:
    text = encode_offset_id(pack_host("1.2.3.4", 10911), 0)
    assert text == "0102030400002A9F0000000000000000"
    assert decode_offset_id(text) == OffsetId(pack_host("1.2.3.4", 10911), LogOffset(0))


def test_an_offset_id_with_an_ipv6_host_has_56_characters() -> None:
    host = pack_host("fe80::1", 10911)
    text = encode_offset_id(host, 2**62)
    assert len(text) == 56
    assert decode_offset_id(text) == OffsetId(host, LogOffset(2**62))


def test_lower_case_is_understood() -> None:
    assert decode_offset_id("0102030400002a9f0000000000000010").log_offset == 16


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        "0" * 31,
        "0" * 33,
        "0" * 40,
        "G" + "0" * 31,
        "0102030400002A9F 0000000000000000"[:32],
        "00 " * 16 + "00 " * 2 + "00",
        "\uff10" * 32,
        "0102030400010000" + "0" * 16,  # port 65536
        "01020304FFFFFFFF" + "0" * 16,  # port -1
        "0102030400002A9F" + "F" * 16,  # offset -1
    ],
)
def test_what_is_no_offset_id_is_refused(text: str) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_offset_id(text)


def test_no_offset_id_is_made_of_half_a_host_or_a_negative_offset() -> None:
    with pytest.raises(LocalProtocolError):
        encode_offset_id(b"\x01\x02\x03\x04", 0)
    with pytest.raises(LocalProtocolError):
        encode_offset_id(pack_host("1.2.3.4", 10911), -1)


def test_a_unique_id_holds_address_pid_discriminator_time_and_counter() -> None:
    ids = UniqueIds(address=ADDRESS, pid=0x12345, discriminator=0x18B4AAC2)
    text = ids.next_id(_ms(2024, 5, 1, 0, 0, 1))
    assert text == "0A000007" + "2345" + "18B4AAC2" + "000003E8" + "0000"
    assert decode_unique_id(text) == UniqueId(ADDRESS, 0x2345, 0x18B4AAC2, 1000, 0)


def test_a_unique_id_with_an_ipv6_address_has_56_characters() -> None:
    text = UniqueIds(address=bytes(16), pid=1, discriminator=-1).next_id(_ms(2024, 5, 1))
    assert len(text) == 56
    assert decode_unique_id(text).discriminator == 0xFFFFFFFF


def test_ids_of_one_millisecond_differ_by_their_counter_which_wraps() -> None:
    ids = UniqueIds(address=ADDRESS, pid=1, discriminator=2)
    now_ms = _ms(2024, 5, 1)
    made = [ids.next_id(now_ms) for _ in range(65536)]
    assert len(set(made)) == 65536
    assert ids.next_id(now_ms) == made[0]


def test_the_time_starts_again_with_the_month_and_fits_at_its_end() -> None:
    ids = UniqueIds(address=ADDRESS, pid=1, discriminator=2)
    last_ms = _ms(2024, 12, 31, 23, 59, 59) + 999
    assert decode_unique_id(ids.next_id(last_ms)).month_ms == 31 * 24 * 3600 * 1000 - 1
    assert decode_unique_id(ids.next_id(last_ms + 1)).month_ms == 0


def test_a_clock_that_steps_back_over_the_month_makes_no_negative_time() -> None:
    ids = UniqueIds(address=ADDRESS, pid=1, discriminator=2)
    ids.next_id(_ms(2024, 6, 1))
    assert decode_unique_id(ids.next_id(_ms(2024, 5, 2))).month_ms == 24 * 3600 * 1000


def test_the_month_begins_in_the_given_zone() -> None:
    now_ms = _ms(2024, 5, 1)
    east = UniqueIds(address=ADDRESS, pid=1, discriminator=2, zone=timezone(timedelta(hours=8)))
    assert decode_unique_id(east.next_id(now_ms)).month_ms == 8 * 3600 * 1000
    new_york = ZoneInfo("America/New_York")
    west = UniqueIds(address=ADDRESS, pid=1, discriminator=2, zone=new_york)
    # Summer time begins within this month, so its days are an hour short.
    noon_ms = _ms(2024, 3, 15, 12, zone=new_york)
    assert decode_unique_id(west.next_id(noon_ms)).month_ms == (14 * 24 + 12 - 1) * 3600 * 1000


@pytest.mark.parametrize("text", ["", "0" * 34, "x" * 32, "0" * 31 + " "])
def test_what_is_no_unique_id_is_refused(text: str) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_unique_id(text)


def test_an_address_has_4_or_16_bytes() -> None:
    with pytest.raises(LocalProtocolError):
        UniqueIds(address=b"10.0.0.7", pid=1, discriminator=2)
