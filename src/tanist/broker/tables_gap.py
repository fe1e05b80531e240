"""What a slave would lack as master: tables that are older than its log. Pure.

On Tanist's own link the tables come before the log that needs them, and whole at first. Until they have all
come on this link, the log may be ahead of them. From a master of RocketMQ they are asked for every few
seconds; one that never came is from before this broker became a slave.
"""

from collections.abc import Sequence

from tanist.protocol.ha_tables import TableKind

_NAMES = {
    TableKind.TOPICS: "topic config",
    TableKind.GROUPS: "subscription group",
    TableKind.OFFSETS: "consumer offset",
    TableKind.DELAYS: "delay offset",
    TableKind.DELETIONS: "deleted topics",
    TableKind.RESETS: "orders to move groups",
}


def tables_gap(told_kinds: frozenset[TableKind] | None, never_asked: Sequence[str]) -> str | None:
    """What is older than the log, in words; None if nothing is.

    ``told_kinds`` came whole on the last link, None if no link brought tables. ``never_asked`` are the
    tables that the master was not asked for with success.
    """
    if told_kinds is None:
        return f"not told by a master yet: {', '.join(never_asked)}" if never_asked else None
    missing = [name for kind, name in _NAMES.items() if kind not in told_kinds]
    return f"not come since the link began: {', '.join(missing)}" if missing else None
