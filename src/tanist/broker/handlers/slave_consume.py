"""What operators ask about slave consumption (20004, 20005), and have done about it (20006)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from tanist.broker.late import Steps, send_failure, send_late
from tanist.broker.slave_consume.ledger import KEPT_ENTRIES
from tanist.broker.slave_consume.view import SlaveConsumeView
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.model.names import shown
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.slave_consume import SlaveConsumeLedger
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.slave_consume import EndSlaveConsumeRequest, GetSlaveConsumeLedgerRequest
from tanist.remoting import Connection, Handler

_log = logging.getLogger(__name__)

MAX_WAITING = 16
MAX_LEDGER_BYTES = 8 * 1024 * 1024
"""What an answer tells of the ledger at most: entries with the offsets of many groups are large."""
_PATIENCE_S = 10.0


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = SlaveConsumeHandler(state)
    return {
        RequestCode.GET_SLAVE_CONSUME_STATUS: handler.get_status,
        RequestCode.GET_SLAVE_CONSUME_LEDGER: handler.get_ledger,
        RequestCode.END_SLAVE_CONSUME: handler.end,
    }


class SlaveConsumeHandler:
    """Answers for a broker whose group has a coordinator."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._waiting_count = 0

    def get_status(self, command: Command, connection: Connection) -> Command | None:
        steps = _tell_status(self._view(), command.without_content())
        return self._state.long_answers.make(command, connection, steps)

    def get_ledger(self, command: Command, connection: Connection) -> None:
        view = self._view()
        count = min(max(1, command.header(GetSlaveConsumeLedgerRequest).count), KEPT_ENTRIES)

        async def body() -> bytes:
            return _encode_ledger(await asyncio.to_thread(view.ledger, count))

        self._answer_later(view, command, connection, body)

    def end(self, command: Command, connection: Connection) -> None:
        """It takes writing to the registry, so the answer comes later. Its body says what was done."""
        view, request = self._view(), command.header(EndSlaveConsumeRequest)
        status = view.status()
        if (request.broker_name, request.term) != (status.group, status.term):
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"this is {status.group} in term {status.term}, not {request.broker_name} in term "
                f"{request.term}; look at slaveConsumeStatus again",
            )
        _log.warning(
            "end of slave consumption asked by=%s term=%d forced=%s reason=%s",
            *(connection.peer, request.term, request.is_forced, shown(request.reason)),
        )

        async def body() -> bytes:
            async with asyncio.timeout(_PATIENCE_S):
                return (await view.end(shown(request.reason), is_forced=request.is_forced)).encode()

        self._answer_later(view, command, connection, body)

    def _view(self) -> SlaveConsumeView:
        view = self._state.slave_consume
        if view is None:
            raise ResponseError(
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                "this broker takes no part in slave consumption; set coordinator on all brokers of "
                f"{self._state.settings.broker_name}",
            )
        return view

    def _answer_later(
        self,
        view: SlaveConsumeView,
        command: Command,
        connection: Connection,
        make_body: Callable[[], Awaitable[bytes]],
    ) -> None:
        if self._waiting_count >= MAX_WAITING:
            raise ResponseError(ResponseCode.SYSTEM_BUSY, "[OVERLOAD] too many questions at once")
        self._waiting_count += 1
        kept = command.without_content()

        async def answer() -> None:
            try:
                send_late(kept, connection, kept.reply(body=await make_body()))
            except TimeoutError:
                refusal = ResponseError(
                    ResponseCode.SYSTEM_ERROR, f"it took over {_PATIENCE_S:.0f} s; see what became of it"
                )
                send_failure(kept, connection, refusal)
            except Exception as error:
                send_failure(kept, connection, error)
            finally:
                self._waiting_count -= 1

        view.soon(answer)


def _tell_status(view: SlaveConsumeView, command: Command) -> Steps:
    duplicates = yield from view.duplicates_if_ended()
    status = msgspec.structs.replace(view.status(), duplicates_if_ended=duplicates)
    return command.reply(body=encode_body(status))


def _encode_ledger(ledger: SlaveConsumeLedger) -> bytes:
    """The newest entries that fit an answer; of one that does not fit alone, all but its offsets."""
    while len(body := encode_body(ledger)) > MAX_LEDGER_BYTES:
        entries = ledger.entries[(len(ledger.entries) + 1) // 2 :]
        if not entries:
            entries = [msgspec.structs.replace(ledger.entries[-1], offsets={})]
        ledger = msgspec.structs.replace(ledger, entries=entries)
    return body
