"""Response codes as errors: a class each, which says whether to ask again and whom.

``retriable``: the same request may succeed later or elsewhere, and nothing was done. ``refresh_route``:
the route that led to this broker may be old.
"""

from tanist.errors import ResponseError
from tanist.model.host import is_host_and_port
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command

_MASTER_ADDRESS = "masterAddress"
"""A field of ours, by which a refusal says where to go. Other clients pass over it."""
_READER_ADDRESS = "readerAddress"
"""A field of ours, by which a refusal to be read says who is read instead."""
_TERM = "readTerm"
_UNKNOWN = "unknown"


class BrokerFailed(ResponseError):
    """The broker ran into something it did not expect. Another one may do better."""

    retriable = True


class BrokerBusy(ResponseError):
    """The broker takes no more work now."""

    retriable = True


class RequestNotSupported(ResponseError):
    """The peer does not know this request."""


class MessageRefused(ResponseError):
    """The broker does not take this message: it is too large, or not one it could store."""


class NotWritableNow(ResponseError):
    """The broker's store takes no writes: its disk is full, it stops, or it is a slave."""

    retriable = True
    refresh_route = True


class NotMaster(NotWritableNow):
    """The broker is not the master of its group, and did nothing. It may know where that is."""

    def __init__(self, code: int, remark: str, *, master_address: str | None) -> None:
        super().__init__(code, remark, ext={_MASTER_ADDRESS: master_address or _UNKNOWN})
        self.master_address = master_address


class VersionNotSupported(ResponseError):
    """The peer does not serve clients of this version."""


class NoPermission(ResponseError):
    """The broker, the topic, the group or the account does not allow it; another replica may."""

    retriable = True
    refresh_route = True


class NotReadable(NoPermission):
    """The broker is not the one of its group that is read. It may know which one is."""

    def __init__(self, remark: str, *, reader_address: str | None, term: int = 0) -> None:
        super().__init__(
            ResponseCode.NO_PERMISSION,
            remark,
            ext={_READER_ADDRESS: reader_address or _UNKNOWN, _TERM: str(term)},
        )
        self.reader_address = reader_address
        self.term = term


class TopicNotFound(ResponseError):
    """No such topic, on this broker or, from a name server, on any."""

    retriable = True
    refresh_route = True


class NotFound(ResponseError):
    """What was asked for is not there: no offset, no value, no message."""


class BadSubscription(ResponseError):
    """The broker can not read the expression of a subscription."""


class SubscriptionUnknown(ResponseError):
    """The broker has not heard of the subscription. The next heartbeat tells it."""

    retriable = True


class SubscriptionOutdated(ResponseError):
    """The broker knows an older subscription. The next heartbeat tells it the new one."""

    retriable = True


class GroupNotFound(ResponseError):
    """No such consumer group, and the broker does not make one."""


class FilterUnknown(ResponseError):
    """The broker has not got the filter of a subscription. The next heartbeat brings it."""

    retriable = True


class FilterOutdated(ResponseError):
    """The broker has an older filter of the subscription."""

    retriable = True


class InvalidParameter(ResponseError):
    """A field of the request has a value that is not allowed."""


class NotInThisUnit(ResponseError):
    """The broker belongs to another unit."""

    retriable = True


class NoBuyerId(ResponseError):
    """The broker wants a buyer's id, which only RocketMQ's hosted relatives ask for."""

    retriable = True


class ConsumerOffline(ResponseError):
    """No member of the group is connected."""


class ConsumeTimedOut(ResponseError):
    """The client that was asked through the broker did not answer in time."""


class FlowControlled(ResponseError):
    """The broker wants fewer requests for a moment."""

    retriable = True


class IllegalOperation(ResponseError):
    """It is too late for this, such as ending a transaction that was given up."""


class BrokerLeaving(ResponseError):
    """The broker is about to stop: ask again on a new connection, or ask another."""

    retriable = True
    refresh_route = True


_CLASSES: dict[int, type[ResponseError]] = {
    ResponseCode.SYSTEM_ERROR: BrokerFailed,
    ResponseCode.SYSTEM_BUSY: BrokerBusy,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: RequestNotSupported,
    ResponseCode.MESSAGE_ILLEGAL: MessageRefused,
    ResponseCode.SERVICE_NOT_AVAILABLE: NotWritableNow,
    ResponseCode.VERSION_NOT_SUPPORTED: VersionNotSupported,
    ResponseCode.NO_PERMISSION: NoPermission,
    ResponseCode.TOPIC_NOT_EXIST: TopicNotFound,
    ResponseCode.QUERY_NOT_FOUND: NotFound,
    ResponseCode.SUBSCRIPTION_PARSE_FAILED: BadSubscription,
    ResponseCode.SUBSCRIPTION_NOT_EXIST: SubscriptionUnknown,
    ResponseCode.SUBSCRIPTION_NOT_LATEST: SubscriptionOutdated,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: GroupNotFound,
    ResponseCode.FILTER_DATA_NOT_EXIST: FilterUnknown,
    ResponseCode.FILTER_DATA_NOT_LATEST: FilterOutdated,
    ResponseCode.INVALID_PARAMETER: InvalidParameter,
    ResponseCode.NOT_IN_CURRENT_UNIT: NotInThisUnit,
    ResponseCode.NO_BUYER_ID: NoBuyerId,
    ResponseCode.CONSUMER_NOT_ONLINE: ConsumerOffline,
    ResponseCode.CONSUME_MSG_TIMEOUT: ConsumeTimedOut,
    ResponseCode.FLOW_CONTROL: FlowControlled,
    ResponseCode.ILLEGAL_OPERATION: IllegalOperation,
    ResponseCode.GO_AWAY: BrokerLeaving,
}


def error_of(answer: Command) -> ResponseError:
    """The error that an answer stands for. A code without a class of its own is a plain ResponseError."""
    remark = answer.remark or "the peer gives no reason"
    if (address := answer.ext.get(_MASTER_ADDRESS)) is not None:
        is_known = is_host_and_port(address)
        return NotMaster(answer.code, remark, master_address=address if is_known else None)
    if (address := answer.ext.get(_READER_ADDRESS)) is not None:
        term = answer.ext.get(_TERM, "")
        return NotReadable(
            remark,
            reader_address=address if is_host_and_port(address) else None,
            term=int(term) if term.isdecimal() else 0,
        )
    return _CLASSES.get(answer.code, ResponseError)(answer.code, remark)
