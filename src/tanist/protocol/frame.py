"""Frames: how Commands lie in a stream of bytes.

    total(4) encoding(1) header_bytes(3) header body          total counts what follows it

FrameDecoder takes the stream in any pieces it comes in. Every length is checked before a byte is
kept for it, and nothing but RemoteProtocolError is raised at what a peer sent.
"""

import struct
from collections.abc import Iterator

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.offsets import QueueOffset
from tanist.protocol.codes import FLAG_RESPONSE, OUR_VERSION, HeaderEncoding
from tanist.protocol.command import Command
from tanist.protocol.header_binary import decode_binary_header, encode_binary_header
from tanist.protocol.header_json import SEND_V2_PREFIX, decode_json_header, encode_json_header
from tanist.protocol.headers.pull import PullMessageResponse
from tanist.protocol.headers.send import DEFAULT_REGION, SendMessageResponse

__all__ = [
    "MAX_BODY_BYTES",
    "MAX_FRAME_BYTES",
    "SEND_ANSWER_TEXTS",
    "Command",
    "FrameDecoder",
    "encode_command",
    "encode_head",
    "encode_pull_head",
    "encode_send_answer",
    "first_request",
    "whole_send",
    "with_code",
]

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""A whole frame, its length word included. Its first byte is then 0, never that of a TLS record."""

MAX_BODY_BYTES = MAX_FRAME_BYTES - (64 << 10)
"""What a frame has room for beside any header that we write."""

# total, word: the encoding in its first byte, header_bytes in the other three
_PREFIX = struct.Struct(">II")
_PREFIX_BYTES = _PREFIX.size
_TOTAL_BYTES = 4
_ENCODING_SHIFT = 24
_HEADER_BYTES_MASK = (1 << _ENCODING_SHIFT) - 1

# Looking a member up in its enum costs as much as packing a frame's prefix.
_JSON, _BINARY = HeaderEncoding.JSON, HeaderEncoding.BINARY

# code, msg_id, queue_id, queue_offset, unique_key, opaque
_SEND_ANSWER = (
    b'{"code":%%d,"extFields":{"MSG_REGION":"%b","TRACE_ON":"true","msgId":"%%b","queueId":"%%d",'
    b'"queueOffset":"%%d","transactionId":"%%b"},"flag":%d,"language":"PYTHON","opaque":%%d,'
    b'"serializeTypeCurrentRPC":"JSON","version":%d}'
) % (DEFAULT_REGION.encode(), FLAG_RESPONSE, OUR_VERSION)

SEND_ANSWER_TEXTS = tuple(_SEND_ANSWER.replace(b"%d", b"0", 1).replace(b"%d", b"%b").split(b"%b"))
"""What stands around msg_id, queue_id, queue_offset, unique_key and opaque in the answer to a good send."""

_GOOD_HEAD = b'{"code":0,'
_BINARY_CODE = struct.Struct(">h")

# code, suggested_broker_id, next_begin_offset, min_offset, max_offset, opaque, remark
_PULL_ANSWER = (
    b'{"code":%%d,"extFields":{"suggestWhichBrokerId":"%%d","nextBeginOffset":"%%d","minOffset":"%%d",'
    b'"maxOffset":"%%d"},"flag":%d,"language":"PYTHON","opaque":%%d,"remark":"%%b",'
    b'"serializeTypeCurrentRPC":"JSON","version":%d}'
) % (FLAG_RESPONSE, OUR_VERSION)


_PULL_HEAD_BYTES = 512
"""More than the head of a pull answer takes."""


class FrameDecoder:
    """Cuts one peer's stream into Commands."""

    __slots__ = ("_failure", "_max_frame_bytes", "partial")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self.partial = bytearray()
        """The beginning of one frame and never more, so that nothing is moved when the frame is done."""
        self._failure: str | None = None

    @property
    def lacking_bytes(self) -> int | None:
        """What there is yet to come of the partial frame; None if it is too short to tell."""
        if not self.partial:
            return 0
        if len(self.partial) < _PREFIX_BYTES:
            return None
        total, _ = _PREFIX.unpack_from(self.partial)
        return _TOTAL_BYTES + total - len(self.partial)

    def feed(self, data: bytes) -> Iterator[Command]:
        """Yield the Commands that ``data`` completes. Iterate to the end, or the rest of it is lost.

        Commands before a bad frame are yielded first, then RemoteProtocolError is raised. A stream
        that went bad stays bad: there is no telling where its next frame begins.
        """
        if self._failure is not None:
            raise RemoteProtocolError(self._failure)
        try:
            position = 0
            view = memoryview(data)
            if self.partial:
                position, command = self._top_up(view)
                if command is None:
                    return
                yield command
            while len(data) - position >= _PREFIX_BYTES:
                frame_bytes, word = self._measure(view, position)
                end = position + frame_bytes
                if end > len(data):
                    break
                header_end = position + _PREFIX_BYTES + (word & _HEADER_BYTES_MASK)
                header = data[position + _PREFIX_BYTES : header_end]
                yield _decode_frame(header, view[header_end:end], word >> _ENCODING_SHIFT)
                position = end
            if position < len(data):
                self.partial += view[position:]
        except RemoteProtocolError as error:
            self._failure = str(error)
            raise

    def _top_up(self, view: memoryview) -> tuple[int, Command | None]:
        """Give the partial frame what it lacks: how much that took, and the Command once it is whole."""
        partial = self.partial
        taken = max(0, _PREFIX_BYTES - len(partial))
        partial += view[:taken]
        if len(partial) < _PREFIX_BYTES:
            return taken, None
        frame_bytes, word = self._measure(partial, 0)
        lacking = frame_bytes - len(partial)
        partial += view[taken : taken + lacking]
        if len(partial) < frame_bytes:
            return len(view), None
        self.partial = bytearray()
        header_end = _PREFIX_BYTES + (word & _HEADER_BYTES_MASK)
        header, body = bytes(partial[_PREFIX_BYTES:header_end]), memoryview(partial)[header_end:]
        return taken + lacking, _decode_frame(header, body, word >> _ENCODING_SHIFT)

    def _measure(self, data: memoryview | bytearray, position: int) -> tuple[int, int]:
        """The size of the frame that begins here and its second word, once both lengths are plausible."""
        total, word = _PREFIX.unpack_from(data, position)
        frame_bytes = _TOTAL_BYTES + total
        if frame_bytes > self._max_frame_bytes:
            raise RemoteProtocolError(
                f"a frame of {frame_bytes} bytes is over the limit of {self._max_frame_bytes}"
            )
        if _PREFIX_BYTES + (word & _HEADER_BYTES_MASK) > frame_bytes:
            raise RemoteProtocolError(
                f"a header of {word & _HEADER_BYTES_MASK} bytes does not fit a frame of {frame_bytes}"
            )
        return frame_bytes, word


def whole_send(data: bytes) -> tuple[bytes, memoryview] | None:
    """The JSON header and the body of a read that is one SEND_MESSAGE_V2 and nothing else; else None."""
    if not data.startswith(SEND_V2_PREFIX, _PREFIX_BYTES):
        return None
    # The word is the header's length: the encoding in its first byte is 0.
    total, word = _PREFIX.unpack_from(data)
    header_end = _PREFIX_BYTES + word
    if _TOTAL_BYTES + total != len(data) or header_end > len(data):
        return None
    return data[_PREFIX_BYTES:header_end], memoryview(data)[header_end:]


def first_request(data: bytes) -> Command | None:
    """The Command that a stream begins with, without its body; None if its header is not whole, or is none.

    For whoever passes a stream on, and has to know only what it is about.
    """
    if len(data) < _PREFIX_BYTES:
        return None
    _, word = _PREFIX.unpack_from(data)
    header = data[_PREFIX_BYTES : _PREFIX_BYTES + (word & _HEADER_BYTES_MASK)]
    if len(header) < word & _HEADER_BYTES_MASK:
        return None
    try:
        return _decode_frame(header, memoryview(b""), word >> _ENCODING_SHIFT)
    except RemoteProtocolError:
        return None


def encode_command(command: Command) -> bytes:
    """The whole frame of ``command``."""
    return b"".join((encode_head(command, len(command.body)), command.body))


def encode_head(command: Command, body_bytes: int) -> bytes:
    """All of a frame but its body, for a body of ``body_bytes`` that goes out by another way."""
    header = encode_binary_header(command) if command.encoding is _BINARY else encode_json_header(command)
    frame_bytes = _PREFIX_BYTES + len(header) + body_bytes
    if frame_bytes > MAX_FRAME_BYTES:
        raise LocalProtocolError(f"{command!r} makes a frame of {frame_bytes} bytes, over {MAX_FRAME_BYTES}")
    word = command.encoding << _ENCODING_SHIFT | len(header)
    return _PREFIX.pack(frame_bytes - _TOTAL_BYTES, word) + header


def encode_send_answer(
    request: Command, *, code: int, msg_id: str, queue_id: int, queue_offset: QueueOffset, unique_key: str
) -> bytes:
    """The whole frame that answers a send, from a template: the hottest answer there is.

    The same bytes as the long way, which is taken where the template does not do: for a binary
    header, and for text that JSON would have to escape.
    """
    id_text, key_text = msg_id.encode(), unique_key.encode()
    # The ids of a batch have commas between them.
    if request.encoding is _BINARY or not (id_text.replace(b",", b"").isalnum() and key_text.isalnum()):
        answer = SendMessageResponse(
            msg_id=msg_id, queue_id=queue_id, queue_offset=queue_offset, transaction_id=unique_key
        )
        return encode_command(request.reply(code, answer))
    header = _SEND_ANSWER % (code, id_text, queue_id, queue_offset, key_text, request.opaque)
    return _PREFIX.pack(_TOTAL_BYTES + len(header), len(header)) + header


def with_code(frame: bytes, code: int) -> bytes:
    """The frame of a good answer as it is with this code, and all else as it was.

    Whoever answers later keeps the frame, and not what it was made of.
    """
    total, word = _PREFIX.unpack_from(frame)
    if word >> _ENCODING_SHIFT == _BINARY:
        return b"".join(
            (frame[:_PREFIX_BYTES], _BINARY_CODE.pack(code), frame[_PREFIX_BYTES + _BINARY_CODE.size :])
        )
    assert frame.startswith(_GOOD_HEAD, _PREFIX_BYTES)
    head = b'{"code":%d,' % code
    longer = len(head) - len(_GOOD_HEAD)
    return b"".join(
        (_PREFIX.pack(total + longer, word + longer), head, frame[_PREFIX_BYTES + len(_GOOD_HEAD) :])
    )


def encode_pull_head(
    request: Command,
    *,
    code: int,
    outcome: str,
    suggested_broker_id: int,
    next_offset: int,
    min_offset: int,
    max_offset: int,
    body_bytes: int,
) -> bytes:
    """All of the frame that answers a pull but the messages, from a template too.

    ``outcome`` is a plain word. The same bytes as the long way, which a binary header takes, and what is too
    long for a frame.
    """
    if request.encoding is _BINARY or body_bytes > MAX_FRAME_BYTES - _PULL_HEAD_BYTES:
        answer = PullMessageResponse(
            suggested_broker_id=suggested_broker_id,
            next_begin_offset=QueueOffset(next_offset),
            min_offset=QueueOffset(min_offset),
            max_offset=QueueOffset(max_offset),
        )
        return encode_head(request.reply(code, answer, remark=outcome), body_bytes)
    header = _PULL_ANSWER % (
        code,
        suggested_broker_id,
        next_offset,
        min_offset,
        max_offset,
        request.opaque,
        outcome.encode(),
    )
    return _PREFIX.pack(_TOTAL_BYTES + len(header) + body_bytes, len(header)) + header


def _decode_frame(header: bytes, body: memoryview, encoding: int) -> Command:
    if encoding == _JSON:
        return decode_json_header(header, body)
    if encoding == _BINARY:
        return decode_binary_header(header, body)
    raise RemoteProtocolError(f"header encoding {encoding} is neither JSON (0) nor binary (1)")
