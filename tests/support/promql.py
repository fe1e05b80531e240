"""What an expression of PromQL asks for, as far as a test has to know: metrics, labels, functions."""

import re
from dataclasses import dataclass, field

_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_MATCHERS = re.compile(r"(\w+)?\{([^{}]*)\}")
_LABEL_LIST = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)")
_RANGE = re.compile(r"\[\w+\]")
_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_FUNCTIONS = frozenset(
    {"avg", "count", "increase", "label_values", "max", "min", "rate", "sum", "time", "topk"}
)
_WORDS = frozenset({"and", "or", "unless", "bool", "offset"})


class BadQuery(Exception):
    """It makes no sense."""


@dataclass(slots=True)
class Query:
    """One expression: the metrics it asks for, with the labels that it expects of any of them."""

    metrics: set[str] = field(default_factory=set[str])
    labels: set[str] = field(default_factory=set[str])


def read_query(text: str) -> Query:
    """Raises BadQuery if brackets do not match, or a function is not known."""
    query = Query()
    plain = _STRING.sub("", text)
    for opening, closing in ("()", "[]", "{}"):
        if plain.count(opening) != plain.count(closing):
            raise BadQuery(f"{opening}{closing} in {text}")

    def matched(found: re.Match[str]) -> str:
        query.labels |= {part.split("=")[0].strip("!~ ") for part in found[2].split(",") if part.strip()}
        return found[1] or ""

    def listed(found: re.Match[str]) -> str:
        query.labels |= {part.strip() for part in found[1].split(",") if part.strip()}
        return " "

    plain = _RANGE.sub("", _LABEL_LIST.sub(listed, _MATCHERS.sub(matched, plain)))
    for found in _NAME.finditer(plain):
        name = found[0]
        if plain[found.end() :].lstrip().startswith("("):
            if name not in _FUNCTIONS and name not in _WORDS:
                raise BadQuery(f"no function {name} in {text}")
        elif name not in _WORDS:
            query.metrics.add(name)
    if not query.metrics:
        raise BadQuery(f"no metric in {text}")
    return query
