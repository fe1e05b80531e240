"""The JSON header of a frame: what most peers send.

    {"code":105,"extFields":{"topic":"T"},"flag":0,"language":"JAVA","opaque":9,
     "serializeTypeCurrentRPC":"JSON","version":479}

Reading takes what RocketMQ takes: any key may be missing or null, unknown keys are ignored, the
language may be a number. Only the envelope is read here; a Command reads its ext fields on demand.
"""

from typing import Generic, TypeVar

import msgspec

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.integers import INT32_MAX, INT32_MIN, Int32
from tanist.protocol.codes import HeaderEncoding, Language, RequestCode
from tanist.protocol.command import Command
from tanist.protocol.compiled import native
from tanist.protocol.headers.base import MAX_EXT_FIELDS, Header
from tanist.protocol.headers.pull import PullMessageRequest
from tanist.protocol.headers.send import SendMessageRequestV2
from tanist.protocol.java_json import BAD_JSON

_LANGUAGE_NAMES = tuple(language.name for language in Language)
# A peer may name its language or number it. One we never heard of must not end as None, which is
# what breaks RocketMQ's own handlers.
_LANGUAGES: dict[str | int | None, Language] = {
    **{language.name: language for language in Language},
    **{int(language): language for language in Language},
    None: Language.JAVA,
}
_UNHEARD_OF = Language.OTHER
_JSON = HeaderEncoding.JSON

_ENVELOPE_FIELDS = 16
"""More keys than the envelope has around the ext fields."""
_MAX_QUOTES = 4 * (MAX_EXT_FIELDS + _ENVELOPE_FIELDS)
_COUNT_FROM_BYTES = len('"k":"",') * MAX_EXT_FIELDS
"""A header shorter than this has no room for so many fields that it matters."""

_SEND_V2 = int(RequestCode.SEND_MESSAGE_V2)
SEND_V2_PREFIX = b'{"code":%d,' % _SEND_V2
"""What the header of the hottest request begins with, as Java writes it."""
_PULL_PREFIX = b'{"code":%d,' % RequestCode.PULL_MESSAGE

_H = TypeVar("_H", bound=Header)


class _Envelope(msgspec.Struct, gc=False):
    code: Int32 | None = 0
    flag: Int32 | None = 0
    language: str | int | None = None
    opaque: Int32 | None = 0
    remark: str | None = None
    version: Int32 | None = 0


class _Whole(msgspec.Struct, Generic[_H], gc=False, rename="camel"):
    """A whole header in one piece, the typed header included."""

    code: Int32
    ext_fields: _H
    opaque: Int32
    flag: Int32 = 0
    language: str = "JAVA"
    remark: str | None = None
    version: Int32 = 0


class _Written(msgspec.Struct, gc=False, rename="camel"):
    """A header as we write it: Java's order of keys, and UNSET in place of null."""

    code: int
    ext_fields: dict[str, str] | msgspec.UnsetType
    flag: int
    language: str
    opaque: int
    remark: str | msgspec.UnsetType
    serialize_type: str = msgspec.field(name="serializeTypeCurrentRPC")
    version: int


_ENVELOPE_DECODER = msgspec.json.Decoder(_Envelope, strict=False)
_SEND_DECODER = msgspec.json.Decoder(_Whole[SendMessageRequestV2], strict=False)
_PULL_DECODER = msgspec.json.Decoder(_Whole[PullMessageRequest], strict=False)
_ENCODER = msgspec.json.Encoder()


def decode_json_header(header: bytes, body: memoryview) -> Command:
    """The Command of one frame with a JSON header."""
    if len(header) > _COUNT_FROM_BYTES:
        _check_field_count(header)
    elif (command := _decode_tidy(header, body)) is not None:
        return command
    try:
        envelope = _ENVELOPE_DECODER.decode(header)
    except BAD_JSON as error:
        raise RemoteProtocolError(f"a JSON header cannot be read: {error}") from error
    return Command(
        envelope.code or 0,
        envelope.opaque or 0,
        envelope.flag or 0,
        _LANGUAGES.get(envelope.language, _UNHEARD_OF),
        envelope.version or 0,
        envelope.remark,
        body,
        _JSON,
        header,
    )


def encode_json_header(command: Command) -> bytes:
    """The header of ``command``, without the frame around it."""
    if not (INT32_MIN <= command.code <= INT32_MAX and INT32_MIN <= command.opaque <= INT32_MAX):
        raise LocalProtocolError(f"code {command.code} and opaque {command.opaque} must fit 32 bits")
    written = _Written(
        command.code,
        command.ext or msgspec.UNSET,
        command.flag,
        _LANGUAGE_NAMES[command.language],
        command.opaque,
        msgspec.UNSET if command.remark is None else command.remark,
        "JSON",
        command.version,
    )
    try:
        return _ENCODER.encode(written)
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"a header holds text that UTF-8 cannot carry: {error}") from error


def _decode_tidy(header: bytes, body: memoryview) -> Command | None:
    """The fast path of the hottest requests: envelope and typed header in one pass, no dict.

    None for others, and where the header is not as tidy as Java writes it; the careful path then has the
    last word. Of a send C looks at the envelope only, because most need no typed header: see quick_send.py.
    """
    if header.startswith(_PULL_PREFIX):
        return _decode_whole(_PULL_DECODER, header, body)
    if not header.startswith(SEND_V2_PREFIX):
        return None
    if native is not None and (found := native.send_envelope(header)) is not None:
        opaque, flag, language, version = found
        language = _LANGUAGES.get(language, _UNHEARD_OF)
        return Command(_SEND_V2, opaque, flag, language, version, None, body, _JSON, header)
    return _decode_whole(_SEND_DECODER, header, body)


def _decode_whole(
    decoder: msgspec.json.Decoder[_Whole[_H]], header: bytes, body: memoryview
) -> Command | None:
    try:
        whole = decoder.decode(header)
    except BAD_JSON:
        return None
    return Command(
        whole.code,
        whole.opaque,
        whole.flag,
        _LANGUAGES.get(whole.language, _UNHEARD_OF),
        whole.version,
        whole.remark,
        body,
        _JSON,
        header,
        None,
        whole.ext_fields,
    )


def _check_field_count(header: bytes) -> None:
    """Refuse a header with too many fields before any of them takes memory.

    A field has two or four quotes that no backslash precedes, so counting those bounds the number of
    fields, whatever the strings hold. The exact limit is checked when the fields are read.
    """
    if header.count(b'"') - header.count(b'\\"') > _MAX_QUOTES:
        raise RemoteProtocolError(f"a JSON header has more than {MAX_EXT_FIELDS} ext fields")
