"""The JSON that Java peers write, which is not quite JSON.

Maps with integer keys come out as ``{0:5,1:7}``, and maps whose keys are objects as
``{{"brokerName":"b","queueId":0,"topic":"T"}:12}``. Java reads such keys quoted as well, an object
key as a string that holds its JSON text. So we read both and write the quoted form only.

A map with objects for keys is typed ``ObjectKeyed[MessageQueue, int]`` and is a plain dict to use.
"""

import re
from typing import Any, TypeVar, cast, get_args

import msgspec

from tanist.errors import RemoteProtocolError

MAX_JSON_BYTES = 16 * 1024 * 1024
"""No frame carries more."""
MAX_DIALECT_BYTES = 8 * 1024 * 1024
"""What is rewritten at most: half a second of work, for a table of some 600,000 offsets."""
MAX_NULLS_BYTES = 1024 * 1024
"""What is searched for nulls at most, since that means building every value in it."""
MAX_OBJECT_KEYS = 200_000
"""More queues than any table has; keys cost more to rewrite than other text."""
MAX_DEPTH = 64
MAX_KEY_NESTING = 2
"""How deep keys may lie in keys: each level doubles the backslashes of the one inside it."""

# Closed or not: if a string could fail to match at its end, it would be tried again from every quote.
_STRING = rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
_STRING_OR_INTEGER_KEY = re.compile(_STRING + rb"|(?<=[{,])\s*+(?P<key>-?\d++)(?=\s*+:)", re.DOTALL)
_STRING_OR_BRACE = re.compile(_STRING + rb"|(?P<open>\{)|(?P<key>\})(?=\s*+:)|(?P<close>\})", re.DOTALL)
_END_OF_OBJECT_KEY = re.compile(rb"\}\s*+:")
_REFERENCE = re.compile(rb'(?<!\\)"\$ref"\s*+:')

BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""All that msgspec raises at bytes it cannot decode."""

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class ObjectKeyed(dict[K, V]):
    """A map whose keys are objects. A type of its own so that a reader knows to read its keys."""


def decode_java_json(data: bytes | memoryview, json_type: type[T], *, is_trusted: bool = False) -> T:
    """Read ``data``, standard JSON or Java's, as a ``json_type``. Raises RemoteProtocolError only.

    Unknown members are ignored. A null stands for a member that is absent, as it does in Java.
    Trusted JSON, a broker's own file, may have any size.
    """
    if len(data) > MAX_JSON_BYTES and not is_trusted:
        raise RemoteProtocolError(f"{len(data)} bytes of JSON are over the limit of {MAX_JSON_BYTES}")
    if _REFERENCE.search(data):
        raise RemoteProtocolError('{"$ref":...} in place of a JSON value is not supported')
    try:
        return _decode(data, json_type)
    except BAD_JSON:
        text = standard_json(data, is_trusted=is_trusted)
    try:
        return _decode(text, json_type)
    except BAD_JSON as error:
        if (
            not isinstance(error, msgspec.ValidationError)
            or b"null" not in text
            or len(text) > MAX_NULLS_BYTES
        ):
            raise _unreadable(json_type, error) from error
    try:
        return _convert(_without_nulls(msgspec.json.decode(text)), json_type)
    except BAD_JSON as error:
        raise _unreadable(json_type, error) from error


def standard_json(data: bytes | memoryview, *, is_trusted: bool = False) -> bytes:
    """Rewrite Java's dialect as standard JSON, in linear time. Standard JSON comes out as it went in."""
    if len(data) > MAX_DIALECT_BYTES and not is_trusted:
        raise RemoteProtocolError(f"{len(data)} bytes of JSON are not standard and too many to rewrite")
    return _quote_object_keys(_STRING_OR_INTEGER_KEY.sub(_quote_integer_key, data), nesting=0)


def _quote_integer_key(found: re.Match[bytes]) -> bytes:
    key = found["key"]
    return found[0] if key is None else b'"%b"' % key


def _quote_object_keys(text: bytes, *, nesting: int) -> bytes:
    if not _END_OF_OBJECT_KEY.search(text):
        return text
    if nesting > MAX_KEY_NESTING:
        raise RemoteProtocolError(f"JSON with more than {MAX_KEY_NESTING} levels of keys inside keys")
    pieces: list[bytes] = []
    position = 0
    for start, end in _object_keys(text):
        key = _quote_object_keys(text[start:end], nesting=nesting + 1)
        pieces += (text[position:start], _quote(key))
        position = end
    pieces.append(text[position:])
    return b"".join(pieces)


def _object_keys(text: bytes) -> list[tuple[int, int]]:
    """Where the objects that serve as keys begin and end. Keys inside of keys are not listed."""
    opened: list[int] = []
    keys: list[tuple[int, int]] = []
    for token in _STRING_OR_BRACE.finditer(text):
        if token["open"]:
            opened.append(token.start())
            if len(opened) > MAX_DEPTH:
                raise RemoteProtocolError(f"JSON with objects more than {MAX_DEPTH} deep")
        elif token["key"] or token["close"]:
            if not opened:
                raise RemoteProtocolError(f"JSON with a stray brace at byte {token.start()}")
            start = opened.pop()
            if token["key"]:
                while keys and keys[-1][0] > start:
                    keys.pop()
                keys.append((start, token.end()))
                if len(keys) > MAX_OBJECT_KEYS:
                    raise RemoteProtocolError(f"JSON with more than {MAX_OBJECT_KEYS} objects for keys")
    return keys


def _quote(key: bytes) -> bytes:
    try:
        return msgspec.json.encode(key.decode())
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"JSON that is not UTF-8: {error}") from error


def _decode(data: bytes | memoryview, json_type: type[T]) -> T:
    return msgspec.json.decode(data, type=json_type, strict=False, dec_hook=_decode_object_keyed)


def _convert(value: object, json_type: type[T]) -> T:
    return msgspec.convert(value, json_type, strict=False, str_keys=True, dec_hook=_decode_object_keyed)


def _decode_object_keyed(json_type: type[Any], value: Any) -> ObjectKeyed[Any, Any]:
    key_type, value_type = get_args(json_type)
    if not isinstance(value, dict):
        raise msgspec.ValidationError(f"Expected `object`, got {type(value).__name__}")
    members = cast("dict[str, Any]", value)
    return ObjectKeyed(
        {_decode(key.encode(), key_type): _convert(member, value_type) for key, member in members.items()}
    )


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {name: _without_nulls(member) for name, member in members.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in cast("list[Any]", value)]
    return value


def _unreadable(json_type: type[Any], error: Exception) -> RemoteProtocolError:
    name = getattr(json_type, "__name__", str(json_type))
    return RemoteProtocolError(f"JSON that cannot be read as {name}: {error}")
