"""Binary headers."""

import struct

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.protocol.codes import HeaderEncoding, Language, RequestCode
from tanist.protocol.command import Command
from tanist.protocol.header_binary import decode_binary_header, encode_binary_header

NO_BODY = memoryview(b"")
HEADER = bytes.fromhex("0069 00 01df 00000009 00000000 00000001 72 0000000c 0005 746f706963 00000001 54")
FIXED = bytes.fromhex("0069 00 01df 00000009 00000000")


def command(**changes: object) -> Command:
    fields: dict[str, object] = {
        "code": 105,
        "opaque": 9,
        "version": 479,
        "language": Language.JAVA,
        **changes,
    }
    return Command(encoding=HeaderEncoding.BINARY, **fields)  # pyright: ignore[reportArgumentType]


def field(key: bytes, value: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key + struct.pack(">i", len(value)) + value


def header(ext: bytes) -> bytes:
    return FIXED + bytes(4) + struct.pack(">i", len(ext)) + ext


def test_a_header_is_written_byte_for_byte_as_rocketmq_writes_it() -> None:
    assert encode_binary_header(command(remark="r", ext_fields={"topic": "T"})) == HEADER


def test_a_header_reads_back() -> None:
    assert decode_binary_header(HEADER, NO_BODY) == command(remark="r", ext_fields={"topic": "T"})


def test_text_of_no_bytes_is_null() -> None:
    ext = field(b"", b"x") + field(b"empty", b"") + field(b"k", b"v")
    decoded = decode_binary_header(header(ext), NO_BODY)
    assert decoded.remark is None
    assert decoded.ext == {"k": "v"}


def test_of_a_field_that_comes_twice_the_last_counts() -> None:
    assert decode_binary_header(header(field(b"k", b"1") + field(b"k", b"2")), NO_BODY).ext == {"k": "2"}


def test_an_unknown_language_is_another_one() -> None:
    raw = bytearray(HEADER)
    raw[2] = 200
    assert decode_binary_header(bytes(raw), NO_BODY).language is Language.OTHER


def test_a_pop_request_arrives_as_another_code() -> None:
    raw = struct.pack(">h", 200050 - 3 * 65536) + HEADER[2:]
    assert decode_binary_header(raw, NO_BODY).code == 3442


@pytest.mark.parametrize("size_bytes", range(len(HEADER)))
def test_a_header_that_is_cut_short_is_refused(size_bytes: int) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_binary_header(HEADER[:size_bytes], NO_BODY)


@pytest.mark.parametrize(
    "raw",
    [
        HEADER + b"x",
        FIXED + b"\xff\xff\xff\xff" + bytes(4),
        FIXED + b"\x7f\xff\xff\xff" + bytes(4),
        FIXED + bytes(4) + b"\xff\xff\xff\xff",
        FIXED + bytes(4) + b"\x7f\xff\xff\xff",
        header(struct.pack(">h", -1) + b"k"),
        header(struct.pack(">h", 1) + b"k" + struct.pack(">i", -1)),
        header(struct.pack(">h", 1) + b"k" + struct.pack(">i", 2**31 - 1)),
        header(field(b"k", b"v")[:-1]),
        FIXED + bytes(4) + struct.pack(">i", 5) + field(b"k", b"vv"),
        header(field(b"\xff", b"v")),
        header(field(b"k", b"\xff")),
    ],
    ids=[
        "bytes after the fields",
        "negative remark",
        "huge remark",
        "negative fields",
        "huge fields",
        "negative key",
        "negative value",
        "huge value",
        "value cut short",
        "field over the end of the fields",
        "key not UTF-8",
        "value not UTF-8",
    ],
)
def test_lengths_that_lie_are_refused(raw: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_binary_header(raw, NO_BODY)


def test_too_many_ext_fields_are_refused() -> None:
    ext = b"".join(field(b"f%d" % number, b"v") for number in range(10_000))
    with pytest.raises(RemoteProtocolError, match="256 ext fields"):
        decode_binary_header(header(ext), NO_BODY)


@pytest.mark.parametrize(
    "changes",
    [
        {"code": RequestCode.POP_MESSAGE},
        {"version": 40_000},
        {"opaque": 2**31},
        {"ext_fields": {"k" * 40_000: "v"}},
        {"remark": "\ud800"},
    ],
    ids=["code", "version", "opaque", "key", "text"],
)
def test_what_does_not_fit_is_not_written(changes: dict[str, object]) -> None:
    with pytest.raises(LocalProtocolError):
        encode_binary_header(command(**changes))
