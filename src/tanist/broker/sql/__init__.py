"""Filters by SQL92: text in, a condition on a message's properties out.

``tokens`` cuts the text, ``parser`` builds the tree of ``nodes``, ``compiler`` makes one function of
it, by what ``comparing``, ``computing`` and ``like`` know; ``values`` reads numbers. All pure, and
bounded in length, depth and cost. What RocketMQ understands is understood as it does; LIKE and
arithmetic are added.
"""

from tanist.broker.sql.compiler import Condition, compile_condition
from tanist.broker.sql.tokens import BadExpression

__all__ = ["BadExpression", "Condition", "compile_condition"]
