"""What an expression means, as a tree.

A property may stand where a truth value is wanted. Properties are texts, so it is then false or unknown.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Comparator(Enum):
    """The signs that compare two values."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    LESS = "<"
    LESS_OR_EQUAL = "<="


class Arithmetic(Enum):
    """The signs that make one number of two."""

    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    DIVIDED_BY = "/"


class Search(Enum):
    """Where a text is looked for in another."""

    CONTAINS = "CONTAINS"
    STARTSWITH = "STARTSWITH"
    ENDSWITH = "ENDSWITH"


@dataclass(frozen=True, slots=True)
class Property:
    """The value of a property; unknown if the message does not have it."""

    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """A string literal, without its quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Whole:
    """A literal of 0 to 2^63 - 1. Signs are not part of a literal."""

    value: int


@dataclass(frozen=True, slots=True)
class Fraction:
    """A literal with a point or an exponent: a double."""

    value: float


@dataclass(frozen=True, slots=True)
class Truth:
    """TRUE, FALSE, or NULL for None."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Negative:
    """A minus before a value: unknown for everything that is no number, texts included."""

    operand: "Node"


@dataclass(frozen=True, slots=True)
class Computation:
    """Two numbers made one."""

    operator: Arithmetic
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values compared."""

    operator: Comparator
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Between:
    """Whether a number lies in a range with both its ends, or outside of it."""

    operand: "Node"
    low: "Node"
    high: "Node"
    is_negated: bool


@dataclass(frozen=True, slots=True)
class In:
    """Whether a property is one of these texts."""

    operand: Property
    choices: tuple[str, ...]
    is_negated: bool


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a value is unknown. The answer itself is always known."""

    operand: "Node"
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Find:
    """Whether a value is a text with another one in it. False, negated or not, for what is no text."""

    search: Search
    operand: "Node"
    wanted: str
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Like:
    """Whether a property matches a pattern."""

    operand: Property
    pattern: str
    escape: str | None
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; of the unknown, the unknown."""

    operand: "Node"


@dataclass(frozen=True, slots=True)
class And:
    """False if one term is, else unknown if one term is, else true. A long chain is one flat node."""

    terms: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True if one term is, else unknown if one term is, else false."""

    terms: tuple["Node", ...]


Value: TypeAlias = Property | Text | Whole | Fraction | Negative | Computation
Claim: TypeAlias = Truth | Comparison | Between | In | IsNull | Find | Like | Not | And | Or
"""What is true, false or unknown."""
Node: TypeAlias = Value | Claim


def children(node: Node) -> tuple[Node, ...]:
    """The nodes right below one."""
    match node:
        case And(terms) | Or(terms):
            return terms
        case Comparison(_, left, right) | Computation(_, left, right):
            return left, right
        case Between(operand, low, high, _):
            return operand, low, high
        case Property() | Text() | Whole() | Fraction() | Truth():
            return ()
        case _:
            return (node.operand,)
