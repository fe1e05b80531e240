import pytest

from tanist.model.host import pack_host, unpack_host


def test_an_ipv4_host_takes_eight_bytes_with_the_port_in_four() -> None:
    assert pack_host("1.2.3.4", 10911).hex() == "01020304" + "00002a9f"


def test_an_ipv6_host_takes_twenty_bytes() -> None:
    assert pack_host("fe80::1", 1).hex() == "fe80" + "00" * 13 + "01" + "00000001"


@pytest.mark.parametrize(("address", "port"), [("127.0.0.1", 0), ("255.255.255.255", 65535), ("::1", 9876)])
def test_a_host_comes_back_as_it_was_packed(address: str, port: int) -> None:
    assert unpack_host(memoryview(pack_host(address, port))) == (address, port)


@pytest.mark.parametrize("size", [0, 7, 9, 19, 21])
def test_other_lengths_are_no_host(size: int) -> None:
    with pytest.raises(ValueError, match=f"not {size}"):
        unpack_host(bytes(size))


def test_a_name_is_not_resolved() -> None:
    with pytest.raises(ValueError, match="localhost"):
        pack_host("localhost", 1)
