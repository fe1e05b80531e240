"""Writing JSON bodies. They are read with ``java_json.decode_java_json``."""

from collections.abc import Iterable
from functools import cache
from typing import Any, cast

import msgspec
from msgspec import inspect

from tanist.errors import LocalProtocolError

_ENCODER = msgspec.json.Encoder(order="sorted")


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of every typed body: member names are camelCase unless a field says otherwise."""


def encode_body(value: object) -> bytes:
    """``value`` as standard JSON that Java reads: keys sorted and quoted, nulls left out.

    An object that serves as a key becomes a string with its JSON text.
    """
    try:
        return _ENCODER.encode(_plain(value))
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"a body holds text that UTF-8 cannot carry: {error}") from error


def join_tables(parts: Iterable[bytes]) -> msgspec.Raw:
    """Tables that ``encode_body`` made, as one, which can stand in a body to be encoded.

    So a large table can be encoded in pieces.
    """
    return msgspec.Raw(b"{" + b",".join(part[1:-1] for part in parts if part != b"{}") + b"}")


def _plain(value: Any) -> Any:
    """The same value in what JSON has. Sets and enums are left to the encoder."""
    if isinstance(value, msgspec.Struct):
        if _is_plain(type(value)):
            return value
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        members = ((wire, getattr(value, name)) for wire, name in names)
        return {wire: _plain(member) for wire, member in members if member is not None}
    if isinstance(value, dict):
        table = cast("dict[Any, Any]", value)
        return {_plain_key(key): _plain(member) for key, member in table.items() if member is not None}
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    return value


_PLAIN = (inspect.BoolType, inspect.IntType, inspect.FloatType, inspect.StrType, inspect.EnumType)


@cache
def _is_plain(kind: type[msgspec.Struct]) -> bool:
    """Whether the encoder may have every value of this type as it is: tables have thousands of the same."""
    config = kind.__struct_config__
    if config.array_like or config.omit_defaults or config.tag is not None:
        return False
    return all(_is_plain_type(inspect.type_info(field.type)) for field in msgspec.structs.fields(kind))


def _is_plain_type(kind: inspect.Type) -> bool:
    match kind:
        case inspect.Metadata(type=inner):
            return _is_plain_type(inner)
        case (
            inspect.DictType(key_type=inspect.StrType(), value_type=inner) | inspect.ListType(item_type=inner)
        ):
            return _is_plain_type(inner)
        case inspect.StructType(cls=cls):
            return _is_plain(cls)
        case _:
            return isinstance(kind, _PLAIN)


def _plain_key(key: Any) -> str:
    return encode_body(key).decode() if isinstance(key, msgspec.Struct) else str(key)
