"""Changes of the registry as one transaction of ZooKeeper, and what its answer means."""

from collections.abc import Callable, Sequence

from tanist.coord.kazoo_client import KazooErrors, Transaction
from tanist.coord.registry import NOT_THERE, Change, Check, Create, Delete, Put

_ANY_VERSION = -1


def fill(transaction: Transaction, changes: Sequence[Change], place: Callable[[str], str]) -> list[Change]:
    """Add the operations that make these changes; for each of them, the change that it is part of."""
    parts: list[Change] = []
    for change in changes:
        path = place(change.path)
        match change:
            case Create():
                transaction.create(path, change.value, ephemeral=change.is_ephemeral)
            case Put():
                transaction.set_data(path, change.value, change.version)
            case Delete():
                transaction.delete(path, change.version)
            case Check():
                if change.version is not None:
                    transaction.check(path, change.version)
                else:
                    # ZooKeeper can not check that nothing is there, but what can be made was not.
                    transaction.create(path, b"")
                    transaction.delete(path, _ANY_VERSION)
                    parts.append(change)
        parts.append(change)
    return parts


def fault(
    results: Sequence[object], parts: Sequence[Change], errors: KazooErrors
) -> tuple[Change, Exception] | None:
    """The change that ZooKeeper did not make, and why; None if it made all."""
    faults = [
        (change, result)
        for change, result in zip(parts, results, strict=True)
        if isinstance(result, Exception)
    ]
    # If none of them is at fault nothing was made all the same.
    return next(
        (each for each in faults if not isinstance(each[1], errors.bystanders)), next(iter(faults), None)
    )


def lacks_parents(change: Change, error: Exception, errors: KazooErrors) -> bool:
    """Whether this change was not made because there is nothing above its record."""
    makes_record = isinstance(change, Create) or (isinstance(change, Check) and change.version is None)
    return makes_record and isinstance(error, errors.no_node)


def versions(changes: Sequence[Change]) -> list[int]:
    """The versions of the records after these changes were made."""
    return [_version(change) for change in changes]


def _version(change: Change) -> int:
    match change:
        case Create():
            return 0
        case Put():
            return change.version + 1
        case Delete():
            return change.version
        case Check():
            return NOT_THERE if change.version is None else change.version
