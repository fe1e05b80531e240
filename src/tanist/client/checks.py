"""Arguments of calls, checked where they are given: the error names the argument and nothing is sent."""

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


def check_whole_number(argument: str, value: object, *, least: int, most: int) -> None:
    """Refuse what is no int, or one out of its range."""
    if not isinstance(value, int):
        raise InvalidArgument(argument, value, "give a whole number, an int")
    check_number(argument, value, least=least, most=most)


def check_flag(argument: str, value: object) -> None:
    """Refuse what is neither True nor False, such as the text of a setting."""
    if not isinstance(value, bool):
        raise InvalidArgument(argument, value, "give True or False")
