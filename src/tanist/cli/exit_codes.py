"""How ``tanist`` ends, for scripts: one number a kind of failure, and for a person the way out."""

from enum import IntEnum

from tanist.admin.refused import NotThere, Unsafe
from tanist.client.errors import InvalidArgument
from tanist.errors import (
    ConnectFailed,
    ConnectionLost,
    MQError,
    RemotingError,
    RequestTimeout,
    ResponseError,
)
from tanist.protocol.codes import ResponseCode
from tanist.protocol.response_errors import (
    ConsumerOffline,
    GroupNotFound,
    NoPermission,
    NotFound,
    RequestNotSupported,
    TopicNotFound,
)


class Exit(IntEnum):
    """The exit codes. 3 to 6 are those of ``resetOffset``, and ``tanist.admin.resets.progress`` has them."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNCONFIRMED = 3
    MOVED = 4
    WAITING = 5
    REJECTED = 6
    NOT_FOUND = 7
    NO_ANSWER = 8
    NOT_ALLOWED = 9
    NOT_SUPPORTED = 10
    UNSAFE = 11
    PARTLY = 12


MEANINGS = {
    Exit.DONE: "Done. What was asked for was found.",
    Exit.FAILED: "Failed: refused by the other side, or something is wrong that has no number of its own.",
    Exit.USAGE: "The command line makes no sense; nothing was asked.",
    Exit.UNCONFIRMED: "Done, but not every client was seen to follow (resetOffset).",
    Exit.MOVED: "The group has moved since it was planned, or a later order moved it on (resetOffset).",
    Exit.WAITING: "Nothing is changed before another approves it (resetOffset).",
    Exit.REJECTED: "It was rejected (resetOffset).",
    Exit.NOT_FOUND: "There is no such topic, group, broker, client or message.",
    Exit.NO_ANSWER: "Nobody answered in time, or no connection could be made. The same again may succeed.",
    Exit.NOT_ALLOWED: "The access rules do not let you, or the broker may not do it now.",
    Exit.NOT_SUPPORTED: "Who was asked can not do that: another version, another product, or switched off.",
    Exit.UNSAFE: "Refused because it would be unsafe now; nothing was changed (drill).",
    Exit.PARTLY: "Some brokers did it and others did not; the output says which.",
}
"""What each of them tells a script."""

_NOT_FOUND_CODES = frozenset(
    {
        ResponseCode.BROKER_NOT_EXIST,
        ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST,
        ResponseCode.NO_MESSAGE,
        ResponseCode.USER_NOT_EXIST,
        ResponseCode.POLICY_NOT_EXIST,
    }
)
_BY_KIND: tuple[tuple[type[MQError], Exit], ...] = (
    (TopicNotFound, Exit.NOT_FOUND),
    (GroupNotFound, Exit.NOT_FOUND),
    (NotFound, Exit.NOT_FOUND),
    (ConsumerOffline, Exit.NOT_FOUND),
    (NotThere, Exit.NOT_FOUND),
    (Unsafe, Exit.UNSAFE),
    (NoPermission, Exit.NOT_ALLOWED),
    (RequestNotSupported, Exit.NOT_SUPPORTED),
    (RemotingError, Exit.NO_ANSWER),
    (InvalidArgument, Exit.USAGE),
)
_WAYS_OUT: tuple[tuple[type[MQError], str], ...] = (
    (ConnectFailed, "is it started, is the address right, and does it want TLS (--tls)?"),
    (ConnectionLost, "did it end, or does it speak TLS only (--tls)?"),
    (RequestTimeout, "it may have done it yet: look before you repeat it"),
    (TopicNotFound, "tanist admin topicList shows the topics"),
    (GroupNotFound, "tanist admin consumerProgress shows the groups"),
    (ConsumerOffline, "start a consumer of the group; tanist admin consumerProgress shows where it stands"),
    (NoPermission, "if it has access rules, sign with TANIST_ACCESS_KEY and TANIST_SECRET_KEY"),
    (RequestNotSupported, "docs/admin.md says which commands each kind of broker serves"),
)


def exit_code_of(error: MQError) -> Exit:
    """The number of an error that nobody handled."""
    if isinstance(error, ResponseError) and error.code in _NOT_FOUND_CODES:
        return Exit.NOT_FOUND
    return next((code for kind, code in _BY_KIND if isinstance(error, kind)), Exit.FAILED)


def in_one_line(error: MQError) -> str:
    """The error, and what to do about it where its own words do not say."""
    way_out = next((text for kind, text in _WAYS_OUT if isinstance(error, kind)), None)
    text = " ".join(str(error).split())
    return text if way_out is None else f"{text}; {way_out}"
