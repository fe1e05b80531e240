"""Settings as text."""

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.protocol.bodies.config_text import MAX_CONFIG_BYTES, decode_config, encode_config


def test_a_setting_takes_a_line() -> None:
    assert encode_config({"brokerName": "a", "empty": ""}) == b"brokerName=a\nempty=\n"


def test_settings_are_read_without_the_blanks_around_them() -> None:
    text = b"# comment\r\n!also\r\n\r\n brokerName = b=c \r\nempty=\r\nbrokerName=last\n"
    assert decode_config(text) == {"brokerName": "last", "empty": ""}


@pytest.mark.parametrize("text", [b"no equals sign", b"=value", b"k=\xff", b"k=" + bytes(MAX_CONFIG_BYTES)])
def test_what_are_no_settings_is_refused(text: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_config(text)


@pytest.mark.parametrize(("key", "value"), [("a", "b\nc=d"), ("a\r", "b"), ("a=b", "c")])
def test_a_setting_that_would_read_as_another_is_not_written(key: str, value: str) -> None:
    with pytest.raises(LocalProtocolError):
        encode_config({key: value})
