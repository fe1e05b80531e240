"""Typed headers: a request's or answer's ext fields as one frozen value.

On the wire every ext field is text. A header type says which fields there are, under which wire
names, of which type, and which must be present. Reading is lenient about what is extra and strict
about what is there: an unknown field is ignored, one that is missing or does not parse is named.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from tanist.errors import RemoteProtocolError
from tanist.model.integers import Int64
from tanist.protocol.java_json import BAD_JSON

MAX_EXT_FIELDS = 256
"""More ext fields than any request has. A peer that sends more is not speaking our protocol."""

_SHOWN_CHARS = 80

_FIELD_IN_ERROR = re.compile(r"`\$\.(\w+)`|missing required field `(\w+)`")


class Header(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """The base of every typed header: wire names are camelCase unless a field says otherwise."""


class NoFields(Header, frozen=True):
    """A request or answer without ext fields."""


H = TypeVar("H", bound=Header)
_F = TypeVar("_F")
_V = TypeVar("_V")
_ExtFields = Annotated[dict[str, _V], msgspec.Meta(max_length=MAX_EXT_FIELDS)]


class _Carrier(msgspec.Struct, Generic[_F]):
    """The part of a JSON header that holds the ext fields; everything else is skipped unread."""

    ext_fields: _F = msgspec.field(name="extFields")


class _CarefulCarrier(msgspec.Struct):
    """The same part as a peer less tidy than Java may write it."""

    ext_fields: _ExtFields[str | Int64 | float | bool | None] | None = msgspec.field(
        name="extFields", default=None
    )


_TIDY_EXT = msgspec.json.Decoder(_Carrier[_ExtFields[str]])
_CAREFUL_EXT = msgspec.json.Decoder(_CarefulCarrier)


def encode_header(header: Header) -> dict[str, str]:
    """The ext fields of ``header``. A field that is None is left out, as Java leaves out null."""
    names = zip(header.__struct_fields__, header.__struct_encode_fields__, strict=True)
    return {wire: _to_text(value) for name, wire in names if (value := getattr(header, name)) is not None}


def decode_header(ext: Mapping[str, str], header_type: type[H]) -> H:
    """Read ``ext`` as a ``header_type``. Raises RemoteProtocolError naming the field and its value."""
    try:
        return msgspec.convert(ext, header_type, strict=False)
    except msgspec.ValidationError as error:
        raise RemoteProtocolError(_explain(error, ext, header_type)) from error


def header_from_json(header_json: bytes, header_type: type[H]) -> H:
    """Read a typed header straight from a JSON header, without a dict in between.

    Half the cost of ``decode_header``. What does not fit is read again with care, because RocketMQ's
    peers may write a number where text belongs or null where a field is absent.
    """
    try:
        return _decoder(header_type).decode(header_json).ext_fields
    except BAD_JSON:
        return decode_header(ext_from_json(header_json), header_type)


def ext_from_json(header_json: bytes) -> dict[str, str]:
    """All ext fields of a JSON header. Numbers and booleans become text, nulls are left out."""
    try:
        return _TIDY_EXT.decode(header_json).ext_fields
    except BAD_JSON:
        pass
    try:
        fields = _CAREFUL_EXT.decode(header_json).ext_fields or {}
    except BAD_JSON as error:
        raise RemoteProtocolError(f"the ext fields of a JSON header cannot be read: {error}") from error
    return {name: _to_text(value) for name, value in fields.items() if value is not None}


@cache
def _decoder(header_type: type[Header]) -> msgspec.json.Decoder[_Carrier[Any]]:
    return msgspec.json.Decoder(_Carrier[header_type], strict=False)


def _to_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _explain(error: msgspec.ValidationError, ext: Mapping[str, str], header_type: type[Header]) -> str:
    found = _FIELD_IN_ERROR.search(str(error))
    name = (found[1] or found[2]) if found else "?"
    if name not in ext:
        return f"{header_type.__name__}: mandatory field {name} is missing"
    return f"{header_type.__name__}: field {name}={ext[name][:_SHOWN_CHARS]!r} is not valid: {error}"
