"""Where agreement is kept: small versioned records that change by compare-and-set, and who is present.

``registry`` is the interface. Its homes are SQLite inside one process, which others reach over the port of a
controller (``remote_registry``), and ZooKeeper; all pass the same tests.
"""

from tanist.coord.open import open_registry
from tanist.coord.registry import (
    NOT_THERE,
    Change,
    Check,
    Conflict,
    Create,
    Delete,
    Put,
    Record,
    Registry,
    RegistryError,
    RegistryUnavailable,
    SessionState,
    Watch,
)

__all__ = [
    "NOT_THERE",
    "Change",
    "Check",
    "Conflict",
    "Create",
    "Delete",
    "Put",
    "Record",
    "Registry",
    "RegistryError",
    "RegistryUnavailable",
    "SessionState",
    "Watch",
    "open_registry",
]
