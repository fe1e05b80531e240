"""The ``.properties`` format. That Java reads it alike is shown in tests/interop."""

from pathlib import Path

import pytest

from tanist.config import load_properties, parse_properties
from tanist.config.properties import MAX_FILE_BYTES, encode_property
from tanist.errors import ConfigError

SAMPLE = r"""
# The cluster this broker belongs to.
brokerClusterName = DefaultCluster
brokerName=broker-a
brokerId=0
! An exclamation mark begins a comment, too.
deleteWhen : 04
fileReservedTime 48
   brokerRole=ASYNC_MASTER
flushDiskType=ASYNC_FLUSH
messageDelayLevel=1s 5s \
                  10s
storePathRootDir=C:\\store\u00e9
fileReservedTime=72
"""


def test_a_config_file_of_rocketmq_is_read(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(SAMPLE, encoding="utf-8")
    assert load_properties(path) == {
        "brokerClusterName": "DefaultCluster",
        "brokerName": "broker-a",
        "brokerId": "0",
        "deleteWhen": "04",
        "fileReservedTime": "72",
        "brokerRole": "ASYNC_MASTER",
        "flushDiskType": "ASYNC_FLUSH",
        "messageDelayLevel": "1s 5s 10s",
        "storePathRootDir": "C:\\store\u00e9",
    }


def test_an_empty_file_holds_no_settings(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.touch()
    assert load_properties(path) == {}


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
def test_lines_end_as_on_any_system(line_end: str) -> None:
    assert parse(line_end.join(["a=1\\", "  2", "", "b=3", ""])) == {"a": "12", "b": "3"}


def test_two_escapes_can_be_one_character() -> None:
    assert parse(r"a=\ud83d\ude00") == {"a": "\U0001f600"}


def test_text_beyond_ascii_is_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_bytes("brokerName=\u4e2d".encode())
    assert load_properties(path) == {"brokerName": "\u4e2d"}


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_bytes(b"\xef\xbb\xbfbrokerName=a")
    assert load_properties(path) == {"brokerName": "a"}


def test_a_file_that_is_not_utf_8_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_bytes(b"a=1\nbrokerName=caf\xe9\n")
    with pytest.raises(ConfigError) as caught:
        load_properties(path)
    assert str(caught.value) == (
        f"{path}: line 2 holds the byte 0xe9, which is not UTF-8; use UTF-8, or an escape such as \\u00e9"
    )


@pytest.mark.parametrize("value", [r"\u12", r"\u00g1", r"\ud83d", r"\ude00\ud83d"])
def test_an_escape_that_is_no_character_is_refused_with_the_line(value: str) -> None:
    with pytest.raises(ConfigError, match=r"^a\.conf: line 2 holds .*; use "):
        parse(f"# first\nkey={value}")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"broker\.conf: No such file"):
        load_properties(tmp_path / "broker.conf")


def test_a_folder_is_no_config_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        load_properties(tmp_path)


def test_a_file_too_long_for_a_config_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000"
    path.write_bytes(bytes(MAX_FILE_BYTES + 1))
    with pytest.raises(ConfigError, match="too long"):
        load_properties(path)


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("a", "1", "a=1"),
        ("a", "", "a="),
        ("a", " b ", r"a=\ b "),
        ("a", "=#!:", "a==#!:"),
        ("a", "C:\\x\n\t\r\f", r"a=C:\\x\n\t\r\f"),
        ("a b=c:d", "", r"a\ b\=c\:d="),
        ("#a", "", r"\#a="),
    ],
)
def test_a_setting_is_written_so_that_it_is_read_back(key: str, value: str, line: str) -> None:
    assert encode_property(key, value) == line
    assert parse(line) == {key: value}


def parse(text: str) -> dict[str, str]:
    return parse_properties(text, source="a.conf")
