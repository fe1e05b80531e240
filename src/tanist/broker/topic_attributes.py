"""A topic's attributes, and the little language in which operators change them: ``+key=value,-key``. Pure."""

from collections.abc import Mapping

from tanist.errors import ResponseError
from tanist.protocol.codes import ResponseCode

_ALLOWED = {
    "message.type": frozenset({"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"}),
    # RocketMQ knows another queue and another policy; these two describe what every topic here is.
    "queue.type": frozenset({"SimpleCQ"}),
    "cleanup.policy": frozenset({"DELETE"}),
}


def alter_attributes(current: Mapping[str, str], changes: str | None) -> dict[str, str]:
    """The attributes after ``changes``. None of them is made if one can not be."""
    altered = dict(current)
    named: set[str] = set()
    for change in (changes or "").split(","):
        if not change:
            continue
        sign, (key, _, value) = change[0], change[1:].partition("=")
        if key in named:
            raise _refusal(f"attribute {key} is changed twice")
        named.add(key)
        if sign == "+":
            altered[key] = _checked(key, value)
        elif sign == "-" and key in altered:
            del altered[key]
        elif sign == "-":
            raise _refusal(f"attribute {key} can not be removed: the topic does not have it")
        else:
            raise _refusal(f"attribute change {change} begins with neither + nor -")
    return altered


def _checked(key: str, value: str) -> str:
    if key not in _ALLOWED:
        raise _refusal(f"unsupported key: {key}; use one of {', '.join(sorted(_ALLOWED))}")
    if value not in _ALLOWED[key]:
        raise _refusal(f"attribute {key}={value} is not supported; use {', '.join(sorted(_ALLOWED[key]))}")
    return value


def _refusal(reason: str) -> ResponseError:
    return ResponseError(ResponseCode.SYSTEM_ERROR, reason)
