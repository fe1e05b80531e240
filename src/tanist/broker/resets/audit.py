"""Who ordered what, when and from where, and what became of it, written down; see ``json_lines``."""

from enum import StrEnum

import msgspec

FILE_NAME = "resetAudit.jsonl"
KEPT_ENTRIES = 10_000


class AuditEvent(StrEnum):
    """What happened to an order."""

    ASKED = "ASKED"
    """It waits for somebody's approval."""
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    MOVED = "MOVED"
    """The group stood elsewhere than planned, and nothing was done."""
    APPLIED = "APPLIED"
    CONFIRMED = "CONFIRMED"
    """By one client."""
    FAILED = "FAILED"
    """At one client."""
    SUPERSEDED = "SUPERSEDED"
    EXPIRED = "EXPIRED"


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One line."""

    time_ms: int
    event: AuditEvent
    order_id: str
    topic: str
    group: str
    who: str = ""
    address: str = ""
    reason: str = ""
    undoes: str | None = None
    is_forced: bool = False
    targets: dict[int, int] = {}
    before: dict[int, int] = {}
    """Where the group stood; what an order that takes this one back goes to."""
