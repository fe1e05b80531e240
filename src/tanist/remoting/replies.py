"""What goes back for a request: the frame of its answer, or nothing.

Pure. A one-way request gets no frame, not even to say that it failed: its sender has no place to
put one. Every other request gets exactly one, here or later from whoever the handler left it to.
"""

from typing import TypeAlias, overload

from tanist.errors import LocalProtocolError, MQError, RemoteProtocolError, ResponseError
from tanist.protocol.codes import FLAG_ONE_WAY, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_command

Pieces: TypeAlias = list[bytes | memoryview]
"""One frame in pieces: what lies elsewhere, as messages do in the log, is not copied to be sent."""

_REMARK_CHARS = 1024


@overload
def frame_answer(request: Command, answer: Command | bytes | None) -> bytes | None: ...
@overload
def frame_answer(request: Command, answer: Command | bytes | Pieces | None) -> bytes | Pieces | None: ...
def frame_answer(request: Command, answer: Command | bytes | Pieces | None) -> bytes | Pieces | None:
    """The frame of what a handler returned. Raises LocalProtocolError if no frame can carry it."""
    if answer is None or request.flag & FLAG_ONE_WAY:
        return None
    return encode_command(answer) if isinstance(answer, Command) else answer


def frame_failure(request: Command, error: Exception) -> bytes | None:
    """The frame that tells of ``error``, which a handler raised.

    A handler chooses the code with ResponseError. Anything else is code 1 with the error's text as
    remark, as in RocketMQ; that includes a header or body which is not what the request code says,
    because RocketMQ runs into a null there and its clients know the answer.
    """
    if isinstance(error, ResponseError):
        code, remark, ext = error.code, error.remark, error.ext
    else:
        code, remark, ext = ResponseCode.SYSTEM_ERROR, _describe(error), None
    try:
        return frame_answer(request, request.reply(code, ext=ext, remark=_sendable(remark)))
    except LocalProtocolError:
        # A code that a binary header cannot carry: the remark still says what happened.
        return frame_answer(request, request.reply(ResponseCode.SYSTEM_ERROR, remark=_sendable(remark)))


def frame_unsupported(request: Command) -> bytes | None:
    """The frame that answers a request code nobody handles here."""
    remark = unsupported_remark(request)
    return frame_answer(request, request.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark))


def unsupported_remark(request: Command) -> str:
    """What is said of a request code nobody handles here, to its sender and in the log."""
    return f"request code {request.code} is not supported"


def is_expected(error: Exception) -> bool:
    """Whether a peer or the state of things explains the error; any other is a mistake of ours."""
    return isinstance(error, MQError) and not isinstance(error, LocalProtocolError)


def is_bad_input(error: Exception) -> bool:
    """Whether the error says that a request is not what its code says, in its header or its body."""
    return isinstance(error, RemoteProtocolError) or (
        isinstance(error, ResponseError) and isinstance(error.__cause__, RemoteProtocolError)
    )


def _describe(error: Exception) -> str:
    return str(error) if is_expected(error) else f"{type(error).__name__}: {error}"


def _sendable(remark: str) -> str:
    """Text of a peer's may be quoted in it: bounded, and without what UTF-8 cannot carry."""
    return remark[:_REMARK_CHARS].encode(errors="replace").decode()
