"""Arguments of calls, checked where they are given: the error names the argument and nothing is sent."""

import inspect
from functools import lru_cache

from tanist.client.errors import InvalidArgument
from tanist.model.names import group_fault, topic_fault

_RESERVED_GROUPS = frozenset({"DEFAULT_PRODUCER", "DEFAULT_CONSUMER", "CLIENT_INNER_PRODUCER"})


@lru_cache(maxsize=1024)
def _topic_fault(topic: str) -> str | None:
    return topic_fault(topic)


def check_topic(topic: object) -> str:
    """The topic, if it can be one's name."""
    if not isinstance(topic, str):
        raise InvalidArgument("topic", topic, "give a str")
    if (fault := _topic_fault(topic)) is not None:
        raise InvalidArgument("topic", topic, fault)
    return topic


def check_group(group: object) -> str:
    """The group, if it can be one's name. Names that RocketMQ's clients use themselves are refused."""
    if not isinstance(group, str):
        raise InvalidArgument("group", group, "give a str")
    if (fault := group_fault(group)) is not None:
        raise InvalidArgument("group", group, fault)
    if group in _RESERVED_GROUPS:
        raise InvalidArgument("group", group, "this name is reserved; give the group a name of its own")
    return group


def check_number(argument: str, value: object, *, least: float, most: float) -> None:
    """Refuse what is no number, or one out of its range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgument(argument, value, "give a number")
    if not least <= value <= most:
        raise InvalidArgument(argument, value, f"use {least:g} to {most:g}")


def check_int(argument: str, value: object, *, least: int, most: int) -> None:
    """Refuse what is no whole number, or one out of its range."""
    check_number(argument, value, least=least, most=most)
    if not isinstance(value, int):
        raise InvalidArgument(argument, value, "give an int")


def check_async(argument: str, function: object, allowed: str) -> None:
    """Refuse what is no coroutine function, nor an object that is called as one."""
    if isinstance(function, type) or not _is_async(function):
        raise InvalidArgument(argument, function, allowed)


def check_plain(argument: str, function: object, allowed: str) -> None:
    """Refuse what can not be called in a thread: a coroutine function would only seem to do its work."""
    if not callable(function) or _is_async(function):
        raise InvalidArgument(argument, function, allowed)


def check_flag(argument: str, value: object) -> None:
    """Refuse what is neither True nor False, such as the text of a setting."""
    if not isinstance(value, bool):
        raise InvalidArgument(argument, value, "give True or False")


def _is_async(function: object) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004
    return any(map(inspect.iscoroutinefunction, (function, call)))
