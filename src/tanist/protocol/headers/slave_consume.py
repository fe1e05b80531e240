"""What operators ask about slave consumption, and have done about it. Ours."""

from tanist.model.integers import Int32, Int64
from tanist.protocol.headers.base import Header


class GetSlaveConsumeLedgerRequest(Header, frozen=True, kw_only=True):
    """Asks for the last entries of a broker's ledger."""

    count: Int32 = 20


class EndSlaveConsumeRequest(Header, frozen=True, kw_only=True):
    """Has a master be read again. Whoever asks must know which group, and what it was told of."""

    broker_name: str
    term: Int64
    """The slave consumption that is meant: there may be another one by now."""
    reason: str = ""
    is_forced: bool = False
    """Whether to end it also if the slave that is read is alive."""
