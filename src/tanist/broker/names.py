"""The checks of names as requests need them: a bad name is answered with the code clients know."""

from tanist.errors import ResponseError
from tanist.model.names import group_fault, topic_fault
from tanist.protocol.codes import ResponseCode


def check_topic_name(topic: str) -> None:
    """Refuse a name that no topic may have."""
    _refuse(topic_fault(topic))


def check_group_name(group: str) -> None:
    """Refuse a name that no group may have."""
    _refuse(group_fault(group))


def _refuse(fault: str | None) -> None:
    if fault is not None:
        raise ResponseError(ResponseCode.INVALID_PARAMETER, fault)
