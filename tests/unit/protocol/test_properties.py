import pytest

from tanist.errors import LocalProtocolError
from tanist.protocol.properties import (
    decode_properties,
    encode_properties,
    find_property,
    replace_properties,
)


def test_the_string_of_the_golden_record_decodes() -> None:
    raw = b"KEYS\x01k1 k2\x02UNIQ_KEY\x01U1\x02TAGS\x01TagA\x02"
    assert decode_properties(raw) == {"KEYS": "k1 k2", "UNIQ_KEY": "U1", "TAGS": "TagA"}
    assert encode_properties(decode_properties(raw)) == raw


def test_the_last_separator_may_be_missing() -> None:
    assert decode_properties(b"a\x01b\x02c\x01d") == {"a": "b", "c": "d"}
    assert decode_properties(b"a\x01b\x02c\x01d\x02") == {"a": "b", "c": "d"}


@pytest.mark.parametrize(
    "segment", [b"", b"a", b"ab", b"abc", b"\x01", b"a\x01", b"\x01b", b"abc\x01", b"\x01bcd"]
)
def test_a_segment_without_name_or_value_is_skipped(segment: bytes) -> None:
    assert decode_properties(b"x\x01y\x02" + segment + b"\x02v\x01w\x02") == {"x": "y", "v": "w"}
    assert decode_properties(segment) == {}


def test_a_value_may_hold_the_separator_of_names() -> None:
    assert decode_properties(b"a\x01b\x01c\x02") == {"a": "b\x01c"}
    assert find_property(b"a\x01b\x01c\x02", "a") == b"b\x01c"
    assert find_property(b"a\x01b\x01c\x02", "b") is None


def test_of_two_equal_names_the_last_counts() -> None:
    raw = b"UNIQ_KEY\x01own\x02WAIT\x01true\x02UNIQ_KEY\x01batch"
    assert decode_properties(raw)["UNIQ_KEY"] == "batch"
    assert find_property(raw, b"UNIQ_KEY") == b"batch"


def test_an_empty_value_does_not_hide_an_earlier_one() -> None:
    raw = b"a\x01b\x02a\x01\x02a\x01"
    assert decode_properties(raw) == {"a": "b"}
    assert find_property(raw, "a") == b"b"


def test_a_name_is_not_found_inside_another_name_or_a_value() -> None:
    raw = b"MYTAGS\x01x\x02KEYS\x01TAGS\x02"
    assert find_property(raw, "TAGS") is None
    assert find_property(raw, "MYTAGS") == b"x"


@pytest.mark.parametrize("name", ["", "a\x01", "a\x01b\x02c", "\x02a"])
def test_a_name_that_no_segment_can_have_is_not_found(name: str) -> None:
    assert find_property(b"x\x01y\x02a\x01b\x02c\x01d\x02", name) is None


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert decode_properties(b"a\x01\xff\x02b\x01c\x02") == {"a": "\ufffd", "b": "c"}


def test_a_view_decodes_like_bytes() -> None:
    assert decode_properties(memoryview(b"a\x01b\x02")) == {"a": "b"}


def test_nothing_encodes_to_nothing() -> None:
    assert encode_properties({}) == b""


@pytest.mark.parametrize("text", ["", "a\x00", "a\x01", "\x02b", "\ud800"])
def test_what_no_reader_could_take_back_is_not_sent(text: str) -> None:
    with pytest.raises(LocalProtocolError):
        encode_properties({text: "value"})
    with pytest.raises(LocalProtocolError):
        encode_properties({"name": text})


def test_a_string_that_no_record_can_hold_is_not_sent() -> None:
    assert len(encode_properties({"a": "b" * 32764})) == 32767
    with pytest.raises(LocalProtocolError, match="32768"):
        encode_properties({"a": "b" * 32765})


@pytest.mark.parametrize(
    ("raw", "changes", "expected"),
    [
        (b"", {"a": "1"}, b"a\x011\x02"),
        (b"a\x011\x02b\x012", {"a": "3"}, b"b\x012\x02a\x013\x02"),
        (b"a\x011\x02b\x012\x02a\x013\x02", {"a": None}, b"b\x012\x02"),
        (
            b"ab\x011\x02\xff\x01\xfe\x02junk",
            {"a": "2", "zz": None},
            b"ab\x011\x02\xff\x01\xfe\x02junk\x02a\x012\x02",
        ),
    ],
)
def test_replacing_touches_nothing_but_the_names_it_is_given(
    raw: bytes, changes: dict[str, str | None], expected: bytes
) -> None:
    assert replace_properties(raw, changes) == expected
