"""Typed settings from text: every value is checked, and a wrong one stops the start.

A group of settings is a frozen struct whose fields carry RocketMQ's key names through ``rename="camel"``
(or ``msgspec.field(name=...)`` where RocketMQ is not consistent) and all have defaults, so that an empty
file starts a process. A field is a ``bool``, an ``int``, a ``str`` or an ``Enum`` of strings. The bounds of a
number are its ``msgspec.Meta(ge=..., le=...)``; all else is checked by ``__post_init__``, which raises
ConfigError.

RocketMQ passes over a number that it can not read and takes every word but ``true`` for false. Here both
are errors: a broker that runs with other settings than its file says is worse than one that does not start.
"""

import logging
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, TypeVar, overload

import msgspec
from msgspec import inspect

from tanist.errors import ConfigError

HIDDEN = "******"
"""What stands for a secret wherever settings are shown."""

Secret = Annotated[str, "secret"]
"""The type of a field whose value is never shown, neither by ``-p`` nor in an error."""

_A = TypeVar("_A", bound=msgspec.Struct)
_B = TypeVar("_B", bound=msgspec.Struct)
_C = TypeVar("_C", bound=msgspec.Struct)
_D = TypeVar("_D", bound=msgspec.Struct)
_E = TypeVar("_E", bound=msgspec.Struct)
_F = TypeVar("_F", bound=msgspec.Struct)

# What Java's trim takes away, and RocketMQ with it from every text.
_TRIMMED = "".join(map(chr, range(0x21)))
_BOOLEANS = {"true": True, "false": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


@overload
def parse_settings(
    raw: Mapping[str, str], a: type[_A], /, *, source: object
) -> tuple[_A, frozenset[str]]: ...
@overload
def parse_settings(
    raw: Mapping[str, str], a: type[_A], b: type[_B], /, *, source: object
) -> tuple[_A, _B, frozenset[str]]: ...
@overload
def parse_settings(
    raw: Mapping[str, str], a: type[_A], b: type[_B], c: type[_C], /, *, source: object
) -> tuple[_A, _B, _C, frozenset[str]]: ...
@overload
def parse_settings(
    raw: Mapping[str, str], a: type[_A], b: type[_B], c: type[_C], d: type[_D], /, *, source: object
) -> tuple[_A, _B, _C, _D, frozenset[str]]: ...
@overload
def parse_settings(
    raw: Mapping[str, str],
    a: type[_A],
    b: type[_B],
    c: type[_C],
    d: type[_D],
    e: type[_E],
    /,
    *,
    source: object,
) -> tuple[_A, _B, _C, _D, _E, frozenset[str]]: ...
@overload
def parse_settings(
    raw: Mapping[str, str],
    a: type[_A],
    b: type[_B],
    c: type[_C],
    d: type[_D],
    e: type[_E],
    f: type[_F],
    /,
    *,
    source: object,
) -> tuple[_A, _B, _C, _D, _E, _F, frozenset[str]]: ...
def parse_settings(raw: Mapping[str, str], *types: type[msgspec.Struct], source: object) -> tuple[Any, ...]:
    """Fill one struct of each type from the same file; last come the keys that none of them has.

    ``source`` is the file, which an error names.
    """
    known = {field.encode_name for kind in types for field in msgspec.structs.fields(kind)}
    return (*(_filled(raw, kind, source) for kind in types), frozenset(raw.keys() - known))


def warn_unsupported(logger: logging.Logger, keys: Collection[str], *, source: object) -> None:
    """Name all keys that have no effect, in one line."""
    if keys:
        logger.warning("settings without effect here file=%s keys=%s", source, ",".join(sorted(keys)))


def is_secret(field: msgspec.structs.FieldInfo) -> bool:
    """Tell whether the field was declared as a ``Secret``."""
    return bool(field.type == Secret)


def _filled(raw: Mapping[str, str], kind: type[_A], source: object) -> _A:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    try:
        values = {
            field.name: _value(raw[key].strip(_TRIMMED), field) for key, field in fields.items() if key in raw
        }
        return kind(**values)
    except ConfigError as error:
        hides_value = error.key in fields and is_secret(fields[error.key])
        shown = HIDDEN if hides_value else error.value
        # The first error may hold the secret, so it must not travel along as the cause.
        raise ConfigError(error.key, shown, error.allowed, source) from None


def _value(text: str, field: msgspec.structs.FieldInfo) -> object:
    """Read one value as its field's type and check it against the field's bounds."""
    if text == HIDDEN and is_secret(field):
        # Settings that were shown come back, edited or merged: everybody would know the new secret.
        raise ConfigError(field.encode_name, text, "the secret itself, for which this only stands")
    kind = inspect.type_info(field.type)
    try:
        return msgspec.convert(_plain_value(text, kind), field.type)
    except msgspec.ValidationError as error:
        raise ConfigError(field.encode_name, text, _allowed(kind)) from error


def _plain_value(text: str, kind: inspect.Type) -> object:
    """Make text a bool or a number if it is one; all else stays text, which the type then refuses."""
    match kind:
        case inspect.BoolType():
            return _BOOLEANS.get(text.lower(), text)
        case inspect.IntType() if _INTEGER.fullmatch(text):
            return int(text)
        case _:
            return text


def _allowed(kind: inspect.Type) -> str:
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=least, le=most):
            lower = "" if least is None else f" from {least}"
            return f"a whole number{lower}" + ("" if most is None else f" to {most}")
        case inspect.EnumType(cls=cls):
            return "one of " + ", ".join(str(member.value) for member in cls)
        case _:
            raise AssertionError(f"settings have no values of {kind}")
