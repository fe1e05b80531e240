"""Whether a queue stands where a reset wanted it, as far as an offset can tell. Pure.

An offset alone does not tell a group that went back and has consumed everything again from one that never
went back. Then only a receipt can.
"""

from enum import StrEnum


class Verdict(StrEnum):
    """What an offset says of a reset."""

    AT_TARGET = "at target"
    WENT_ON = "went on from target"
    AMBIGUOUS = "where it was, or further"
    """It was to go back, and stands no further back than before: it consumed all again, or never moved."""
    NOT_MOVED = "not moved"
    BEHIND = "behind target"
    UNKNOWN = "nobody tells"


HOLDS = frozenset({Verdict.AT_TARGET, Verdict.WENT_ON})


def judge(*, before: int | None, target: int, now: int | None) -> Verdict:
    """How ``now`` looks, if the group stood at ``before`` and was to go to ``target``."""
    if now is None:
        return Verdict.UNKNOWN
    if now == target:
        return Verdict.AT_TARGET
    if now < target:
        return Verdict.NOT_MOVED if now == before else Verdict.BEHIND
    if before is not None and target < before <= now:
        return Verdict.AMBIGUOUS
    return Verdict.WENT_ON
