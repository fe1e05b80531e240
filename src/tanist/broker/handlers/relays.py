"""What an operator asks of one client and the broker passes on.

Its running info (307), and to consume one message right now (309).

    operator -> broker -> client
             <-        <-

Nothing blocks meanwhile: the broker keeps the question until the client answers or its time is over.
"""

import asyncio
from collections import Counter

import msgspec

from tanist.broker.consumer_group import Client, ClientConnection
from tanist.broker.handlers.messages import find_message
from tanist.broker.late import send_failure, send_late
from tanist.broker.state import BrokerState
from tanist.errors import RemotingError, RequestTimeout, ResponseError
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.client import ConsumeMessageDirectlyRequest, ConsumerRunningInfoRequest
from tanist.protocol.message_id import decode_offset_id
from tanist.remoting import Connection, Handler

PATIENCE_S = 10.0
"""How long a client may take, as in RocketMQ; the stock tools themselves wait no longer either."""
MAX_WAITING = 256
MAX_WAITING_PER_CLIENT = 16
"""So that one client that does not answer leaves room for questions to the others."""


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = RelayHandler(state)
    return {
        RequestCode.GET_CONSUMER_RUNNING_INFO: handler.get_running_info,
        RequestCode.CONSUME_MESSAGE_DIRECTLY: handler.consume_directly,
    }


class RelayHandler:
    """Passes questions on to clients, and their answers back."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._waiting: Counter[ClientConnection] = Counter()

    def get_running_info(self, command: Command, connection: Connection) -> None:
        request = command.header(ConsumerRunningInfoRequest)
        client = self._find(request.consumer_group, request.client_id)
        self._relay(command, connection, client, request)

    def consume_directly(self, command: Command, connection: Connection) -> None:
        """The client gets the message with the question, and what it needs to know of topic and group."""
        request = command.header(ConsumeMessageDirectlyRequest)
        client = self._find(request.consumer_group, request.client_id or "")
        message = find_message(self._state, decode_offset_id(request.msg_id or "").log_offset)
        topic = self._state.topics.find(request.topic or "")
        group = self._state.groups.find(request.consumer_group)
        completed = msgspec.structs.replace(
            request,
            broker_name=self._state.settings.broker_name,
            topic_sys_flag=topic.topic_sys_flag if topic else request.topic_sys_flag,
            group_sys_flag=group.group_sys_flag if group else request.group_sys_flag,
        )
        self._relay(command, connection, client, completed, message)

    def _find(self, group: str, client_id: str) -> Client:
        client = self._state.clients.find_consumer(group, client_id)
        if client is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"group {group} has no consumer {client_id} online"
            )
        return client

    def _relay(
        self,
        command: Command,
        connection: Connection,
        client: Client,
        header: Header,
        body: bytes | memoryview = b"",
    ) -> None:
        """Ask the client. Only the fields of the question go on, and not the operator's signature."""
        if self._waiting.total() >= MAX_WAITING:
            raise ResponseError(ResponseCode.SYSTEM_BUSY, "[OVERLOAD] too many questions wait for clients")
        asked = client.connection
        if self._waiting[asked] >= MAX_WAITING_PER_CLIENT:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                f"[OVERLOAD] {self._waiting[asked]} questions wait for consumer {client.client_id} already",
            )
        question = Command.request(command.code, header, body=body)
        try:
            awaited = asyncio.ensure_future(asked.request(question, PATIENCE_S))
        except RemotingError as error:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"consumer {client.client_id} was not asked: {error}"
            ) from error
        self._waiting[asked] += 1
        kept = command.without_content()

        def on_answer(done: asyncio.Future[Command]) -> None:
            self._waiting[asked] -= 1
            if not self._waiting[asked]:
                del self._waiting[asked]
            if done.cancelled():
                return
            error = done.exception()
            if error is not None:
                send_failure(kept, connection, _refusal(error, client))
                return
            answer = done.result()
            reply = kept.reply(answer.code, ext=answer.ext, remark=answer.remark, body=answer.body)
            send_late(kept, connection, reply)

        awaited.add_done_callback(on_answer)


def _refusal(error: BaseException, client: Client) -> ResponseError:
    is_silent = isinstance(error, RequestTimeout)
    code = ResponseCode.CONSUME_MSG_TIMEOUT if is_silent else ResponseCode.SYSTEM_ERROR
    return ResponseError(code, f"consumer {client.client_id} did not answer: {error}")
