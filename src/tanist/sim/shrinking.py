"""Finds the few troubles that a broken history needs: what can be left out is left out."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Told(Protocol):
    """A history whose troubles were drawn before it began."""

    @property
    def broken(self) -> str | None: ...
    @property
    def troubles(self) -> tuple[Any, ...]: ...


ToldT = TypeVar("ToldT", bound=Told)


def shortest(tell: Callable[[tuple[Any, ...] | None], ToldT]) -> ToldT:
    """A broken history with as few of its troubles as it needs; a sound one as it is.

    ``tell`` tells it with these of its troubles, or with all. It has to break the same rule: without some
    trouble another one may be broken, by another bug.
    """
    whole = tell(None)
    if whole.broken is None:
        return whole
    rule = whole.broken.partition(":")[0]

    def is_broken(troubles: tuple[Any, ...]) -> bool:
        broken = tell(troubles).broken
        return broken is not None and broken.startswith(f"{rule}:")

    return tell(shrink(whole.troubles, is_broken))


def shrink(troubles: tuple[T, ...], is_broken: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """A part of these with which it is still broken, of which none can be left out.

    Halves are tried first, then smaller and smaller pieces, as in delta debugging: a history has few troubles
    that matter, and each try is a whole history.
    """
    size = max(1, len(troubles) // 2)
    while True:
        shorter = _without_a_piece(troubles, size, is_broken)
        if shorter is not None:
            troubles = shorter
            size = max(1, min(size, len(troubles) // 2))
        elif size == 1:
            return troubles
        else:
            size //= 2


def _without_a_piece(
    troubles: tuple[T, ...], size: int, is_broken: Callable[[tuple[T, ...]], bool]
) -> tuple[T, ...] | None:
    for start in range(0, len(troubles), size):
        rest = troubles[:start] + troubles[start + size :]
        if is_broken(rest):
            return rest
    return None
