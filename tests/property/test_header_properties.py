"""Typed headers: what is encoded is decoded, for every header there is, by every way there is."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.errors import RemoteProtocolError
from tanist.protocol.codes import HeaderEncoding
from tanist.protocol.frame import Command, FrameDecoder, encode_command
from tanist.protocol.headers import Header, decode_header, encode_header
from tanist.protocol.headers.registry import EXCHANGES

HEADER_TYPES = sorted(
    {header_type for exchange in EXCHANGES.values() for header_type in (exchange.request, exchange.response)},
    key=lambda header_type: header_type.__name__,
)
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


def values(field_type: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    match field_type:
        case msgspec.inspect.UnionType(types=types):
            return st.one_of([values(member) for member in types])
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.StrType():
            return TEXT
        case msgspec.inspect.IntType(ge=least, le=greatest):
            assert least is not None, "every integer of a header has Java's bounds"
            return st.integers(least, greatest)
        case _:
            raise AssertionError(field_type)


def headers(header_type: type[Header]) -> st.SearchStrategy[Header]:
    described = msgspec.inspect.type_info(header_type)
    assert isinstance(described, msgspec.inspect.StructType)
    return st.fixed_dictionaries({field.name: values(field.type) for field in described.fields}).map(
        lambda fields: header_type(**fields)
    )


@pytest.mark.parametrize("header_type", HEADER_TYPES, ids=lambda header_type: header_type.__name__)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_header_comes_back_from_its_ext_fields(header_type: type[Header], data: st.DataObject) -> None:
    header = data.draw(headers(header_type))
    assert decode_header(encode_header(header), header_type) == header


@pytest.mark.parametrize("encoding", HeaderEncoding)
@pytest.mark.parametrize("header_type", HEADER_TYPES, ids=lambda header_type: header_type.__name__)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_header_comes_back_from_its_frame(
    header_type: type[Header], encoding: HeaderEncoding, data: st.DataObject
) -> None:
    header = data.draw(headers(header_type))
    frame = encode_command(Command.request(310, header, encoding=encoding))
    (command,) = FrameDecoder().feed(frame)
    assert command.header(header_type) == header
    (command,) = FrameDecoder().feed(frame)
    assert decode_header(command.ext, header_type) == header


@pytest.mark.parametrize("header_type", HEADER_TYPES, ids=lambda header_type: header_type.__name__)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_ext_fields_give_a_header_or_an_error(header_type: type[Header], data: st.DataObject) -> None:
    names = st.sampled_from([*header_type.__struct_encode_fields__, "other"])
    numbers = st.integers() | st.floats() | st.booleans()
    ext = data.draw(st.dictionaries(names, st.text(max_size=10) | numbers.map(str)))
    with suppress(RemoteProtocolError):
        assert isinstance(decode_header(ext, header_type), header_type)
