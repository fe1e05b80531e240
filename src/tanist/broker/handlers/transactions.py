"""The second phase of a transaction: END_TRANSACTION. Clients send it one-way."""

from tanist.broker.state import BrokerState
from tanist.broker.transactions.keeper import TransactionKeeper
from tanist.errors import ResponseError
from tanist.model.message import SysFlag
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_command
from tanist.protocol.headers.transaction import EndTransactionRequest
from tanist.remoting import Connection, Handler

_UNKNOWN = 0
_OUTCOMES = (SysFlag.COMMIT, SysFlag.ROLLBACK)


def routes(state: BrokerState, keeper: TransactionKeeper) -> dict[int, Handler]:
    pending = state.writer.pending

    def end(command: Command, connection: Connection) -> Command | None:
        request = command.header(EndTransactionRequest)
        outcome = next((outcome for outcome in _OUTCOMES if outcome == request.outcome), None)
        is_waiting = pending.is_on and not command.is_one_way
        if outcome is SysFlag.COMMIT and pending.is_on:
            pending.check(is_waiting=is_waiting)
        if outcome is not None:
            appended = keeper.end(request, outcome)
            if is_waiting and appended is not None:
                # A commit that is late is a commit: RocketMQ too has no other answer to it.
                frame = encode_command(command.reply())
                pending.answer_when_safe(appended, connection, frame, tells_why_not=False)
                return None
        elif request.outcome != _UNKNOWN:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"a transaction can not end with {request.outcome}: 8 commits, 12 rolls back, 0 is not known",
            )
        # A producer that does not know yet is asked later.
        return command.reply()

    return {RequestCode.END_TRANSACTION: end}
