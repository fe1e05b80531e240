"""The second phase of a transaction: END_TRANSACTION. Clients send it one-way."""

from tanist.broker.transactions.keeper import TransactionKeeper
from tanist.errors import ResponseError
from tanist.model.message import SysFlag
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.transaction import EndTransactionRequest
from tanist.remoting import Connection, Handler

_UNKNOWN = 0
_OUTCOMES = (SysFlag.COMMIT, SysFlag.ROLLBACK)


def routes(keeper: TransactionKeeper) -> dict[int, Handler]:
    def end(command: Command, _connection: Connection) -> Command:
        request = command.header(EndTransactionRequest)
        outcome = next((outcome for outcome in _OUTCOMES if outcome == request.outcome), None)
        if outcome is not None:
            keeper.end(request, outcome)
        elif request.outcome != _UNKNOWN:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"a transaction can not end with {request.outcome}: 8 commits, 12 rolls back, 0 is not known",
            )
        # A producer that does not know yet is asked later.
        return command.reply()

    return {RequestCode.END_TRANSACTION: end}
