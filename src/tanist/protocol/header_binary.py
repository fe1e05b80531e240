"""The binary header of a frame, which RocketMQ calls by its own name.

    code language version opaque flag remark_bytes remark ext_bytes { key_bytes key value_bytes value }

Text of no bytes reads as null, so an empty value is lost on the way: its reader finds no such field.
"""

import struct

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.protocol.codes import HeaderEncoding, Language
from tanist.protocol.command import Command
from tanist.protocol.headers.base import MAX_EXT_FIELDS

# code, language, version, opaque, flag, remark_bytes
_FIXED = struct.Struct(">hBhiii")
_LENGTH = struct.Struct(">i")
_KEY_LENGTH = struct.Struct(">h")

_LANGUAGES = {int(language): language for language in Language}


def decode_binary_header(header: bytes, body: memoryview) -> Command:
    """The Command of one frame with a binary header."""
    try:
        code, language, version, opaque, flag, remark_bytes = _FIXED.unpack_from(header)
        remark, position = _take(header, _FIXED.size, remark_bytes)
        ext, position = _decode_ext(header, position)
    except (struct.error, UnicodeDecodeError) as error:
        raise RemoteProtocolError(
            f"a binary header of {len(header)} bytes cannot be read: {error}"
        ) from error
    if position != len(header):
        raise RemoteProtocolError(f"a binary header ends at byte {position} of {len(header)}")
    return Command(
        code,
        opaque,
        flag,
        _LANGUAGES.get(language, Language.OTHER),
        version,
        remark or None,
        body,
        HeaderEncoding.BINARY,
        None,
        ext,
    )


def encode_binary_header(command: Command) -> bytes:
    """The header of ``command``, without the frame around it. Codes over 32767 do not fit."""
    try:
        remark = (command.remark or "").encode()
        ext = b"".join(_encode_field(key, value) for key, value in command.ext.items())
        fixed = _FIXED.pack(
            command.code, command.language, command.version, command.opaque, command.flag, len(remark)
        )
        return b"".join((fixed, remark, _LENGTH.pack(len(ext)), ext))
    except (struct.error, UnicodeEncodeError) as error:
        raise LocalProtocolError(f"{command!r} does not fit a binary header: {error}") from error


def _decode_ext(header: bytes, position: int) -> tuple[dict[str, str], int]:
    (ext_bytes,) = _LENGTH.unpack_from(header, position)
    position += _LENGTH.size
    end = position + ext_bytes
    if not position <= end <= len(header):
        raise RemoteProtocolError(f"{ext_bytes} bytes of ext fields in a header of {len(header)}")
    ext: dict[str, str] = {}
    while position < end:
        (key_bytes,) = _KEY_LENGTH.unpack_from(header, position)
        key, position = _take(header, position + _KEY_LENGTH.size, key_bytes)
        (value_bytes,) = _LENGTH.unpack_from(header, position)
        value, position = _take(header, position + _LENGTH.size, value_bytes)
        if key and value:
            ext[key] = value
        if len(ext) > MAX_EXT_FIELDS:
            raise RemoteProtocolError(f"a binary header has more than {MAX_EXT_FIELDS} ext fields")
    if position != end:
        raise RemoteProtocolError(f"ext fields of {ext_bytes} bytes end {position - end} bytes late")
    return ext, position


def _encode_field(key: str, value: str) -> bytes:
    key_text, value_text = key.encode(), value.encode()
    return b"".join((_KEY_LENGTH.pack(len(key_text)), key_text, _LENGTH.pack(len(value_text)), value_text))


def _take(header: bytes, position: int, size_bytes: int) -> tuple[str, int]:
    end = position + size_bytes
    if not position <= end <= len(header):
        raise RemoteProtocolError(
            f"text of {size_bytes} bytes at byte {position} of a {len(header)}-byte header"
        )
    return header[position:end].decode(), end
