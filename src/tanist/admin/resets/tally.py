"""Who has followed an order, counted over all brokers. Pure.

A client counts as confirmed when every broker that told it says so; what nobody saw is not claimed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tanist.protocol.bodies.reset import ClientReceipt, ReceiptState, ResetOrderView

_WORST_FIRST = (ReceiptState.FAILED, ReceiptState.TOLD, ReceiptState.PENDING, ReceiptState.CONFIRMED)
_WORDS = {
    ReceiptState.TOLD: "told, not seen to follow yet",
    ReceiptState.PENDING: "not connected, is told when it comes",
    ReceiptState.FAILED: "failed",
}
_SHOWN_CLIENTS = 10


@dataclass(frozen=True, slots=True)
class Tally:
    """Each client once."""

    confirmed: list[str] = field(default_factory=list[str])
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """Those that were not seen to follow, and what is known of them."""
    is_waiting: bool = False
    """Whether one was told and may still follow."""

    @property
    def count(self) -> int:
        return len(self.confirmed) + len(self.missing)

    @property
    def is_complete(self) -> bool:
        return not self.missing

    def sentence(self) -> str:
        """What is known, in one line."""
        if not self.count:
            return "no client of the group is known to the brokers"
        clients = "client" if self.count == 1 else "clients"
        said = f"{len(self.confirmed)} of {self.count} {clients} confirmed"
        if not self.missing:
            return said
        shown = [f"{client_id} ({why})" for client_id, why in list(self.missing.items())[:_SHOWN_CLIENTS]]
        more = len(self.missing) - _SHOWN_CLIENTS
        return f"{said}, missing: {', '.join(shown)}{f' and {more} more' if more > 0 else ''}"


def tally(orders: Iterable[ResetOrderView]) -> Tally:
    """The receipts of one reset at all its brokers."""
    by_client: dict[str, list[ClientReceipt]] = {}
    for order in orders:
        for receipt in order.receipts:
            by_client.setdefault(receipt.client_id, []).append(receipt)
    worst = {client_id: _worst(receipts) for client_id, receipts in sorted(by_client.items())}
    return Tally(
        [client_id for client_id, receipt in worst.items() if receipt.state is ReceiptState.CONFIRMED],
        {
            client_id: _why(receipt)
            for client_id, receipt in worst.items()
            if receipt.state is not ReceiptState.CONFIRMED
        },
        any(receipt.state is ReceiptState.TOLD for receipts in by_client.values() for receipt in receipts),
    )


def _worst(receipts: list[ClientReceipt]) -> ClientReceipt:
    return min(receipts, key=lambda receipt: _WORST_FIRST.index(receipt.state))


def _why(receipt: ClientReceipt) -> str:
    words = _WORDS[receipt.state]
    return f"{words}: {receipt.reason}" if receipt.reason else words
