"""How two nodes compare, by what their values are. That is known before there is any message."""

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, TypeAlias

from tanist.broker.sql.nodes import Claim, Computation, Fraction, Negative, Node, Whole
from tanist.broker.sql.values import (
    INT32_MOST,
    Unjudgeable,
    compare_numbers,
    compare_whole,
    read_double,
    read_int32,
    read_int64,
    read_truth,
)

Compare: TypeAlias = Callable[[Any, Any], int]
"""Less than 0, 0, or more than 0. Neither value is unknown."""


class Kind(Enum):
    """What a node's values are, if they are not unknown."""

    TEXT = auto()
    TRUTH = auto()
    INT32 = auto()
    INT64 = auto()
    DOUBLE = auto()
    NUMBER = auto()
    """Of a computation: whole or a double, as its operands are."""
    NOTHING = auto()
    """They are always unknown."""

    @property
    def is_number(self) -> bool:
        return self in _NUMBERS


_NUMBERS = frozenset({Kind.INT32, Kind.INT64, Kind.DOUBLE, Kind.NUMBER})
_READERS: dict[Kind, Callable[[str], Any]] = {
    Kind.INT32: read_int32,
    Kind.INT64: read_int64,
    Kind.DOUBLE: read_double,
}


def kind_of(node: Node) -> Kind:
    if isinstance(node, Negative):
        kind = kind_of(node.operand)
        return kind if kind.is_number else Kind.NOTHING
    if isinstance(node, Whole):
        return Kind.INT32 if node.value <= INT32_MOST else Kind.INT64
    if isinstance(node, Fraction):
        return Kind.DOUBLE
    if isinstance(node, Computation):
        return Kind.NUMBER
    return Kind.TRUTH if isinstance(node, Claim) else Kind.TEXT


def comparison(left: Kind, right: Kind, *, is_by_size: bool) -> Compare:
    """How values of these kinds compare. A text is read as what it is compared with."""
    if left.is_number and right.is_number:
        return compare_numbers
    if left is right:
        return _compare_texts_by_size if is_by_size else _differ
    if left is Kind.TEXT:
        return _reading_left(right)
    if right is Kind.TEXT:
        return _reading_right(left)
    # A number is no truth value, and neither is equal to the other.
    return _never_equal


def _compare_texts_by_size(left: str, right: str) -> int:
    return compare_numbers(read_double(left), read_double(right))


def _differ(left: object, right: object) -> int:
    return 0 if left == right else 1


def _never_equal(_left: object, _right: object) -> int:
    return -1


def _fail(_left: object, right: object) -> int:
    raise Unjudgeable(right)


def _reading_left(kind: Kind) -> Compare:
    if kind is Kind.TRUTH:
        return lambda left, right: compare_whole(read_truth(left), right)
    if kind is Kind.NUMBER:
        return lambda left, right: compare_numbers(_read_like(left, right), right)
    if (read := _READERS.get(kind)) is None:
        return _never_equal
    compare = compare_numbers if kind is Kind.DOUBLE else compare_whole
    return lambda left, right: compare(read(left), right)


def _reading_right(kind: Kind) -> Compare:
    # RocketMQ can read ``a = TRUE`` and fails on ``TRUE = a``.
    compare = _fail if kind is Kind.TRUTH else _reading_left(kind)
    return lambda left, right: -compare(right, left)


def _read_like(text: str, other: float) -> int | float:
    return read_double(text) if isinstance(other, float) else read_int64(text)
