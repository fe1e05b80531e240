"""What follows from an order, for ``carrying`` to do."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tanist.broker.consumer_group import Client

if TYPE_CHECKING:
    from tanist.broker.resets.receipts import Receipt
    from tanist.broker.resets.watch import OrderWatch


@dataclass(frozen=True, slots=True)
class TellClient:
    """Send a client the order, but for the queues ``moved``, where it is already.

    In the queues ``spared`` it goes to where the group stands by now.
    """

    watch: "OrderWatch"
    client: Client
    spared: frozenset[int] = frozenset()
    moved: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class AskStanding:
    """Ask a client which queues it has and where it stands in them."""

    watch: "OrderWatch"
    client: Client


@dataclass(frozen=True, slots=True)
class WakePulls:
    """Answer the pulls of the order's queues that wait."""

    watch: "OrderWatch"


@dataclass(frozen=True, slots=True)
class NoteReceipt:
    """Tell that a client has confirmed the order, or has failed to follow it."""

    watch: "OrderWatch"
    receipt: "Receipt"


Action: TypeAlias = TellClient | AskStanding | WakePulls | NoteReceipt
