"""Which names topics and groups may have. Pure.

A topic's name becomes a folder's and travels as one word, so there is no room for anything unusual.
"""

import re
from collections.abc import Callable

from tanist.errors import ResponseError
from tanist.model.groups import MAX_GROUP_CHARS
from tanist.model.topics import DLQ_PREFIX, MAX_RETRY_TOPIC_CHARS, MAX_TOPIC_CHARS, RETRY_PREFIX
from tanist.protocol.codes import ResponseCode

_ALLOWED = "^[%|a-zA-Z0-9_-]+$"
_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")
_SHOWN_CHARS = 300


def check_topic_name(topic: str) -> None:
    """Refuse a name that no topic may have."""
    is_of_group = topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
    _check("topic", topic, MAX_RETRY_TOPIC_CHARS if is_of_group else MAX_TOPIC_CHARS)


def check_group_name(group: str) -> None:
    """Refuse a name that no group may have: its retry topic would not be one."""
    _check("group", group, MAX_GROUP_CHARS)


def is_allowed(check: Callable[[str], None], name: str) -> bool:
    """Whether one of the checks above takes a name."""
    try:
        check(name)
    except ResponseError:
        return False
    return True


def shown(name: str) -> str:
    """What is told and written of a name or another text that a client chose: no line gets long by it."""
    return name[:_SHOWN_CHARS]


def _check(what: str, name: str, max_chars: int) -> None:
    if not name.strip():
        raise ResponseError(ResponseCode.INVALID_PARAMETER, f"the {what} has no name")
    if not _NAME.fullmatch(name):
        raise ResponseError(
            ResponseCode.INVALID_PARAMETER,
            f"{what} {shown(name)!r} has characters that are not allowed; use {_ALLOWED}",
        )
    if len(name) > max_chars:
        raise ResponseError(
            ResponseCode.INVALID_PARAMETER,
            f"{what} {shown(name)} has {len(name)} characters; at most {max_chars} are allowed",
        )
