"""Makes one function of an expression's tree. None stands for the unknown.

Terms are evaluated from left to right, and no further than needed, as in RocketMQ: where a
comparison fails for a message, it matters whether it is reached.
"""

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache, singledispatch
from typing import Any, TypeAlias

from tanist.broker.sql.comparing import comparison, kind_of
from tanist.broker.sql.computing import computation, negated_number, read_operand
from tanist.broker.sql.like import compile_like
from tanist.broker.sql.nodes import (
    And,
    Between,
    Claim,
    Comparator,
    Comparison,
    Computation,
    Find,
    Fraction,
    In,
    IsNull,
    Like,
    Negative,
    Node,
    Not,
    Or,
    Property,
    Search,
    Text,
    Truth,
    Whole,
)
from tanist.broker.sql.parser import parse
from tanist.broker.sql.values import Unjudgeable

Properties: TypeAlias = Mapping[str, str]
Evaluate: TypeAlias = Callable[[Properties], Any]
Judge: TypeAlias = Callable[[Properties], bool | None]

_MAX_KEPT = 256

_TESTS: dict[Comparator, Callable[[int, int], bool]] = {
    Comparator.GREATER: operator.gt,
    Comparator.GREATER_OR_EQUAL: operator.ge,
    Comparator.LESS: operator.lt,
    Comparator.LESS_OR_EQUAL: operator.le,
}
_FINDERS: dict[Search, Callable[[str, str], bool]] = {
    Search.CONTAINS: str.__contains__,
    Search.STARTSWITH: str.startswith,
    Search.ENDSWITH: str.endswith,
}


class Condition:
    """What an expression says about messages."""

    __slots__ = ("_judge",)

    def __init__(self, root: Node) -> None:
        self._judge = _judge(root)

    def evaluate(self, properties: Properties) -> bool | None:
        """True, false, or None for unknown. Raises Unjudgeable if a text has to be a number and is none."""
        return self._judge(properties)

    def holds(self, properties: Properties) -> bool:
        """Whether a message with these properties is wanted: only if that is known and true."""
        try:
            return self._judge(properties) is True
        except Unjudgeable:
            return False


# For pulls that bring their expression along; a group keeps those of its subscriptions.
@lru_cache(maxsize=_MAX_KEPT)
def compile_condition(text: str) -> Condition:
    """The condition that an expression stands for. Raises BadExpression."""
    return Condition(parse(text))


def _judge(node: Node) -> Judge:
    """The function of a node that stands where a truth value is wanted."""
    evaluate = _compile(node)
    if isinstance(node, Claim):
        return evaluate
    # A property. It holds a text, and a text is not true; only if there is none, nothing is known.
    return lambda properties: None if evaluate(properties) is None else False


@singledispatch
def _compile(node: Any) -> Evaluate:
    """The function of a node: the properties of a message in, the value out."""
    raise AssertionError(node)


@_compile.register
def _(node: Property) -> Evaluate:
    name = node.name
    return lambda properties: properties.get(name)


@_compile.register
def _(node: Text | Whole | Fraction | Truth) -> Evaluate:
    value = node.value
    return lambda _properties: value


@_compile.register
def _(node: Negative) -> Evaluate:
    evaluate = _compile(node.operand)
    # What is no number has no negative. But it is evaluated: where that fails, all fails.
    negate = negated_number if kind_of(node.operand).is_number else _nothing

    def negative(properties: Properties) -> int | float | None:
        value = evaluate(properties)
        return None if value is None else negate(value)

    return negative


@_compile.register
def _(node: Computation) -> Evaluate:
    left, right = _compile(node.left), _compile(node.right)
    read_left, read_right = read_operand(kind_of(node.left)), read_operand(kind_of(node.right))
    compute = computation(node.operator)

    def computed(properties: Properties) -> int | float | None:
        if (left_value := left(properties)) is None or (right_value := right(properties)) is None:
            return None
        return compute(read_left(left_value), read_right(right_value))

    return computed


@_compile.register
def _(node: Comparison) -> Judge:
    if node.operator is Comparator.EQUAL:
        return _compile_equal(node)
    if node.operator is Comparator.NOT_EQUAL:
        return _compile_not(_compile_equal(node))
    left, right = _compile(node.left), _compile(node.right)
    compare = comparison(kind_of(node.left), kind_of(node.right), is_by_size=True)
    test = _TESTS[node.operator]

    def ordered(properties: Properties) -> bool | None:
        if (left_value := left(properties)) is None or (right_value := right(properties)) is None:
            return None
        return test(compare(left_value, right_value), 0)

    return ordered


@_compile.register
def _(node: Between) -> Judge:
    to_low, to_high, chain = (
        (Comparator.LESS, Comparator.GREATER, Or)
        if node.is_negated
        else (Comparator.GREATER_OR_EQUAL, Comparator.LESS_OR_EQUAL, And)
    )
    return _compile(
        chain((Comparison(to_low, node.operand, node.low), Comparison(to_high, node.operand, node.high)))
    )


@_compile.register
def _(node: In) -> Judge:
    name, choices, is_negated = node.operand.name, frozenset(node.choices), node.is_negated

    def is_in(properties: Properties) -> bool | None:
        value = properties.get(name)
        return None if value is None else (value in choices) is not is_negated

    return is_in


@_compile.register
def _(node: IsNull) -> Judge:
    evaluate, is_negated = _compile(node.operand), node.is_negated
    return lambda properties: (evaluate(properties) is None) is not is_negated


@_compile.register
def _(node: Find) -> Judge:
    evaluate, find = _compile(node.operand), _FINDERS[node.search]
    wanted, is_negated = node.wanted, node.is_negated
    if not wanted:
        return lambda _properties: False

    def found(properties: Properties) -> bool:
        value = evaluate(properties)
        return isinstance(value, str) and find(value, wanted) is not is_negated

    return found


@_compile.register
def _(node: Like) -> Judge:
    name, is_negated = node.operand.name, node.is_negated
    is_like = compile_like(node.pattern, node.escape)

    def like(properties: Properties) -> bool | None:
        value = properties.get(name)
        return None if value is None else is_like(value) is not is_negated

    return like


@_compile.register
def _(node: Not) -> Judge:
    return _compile_not(_judge(node.operand))


@_compile.register
def _(node: And | Or) -> Judge:
    """AND is decided by the first term that is false, OR by the first that is true."""
    judges = [_judge(term) for term in node.terms]
    deciding = isinstance(node, Or)

    def chained(properties: Properties) -> bool | None:
        answer: bool | None = not deciding
        for judge in judges:
            found = judge(properties)
            if found is deciding:
                return deciding
            if found is None:
                answer = None
        return answer

    return chained


def _compile_equal(node: Comparison) -> Judge:
    left, right = _compile(node.left), _compile(node.right)
    compare = comparison(kind_of(node.left), kind_of(node.right), is_by_size=False)

    def equal(properties: Properties) -> bool | None:
        left_value, right_value = left(properties), right(properties)
        if left_value is None:
            # RocketMQ's rule, not SQL's: two properties that are both missing are equal.
            return True if right_value is None else None
        return right_value is not None and compare(left_value, right_value) == 0

    return equal


def _compile_not(judge: Judge) -> Judge:
    def negated(properties: Properties) -> bool | None:
        found = judge(properties)
        return None if found is None else not found

    return negated


def _nothing(_value: object) -> None:
    return None
