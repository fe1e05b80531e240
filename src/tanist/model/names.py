"""Which names topics and groups may have. Pure.

A topic's name becomes a folder's and travels as one word, so there is no room for anything unusual.
"""

import re

from tanist.model.groups import MAX_GROUP_CHARS
from tanist.model.topics import DLQ_PREFIX, MAX_RETRY_TOPIC_CHARS, MAX_TOPIC_CHARS, RETRY_PREFIX

_ALLOWED = "^[%|a-zA-Z0-9_-]+$"
_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")
_SHOWN_CHARS = 300


def topic_fault(topic: str) -> str | None:
    """What is wrong with the name of a topic; None if nothing is."""
    is_of_group = topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
    return _fault("topic", topic, MAX_RETRY_TOPIC_CHARS if is_of_group else MAX_TOPIC_CHARS)


def group_fault(group: str) -> str | None:
    """What is wrong with the name of a group; None if nothing is. Its retry topic must have one, too."""
    return _fault("group", group, MAX_GROUP_CHARS)


def shown(name: str) -> str:
    """What is told and written of a name or another text that a peer chose: no line gets long by it."""
    return name[:_SHOWN_CHARS]


def _fault(what: str, name: str, max_chars: int) -> str | None:
    if not name.strip():
        return f"the {what} has no name"
    if not _NAME.fullmatch(name):
        return f"{what} {shown(name)!r} has characters that are not allowed; use {_ALLOWED}"
    if len(name) > max_chars:
        return f"{what} {shown(name)} has {len(name)} characters; at most {max_chars} are allowed"
    return None
