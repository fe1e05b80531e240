"""Where agreement is kept: small versioned records that change by compare-and-set, and who is present.

``registry`` is the interface. Its homes are SQLite inside one process, and ZooKeeper; both pass the same
tests.
"""

from tanist.coord.open import open_registry
from tanist.coord.registry import (
    Change,
    Check,
    Conflict,
    Create,
    Delete,
    Put,
    Record,
    Registry,
    RegistryUnavailable,
    SessionState,
    Watch,
)

__all__ = [
    "Change",
    "Check",
    "Conflict",
    "Create",
    "Delete",
    "Put",
    "Record",
    "Registry",
    "RegistryUnavailable",
    "SessionState",
    "Watch",
    "open_registry",
]
