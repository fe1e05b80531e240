"""Arithmetic, as Java does it: whole numbers in 64 bits, and doubles as soon as one is among the operands.

What has no result, such as 1 / 0 or a sum beyond 64 bits (where Java would begin again at the other
end), fails the whole expression for this message.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

from tanist.broker.sql.comparing import Kind
from tanist.broker.sql.nodes import Arithmetic
from tanist.broker.sql.values import Unjudgeable, checked_int64, read_number


def read_operand(kind: Kind) -> Callable[[Any], int | float]:
    """How a value that is not unknown becomes a number."""
    return read_number if kind is Kind.TEXT else _as_it_is


def negated_number(value: float) -> int | float:
    return -value if isinstance(value, float) else checked_int64(-value)


def computation(sign: Arithmetic) -> Callable[[float, float], int | float]:
    """The function of two numbers that a sign stands for."""
    compute_whole, compute_doubles = _WHOLE[sign], _DOUBLES[sign]

    def compute(left: float, right: float) -> int | float:
        if isinstance(left, float) or isinstance(right, float):
            return compute_doubles(float(left), float(right))
        return checked_int64(compute_whole(left, right))

    return compute


def _as_it_is(value: float) -> int | float:
    return value


def _divide_whole(left: int, right: int) -> int:
    """Towards 0, where Python's own division goes down."""
    if right == 0:
        raise Unjudgeable(right)
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) is (right < 0) else -quotient


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


_WHOLE: dict[Arithmetic, Callable[[int, int], int]] = {
    Arithmetic.PLUS: operator.add,
    Arithmetic.MINUS: operator.sub,
    Arithmetic.TIMES: operator.mul,
    Arithmetic.DIVIDED_BY: _divide_whole,
}
_DOUBLES: dict[Arithmetic, Callable[[float, float], float]] = {
    Arithmetic.PLUS: operator.add,
    Arithmetic.MINUS: operator.sub,
    Arithmetic.TIMES: operator.mul,
    Arithmetic.DIVIDED_BY: _divide_doubles,
}
