"""Frames: any split of a stream gives the same Commands, and no bytes do more harm than an error."""

import json
import struct
import time
import tracemalloc
from contextlib import suppress
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.errors import RemoteProtocolError
from tanist.protocol.codes import HeaderEncoding, Language
from tanist.protocol.frame import Command, FrameDecoder, encode_command
from tanist.protocol.headers.registry import EXCHANGES

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
# Text of no bytes is null in a binary header.
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)

COMMANDS = st.builds(
    Command,
    code=INT16 | st.just(310),
    opaque=INT32,
    flag=INT32,
    language=st.sampled_from(Language),
    version=INT16,
    remark=st.none() | TEXT,
    body=st.binary(max_size=200),
    encoding=st.sampled_from(HeaderEncoding),
    ext_fields=st.dictionaries(TEXT, TEXT, max_size=6),
)


@st.composite
def hostile_frames(draw: st.DrawFn) -> bytes:
    """Bytes that look like frames: true lengths more often than not, around headers that are not."""
    frames = draw(st.lists(COMMANDS.map(encode_command) | st.binary(max_size=60), max_size=4))
    stream = bytearray(b"".join(frames))
    for position, byte in draw(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4)):
        if position < len(stream):
            stream[position] = byte
    return bytes(stream)


@st.composite
def framed_headers(draw: st.DrawFn) -> bytes:
    """One frame with honest lengths around anything at all."""
    header = draw(
        st.binary(max_size=100)
        | st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["code", "extFields", "flag", "opaque", "a", "language"]), inner
                )
            ),
        ).map(lambda value: json.dumps(value).encode())
    )
    encoding = draw(st.integers(0, 2))
    return struct.pack(">II", 4 + len(header), encoding << 24 | len(header)) + header


def read(decoder: FrameDecoder, data: bytes) -> list[Command]:
    commands: list[Command] = []
    with suppress(RemoteProtocolError):
        commands.extend(decoder.feed(data))
    return commands


@given(command=COMMANDS)
def test_a_command_comes_back_from_its_frame(command: Command) -> None:
    assert list(FrameDecoder().feed(encode_command(command))) == [command]


@settings(deadline=None)
@given(commands=st.lists(COMMANDS, max_size=5), cuts=st.lists(st.integers(0, 2000), max_size=30))
def test_any_split_of_a_stream_gives_the_same_commands(commands: list[Command], cuts: list[int]) -> None:
    stream = b"".join(map(encode_command, commands))
    ends = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    decoder = FrameDecoder()
    assert [
        command for start, end in pairwise(ends) for command in decoder.feed(stream[start:end])
    ] == commands


@settings(deadline=None)
@given(stream=hostile_frames() | framed_headers(), step=st.integers(1, 7))
def test_hostile_bytes_give_the_same_commands_however_they_are_split(stream: bytes, step: int) -> None:
    whole, pieces = FrameDecoder(), FrameDecoder()
    expected = read(whole, stream)
    found = [
        command
        for start in range(0, len(stream), step)
        for command in read(pieces, stream[start : start + step])
    ]
    assert [repr(command) for command in found] == [repr(command) for command in expected]


@settings(deadline=None)
@given(stream=hostile_frames() | framed_headers())
def test_whatever_a_command_holds_reading_its_fields_gives_them_or_an_error(stream: bytes) -> None:
    for command in read(FrameDecoder(), stream):
        with suppress(RemoteProtocolError):
            _ = command.ext
        for exchange in EXCHANGES.values():
            with suppress(RemoteProtocolError):
                command.header(exchange.request)


@given(total=st.integers(0, 2**32 - 1), word=st.integers(0, 2**32 - 1))
def test_no_announced_length_makes_us_take_memory(total: int, word: int) -> None:
    tracemalloc.start()
    try:
        read(FrameDecoder(), struct.pack(">II", total, word))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 64 * 1024


def test_a_stream_fed_byte_by_byte_takes_linear_time() -> None:
    def seconds(body_bytes: int) -> float:
        frame = encode_command(Command.request(310, body=bytes(body_bytes)))
        decoder = FrameDecoder()
        started = time.process_time()
        for position in range(len(frame)):
            for _ in decoder.feed(frame[position : position + 1]):
                return time.process_time() - started
        raise AssertionError

    short = min(seconds(20_000) for _ in range(3))
    assert min(seconds(200_000) for _ in range(3)) < 40 * short


def test_a_header_full_of_fields_is_refused_before_it_takes_memory() -> None:
    fields = ",".join(f'"f{number}":""' for number in range(1_000_000))
    header = f'{{"code":1,"extFields":{{{fields}}}}}'.encode()
    frame = struct.pack(">II", 4 + len(header), len(header)) + header
    tracemalloc.start()
    try:
        assert read(FrameDecoder(), frame) == []
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 2 * len(header)
