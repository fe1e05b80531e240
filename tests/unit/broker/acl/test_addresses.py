"""Address patterns of plain_acl.yml."""

import ipaddress

import pytest

from tanist.broker.acl.addresses import parse_patterns


def is_meant(pattern: str, address: str) -> bool:
    packed = ipaddress.ip_address(address).packed
    return any(one.matches(packed) for one in parse_patterns(pattern))


@pytest.mark.parametrize("pattern", ["*", "*.*.*.*", "*:*:*:*:*:*:*:*"])
def test_an_asterisk_is_everybody_of_either_kind(pattern: str) -> None:
    assert is_meant(pattern, "10.1.2.3")
    assert is_meant(pattern, "2001:db8::1")


@pytest.mark.parametrize("pattern", ["", "  "])
def test_a_blank_entry_is_nobody(pattern: str) -> None:
    assert parse_patterns(pattern) == ()


@pytest.mark.parametrize(
    ("pattern", "meant", "others"),
    [
        ("10.0.0.1", ["10.0.0.1"], ["10.0.0.10", "10.0.0.2", "::a00:1"]),
        ("10.0.0.1,10.0.0.3", ["10.0.0.1", "10.0.0.3"], ["10.0.0.2"]),
        ("10.0.0.{1, 3}", ["10.0.0.1", "10.0.0.3"], ["10.0.0.2", "10.0.0.13"]),
        ("10.0.0.*", ["10.0.0.0", "10.0.0.255"], ["10.0.1.0", "110.0.0.1"]),
        ("10.0.*.*", ["10.0.9.9"], ["10.1.0.1"]),
        ("10.0.1-9.*", ["10.0.1.0", "10.0.9.255"], ["10.0.0.1", "10.0.10.1"]),
        ("10.0.0.5-5", ["10.0.0.5"], ["10.0.0.4", "10.0.0.6"]),
        # RocketMQ lets all of 10.0.*.* in here.
        ("10.0.*.7", ["10.0.3.7"], ["10.0.3.8"]),
        ("2001:db8::1", ["2001:DB8:0:0::1"], ["2001:db8::2", "10.0.0.1"]),
        ("2001:db8::{1,f}", ["2001:db8::1", "2001:db8::f"], ["2001:db8::2"]),
        ("2001:db8::*", ["2001:db8::", "2001:db8::ffff"], ["2001:db8::1:0"]),
        ("2::ac5:78:1-200:*", ["2::ac5:78:1:0", "2::ac5:78:200:ffff"], ["2::ac5:78:201:0", "2::ac5:78:0:0"]),
        ("::1", ["::1"], ["::2"]),
        ("fe80::", ["fe80::"], ["fe80::1"]),
    ],
)
def test_a_pattern_means_these_and_no_others(pattern: str, meant: list[str], others: list[str]) -> None:
    assert [address for address in meant + others if is_meant(pattern, address)] == meant


@pytest.mark.parametrize(
    "pattern",
    [
        *("10.0.0", "10.0.0.256", "10.0.0.1.2", "10.0.0.-1", "10.0.0.9-1", "10.0.0.1-", "10.0.0.{}"),
        *("10.0.0.{1,", "10.0.0.1}", "host", "10.0.0.+1", "10.0.0.٣", "1,2", "10.0.0.1, "),
        *("2001:db8::1::2", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "2001:g::", "::1-0"),
    ],
)
def test_what_is_no_pattern_is_named(pattern: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        parse_patterns(pattern)


def test_a_peer_without_an_address_is_only_everybody() -> None:
    (everybody,), (one,) = parse_patterns("*"), parse_patterns("10.0.0.1")
    assert everybody.matches(b"")
    assert not one.matches(b"")
